/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The scripts of lock libraries, byte by byte as those send them, and what they mean, as meaning_of() of script_meaning.h
 * says it. Their hashes are known (core/command/script_hashes.h).
 */
#pragma once

static const struct {
	const char *library, *meaning, *text;
} script_texts[] = {
	{ "redis-py: release", "R1 .0 .0 first",
	  "\n"
	  "        local token = redis.call('get', KEYS[1])\n"
	  "        if not token or token ~= ARGV[1] then\n"
	  "            return 0\n"
	  "        end\n"
	  "        redis.call('del', KEYS[1])\n"
	  "        return 1\n"
	  "    " },
	{ "redis-py: extend", "B1 .0 .0 first ms",
	  "\n"
	  "        local token = redis.call('get', KEYS[1])\n"
	  "        if not token or token ~= ARGV[1] then\n"
	  "            return 0\n"
	  "        end\n"
	  "        local expiration = redis.call('pttl', KEYS[1])\n"
	  "        if not expiration then\n"
	  "            expiration = 0\n"
	  "        end\n"
	  "        if expiration < 0 then\n"
	  "            return 0\n"
	  "        end\n"
	  "\n"
	  "        local newttl = ARGV[2]\n"
	  "        if ARGV[3] == \"0\" then\n"
	  "            newttl = ARGV[2] + expiration\n"
	  "        end\n"
	  "        redis.call('pexpire', KEYS[1], newttl)\n"
	  "        return 1\n"
	  "    " },
	{ "redis-py: reacquire", "E1 .0 .0 first ms",
	  "\n"
	  "        local token = redis.call('get', KEYS[1])\n"
	  "        if not token or token ~= ARGV[1] then\n"
	  "            return 0\n"
	  "        end\n"
	  "        redis.call('pexpire', KEYS[1], ARGV[2])\n"
	  "        return 1\n"
	  "    " },
	{ "redlock 3 of npm: acquire", ".nil AOK .nil first ms",
	  "return redis.call(\"set\", KEYS[1], ARGV[1], \"NX\", \"PX\", ARGV[2])" },
	{ "redlock 3 of npm: release", "R1 .0 .0 first",
	  "if redis.call(\"get\", KEYS[1]) == ARGV[1] then return redis.call(\"del\", KEYS[1]) else return 0 end" },
	{ "redlock 3 of npm: extend", "E1 .0 .0 first ms",
	  "if redis.call(\"get\", KEYS[1]) == ARGV[1] then return redis.call(\"pexpire\", KEYS[1], ARGV[2]) else return 0 end" },
	{ "redlock 4.0 of npm: acquire", ".0 Acount .0 all ms",
	  "\n"
	  "\t-- Return 0 if an entry already exists.\n"
	  "\tfor i, key in ipairs(KEYS) do\n"
	  "\t\tif redis.call(\"exists\", key) == 1 then\n"
	  "\t\t\treturn 0\n"
	  "\t\tend\n"
	  "\tend\n"
	  "\n"
	  "\t-- Create an entry for each provided key.\n"
	  "\tfor i, key in ipairs(KEYS) do\n"
	  "\t\tredis.call(\"set\", key, ARGV[1], \"PX\", ARGV[2])\n"
	  "\tend\n"
	  "\n"
	  "\t-- Return the number of entries added.\n"
	  "\treturn table.getn(KEYS)\n" },
	{ "redlock 4.0 of npm: release", "Rcount .nil .nil each",
	  "\n"
	  "\tlocal count = 0\n"
	  "\tfor i, key in ipairs(KEYS) do\n"
	  "\t  -- Only remove entries for *this* lock value.\n"
	  "\t  if redis.call(\"get\", key) == ARGV[1] then\n"
	  "\t    redis.pcall(\"del\", key)\n"
	  "\t    count = count + 1\n"
	  "\t  end\n"
	  "\tend\n"
	  "\n"
	  "\t-- Return the number of entries removed.\n"
	  "\treturn count\n" },
	{ "redlock 4.0 of npm: extend", "Ecount .0 .0 all ms",
	  "\n"
	  "\t-- Return 0 if an entry exists with a *different* lock value.\n"
	  "\tfor i, key in ipairs(KEYS) do\n"
	  "\t  if redis.call(\"get\", key) ~= ARGV[1] then\n"
	  "\t    return 0\n"
	  "\t  end\n"
	  "\tend\n"
	  "\n"
	  "\t-- Update the entry for each provided key.\n"
	  "\tfor i, key in ipairs(KEYS) do\n"
	  "\t  redis.call(\"set\", key, ARGV[1], \"PX\", ARGV[2])\n"
	  "\tend\n"
	  "\n"
	  "\t-- Return the number of entries updated.\n"
	  "\treturn table.getn(KEYS)\n" },
	{ "redlock 4.2 of npm: acquire", ".0 Acount .0 all ms",
	  "\n"
	  "\t-- Return 0 if an entry already exists.\n"
	  "\tfor i, key in ipairs(KEYS) do\n"
	  "\t\tif redis.call(\"exists\", key) == 1 then\n"
	  "\t\t\treturn 0\n"
	  "\t\tend\n"
	  "\tend\n"
	  "\n"
	  "\t-- Create an entry for each provided key.\n"
	  "\tfor i, key in ipairs(KEYS) do\n"
	  "\t\tredis.call(\"set\", key, ARGV[1], \"PX\", ARGV[2])\n"
	  "\tend\n"
	  "\n"
	  "\t-- Return the number of entries added.\n"
	  "\treturn #KEYS\n" },
	{ "redlock 4.2 of npm: release", "Rcount .nil .nil each",
	  "\n"
	  "\tlocal count = 0\n"
	  "\tfor i, key in ipairs(KEYS) do\n"
	  "\t\t-- Only remove entries for *this* lock value.\n"
	  "\t\tif redis.call(\"get\", key) == ARGV[1] then\n"
	  "\t\t\tredis.pcall(\"del\", key)\n"
	  "\t\t\tcount = count + 1\n"
	  "\t\tend\n"
	  "\tend\n"
	  "\n"
	  "\t-- Return the number of entries removed.\n"
	  "\treturn count\n" },
	{ "redlock 4.2 of npm: extend", "Ecount .0 .0 all ms",
	  "\n"
	  "\t-- Return 0 if an entry exists with a *different* lock value.\n"
	  "\tfor i, key in ipairs(KEYS) do\n"
	  "\t\tif redis.call(\"get\", key) ~= ARGV[1] then\n"
	  "\t\t\treturn 0\n"
	  "\t\tend\n"
	  "\tend\n"
	  "\n"
	  "\t-- Update the entry for each provided key.\n"
	  "\tfor i, key in ipairs(KEYS) do\n"
	  "\t\tredis.call(\"set\", key, ARGV[1], \"PX\", ARGV[2])\n"
	  "\tend\n"
	  "\n"
	  "\t-- Return the number of entries updated.\n"
	  "\treturn #KEYS\n" },
	{ "redlock 5 of npm: acquire", ".0 Acount .0 all ms",
	  "\n"
	  "  -- Return 0 if an entry already exists.\n"
	  "  for i, key in ipairs(KEYS) do\n"
	  "    if redis.call(\"exists\", key) == 1 then\n"
	  "      return 0\n"
	  "    end\n"
	  "  end\n"
	  "\n"
	  "  -- Create an entry for each provided key.\n"
	  "  for i, key in ipairs(KEYS) do\n"
	  "    redis.call(\"set\", key, ARGV[1], \"PX\", ARGV[2])\n"
	  "  end\n"
	  "\n"
	  "  -- Return the number of entries added.\n"
	  "  return #KEYS\n" },
	{ "redlock 5 of npm: release", "Rcount .nil .nil each",
	  "\n"
	  "  local count = 0\n"
	  "  for i, key in ipairs(KEYS) do\n"
	  "    -- Only remove entries for *this* lock value.\n"
	  "    if redis.call(\"get\", key) == ARGV[1] then\n"
	  "      redis.pcall(\"del\", key)\n"
	  "      count = count + 1\n"
	  "    end\n"
	  "  end\n"
	  "\n"
	  "  -- Return the number of entries removed.\n"
	  "  return count\n" },
	{ "redlock 5 of npm: extend", "Ecount .0 .0 all ms",
	  "\n"
	  "  -- Return 0 if an entry exists with a *different* lock value.\n"
	  "  for i, key in ipairs(KEYS) do\n"
	  "    if redis.call(\"get\", key) ~= ARGV[1] then\n"
	  "      return 0\n"
	  "    end\n"
	  "  end\n"
	  "\n"
	  "  -- Update the entry for each provided key.\n"
	  "  for i, key in ipairs(KEYS) do\n"
	  "    redis.call(\"set\", key, ARGV[1], \"PX\", ARGV[2])\n"
	  "  end\n"
	  "\n"
	  "  -- Return the number of entries updated.\n"
	  "  return #KEYS\n" },
	{ "@sesamecare-oss/redlock of npm: acquire", ".0 Acount .0 all ms behind a database",
	  "\n"
	  "  \n"
	  "  -- Protected call to execute SELECT command if supported\n"
	  "  redis.pcall(\"SELECT\", tonumber(ARGV[1]))\n"
	  "\n"
	  "\n"
	  "  -- Return 0 if an entry already exists.\n"
	  "  for i, key in ipairs(KEYS) do\n"
	  "    if redis.call(\"exists\", key) == 1 then\n"
	  "      return 0\n"
	  "    end\n"
	  "  end\n"
	  "\n"
	  "  -- Create an entry for each provided key.\n"
	  "  for i, key in ipairs(KEYS) do\n"
	  "    redis.call(\"set\", key, ARGV[2], \"PX\", ARGV[3])\n"
	  "  end\n"
	  "\n"
	  "  -- Return the number of entries added.\n"
	  "  return #KEYS\n" },
	{ "@sesamecare-oss/redlock of npm: release", "Rcount .nil .nil each behind a database",
	  "\n"
	  "  \n"
	  "  -- Protected call to execute SELECT command if supported\n"
	  "  redis.pcall(\"SELECT\", tonumber(ARGV[1]))\n"
	  "\n"
	  "\n"
	  "  local count = 0\n"
	  "  for i, key in ipairs(KEYS) do\n"
	  "    -- Only remove entries for *this* lock value.\n"
	  "    if redis.call(\"get\", key) == ARGV[2] then\n"
	  "      redis.pcall(\"del\", key)\n"
	  "      count = count + 1\n"
	  "    end\n"
	  "  end\n"
	  "\n"
	  "  -- Return the number of entries removed.\n"
	  "  return count\n" },
	{ "@sesamecare-oss/redlock of npm: extend", "Ecount .0 .0 all ms behind a database",
	  "\n"
	  "  \n"
	  "  -- Protected call to execute SELECT command if supported\n"
	  "  redis.pcall(\"SELECT\", tonumber(ARGV[1]))\n"
	  "\n"
	  "\n"
	  "  -- Return 0 if an entry exists with a *different* lock value.\n"
	  "  for i, key in ipairs(KEYS) do\n"
	  "    if redis.call(\"get\", key) ~= ARGV[2] then\n"
	  "      return 0\n"
	  "    end\n"
	  "  end\n"
	  "\n"
	  "  -- Update the entry for each provided key.\n"
	  "  for i, key in ipairs(KEYS) do\n"
	  "    redis.call(\"set\", key, ARGV[2], \"PX\", ARGV[3])\n"
	  "  end\n"
	  "\n"
	  "  -- Return the number of entries updated.\n"
	  "  return #KEYS\n" },
	{ "Laravel: release", "R1 .0 .0 first",
	  "if redis.call(\"get\",KEYS[1]) == ARGV[1] then\n"
	  "    return redis.call(\"del\",KEYS[1])\n"
	  "else\n"
	  "    return 0\n"
	  "end" },
	{ "Laravel: add", ".nil AOK .nil first s",
	  "return redis.call('exists',KEYS[1])<1 and redis.call('setex',KEYS[1],ARGV[2],ARGV[1])" },
	{ "redsync, of old: release", "R1 .0 .0 first",
	  "\n"
	  "\tif redis.call(\"GET\", KEYS[1]) == ARGV[1] then\n"
	  "\t\treturn redis.call(\"DEL\", KEYS[1])\n"
	  "\telse\n"
	  "\t\treturn 0\n"
	  "\tend\n" },
	{ "redsync: release", "R1 .-1 .0 first",
	  "\n"
	  "\tlocal val = redis.call(\"GET\", KEYS[1])\n"
	  "\tif val == ARGV[1] then\n"
	  "\t\treturn redis.call(\"DEL\", KEYS[1])\n"
	  "\telseif val == false then\n"
	  "\t\treturn -1\n"
	  "\telse\n"
	  "\t\treturn 0\n"
	  "\tend\n" },
	{ "redsync: touch", "E1 .0 .0 first ms",
	  "\n"
	  "\tif redis.call(\"GET\", KEYS[1]) == ARGV[1] then\n"
	  "\t\treturn redis.call(\"PEXPIRE\", KEYS[1], ARGV[2])\n"
	  "\telse\n"
	  "\t\treturn 0\n"
	  "\tend\n" },
	{ "redsync: touch, with set", "E1 A1 .0 first ms",
	  "\n"
	  "\tif redis.call(\"GET\", KEYS[1]) == ARGV[1] then\n"
	  "\t\treturn redis.call(\"PEXPIRE\", KEYS[1], ARGV[2])\n"
	  "\telseif redis.call(\"SET\", KEYS[1], ARGV[1], \"PX\", ARGV[2], \"NX\") then\n"
	  "\t\treturn 1\n"
	  "\telse\n"
	  "\t\treturn 0\n"
	  "\tend\n" },
	{ "redlock-rb: release", "R1 .0 .0 first",
	  "      if redis.call(\"get\",KEYS[1]) == ARGV[1] then\n"
	  "        return redis.call(\"del\",KEYS[1])\n"
	  "      else\n"
	  "        return 0\n"
	  "      end\n" },
	{ "redlock-rb: acquire or extend", "EOK YOK .nil first ms",
	  "      if (redis.call(\"exists\", KEYS[1]) == 0 and ARGV[3] == \"yes\") or "
	  "redis.call(\"get\", KEYS[1]) == ARGV[1] then\n"
	  "        return redis.call(\"set\", KEYS[1], ARGV[1], \"PX\", ARGV[2])\n"
	  "      end\n" },
	{ "redlock-rb, of old: release", "R1 .0 .0 first",
	  "        if redis.call(\"get\",KEYS[1]) == ARGV[1] then\n"
	  "          return redis.call(\"del\",KEYS[1])\n"
	  "        else\n"
	  "          return 0\n"
	  "        end\n" },
	{ "redlock-rb, of old: acquire or extend", "EOK YOK .nil first ms",
	  "        if (redis.call(\"exists\", KEYS[1]) == 0 and ARGV[3] == \"yes\") or "
	  "redis.call(\"get\", KEYS[1]) == ARGV[1] then\n"
	  "          return redis.call(\"set\", KEYS[1], ARGV[1], \"PX\", ARGV[2])\n"
	  "        end\n" },
	{ "Spring: acquire", "E1 A1 .nil first ms",
	  "local lockClientId = redis.call('GET', KEYS[1])\n"
	  "if lockClientId == ARGV[1] then\n"
	  "\tredis.call('PEXPIRE', KEYS[1], ARGV[2])\n"
	  "\treturn true\n"
	  "elseif not lockClientId then\n"
	  "\tredis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])\n"
	  "\treturn true\n"
	  "end\n"
	  "return false\n" },
	{ "Spring: renew", "E1 .nil .nil first ms",
	  "if (redis.call('GET', KEYS[1]) == ARGV[1]) then\n"
	  "\tredis.call('PEXPIRE', KEYS[1], ARGV[2])\n"
	  "\treturn true\n"
	  "end\n"
	  "return false\n" },
	{ "Spring: release", "R1 .nil .nil first",
	  "local lockClientId = redis.call('GET', KEYS[1])\n"
	  "if lockClientId == ARGV[1] then\n"
	  "\tredis.call('UNLINK', KEYS[1])\n"
	  "\treturn true\n"
	  "end\n"
	  "return false\n" },
	{ "ShedLock: release", "R1 .0 .0 first",
	  "if redis.call(\"get\",KEYS[1]) == ARGV[1] then\n"
	  "    return redis.call(\"del\",KEYS[1])\n"
	  "else\n"
	  "    return 0\n"
	  "end\n" },
	{ "ShedLock: extend", "E1 .0 .0 first ms",
	  "if redis.call('get', KEYS[1]) == ARGV[1] then\n"
	  "   return redis.call('pexpire', KEYS[1], ARGV[2])\n"
	  "else\n"
	  "   return 0\n"
	  "end\n" },
	{ "go-zero: acquire", "Etext AOK .nil first ms",
	  "if redis.call(\"GET\", KEYS[1]) == ARGV[1] then\n"
	  "    redis.call(\"SET\", KEYS[1], ARGV[1], \"PX\", ARGV[2])\n"
	  "    return \"OK\"\n"
	  "else\n"
	  "    return redis.call(\"SET\", KEYS[1], ARGV[1], \"NX\", \"PX\", ARGV[2])\n"
	  "end" },
	{ "go-zero: release", "R1 .0 .0 first",
	  "if redis.call(\"GET\", KEYS[1]) == ARGV[1] then\n"
	  "    return redis.call(\"DEL\", KEYS[1])\n"
	  "else\n"
	  "    return 0\n"
	  "end" },
	{ "RedLock.net: release", "R1 .0 .0 first",
	  "if redis.call('get', KEYS[1]) == ARGV[1] then\n"
	  "\treturn redis.call('del', KEYS[1])\n"
	  "else\n"
	  "\treturn 0\n"
	  "end" },
	{ "RedLock.net: extend", "E1 A1 .-1 first ms",
	  "local currentVal = redis.call('get', KEYS[1])\n"
	  "if (currentVal == false) then\n"
	  "\treturn redis.call('set', KEYS[1], ARGV[1], 'PX', ARGV[2]) and 1 or 0\n"
	  "elseif (currentVal == ARGV[1]) then\n"
	  "\treturn redis.call('pexpire', KEYS[1], ARGV[2])\n"
	  "else\n"
	  "\treturn -1\n"
	  "end" },
	{ "Symfony 5.1: acquire or extend", "E1 A1 .0 first ms",
	  "\n"
	  "            if redis.call(\"GET\", KEYS[1]) == ARGV[1] then\n"
	  "                return redis.call(\"PEXPIRE\", KEYS[1], ARGV[2])\n"
	  "            elseif redis.call(\"SET\", KEYS[1], ARGV[1], \"NX\", \"PX\", ARGV[2]) then\n"
	  "                return 1\n"
	  "            else\n"
	  "                return 0\n"
	  "            end\n"
	  "        " },
	{ "redislock: how long it is held yet", ".left .-3 .-3 first",
	  "if redis.call(\"get\", KEYS[1]) == ARGV[1] then return redis.call(\"pttl\", KEYS[1]) else return -3 end" },
	{ "redlock-rb: what is held, and for how long", ".pair .pair .pair first",
	  "      return { redis.call(\"get\", KEYS[1]), redis.call(\"pttl\", KEYS[1]) }\n" },
	{ "redislock 0.9: obtain", "EOK AOK .nil first ms behind a token",
	  "\n"
	  "if redis.call(\"set\", KEYS[1], ARGV[1], \"NX\", \"PX\", ARGV[3]) then return redis.status_reply(\"OK\") end\n"
	  "\n"
	  "local offset = tonumber(ARGV[2])\n"
	  "if redis.call(\"getrange\", KEYS[1], 0, offset-1) == string.sub(ARGV[1], 1, offset) then "
	  "return redis.call(\"set\", KEYS[1], ARGV[1], \"PX\", ARGV[3]) end\n" },
	{ "redislock 0.10: obtain", "EOK AOK .nil all ms behind a token",
	  "-- obtain.lua: arguments => [value, tokenLen, ttl]\n"
	  "-- Obtain.lua try to set provided keys's with value and ttl if they do not exists.\n"
	  "-- Keys can be overriden if they already exists and the correct value+tokenLen is provided. \n"
	  "\n"
	  "local function pexpire(ttl)\n"
	  "\t-- Update keys ttls.\n"
	  "\tfor _, key in ipairs(KEYS) do\n"
	  "\t\tredis.call(\"pexpire\", key, ttl)\n"
	  "\tend\n"
	  "end\n"
	  "\n"
	  "-- canOverrideLock check either or not the provided token match\n"
	  "-- previously set lock's tokens.\n"
	  "local function canOverrideKeys() \n"
	  "\tlocal offset = tonumber(ARGV[2])\n"
	  "\n"
	  "\tfor _, key in ipairs(KEYS) do\n"
	  "\t\tif redis.call(\"getrange\", key, 0, offset-1) ~= string.sub(ARGV[1], 1, offset) then\n"
	  "\t\t\treturn false\n"
	  "\t\tend\n"
	  "\tend\n"
	  "\treturn true\n"
	  "end\n"
	  "\n"
	  "-- Prepare mset arguments.\n"
	  "local setArgs = {}\n"
	  "for _, key in ipairs(KEYS) do\n"
	  "\ttable.insert(setArgs, key)\n"
	  "\ttable.insert(setArgs, ARGV[1])\n"
	  "end\n"
	  "\n"
	  "if redis.call(\"msetnx\", unpack(setArgs)) ~= 1 then\n"
	  "\tif canOverrideKeys() == false then\n"
	  "\t\treturn false\n"
	  "\tend\n"
	  "\tredis.call(\"mset\", unpack(setArgs))\n"
	  "end\n"
	  "\n"
	  "pexpire(ARGV[3])\n"
	  "return redis.status_reply(\"OK\")" },
	{ "redislock 0.10: refresh", "EOK .nil .nil all ms",
	  "-- refresh.lua: => Arguments: [value, ttl]\n"
	  "-- refresh.lua refreshes provided keys's ttls if all their values match the input. \n"
	  "\n"
	  "-- Check all keys values matches provided input.\n"
	  "local values = redis.call(\"mget\", unpack(KEYS))\n"
	  "for i, _ in ipairs(KEYS) do\n"
	  "\tif values[i] ~= ARGV[1] then\n"
	  "\t\treturn false\n"
	  "\tend\n"
	  "end\n"
	  "\n"
	  "-- Update keys ttls.\n"
	  "for _, key in ipairs(KEYS) do\n"
	  "\tredis.call(\"pexpire\", key, ARGV[2]) \n"
	  "end\n"
	  "\n"
	  "return redis.status_reply(\"OK\")" },
	{ "redislock 0.10: release", "ROK .nil .nil all",
	  "-- release.lua: => Arguments: [value]\n"
	  "-- Release.lua deletes provided keys if all their values match the input. \n"
	  "\n"
	  "-- Check all keys values matches provided input.\n"
	  "local values = redis.call(\"mget\", unpack(KEYS))\n"
	  "for i, _ in ipairs(KEYS) do\n"
	  "\tif values[i] ~= ARGV[1] then\n"
	  "\t\treturn false\n"
	  "\tend\n"
	  "end\n"
	  "\n"
	  "-- Delete keys.\n"
	  "redis.call(\"del\", unpack(KEYS))\n"
	  "\n"
	  "return redis.status_reply(\"OK\")" },
	{ "redislock 0.10: how long it is held yet", ".least .nil .nil all",
	  "-- pttl.lua: => Arguments: [value]\n"
	  "-- pttl.lua returns provided keys's ttls if all their values match the input. \n"
	  "\n"
	  "-- Check all keys values matches provided input.\n"
	  "local values = redis.call(\"mget\", unpack(KEYS))\n"
	  "for i, _ in ipairs(KEYS) do\n"
	  "\tif values[i] ~= ARGV[1] then\n"
	  "\t\treturn false\n"
	  "\tend\n"
	  "end\n"
	  "\n"
	  "-- Find and return shortest TTL among keys.\n"
	  "local minTTL = 0\n"
	  "for _, key in ipairs(KEYS) do\n"
	  "\tlocal ttl = redis.call(\"pttl\", key)\n"
	  "\t-- Note: ttl < 0 probably means the key no longer exists.\n"
	  "\tif ttl > 0 and (minTTL == 0 or ttl < minTTL) then\n"
	  "\t\tminTTL = ttl\n"
	  "\tend\n"
	  "end\n"
	  "return minTTL" },
};
