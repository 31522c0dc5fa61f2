/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A bearer owns one lock and is known by a value, as a Redis lock is: any client of the user that shows the value may
 * release or extend the lock, over any connection or none. It is a client (client.h) like any other, with requests and
 * grants that queue, count and are lost as usual; but it has no connection, and nothing is sent to it.
 *
 *   state  | means                                   | event -> next state
 *   ASKING | it has the request of a bid (client/    | granted -> HOLDS; taken -> WAITS, or freed; failed, or the bid's
 *          |   bid.h)                                |   client gone -> freed
 *   WAITS  | it has a place (place.h): a request or  | its value is asked for when its turn has come -> HOLDS; not asked
 *          |   a grant that is kept for it           |   for in time, failed, lost -> freed
 *   HOLDS  | it has a grant, with a lease, or it is  | released by its value or by the process that set it, lease over, the
 *          |   tied to the process that has set it   |   process it is tied to has ended, lost in any other way -> freed
 *          |   (lifeline.h); never both              |
 *
 * So there is one for each such grant or request, and their charges bound them. A hand-over and a ledger carry it. After a
 * kill it keeps its grant, and no ghost is needed, because it had no connection before, either.
 *
 * The value is a secret, as a password is: it is in snapshots and the ledger, which only the daemon reads; in no log, no
 * answer to another user and no znode; and its memory is wiped.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/charge.h"
#include "base/queue.h"
#include "base/sha256.h"
#include "core/lock/place.h"
#include "protocol/bytes.h"

struct entry_pairs;
struct grant;
struct lifeline;

enum { BEARER_VALUE_MAX = 512 /* bytes, at least 1 */ };

struct bearer {
	struct client *client;
	struct bytes value;
	struct lifeline *lifeline; /* NULL: it is not tied */
	TAILQ_ENTRY(bearer) link;  /* lifeline->bearers */
	struct charge charge;
	struct place place;
};

/* A place in a queue, and no bid; or a turn that is kept for it. */
#define bearer_has_place(client) ((client)->bearer->place.timer.place != 0)
/* Its program knows that it holds the lock: the grant is not kept for a place, and no bid is still without an answer. */
bool bearer_is_told(const struct client *bearer);
/* For that client's user and process, with a copy of the value. */
struct client *bearer_new(const struct client *by, struct slice value);
/* The charge of a bearer of that value (POOL_MEMORY). */
size_t bearer_memory(struct slice value);
void bearer_free(struct client *bearer); /* it neither holds nor waits */
void bearer_adopt(struct client *bearer, const struct client *by); /* from now on it is of that client's process */
void bearer_leave(struct client *bearer);                          /* its place, if it has one */
/* It has a grant, which is to lose its lease: it is tied to its process, which is watched. */
void bearer_tie(struct client *bearer);
/* Its grant has just got a lease, or is to have one: it is tied to no process any longer, if it was. */
void bearer_untie(struct client *bearer);
/* Frees it if it neither holds nor waits. */
void bearer_rest(struct client *bearer);
/* The grant of a bearer of that client's user, if its program knows of it; otherwise NULL. `lock` may be NULL. */
struct grant *bearer_grant(const struct lock *lock, const struct client *c);
/* The same, if the bearer has that value. */
struct grant *bearer_grant_of(const struct lock *lock, const struct client *c, struct slice value);
/* The hash (base/sha256.h) proves to another host that this host knows the value. Another salt makes another hash. */
void bearer_hash(struct slice salt, struct slice value, char ret[SHA256_HEX_CHARS + 1]);
/* The same for a letter of another host: the grant, if the uid and the hash of its value are these. */
struct grant *bearer_grant_by_hash(const struct lock *lock, int64_t uid, struct slice salt, struct slice sha256);
/* The client is of the process that has set it, which is known. */
bool bearer_is_of(const struct client *bearer, const struct client *c);
/* Its first grant was made, or its last has ended: notifies the adapter whether the broker has any such bearer. */
void bearer_holds(struct client *bearer, bool holds);

/* In a snapshot a client has a number: of its connection, or, for a bearer, one that no connection has. */
int64_t bearer_number(const struct client *c);
/* The client of that number; NULL. */
struct client *bearer_numbered(const struct locks *locks, int64_t number);
void bearer_snapshot(const struct client *bearer, const struct entry_pairs *noted, struct bytes *out);
bool bearer_restore(struct locks *locks, const struct entry *e);
/* Wipes a text that has the value in it. Takes an empty one. */
void bearer_wipe(struct bytes *text);
