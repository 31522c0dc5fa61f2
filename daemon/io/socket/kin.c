/* SPDX-License-Identifier: Apache-2.0 */
#include "io/socket/kin.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/queue.h"
#include "io/base/feed.h"
#include "io/base/process.h"
#include "io/base/watch.h"

/* A look costs about 20 us, so that this many take less than a millisecond. */
enum { LOOKS_MAX = 16 };
#define LOOK_NS (500 * CLOCK_NS_PER_MS)
/* A process that a client has just named is looked at soon, but never more often than this. */
#define SOON_NS (20 * CLOCK_NS_PER_MS)

struct one {
	TAILQ_ENTRY(one) link;
	uint32_t conn;
	uid_t uid;
	pid_t peer, child;
	uint64_t peer_start, child_start; /* 0: unknown */
	bool peer_ended, child_ended;
};

TAILQ_HEAD(one_list, one);

struct kin {
	struct feed *feed;
	struct watch *timer;
	int64_t looked_ns;
	struct one_list list; /* processes that were never looked at first, then those whose look is longest ago */
	struct one **by_conn;
	size_t cap;
};

static bool is_of(pid_t pid, uid_t uid)
{
	char path[32];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%d", (int)pid);
	return stat(path, &st) == 0 && st.st_uid == uid;
}

/* The broker's effects may free `o`. */
static void tell(struct kin *k, const struct one *o, struct slice comm)
{
	feed_event(k->feed, &(struct event){ .type = EVENT_CLIENT_PROCESS,
					     .conn = o->conn,
					     .process = { .pid = (uint32_t)o->child,
							  .comm = comm,
							  .peer_ended = o->peer_ended,
							  .child_ended = o->child_ended } });
}

/* The first look, at which both numbers are identified with processes. */
static void identify(struct kin *k, struct one *o)
{
	char text[PROCESS_STAT_MAX];
	struct process process = { 0 };

	if (process_read(o->peer, text, &process) == 0)
		o->peer_start = process.start;
	o->peer_ended = !process_lives(o->peer, o->peer_start);
	if (process_read(o->child, text, &process) < 0 || !is_of(o->child, o->uid)) {
		kin_gone(k, o->conn);
		return;
	}
	o->child_start = process.start;
	tell(k, o, process.comm);
}

static void look(struct kin *k, struct one *o)
{
	char text[PROCESS_STAT_MAX];
	struct process process = { 0 };
	bool peer = o->peer_ended || !process_lives(o->peer, o->peer_start);
	bool child = o->child_ended || !process_lives(o->child, o->child_start);

	if (peer == o->peer_ended && child == o->child_ended)
		return;
	o->peer_ended = peer;
	o->child_ended = child;
	/* It may have become another program since. */
	if (child || process_read(o->child, text, &process) < 0)
		process.comm = (struct slice){ 0 };
	tell(k, o, process.comm);
}

static void look_soon(struct kin *k)
{
	int64_t left_ns = k->looked_ns + SOON_NS - clock_now_ns();

	watch_set(k->timer, -1, 0, left_ns > 0 ? left_ns : 0);
}

static void look_around(int fd, short what, void *arg)
{
	struct kin *k = arg;
	const struct one *last = TAILQ_LAST(&k->list, one_list);
	struct one *o;

	k->looked_ns = clock_now_ns();
	for (int i = 0; i < LOOKS_MAX && (o = TAILQ_FIRST(&k->list)); i++) {
		bool all = o == last;

		TAILQ_REMOVE(&k->list, o, link);
		TAILQ_INSERT_TAIL(&k->list, o, link);
		if (o->child_start)
			look(k, o);
		else
			identify(k, o);
		if (all)
			break;
	}
	o = TAILQ_FIRST(&k->list);
	if (o && !o->child_start)
		look_soon(k);
	else if (o)
		watch_set(k->timer, -1, 0, LOOK_NS);
}

struct kin *kin_new(struct feed *feed)
{
	struct kin *k = mem_new(sizeof(*k));

	k->feed = feed;
	k->timer = watch_new(feed_base(feed), look_around, k);
	TAILQ_INIT(&k->list);
	return k;
}

void kin_free(struct kin *k)
{
	struct one *o;

	if (!k)
		return;
	while ((o = TAILQ_FIRST(&k->list)))
		kin_gone(k, o->conn);
	watch_free(k->timer);
	mem_free(k->by_conn);
	mem_free(k);
}

static void reserve(struct kin *k, uint32_t conn)
{
	size_t cap = k->cap ? k->cap : 64;

	while (cap <= conn)
		cap *= 2;
	if (cap == k->cap)
		return;
	k->by_conn = mem_resize(k->by_conn, cap * sizeof(struct one *));
	memset(k->by_conn + k->cap, 0, (cap - k->cap) * sizeof(struct one *));
	k->cap = cap;
}

void kin_named(struct kin *k, uint32_t conn, int fd, pid_t child)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);
	struct one *o;

	kin_gone(k, conn);
	/* A process of another PID namespace has no number here, and the number that it named would be another process. */
	if (child <= 0 || getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) < 0 || cred.pid <= 0)
		return;
	reserve(k, conn);
	o = k->by_conn[conn] = mem_new(sizeof(*o));
	o->conn = conn;
	o->uid = cred.uid;
	o->peer = cred.pid;
	o->child = child;
	TAILQ_INSERT_HEAD(&k->list, o, link);
	/* Not now: the broker is handling an event. */
	look_soon(k);
}

void kin_gone(struct kin *k, uint32_t conn)
{
	struct one *o = conn < k->cap ? k->by_conn[conn] : NULL;

	if (!o)
		return;
	k->by_conn[conn] = NULL;
	TAILQ_REMOVE(&k->list, o, link);
	mem_free(o);
}
