/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The catalogue of scripts: forms, and the scripts of libraries as those send them. It is data. A library is added to this
 * file alone:
 *
 *   a row of `catalogue`  | for each of its scripts: name of the library, a version that has it, its purpose, its SHA-1,
 *                         | its meaning, and its text, byte by byte. The first EVALSHA of the library succeeds then
 *   a row of `forms`      | if no form is like the script, with the holes that script.h lists
 *
 * tests/unit/test_scripts.c compares SHA-1, text, meaning and form, and tells the SHA-1 that a row should have. Rows without
 * a version are of libraries that no registry of the tests has; their texts were taken from the sources of their time.
 */
#pragma once

#include "core/command/script.h"

/* clang-format off */
#ifndef CATALOGUE_TEXTS
/* ---- the forms ---- */

struct form {
	struct script meaning; /* without the holes, which have the rest */
	const char *text;
};

#define GET "redis.call('GET', KEYS[1])"
#define DEL "redis.call('DEL|UNLINK', KEYS[1])"
#define EXPIRE "redis.call('PEXPIRE|EXPIRE', KEYS[1], $ttl)"
#define SET "redis.call('SET', KEYS[1], ARGV[1], 'PX|EX', $ttl)"
#define SET_XX_FIRST "redis.call('SET', KEYS[1], ARGV[1], 'XX', 'PX|EX', $ttl)"
#define SET_XX_LAST "redis.call('SET', KEYS[1], ARGV[1], 'PX|EX', $ttl, 'XX')"
#define SET_NX_FIRST "redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX|EX', $ttl)"
#define SET_NX_LAST "redis.call('SET', KEYS[1], ARGV[1], 'PX|EX', $ttl, 'NX')"
#define SETEX "redis.call('PSETEX|SETEX', KEYS[1], $ttl, ARGV[1])"
#define SETNX "redis.call('SETNX', KEYS[1], ARGV[1])"
#define EXISTS "redis.call('EXISTS', KEYS[1])"
#define PTTL "redis.call('PTTL', KEYS[1])"
#define EACH_KEY "for a, b in ipairs(KEYS) do "
#define SET_EACH_KEY_BEHIND_DATABASE EACH_KEY "redis.call('SET', b, ARGV[2], 'PX|EX', $ttl_behind_token) end "
#define SET_EACH_KEY EACH_KEY "redis.call('SET', b, ARGV[1], 'PX|EX', $ttl) end "

/* The value begins with a token of so many bytes: redislock. */
#define TOKEN_LENGTH "tonumber(ARGV[2])"
#define TOKEN_OF_LENGTH(length) "string.sub(ARGV[1], 1, " length ")"
/* If all keys are ours; redislock. */
#define UNLESS_ALL_OURS "local a = redis.call('MGET', unpack(KEYS)) for b, c in ipairs(KEYS) do if a[b] ~= ARGV[1] then " \
	"return $other end end "
/* The act and the answer of a case; a number is 1 if none is named. */
#define CASE(act, ...) CASE_OF(act, __VA_ARGS__, 1, )
#define CASE_OF(act, answer, number, ...) { SCRIPT_##act, SCRIPT_##answer, number }
#define OTHER (KEEP, UNSAID)
#define FORM(keys, ours, free, theirs, text) \
	{ { SCRIPT_##keys, { CASE ours, CASE free, CASE theirs }, 0, 1, 0, 0, 0 }, text },
#define FORM_BEHIND_DATABASE(keys, ours, free, theirs, text) \
	{ { SCRIPT_##keys, { CASE ours, CASE free, CASE theirs }, 0, 2, 0, 0, 0 }, \
	  "redis.pcall('SELECT', tonumber(ARGV[1])) " text },
/* Its lease and its value are KEYS[2] and KEYS[3]; warlock. */
#define FORM_OF_KEYS(ours, free, theirs, text) \
	{ { SCRIPT_FIRST_KEY, { CASE ours, CASE free, CASE theirs }, 0, 2, 0, 0, 2 }, text },

/* If the lock is ours; the ways to ask that. */
#define IF_OURS(ours, text) \
	FORM(FIRST_KEY, ours, OTHER, OTHER, "if " GET " == ARGV[1] then " text) \
	FORM(FIRST_KEY, ours, OTHER, OTHER, "if ARGV[1] == " GET " then " text) \
	FORM(FIRST_KEY, ours, OTHER, OTHER, "local a = " GET " if a == ARGV[1] then " text) \
	FORM(FIRST_KEY, ours, OTHER, OTHER, "local a = " GET " if a and a == ARGV[1] then " text)
/* The same from the other end: not ours, and then nothing; redis-py. */
#define UNLESS_OURS(ours, text) \
	FORM(FIRST_KEY, ours, OTHER, OTHER, "if " GET " ~= ARGV[1] then return $other end " text) \
	FORM(FIRST_KEY, ours, OTHER, OTHER, "local a = " GET " if a ~= ARGV[1] then return $other end " text) \
	FORM(FIRST_KEY, ours, OTHER, OTHER, "local a = " GET " if not a or a ~= ARGV[1] then return $other end " text)
/* Ours, free or theirs, one after the other. */
#define IF_OURS_OR_FREE(ours, text_ours, free, text_free) \
	FORM(FIRST_KEY, ours, free, OTHER, \
	     "local a = " GET " if a == ARGV[1] then " text_ours " elseif a == false then " text_free " $else") \
	FORM(FIRST_KEY, ours, free, OTHER, \
	     "local a = " GET " if a == ARGV[1] then " text_ours " elseif not a then " text_free " $else") \
	FORM(FIRST_KEY, ours, free, OTHER, \
	     "local a = " GET " if a == false then " text_free " elseif a == ARGV[1] then " text_ours " $else") \
	FORM(FIRST_KEY, ours, free, OTHER, \
	     "local a = " GET " if not a then " text_free " elseif a == ARGV[1] then " text_ours " $else") \
	FORM(FIRST_KEY, ours, free, OTHER, \
	     "local a = " GET " if not a then " text_free " end if a == ARGV[1] then " text_ours " $else")
/* If it is free it is set, without a look at it before. */
#define OR_SET_NX(ours, text) \
	FORM(FIRST_KEY, ours, (ACQUIRE, NUMBER), OTHER, \
	     "if " GET " == ARGV[1] then " text " elseif " SET_NX_FIRST " then return $free $else") \
	FORM(FIRST_KEY, ours, (ACQUIRE, NUMBER), OTHER, \
	     "if " GET " == ARGV[1] then " text " elseif " SET_NX_LAST " then return $free $else") \
	FORM(FIRST_KEY, ours, (ACQUIRE, NUMBER), OTHER, \
	     "local a = " GET " if a == ARGV[1] then " text " elseif " SET_NX_FIRST " then return $free $else")
/* If nobody holds it. */
#define IF_FREE(answer, text) \
	FORM(FIRST_KEY, OTHER, (ACQUIRE, answer), OTHER, text)

static const struct form forms[] = {
	/* Release. */
	IF_OURS((RELEASE, NUMBER), "return " DEL " $else")
	IF_OURS((RELEASE, NUMBER), DEL " return $ours $else")
	IF_OURS((RELEASE, NIL), DEL " $or_nil")
	UNLESS_OURS((RELEASE, NUMBER), DEL " return $ours")
	UNLESS_OURS((RELEASE, NUMBER), "return " DEL)
	IF_OURS_OR_FREE((RELEASE, NUMBER), "return " DEL, (KEEP, UNSAID), "return $free")
	IF_OURS_OR_FREE((RELEASE, NUMBER), DEL " return $ours", (KEEP, UNSAID), "return $free")
	/* Extend. */
	IF_OURS((EXTEND, NUMBER), "return " EXPIRE " $else")
	IF_OURS((EXTEND, NUMBER), EXPIRE " return $ours $else")
	IF_OURS((EXTEND, NIL), EXPIRE " $or_nil")
	IF_OURS((EXTEND, OK), "return " SET " $else")
	IF_OURS((EXTEND, OK), "return " SET_XX_FIRST " $else")
	IF_OURS((EXTEND, OK), "return " SET_XX_LAST " $else")
	IF_OURS((EXTEND, NUMBER), SET " return $ours $else")
	UNLESS_OURS((EXTEND, NUMBER), EXPIRE " return $ours")
	UNLESS_OURS((EXTEND, NUMBER), "return " EXPIRE)
	IF_OURS_OR_FREE((EXTEND, NUMBER), "return " EXPIRE, (KEEP, UNSAID), "return $free")
	FORM_OF_KEYS((EXTEND, OK), OTHER, OTHER,
		"local a = " GET " if a == KEYS[3] then return redis.call('SET', KEYS[1], KEYS[3], 'PX', $ttl_of_keys, 'XX') $else")
	/* Extend by; redis-py. */
	FORM(FIRST_KEY, (EXTEND_BY, NUMBER), OTHER, OTHER,
	     "local a = " GET " if not a or a ~= ARGV[1] then return $other end "
	     "local b = redis.call('PTTL', KEYS[1]) if not b then b = 0 end if b < 0 then return $other end "
	     "local c = $ttl if ARGV[3] == \"0\" then c = $ttl + b end "
	     "redis.call('PEXPIRE', KEYS[1], c) return $ours")
	/* Look. */
	IF_OURS((KEEP, UNSAID), "return $ours $else")
	IF_OURS((KEEP, LEFT), "return " PTTL " $else")
	FORM(FIRST_KEY, (KEEP, PAIR), (KEEP, PAIR), (KEEP, PAIR), "return { " GET ", " PTTL " }") /* redlock-rb */
	/* Extend, or acquire a free lock: redsync and Symfony before 5.2; Spring; RedLock.net; go-zero; redlock-rb. */
	OR_SET_NX((EXTEND, NUMBER), "return " EXPIRE)
	OR_SET_NX((EXTEND, NUMBER), EXPIRE " return $ours")
	OR_SET_NX((EXTEND, NUMBER), SET " return $ours")
	IF_OURS_OR_FREE((EXTEND, NUMBER), EXPIRE " return $ours", (ACQUIRE, NUMBER), SET " return $free")
	IF_OURS_OR_FREE((EXTEND, NUMBER), EXPIRE " return $ours", (ACQUIRE, OK), "return " SET)
	IF_OURS_OR_FREE((EXTEND, NUMBER), "return " EXPIRE, (ACQUIRE, OK), "return " SET)
	IF_OURS_OR_FREE((EXTEND, NUMBER), "return " EXPIRE, (ACQUIRE, NUMBER), "return " SET " and 1 or 0")
	FORM(FIRST_KEY, (EXTEND, NUMBER), (ACQUIRE, OK), (KEEP, NIL),
	     "if " GET " == ARGV[1] then " SET " return $ours else return " SET_NX_FIRST " end")
	FORM(FIRST_KEY, (EXTEND, OK), (ACQUIRE_IF_YES, OK), OTHER,
	     "if (" EXISTS " == 0 and ARGV[3] == \"yes\") or " GET " == ARGV[1] then return " SET " $else")
	FORM(FIRST_KEY, (EXTEND, OK), (ACQUIRE, OK), OTHER, /* redislock before 0.10 */
	     "if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', $ttl_behind_token) then return redis.status_reply(\"OK\") end "
	     "local a = " TOKEN_LENGTH " if redis.call('GETRANGE', KEYS[1], 0, a - 1) == " TOKEN_OF_LENGTH("a") " then "
	     "return redis.call('SET', KEYS[1], ARGV[1], 'PX', $ttl_behind_token) end")
	/* Acquire. */
	IF_FREE(OK, "return " SET_NX_FIRST)
	IF_FREE(OK, "return " SET_NX_LAST)
	IF_FREE(NUMBER, "if " SET_NX_FIRST " then return $free $else")
	IF_FREE(NUMBER, "if " SET_NX_LAST " then return $free $else")
	IF_FREE(NUMBER, "if " SETNX " == 1 then return " EXPIRE " $else")
	IF_FREE(NUMBER, "if " SETNX " == 1 then " EXPIRE " return $free $else")
	FORM(FIRST_KEY, (KEEP, NUMBER, 0), (ACQUIRE, NUMBER), (KEEP, NUMBER, 0),
	     "local a = " SETNX " if a == 1 then " EXPIRE " end return a")
	IF_FREE(OK, "return " EXISTS " < 1 and " SETEX) /* Laravel */
	IF_FREE(OK, "if " EXISTS " == 0 then return " SET " $else")
	IF_FREE(NUMBER, "if " EXISTS " == 0 then " SET " return $free $else")
	IF_FREE(NUMBER, "if " EXISTS " == 0 then " SETEX " return $free $else")
	/* Several keys; redlock of npm, whose version 4.0 asks for their number in another way. */
	FORM(ALL_KEYS, OTHER, (ACQUIRE, COUNT), OTHER,
	     EACH_KEY "if redis.call('EXISTS', b) == 1 then return $other end end " SET_EACH_KEY "return #KEYS")
	FORM(ALL_KEYS, OTHER, (ACQUIRE, COUNT), OTHER,
	     EACH_KEY "if redis.call('EXISTS', b) == 1 then return $other end end " SET_EACH_KEY "return table.getn(KEYS)")
	FORM(ALL_KEYS, (EXTEND, COUNT), OTHER, OTHER,
	     EACH_KEY "if redis.call('GET', b) ~= ARGV[1] then return $other end end " SET_EACH_KEY "return #KEYS")
	FORM(ALL_KEYS, (EXTEND, COUNT), OTHER, OTHER,
	     EACH_KEY "if redis.call('GET', b) ~= ARGV[1] then return $other end end " SET_EACH_KEY "return table.getn(KEYS)")
	FORM(EACH_KEY, (RELEASE, COUNT), (KEEP, NIL), (KEEP, NIL),
	     "local c = 0 " EACH_KEY "if redis.call('GET', b) == ARGV[1] then redis.call('DEL|UNLINK', b) c = c + 1 end "
	     "end return c")
	FORM_BEHIND_DATABASE(ALL_KEYS, OTHER, (ACQUIRE, COUNT), OTHER, /* these three: @sesamecare-oss/redlock */
		EACH_KEY "if redis.call('EXISTS', b) == 1 then return $other end end "
		SET_EACH_KEY_BEHIND_DATABASE "return #KEYS")
	FORM_BEHIND_DATABASE(ALL_KEYS, (EXTEND, COUNT), OTHER, OTHER,
		EACH_KEY "if redis.call('GET', b) ~= ARGV[2] then return $other end end "
		SET_EACH_KEY_BEHIND_DATABASE "return #KEYS")
	FORM_BEHIND_DATABASE(EACH_KEY, (RELEASE, COUNT), (KEEP, NIL), (KEEP, NIL),
		"local c = 0 " EACH_KEY "if redis.call('GET', b) == ARGV[2] then redis.call('DEL|UNLINK', b) c = c + 1 end "
		"end return c")
	/* Several keys; redislock since 0.10. */
	FORM(ALL_KEYS, (EXTEND, OK), (ACQUIRE, OK), OTHER,
	     "local function a(b) for c, d in ipairs(KEYS) do redis.call('PEXPIRE', d, b) end end "
	     "local function e() local f = " TOKEN_LENGTH " for c, d in ipairs(KEYS) do "
	     "if redis.call('GETRANGE', d, 0, f - 1) ~= " TOKEN_OF_LENGTH("f") " then return false end end return true end "
	     "local g = {} for c, d in ipairs(KEYS) do table.insert(g, d) table.insert(g, ARGV[1]) end "
	     "if redis.call('MSETNX', unpack(g)) ~= 1 then if e() == false then return $other end "
	     "redis.call('MSET', unpack(g)) end a($ttl_behind_token) return redis.status_reply(\"OK\")")
	FORM(ALL_KEYS, (EXTEND, OK_OR_TOKEN), (ACQUIRE, OK_OR_TOKEN), OTHER, /* with a FenceKey */
	     "local a = tonumber(ARGV[4]) == 1 local b = #KEYS if a then b = b - 1 end "
	     "local function c(d) for e = 1, b do redis.call('PEXPIRE', KEYS[e], d) end end "
	     "local function f() local g = " TOKEN_LENGTH " for e = 1, b do "
	     "if redis.call('GETRANGE', KEYS[e], 0, g - 1) ~= " TOKEN_OF_LENGTH("g") " then return false end end "
	     "return true end "
	     "local function h(i) if not a then return redis.status_reply(\"OK\") end local j = KEYS[#KEYS] "
	     "if i then return redis.call('INCR', j) end return tonumber(redis.call('GET', j) or \"0\") end "
	     "local k = {} for e = 1, b do table.insert(k, KEYS[e]) table.insert(k, ARGV[1]) end "
	     "if redis.call('MSETNX', unpack(k)) ~= 1 then if f() == false then return $other end "
	     "redis.call('MSET', unpack(k)) c($ttl_behind_token) return h(false) end c($ttl_behind_token) return h(true)")
	FORM(ALL_KEYS, (RELEASE, NUMBER), OTHER, OTHER,
	     UNLESS_ALL_OURS "redis.call('DEL|UNLINK', unpack(KEYS)) return $ours")
	FORM(ALL_KEYS, (EXTEND, NUMBER), OTHER, OTHER,
	     UNLESS_ALL_OURS "for c, d in ipairs(KEYS) do redis.call('PEXPIRE|EXPIRE', d, $ttl) end return $ours")
	FORM(ALL_KEYS, (KEEP, LEAST), OTHER, OTHER,
	     UNLESS_ALL_OURS "local e = 0 for c, d in ipairs(KEYS) do local f = redis.call('PTTL', d) "
	     "if f > 0 and (e == 0 or f < e) then e = f end end return e")
};
#endif

/* ---- the scripts of libraries ---- */

#define DOES(act, answer) { SCRIPT_##act, SCRIPT_##answer, 0 }
#define NUMBER(act, number) { SCRIPT_##act, SCRIPT_NUMBER, number }
#define MEANS(keys, ours, free, theirs, unit_ms, argc) \
	{ SCRIPT_##keys, { ours, free, theirs }, unit_ms, (argc) ? 1 : 0, (unit_ms) ? 2 : 0, argc, 0 }
/* Its value is a token with something behind it. */
#define MEANS_WITH_TOKEN(keys, ours, free, theirs, argc) { SCRIPT_##keys, { ours, free, theirs }, 1, 1, 3, argc, 0 }
/* Its value is behind the number of a database. */
#define MEANS_BEHIND_DATABASE(keys, ours, free, theirs, unit_ms) \
	{ SCRIPT_##keys, { ours, free, theirs }, unit_ms, 2, (unit_ms) ? 3 : 0, (unit_ms) ? 3 : 2, 0 }

#define RELEASES MEANS(FIRST_KEY, NUMBER(RELEASE, 1), NUMBER(KEEP, 0), NUMBER(KEEP, 0), 0, 1)
#define RELEASES_OR_GONE MEANS(FIRST_KEY, NUMBER(RELEASE, 1), NUMBER(KEEP, -1), NUMBER(KEEP, 0), 0, 1)
#define RELEASES_OR_NIL MEANS(FIRST_KEY, NUMBER(RELEASE, 1), DOES(KEEP, NIL), DOES(KEEP, NIL), 0, 1)
#define RELEASES_EACH MEANS(EACH_KEY, DOES(RELEASE, COUNT), DOES(KEEP, NIL), DOES(KEEP, NIL), 0, 1)
#define TELLS_LEFT MEANS(FIRST_KEY, DOES(KEEP, LEFT), NUMBER(KEEP, -3), NUMBER(KEEP, -3), 0, 1)
#define EXTENDS MEANS(FIRST_KEY, NUMBER(EXTEND, 1), NUMBER(KEEP, 0), NUMBER(KEEP, 0), 1, 2)
#define EXTENDS_OR_NIL MEANS(FIRST_KEY, NUMBER(EXTEND, 1), DOES(KEEP, NIL), DOES(KEEP, NIL), 1, 2)
#define EXTENDS_BY MEANS(FIRST_KEY, NUMBER(EXTEND_BY, 1), NUMBER(KEEP, 0), NUMBER(KEEP, 0), 1, 3)
#define EXTENDS_ALL MEANS(ALL_KEYS, DOES(EXTEND, COUNT), NUMBER(KEEP, 0), NUMBER(KEEP, 0), 1, 2)
#define ACQUIRES MEANS(FIRST_KEY, DOES(KEEP, NIL), DOES(ACQUIRE, OK), DOES(KEEP, NIL), 1, 2)
#define ACQUIRES_FOR_S MEANS(FIRST_KEY, DOES(KEEP, NIL), DOES(ACQUIRE, OK), DOES(KEEP, NIL), 1000, 2)
#define ACQUIRES_ALL MEANS(ALL_KEYS, NUMBER(KEEP, 0), DOES(ACQUIRE, COUNT), NUMBER(KEEP, 0), 1, 2)
#define SELECTS_AND_ACQUIRES_ALL MEANS_BEHIND_DATABASE(ALL_KEYS, NUMBER(KEEP, 0), DOES(ACQUIRE, COUNT), NUMBER(KEEP, 0), 1)
#define SELECTS_AND_RELEASES_EACH MEANS_BEHIND_DATABASE(EACH_KEY, DOES(RELEASE, COUNT), DOES(KEEP, NIL), DOES(KEEP, NIL), 0)
#define SELECTS_AND_EXTENDS_ALL MEANS_BEHIND_DATABASE(ALL_KEYS, DOES(EXTEND, COUNT), NUMBER(KEEP, 0), NUMBER(KEEP, 0), 1)
#define EXTENDS_OR_ACQUIRE MEANS(FIRST_KEY, NUMBER(EXTEND, 1), NUMBER(ACQUIRE, 1), NUMBER(KEEP, 0), 1, 2)
#define EXTENDS_OR_ACQUIRE_OR_NIL MEANS(FIRST_KEY, NUMBER(EXTEND, 1), NUMBER(ACQUIRE, 1), DOES(KEEP, NIL), 1, 2)
#define EXTENDS_OR_ACQUIRE_OR_MINUS MEANS(FIRST_KEY, NUMBER(EXTEND, 1), NUMBER(ACQUIRE, 1), NUMBER(KEEP, -1), 1, 2)
#define EXTENDS_OR_ACQUIRE_OK MEANS(FIRST_KEY, DOES(EXTEND, OK_TEXT), DOES(ACQUIRE, OK), DOES(KEEP, NIL), 1, 2)
#define TELLS_PAIR MEANS(FIRST_KEY, DOES(KEEP, PAIR), DOES(KEEP, PAIR), DOES(KEEP, PAIR), 0, 0)
#define TELLS_LEAST MEANS(ALL_KEYS, DOES(KEEP, LEAST), DOES(KEEP, NIL), DOES(KEEP, NIL), 0, 1)
#define RELEASES_ALL MEANS(ALL_KEYS, DOES(RELEASE, OK), DOES(KEEP, NIL), DOES(KEEP, NIL), 0, 1)
#define EXTENDS_ALL_OR_NIL MEANS(ALL_KEYS, DOES(EXTEND, OK), DOES(KEEP, NIL), DOES(KEEP, NIL), 1, 2)
#define EXTENDS_OR_OBTAINS MEANS_WITH_TOKEN(FIRST_KEY, DOES(EXTEND, OK), DOES(ACQUIRE, OK), DOES(KEEP, NIL), 3)
#define EXTENDS_OR_OBTAINS_ALL MEANS_WITH_TOKEN(ALL_KEYS, DOES(EXTEND, OK), DOES(ACQUIRE, OK), DOES(KEEP, NIL), 3)
#define EXTENDS_OR_OBTAINS_WITH_FENCE \
	MEANS_WITH_TOKEN(ALL_KEYS, DOES(EXTEND, OK_OR_TOKEN), DOES(ACQUIRE, OK_OR_TOKEN), DOES(KEEP, NIL), 4)
#define EXTENDS_BY_KEYS { SCRIPT_FIRST_KEY, { DOES(EXTEND, OK), NUMBER(KEEP, 0), NUMBER(KEEP, 0) }, 1, 2, 1, 2, 2 }
#define EXTENDS_OR_ACQUIRE_IF_YES MEANS(FIRST_KEY, DOES(EXTEND, OK), DOES(ACQUIRE_IF_YES, OK), DOES(KEEP, NIL), 1, 3)

/* The daemon needs neither the names nor the texts; tests do, and no forms. */
#ifdef CATALOGUE_TEXTS
#define SCRIPT(library, hash, meaning, text) { hash, meaning, library, text },
#else
#define SCRIPT(library, hash, meaning, text) { hash, meaning },
#endif

static const struct {
	const char *hash;
	struct script script;
#ifdef CATALOGUE_TEXTS
	const char *library, *text;
#endif
} catalogue[] = {
	SCRIPT("redis-py 4.3: release", "c3f8721cbb97f72bc19e972846bd7aaf91901658", RELEASES,
	       "\n"
	       "        local token = redis.call('get', KEYS[1])\n"
	       "        if not token or token ~= ARGV[1] then\n"
	       "            return 0\n"
	       "        end\n"
	       "        redis.call('del', KEYS[1])\n"
	       "        return 1\n"
	       "    ")
	SCRIPT("redis-py 4.3: extend", "a4e8783852e6b949f9ef3a97212805108459a890", EXTENDS_BY,
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
	       "    ")
	SCRIPT("redis-py 4.3: reacquire", "1cac51482acf5858da00f6d685d68f886cd6b6b2", EXTENDS,
	       "\n"
	       "        local token = redis.call('get', KEYS[1])\n"
	       "        if not token or token ~= ARGV[1] then\n"
	       "            return 0\n"
	       "        end\n"
	       "        redis.call('pexpire', KEYS[1], ARGV[2])\n"
	       "        return 1\n"
	       "    ")
	SCRIPT("redlock 3 of npm: acquire", "862f31bf38e9b63ce28d6e9e5143551bb34ef981", ACQUIRES,
	       "return redis.call(\"set\", KEYS[1], ARGV[1], \"NX\", \"PX\", ARGV[2])")
	SCRIPT("redlock 3 of npm: release", "cf0e94b2e9ffc7e04395cf88f7583fc309985910", RELEASES,
	       "if redis.call(\"get\", KEYS[1]) == ARGV[1] then return redis.call(\"del\", KEYS[1]) else return 0 end")
	SCRIPT("redlock 3 of npm: extend", "a7aba3bc5d6e99b3003da8b9d80a63b9f4092ecf", EXTENDS,
	       "if redis.call(\"get\", KEYS[1]) == ARGV[1] then "
	       "return redis.call(\"pexpire\", KEYS[1], ARGV[2]) else return 0 end")
	SCRIPT("redlock 4.0 of npm: acquire", "d01fb69e6ecc8bad3ca9bacba9f4f9e96862313f", ACQUIRES_ALL,
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
	       "\treturn table.getn(KEYS)\n")
	SCRIPT("redlock 4.0 of npm: release", "517e7ed95f00c0c4a209c6a7afcc6ab797d30b85", RELEASES_EACH,
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
	       "\treturn count\n")
	SCRIPT("redlock 4.0 of npm: extend", "acaf90b4697bb48bb5f603e9e613a54df7536c70", EXTENDS_ALL,
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
	       "\treturn table.getn(KEYS)\n")
	SCRIPT("redlock 4.2 of npm: acquire", "e5a322e2634ef59a516e8ea150cb085afafee684", ACQUIRES_ALL,
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
	       "\treturn #KEYS\n")
	SCRIPT("redlock 4.2 of npm: release", "0f0f23b9048b36752b5be114f357ba083449f908", RELEASES_EACH,
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
	       "\treturn count\n")
	SCRIPT("redlock 4.2 of npm: extend", "ce46f80993d5dac20dd066eb301a4e37994bdbed", EXTENDS_ALL,
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
	       "\treturn #KEYS\n")
	SCRIPT("redlock 5 of npm: acquire", "96da70f7716f27d278a5218544df37fd8b0a5e4c", ACQUIRES_ALL,
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
	       "  return #KEYS\n")
	SCRIPT("redlock 5 of npm: release", "e4612211c9f8f51c257e26e056b0a654b3187242", RELEASES_EACH,
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
	       "  return count\n")
	SCRIPT("redlock 5 of npm: extend", "aed6f382e410db8ba7926d4e5e9aab410bf2a78a", EXTENDS_ALL,
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
	       "  return #KEYS\n")
	SCRIPT("@sesamecare-oss/redlock 1.4 of npm: acquire", "1b77b94aa78451d55dfa97e18819bfbfc596cb5b",
	       SELECTS_AND_ACQUIRES_ALL,
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
	       "  return #KEYS\n")
	SCRIPT("@sesamecare-oss/redlock 1.4 of npm: release", "df51f6837dcfe303d334e6abea9aeae192bab216",
	       SELECTS_AND_RELEASES_EACH,
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
	       "  return count\n")
	SCRIPT("@sesamecare-oss/redlock 1.4 of npm: extend", "820e9778d2b6733e9ed771e4be90ae73a95a6f3b",
	       SELECTS_AND_EXTENDS_ALL,
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
	       "  return #KEYS\n")
	SCRIPT("Laravel 8: release", "647c65a442733a1aa440f99908d249d13b4d6c4a", RELEASES,
	       "if redis.call(\"get\",KEYS[1]) == ARGV[1] then\n"
	       "    return redis.call(\"del\",KEYS[1])\n"
	       "else\n"
	       "    return 0\n"
	       "end")
	SCRIPT("Laravel 8: add", "a08c9c69b7c07ae2485190873b90d128a23e502d", ACQUIRES_FOR_S,
	       "return redis.call('exists',KEYS[1])<1 and redis.call('setex',KEYS[1],ARGV[2],ARGV[1])")
	SCRIPT("redsync, of old: release", "00583931c4e4d483f6233879c133c71ed5393f9d", RELEASES,
	       "\n"
	       "\tif redis.call(\"GET\", KEYS[1]) == ARGV[1] then\n"
	       "\t\treturn redis.call(\"DEL\", KEYS[1])\n"
	       "\telse\n"
	       "\t\treturn 0\n"
	       "\tend\n")
	SCRIPT("redsync: release", "e950836ed1e694540c503ef9972b8de518044d3b", RELEASES_OR_GONE,
	       "\n"
	       "\tlocal val = redis.call(\"GET\", KEYS[1])\n"
	       "\tif val == ARGV[1] then\n"
	       "\t\treturn redis.call(\"DEL\", KEYS[1])\n"
	       "\telseif val == false then\n"
	       "\t\treturn -1\n"
	       "\telse\n"
	       "\t\treturn 0\n"
	       "\tend\n")
	SCRIPT("redsync: touch", "d75bb8b5bd13532ddedd17762e772346e39b321e", EXTENDS,
	       "\n"
	       "\tif redis.call(\"GET\", KEYS[1]) == ARGV[1] then\n"
	       "\t\treturn redis.call(\"PEXPIRE\", KEYS[1], ARGV[2])\n"
	       "\telse\n"
	       "\t\treturn 0\n"
	       "\tend\n")
	SCRIPT("redsync: touch, with set", "b6b55c439e02c6f52ffb8be7ec8c0d0ac816ea79", EXTENDS_OR_ACQUIRE,
	       "\n"
	       "\tif redis.call(\"GET\", KEYS[1]) == ARGV[1] then\n"
	       "\t\treturn redis.call(\"PEXPIRE\", KEYS[1], ARGV[2])\n"
	       "\telseif redis.call(\"SET\", KEYS[1], ARGV[1], \"PX\", ARGV[2], \"NX\") then\n"
	       "\t\treturn 1\n"
	       "\telse\n"
	       "\t\treturn 0\n"
	       "\tend\n")
	SCRIPT("redlock-rb: release", "8e4905cee18e7c3188d10f2b8b170e403baed34f", RELEASES,
	       "      if redis.call(\"get\",KEYS[1]) == ARGV[1] then\n"
	       "        return redis.call(\"del\",KEYS[1])\n"
	       "      else\n"
	       "        return 0\n"
	       "      end\n")
	SCRIPT("redlock-rb: acquire or extend", "ceb2b2062e40c51a2b3963fd078bc71f11bdc65c", EXTENDS_OR_ACQUIRE_IF_YES,
	       "      if (redis.call(\"exists\", KEYS[1]) == 0 and ARGV[3] == \"yes\") or "
	       "redis.call(\"get\", KEYS[1]) == ARGV[1] then\n"
	       "        return redis.call(\"set\", KEYS[1], ARGV[1], \"PX\", ARGV[2])\n"
	       "      end\n")
	SCRIPT("redlock-rb, of old: release", "963db4d9f0ccfdb859098be0b29f8b41dc02ed97", RELEASES,
	       "        if redis.call(\"get\",KEYS[1]) == ARGV[1] then\n"
	       "          return redis.call(\"del\",KEYS[1])\n"
	       "        else\n"
	       "          return 0\n"
	       "        end\n")
	SCRIPT("redlock-rb, of old: acquire or extend", "a90bf4be8a6e440e3cc24540eb2f9ff1e16fbcc3",
	       EXTENDS_OR_ACQUIRE_IF_YES,
	       "        if (redis.call(\"exists\", KEYS[1]) == 0 and ARGV[3] == \"yes\") or "
	       "redis.call(\"get\", KEYS[1]) == ARGV[1] then\n"
	       "          return redis.call(\"set\", KEYS[1], ARGV[1], \"PX\", ARGV[2])\n"
	       "        end\n")
	SCRIPT("Spring: acquire", "175897a4e379e99e79a54937be09226f76cdcfe5", EXTENDS_OR_ACQUIRE_OR_NIL,
	       "local lockClientId = redis.call('GET', KEYS[1])\n"
	       "if lockClientId == ARGV[1] then\n"
	       "\tredis.call('PEXPIRE', KEYS[1], ARGV[2])\n"
	       "\treturn true\n"
	       "elseif not lockClientId then\n"
	       "\tredis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])\n"
	       "\treturn true\n"
	       "end\n"
	       "return false\n")
	SCRIPT("Spring: renew", "879e0f7b8d83c3266d4e996627438c05dbda0b89", EXTENDS_OR_NIL,
	       "if (redis.call('GET', KEYS[1]) == ARGV[1]) then\n"
	       "\tredis.call('PEXPIRE', KEYS[1], ARGV[2])\n"
	       "\treturn true\n"
	       "end\n"
	       "return false\n")
	SCRIPT("Spring: release", "f0f9038aa2b6d6c3436c72d147573ea2a58f0ef2", RELEASES_OR_NIL,
	       "local lockClientId = redis.call('GET', KEYS[1])\n"
	       "if lockClientId == ARGV[1] then\n"
	       "\tredis.call('UNLINK', KEYS[1])\n"
	       "\treturn true\n"
	       "end\n"
	       "return false\n")
	SCRIPT("ShedLock: release", "194f3902b2dd08557818d09fc2e7682d91480e53", RELEASES,
	       "if redis.call(\"get\",KEYS[1]) == ARGV[1] then\n"
	       "    return redis.call(\"del\",KEYS[1])\n"
	       "else\n"
	       "    return 0\n"
	       "end\n")
	SCRIPT("ShedLock: extend", "67256370c2d1c87e2250898075542b1a7fa5b917", EXTENDS,
	       "if redis.call('get', KEYS[1]) == ARGV[1] then\n"
	       "   return redis.call('pexpire', KEYS[1], ARGV[2])\n"
	       "else\n"
	       "   return 0\n"
	       "end\n")
	SCRIPT("go-zero: acquire", "dbecad63894903ddf755d05d73a3eb7432ef75c0", EXTENDS_OR_ACQUIRE_OK,
	       "if redis.call(\"GET\", KEYS[1]) == ARGV[1] then\n"
	       "    redis.call(\"SET\", KEYS[1], ARGV[1], \"PX\", ARGV[2])\n"
	       "    return \"OK\"\n"
	       "else\n"
	       "    return redis.call(\"SET\", KEYS[1], ARGV[1], \"NX\", \"PX\", ARGV[2])\n"
	       "end")
	SCRIPT("go-zero: release", "e04ea1352c46ae16a15753d4960bee821bf3b3fa", RELEASES,
	       "if redis.call(\"GET\", KEYS[1]) == ARGV[1] then\n"
	       "    return redis.call(\"DEL\", KEYS[1])\n"
	       "else\n"
	       "    return 0\n"
	       "end")
	SCRIPT("RedLock.net: release", "18b2a577dbe847b16bebde190d69a1613d68e60e", RELEASES,
	       "if redis.call('get', KEYS[1]) == ARGV[1] then\n"
	       "\treturn redis.call('del', KEYS[1])\n"
	       "else\n"
	       "\treturn 0\n"
	       "end")
	SCRIPT("RedLock.net: extend", "9f614a785a5f9ae8c6396c6b4bf94d2087342603", EXTENDS_OR_ACQUIRE_OR_MINUS,
	       "local currentVal = redis.call('get', KEYS[1])\n"
	       "if (currentVal == false) then\n"
	       "\treturn redis.call('set', KEYS[1], ARGV[1], 'PX', ARGV[2]) and 1 or 0\n"
	       "elseif (currentVal == ARGV[1]) then\n"
	       "\treturn redis.call('pexpire', KEYS[1], ARGV[2])\n"
	       "else\n"
	       "\treturn -1\n"
	       "end")
	SCRIPT("Symfony 5.1: acquire or extend", "81523960da32c1f15ecab9f1f0fae74f7e943d07", EXTENDS_OR_ACQUIRE,
	       "\n"
	       "            if redis.call(\"GET\", KEYS[1]) == ARGV[1] then\n"
	       "                return redis.call(\"PEXPIRE\", KEYS[1], ARGV[2])\n"
	       "            elseif redis.call(\"SET\", KEYS[1], ARGV[1], \"NX\", \"PX\", ARGV[2]) then\n"
	       "                return 1\n"
	       "            else\n"
	       "                return 0\n"
	       "            end\n"
	       "        ")
	SCRIPT("redislock: how long it is held yet", "6484da7d58920897fdc22b7f9afd1a3d47524ea8", TELLS_LEFT,
	       "if redis.call(\"get\", KEYS[1]) == ARGV[1] then return redis.call(\"pttl\", KEYS[1]) else return -3 end")
	SCRIPT("redlock-rb: the value, and the rest of the lease", "78d2ca48a6dc9ef6892059792a3a0c5237733d64", TELLS_PAIR,
	       "      return { redis.call(\"get\", KEYS[1]), redis.call(\"pttl\", KEYS[1]) }\n")
	SCRIPT("redislock 0.9: obtain", "80a1b5f2cfccec3b7119ba7721d2127682b691a7", EXTENDS_OR_OBTAINS,
	       "\n"
	       "if redis.call(\"set\", KEYS[1], ARGV[1], \"NX\", \"PX\", ARGV[3]) then return redis.status_reply(\"OK\") end\n"
	       "\n"
	       "local offset = tonumber(ARGV[2])\n"
	       "if redis.call(\"getrange\", KEYS[1], 0, offset-1) == string.sub(ARGV[1], 1, offset) then "
	       "return redis.call(\"set\", KEYS[1], ARGV[1], \"PX\", ARGV[3]) end\n")
	SCRIPT("redislock 0.10: obtain", "eb0c00d98f6f33b4262419a509002884540f30be", EXTENDS_OR_OBTAINS_ALL,
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
	       "return redis.status_reply(\"OK\")")
	SCRIPT("redislock 0.10: refresh", "5a22d7e8431313862816d4416b5e46dd70fc340d", EXTENDS_ALL_OR_NIL,
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
	       "return redis.status_reply(\"OK\")")
	SCRIPT("redislock 0.10: release", "9470c810040e272ee6c579d8d4331aaf6332a7b1", RELEASES_ALL,
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
	       "return redis.status_reply(\"OK\")")
	SCRIPT("redislock 0.10: how long it is held yet", "66e1084c2d842a7e8c271925aae90219fac4e129", TELLS_LEAST,
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
	       "return minTTL")
	SCRIPT("redis-semaphore 5.8 of npm: release a mutex", "7157921a7cc7cfba979acf6d63f073151df17d12", RELEASES,
	       "\n"
	       "  local key = KEYS[1]\n"
	       "  local identifier = ARGV[1]\n"
	       "\n"
	       "  if redis.call('get', key) == identifier then\n"
	       "    return redis.call('del', key)\n"
	       "  end\n"
	       "\n"
	       "  return 0\n"
	       "  ")
	SCRIPT("redis-semaphore 5.8 of npm: extend a mutex", "594683e49a64ebaf975caf5f8079a1d097c438f1", EXTENDS,
	       "\n"
	       "  local key = KEYS[1]\n"
	       "  local identifier = ARGV[1]\n"
	       "  local lockTimeout = ARGV[2]\n"
	       "\n"
	       "  local value = redis.call('get', key)\n"
	       "\n"
	       "  if value == identifier then\n"
	       "    redis.call('pexpire', key, lockTimeout)\n"
	       "    return 1\n"
	       "  end\n"
	       "\n"
	       "  return 0\n"
	       "  ")
	SCRIPT("ioredis-lock 4.0 of npm: release", "4dbb87cd80182f627d42cf6042188ecf00a1ff12", RELEASES,
	       "if redis.call(\"GET\", KEYS[1]) == ARGV[1] then\n"
	       "  return redis.call(\"DEL\", KEYS[1])\n"
	       "end\n"
	       "return 0")
	SCRIPT("ioredis-lock 4.0 of npm: extend", "50f5ab4d38adaf78b662a67356cf1fe302b3e00f", EXTENDS,
	       "if redis.call(\"GET\", KEYS[1]) == ARGV[1] then\n"
	       "  return redis.call(\"PEXPIRE\", KEYS[1], ARGV[2])\n"
	       "end\n"
	       "return 0")
	SCRIPT("node-redis-warlock 1.0 of npm: unlock", "5cc368fb92acd8fee3a986dc8e971d6cf28c3b44", RELEASES,
	       "--\n"
	       "-- Delete a key if content is equal\n"
	       "--\n"
	       "-- KEYS[1]   - key\n"
	       "-- ARGV[1]   - content\n"
	       "local key     = KEYS[1]\n"
	       "local content = ARGV[1]\n"
	       "\n"
	       "local value = redis.call('get', key)\n"
	       "\n"
	       "if value == content then\n"
	       "  return redis.call('del', key);\n"
	       "end\n"
	       "\n"
	       "return 0\n")
	SCRIPT("node-redis-warlock 1.0 of npm: touch", "78d3bb55c589f1b2edf66f3527f5017f8dfcd6bb", EXTENDS_BY_KEYS,
	       "--\n"
	       "-- Extend the key if content is equal\n"
	       "-- This will extend the lock on the\n"
	       "--\n"
	       "-- KEYS[1]   - key\n"
	       "-- KEYS[2]   - content\n"
	       "-- KEYS[3]   - lock id\n"
	       "local key = KEYS[1]\n"
	       "local ttl = KEYS[2]\n"
	       "local id  = KEYS[3]\n"
	       "\n"
	       "local value = redis.call('GET', key)\n"
	       "\n"
	       "if value == id then\n"
	       "  return redis.call('SET', key, id, 'PX', ttl, 'XX');\n"
	       "else\n"
	       "  return 0\n"
	       "end")
	SCRIPT("redislock since 0.10, with a FenceKey: obtain", "d1d9789e7d4b671cc4c2cf7db73923bbf08cd836",
	       EXTENDS_OR_OBTAINS_WITH_FENCE,
	       "-- obtain.lua: arguments => [value, tokenLen, ttl, fenced]\n"
	       "-- Obtain.lua try to set provided keys's with value and ttl if they do not exists.\n"
	       "-- Keys can be overriden if they already exists and the correct value+tokenLen is provided.\n"
	       "-- When fenced is \"1\", the last KEYS entry is a fence key and obtain returns a\n"
	       "-- fencing token instead of \"OK\".\n"
	       "\n"
	       "local fenced = tonumber(ARGV[4]) == 1\n"
	       "\n"
	       "-- Lock keys are KEYS[1..lockCount]; the fence key, if any, is the last entry.\n"
	       "local lockCount = #KEYS\n"
	       "if fenced then\n"
	       "\tlockCount = lockCount - 1\n"
	       "end\n"
	       "\n"
	       "local function pexpire(ttl)\n"
	       "\t-- Update keys ttls.\n"
	       "\tfor i = 1, lockCount do\n"
	       "\t\tredis.call(\"pexpire\", KEYS[i], ttl)\n"
	       "\tend\n"
	       "end\n"
	       "\n"
	       "-- canOverrideLock check either or not the provided token match\n"
	       "-- previously set lock's tokens.\n"
	       "local function canOverrideKeys()\n"
	       "\tlocal offset = tonumber(ARGV[2])\n"
	       "\n"
	       "\tfor i = 1, lockCount do\n"
	       "\t\tif redis.call(\"getrange\", KEYS[i], 0, offset - 1) ~= string.sub(ARGV[1], 1, offset) then\n"
	       "\t\t\treturn false\n"
	       "\t\tend\n"
	       "\tend\n"
	       "\treturn true\n"
	       "end\n"
	       "\n"
	       "-- reply returns the fencing token, advancing it only on a fresh acquisition,\n"
	       "-- or \"OK\" when fencing is disabled.\n"
	       "local function reply(fresh)\n"
	       "\tif not fenced then\n"
	       "\t\treturn redis.status_reply(\"OK\")\n"
	       "\tend\n"
	       "\tlocal fenceKey = KEYS[#KEYS]\n"
	       "\tif fresh then\n"
	       "\t\treturn redis.call(\"incr\", fenceKey)\n"
	       "\tend\n"
	       "\treturn tonumber(redis.call(\"get\", fenceKey) or \"0\")\n"
	       "end\n"
	       "\n"
	       "-- Prepare mset arguments.\n"
	       "local setArgs = {}\n"
	       "for i = 1, lockCount do\n"
	       "\ttable.insert(setArgs, KEYS[i])\n"
	       "\ttable.insert(setArgs, ARGV[1])\n"
	       "end\n"
	       "\n"
	       "if redis.call(\"msetnx\", unpack(setArgs)) ~= 1 then\n"
	       "\tif canOverrideKeys() == false then\n"
	       "\t\treturn false\n"
	       "\tend\n"
	       "\tredis.call(\"mset\", unpack(setArgs))\n"
	       "\tpexpire(ARGV[3])\n"
	       "\treturn reply(false)\n"
	       "end\n"
	       "\n"
	       "pexpire(ARGV[3])\n"
	       "return reply(true)\n")
};
/* clang-format on */
