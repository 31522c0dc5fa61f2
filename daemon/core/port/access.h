/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who may do what, by the rules of the configuration (base/rule.h): the first one that matches counts, in their order.
 *
 *   an operator               -> may, whatever the rules say
 *   the first rule that names its user, group or unit, the lock and the verb -> as that says
 *   none                      -> may, but not revoke what others hold, and not set the limit of a semaphore
 *
 * Whose groups are not all known is taken to be in the group of a rule that denies, and not in that of one that allows; and
 * so is whose unit is not known in its unit.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/rule.h"
#include "protocol/slice.h"

/* Who asks. */
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
	unsigned int verbs; /* those that any rule names */
};

/* The verbs of the rules that concern it, 1 << enum rule_verb: with the others no rule matches, whatever the name. */
unsigned int access_verbs(const struct access_rules *rules, const struct access_peer *peer);
/* `ret_rule` may be NULL. *ret_rule NULL: no rule matches. */
bool access_may(const struct access_rules *rules, const struct access_peer *peer, enum rule_verb verb, struct slice name,
		const struct rule **ret_rule);
