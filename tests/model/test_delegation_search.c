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

enum { STATES_MAX = 1 << 22, TABLE = STATES_MAX * 2 };

struct search {
	struct model_walk walk; /* first: the steps lead back from it */
	struct model *states;
	uint32_t *parents, *table;
	const char **steps;
	uint32_t count, at;
	bool fair;
	const char *bad;        /* what was found, after the state `at` and the step that follows */
	const char *bad_step;
};

static uint64_t hash(const struct model *m)
{
	const uint8_t *bytes = (const uint8_t *)m;
	uint64_t h = 0x9e3779b97f4a7c15, word;

	for (size_t i = 0; i < sizeof(*m); i += sizeof(word)) {
		size_t n = sizeof(*m) - i < sizeof(word) ? sizeof(*m) - i : sizeof(word);

		word = 0;
		memcpy(&word, bytes + i, n);
		h = (h ^ word) * 0xff51afd7ed558ccd;
		h ^= h >> 32;
	}
	return h;
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

static void to(struct model_walk *walk, const struct model *next, const char *step, bool fair, const char *bad)
{
	struct search *s = (struct search *)walk;

	s->fair |= fair;
	if (s->bad)
		return;
	if (!bad)
		bad = model_bad(walk->scope, next);
	if (bad) {
		s->bad = bad;
		s->bad_step = step;
		return;
	}
	add(s, next, step);
}

static void look_from(struct search *s, uint32_t at)
{
	const struct model m = s->states[at];

	s->at = at;
	s->fair = false;
	model_process_steps(&s->walk, &m);
	model_daemon_steps(&s->walk, &m);
	model_other_steps(&s->walk, &m);
	if (!s->bad && !s->fair && (m.q == Q_WAITS || m.r_waits)) {
		s->bad = "somebody waits for ever";
		s->bad_step = "";
	}
}

static void *room(size_t n, size_t size)
{
	void *p = calloc(n, size);

	if (!p)
		abort();
	return p;
}

/* NULL: nothing bad. With `tell`, how it came to that. */
static const char *search(const struct model_scope *scope, uint32_t *ret_count, bool tell)
{
	struct search s = { .walk = { scope, to } };
	const struct model start = model_start();
	uint32_t at;

	s.states = room(STATES_MAX, sizeof(*s.states));
	s.parents = room(STATES_MAX, sizeof(*s.parents));
	s.steps = room(STATES_MAX, sizeof(*s.steps));
	s.table = room(TABLE, sizeof(*s.table));
	add(&s, &start, "start");
	for (at = 0; at < s.count && !s.bad; at++)
		look_from(&s, at);
	*ret_count = s.count;
	if (tell && s.bad) {
		printf("%s after (the last first): %s", s.bad, s.bad_step);
		for (uint32_t i = s.at; i; i = s.parents[i])
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
