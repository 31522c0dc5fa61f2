/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every order of the steps of a claim that is second in line (second_model.h): it never holds unless it was first, and never
 * waits for ever. And each rule, broken, is found to be broken.
 *
 * With words of rules as arguments, e.g. `test_second_search OWN_UNANSWERED`: prints how it goes wrong.
 */
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

/* ---- what is searched ---- */

enum { PLAIN, LAGS, CONNECTIONS, NEXT, BY_HAND, MODES, SCOPES };

static const struct model_scope scopes[SCOPES] = {
	[PLAIN] = { .numbers = 4, .joins = 2, .writes = 1 },
	[LAGS] = { .numbers = 4, .joins = 1, .connections = 1, .lag = 2 },
	[CONNECTIONS] = { .numbers = 4, .joins = 1, .connections = 2 },
	[NEXT] = { .numbers = 4, .joins = 3, .next = true },
	[BY_HAND] = { .numbers = 3, .joins = 1, .writes = 1, .by_hand = 1 },
	[MODES] = { .numbers = 4, .joins = 2, .modes = true },
};

static const char *const names[SCOPES] = {
	[PLAIN] = "two claims, a write",
	[LAGS] = "a server that lags behind",
	[CONNECTIONS] = "two connections",
	[NEXT] = "a claim behind a held one",
	[BY_HAND] = "znodes made by hand",
	[MODES] = "readers and writers",
};

static const char *search(int number, int rule, uint32_t *ret_count, bool tell)
{
	struct model_scope scope = scopes[number];
	struct seeker s = { .walk = { &scope, to } };
	struct model m = second_model_start(&scope);

	scope.broken = (enum model_rule)rule;
	search_begin(&s.search, sizeof(m), STATES_MAX, &m);
	while (search_next(&s.search, &m))
		second_model_steps(&s.walk, &m);
	return search_end(&s.search, ret_count, tell);
}

static const struct model_test_rule rules[] = { MODEL_RULES(MODEL_RULE_ROW) };

int main(int argc, char **argv)
{
	const struct model_test test = { names, SCOPES, rules, MODEL_RULE_COUNT, search, NULL };

	return model_test_main(&test, argc, argv);
}
