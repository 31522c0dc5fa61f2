/* SPDX-License-Identifier: Apache-2.0 */
#include "core/command/script_forms.h"

/* clang-format off */
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
/* What it does in a case, and what it answers; a number is 1 if none is named. */
#define CASE(act, ...) CASE_OF(act, __VA_ARGS__, 1, )
#define CASE_OF(act, answer, number, ...) { SCRIPT_##act, SCRIPT_##answer, number }
#define OTHER (KEEP, UNSAID)
#define FORM(keys, ours, free, theirs, text) \
	{ { SCRIPT_##keys, { CASE ours, CASE free, CASE theirs }, 0, 0, 1, false }, text },
#define FORM_BEHIND_DATABASE(keys, ours, free, theirs, text) \
	{ { SCRIPT_##keys, { CASE ours, CASE free, CASE theirs }, 0, 0, 2, true }, \
	  "redis.pcall('SELECT', tonumber(ARGV[1])) " text },

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

const struct script_form script_forms[] = {
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
	/* Extend, or acquire what is free: redsync and Symfony before 5.2; Spring; RedLock.net; go-zero; redlock-rb. */
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
	FORM(ALL_KEYS, (RELEASE, NUMBER), OTHER, OTHER,
	     UNLESS_ALL_OURS "redis.call('DEL|UNLINK', unpack(KEYS)) return $ours")
	FORM(ALL_KEYS, (EXTEND, NUMBER), OTHER, OTHER,
	     UNLESS_ALL_OURS "for c, d in ipairs(KEYS) do redis.call('PEXPIRE|EXPIRE', d, $ttl) end return $ours")
	FORM(ALL_KEYS, (KEEP, LEAST), OTHER, OTHER,
	     UNLESS_ALL_OURS "local e = 0 for c, d in ipairs(KEYS) do local f = redis.call('PTTL', d) "
	     "if f > 0 and (e == 0 or f < e) then e = f end end return e")
};
/* clang-format on */

const size_t script_form_count = sizeof(script_forms) / sizeof(*script_forms);
