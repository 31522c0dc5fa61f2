/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who watches an election, and what this host knows of its leader.
 *
 *   state   | means                                           | event -> next state
 *   IDLE    | nobody watches, or what is known may be old     | watched, connected and proving -> LISTING
 *   LISTING | the directory is being listed, with a watch     | the first contender -> READING; nobody in it -> KNOWN;
 *           |                                                 |   NONODE: make it -> IDLE
 *   READING | the first one's data are being read, with watch | answered -> KNOWN, or IDLE when the list is old by now;
 *           |                                                 |   NONODE -> IDLE
 *   KNOWN   | both watches stand                              | one fires -> IDLE
 *
 * From any of them, connection lost -> IDLE, and refused by ZooKeeper, or of another kind: those who watch are told
 * that it failed, and watch no more. A list is sent behind an answered write of its connection, so what it shows is
 * never older than what was shown before: the leaders come in the order of their tokens, and the last is the present.
 *
 * The first contender leads when its data say so (holder.h): until then, and when there is none, there is no leader
 * (token 0). An observer is told what is known when it comes, then each change of the token. Those that come while it
 * has not read the one before (RESP2) are told as one: the latest.
 *
 * In standalone mode the first grant is the leader.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/queue.h"
#include "core/lock/client.h"
#include "core/port/event.h"
#include "protocol/bytes.h"
#include "protocol/errors.h"

struct client;
struct notification;
struct lock;
struct operation;

enum observe_state { OBSERVE_IDLE, OBSERVE_LISTING, OBSERVE_READING, OBSERVE_KNOWN };

struct observer {
	struct client *client;
	struct lock *lock;
	TAILQ_ENTRY(observer) link;        /* lock->observation.observers */
	TAILQ_ENTRY(observer) client_link; /* client->observers */
	bool told;                  /* ever */
	int64_t token;              /* as it was told last */
	struct notification *notification; /* that it has not read; NULL: none */
	struct outcome outcome;            /* LEADER, UNOBSERVED */
};

struct observation {
	enum observe_state state;
	bool known;      /* there is something to tell */
	bool old;        /* READING: the list is */
	bool missing;    /* it had to be made */
	uint64_t op;     /* LISTING, READING */
	struct observer_list observers; /* at least one */
	struct bytes first; /* READING, KNOWN: the first contender's name; may be empty */
	int64_t token;      /* known: 0: no leader */
	struct bytes host, data;
};

struct observer *observe_find(const struct lock *lock, const struct client *client);
/* It is to be told what is known, if anything is. */
void observe_begin(struct lock *lock, struct client *client);
void observe_end(struct observer *o);
/* All of the lock: they watch no longer, and are to be told why. */
void observe_fail_all(struct lock *lock, enum error_code code, const char *sentence);
/* It was told what is known now. */
void observe_told(struct observer *o);
/* Sends what is due. While connected and proving; standalone: looks who leads. */
void observe_continue(struct lock *lock);
void observe_suspended(struct lock *lock);
/* Answers of OBSERVE_LIST and OBSERVE_GET. */
void observe_answered(const struct operation *op, uint64_t number, const struct event *event);
/* A watch on the directory fired (child NULL), or one on that child. */
void observe_watched(struct lock *lock, const struct slice *child);
