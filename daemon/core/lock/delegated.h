/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A delegated grant: its client takes and releases the lock by the word of a slot, in a page that it shares with the daemon
 * (protocol/delegation.h), without a message. Only that word says whether the client holds the lock; the grant stays until
 * the daemon takes it back.
 *
 *   a grant   | its word        | means                                     | left by
 *   ordinary  | NONE, or it has | the client says UNLOCK                    | LOCK ... SLOT granted, and nobody else
 *             |   no slot       |                                           |   wants it -> delegated
 *   delegated | FREE or HELD    | the client keeps a lock that nobody else  | taken back: free -> the grant ends, as by
 *             |                 |   wants                                   |   UNLOCK; held -> recalled. Lost: free -> it
 *             |                 |                                           |   ends silently; held -> lost
 *   recalled  | HELD, WANTED    | as ordinary: the client cannot give it    | as ordinary: the word is NONE then
 *             |                 |   back by the word, and says UNLOCK       |
 *   lost      | HELD, LOST      | as any lost grant                         | as any lost grant: the word is NONE then
 *
 * The daemon takes a delegated grant back at any request for the lock, also of its own client, and at any command of that
 * client about the lock that does more than read (command/call.h); when another host waits; at the end of linger, at a drain
 * and at a stop; when the client has not used it for a second; and, if it is free, before its user is refused another grant.
 * Only a reader that is granted the lock at once leaves shared ones as they are. So a request never waits for a delegated
 * grant, and a free one delays nobody.
 *
 * A lock has one exclusive delegated grant, or shared ones of several clients (take_back.h). A lock is delegated only if it
 * is likely to stay so.
 *
 * The client may write anything into the page. The daemon reads only "free" or "held" there, which a client may say of its
 * own grants anyway.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/charge.h"
#include "base/heap.h"
#include "base/queue.h"
#include "core/port/work.h"
#include "core/znode/mode.h"
#include "protocol/delegation.h"

struct client;
struct grant;
struct lock;

/*
 * A lock is delegated only if it is likely to stay delegated: after `need` grants in a row by message to one client, or to
 * readers. When delegations of the lock are taken back for somebody else, one or all readers' at once, `need` doubles, up
 * to 64. When the last client that has the lock delegated does not use it for a second, `need` halves. A change that a
 * client causes for itself does not change `need`. So among m grants by message in t seconds at most 6 + m/64 + t
 * delegations are taken back for others, whatever the clients do: at 64 each of them costs 64 grants in a row; it takes 6
 * to get to 64, and one more for each time that `need` was halved, which takes a second.
 */

enum {
	DELEGATED_NEED_MAX = 64,
	SHARED_DELEGATIONS_MAX = 256, /* of one lock: no more are taken back in one step */
};

#define DELEGABILITY_READERS UINT64_MAX

LIST_HEAD(delegated_list, grant);

/* A lock's memory of its latest grants by message. */
struct delegability {
	uint64_t client;       /* the client that got them, or DELEGABILITY_READERS; 0: there were none */
	uint32_t streak, need; /* grants in a row since the lock was last delegated; how many are needed (0: one) */
	uint32_t count;        /* delegated grants */
};

static inline void delegability_count(struct delegability *l, uint64_t client)
{
	if (l->client != client) {
		l->client = client;
		l->streak = 0;
	}
	l->streak++;
}

struct delegated {
	struct grant *grant; /* its word is not NONE; NULL: it is */
	uint64_t uses, first; /* of a delegated one, as they were seen last, and when it was delegated */
};

/* The delegations of a client with a page. */
struct delegations {
	struct client *client;
	TAILQ_ENTRY(delegations) link; /* user->delegations; set if any grant is delegated */
	struct delegation_page *page; /* the adapter's, which keeps it as long as the connection */
	struct delegated *slots; /* the first is slot 1; those behind have never had a grant */
	uint32_t slot_count;  /* at most DELEGATION_SLOTS */
	uint32_t count;       /* of delegated grants */
	uint64_t generation;  /* the last one that was used */
	struct timer idle;    /* the next search for unused delegations; if any grant is delegated, this or `work` is set */
	struct work_item work; /* set: a pass over the slots is under way (take_back.h) */
	bool all;             /* the pass takes used delegations back, too */
	size_t at;            /* the next slot of the pass */
	struct charge charge; /* of POOL_MEMORY */
};

/* The client has that page from now on: a new one; or one that it had in another process, which is looked at later. */
void delegated_begin(struct client *c, struct delegation_page *page);
void delegated_go_on(struct client *c, struct delegation_page *page);
void delegated_end(struct client *c); /* it has no grants, and its page ends */
/* Ends the page in this process only: another process goes on with it, and its contents stay. */
void delegated_abandon(struct client *c);
size_t delegated_memory(void); /* the charge of a page, of POOL_MEMORY */
/* True: the client's account has room for a page. */
bool delegated_may_begin(const struct client *c, const char **why);

/* The grant was just made for a request that offered that slot: delegates it, if that is allowed. */
void delegated_offer(struct grant *g, uint8_t slot);
/* Somebody waits, or the grant may no longer be kept: then the rule takes it back. */
bool delegated_is_wanted(const struct lock *lock);
/* The grant is delegated, and its word says now that the client does not hold the lock. */
bool delegated_is_free(const struct grant *g);
size_t delegated_free_count(const struct client *c); /* the client's grants that are free */
/* The instant since which the client holds the grant; of a delegated one, by the client's word, as far as it can be. */
int64_t delegated_since_ns(const struct grant *g);
size_t delegated_free_of(const struct lock *lock);      /* the lock's grants that are free */
struct grant *delegated_holder(const struct lock *lock); /* the first grant that is not free; NULL: none */
/* How often its process has taken it, by that one's own count; the first time was by a message. */
int64_t delegated_takings(const struct grant *g);
/* The grant is about to be lost. False: its client does not hold the lock, so the grant just has to end. */
bool delegated_lose(struct grant *g);
void delegated_forget(struct grant *g); /* the grant has a slot, and ends */
