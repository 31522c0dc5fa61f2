/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Searches every order of the steps of several processes to which one lock is delegated (readers_model.h). Nobody is inside
 * beside a writer. Once all words are back, no process takes one past a waiting writer. No loss is hidden. Nobody waits for
 * ever. For each rule that is broken, the search finds an error.
 *
 * With names of rules as arguments, e.g. `test_readers_search LEDGER_FIRST`: prints the steps that lead to the error.
 */
#include <string.h>

#include "tests/model/readers_model.h"
#include "tests/model/search.h"

enum { STATES_MAX = 1 << 22 };

struct seeker {
	struct model_walk walk; /* first member: to() casts it back to the seeker */
	struct search search;
	bool fair; /* a fair step leads from this state */
};

/* The processes are alike: the order of their bytes is the one that is kept. */
static void sort(struct model *m)
{
	for (int i = 1; i < PROCESSES; i++) {
		for (int k = i; k && memcmp(&m->p[k - 1], &m->p[k], sizeof(m->p[k])) > 0; k--) {
			struct model_process other = m->p[k];

			m->p[k] = m->p[k - 1];
			m->p[k - 1] = other;
		}
	}
}

static void to(struct model_walk *walk, const struct model *next, const char *step, bool fair, const char *bad)
{
	struct seeker *s = (struct seeker *)walk;
	struct model m = *next;

	s->fair |= fair;
	sort(&m);
	search_add(&s->search, &m, step, bad ? bad : readers_model_bad(&m));
}

static void look_from(struct seeker *s, const struct model *m)
{
	s->fair = false;
	readers_model_steps(&s->walk, m);
	if (!s->fair && readers_model_waits(m))
		search_add(&s->search, m, "", "somebody waits for ever");
}

/* ---- what is searched ---- */

enum { PAIR, THREE, DEATHS, LOSS, KEPT, KILL, MODES, SCOPES };

static const struct model_scope scopes[SCOPES] = {
	[PAIR] = { .processes = 2, .generations = 2, .writer = true },
	[THREE] = { .processes = 3, .generations = 2, .writer = true },
	[DEATHS] = { .processes = 3, .generations = 1, .writer = true, .deaths = true },
	[LOSS] = { .processes = 2, .generations = 2, .loss = true },
	[KEPT] = { .processes = 3, .generations = 1, .writer = true, .kept = true },
	[KILL] = { .processes = 3, .generations = 1, .writer = true, .kill = true },
	[MODES] = { .processes = 2, .generations = 2, .modes = true, .kept = true, .writer = true },
};

static const char *const names[SCOPES] = {
	[PAIR] = "two readers and a writer",
	[THREE] = "three readers and a writer",
	[DEATHS] = "readers that die",
	[LOSS] = "readers, another host, a lost session",
	[KEPT] = "a kill that readers survive",
	[KILL] = "a kill",
	[MODES] = "changes of the mode",
};

static const char *search(int number, int rule, uint32_t *ret_count, bool tell)
{
	struct model_scope scope = scopes[number];
	struct seeker s = { .walk = { &scope, to } };
	struct model m = readers_model_start(&scope);

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
