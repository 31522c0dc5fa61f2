/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The test of a model: nothing goes wrong in any of its scopes; and each of its rules, broken in the scope that shows what
 * it is for, is found to be broken.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct model_test {
	const char *const *scopes; /* their names */
	int scope_count;
	const struct model_test_rule {
		const char *name;
		int scope;
	} *rules;
	int rule_count;
	/* Searches a scope; `rule` is broken in it, or with rule_count none. As search_end(). */
	const char *(*search)(int scope, int rule, uint32_t *ret_count, bool tell);
};

/* Runs it; with words of rules as arguments, prints how it goes wrong without each. Returns main()'s status. */
int model_test_main(const struct model_test *test, int argc, char **argv);
