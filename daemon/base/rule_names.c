/* SPDX-License-Identifier: Apache-2.0 */
#include "base/rule_names.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/name_service.h"

enum { NAME_MAX_BYTES = 256 };

static int find(bool group, const char *name, uint32_t *ret, char error[RULE_ERROR_MAX])
{
	const char *kind = group ? "group" : "user";
	int rc = -ENOENT;

	if (strlen(name) < NAME_MAX_BYTES - 1)
		rc = name_service_find(group ? NAME_GROUP : NAME_USER, name, ret);
	if (rc == 0)
		return 0;
	if (rc == -ENOENT)
		snprintf(error, RULE_ERROR_MAX, "there is no %s %.128s; make it, or name its number", kind, name);
	else
		snprintf(error, RULE_ERROR_MAX, "the %s %.128s cannot be looked up: %s", kind, name, strerror(-rc));
	return rc == -ENOENT ? -ENOENT : -EAGAIN;
}

int rule_user(const char *name, uint32_t *ret_uid, char error[RULE_ERROR_MAX])
{
	return find(false, name, ret_uid, error);
}

int rule_resolve(struct rule *r, char error[RULE_ERROR_MAX])
{
	char name[NAME_MAX_BYTES];
	uint32_t number;
	int rc;

	if ((r->who != RULE_USER && r->who != RULE_GROUP) || r->low <= r->high)
		return 0;
	snprintf(name, sizeof(name), "%.*s", (int)r->name.len, r->name.data);
	rc = find(r->who == RULE_GROUP, name, &number, error);
	if (rc == 0)
		r->low = r->high = number;
	return rc;
}
