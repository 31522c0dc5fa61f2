/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scripts of lock libraries, recognized. Libraries release, extend and sometimes take their locks with a script in Lua.
 * Nothing here runs Lua: a script is one of the forms that libraries send, and then its effect on a lock and its answer are
 * known; or it is refused. Its words are compared, not its bytes (lua.h): blanks, comments, quotes, names of locals and the
 * case of commands may be the author's own.
 *
 * The forms are in script_catalogue.h, beside the scripts of libraries. A form is Lua with holes, and its meaning: the keys
 * it looks at, and its act and answer if the lock is ours, free, or theirs. It knows neither names for KEYS[n]
 * and ARGV[n] nor tostring() nor redis.pcall.
 *
 *   'A|B'      | a word of Redis in any case. The first one takes milliseconds, the second one seconds: a script has only
 *              | first ones or only second ones
 *   "a"        | that string
 *   a .. g     | names of locals: other names, but the same at each place
 *   $ttl       | ARGV[2], or tonumber(ARGV[2]); $ttl_behind_token: likewise ARGV[3]; $ttl_of_keys: KEYS[2]
 *   $ours      | a number, true, false or nil, "OK", or redis.status_reply("OK"): the answer in that case. Likewise
 *              | $free; $other stands for all cases that were not named before
 *   $else      | the end, after a branch that has answered: `else return $other end`, `end return $other`, or `end`
 *   $or_nil    | the end, after a branch that has not: `else return $other end`, or `end`
 *
 * Scripts say the same in several ways, and these are made one before a form is looked for:
 *
 *   local key = KEYS[1]     | each use of the name becomes KEYS[1]. Likewise ARGV[n], tonumber(ARGV[n]) and
 *                           | tostring(ARGV[n]), and several names in one statement
 *   tostring(ARGV[n])       | becomes ARGV[n], which is a string; a script that uses it is refused where it is missing
 *   redis.pcall('GET', ..)  | becomes redis.call; likewise EXISTS, PTTL, DEL and UNLINK. Redis fails none of them for a key
 *                           | that SET has set
 *
 * Only declarations at the beginning of a script count, SCRIPT_NAMES_MAX names at most. A name stands for its
 * expression until something is assigned to one of the two, or the name is declared again. Such a script becomes one
 * that no form is like: the expression then stands where something is assigned or declared, and no form has KEYS or
 * ARGV there.
 *
 * All this stands on this floor because a script is a request in Redis's commands: protocol/ is the contract
 * with both sides, and its other side sends no scripts; base/ knows nothing of locks.
 *
 * A script looks at its first key or at all of them, and finds each in one of three cases. Scripts take the value as
 * ARGV[1], and scripts with a lease take its length as ARGV[2]. There are four exceptions. A script that only reads
 * (SCRIPT_PAIR) takes no ARGV. In redislock's scripts the value is a token with metadata behind it: ARGV[2] is the length of
 * the token in bytes, and ARGV[3] the lease. A script that begins with a SELECT has one ARGV before these. The script of
 * warlock's touch() has no ARGV, but the lease as KEYS[2] and the value as KEYS[3].
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/sha1.h"
#include "core/command/lua.h"
#include "protocol/slice.h"

enum { SCRIPT_BYTES_MAX = 4096, SCRIPT_NAMES_MAX = 8 };

/* The state of the key's lock. */
enum script_case {
	SCRIPT_OURS,   /* held, and its value is ARGV[1] */
	SCRIPT_FREE,   /* held by nobody */
	SCRIPT_THEIRS, /* held, with another value or without one */
	SCRIPT_CASES
};

enum script_act {
	SCRIPT_KEEP, /* it only answers */
	SCRIPT_RELEASE,
	SCRIPT_EXTEND,    /* the lease ends ARGV[2] from now */
	SCRIPT_EXTEND_BY, /* likewise; if ARGV[3] is "0", the rest of the lease is added. A lock without a lease stays as it is,
				* and is answered as SCRIPT_THEIRS */
	SCRIPT_ACQUIRE,
	SCRIPT_ACQUIRE_IF_YES, /* if ARGV[3] is "yes"; else it is answered as SCRIPT_THEIRS */
};

enum script_answer {
	SCRIPT_UNSAID, /* never in a script that was recognized */
	SCRIPT_NIL,
	SCRIPT_NUMBER,
	SCRIPT_OK,          /* the status OK */
	SCRIPT_OK_TEXT,     /* a bulk of the same word */
	SCRIPT_COUNT,       /* how many keys are in that case */
	SCRIPT_LEFT,        /* of SCRIPT_OURS: the milliseconds until the lease ends; -1: it has none */
	SCRIPT_LEAST,       /* of SCRIPT_OURS: the least of these of all keys; 0: none has a lease */
	SCRIPT_PAIR,        /* the answers of GET and PTTL, as an array; in all cases alike */
	SCRIPT_TOKEN,       /* of the first key's lock */
	SCRIPT_OK_OR_TOKEN, /* if ARGV[4] is 1 SCRIPT_TOKEN, and the last key is not looked at; else SCRIPT_OK */
};

enum script_keys {
	SCRIPT_FIRST_KEY,
	SCRIPT_ALL_KEYS, /* it acts only if all are in the case of its act; else it is answered as the case of another key */
	SCRIPT_EACH_KEY, /* each for itself; it is answered as SCRIPT_OURS */
};

struct script {
	enum script_keys keys;
	struct {
		enum script_act act;
		enum script_answer answer;
		int32_t number; /* of SCRIPT_NUMBER */
	} cases[SCRIPT_CASES];
	int64_t unit_ms; /* of the lease; 0: it takes none */
	size_t value_at; /* which ARGV it is: 1, or 2 behind the number of a database, which has no meaning here; 0: none */
	size_t lease_at; /* likewise: 2, or 3 behind the length of a token or a database; 0: none */
	size_t argc;     /* how many ARGV it needs */
	size_t argv_of_keys; /* so many of its KEYS, the last ones, are its ARGV */
};

/* False: it is none that is known, and `why` says so: a sentence that lives for ever. */
bool script_recognize(struct slice text, struct script *ret, const char **why);
/* As lua_words(), as the forms have them. False also if the expressions in the places of names make too many. */
bool script_words(struct slice text, struct lua_word ret[LUA_WORDS_MAX + 1]);

/*
 * The scripts that EVALSHA finds by their hash. The libraries' scripts are known from the start (script_catalogue.h). Others
 * are remembered for the user who sent them, the last SCRIPTS_MAX of them, until no client of that user is connected or
 * another process serves. Libraries send a script again that is answered -NOSCRIPT, for Redis forgets them likewise.
 */

enum { SCRIPTS_MAX = 64 };

struct scripts; /* of a user; memory in one piece, which is freed with mem_free() */

/* `hash`: in hexadecimal digits. `own` may be NULL: none are remembered. NULL: nothing is known by that hash. */
const struct script *scripts_find(const struct scripts *own, struct slice hash);
/* Remembers a script that was recognized, whose hash scripts_find() does not know; the oldest one is forgotten for it. */
void scripts_add(struct scripts **own, const char hash[SHA1_HEX_CHARS + 1], const struct script *script);

/*
 * Some lock libraries need commands of Redis that are not here. Why that command, in any case, is not: a sentence that lives
 * for ever. NULL: it is none of them.
 */
const char *script_uncovered(struct slice command);
