/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every order of the steps of a delegation (delegation_model.h): no two holders, no loss that an unlock hides, nobody who
 * waits for ever. And each rule, broken, is found to be broken.
 *
 * With words of rules as arguments, e.g. `test_delegation_search NO_EPOCH`: prints how it goes wrong.
 */
#include "tests/model/delegation_model.h"
#include "tests/model/search.h"

enum { STATES_MAX = 1 << 22 };

struct seeker {
	struct model_walk walk; /* first: the steps lead back from it */
	struct search search;
	bool fair; /* a step that has to come some time leads from this state */
};

static void to(struct model_walk *walk, const struct model *next, const char *step, bool fair, const char *bad)
{
	struct seeker *s = (struct seeker *)walk;

	s->fair |= fair;
	search_add(&s->search, next, step, bad ? bad : model_bad(walk->scope, next));
}

static void look_from(struct seeker *s, const struct model *m)
{
	s->fair = false;
	model_process_steps(&s->walk, m);
	model_daemon_steps(&s->walk, m);
	model_other_steps(&s->walk, m);
	if (!s->fair && (m->q == Q_WAITS || m->r_waits))
		search_add(&s->search, m, "", "somebody waits for ever");
}

/* ---- what is searched ---- */

#define COMMON .p_exclusive = true

enum { LOSS, LOSSES, KILL, REVIVAL, HAND_OVER, LEASE, READERS, READER, NAMES, SCOPES };

static const struct model_scope scopes[SCOPES] = {
	[LOSS] = { COMMON, .force = true, .losses = 1, .generations = 2, .p_dies = true },
	[LOSSES] = { COMMON, .losses = 2, .generations = 3 },
	[KILL] = { COMMON, .dies = true, .losses = 1, .generations = 2 },
	[REVIVAL] = { COMMON, .dies = true, .page_inherited = true, .losses = 1, .generations = 2 },
	[HAND_OVER] = { COMMON, .hand_over = true, .force = true, .generations = 2 },
	[LEASE] = { COMMON, .lease = true, .hand_over = true, .losses = 1, .generations = 2 },
	[READERS] = { .p_shared = true, .q_shared = true, .losses = 1, .generations = 2 },
	[READER] = { COMMON, .p_shared = true, .force = true, .losses = 1, .generations = 2 },
	[NAMES] = { COMMON, .two_names = true, .losses = 1, .generations = 2 },
};

static const char *const names[SCOPES] = {
	[LOSS] = "a loss, force, P's death",
	[LOSSES] = "two losses",
	[KILL] = "a kill, a loss",
	[REVIVAL] = "a kill that is survived, a loss",
	[HAND_OVER] = "a hand-over, force",
	[LEASE] = "a lease, a hand-over, a loss",
	[READERS] = "readers and a writer",
	[READER] = "a reader among writers",
	[NAMES] = "two names for a slot",
};

static const char *search(int number, int rule, uint32_t *ret_count, bool tell)
{
	struct model_scope scope = scopes[number];
	struct seeker s = { .walk = { &scope, to } };
	struct model m = model_start();

	scope.broken = (enum model_rule)rule;
	search_begin(&s.search, sizeof(m), STATES_MAX, &m);
	while (search_next(&s.search, &m))
		look_from(&s, &m);
	return search_end(&s.search, ret_count, tell);
}

static const struct model_test_rule rules[] = { MODEL_RULES(MODEL_RULE_ROW) };

int main(int argc, char **argv)
{
	const struct model_test test = { names, SCOPES, rules, MODEL_RULE_COUNT, search, NULL };

	return model_test_main(&test, argc, argv);
}
