/* SPDX-License-Identifier: Apache-2.0 */
#include "base/rule_names.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>

enum { NAME_MAX_BYTES = 256, ENTRY_BYTES = 65536 };

/* 0 or an errno. */
static int look_up(bool group, const char *name, uint32_t *ret)
{
	/* The functions that return an entry of their own are not for threads. */
	static _Thread_local char text[ENTRY_BYTES];
	struct passwd user, *found_user = NULL;
	struct group entry, *found_group = NULL;
	int rc;

	if (group) {
		rc = getgrnam_r(name, &entry, text, sizeof(text), &found_group);
		*ret = found_group ? entry.gr_gid : 0;
		return found_group ? 0 : rc ? rc : ENOENT;
	}
	rc = getpwnam_r(name, &user, text, sizeof(text), &found_user);
	*ret = found_user ? user.pw_uid : 0;
	return found_user ? 0 : rc ? rc : ENOENT;
}

static int find(bool group, const char *name, uint32_t *ret, char error[RULE_ERROR_MAX])
{
	const char *kind = group ? "group" : "user";
	int rc = strlen(name) < NAME_MAX_BYTES - 1 ? look_up(group, name, ret) : ENOENT;

	if (rc == 0)
		return 0;
	if (rc == ENOENT)
		snprintf(error, RULE_ERROR_MAX, "there is no %s %.128s; make it, or name its number", kind, name);
	else
		snprintf(error, RULE_ERROR_MAX, "the %s %.128s cannot be looked up: %s", kind, name, strerror(rc));
	return -ENOENT;
}

int rule_user(const char *name, uint32_t *ret_uid, char error[RULE_ERROR_MAX])
{
	return find(false, name, ret_uid, error);
}

int rule_resolve(struct rule *r, char error[RULE_ERROR_MAX])
{
	char name[NAME_MAX_BYTES];

	if ((r->who != RULE_USER && r->who != RULE_GROUP) || r->low <= r->high)
		return 0;
	snprintf(name, sizeof(name), "%.*s", (int)r->name.len, r->name.data);
	if (find(r->who == RULE_GROUP, name, &r->low, error) < 0) {
		r->low = 1;
		return -ENOENT;
	}
	r->high = r->low;
	return 0;
}
