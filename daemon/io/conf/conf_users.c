/* SPDX-License-Identifier: Apache-2.0 */
#include "io/conf/conf_users.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/rule_names.h"

enum { USER_BYTES_MAX = 100 };

static const char own_section[] = "limits", kept_key[] = "by_unit_was";

/* A name or a number; blanks around it are not part of it. False: there is none left. */
static bool next_user(const char **list, const char **ret, size_t *ret_len)
{
	const char *begin = *list;
	size_t len = strcspn(begin, ",");

	if (!*begin)
		return false;
	*list = begin + len + (begin[len] == ',');
	while (len && isspace((unsigned char)*begin)) {
		begin++;
		len--;
	}
	while (len && isspace((unsigned char)begin[len - 1]))
		len--;
	*ret = begin;
	*ret_len = len;
	return true;
}

/* Below 2^32 - 1, which stands for no user. */
static bool is_number(const char *user, size_t len, uint32_t *ret)
{
	uint64_t value = 0;

	if (len == 0 || len > 10)
		return false;
	for (size_t i = 0; i < len; i++) {
		if (!isdigit((unsigned char)user[i]))
			return false;
		value = 10 * value + (uint64_t)(user[i] - '0');
	}
	*ret = (uint32_t)value;
	return value < UINT32_MAX;
}

/* What tools that make users accept, and more; a number that is none is no name either. */
static bool is_name(const char *user, size_t len)
{
	static const char marks[] = "._-$@\\";

	if (len == 0 || len > USER_BYTES_MAX || isdigit((unsigned char)user[0]) || strchr("-@", user[0]))
		return false;
	for (size_t i = 0; i < len; i++)
		if (!isalnum((unsigned char)user[i]) && !strchr(marks, user[i]) && (unsigned char)user[i] < 0x80)
			return false;
	return true;
}

bool conf_users_are(const char *list)
{
	size_t count = 0, len;
	const char *user;
	uint32_t uid;

	while (next_user(&list, &user, &len)) {
		/* A comma at the end of a line means that the list continues in the next line. */
		if (len == 0 && !*list && count)
			return true;
		if (++count > CONF_USERS_MAX || (!is_number(user, len, &uid) && !is_name(user, len)))
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

static int resolve(struct conf *conf, const char *user, size_t len, const char *where, char error[CONF_ERROR_MAX])
{
	char name[USER_BYTES_MAX + 1], sentence[RULE_ERROR_MAX];
	uint32_t uid;
	int rc;

	memcpy(name, user, len);
	name[len] = '\0';
	rc = is_number(name, len, &uid) ? 0 : rule_user(name, &uid, sentence);
	if (rc < 0)
		conf_fail(error, where, "%s", sentence);
	else
		add(conf, uid);
	return rc;
}

int conf_users_resolve(struct conf *conf, const char *where, char error[CONF_ERROR_MAX])
{
	const char *rest = conf->by_unit, *user;
	size_t len;
	int rc = 0;

	while (!conf->kept && next_user(&rest, &user, &len))
		if (len)
			rc = rule_worse(rc, resolve(conf, user, len, where, error));
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
	fprintf(out, "[%s]\n", own_section);
	for (size_t i = 0; i < conf->broker.limits.by_unit_count; i++)
		fprintf(out, "%s = %" PRIu32 "\n", kept_key, conf->broker.limits.by_unit[i]);
}

bool conf_users_is_kept(const struct conf *conf, const struct conf_section *section, const char *name)
{
	return conf->kept && strcmp(section->name, own_section) == 0 && strcmp(name, kept_key) == 0;
}

int conf_users_take_kept(struct conf *conf, const char *value, const char *where, char error[CONF_ERROR_MAX])
{
	uint32_t uid;

	if (!is_number(value, strlen(value), &uid) || conf->broker.limits.by_unit_count == CONF_USERS_MAX)
		return conf_fail(error, where, "%s.%s = %.200s: not the number of a user", own_section, kept_key, value);
	add(conf, uid);
	return 0;
}

void conf_users_free(struct conf *conf)
{
	mem_free((void *)conf->broker.limits.by_unit);
}
