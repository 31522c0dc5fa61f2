/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Deadlocks by trying: random requests, and whether the broker refuses just those that could never be served. What can
 * be is found out by letting go: without detection, each client that waits for nothing gives all back, again and again.
 */
#include "core_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CLIENTS = 6, STEPS = 40, ROUNDS = 2000 };

struct step {
	uint32_t conn;
	char words[64];
};

struct round {
	uint64_t random;
	size_t count;
	struct step steps[STEPS + CLIENTS];
	int owner[CLIENTS]; /* 0: by itself */
	bool waits[CLIENTS], queues;
};

static uint32_t below(struct round *r, uint32_t n)
{
	r->random = r->random * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(r->random >> 33) % n;
}

static bool answered(struct fixture *f, uint32_t conn)
{
	bool any = f->replies[conn].len;

	bytes_clear(&f->replies[conn]);
	return any;
}

static void choose(struct round *r, char *words, size_t size)
{
	static const char *const locks[] = { "a", "b" };
	const char *lock = locks[below(r, 2)];

	switch (below(r, r->queues ? 8 : 7)) {
	case 0:
	case 1:
		snprintf(words, size, "LOCK %s%s", lock, below(r, 2) ? " SHARED" : "");
		break;
	case 2:
	case 3:
		snprintf(words, size, "ACQUIRE s LIMIT 3 COUNT %u", 1 + below(r, 3));
		break;
	case 4:
		snprintf(words, size, "ACQUIRE t LIMIT 2");
		break;
	case 5:
		if (below(r, 2))
			snprintf(words, size, "UNLOCK %s", lock);
		else
			snprintf(words, size, "RELEASE s");
		break;
	case 6:
		snprintf(words, size, "ACQUIRE s LIMIT 3 COUNT %u WAIT 0", 1 + below(r, 3));
		break;
	case 7:
		snprintf(words, size, "ENQUEUE %s%s", lock, below(r, 2) ? " SHARED" : "");
		break;
	}
}

static struct fixture *begin(bool detection)
{
	struct fixture *f = fixture_new(true);

	f->conf.deadlock_detection = detection;
	fixture_start(f);
	for (uint32_t conn = 0; conn < CLIENTS; conn++)
		fixture_connect(f, conn);
	return f;
}

/* A search may go on in later events. */
static void ask(struct fixture *f, const struct step *s)
{
	fixture_ask(f, s->conn, s->words);
	while (broker_has_work(f->broker))
		fixture_simple(f, EVENT_TIME, 0);
}

static void say(struct fixture *f, const struct step *s, bool waits[CLIENTS])
{
	ask(f, s);
	waits[s->conn] = true;
	for (uint32_t conn = 0; conn < CLIENTS; conn++)
		if (answered(f, conn))
			waits[conn] = false;
}

/* Clients of one owner keep what they have until none of them waits. */
static bool may_let_go(const struct round *r, const bool waits[CLIENTS], uint32_t conn)
{
	for (uint32_t other = 0; other < CLIENTS; other++)
		if (waits[other] && (other == conn || (r->owner[conn] && r->owner[other] == r->owner[conn])))
			return false;
	return true;
}

static void let_go(struct fixture *f, const struct round *r, bool waits[CLIENTS])
{
	for (int again = 0; again <= CLIENTS; again++)
		for (uint32_t conn = 0; conn < CLIENTS; conn++)
			if (may_let_go(r, waits, conn))
				say(f, &(struct step){ conn, "RESET" }, waits);
}

/* The request that was refused, had it waited. */
static bool is_served(const struct round *r, const struct step *refused)
{
	struct fixture *f = begin(false);
	bool waits[CLIENTS] = { false };

	for (size_t i = 0; i < r->count; i++)
		say(f, &r->steps[i], waits);
	say(f, refused, waits);
	let_go(f, r, waits);
	fixture_free(f);
	return !waits[refused->conn];
}

static void show(const struct round *r, const struct step *last, const char *why)
{
	for (size_t i = 0; i < r->count; i++)
		print_message("%u: %s\n", r->steps[i].conn, r->steps[i].words);
	if (last)
		print_message("%u: %s\n", last->conn, last->words);
	fail_msg("%s", why);
}

static void own(struct fixture *f, struct round *r)
{
	for (uint32_t conn = 0; conn < CLIENTS; conn++) {
		struct step *s = &r->steps[r->count];

		r->owner[conn] = (int)below(r, 8) / 5 * (int)(1 + below(r, 2));
		if (!r->owner[conn])
			continue;
		*s = (struct step){ .conn = conn };
		snprintf(s->words, sizeof(s->words), "CLIENT SETINFO OWNER x%d", r->owner[conn]);
		say(f, s, r->waits);
		r->count++;
	}
}

static size_t play(uint64_t seed)
{
	struct round r = { .random = seed * 0x9e3779b97f4a7c15u, .queues = seed % 4 == 0 };
	struct fixture *f = begin(true);
	size_t refusals = 0;

	own(f, &r);
	for (int i = 0; i < STEPS; i++) {
		struct step s = { .conn = below(&r, CLIENTS) };

		if (r.waits[s.conn])
			continue;
		choose(&r, s.words, sizeof(s.words));
		ask(f, &s);
		if (f->replies[s.conn].len > 9 && memcmp(f->replies[s.conn].data, "-DEADLOCK", 9) == 0) {
			bool closes = memmem(f->replies[s.conn].data, f->replies[s.conn].len, "this client waits for", 21);

			bytes_clear(&f->replies[s.conn]);
			refusals += closes;
			if (closes && is_served(&r, &s))
				show(&r, &s, "refused, and could be served");
			continue;
		}
		r.waits[s.conn] = true;
		for (uint32_t conn = 0; conn < CLIENTS; conn++)
			if (answered(f, conn))
				r.waits[conn] = false;
		r.steps[r.count++] = s;
	}
	let_go(f, &r, r.waits);
	for (uint32_t conn = 0; conn < CLIENTS && !r.queues; conn++)
		if (r.waits[conn])
			show(&r, NULL, "not refused, and can never be served");
	fixture_free(f);
	return refusals;
}

TEST_WITH(what_could_never_be_served_is_refused_and_nothing_else, NULL, NULL)
{
	const char *rounds = getenv("ROUNDS"), *first = getenv("FIRST");
	uint64_t from = first ? strtoull(first, NULL, 10) : 1;
	size_t refusals = 0;

	(void)state;
	for (uint64_t seed = from; seed < from + (rounds ? strtoull(rounds, NULL, 10) : ROUNDS); seed++)
		refusals += play(seed);
	print_message("%zu refused\n", refusals);
	assert_true(refusals > 100);
}
