/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An election: a lock whose holder's data everybody may read. It is exclusive and its claims never linger; who is first
 * on a held claim is proclaimed before it is told: its data are written to the claim's znode (holder.h).
 *
 *   proclamation | means                                     | event -> next
 *   (none)       | its token is of no claim, or of another   | it may be granted on a held claim -> SENT
 *   SENT         | the data are being written                | answered OK -> DONE; outcome unknown -> AGAIN;
 *                |                                           |   NONODE: list, the znode is gone; refused: it fails
 *   AGAIN        | the token is its, the data may be written | connected and proving -> SENT, the same once more
 *   DONE         | the data stand                            | the session proven for long enough -> granted
 *
 * A proclamation is the hand-off: it takes the number of the token and is counted, whatever becomes of it. So two that
 * are proclaimed have two tokens, and an observer can tell them apart, also when the first gave up before it was told.
 * In standalone mode there is nobody to proclaim it to.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "core/port/event.h"

struct claim;
struct lock;
struct operation;
struct request;

enum proclamation_state { PROCLAMATION_AGAIN, PROCLAMATION_SENT, PROCLAMATION_DONE };

/* Of a request. */
struct proclamation {
	enum proclamation_state state;
	int64_t token; /* 0: none */
	uint64_t op;   /* SENT */
};

/* Its requests are proclaimed before they are granted. */
bool election_proclaims(const struct lock *lock);
/* The request has its token on this claim. */
bool election_began(const struct request *r, const struct claim *c);
/* ... and its data stand. */
bool election_done(const struct request *r, const struct claim *c);
/* Writes its data. */
void election_send(struct request *r, struct claim *c, int64_t token);
/* The answer of PROCLAIM. */
void election_answered(struct lock *lock, uint64_t number, const struct event *event);
