/* SPDX-License-Identifier: Apache-2.0 */
/* The users and groups that rules name, as the name service of this host knows them. It may be remote: this may block. */
#pragma once

#include "base/rule.h"

/* 0, or -ENOENT with a sentence: there is no such user or group; or it cannot be found out. */
int rule_resolve(struct rule *r, char error[RULE_ERROR_MAX]);
