/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parties share the time of the daemon: a party is all connections of one account. A connection that is to be served
 * stands in the queue of its party, and a party with such connections in a line. So fifty processes of one user get as
 * much time as one connection of another, when both have something to be done; and a user who is alone gets all of it.
 *
 *   party    | means                                  | event -> next state
 *   idle     | none of its connections is queued      | one is, and its turn is not used up -> fresh; else -> in line
 *   fresh    | before all that are in line, behind    | its connections have used PARTY_TURN_NS -> in line, behind all
 *            |   parties that were fresh before it    |   others; no connection is left -> idle
 *   in line  | its turn comes, or lasts: its oldest   | its connections have used PARTY_TURN_NS -> behind all others
 *            |   connection is served next            | no connection is left -> idle
 *   indebted | in line, one of its requests took more | its turn comes -> it passes, for PARTY_TURN_NS less of debt
 *
 * So a user who asks for little waits for one request of another user, not for a turn of each (as in fq_codel, RFC
 * 8290). A turn that was used in part is as good as new once as many turns have been used up as parties stand in line.
 * A party that is served while no other is in line owes nothing.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/map.h"
#include "base/queue.h"

#define PARTY_TURN_NS (15 * INT64_C(1000)) /* about the time of three requests */

TAILQ_HEAD(party_queue, party_member);
TAILQ_HEAD(party_ring, party);

struct party {
	struct map_node node; /* parties->all */
	const void *owner;
	size_t connections;
	struct party_queue held; /* party_hold() */
	struct party_ring *line; /* the list of `parties` that it stands in, while it has a queue; else NULL */
	struct party_queue queue;
	TAILQ_ENTRY(party) link;
	int64_t spent_ns; /* of this turn; more than PARTY_TURN_NS is a debt */
	uint64_t turns;   /* parties->turns when it was served last, while others were */
};
/* Embedded in the owner that is served. */
struct party_member {
	struct party *party;        /* NULL: none yet */
	bool queued, held, is_door; /* held: queued, too; is_door: it is no connection, but where they come in (accept.h) */
	TAILQ_ENTRY(party_member) link;
};
struct parties {
	struct map all;
	size_t doors, held; /* members */
	struct party_ring fresh, ring;
	size_t ring_count;
	uint64_t turns;           /* that have been used up */
	struct party_member *only; /* the only one that is to be served: it is in no queue, which costs nothing most often */
	struct party *served;     /* the last one: time is charged to it until another one is served */
};

void parties_init(struct parties *p);
void parties_deinit(struct parties *p); /* every member must have left */
/* It belongs to that owner's party from now on. Of the owner only the address is used. */
void party_enter(struct parties *p, struct party_member *member, const void *owner);
void party_leave(struct parties *p, struct party_member *member); /* it is in no queue; it may belong to none */
/* It is held back, and not served before party_release(). */
void party_hold(struct parties *p, struct party_member *member);
void party_release(struct parties *p, struct party_member *member);
/* Time has passed for the member that parties_next() gave last; for that owner, if it has a party. */
void parties_charge(struct parties *p, int64_t ns);
void parties_charge_owner(struct parties *p, const void *owner, int64_t ns);
bool parties_contended(const struct parties *p); /* another party than the party that was served last is in line */
bool parties_is_one(const struct parties *p);    /* all connections are of one: no other one can be kept waiting */
static inline bool parties_have_work(const struct parties *p)
{
	return p->only || !TAILQ_EMPTY(&p->fresh) || !TAILQ_EMPTY(&p->ring);
}
void party_queue(struct parties *p, struct party_member *member);      /* for the next two */
struct party_member *parties_next_in_line(struct parties *p);
/* It is to be served: nothing is done when it is queued already. */
static inline void party_add(struct parties *p, struct party_member *member)
{
	if (member->queued)
		return;
	member->queued = true;
	if (parties_have_work(p))
		party_queue(p, member);
	else
		p->only = member;
}

/* The next one to be served, which is not queued any longer; NULL: nobody is to be served. */
static inline struct party_member *parties_next(struct parties *p)
{
	struct party_member *member = p->only;

	if (!member)
		return parties_next_in_line(p);
	p->only = NULL;
	member->queued = false;
	p->served = member->party;
	return member;
}
