/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Access by the rules of the configuration (base/rule.h): the first rule that matches decides, in their order.
 *
 *   an operator               -> may, whatever the rules say
 *   the first rule that names its user, group or unit, the lock and the verb -> as that says
 *   none                      -> may, but not revoke locks that others hold, and not set the limit of a semaphore
 *
 * If not all groups of a client are known, it counts as in the group of a rule that denies, and not of a rule that allows.
 * If its unit is not known, the same applies to the unit of a rule.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/rule.h"
#include "protocol/slice.h"

/* The client that asks. */
struct access_peer {
	uint32_t uid;
	struct slice unit; /* base/unit_name.h */
	const uint32_t *groups;
	size_t group_count;
	bool groups_known; /* all of them */
	bool operator;
};

struct access_rules {
	const struct rule *list;
	size_t count;
	unsigned int verbs; /* all verbs that any rule names */
};

/* The verbs of the rules that concern it, 1 << enum rule_verb: with the others no rule matches, whatever the name. */
unsigned int access_verbs(const struct access_rules *rules, const struct access_peer *peer);
/* `ret_rule` may be NULL. *ret_rule NULL: no rule matches. */
bool access_may(const struct access_rules *rules, const struct access_peer *peer, enum rule_verb verb, struct slice name,
		const struct rule **ret_rule);
