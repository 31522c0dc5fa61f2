/* SPDX-License-Identifier: Apache-2.0 */
/*
 * MLOCK: several locks for one client, all or none. They are taken one after the other in byte order of their names,
 * each by an ordinary request, so that two who name the same locks never wait for each other. All under one deadline.
 *
 *   state  | means                                            | event -> next state
 *   TAKING | those before `at` are taken, the request for     | granted -> NEXT; a loss -> AGAIN
 *          |   `at` waits                                     |
 *   NEXT   | that one is taken, too                           | a loss -> AGAIN; gone on with: more -> TAKING, all there ->
 *          |                                                  |   answered with the tokens
 *   AGAIN  | one of them was lost                             | gone on with: what was taken is let go, -> TAKING of the
 *          |                                                  |   first; or -LOST, when it was held before
 *
 * From any of them: the time runs out, CLIENT UNBLOCK -> answered with nil; an error -> answered with it; client gone,
 * RESET -> no answer. Whatever the end, all that was taken is let go before the event ends.
 *
 * What the client holds already forbids the whole, unless it said REENTER: then that counts as taken, and gets its
 * further level, like all leases, once everything is there. A loss of what was taken on the way is told to nobody: its
 * client was never told of the grant.
 *
 * NEXT and AGAIN last no longer than the event: the broker goes on with them.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/queue.h"
#include "core/znode/mode.h"
#include "core/client/args.h"

struct locks;
struct grant;
struct refusal;

enum mlock_state { MLOCK_TAKING, MLOCK_NEXT, MLOCK_AGAIN };

struct mlock_part {
	struct bytes name;
	size_t place; /* among the names as they were given */
	bool held;    /* before */
};

struct mlock {
	struct client *client;
	TAILQ_ENTRY(mlock) link; /* NEXT, AGAIN: broker->mlocks */
	enum mlock_state state;
	enum mode mode;
	bool reenter;            /* what is held before gets one level more; else nothing is taken */
	int64_t until_ns;        /* the deadline; INT64_MAX: none */
	int64_t lease_ns;        /* 0: none */
	size_t at, count;
	struct mlock_part parts[]; /* in byte order */
};

void mlock_lock(const struct request_words *w);
void mlock_unlock(const struct request_words *w);
/* How the request of its present step ended. */
void mlock_granted(struct mlock *m);
void mlock_timed_out(struct mlock *m);
void mlock_failed(struct mlock *m, struct refusal *no); /* frees the sentence */
/* A grant of its client was just lost. True: that is its own affair, and the client is not told. */
bool mlock_lost(struct mlock *m, const struct grant *g);
/* It waits no longer than now. */
void mlock_hurry(struct mlock *m);
/* Goes on with the first of those that can. */
void mlock_continue(struct locks *locks);
/* Without an answer; what was taken is its client's affair. */
void mlock_free(struct mlock *m);
