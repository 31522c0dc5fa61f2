/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench-deadlock [ROUNDS]: how long the event takes in which a search for a deadlock looks at nearly as much as it may.
 * Prints a line for a warm cache and one for a cold one.
 *
 * It drives the broker without a daemon. Two lock groups have nearly as many members as a walk may look at. Their
 * connections came in random order, so that each look goes to another part of memory. The client that asks wants a lock
 * that the first group holds; each of the three walks looks at all of that group, and the walk for the knot meets the
 * second one. Before the event of a cold cache the program writes to more memory than the processor keeps.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/client/deadlock.h"
#include "core/state.h"

enum {
	ROUNDS = 21,
	SWEEP_BYTES = 256 << 20, /* several times what a processor's last cache has */
	LINE_BYTES = 64,
	WORDS_MAX = 8,
	ASKER, OTHER, /* connections of their own */
	MEMBERS_FROM = 16,
	MEMBERS_X = DEADLOCK_EDGES_MAX - 4,
	MEMBERS_Y = DEADLOCK_EDGES_GATHERED_MAX - MEMBERS_X - 32,
	MEMBERS = MEMBERS_X + MEMBERS_Y,
	LEAST_LOOKS = DEADLOCK_EDGES_IN_ALL - 64, /* what counts as nearly as much as it may */
};

static struct broker *broker;
static struct effects effects;
static int64_t now_ns = 1000000000000, tokens;
static uint32_t members[MEMBERS];
static char *swept;
static bool refused; /* the latest reply was that of a deadlock */

static __attribute__((noreturn)) void fail(const char *why)
{
	fprintf(stderr, "bench-deadlock: %s\n", why);
	exit(1);
}

static int64_t clock_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void sweep(void)
{
	for (size_t at = 0; at < SWEEP_BYTES; at += LINE_BYTES)
		swept[at]++;
}

/* Returns how long it took. */
static int64_t handle(const struct event *event)
{
	int64_t began_ns = clock_ns(), took_ns;

	broker_handle(broker, now_ns, event, &effects);
	took_ns = clock_ns() - began_ns;
	for (size_t i = 0; i < effects.count; i++) {
		const struct effect *e = &effects.list[i];
		struct slice text = e->type == EFFECT_REPLY ? effects_slice(&effects, e->text) : (struct slice){ 0 };

		if (e->type == EFFECT_TOKENS)
			tokens = e->limit;
		if (e->type == EFFECT_REPLY)
			refused = text.len > 9 && memcmp(text.data, "-DEADLOCK", 9) == 0;
	}
	effects_clear(&effects);
	return took_ns;
}

static void connect_as(uint32_t conn)
{
	handle(&(struct event){ .type = EVENT_CLIENT_CONNECTED, .conn = conn,
				.connected = { .pid = 100 + conn, .uid = 1000, .comm = SLICE("bench"), .privileged = true } });
}

static int64_t ask(uint32_t conn, const char *words)
{
	struct slice argv[WORDS_MAX];
	size_t argc = 0, len;

	for (; *words; words += len + (words[len] == ' ')) {
		len = strcspn(words, " ");
		argv[argc++] = (struct slice){ words, len };
	}
	return handle(&(struct event){ .type = EVENT_CLIENT_ASKED, .conn = conn, .asked = { .argc = argc, .argv = argv } });
}

static void start(void)
{
	static const struct broker_conf conf = {
		.standalone = true, .root = "/lb", .host = "alpha", .version = "bench", .boot_id = "boot",
		.session_page = "", .session_page_id = "0123", .pid = 7, .operator_socket = "/run/operator.sock",
		.session_timeout_ns = 12000000000, .tick_ns = 2000000000, .handoff_max = 64, .handoff_ns = 100000000,
		.deadlock_detection = true, .grant_min_ns = 1000000000, .stop_timeout_ns = 5000000000,
		.limits = { .clients = 2 * MEMBERS, .locks = MEMBERS, .requests_per_lock = 100, .requests_per_client = 10,
			    .requests = MEMBERS, .grants = MEMBERS, .observers = 100, .memory_bytes = 1 << 30, .user_share = 100,
			    .grants_per_client = 10, .events_per_client = 8, .output_bytes = 1 << 20,
			    .session_path_bytes = 10000, .lasting_directories = 5000 },
	};

	broker = broker_new(&conf, 42, now_ns);
	handle(&(struct event){ .type = EVENT_TIME });
	handle(&(struct event){ .type = EVENT_TOKENS, .tokens.limit = tokens });
	connect_as(ASKER);
	connect_as(OTHER);
	for (uint32_t i = 0; i < MEMBERS; i++)
		connect_as(members[i] = MEMBERS_FROM + i);
}

static void shuffle(void)
{
	for (uint32_t i = MEMBERS - 1; i > 0; i--) {
		uint32_t other = (uint32_t)rand() % (i + 1), member = members[i];

		members[i] = members[other];
		members[other] = member;
	}
}

static void make_waits(void)
{
	uint32_t first = members[0], second = members[1], of_y = members[MEMBERS_X];

	for (uint32_t i = 0; i < MEMBERS; i++)
		ask(members[i], i < MEMBERS_X ? "CLIENT SETINFO OWNER x" : "CLIENT SETINFO OWNER y");
	ask(ASKER, "LOCK b");
	ask(OTHER, "ACQUIRE q LIMIT 1");
	ask(first, "LOCK x");
	ask(of_y, "ACQUIRE p LIMIT 1");
	ask(OTHER, "LOCK b");
	ask(first, "ACQUIRE q LIMIT 1");
	ask(second, "ACQUIRE p LIMIT 1");
}

static int by_time(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

static void measure(size_t rounds, bool cold)
{
	int64_t *took_ns = calloc(rounds, sizeof(*took_ns));
	size_t looks = 0;

	for (size_t i = 0; i < rounds; i++) {
		if (cold)
			sweep();
		took_ns[i] = ask(ASKER, "LOCK x");
		looks = broker->locks.searched;
		if (!refused || looks < LEAST_LOOKS)
			fail("the search found no deadlock, or looked at less than it should");
	}
	qsort(took_ns, rounds, sizeof(*took_ns), by_time);
	printf("%s cache: %zu looks, least %.0f us, median %.0f us, most %.0f us\n", cold ? "cold" : "warm", looks,
	       (double)took_ns[0] / 1000, (double)took_ns[rounds / 2] / 1000, (double)took_ns[rounds - 1] / 1000);
	free(took_ns);
}

int main(int argc, char **argv)
{
	long rounds = argc > 1 ? strtol(argv[1], NULL, 10) : ROUNDS;

	if (rounds < 1 || rounds > 1000000)
		fail("usage: bench-deadlock [ROUNDS]");
	swept = calloc(1, SWEEP_BYTES);
	if (!swept)
		fail("there is not enough memory");
	start();
	shuffle();
	make_waits();
	measure((size_t)rounds, false);
	measure((size_t)rounds, true);
	broker_free(broker);
	effects_free(&effects);
	free(swept);
	return 0;
}
