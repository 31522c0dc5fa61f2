/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A lifeline is a process whose end frees its locks without a lease: bearers (bearer.h) are tied to it. There is one for
 * each process of a user, however many locks and connections that has. The adapter watches the process. Nothing is granted
 * before it does, so there is no lock that nobody would free.
 *
 *   state   | means                                       | event -> next state
 *   NEW     | another process of the daemon had it: this  | the first event -> ASKED
 *           |   one's adapter does not know of it yet     |
 *   ASKED   | the adapter was asked to watch the process; | watched -> WATCHED; the process has ended -> ENDED;
 *           |   a request for a lock waits for that       |   there is no room -> REFUSED
 *   WATCHED | the adapter will report the process's end   | it has ended -> ENDED
 *   REFUSED | waiting requests are refused                |
 *   ENDED   | the same, and the bearers' locks are        |
 *           |   released, in the turns of their user      |
 *
 * In any state it is freed, and the adapter notified, when nobody waits for it and no bearer is tied to it: these bound it.
 * It is in no snapshot and no ledger, for each bearer says who has set it and that it is tied; in a snapshot, also that the
 * process has ended.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/charge.h"
#include "base/map.h"
#include "base/queue.h"
#include "core/port/work.h"
#include "protocol/bytes.h"

struct client;
struct event;
struct lifeline;
struct locks;
struct user;

enum lifeline_state { LIFELINE_NEW, LIFELINE_ASKED, LIFELINE_WATCHED, LIFELINE_REFUSED, LIFELINE_ENDED };

/* Embedded in an object that waits until the process is watched, or cannot be. Its work is added then. */
struct lifeline_wait {
	struct lifeline *lifeline; /* NULL: it does not wait */
	struct work_item *work;
	TAILQ_ENTRY(lifeline_wait) link;
};

struct lifeline {
	struct locks *locks;
	struct map_node node;        /* locks->lifeline_pids */
	TAILQ_ENTRY(lifeline) link;  /* locks->lifelines */
	uint64_t number;             /* by which the adapter knows it */
	struct user *user;           /* of all who wait or are tied */
	bool privileged;             /* the client that asked first may use the reserve */
	uint32_t pid;
	uint64_t started;
	enum lifeline_state state;
	bool asked; /* the adapter knows it */
	struct bytes why; /* REFUSED: a sentence */
	TAILQ_HEAD(, lifeline_wait) waits;
	TAILQ_HEAD(, bearer) bearers;
	struct work_item work; /* ENDED, and some are tied (WORK_LIFELINE) */
	struct charge charge;  /* for its memory */
};

/* It belongs to a process that the adapter can tell from any other. */
bool lifeline_may_be(const struct client *c);
/* Waits for the lifeline of that client's process, which may be. Look at its state: only NEW and ASKED will change it. */
void lifeline_wait(const struct client *c, struct lifeline_wait *w);
void lifeline_wait_end(struct lifeline_wait *w); /* takes one that does not wait */
/* The bearer is tied to its process, which may be. It holds and waits for nothing yet, or was just restored. */
void lifeline_tie(struct client *bearer);
/* The same; it is known that the process has ended. */
void lifeline_tie_ended(struct client *bearer);
void lifeline_untie(struct client *bearer); /* takes one that is not tied */
/* One that is tied; NULL. */
struct client *lifeline_first(const struct lifeline *l);
/* EVENT_LIFELINE. */
void lifeline_told(struct locks *locks, const struct event *event);
/* Asks for the NEW lifelines. */
void lifelines_resume(struct locks *locks);
