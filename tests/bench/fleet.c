/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench-fleet: a client of each of many brokers, all in one process. Client i takes and releases the lock i modulo the
 * number of locks, again and again: with more hosts than locks each grant is a hand-off between hosts.
 *
 * Prints "begin" when the measured time begins, so that somebody else can count packets from there on, and one line of
 * JSON when it ends. Two holders of a lock at once, or a token that is not larger than the one before, is an overlap and
 * fails the load.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "clock.h"
#include "histogram.h"
#include "line.h"

enum { LOST_AFTER_S = 120, EVENTS_MAX = 256, LOCKS_MAX = 100000, NOBODY = -1 };

struct lock {
	char name[32];
	int holder, last_holder;
	int64_t token, released_ns;
};

struct client {
	struct line line;
	struct lock *lock;
	bool holds;
	int64_t asked_ns;
	uint64_t grants; /* in the measured time */
};

struct load {
	struct client *clients;
	struct lock *locks;
	int client_count, lock_count;
	double warm_s, seconds;
	int64_t begin_ns, end_ns;
	bool begun;
	uint64_t pairs, overlaps, crossed;
	struct histogram waits, hand_offs;
};

static int ask(struct client *c)
{
	c->asked_ns = now_ns();
	return line_words(&c->line, "LOCK", c->lock->name, NULL);
}

static void granted(struct load *load, struct client *c, int64_t token)
{
	struct lock *lock = c->lock;
	int id = (int)(c - load->clients);
	int64_t now = now_ns();

	load->overlaps += lock->holder != NOBODY || token <= lock->token;
	if (load->begun) {
		load->pairs++;
		c->grants++;
		histogram_add(&load->waits, now - c->asked_ns);
		if (lock->last_holder != NOBODY && lock->last_holder != id) {
			load->crossed++;
			histogram_add(&load->hand_offs, now - lock->released_ns);
		}
	}
	lock->token = token;
	lock->holder = lock->last_holder = id;
	c->holds = true;
}

static int release(struct client *c)
{
	c->lock->holder = NOBODY;
	c->lock->released_ns = now_ns();
	return line_words(&c->line, "UNLOCK", c->lock->name, NULL);
}

static int answered(struct load *load, struct client *c)
{
	const char *line = line_read(&c->line);

	if (!line || *line != ':') {
		fprintf(stderr, "bench-fleet: lockbrokerd says %s\n", line ? line : "nothing");
		return -1;
	}
	if (!c->holds) {
		granted(load, c, strtoll(line + 1, NULL, 10));
		return 0;
	}
	c->holds = false;
	return ask(c);
}

/* What has come together is looked at before any of it is given back, so that two grants of one lock are seen. */
static int answers(struct load *load, const struct epoll_event *events, int count)
{
	for (int i = 0; i < count; i++)
		if (answered(load, events[i].data.ptr))
			return -1;
	for (int i = 0; i < count; i++) {
		struct client *c = events[i].data.ptr;

		if (c->holds && release(c))
			return -1;
	}
	return 0;
}

static int serve(struct load *load, int epoll)
{
	struct epoll_event events[EVENTS_MAX];
	int64_t now;

	while ((now = now_ns()) < load->end_ns) {
		int64_t until = load->begun ? load->end_ns : load->begin_ns;
		int count;

		if (!load->begun && now >= load->begin_ns) {
			load->begun = true;
			puts("begin");
			fflush(stdout);
			continue;
		}
		count = epoll_wait(epoll, events, EVENTS_MAX, (int)((until - now) / 1000000) + 1);
		if (answers(load, events, count))
			return -1;
	}
	return 0;
}

static int run(struct load *load, char **targets)
{
	int epoll = epoll_create1(EPOLL_CLOEXEC);

	for (int i = 0; i < load->client_count; i++) {
		struct client *c = &load->clients[i];
		struct epoll_event event = { .events = EPOLLIN, .data.ptr = c };

		c->lock = &load->locks[i % load->lock_count];
		if (line_connect(&c->line, targets[i]) || epoll_ctl(epoll, EPOLL_CTL_ADD, c->line.fd, &event))
			return -1;
	}
	for (int i = 0; i < load->client_count; i++)
		if (ask(&load->clients[i]))
			return -1;
	load->begin_ns = now_ns() + (int64_t)(load->warm_s * 1e9);
	load->end_ns = load->begin_ns + (int64_t)(load->seconds * 1e9);
	return serve(load, epoll);
}

static int report(const struct load *load)
{
	printf("{\"pairs\": %" PRIu64 ", \"hand_offs\": %" PRIu64
	       ", \"seconds\": %g, \"p50_us\": %.1f, \"p99_us\": %.1f, "
	       "\"longest_us\": %.1f, \"hand_off_us\": %.1f, \"overlaps\": %" PRIu64 ", \"by_target\": [",
	       load->pairs, load->crossed, load->seconds, histogram_percentile_ns(&load->waits, 0.5) / 1e3,
	       histogram_percentile_ns(&load->waits, 0.99) / 1e3, (double)load->waits.longest_ns / 1e3,
	       histogram_percentile_ns(&load->hand_offs, 0.5) / 1e3, load->overlaps);
	for (int i = 0; i < load->client_count; i++)
		printf("%s%" PRIu64, i ? ", " : "", load->clients[i].grants);
	puts("]}");
	return load->overlaps > 0;
}

int main(int argc, char **argv)
{
	static struct load load;

	if (argc < 5 || (load.lock_count = atoi(argv[1])) < 1 || load.lock_count > LOCKS_MAX ||
	    (load.seconds = atof(argv[3])) <= 0) {
		fputs("usage: bench-fleet LOCKS WARM-SECONDS SECONDS SOCKET...\n", stderr);
		return 64;
	}
	load.warm_s = atof(argv[2]);
	load.client_count = argc - 4;
	load.clients = calloc((size_t)load.client_count, sizeof(load.clients[0]));
	load.locks = calloc((size_t)load.lock_count, sizeof(load.locks[0]));
	if (!load.clients || !load.locks) {
		perror("bench-fleet");
		return 1;
	}
	for (int i = 0; i < load.lock_count; i++) {
		load.locks[i].holder = load.locks[i].last_holder = NOBODY;
		snprintf(load.locks[i].name, sizeof(load.locks[i].name), "fleet-%d", i);
	}
	alarm((unsigned)(load.warm_s + load.seconds) + LOST_AFTER_S);
	return run(&load, argv + 4) ? 1 : report(&load);
}
