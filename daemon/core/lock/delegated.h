/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A delegated grant: its client takes the lock and gives it back by the word of a slot, in a page that it shares with the
 * daemon (protocol/delegation.h), and says nothing. Whether it is inside, only that word tells; until the daemon takes
 * it back, the grant stands for both.
 *
 *   a grant   | its word        | means                                     | left by
 *   ordinary  | NONE, or it has | the client says UNLOCK                    | LOCK ... SLOT granted, and nobody else
 *             |   no slot       |                                           |   wants it -> delegated
 *   delegated | FREE or HELD    | the client keeps what nobody else wants   | taken back: free -> the grant ends, as by
 *             |                 |                                           |   UNLOCK; held -> recalled. Lost: free -> it
 *             |                 |                                           |   ends, and nobody is told; held -> lost
 *   recalled  | HELD, WANTED    | as ordinary: the client cannot give it    | as ordinary: the word is NONE then
 *             |                 |   back by the word, and says UNLOCK       |
 *   lost      | HELD, LOST      | as any lost grant                         | as any lost grant: the word is NONE then
 *
 * Who takes it back: any request for the lock, also of its own client, and any command that names it; another host that
 * waits; the end of linger, drain and stop; and a second in which the client did not use it. So a request never waits for
 * a delegated grant, and a free one holds back nobody.
 *
 * Delegation begins where it lasts: after as many grants in a row to one client that offers a slot as the lock is calm
 * for. Each time that another takes it back the number doubles; each one that ended undisturbed halves it.
 *
 * The page is the client's, which may write anything into it. What is read there is "free" or "held", which a client may
 * say of its own grants anyway.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/charge.h"
#include "base/heap.h"
#include "protocol/delegation.h"

struct client;
struct grant;
struct lock;

/* What a client with a page has. */
struct delegations {
	struct client *client;
	struct delegation_page *page; /* the adapter's, which keeps it as long as the connection */
	struct grant *grants[DELEGATION_SLOTS]; /* those whose words are not NONE, by slot; the first is slot 1 */
	uint64_t uses[DELEGATION_SLOTS];        /* of the delegated ones, as they were seen last */
	uint64_t generation;  /* the last one that was used */
	uint32_t count;       /* of delegated grants */
	struct timer idle;    /* the next look at those that are not used; set if there are any */
	struct charge charge; /* of POOL_MEMORY */
};

/* What a lock knows of those who offered slots for it. */
struct delegability {
	uint64_t client;       /* who did last; 0: nobody */
	uint32_t streak, need; /* its grants in a row; how many are wanted, if not 0: else one */
};

/* The client has that page from now on: a new one; or one that it had in another process, which is looked at later. */
void delegated_begin(struct client *c, struct delegation_page *page);
void delegated_go_on(struct client *c, struct delegation_page *page);
/* What was delegated in the other process is what the words say now, and taken back. */
void delegated_resume(struct delegations *d);
void delegated_end(struct client *c); /* it has no page any longer, and no grants */
/* The same, for this process: another one has it, with all that stands in it. */
void delegated_abandon(struct client *c);
size_t delegated_memory(void); /* what a page is charged with, of POOL_MEMORY */
/* A page more may be charged to the client's account. */
bool delegated_may_begin(const struct client *c, const char **why);

/* The grant was made now for a request that offered that slot: it is delegated, if it may be. */
void delegated_offer(struct grant *g, uint8_t slot);
/* The lock's delegated grant is taken back: it has ended, or is an ordinary one. `disturbed`: for somebody else's sake. */
void delegated_take_back(struct lock *lock, bool disturbed);
void delegated_take_back_all(struct client *c); /* the same for all that the client has, for its own sake */
/* Somebody waits, or it may not be kept any longer: the rule takes the delegated grant back. */
bool delegated_is_wanted(const struct lock *lock);
/* The lock has a delegated grant, and nobody is inside as far as its word tells now. */
bool delegated_is_free(const struct lock *lock);
/* The grant is about to be lost. False: nobody is inside, so that there is nothing to be told, and it is to end. */
bool delegated_lose(struct grant *g);
void delegated_forget(struct grant *g); /* it has a slot, and ends */
void delegated_look(struct delegations *d); /* the timer: those that were not used since the last look go back */
