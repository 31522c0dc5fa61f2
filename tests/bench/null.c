/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench-null SOCKET [silent]: the least that a lock broker on a socket can do, and so the limit for any. One thread,
 * plain libevent events, one read and one write for a ready client and turn, a first-come-first-served queue for each
 * lock in memory: no parser, no names, no tokens, no time, no limits, no ZooKeeper. A grant is written before the answer
 * to the UNLOCK that caused it. silent: an UNLOCK is not answered, so that a pair is three messages and one round trip.
 */
#include "null.h"

#include <event2/event.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { BATCH = 512, BACKLOG = 4096 };

struct client {
	struct event *event;
	int fd;
	struct null_message out[BATCH + 1];
	int out_count;
	STAILQ_ENTRY(client) waiter; /* of the lock it waits for: one at a time */
	uint32_t waits_for;
	bool waits;
};

struct lock {
	struct client *holder;
	STAILQ_HEAD(, client) waiters;
};

static struct lock locks[NULL_LOCKS];
static struct event_base *base;
static bool silent;

static void flush(struct client *c)
{
	size_t len = (size_t)c->out_count * sizeof(c->out[0]);

	if (len > 0 && send(c->fd, c->out, len, MSG_NOSIGNAL | MSG_DONTWAIT) != (ssize_t)len)
		shutdown(c->fd, SHUT_RDWR);
	c->out_count = 0;
}

static void say(struct client *c, enum null_op op, uint32_t lock)
{
	c->out[c->out_count++] = (struct null_message){ op, lock };
}

static void pass_on(uint32_t number)
{
	struct lock *l = &locks[number];

	l->holder = STAILQ_FIRST(&l->waiters);
	if (!l->holder)
		return;
	STAILQ_REMOVE_HEAD(&l->waiters, waiter);
	l->holder->waits = false;
	say(l->holder, NULL_LOCK, number);
	flush(l->holder);
}

static void handle(struct client *c, const struct null_message *m)
{
	struct lock *l = &locks[m->lock % NULL_LOCKS];

	if (m->op == NULL_UNLOCK) {
		if (l->holder == c)
			pass_on(m->lock % NULL_LOCKS);
		if (!silent)
			say(c, NULL_UNLOCK, m->lock);
	} else if (!l->holder) {
		l->holder = c;
		say(c, NULL_LOCK, m->lock);
	} else if (!c->waits) {
		c->waits = true;
		c->waits_for = m->lock % NULL_LOCKS;
		STAILQ_INSERT_TAIL(&l->waiters, c, waiter);
	}
}

static void gone(struct client *c)
{
	uint32_t i;

	if (c->waits)
		STAILQ_REMOVE(&locks[c->waits_for].waiters, c, client, waiter);
	for (i = 0; i < NULL_LOCKS; i++)
		if (locks[i].holder == c)
			pass_on(i);
	event_free(c->event);
	close(c->fd);
	free(c);
}

static void ready(evutil_socket_t fd, short what, void *arg)
{
	struct null_message in[BATCH];
	struct client *c = arg;
	ssize_t n = recv(fd, in, sizeof(in), MSG_DONTWAIT), i;

	if (n <= 0 || n % (ssize_t)sizeof(in[0])) {
		gone(c);
		return;
	}
	for (i = 0; i < n / (ssize_t)sizeof(in[0]); i++)
		handle(c, &in[i]);
	flush(c);
}

static void arrived(evutil_socket_t listener, short what, void *arg)
{
	struct client *c = calloc(1, sizeof(*c));

	if (!c)
		abort();
	c->fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	if (c->fd < 0) {
		free(c);
		return;
	}
	c->event = event_new(base, c->fd, EV_READ | EV_PERSIST, ready, c);
	event_add(c->event, NULL);
}

int main(int argc, char **argv)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int i, listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (argc < 2)
		return 64;
	silent = argc > 2 && strcmp(argv[2], "silent") == 0;
	snprintf(address.sun_path, sizeof(address.sun_path), "%s", argv[1]);
	for (i = 0; i < NULL_LOCKS; i++)
		STAILQ_INIT(&locks[i].waiters);
	base = event_base_new();
	if (!base || bind(listener, (struct sockaddr *)&address, sizeof(address)) < 0 ||
	    listen(listener, BACKLOG) < 0) {
		perror("bench-null");
		return 1;
	}
	event_add(event_new(base, listener, EV_READ | EV_PERSIST, arrived, NULL), NULL);
	return event_base_dispatch(base);
}
