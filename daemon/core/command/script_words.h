/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The words of a script as the forms (script_forms.h) have them. Scripts say the same in several ways, and these are made
 * one before a form is looked for:
 *
 *   local key = KEYS[1]     | each use of the name becomes KEYS[1]. Likewise ARGV[n], tonumber(ARGV[n]) and
 *                           | tostring(ARGV[n]), and several names in one statement
 *   tostring(ARGV[n])       | becomes ARGV[n], which is a string; a script that uses it is refused where it is missing
 *   redis.pcall('GET', ..)  | becomes redis.call; likewise EXISTS, PTTL, DEL and UNLINK. Redis fails none of them for a key
 *                           | that SET has set
 *
 * Only declarations at the beginning of a script count, SCRIPT_NAMES_MAX names at most. A name stands for its expression
 * until something is assigned to one of the two, or the name is declared again. Such a script becomes one that no form is
 * like: the expression then stands where something is assigned or declared, and no form has KEYS or ARGV there.
 */
#pragma once

#include "core/command/lua.h"

enum { SCRIPT_NAMES_MAX = 8 };

/* It is a keyword or a global that forms use, so no local may have that name. */
bool script_is_reserved(struct slice name);
/* As lua_words(). False also if the expressions in the places of names make more words than LUA_WORDS_MAX. */
bool script_words(struct slice text, struct lua_word ret[LUA_WORDS_MAX + 1]);
