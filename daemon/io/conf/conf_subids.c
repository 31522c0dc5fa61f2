/* SPDX-License-Identifier: Apache-2.0 */
#include "io/conf/conf_subids.h"

#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rule.h"

enum { GROUPS_MAX = 1024 };

struct person {
	const char *name;
	uid_t uid;
	int group_count;
	gid_t groups[GROUPS_MAX];
};

/* The first field of a line is a name or a number. False: there is no such user. */
static bool find(struct person *p, const char *name)
{
	const struct passwd *entry = getpwnam(name);
	char *end;
	unsigned long number = strtoul(name, &end, 10);

	if (!entry && *name && !*end)
		entry = getpwuid((uid_t)number);
	if (!entry)
		return false;
	p->name = name;
	p->uid = entry->pw_uid;
	p->group_count = GROUPS_MAX;
	if (getgrouplist(entry->pw_name, entry->pw_gid, p->groups, &p->group_count) < 0)
		p->group_count = 0;
	return true;
}

static bool concerns(const struct rule *r, const struct person *p)
{
	if (r->who == RULE_USER)
		return p->uid >= r->low && p->uid <= r->high;
	for (int i = 0; r->who == RULE_GROUP && i < p->group_count; i++)
		if (p->groups[i] == r->low)
			return true;
	return false;
}

static bool is_all_names(const struct rule *r)
{
	return r->pattern.len == 1 && r->pattern.data[0] == '*';
}

/* Everybody is denied the same: what stands behind the allowed ones. */
static bool is_covered(const struct conf *conf, const struct rule *r)
{
	for (size_t i = 0; i < conf->broker.access.count; i++) {
		const struct rule *other = &conf->broker.access.list[i];
		bool same = other->pattern.len == r->pattern.len &&
			    memcmp(other->pattern.data, r->pattern.data, r->pattern.len) == 0;

		if (other->who == RULE_EVERYBODY && !other->allows && (other->verbs & r->verbs) == r->verbs &&
		    (same || is_all_names(other)))
			return true;
	}
	return false;
}

static const struct rule *find_rule(const struct conf *conf, const struct person *p)
{
	for (size_t i = 0; i < conf->broker.access.count; i++) {
		const struct rule *r = &conf->broker.access.list[i];

		if (!r->allows && concerns(r, p) && !is_covered(conf, r))
			return r;
	}
	return NULL;
}

bool conf_subids_pass(const struct conf *conf, const char *file, char sentence[CONF_SENTENCE_MAX])
{
	FILE *f = fopen(file, "re");
	const struct rule *found = NULL;
	struct person person;
	char *line = NULL;
	size_t size = 0;

	while (f && !found && getline(&line, &size, f) > 0) {
		line[strcspn(line, ":\n")] = '\0';
		if (*line != '#' && find(&person, line))
			found = find_rule(conf, &person);
	}
	if (found)
		snprintf(sentence, CONF_SENTENCE_MAX,
			 "%s: access.rule = %.400s: the user %.64s has subordinate ids (%s), and processes of these ids pass this rule: "
			 "allow the users who may, and deny * at the end", found->where, found->text, person.name, file);
	free(line);
	if (f)
		fclose(f);
	return found;
}
