/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The forms of lock scripts. Each is Lua with holes, and what it means: the keys it looks at, and what it does and answers
 * if the lock is ours, free, or theirs (script.h). They know neither names for KEYS[n] and ARGV[n] nor tostring() nor
 * redis.pcall: script_words.h takes these out of scripts.
 *
 *   'A|B'      | a word of Redis in any case. The first one takes milliseconds, the second one seconds: a script has only
 *              | first ones or only second ones
 *   "a"        | that string
 *   a .. g     | names of locals: other names, but the same at each place
 *   $ttl       | ARGV[2], or tonumber(ARGV[2]); $ttl_behind_token: ARGV[3], or tonumber(ARGV[3])
 *   $ours      | a number, true, false or nil, "OK", or redis.status_reply("OK"): what is answered in that case. Likewise
 *              | $free; $other stands for all cases that were not named before
 *   $else      | the end, after a branch that has answered: `else return $other end`, `end return $other`, or `end`
 *   $or_nil    | the end, after a branch that has not: `else return $other end`, or `end`
 */
#pragma once

#include <stddef.h>

#include "core/command/script.h"

struct script_form {
	struct script meaning; /* what the form says; the holes say the rest */
	const char *text;
};

extern const struct script_form script_forms[];
extern const size_t script_form_count;
