/* SPDX-License-Identifier: Apache-2.0 */
#include "core/port/access.h"

#include <assert.h>

#include "base/glob.h"
#include "base/unit_name.h"

static bool is_in_group(const struct access_peer *peer, const struct rule *r)
{
	assert(r->low == r->high);
	for (size_t i = 0; i < peer->group_count; i++)
		if (peer->groups[i] == r->low)
			return true;
	return !peer->groups_known && !r->allows;
}

static bool is_in_unit(const struct access_peer *peer, const struct rule *r)
{
	return slice_eq(peer->unit, r->name) || (unit_is_unknown(peer->unit) && !r->allows);
}

static bool concerns(const struct rule *r, const struct access_peer *peer)
{
	switch (r->who) {
	case RULE_EVERYBODY:
		return true;
	case RULE_USER:
		return peer->uid >= r->low && peer->uid <= r->high;
	case RULE_GROUP:
		return is_in_group(peer, r);
	case RULE_UNIT:
		return is_in_unit(peer, r);
	}
	return false;
}

static bool is_usual(enum rule_verb verb)
{
	return verb != RULE_revoke && verb != RULE_limit;
}

unsigned int access_verbs(const struct access_rules *rules, const struct access_peer *peer)
{
	unsigned int verbs = 0;

	for (size_t i = 0; !peer->operator && i < rules->count; i++)
		if (concerns(&rules->list[i], peer))
			verbs |= rules->list[i].verbs;
	return verbs;
}

bool access_may(const struct access_rules *rules, const struct access_peer *peer, enum rule_verb verb, struct slice name,
		const struct rule **ret_rule)
{
	size_t steps = 0;

	if (ret_rule)
		*ret_rule = NULL;
	if (peer->operator)
		return true;
	for (size_t i = 0; rules->verbs >> verb & 1 && i < rules->count; i++) {
		const struct rule *r = &rules->list[i];

		if (!(r->verbs >> verb & 1) || !concerns(r, peer) || !glob_matches(r->glob, name, &steps))
			continue;
		if (ret_rule)
			*ret_rule = r;
		return r->allows;
	}
	return is_usual(verb);
}
