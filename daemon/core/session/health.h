/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the session and ZooKeeper are, in words, for INFO; and the latest thing that keeps ZooKeeper from serving this host.
 *
 *   trouble     | means                                           | cleared by
 *   NONE        | nothing is known to be wrong                    |
 *   UNREACHABLE | a server did not answer, or has no address      | an answered write
 *   REFUSED     | a server answers, and gives no usable session   | an answered write
 *   DENIED      | an operation was refused (by an ACL, say)       | one of its kind that succeeds
 *
 * The adapter logs the first three, the core the last: once a minute for each kind of operation.
 *
 * Whether a lock can be had: when ZooKeeper refuses for good an operation that a lock needs, or the heartbeat, then this
 * host itself tries to make a znode below the root of all locks, soon afterwards, and deletes it; at most once in T, and
 * again as long as that is refused.
 *
 *   refused                      | means
 *   nothing, or not for good     | locks can be had
 *   something, and the try works | it concerns one name or prefix (`refused`, for some minutes)
 *   the try                      | no lock can be had (`barred`)
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "core/port/event.h"
#include "core/session/operation.h"
#include "protocol/bytes.h"

enum health_trouble { TROUBLE_NONE, TROUBLE_UNREACHABLE, TROUBLE_REFUSED, TROUBLE_DENIED };

struct health {
	enum health_trouble trouble;
	struct bytes sentence;      /* empty when there is none */
	int64_t at_ns;              /* when it was last met with */
	enum operation_kind denied; /* DENIED */
	int64_t said_ns[OPERATION_KIND_COUNT]; /* when it was last logged; 0: never */
	struct bytes refused, barred; /* strings: the latest that a lock needs, and the try; empty: none */
	struct slice path;            /* of the directory, in `refused` */
	int64_t refused_ns, tried_ns;
	bool doubtful; /* something was refused since the last try */
};

void health_trouble(struct ensemble *zk, const struct event *event); /* EVENT_ZK_TROUBLE */
/* An operation was answered: with ZK_REFUSED it is a trouble, with ZK_OK it may have been one. `path`: its directory's. */
void health_answered(struct ensemble *zk, enum operation_kind kind, struct slice path, const struct event *event);
void health_proved(struct ensemble *zk); /* a write was answered */
void health_tick(struct ensemble *zk); /* while connected */
void health_deinit(struct health *h);
bool health_refuses_some(const struct ensemble *zk); /* of late, an operation that a lock of some name needs */
/* The sentence why no lock, or not the lock with the directory `path`, can be had; NULL: no reason is known. */
const char *health_refusal(const struct ensemble *zk, struct slice path);
/*
 * One readable sentence for the state that the session is in.
 *
 *   NONE     | never connected; or connected, and nothing answered yet; or a new session not reached yet
 *   SAFE     | the age of the last proof
 *   JEOPARDY | the same, and when it is lost
 *   LOST     | since when nothing was answered, or that a new session is asked for
 */
void health_why(const struct ensemble *zk, struct bytes *out);
/* connecting: no write was answered on this connection, or there is none; refused: for a reason that is known;
 * connected: it serves. */
const char *health_word(const struct ensemble *zk);
