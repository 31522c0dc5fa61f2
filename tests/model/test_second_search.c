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

#include "tests/model/second_model.h"

enum { STATES_MAX = 1 << 23, TABLE = STATES_MAX * 2 };

struct search {
	struct model_walk walk; /* first: the steps lead back from it */
	struct model *states;
	uint32_t *parents, *table;
	const char **steps;
	uint32_t count, at;
	const char *bad, *bad_step; /* what was found, after the state `at` and the step that follows */
};

static uint64_t hash(const struct model *m)
{
	const uint8_t *bytes = (const uint8_t *)m;
	uint64_t h = 0x9e3779b97f4a7c15;

	for (size_t i = 0; i < sizeof(*m); i++)
		h = (h ^ bytes[i]) * 0x100000001b3;
	return (h ^ h >> 29) * 0xff51afd7ed558ccd >> 20;
}

static void add(struct search *s, const struct model *m, const char *step)
{
	uint64_t i = hash(m) % TABLE;

	for (; s->table[i]; i = (i + 1) % TABLE)
		if (memcmp(&s->states[s->table[i] - 1], m, sizeof(*m)) == 0)
			return;
	if (s->count == STATES_MAX) {
		s->bad = "too many states";
		return;
	}
	s->states[s->count] = *m;
	s->parents[s->count] = s->at;
	s->steps[s->count] = step;
	s->table[i] = ++s->count;
}

static void to(struct model_walk *walk, const struct model *next, const char *step, const char *bad)
{
	struct search *s = (struct search *)walk;

	if (s->bad)
		return;
	s->bad = bad ? bad : second_model_bad(next);
	s->bad_step = step;
	if (!s->bad)
		add(s, next, step);
}

static void *room(size_t n, size_t size)
{
	void *p = calloc(n, size);

	if (!p)
		abort();
	return p;
}

/* NULL: nothing bad. With `how`, how it came to that. */
static const char *search(const struct model_scope *scope, uint32_t *ret_count, bool how)
{
	struct search s = { .walk = { scope, to } };
	const struct model start = second_model_start(scope);

	s.states = room(STATES_MAX, sizeof(*s.states));
	s.parents = room(STATES_MAX, sizeof(*s.parents));
	s.steps = room(STATES_MAX, sizeof(*s.steps));
	s.table = room(TABLE, sizeof(*s.table));
	add(&s, &start, "start");
	for (; s.at < s.count && !s.bad; s.at++) {
		const struct model m = s.states[s.at];

		second_model_steps(&s.walk, &m);
	}
	*ret_count = s.count;
	if (how && s.bad) {
		printf("%s after (the last first): %s", s.bad, s.bad_step);
		for (uint32_t i = s.at - 1; i; i = s.parents[i])
			printf(" | %s", s.steps[i]);
		printf("\n");
	}
	free(s.states);
	free(s.parents);
	free((void *)s.steps);
	free(s.table);
	return s.bad;
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
