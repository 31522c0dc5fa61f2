/* SPDX-License-Identifier: Apache-2.0 */
/*
 * MLOCK: several locks for one client, all or none. They are taken one after the other in byte order of their names,
 * each by an ordinary request, so that two MLOCKs never deadlock with each other. One deadline
 * holds for all of them.
 *
 *   state  | means                                            | event -> next state
 *   TAKING | those before `at` are taken, the request for     | granted -> NEXT; a loss -> AGAIN
 *          |   `at` waits                                     |
 *   NEXT   | the lock `at` is taken, too                      | a loss -> AGAIN; continued: more -> TAKING, all taken
 *          |                                                  |   -> answered with the tokens; UNBLOCK -> answered nil
 *   AGAIN  | one of the locks was lost                        | continued: the taken locks are released, -> TAKING of the
 *          |                                                  |   first; or -LOST, when it was held before
 *
 * From any of them: the time runs out, CLIENT UNBLOCK -> answered with nil; an error -> answered with it; client gone,
 * RESET -> no answer. In each of these cases all that was taken is released before the event ends.
 *
 * A lock that the client already holds makes the MLOCK fail, unless it said REENTER: then that lock counts as taken. It
 * gets its further level, and all locks their leases, once every lock is taken. The loss of a lock that was taken on
 * the way is not reported: the client never learned of the grant.
 *
 * AGAIN lasts no longer than the event: mlock_continue() ends it, and NEXT. But when one release grants the first of their
 * locks to many, each with a search for a deadlock before it (deadlock.h), MLOCK_STEPS_AT_ONCE of them take their step in
 * that event, or fewer, once searches have looked at DEADLOCK_EDGES_AT_ONCE; the others take it in the turns of their users
 * (core/port/work.h). A hand-over carries NEXT.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/charge.h"
#include "base/queue.h"
#include "core/znode/mode.h"
#include "core/client/args.h"
#include "core/port/work.h"
#include "protocol/limits.h"

struct refusal;

enum { MLOCK_STEPS_AT_ONCE = LIMIT_NAMES_MAX }; /* so that one MLOCK gets all free locks at once */

enum mlock_state { MLOCK_TAKING, MLOCK_NEXT, MLOCK_AGAIN };

struct mlock_part {
	struct bytes name;
	size_t place; /* its index among the names as given */
	bool held;    /* before the MLOCK */
};

struct mlock {
	struct client *client;
	TAILQ_ENTRY(mlock) link; /* NEXT, AGAIN: locks->mlocks, unless it goes on later: */
	struct work_item work;   /* NEXT */
	enum mlock_state state;
	enum mode mode;
	bool reenter;            /* a lock that is held before gets one level more; else the MLOCK fails */
	int64_t until_ns;        /* the deadline; INT64_MAX: none */
	int64_t lease_ns;        /* 0: none */
	struct charge charge; /* for the memory of its names */
	size_t at, count;
	struct mlock_part parts[]; /* in byte order */
};

/* MLOCK and MUNLOCK. */
void mlock_lock(struct client *c, struct call *call);
void mlock_unlock(struct client *c, struct call *call);
/* How the request of its present step ended. */
void mlock_granted(struct mlock *m);
void mlock_timed_out(struct mlock *m);
void mlock_failed(struct mlock *m, struct refusal *no); /* frees the sentence */
/* A grant of its client was just lost. True: this MLOCK had taken it, and the client does not learn of it. */
bool mlock_lost(struct mlock *m, const struct grant *g);
/* The order in which they are taken, as qsort() wants it: of two struct mlock_part. */
int mlock_by_name(const void *a, const void *b);
size_t mlock_memory(const struct mlock *m); /* that it takes, in bytes */
/* Its deadline is now. */
void mlock_hurry(struct mlock *m);
/* Continues the first one that is NEXT or AGAIN, and does not go on later. */
void mlock_continue(struct locks *locks);
/* Its turn has come (WORK_MLOCK). */
void mlock_go_on(struct mlock *m);
/* In a new process: it is NEXT. */
void mlock_resume(struct mlock *m);
/* Without an answer; the grants that it took stay with the client. */
void mlock_free(struct mlock *m);
