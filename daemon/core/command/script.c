/* SPDX-License-Identifier: Apache-2.0 */
#include "core/command/script.h"

#include "core/command/script_forms.h"
#include "core/command/script_words.h"
#include "core/command/uncovered.h"

enum { LOCALS_MAX = 7 };

/* A script on its way along a form. */
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

	if (m->word->kind != LUA_NAME || script_is_reserved(found))
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

static bool is_of_form(const struct lua_word *words, const struct script_form *form, struct script *ret)
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
		if (words->kind == LUA_STRING && (why = uncovered(words->text)) != NULL)
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
	for (size_t i = 0; i < script_form_count; i++)
		if (is_of_form(words, &script_forms[i], ret))
			return true;
	*why = reason(words);
	return false;
}
