/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Anything: clients that ask for whatever can be asked, of whatever kind the name is just then, well-formed or not, and
 * hang up whenever they like. There is no model of what they should be answered, as the simulator (world.h) has one. What
 * must hold is looked up inside the brokers after every event (checks.c):
 *
 *   - no invariant of a broker is broken (broker_check), and nothing crashes: worth running with SAN=address,undefined
 *   - of a lock that a client holds exclusively nobody else has a valid grant, on whichever host
 *   - a grant's token is larger than that of every earlier one of its name that it conflicts with
 *   - what is granted is of the kind that the lock's directory is of
 *   - nobody waits for itself, as far as deadlock detection looks
 *   - one reply for each request; what asks ZooKeeper or other hosts is answered, once all is well, in bounded time
 *   - an MLOCK that was not granted leaves nothing behind
 *   - who waits for what nobody holds is granted, once all is well
 *   - an observer is told in order, nothing twice, and in the end the present leader
 *   - nothing is left when all have hung up
 */
#pragma once

#include "core/state.h"
#include "tests/sim/fakezk.h"

#include <setjmp.h>

enum { ANY_HOSTS = 3, ANY_PEERS = 6, ANY_NAMES = 6, ANY_GONE = 512, ANY_REPLY = 256 };

/* What an observer was told of an election. */
struct any_told {
	bool told;
	int64_t token, highest;
};

struct any_peer {
	struct any_host *host;
	uint32_t conn;
	bool on, asking, half, closing, going;
	uint64_t life;
	int version;
	enum command command; /* asked last */
	int64_t asked_at;
	unsigned int held; /* when MLOCK was asked for: a bit for each name */
	struct any_told told[ANY_NAMES];
	size_t revoke_bytes;   /* pushed since it was last known to read */
	bool replied;          /* in this event */
	char reply[ANY_REPLY]; /* its beginning */
};

struct any_host {
	struct any *any;
	int index;
	char name[16];
	struct broker *broker;
	struct broker_conf conf;
	struct effects effects;
	struct zhandle *zk;
	int64_t offset, stopped_until, timer_at, tokens;
	uint64_t life, timer_life;
	struct any_peer peers[ANY_PEERS];
	int peer_count;
	int64_t logged; /* grants by its log, and permits, that did not end by its log */
	int64_t seen[ANY_PEERS][ANY_NAMES]; /* tokens of the grants they have */
	int64_t right_at[ANY_NAMES]; /* when what it knows of the leader was last right, or known to nobody here */
};

/* Of one name, on all hosts (standalone: of one). */
struct any_name {
	int64_t highest, highest_writer; /* tokens */
	int64_t busy_at;                 /* when it was last held, or nobody waited for it */
	int64_t leader;                  /* its token, when it was last looked at */
};

struct any {
	uint64_t seed;
	struct rng rng;
	struct sched sched;
	struct fakezk zk;
	int64_t tick, timeout;
	bool standalone, forces, tracing, quiet, leaving; /* forces: znodes are deleted behind their hosts */
	struct any_host hosts[ANY_HOSTS];
	int host_count;
	struct any_name names[ANY_HOSTS][ANY_NAMES]; /* the first of them for all hosts, unless standalone */
	int64_t calm_at;                             /* the latest fault is over since then */
	int64_t gone
		[ANY_GONE]; /* czxids of znodes that were deleted, the latest; with FORCEUNLOCK they may be in use */
	size_t gone_count;
	uint64_t grants, requests, deadlocks, steps;
	jmp_buf failed;
	char failure[400];
};

extern const char *const any_names[ANY_NAMES];

/* anything.c */
void any_fail(struct any *a, const char *format, ...) __attribute__((format(printf, 2, 3), noreturn));
int64_t any_host_now(const struct any_host *h);
void any_handle(struct any_host *h, const struct event *e);
/* Its process ends, and starts again a while later. */
void any_host_die(struct any_host *h, bool end_session);
/* Which of the names; -1. */
int any_name_of(struct slice name);

/* faults.c */
void any_faults_begin(struct any *a);
void any_faults_end(struct any *a);

/* asks.c: up to `max` words of a request, of bytes that stay valid until the next call */
size_t any_words(struct any_peer *p, struct slice *words, size_t max);

/* checks.c */
void any_check_asking(struct any_peer *p);
void any_check_reply(struct any_peer *p, struct slice reply);
void any_check_push(struct any_peer *p, struct slice push);
void any_logged(struct any_host *h, const struct effect *e, struct slice text);
/* After each event of that host. */
void any_check(struct any_host *h);
/* When all have hung up. */
void any_check_end(struct any *a);
