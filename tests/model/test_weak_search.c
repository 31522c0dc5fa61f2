/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every order in which a weakly ordered machine may perform the accesses to words that processes share (weak_model.h): no
 * terms of another delegation, no lock without a proof, no view of two sessions. And each order of the code that is left out
 * is found to be missing.
 *
 * With words of rules as arguments, e.g. `test_weak_search PAGE_END`: prints how it goes wrong.
 */
#include "tests/model/search.h"
#include "tests/model/weak_model.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <cmocka.h>

enum { STATES_MAX = 1 << 16 };

struct seeker {
	struct model_walk walk; /* first: the steps lead back from it */
	struct search search;
};

static void to(struct model_walk *walk, const struct model *next, const char *step, const char *bad)
{
	struct seeker *s = (struct seeker *)walk;

	search_add(&s->search, next, step, bad);
}

static const char *search_scope(const struct weak_scope *scope, int rule, uint32_t *ret_count, bool tell)
{
	struct seeker s = { .walk = { scope, rule, to } };
	struct model m = weak_model_start(scope, rule);

	search_begin(&s.search, sizeof(m), STATES_MAX, &m);
	while (search_next(&s.search, &m))
		weak_model_steps(&s.walk, &m);
	return search_end(&s.search, ret_count, tell);
}

static const char *search(int number, int rule, uint32_t *ret_count, bool tell)
{
	return search_scope(&weak_scopes[number], rule, ret_count, tell);
}

/* Otherwise that nothing is found would say nothing. */
static void the_machine_reorders_what_it_may_and_nothing_else(void **state)
{
	for (int i = 0; i < LITMUS; i++) {
		const struct weak_litmus *l = &weak_litmus[i];
		uint32_t count;
		const char *found = search_scope(&l->scope, MODEL_RULE_COUNT, &count, !l->allowed);

		printf("%-32s %8u states: %s\n", l->scope.name, count, found ? found : "nothing");
		assert_int_equal(found != NULL, l->allowed);
	}
}

static const struct model_test_rule rules[] = { MODEL_RULES(MODEL_RULE_ROW) };

int main(int argc, char **argv)
{
	const char *names[SCOPES];
	const struct model_test test = {
		names, SCOPES, rules, MODEL_RULE_COUNT, search, the_machine_reorders_what_it_may_and_nothing_else,
	};

	for (int i = 0; i < SCOPES; i++)
		names[i] = weak_scopes[i].name;
	return model_test_main(&test, argc, argv);
}
