/* SPDX-License-Identifier: Apache-2.0 */
#include "io/conf/conf_access.h"

#include <ctype.h>
#include <grp.h>
#include <inttypes.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/rule.h"
#include "base/rule_names.h"

enum { USER_BYTES_MAX = 100 };

static const char users_section[] = "limits", users_key[] = "by_unit_was";

/* A name or a number; blanks around it are not part of it. False: there is none left. */
static bool next_user(struct slice *list, struct slice *ret)
{
	if (!list->len)
		return false;
	*ret = slice_cut(list, ',');
	while (ret->len && isspace((unsigned char)*ret->data))
		*ret = (struct slice){ ret->data + 1, ret->len - 1 };
	while (ret->len && isspace((unsigned char)ret->data[ret->len - 1]))
		ret->len--;
	return true;
}

/* What tools that make users accept, and more; a number that is none is no name either. */
static bool is_name(struct slice user)
{
	static const char marks[] = "._-$@\\";

	if (user.len == 0 || user.len > USER_BYTES_MAX || isdigit((unsigned char)*user.data) ||
	    strchr("-@", *user.data))
		return false;
	for (size_t i = 0; i < user.len; i++)
		if (!isalnum((unsigned char)user.data[i]) && !strchr(marks, user.data[i]) &&
		    (unsigned char)user.data[i] < 0x80)
			return false;
	return true;
}

bool conf_users_are(const char *list)
{
	struct slice rest = slice_of(list), user;
	size_t count = 0;
	uint32_t uid;

	while (next_user(&rest, &user)) {
		/* A comma at the end of a line means that the list continues in the next line. */
		if (!user.len && !rest.len && count)
			return true;
		if (++count > CONF_USERS_MAX || (!rule_id(user, &uid) && !is_name(user)))
			return false;
	}
	return true;
}

static void add(struct conf *conf, uint32_t uid)
{
	struct broker_limits *limits = &conf->broker.limits;
	uint32_t *uids = mem_resize((void *)limits->by_unit, (limits->by_unit_count + 1) * sizeof(uid));

	uids[limits->by_unit_count++] = uid;
	limits->by_unit = uids;
}

static int resolve(struct conf *conf, struct slice user, const char *where, char error[CONF_ERROR_MAX])
{
	char name[USER_BYTES_MAX + 1], sentence[RULE_ERROR_MAX];
	uint32_t uid;
	int rc;

	snprintf(name, sizeof(name), "%.*s", (int)user.len, user.data);
	rc = rule_id(user, &uid) ? 0 : rule_user(name, &uid, sentence);
	if (rc < 0)
		conf_fail(error, where, "%s", sentence);
	else
		add(conf, uid);
	return rc;
}

int conf_users_resolve(struct conf *conf, const char *where, char error[CONF_ERROR_MAX])
{
	struct slice rest = slice_of(conf->by_unit), user;
	int rc = 0;

	while (!conf->kept && next_user(&rest, &user))
		if (user.len)
			rc = rule_worse(rc, resolve(conf, user, where, error));
	return rc;
}

bool conf_users_same(const struct conf *a, const struct conf *b)
{
	const struct broker_limits *of_a = &a->broker.limits, *of_b = &b->broker.limits;

	if (strcmp(a->by_unit, b->by_unit) != 0 || of_a->by_unit_count != of_b->by_unit_count)
		return false;
	return !of_a->by_unit_count || memcmp(of_a->by_unit, of_b->by_unit, of_a->by_unit_count * sizeof(uint32_t)) == 0;
}

void conf_users_keep(const struct conf *conf, FILE *out)
{
	fprintf(out, "[%s]\n", users_section);
	for (size_t i = 0; i < conf->broker.limits.by_unit_count; i++)
		fprintf(out, "%s = %" PRIu32 "\n", users_key, conf->broker.limits.by_unit[i]);
}

bool conf_users_is_kept(const struct conf *conf, const struct conf_section *section, const char *name)
{
	return conf->kept && strcmp(section->name, users_section) == 0 && strcmp(name, users_key) == 0;
}

int conf_users_take_kept(struct conf *conf, const char *value, const char *where, char error[CONF_ERROR_MAX])
{
	uint32_t uid;

	if (!rule_id(slice_of(value), &uid) || conf->broker.limits.by_unit_count == CONF_USERS_MAX)
		return conf_fail(error, where, "%s.%s = %.200s: not the number of a user", users_section, users_key, value);
	add(conf, uid);
	return 0;
}

void conf_users_free(struct conf *conf)
{
	mem_free((void *)conf->broker.limits.by_unit);
}

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
		return conf_fail(error, r->where, "%s.%s = %.200s: not a rule of the earlier process", own_section,
				 kept_key, value);
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

/* Both are for the same ones and for the same names. */
static bool is_beside(const struct rule *a, const struct rule *b)
{
	bool same = a->who == RULE_UNIT ? slice_eq(a->name, b->name) : a->low == b->low && a->high == b->high;

	return a->who == b->who && (a->who == RULE_EVERYBODY || same) && slice_eq(a->pattern, b->pattern);
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
	return slice_eq(r->pattern, SLICE("*"));
}

/* Everybody is denied the same: what stands behind the allowed ones. */
static bool is_covered(const struct conf *conf, const struct rule *r)
{
	for (size_t i = 0; i < conf->broker.access.count; i++) {
		const struct rule *other = &conf->broker.access.list[i];

		if (other->who == RULE_EVERYBODY && !other->allows && (other->verbs & r->verbs) == r->verbs &&
		    (slice_eq(other->pattern, r->pattern) || is_all_names(other)))
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
