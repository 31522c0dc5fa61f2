/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The test of a model: nothing goes wrong in any of its scopes, and without any one of its rules something goes wrong, in
 * the scope that shows the purpose of that rule.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/*
 * A model's header lists the rules of the model: #define MODEL_RULES(X) X(name, scope, text) ... In that scope, the search
 * finds a violation if the rule is broken. The text says how the rule is broken.
 */
#define MODEL_RULE_NUMBER(name, scope, text) MODEL_##name,
#define MODEL_RULE_ROW(name, scope, text) { #name, scope },
#define BROKEN(walk, rule) ((walk)->scope->broken == MODEL_##rule)

struct model_test {
	const char *const *scopes; /* their names */
	int scope_count;
	const struct model_test_rule {
		const char *name;
		int scope;
	} *rules;
	int rule_count;
	/* Searches a scope with `rule` broken (rule_count: none). Returns what search_end() returns. */
	const char *(*search)(int scope, int rule, uint32_t *ret_count, bool tell);
	void (*machine)(void **state); /* NULL, or a test of what the model is made of */
};

/* Runs the test. If the arguments name rules, prints what goes wrong without each of them. Returns main()'s status. */
int model_test_main(const struct model_test *test, int argc, char **argv);
