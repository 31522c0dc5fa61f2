/* SPDX-License-Identifier: Apache-2.0 */
/* The users and groups that the configuration names (name_service.h): this may block. */
#pragma once

#include <errno.h>

#include "base/rule.h"

/* 0, or with a sentence: -ENOENT, there is no such user; -EAGAIN, that cannot be found out now. */
int rule_user(const char *name, uint32_t *ret_uid, char error[RULE_ERROR_MAX]);
/* The same for the user or group of a rule. */
int rule_resolve(struct rule *r, char error[RULE_ERROR_MAX]);
/* The worse of two such results: an error that stays is worse than one that may pass. */
static inline int rule_worse(int one, int other)
{
	return one == 0 || other == -ENOENT ? other : one;
}
