/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/model/rules.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static void nothing_goes_wrong_in_any_order(void **state)
{
	const struct model_test *t = *state;

	for (int scope = 0; scope < t->scope_count; scope++) {
		uint32_t count;
		const char *bad = t->search(scope, t->rule_count, &count, true);

		printf("%-32s %8u states\n", t->scopes[scope], count);
		assert_null(bad);
	}
}

static const char *without(const struct model_test *t, int rule, bool tell)
{
	uint32_t count;
	const char *bad = t->search(t->rules[rule].scope, rule, &count, tell);

	printf("%-24s %8u states: %s\n", t->rules[rule].name, count, bad ? bad : "nothing");
	return bad;
}

static void every_rule_is_needed(void **state)
{
	const struct model_test *t = *state;

	for (int rule = 0; rule < t->rule_count; rule++) {
		const char *bad = without(t, rule, false);

		assert_non_null(bad);
		assert_null(strstr(bad, "too many"));
	}
}

int model_test_main(const struct model_test *test, int argc, char **argv)
{
	struct model_test t = *test;
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_prestate(nothing_goes_wrong_in_any_order, &t),
		cmocka_unit_test_prestate(every_rule_is_needed, &t),
		cmocka_unit_test(t.machine),
	};
	size_t count = sizeof(tests) / sizeof(tests[0]) - !t.machine;

	for (int i = 1; i < argc; i++)
		for (int rule = 0; rule < t.rule_count; rule++)
			if (strcmp(argv[i], t.rules[rule].name) == 0)
				without(&t, rule, true);
	return argc > 1 ? 0 : _cmocka_run_group_tests("model", tests, count, NULL, NULL);
}
