/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every order of the steps of a delegation (delegation_model.h): no two holders, no loss that an unlock hides, nobody who
 * waits for ever. And each rule, broken, is found to be broken.
 *
 * With words of rules as arguments, e.g. `test_delegation_search NO_EPOCH`: prints how it goes wrong.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

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

/* NULL: nothing bad. With `tell`, how it came to that. */
static const char *search(const struct model_scope *scope, uint32_t *ret_count, bool tell)
{
	struct seeker s = { .walk = { scope, to } };
	struct model m = model_start();

	search_begin(&s.search, sizeof(m), STATES_MAX, &m);
	while (search_next(&s.search, &m))
		look_from(&s, &m);
	return search_end(&s.search, ret_count, tell);
}

/* ---- what is searched ---- */

#define COMMON .broken = MODEL_WHOLE, .p_exclusive = true

enum { LOSS, LOSSES, KILL, REVIVAL, HAND_OVER, LEASE, READERS, READER, NAMES, SCOPES };

static const struct {
	const char *name;
	struct model_scope scope;
} scopes[SCOPES] = {
	[LOSS] = { "a loss, force, P's death", { COMMON, .force = true, .losses = 1, .generations = 2, .p_dies = true } },
	[LOSSES] = { "two losses", { COMMON, .losses = 2, .generations = 3 } },
	[KILL] = { "a kill, a loss", { COMMON, .dies = true, .losses = 1, .generations = 2 } },
	[REVIVAL] = { "a kill that is survived, a loss",
		      { COMMON, .dies = true, .page_inherited = true, .losses = 1, .generations = 2 } },
	[HAND_OVER] = { "a hand-over, force", { COMMON, .hand_over = true, .force = true, .generations = 2 } },
	[LEASE] = { "a lease, a hand-over, a loss",
		    { COMMON, .lease = true, .hand_over = true, .losses = 1, .generations = 2 } },
	[READERS] = { "readers and a writer",
		      { .broken = MODEL_WHOLE, .p_shared = true, .q_shared = true, .losses = 1, .generations = 2 } },
	[READER] = { "a reader among writers", { COMMON, .p_shared = true, .force = true, .losses = 1, .generations = 2 } },
	[NAMES] = { "two names for a slot", { COMMON, .two_names = true, .losses = 1, .generations = 2 } },
};

static void nothing_goes_wrong_in_any_order(void **state)
{
	(void)state;
	for (int i = 0; i < SCOPES; i++) {
		uint32_t count;
		const char *bad = search(&scopes[i].scope, &count, true);

		printf("%-32s %8u states\n", scopes[i].name, count);
		assert_null(bad);
	}
}

static const struct {
	const char *name;
	int scope;
} rules[] = {
#define X(name, scope, text) { #name, scope },
	MODEL_RULES(X)
#undef X
};

static const char *without(enum model_rule rule, bool tell)
{
	struct model_scope scope = scopes[rules[rule].scope].scope;
	const char *bad;
	uint32_t count;

	scope.broken = rule;
	bad = search(&scope, &count, tell);
	printf("%-24s %8u states: %s\n", rules[rule].name, count, bad ? bad : "nothing");
	return bad;
}

static void every_rule_is_needed(void **state)
{
	(void)state;
	for (int rule = 0; rule < MODEL_RULE_COUNT; rule++)
		assert_non_null(without((enum model_rule)rule, false));
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_goes_wrong_in_any_order),
		cmocka_unit_test(every_rule_is_needed),
	};

	for (int i = 1; i < argc; i++)
		for (int rule = 0; rule < MODEL_RULE_COUNT; rule++)
			if (strcmp(argv[i], rules[rule].name) == 0)
				without((enum model_rule)rule, true);
	return argc > 1 ? 0 : cmocka_run_group_tests(tests, NULL, NULL);
}
