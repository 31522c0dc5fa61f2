/* SPDX-License-Identifier: Apache-2.0 */
#include "core/command/script.h"

#include <stddef.h>

#include "base/mem.h"
#include "core/command/script_catalogue.h"

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

enum { LOCALS_MAX = 11 };

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

static bool take_ttl(struct match *m, const char *array, int32_t at, size_t lease_at)
{
	bool as_number = take(m, LUA_NAME, "tonumber");

	if (as_number && !take(m, LUA_MARK, "("))
		return false;
	if (!take(m, LUA_NAME, array) || !take(m, LUA_MARK, "[") || m->word->kind != LUA_NUMBER ||
	    m->word++->number != at || !take(m, LUA_MARK, "]"))
		return false;
	m->meaning.unit_ms = 1;
	m->meaning.lease_at = lease_at;
	return !as_number || take(m, LUA_MARK, ")");
}

static bool take_hole(struct match *m, struct slice name)
{
	enum script_answer answer;
	int32_t number;

	if (slice_is(name, "ttl"))
		return take_ttl(m, "ARGV", 2, 2);
	if (slice_is(name, "ttl_behind_token"))
		return take_ttl(m, "ARGV", 3, 3);
	if (slice_is(name, "ttl_of_keys"))
		return take_ttl(m, "KEYS", 2, 1);
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
	if (s->unit_ms)
		s->unit_ms = choice == 2 ? 1000 : 1;
	s->argc = s->lease_at > s->value_at ? s->lease_at : s->value_at;
	for (enum script_case i = 0; i < SCRIPT_CASES; i++) {
		if (s->cases[i].answer == SCRIPT_UNSAID)
			say(s, i, SCRIPT_NIL, 0);
		if (s->cases[i].act == SCRIPT_EXTEND_BY || s->cases[i].act == SCRIPT_ACQUIRE_IF_YES)
			s->argc = 3;
		if (s->cases[i].answer == SCRIPT_OK_OR_TOKEN)
			s->argc = 4;
		if (s->cases[i].answer == SCRIPT_PAIR)
			s->argc = s->value_at = 0;
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
	return "this script is unknown, and lockbroker runs no Lua; the known scripts release, extend or take a lock that "
	       "is set with SET NX PX";
}

bool script_recognize(struct slice text, struct script *ret, const char **why)
{
	struct lua_word words[LUA_WORDS_MAX + 1];

	*why = "no script of more than 4096 bytes is known; the known scripts release, extend or take a lock that is "
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
	for (size_t i = 0; i < sizeof(catalogue) / sizeof(*catalogue); i++)
		if (slice_is(hash, catalogue[i].hash))
			return &catalogue[i].script;
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
	{ "nothing is published here: a client that waits for a lock asks again, or waits with LOCK",
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
