/* SPDX-License-Identifier: Apache-2.0 */
#include "core/command/lua.h"

enum { DIGITS_MAX = 9 };

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_blank(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

static bool starts(const struct lua_reader *r, const char *text)
{
	size_t len = strlen(text);

	return (size_t)(r->end - r->at) >= len && memcmp(r->at, text, len) == 0;
}

/* At a bracket that opens a long comment: behind its end, `]`, as many `=`, and `]`. False: it opens none, or has no end. */
static bool skip_long(struct lua_reader *r)
{
	const char *p = r->at + 1;
	size_t level = 0, closing = 0;

	while (p < r->end && *p == '=') {
		p++;
		level++;
	}
	if (p == r->end || *p != '[')
		return false;
	/* `closing`: what is read of the end, its first bracket counted. */
	for (p++; p < r->end; p++) {
		if (*p == ']' && closing == level + 1) {
			r->at = p + 1;
			return true;
		}
		if (*p == ']')
			closing = 1;
		else
			closing = *p == '=' && closing ? closing + 1 : 0;
	}
	return false;
}

static bool is_long(const struct lua_reader *r)
{
	const char *p = r->at;

	if (p == r->end || *p++ != '[')
		return false;
	while (p < r->end && *p == '=')
		p++;
	return p < r->end && *p == '[';
}

/* False: a comment has no end. */
static bool skip_blanks(struct lua_reader *r)
{
	for (;;) {
		while (r->at < r->end && is_blank(*r->at))
			r->at++;
		if (!starts(r, "--"))
			return true;
		r->at += 2;
		if (is_long(r)) {
			if (!skip_long(r))
				return false;
			continue;
		}
		while (r->at < r->end && *r->at != '\n')
			r->at++;
	}
}

static bool read_name(struct lua_reader *r, struct lua_word *ret)
{
	const char *from = r->at;

	while (r->at < r->end && (is_letter(*r->at) || is_digit(*r->at)))
		r->at++;
	ret->text = (struct slice){ from, (size_t)(r->at - from) };
	return ret->text.len > 0;
}

static bool read_number(struct lua_reader *r, struct lua_word *ret)
{
	ret->kind = LUA_NUMBER;
	ret->text.data = r->at;
	for (; r->at < r->end && is_digit(*r->at); r->at++) {
		if (++ret->text.len > DIGITS_MAX)
			return false;
		ret->number = ret->number * 10 + (*r->at - '0');
	}
	/* Neither a fraction nor another notation. */
	return r->at == r->end || !(is_letter(*r->at) || *r->at == '.');
}

static bool read_string(struct lua_reader *r, struct lua_word *ret)
{
	char quote = *r->at++;
	const char *from = r->at;

	ret->kind = LUA_STRING;
	while (r->at < r->end && *r->at != quote) {
		if (*r->at == '\\' || *r->at == '\n' || *r->at == '\r')
			return false;
		r->at++;
	}
	ret->text = (struct slice){ from, (size_t)(r->at - from) };
	return r->at++ < r->end;
}

static bool read_mark(struct lua_reader *r, struct lua_word *ret)
{
	static const char *const marks[] = { "==", "~=", "<=", ">=", "..", "(", ")", "[", "]", "{", "}", "<", ">",
					     "=",  ",",  ".",  "#",  "+",  "-", "*", "/", "%", "^", ":", ";" };

	for (size_t i = 0; i < sizeof(marks) / sizeof(*marks); i++)
		if (starts(r, marks[i])) {
			*ret = (struct lua_word){ .kind = LUA_MARK, .text = { r->at, strlen(marks[i]) } };
			r->at += ret->text.len;
			return true;
		}
	return false;
}

bool lua_read(struct lua_reader *r, struct lua_word *ret)
{
	*ret = (struct lua_word){ .kind = LUA_END };
	if (!skip_blanks(r))
		return false;
	if (r->at == r->end)
		return true;
	if (is_digit(*r->at))
		return read_number(r, ret);
	if (*r->at == '"' || *r->at == '\'')
		return read_string(r, ret);
	if (is_letter(*r->at)) {
		ret->kind = LUA_NAME;
		return read_name(r, ret);
	}
	if (r->is_form && *r->at == '$') {
		r->at++;
		ret->kind = LUA_HOLE;
		return read_name(r, ret);
	}
	return !is_long(r) && read_mark(r, ret);
}

bool lua_is(const struct lua_word *word, enum lua_kind kind, const char *text)
{
	return word->kind == kind && slice_eq(word->text, slice_of(text));
}

static bool is_one_of(const struct lua_word *word, const char *const *names)
{
	for (; *names; names++)
		if (lua_is(word, LUA_NAME, *names))
			return true;
	return false;
}

bool lua_parts_statements(const struct lua_word *before, const struct lua_word *behind)
{
	static const char *const need_more[] = { "and",  "do",    "else",  "elseif", "for", "function",
						 "if",   "in",    "local", "not",    "or",  "repeat",
						 "then", "until", "while", "return", NULL };
	static const char *const go_on[] = { "and", "do", "false", "in", "nil", "not", "or", "then", "true", NULL };

	if (before->kind == LUA_MARK
		    ? !(lua_is(before, LUA_MARK, ")") || lua_is(before, LUA_MARK, "]") || lua_is(before, LUA_MARK, "}"))
		    : is_one_of(before, need_more))
		return false;
	return behind->kind == LUA_END || (behind->kind == LUA_NAME && !is_one_of(behind, go_on));
}

/* Where the parenthesis that opens at words[at] closes; 0: nowhere. */
static size_t closing(const struct lua_word *words, size_t at)
{
	size_t depth = 0;

	for (; words[at].kind != LUA_END; at++) {
		if (lua_is(&words[at], LUA_MARK, "("))
			depth++;
		else if (lua_is(&words[at], LUA_MARK, ")") && --depth == 0)
			return at;
	}
	return 0;
}

static void take_out(struct lua_word *words, size_t count, size_t at)
{
	memmove(words + at, words + at + 1, (count - at) * sizeof(*words));
}

/* Takes the parentheses off conditions that stand in them as a whole. */
static void bare_conditions(struct lua_word *words, size_t count)
{
	static const char *const conditions[] = { "if", "elseif", NULL };

	for (size_t i = 0; i < count; i++) {
		size_t close;

		if (!is_one_of(&words[i], conditions))
			continue;
		while (lua_is(&words[i + 1], LUA_MARK, "(") && (close = closing(words, i + 1)) > i + 2 &&
		       lua_is(&words[close + 1], LUA_NAME, "then")) {
			take_out(words, count--, close);
			take_out(words, count--, i + 1);
		}
	}
}

bool lua_words(struct slice text, struct lua_word ret[LUA_WORDS_MAX + 1])
{
	struct lua_reader r = { text.data, text.data + text.len, false };
	size_t count = 0;
	bool parted = false;

	for (;;) {
		if (!lua_read(&r, &ret[count]))
			return false;
		if (lua_is(&ret[count], LUA_MARK, ";")) {
			if (parted || count == 0)
				return false;
			parted = true;
			continue;
		}
		if (parted && !lua_parts_statements(&ret[count - 1], &ret[count]))
			return false;
		parted = false;
		if (ret[count].kind == LUA_END)
			break;
		if (++count > LUA_WORDS_MAX)
			return false;
	}
	bare_conditions(ret, count);
	return true;
}
