/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The words of Lua 5.1, as far as lock scripts need them: names, whole numbers, strings without escapes, marks. Comments
 * and blanks are left out, and also words that change nothing: a `;` between two statements, and parentheses round a whole
 * condition. Anything else that is no such word makes the text unreadable, which is no error: it is just not known.
 *
 * The forms of scripts (script.h) are written in the same words, and have holes: `$name`.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "protocol/slice.h"

enum { LUA_WORDS_MAX = 384 };

enum lua_kind {
	LUA_END,
	LUA_NAME,   /* keywords, too */
	LUA_NUMBER, /* 0..999,999,999 */
	LUA_STRING, /* `text` is the string between the quotes */
	LUA_MARK,
	LUA_HOLE, /* of a form: `text` is its name */
};

struct lua_word {
	enum lua_kind kind;
	int32_t number;
	struct slice text; /* borrowed */
};

struct lua_reader {
	const char *at, *end;
	bool is_form; /* holes are words */
};

/* The next word; LUA_END at the end. False: there is no such word. */
bool lua_read(struct lua_reader *r, struct lua_word *ret);
/* All words of the text, and LUA_END after them. False: it is unreadable, or has more than LUA_WORDS_MAX. */
bool lua_words(struct slice text, struct lua_word ret[LUA_WORDS_MAX + 1]);
/* In that spelling. */
bool lua_is(const struct lua_word *word, enum lua_kind kind, const char *text);
/* A statement may end between these two, and a `;` stand there: the other one begins a statement or ends a block. */
bool lua_parts_statements(const struct lua_word *before, const struct lua_word *behind);
