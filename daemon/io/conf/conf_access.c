/* SPDX-License-Identifier: Apache-2.0 */
#include "io/conf/conf_access.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/mem.h"
#include "base/rule_names.h"
#include "io/conf/conf_section.h"

static const char own_section[] = "access", own_key[] = "rule", kept_key[] = "was";

bool conf_access_is(const char *section)
{
	return strcmp(section, own_section) == 0;
}

/* The broker only reads them; they belong to the configuration. */
static struct rule *rules_of(const struct conf *conf)
{
	return (struct rule *)conf->broker.access.list;
}

/* "LOW HIGH FILE:LINE" */
static int take_kept(struct rule *r, const char *value, char error[CONF_ERROR_MAX])
{
	int end = 0;

	if (sscanf(value, "%" SCNu32 " %" SCNu32 " %n", &r->low, &r->high, &end) < 2 || !end)
		return conf_fail(error, r->where, "%s.%s = %.200s: not what a rule was", own_section, kept_key, value);
	rule_move(r, value + end);
	return 0;
}

int conf_access_set(struct conf *conf, const char *name, const char *value, const char *where, char error[CONF_ERROR_MAX])
{
	struct access_rules *access = &conf->broker.access;
	char sentence[RULE_ERROR_MAX];
	struct rule *rules;

	if (conf->kept && strcmp(name, kept_key) == 0 && access->count)
		return take_kept(&rules_of(conf)[access->count - 1], value, error);
	if (strcmp(name, own_key) != 0)
		return conf_fail(error, where, "%s.%.200s: unknown key", own_section, name);
	if (access->count == CONF_RULES_MAX)
		return conf_fail(error, where, "access.rule = %.200s: there are %d rules already, as many as there may be",
				 value, CONF_RULES_MAX);
	access->list = rules = mem_resize(rules_of(conf), (access->count + 1) * sizeof(*rules));
	if (rule_parse(&rules[access->count], value, where, sentence) < 0)
		return conf_fail(error, where, "access.rule = %.200s: %s", value, sentence);
	access->verbs |= rules[access->count++].verbs;
	return 0;
}

int conf_access_resolve(struct conf *conf, char error[CONF_ERROR_MAX])
{
	char sentence[RULE_ERROR_MAX];
	int rc = 0;

	for (size_t i = 0; i < conf->broker.access.count; i++) {
		struct rule *r = &rules_of(conf)[i];
		int found = rule_resolve(r, sentence);

		if (found < 0)
			conf_fail(error, r->where, "access.rule = %.200s: %s", r->text, sentence);
		rc = rule_worse(rc, found);
	}
	return rc;
}

static bool is_word(struct rule_word a, struct rule_word b)
{
	return a.len == b.len && memcmp(a.data, b.data, a.len) == 0;
}

/* Both are for the same ones and for the same names. */
static bool is_beside(const struct rule *a, const struct rule *b)
{
	bool same = a->who == RULE_UNIT ? is_word(a->name, b->name) : a->low == b->low && a->high == b->high;

	return a->who == b->who && (a->who == RULE_EVERYBODY || same) && is_word(a->pattern, b->pattern);
}

bool conf_access_leaves(const struct conf *conf, char sentence[CONF_SENTENCE_MAX])
{
	static const unsigned int takes = 1 << RULE_acquire | 1 << RULE_campaign | 1 << RULE_observe;

	for (size_t i = 0; i < conf->broker.access.count; i++) {
		const struct rule *r = &conf->broker.access.list[i];
		unsigned int denied = 0;

		if (r->allows || !(r->verbs >> RULE_lock & 1))
			continue;
		for (size_t k = 0; k < conf->broker.access.count; k++)
			if (!conf->broker.access.list[k].allows && is_beside(r, &conf->broker.access.list[k]))
				denied |= conf->broker.access.list[k].verbs;
		if ((denied & takes) == takes)
			continue;
		snprintf(sentence, CONF_SENTENCE_MAX,
			 "%s: access.rule = %.400s: a name that may not be locked can still be taken as an election or a semaphore "
			 "(campaign, observe, acquire), which keeps it from others; deny *, all verbs",
			 r->where, r->text);
		return true;
	}
	return false;
}

bool conf_access_same(const struct conf *a, const struct conf *b)
{
	const struct rule *of_a = a->broker.access.list, *of_b = b->broker.access.list;

	if (a->broker.access.count != b->broker.access.count)
		return false;
	for (size_t i = 0; i < a->broker.access.count; i++)
		if (strcmp(of_a[i].text, of_b[i].text) != 0 || strcmp(of_a[i].where, of_b[i].where) != 0 ||
		    of_a[i].low != of_b[i].low || of_a[i].high != of_b[i].high)
			return false;
	return true;
}

void conf_access_print(const struct conf *conf, FILE *out)
{
	fprintf(out,
		"\n# Who may do what: allow|deny WHO PATTERN VERB[,VERB...]; the first rule that matches counts. At most %d.\n"
		"# WHO: a user, @group, 1000-1999, unit:NAME or *; verbs: lock shared acquire campaign observe look revoke limit.\n"
		"[%s]\n",
		CONF_RULES_MAX, own_section);
	for (size_t i = 0; i < conf->broker.access.count; i++)
		fprintf(out, "%s = %s\n", own_key, conf->broker.access.list[i].text);
	if (conf->broker.access.count == 0)
		fprintf(out, "#%s = allow @backup backup/* revoke\n", own_key);
}

void conf_access_keep(const struct conf *conf, FILE *out)
{
	fprintf(out, "[%s]\n", own_section);
	for (size_t i = 0; i < conf->broker.access.count; i++) {
		const struct rule *r = &conf->broker.access.list[i];

		fprintf(out, "%s = %s\n%s = %" PRIu32 " %" PRIu32 " %s\n", own_key, r->text, kept_key, r->low, r->high,
			r->where);
	}
}

void conf_access_free(struct conf *conf)
{
	for (size_t i = 0; i < conf->broker.access.count; i++)
		rule_free(&rules_of(conf)[i]);
	mem_free(rules_of(conf));
}
