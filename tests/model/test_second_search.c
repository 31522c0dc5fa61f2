/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every order of the steps of a claim that is second in line (second_model.h): it never holds unless it was first, and never
 * waits for ever. And each rule, broken, is found to be broken.
 *
 * With words of rules as arguments, e.g. `test_second_search OWN_UNANSWERED`: prints how it goes wrong.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "tests/model/search.h"
#include "tests/model/second_model.h"

enum { STATES_MAX = 1 << 23 };

struct seeker {
	struct model_walk walk; /* first: the steps lead back from it */
	struct search search;
};

static void to(struct model_walk *walk, const struct model *next, const char *step, const char *bad)
{
	struct seeker *s = (struct seeker *)walk;

	search_add(&s->search, next, step, bad ? bad : second_model_bad(next));
}

/* NULL: nothing bad. With `how`, how it came to that. */
static const char *search(const struct model_scope *scope, uint32_t *ret_count, bool how)
{
	struct seeker s = { .walk = { scope, to } };
	struct model m = second_model_start(scope);

	search_begin(&s.search, sizeof(m), STATES_MAX, &m);
	while (search_next(&s.search, &m))
		second_model_steps(&s.walk, &m);
	return search_end(&s.search, ret_count, how);
}

/* ---- what is searched ---- */

enum { PLAIN, CONNECTIONS, NEXT, BY_HAND, SCOPES };

static const struct {
	const char *name;
	struct model_scope scope;
} scopes[SCOPES] = {
	[PLAIN] = { "two claims, a write", { .broken = MODEL_WHOLE, .numbers = 4, .joins = 2, .writes = 1 } },
	[CONNECTIONS] = { "two connections", { .broken = MODEL_WHOLE, .numbers = 4, .joins = 1, .connections = 2 } },
	[NEXT] = { "a claim behind a held one", { .broken = MODEL_WHOLE, .numbers = 4, .joins = 3, .next = true } },
	[BY_HAND] = { "znodes made by hand",
		      { .broken = MODEL_WHOLE, .numbers = 3, .joins = 1, .writes = 1, .by_hand = 1 } },
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

static const char *without(enum model_rule rule, bool how)
{
	struct model_scope scope = scopes[rules[rule].scope].scope;
	const char *bad;
	uint32_t count;

	scope.broken = rule;
	bad = search(&scope, &count, how);
	printf("%-24s %8u states: %s\n", rules[rule].name, count, bad ? bad : "nothing");
	return bad;
}

static void every_rule_is_needed(void **state)
{
	(void)state;
	for (int rule = 0; rule < MODEL_RULE_COUNT; rule++) {
		const char *bad = without((enum model_rule)rule, false);

		assert_non_null(bad);
		assert_null(strstr(bad, "too many"));
	}
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
