/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The users and groups that the configuration names, as the name service of this host knows them. It may be remote: this may
 * block.
 */
#pragma once

#include "base/rule.h"

/* 0, or -ENOENT with a sentence: there is no such user; or it cannot be found out. */
int rule_user(const char *name, uint32_t *ret_uid, char error[RULE_ERROR_MAX]);
/* The same for what a rule names. */
int rule_resolve(struct rule *r, char error[RULE_ERROR_MAX]);
