/* SPDX-License-Identifier: Apache-2.0 */
#include "base/rule.h"

#include <errno.h>
#include <string.h>

#include "base/glob.h"
#include "base/mem.h"

enum { TOLD_MAX = 64 /* of a word, in a sentence */ };
static const struct slice NOTHING = { 0 };

static const char *const verbs[] = {
#define X(word, does) #word,
	RULE_VERBS(X)
#undef X
};

static const char *const deeds[] = {
#define X(word, does) does,
	RULE_VERBS(X)
#undef X
};

static size_t append(char *error, size_t at, struct slice text)
{
	size_t len = text.len < RULE_ERROR_MAX - 1 - at ? text.len : RULE_ERROR_MAX - 1 - at;

	if (len)
		memcpy(error + at, text.data, len);
	return at + len;
}

/* Pure parts format nothing: a sentence is what stands before a word, the word, and what stands after it. */
static int fail(char *error, const char *before, struct slice word, const char *after)
{
	size_t at = append(error, 0, slice_of(before));

	if (word.len > TOLD_MAX)
		word.len = TOLD_MAX;
	at = append(error, append(error, at, word), slice_of(after));
	error[at] = '\0';
	return -EINVAL;
}

const char *rule_verb_word(enum rule_verb verb)
{
	return verbs[verb];
}

const char *rule_verb_does(enum rule_verb verb)
{
	return deeds[verb];
}

static bool verb_of(struct slice word, enum rule_verb *ret)
{
	for (int i = 0; i < RULE_VERB_COUNT; i++)
		if (slice_is(word, verbs[i])) {
			*ret = (enum rule_verb)i;
			return true;
		}
	return false;
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

/* The text with one blank between its words, and none around them. */
static char *pack(const char *text)
{
	char *packed = mem_new(strlen(text) + 1), *to = packed;

	for (; *text; text++)
		if (!is_blank(*text))
			*to++ = *text;
		else if (to > packed && !is_blank(to[-1]))
			*to++ = ' ';
	if (to > packed && to[-1] == ' ')
		to--;
	*to = '\0';
	return packed;
}

bool rule_id(struct slice text, uint32_t *ret)
{
	uint64_t value = 0;

	if (!text.len || text.len > 10)
		return false;
	for (size_t i = 0; i < text.len; i++) {
		if (text.data[i] < '0' || text.data[i] > '9')
			return false;
		value = 10 * value + (uint64_t)(text.data[i] - '0');
	}
	*ret = (uint32_t)value;
	return value < UINT32_MAX;
}

static bool parse_range(struct slice text, uint32_t *ret_low, uint32_t *ret_high)
{
	struct slice rest = text, low = slice_cut(&rest, '-');

	return low.len < text.len && rule_id(low, ret_low) && rule_id(rest, ret_high);
}

static bool begins_with(struct slice text, const char *with, struct slice *ret_rest)
{
	size_t len = strlen(with);

	if (text.len <= len || memcmp(text.data, with, len) != 0)
		return false;
	*ret_rest = (struct slice){ text.data + len, text.len - len };
	return true;
}

static int parse_who(struct rule *r, struct slice who, char *error)
{
	r->low = 1;
	r->high = 0;
	if (slice_eq(who, SLICE("*"))) {
		r->who = RULE_EVERYBODY;
		return 0;
	}
	if (begins_with(who, "unit:", &r->name)) {
		r->who = RULE_UNIT;
		return memchr(r->name.data, '.', r->name.len)
			       ? 0
			       : fail(error, "unit:", r->name, " has no kind; a unit's name ends as in web.service");
	}
	r->who = begins_with(who, "@", &r->name) ? RULE_GROUP : RULE_USER;
	if (r->who == RULE_USER)
		r->name = who;
	if (rule_id(r->name, &r->low)) {
		r->high = r->low;
		return 0;
	}
	if (r->who == RULE_USER && parse_range(who, &r->low, &r->high))
		return r->low <= r->high ? 0 : fail(error, "the range ", who, " is empty");
	r->low = 1;
	r->high = 0;
	/* A number that is none would be looked for as a name. */
	if (!r->name.len || slice_eq(r->name, SLICE("@")) || (r->name.data[0] >= '0' && r->name.data[0] <= '9') ||
	    r->name.data[0] == '-')
		return fail(error, "", who, " is neither a user, a @group, a range like 1000-1999, unit:NAME nor *");
	return 0;
}

static int parse_verbs(struct rule *r, struct slice list, char *error)
{
	enum rule_verb verb;

	do {
		struct slice word = slice_cut(&list, ',');

		if (slice_eq(word, SLICE("*")))
			r->verbs = (1U << RULE_VERB_COUNT) - 1;
		else if (verb_of(word, &verb))
			r->verbs |= 1U << verb;
		else
			return fail(error, "there is no verb \"", word,
				    "\": they are lock, shared, acquire, campaign, observe, look, revoke and limit; * is all");
	} while (list.len);
	return list.data[-1] == ',' ? fail(error, "a verb is missing after the last comma", NOTHING, "") : 0;
}

int rule_parse(struct rule *r, const char *text, const char *where, char error[RULE_ERROR_MAX])
{
	struct slice rest, word[4];
	int rc;

	_Static_assert(RULE_TEXT_MAX == 2048, "the sentence below names it");
	*r = (struct rule){ 0 };
	if (strlen(text) > RULE_TEXT_MAX)
		return fail(error, "a rule has at most 2048 bytes", NOTHING, "");
	r->text = pack(text);
	r->where = mem_text(where);
	rest = slice_of(r->text);
	for (int i = 0; i < 4; i++)
		word[i] = slice_cut(&rest, ' ');
	r->allows = slice_eq(word[0], SLICE("allow"));
	r->pattern = word[2];
	if (!word[3].len || rest.len || (!r->allows && !slice_eq(word[0], SLICE("deny"))))
		rc = fail(error, "must be: allow|deny WHO PATTERN VERB[,VERB...]", NOTHING, "");
	else
		rc = parse_who(r, word[1], error);
	if (rc == 0)
		rc = parse_verbs(r, word[3], error);
	if (rc < 0)
		rule_free(r);
	else
		r->glob = glob_new(r->pattern);
	return rc;
}

void rule_move(struct rule *r, const char *where)
{
	mem_free(r->where);
	r->where = mem_text(where);
}

void rule_free(struct rule *r)
{
	mem_free(r->text);
	mem_free(r->where);
	glob_free(r->glob);
	*r = (struct rule){ 0 };
}
