/* SPDX-License-Identifier: Apache-2.0 */
#include "core/command/script_words.h"

enum {
	ELEMENT_WORDS = 4,    /* ARGV [ n ] */
	EXPRESSION_WORDS = 7, /* tonumber ( ARGV [ n ] ) */
};

struct words {
	struct lua_word *at;
	size_t count; /* without LUA_END */
};

struct declared {
	struct slice name;
	struct lua_word is[EXPRESSION_WORDS];
	size_t count; /* of these words */
};

/* A statement. */
struct declaration {
	struct declared names[SCRIPT_NAMES_MAX];
	size_t count;  /* of names */
	size_t length; /* in words */
};

bool script_is_reserved(struct slice name)
{
	static const char *const words[] = { "and",    "break", "do",       "else",     "elseif", "end",
					     "false",  "for",   "function", "if",       "in",     "local",
					     "nil",    "not",   "or",       "repeat",   "return", "then",
					     "true",   "until", "while",    "ARGV",     "KEYS",   "redis",
					     "ipairs", "table", "tonumber", "tostring", "string", "unpack" };

	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
		if (slice_eq(name, slice_of(words[i])))
			return true;
	return false;
}

/* False: there would be too many. */
static bool replace(struct words *w, size_t at, size_t count, const struct lua_word *with, size_t with_count)
{
	size_t behind = at + count;

	if (w->count - count + with_count > LUA_WORDS_MAX)
		return false;
	memmove(w->at + at + with_count, w->at + behind, (w->count + 1 - behind) * sizeof(*w->at));
	memcpy(w->at + at, with, with_count * sizeof(*with));
	w->count = w->count - count + with_count;
	return true;
}

static void take_out(struct words *w, size_t at, size_t count)
{
	size_t behind = at + count;

	memmove(w->at + at, w->at + behind, (w->count + 1 - behind) * sizeof(*w->at));
	w->count -= count;
}

/* ---- what changes nothing ---- */

static bool is_element(const struct lua_word *words, const char *array)
{
	return lua_is(&words[0], LUA_NAME, array) && lua_is(&words[1], LUA_MARK, "[") && words[2].kind == LUA_NUMBER &&
	       lua_is(&words[3], LUA_MARK, "]");
}

/* FUNCTION(ARGV[n]) */
static bool is_of_argument(const struct lua_word *words, const char *function)
{
	return lua_is(&words[0], LUA_NAME, function) && lua_is(&words[1], LUA_MARK, "(") &&
	       is_element(&words[2], "ARGV") && lua_is(&words[2 + ELEMENT_WORDS], LUA_MARK, ")");
}

static void bare_strings(struct words *w)
{
	for (size_t i = w->count; i-- > 0;)
		if (is_of_argument(&w->at[i], "tostring")) {
			take_out(w, i + 2 + ELEMENT_WORDS, 1);
			take_out(w, i, 2);
		}
}

static bool never_fails(const struct lua_word *command)
{
	static const char *const commands[] = { "GET", "EXISTS", "PTTL", "DEL", "UNLINK" };

	for (size_t i = 0; i < sizeof(commands) / sizeof(*commands); i++)
		if (command->kind == LUA_STRING && slice_is(command->text, commands[i]))
			return true;
	return false;
}

static void bare_calls(struct words *w)
{
	for (size_t i = 0; i < w->count; i++)
		if (lua_is(&w->at[i], LUA_NAME, "redis") && lua_is(&w->at[i + 1], LUA_MARK, ".") &&
		    lua_is(&w->at[i + 2], LUA_NAME, "pcall") && lua_is(&w->at[i + 3], LUA_MARK, "(") &&
		    never_fails(&w->at[i + 4]))
			w->at[i + 2].text = SLICE("call");
}

/* ---- names ---- */

/* How many words the expression there has that a name may stand for; 0: there is none. */
static size_t expression(const struct lua_word *words)
{
	if (is_of_argument(words, "tonumber"))
		return EXPRESSION_WORDS;
	return is_element(words, "KEYS") || is_element(words, "ARGV") ? ELEMENT_WORDS : 0;
}

static bool add_name(struct declaration *d, const struct lua_word *word)
{
	if (d->count == SCRIPT_NAMES_MAX || word->kind != LUA_NAME || script_is_reserved(word->text))
		return false;
	for (size_t i = 0; i < d->count; i++)
		if (slice_eq(d->names[i].name, word->text))
			return false;
	d->names[d->count++].name = word->text;
	return true;
}

/* The statement at the beginning. False: it is none that only gives names to expressions, each its own. */
static bool read_declaration(const struct lua_word *words, struct declaration *ret)
{
	const struct lua_word *at = words;

	ret->count = 0;
	if (!lua_is(at, LUA_NAME, "local"))
		return false;
	do {
		if (!add_name(ret, ++at))
			return false;
	} while (lua_is(++at, LUA_MARK, ","));
	if (!lua_is(at, LUA_MARK, "="))
		return false;
	for (size_t i = 0; i < ret->count; i++) {
		struct declared *d = &ret->names[i];

		/* `at` is the `=`, or what has to be the comma behind the expression before. */
		if (i && !lua_is(at, LUA_MARK, ","))
			return false;
		d->count = expression(++at);
		if (!d->count)
			return false;
		memcpy(d->is, at, d->count * sizeof(*at));
		at += d->count;
	}
	ret->length = (size_t)(at - words);
	return lua_parts_statements(at - 1, at);
}

static bool put_in_place(struct words *w, const struct declared *d)
{
	for (size_t i = 0; i < w->count; i++) {
		if (w->at[i].kind != LUA_NAME || !slice_eq(w->at[i].text, d->name))
			continue;
		/* The name of a field is not the local. */
		if (i && lua_is(&w->at[i - 1], LUA_MARK, "."))
			continue;
		if (!replace(w, i, 1, d->is, d->count))
			return false;
		i += d->count - 1;
	}
	return true;
}

bool script_words(struct slice text, struct lua_word ret[LUA_WORDS_MAX + 1])
{
	struct words w = { .at = ret };
	struct declaration d;
	size_t names = 0;

	if (!lua_words(text, ret))
		return false;
	while (ret[w.count].kind != LUA_END)
		w.count++;
	bare_calls(&w);
	bare_strings(&w);
	while (read_declaration(ret, &d) && (names += d.count) <= SCRIPT_NAMES_MAX) {
		take_out(&w, 0, d.length);
		for (size_t i = 0; i < d.count; i++)
			if (!put_in_place(&w, &d.names[i]))
				return false;
		/* A name may have stood in one of these. */
		bare_strings(&w);
	}
	return true;
}
