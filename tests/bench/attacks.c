/* SPDX-License-Identifier: Apache-2.0 */
#include "attacks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "asker.h"

enum {
	NAMES_HELD = 200,   /* of ever-new ones, at a time */
	LOCKS_SHOWN = 8000, /* held while others list them */
	QUEUED_MAX = 2500,  /* a longer queue cannot be shown */
};

static struct link main_link;

static void ready(void)
{
	atomic_fetch_add(&shared->ready, 1);
}

static void __attribute__((noreturn)) stay(void)
{
	for (;;)
		pause();
}

/* A pace, or a moment for what tells nobody that it is done. */
static void rest_us(unsigned us)
{
	usleep(us); /* nothing is waited for */
}

/* A connection that goes on after it was refused is none: it says so and tries again a little later. */
static void connect_main(void)
{
	main_link.used = main_link.len = 0;
	while ((main_link.fd = open_fd()) < 0)
		rest_us(1000);
	atomic_fetch_add(&shared->connected, 1);
}

static void reconnect(void)
{
	close(main_link.fd);
	rest_us(1000);
	connect_main();
}

/* This process's share of all connections. `fds` is the caller's. Those that are refused say why at once. */
static int open_all(int **ret)
{
	int count = connections / processes, opened = 0;
	int *fds = malloc(sizeof(*fds) * (size_t)(count + 1));

	for (int i = 0; i < count; i++) {
		int fd = open_fd();

		if (fd < 0)
			break;
		fds[opened++] = fd;
		atomic_fetch_add(&shared->connected, 1);
	}
	*ret = fds;
	return opened;
}

/* Takes what there is to read from all of them, and notes refusals. */
static void drain(const int *fds, int count)
{
	char text[4096];

	for (int i = 0; i < count; i++) {
		ssize_t got = recv(fds[i], text, sizeof(text) - 1, MSG_DONTWAIT);

		if (got <= 0 || text[0] != '-')
			continue;
		text[got] = '\0';
		snprintf(reply_line, sizeof(reply_line), "%.*s", (int)strcspn(text, "\r"), text);
		note_refusal();
	}
}

static void attack_spin(void)
{
	volatile unsigned long n = 0;

	ready();
	for (;;)
		n++;
}

static void attack_idle(void)
{
	int *fds, count = open_all(&fds);

	rest_us(100000);
	drain(fds, count);
	ready();
	stay();
}

static void attack_unfinished(void)
{
	int *fds, count = open_all(&fds);
	size_t len = (size_t)sprintf(request, "*2\r\n$4\r\nECHO\r\n$60000\r\n");

	memset(request + len, 'x', 50000);
	for (int i = 0; i < count; i++)
		send(fds[i], request, len + 50000, MSG_NOSIGNAL | MSG_DONTWAIT);
	rest_us(100000);
	drain(fds, count);
	ready();
	for (;;) {
		drain(fds, count);
		rest_us(10000);
	}
}

/* Names of 512 bytes, granted one after the other; nobody reads the events. */
static void attack_unread(void)
{
	int *fds, count = open_all(&fds);
	char name[600];

	ready();
	for (unsigned long turn = 0;; turn++) {
		for (int i = 0; i < count; i++) {
			size_t len;

			snprintf(name, sizeof(name), "%d/%d/%lu/%0480d", number, i, turn, 0);
			len = put(request, "ENQUEUE", name, NULL);
			if (send(fds[i], request, len, MSG_NOSIGNAL | MSG_DONTWAIT) > 0)
				atomic_fetch_add(&shared->asked, 1);
		}
		if (turn > 2000)
			rest_us(10000);
	}
}

static void attack_held(void)
{
	char name[32];

	connect_main();
	ready();
	for (unsigned long i = 0;; i++) {
		snprintf(name, sizeof(name), "h%d/%lu", number, i);
		if (!ASK(&main_link, "LOCK", name))
			reconnect();
	}
}

static void attack_names(void)
{
	char name[64];

	connect_main();
	ready();
	for (unsigned long i = 0;; i++) {
		snprintf(name, sizeof(name), "n%d/%lu", number, i);
		if (!ASK(&main_link, "LOCK", name)) {
			reconnect();
			continue;
		}
		if (i >= NAMES_HELD / (unsigned long)processes) {
			snprintf(name, sizeof(name), "n%d/%lu", number, i - NAMES_HELD / (unsigned long)processes);
			ASK(&main_link, "UNLOCK", name);
		}
	}
}

static void __attribute__((noreturn)) take_all(const int *fds, int count)
{
	struct epoll_event events[64];
	int set = epoll_create1(EPOLL_CLOEXEC);

	for (int i = 0; i < count; i++)
		epoll_ctl(set, EPOLL_CTL_ADD, fds[i], &(struct epoll_event){ .events = EPOLLIN, .data.fd = fds[i] });
	for (;;) {
		int n = epoll_wait(set, events, 64, -1);

		for (int i = 0; i < n; i++)
			if (recv(events[i].data.fd, request, sizeof(request), MSG_DONTWAIT) == 0)
				epoll_ctl(set, EPOLL_CTL_DEL, events[i].data.fd, NULL);
	}
}

static void attack_observers(void)
{
	int *fds, count;

	if (number == 0) {
		connect_main();
		ready();
		for (;;)
			if (!ASK(&main_link, "CAMPAIGN", "e", "DATA", "me") || !ASK(&main_link, "RESIGN", "e"))
				reconnect();
	}
	count = open_all(&fds);
	for (int i = 0; i < count; i++) {
		size_t len = put(request, "HELLO", "3", NULL);

		len += put(request + len, "OBSERVE", "e", NULL);
		send_all(fds[i], request, len);
	}
	ready();
	take_all(fds, count);
}

/* The first process has many locks, and all show them. */
static void hold_many(int count)
{
	char name[64];

	for (int i = 0; i < count; i++) {
		snprintf(name, sizeof(name), "shown/%08d/of-many", (i * 7919) % count);
		if (ASK(&main_link, "LOCK", name) != ':')
			break;
	}
}

static void attack_locks(void)
{
	connect_main();
	if (number == 0)
		hold_many(LOCKS_SHOWN);
	ready();
	for (;;)
		if (!ASK(&main_link, "LOCKS"))
			reconnect();
}

static void attack_clients(void)
{
	int *fds;

	open_all(&fds);
	connect_main();
	ready();
	for (;;)
		if (!ASK(&main_link, "CLIENT", "LIST"))
			reconnect();
}

static void attack_queue(void)
{
	int *fds, count;

	connect_main();
	if (number == 0) {
		ASK(&main_link, "LOCK", "long");
		atomic_fetch_add(&shared->holding, 1);
	}
	while (!atomic_load(&shared->holding))
		rest_us(1000);
	connections = connections < QUEUED_MAX ? connections : QUEUED_MAX;
	count = open_all(&fds);
	for (int i = 0; i < count; i++)
		send_all(fds[i], request, put(request, "ENQUEUE", "long", NULL));
	ready();
	for (;;)
		if (!ASK(&main_link, "QUEUE", "long") || !ASK(&main_link, "WHY", "long"))
			reconnect();
}

/* All connections share one lock and wait for another one; who wants the first one waits for all of them. */
static void attack_deadlock(void)
{
	int *fds, count;
	char name[32];

	connect_main();
	snprintf(name, sizeof(name), "own/%d", number);
	ASK(&main_link, "LOCK", name);
	for (atomic_fetch_add(&shared->holding, 1); atomic_load(&shared->holding) < processes;)
		rest_us(1000);
	count = open_all(&fds);
	for (int i = 0; i < count; i++) {
		size_t len = put(request, "LOCK", "shared", "SHARED", NULL);

		len += put(request + len, "LOCK", "own/0", "WAIT", "100000", NULL);
		send_all(fds[i], request, len);
	}
	ready();
	for (;;)
		if (!ASK(&main_link, "LOCK", "shared", "WAIT", "1")) {
			reconnect();
			ASK(&main_link, "LOCK", name);
		}
}

static const struct {
	const char *name;
	void (*run)(void);
} attacks[] = {
	{ "spin", attack_spin },           { "idle", attack_idle },         { "unfinished", attack_unfinished },
	{ "unread", attack_unread },       { "held", attack_held },         { "names", attack_names },
	{ "observers", attack_observers }, { "locks", attack_locks },       { "queue", attack_queue },
	{ "clients", attack_clients },     { "deadlock", attack_deadlock },
};

void (*attack_find(const char *name))(void)
{
	for (size_t i = 0; i < sizeof(attacks) / sizeof(attacks[0]); i++)
		if (strcmp(attacks[i].name, name) == 0)
			return attacks[i].run;
	fprintf(stderr, "bench-neighbours: no such attack: %s\n", name);
	exit(2);
}
