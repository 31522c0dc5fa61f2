/* SPDX-License-Identifier: Apache-2.0 */
#include "base/rule.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"

static const char *const verbs[] = {
#define X(word) #word,
	RULE_VERBS(X)
#undef X
};

static int fail(char *error, const char *format, ...) __attribute__((format(printf, 2, 3)));
static int fail(char *error, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(error, RULE_ERROR_MAX, format, args);
	va_end(args);
	return -EINVAL;
}

const char *rule_verb_word(enum rule_verb verb)
{
	return verbs[verb];
}

bool rule_verb_of(struct slice word, enum rule_verb *ret)
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

static struct slice next_word(struct slice *rest, char separator)
{
	const char *end = rest->len ? memchr(rest->data, separator, rest->len) : NULL;
	struct slice word = { rest->data, end ? (size_t)(end - rest->data) : rest->len };
	size_t used = end ? word.len + 1 : word.len;

	*rest = (struct slice){ rest->data + used, rest->len - used };
	return word;
}

/* A number without a sign, below 2^32 - 1, which stands for no user. */
static bool parse_id(struct slice text, uint32_t *ret)
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
	struct slice rest = text, low = next_word(&rest, '-');

	return low.len < text.len && parse_id(low, ret_low) && parse_id(rest, ret_high);
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
		return memchr(r->name.data, '.', r->name.len) ? 0
							      : fail(error, "unit:%.*s has no kind: is it unit:%.*s.service?",
								     (int)r->name.len, r->name.data, (int)r->name.len,
								     r->name.data);
	}
	r->who = begins_with(who, "@", &r->name) ? RULE_GROUP : RULE_USER;
	if (r->who == RULE_USER)
		r->name = who;
	if (parse_id(r->name, &r->low)) {
		r->high = r->low;
		return 0;
	}
	if (r->who == RULE_USER && parse_range(who, &r->low, &r->high))
		return r->low <= r->high ? 0 : fail(error, "the range %.*s is empty", (int)who.len, who.data);
	r->low = 1;
	r->high = 0;
	/* A number that is none would be looked for as a name. */
	if (!r->name.len || slice_is(r->name, "@") || (r->name.data[0] >= '0' && r->name.data[0] <= '9') ||
	    r->name.data[0] == '-')
		return fail(error, "%.*s is neither a user, a @group, a range like 1000-1999, unit:NAME nor *", (int)who.len,
			    who.data);
	return 0;
}

static int parse_verbs(struct rule *r, struct slice list, char *error)
{
	enum rule_verb verb;

	do {
		struct slice word = next_word(&list, ',');

		if (!rule_verb_of(word, &verb))
			return fail(error,
				    "there is no verb \"%.*s\": they are lock, shared, acquire, campaign, observe, look, "
				    "revoke and limit",
				    word.len < 32 ? (int)word.len : 32, word.data);
		r->verbs |= 1U << verb;
	} while (list.len);
	return list.data[-1] == ',' ? fail(error, "a verb is missing after the last comma") : 0;
}

int rule_parse(struct rule *r, const char *text, const char *where, char error[RULE_ERROR_MAX])
{
	struct slice rest, word[4];
	int rc;

	*r = (struct rule){ 0 };
	if (strlen(text) > RULE_TEXT_MAX)
		return fail(error, "a rule has at most %d bytes", RULE_TEXT_MAX);
	r->text = pack(text);
	r->where = strcpy(mem_new(strlen(where) + 1), where);
	rest = slice_of(r->text);
	for (int i = 0; i < 4; i++)
		word[i] = next_word(&rest, ' ');
	r->allows = slice_eq(word[0], SLICE("allow"));
	r->pattern = word[2];
	if (!word[3].len || rest.len || (!r->allows && !slice_eq(word[0], SLICE("deny"))))
		rc = fail(error, "must be: allow|deny WHO PATTERN VERB[,VERB...]");
	else
		rc = parse_who(r, word[1], error);
	if (rc == 0)
		rc = parse_verbs(r, word[3], error);
	if (rc < 0)
		rule_free(r);
	return rc;
}

void rule_free(struct rule *r)
{
	mem_free(r->text);
	mem_free(r->where);
	*r = (struct rule){ 0 };
}
