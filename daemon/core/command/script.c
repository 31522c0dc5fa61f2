/* SPDX-License-Identifier: Apache-2.0 */
#include "core/command/script.h"

#include <stddef.h>

#include "base/mem.h"
#include "core/command/script_hashes.h"

/* ---- the words of a script as the forms have them ---- */

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

/* It is a keyword or a global that forms use, so no local may have that name. */
static bool is_reserved(struct slice name)
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
	if (d->count == SCRIPT_NAMES_MAX || word->kind != LUA_NAME || is_reserved(word->text))
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

/* ---- a script on its way along a form ---- */

enum { LOCALS_MAX = 7 };

struct match {
	const struct lua_word *word; /* the next one of the script */
	struct slice locals[LOCALS_MAX];
	size_t choice; /* of words of Redis that have two: 1 + the number of the one that was taken; 0: there was none */
	struct script meaning;
};

static bool take(struct match *m, enum lua_kind kind, const char *text)
{
	if (!lua_is(m->word, kind, text))
		return false;
	m->word++;
	return true;
}

/* ---- names of locals ---- */

static bool is_local(struct slice name)
{
	return name.len == 1 && name.data[0] >= 'a' && name.data[0] < 'a' + LOCALS_MAX;
}

/* The form's local has one name at all of its places, which no other one has. */
static bool take_local(struct match *m, struct slice name)
{
	struct slice *own = &m->locals[name.data[0] - 'a'], found = m->word->text;

	if (m->word->kind != LUA_NAME || is_reserved(found))
		return false;
	for (size_t i = 0; i < LOCALS_MAX; i++)
		if (m->locals[i].data && slice_eq(m->locals[i], found) != (own == &m->locals[i]))
			return false;
	*own = found;
	m->word++;
	return true;
}

/* ---- words of Redis ---- */

static bool same_word(struct slice a, struct slice b)
{
	for (size_t i = 0; i < a.len && a.len == b.len; i++) {
		char x = a.data[i], y = b.data[i];

		if (x != y && (((x ^ y) != 0x20) || (x | 0x20) < 'a' || (x | 0x20) > 'z'))
			return false;
	}
	return a.len == b.len;
}

/* The first word of a form's 'A|B' that the script has, or the second. */
static bool take_string(struct match *m, struct slice either)
{
	const char *bar = memchr(either.data, '|', either.len);
	struct slice first = { either.data, bar ? (size_t)(bar - either.data) : either.len };
	size_t choice = 1;

	if (m->word->kind != LUA_STRING)
		return false;
	if (!same_word(m->word->text, first)) {
		if (!bar || !same_word(m->word->text, (struct slice){ bar + 1, either.len - first.len - 1 }))
			return false;
		choice = 2;
	}
	m->word++;
	if (!bar)
		return true;
	if (m->choice && m->choice != choice)
		return false;
	m->choice = choice;
	return true;
}

/* ---- holes ---- */

static void say(struct script *s, enum script_case which, enum script_answer answer, int32_t number)
{
	s->cases[which].answer = answer;
	s->cases[which].number = number;
}

static bool take_status(struct match *m)
{
	return take(m, LUA_NAME, "redis") && take(m, LUA_MARK, ".") && take(m, LUA_NAME, "status_reply") &&
	       take(m, LUA_MARK, "(") && take(m, LUA_STRING, "OK") && take(m, LUA_MARK, ")");
}

static bool take_answer(struct match *m, enum script_answer *ret, int32_t *ret_number)
{
	bool negative = take(m, LUA_MARK, "-");
	const struct lua_word *word;

	*ret = SCRIPT_OK;
	*ret_number = 1;
	if (lua_is(m->word, LUA_NAME, "redis"))
		return !negative && take_status(m);
	word = m->word++;
	*ret = SCRIPT_NUMBER;
	*ret_number = negative ? -word->number : word->number;
	if (word->kind == LUA_NUMBER)
		return true;
	*ret_number = 1;
	if (lua_is(word, LUA_NAME, "true"))
		return !negative;
	*ret_number = 0;
	*ret = SCRIPT_NIL;
	if (lua_is(word, LUA_NAME, "false") || lua_is(word, LUA_NAME, "nil"))
		return !negative;
	*ret = SCRIPT_OK_TEXT;
	return lua_is(word, LUA_STRING, "OK") && !negative;
}

static bool take_other(struct match *m)
{
	enum script_answer answer;
	int32_t number;

	if (!take_answer(m, &answer, &number))
		return false;
	for (enum script_case i = 0; i < SCRIPT_CASES; i++)
		if (m->meaning.cases[i].answer == SCRIPT_UNSAID)
			say(&m->meaning, i, answer, number);
	/* A form may have this hole twice. */
	return m->meaning.cases[SCRIPT_THEIRS].answer == answer && m->meaning.cases[SCRIPT_THEIRS].number == number;
}

/* The end, after a branch; `answered`: it has ended with a return. */
static bool take_else(struct match *m, bool answered)
{
	if (take(m, LUA_NAME, "else"))
		return take(m, LUA_NAME, "return") && take_other(m) && take(m, LUA_NAME, "end");
	if (!take(m, LUA_NAME, "end"))
		return false;
	return m->word->kind == LUA_END || (answered && take(m, LUA_NAME, "return") && take_other(m));
}

static bool take_ttl(struct match *m, int32_t at)
{
	bool as_number = take(m, LUA_NAME, "tonumber");

	if (as_number && !take(m, LUA_MARK, "("))
		return false;
	if (!take(m, LUA_NAME, "ARGV") || !take(m, LUA_MARK, "[") || m->word->kind != LUA_NUMBER ||
	    m->word++->number != at || !take(m, LUA_MARK, "]"))
		return false;
	m->meaning.unit_ms = 1;
	m->meaning.lease_at = (size_t)at;
	return !as_number || take(m, LUA_MARK, ")");
}

static bool take_hole(struct match *m, struct slice name)
{
	enum script_answer answer;
	int32_t number;

	if (slice_is(name, "ttl"))
		return take_ttl(m, 2);
	if (slice_is(name, "ttl_behind_token"))
		return take_ttl(m, 3);
	if (slice_is(name, "else"))
		return take_else(m, true);
	if (slice_is(name, "or_nil"))
		return take_else(m, false);
	if (slice_is(name, "other"))
		return take_other(m);
	if (!take_answer(m, &answer, &number))
		return false;
	say(&m->meaning, slice_is(name, "ours") ? SCRIPT_OURS : SCRIPT_FREE, answer, number);
	return true;
}

/* ---- the forms ---- */

struct form {
	struct script meaning; /* what the form says; the holes say the rest */
	const char *text;
};

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

/* ---- a form ---- */

static bool take_word(struct match *m, const struct lua_word *word)
{
	switch (word->kind) {
	case LUA_HOLE:
		return take_hole(m, word->text);
	case LUA_STRING:
		/* A form has what is no word of Redis in the other quotes. */
		return word->text.data[-1] == '"' ? m->word->kind == LUA_STRING && slice_eq(m->word++->text, word->text)
						  : take_string(m, word->text);
	case LUA_NUMBER:
		return m->word->kind == LUA_NUMBER && m->word++->number == word->number;
	case LUA_NAME:
		if (is_local(word->text))
			return take_local(m, word->text);
		break;
	case LUA_MARK:
	case LUA_END:
		break;
	}
	if (m->word->kind != word->kind || !slice_eq(m->word->text, word->text))
		return false;
	m->word++;
	return true;
}

/* What the form leaves unsaid: what is not answered is nil, and how many words the script needs besides its keys. */
static void complete(struct script *s, size_t choice)
{
	if (s->unit_ms) {
		s->unit_ms = choice == 2 ? 1000 : 1;
		s->argc = s->lease_at;
	}
	for (enum script_case i = 0; i < SCRIPT_CASES; i++) {
		if (s->cases[i].answer == SCRIPT_UNSAID)
			say(s, i, SCRIPT_NIL, 0);
		if (s->cases[i].act == SCRIPT_EXTEND_BY || s->cases[i].act == SCRIPT_ACQUIRE_IF_YES)
			s->argc = 3;
		if (s->cases[i].answer == SCRIPT_PAIR)
			s->argc = 0;
		if (s->cases[i].answer != SCRIPT_NUMBER)
			s->cases[i].number = 0;
	}
}

static bool is_of_form(const struct lua_word *words, const struct form *form, struct script *ret)
{
	struct lua_reader r = { form->text, form->text + strlen(form->text), true };
	struct match m = { .word = words, .meaning = form->meaning };
	struct lua_word word;

	do {
		if (!lua_read(&r, &word) || !take_word(&m, &word))
			return false;
	} while (word.kind != LUA_END);
	complete(&m.meaning, m.choice);
	*ret = m.meaning;
	return true;
}

/* ---- why a script is none that is known ---- */

static const char *reason(const struct lua_word *words)
{
	const char *why;

	for (; words->kind != LUA_END; words++)
		if (words->kind == LUA_STRING && (why = script_uncovered(words->text)) != NULL)
			return why;
	return "this script is none of those that are known, and lockbroker runs no Lua; those that are known release, "
	       "extend or take a lock that is set with SET NX PX";
}

bool script_recognize(struct slice text, struct script *ret, const char **why)
{
	struct lua_word words[LUA_WORDS_MAX + 1];

	*why = "no script of more than 4096 bytes is known; those that are known release, extend or take a lock that is "
	       "set with SET NX PX";
	_Static_assert(SCRIPT_BYTES_MAX == 4096, "as the sentence says");
	if (text.len > SCRIPT_BYTES_MAX)
		return false;
	if (!script_words(text, words))
		words[0].kind = LUA_END;
	for (size_t i = 0; i < sizeof(forms) / sizeof(*forms); i++)
		if (is_of_form(words, &forms[i], ret))
			return true;
	*why = reason(words);
	return false;
}

/* ---- scripts by their hash ---- */

struct scripts {
	size_t added;
	struct {
		char hash[SHA1_HEX_CHARS + 1];
		struct script script;
	} rows[SCRIPTS_MAX];
};

const struct script *scripts_find(const struct scripts *own, struct slice hash)
{
	for (size_t i = 0; i < sizeof(script_hashes) / sizeof(*script_hashes); i++)
		if (slice_is(hash, script_hashes[i].hash))
			return &script_hashes[i].script;
	for (size_t i = 0; own && i < SCRIPTS_MAX && i < own->added; i++)
		if (slice_is(hash, own->rows[i].hash))
			return &own->rows[i].script;
	return NULL;
}

void scripts_add(struct scripts **own, const char hash[SHA1_HEX_CHARS + 1], const struct script *script)
{
	size_t at;

	if (!*own)
		*own = mem_new(sizeof(**own));
	at = (*own)->added++ % SCRIPTS_MAX;
	memcpy((*own)->rows[at].hash, hash, SHA1_HEX_CHARS + 1);
	(*own)->rows[at].script = *script;
}

/* ---- commands of Redis that are not here ---- */

enum { FAMILY_MAX = 16 };

static const struct {
	const char *why;
	const char *commands[FAMILY_MAX + 1];
} families[] = {
	{ "lockbroker keeps no hashes, so locks that are kept in one, as those of Redisson are, are not covered: use locks "
	  "that are set with SET NX PX",
	  { "HSET", "HSETNX", "HMSET", "HGET", "HMGET", "HGETALL", "HEXISTS", "HINCRBY", "HDEL", "HLEN", "HPEXPIRE" } },
	{ "lockbroker keeps no sorted sets, so locks and semaphores that are kept in one, as Symfony's are since 5.2, are "
	  "not covered: use locks that are set with SET NX PX, or ACQUIRE",
	  { "ZADD", "ZREM", "ZCARD", "ZCOUNT", "ZSCORE", "ZRANK", "ZRANGE", "ZREVRANGE", "ZRANGEBYSCORE",
	    "ZREMRANGEBYSCORE", "ZPOPMIN" } },
	{ "nothing is published here: who waits for a lock asks again, or waits with LOCK",
	  { "PUBLISH", "SPUBLISH", "SUBSCRIBE", "PSUBSCRIBE", "SSUBSCRIBE", "UNSUBSCRIBE", "PUNSUBSCRIBE",
	    "SUNSUBSCRIBE", "PUBSUB" } },
	{ "there is no log-in, for the kernel tells which user connects: take the password from the URL", { "AUTH" } },
	{ "there are no transactions here: release or extend a lock by its value, with a script that compares it",
	  { "MULTI", "EXEC", "DISCARD", "WATCH", "UNWATCH" } },
};

const char *script_uncovered(struct slice command)
{
	for (size_t i = 0; i < sizeof(families) / sizeof(*families); i++)
		for (const char *const *word = families[i].commands; *word; word++)
			if (slice_is(command, *word))
				return families[i].why;
	return NULL;
}
