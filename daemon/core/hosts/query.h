/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A query is a question that this host alone cannot answer: which clients hold a lock or wait for it on all hosts, and
 * which hosts exist. A client has one at most, and waits for the answer.
 *
 *   state   | means                                      | left by
 *   ASKED   | it waits for its turn                      | its turn -> LISTING; no connection -> answered in part
 *   LISTING | the directory's list is asked for          | answered -> READING; no connection -> answered in part
 *   READING | the data of its children are asked for,    | all read -> answered; no connection -> answered in part;
 *           |   a few at a time; for LEADER the first's  |   LEADER: its znode has gone -> ASKED
 *  REVOKING | the holders that it found are revoked      | all that is done, or no connection -> answered
 * ANSWERING | its result is shown, in pieces             | all is shown -> answered (answer.h)
 *
 * A semaphore is asked for in parts, each in these states: its data (the limit); its leases, of which the first `limit` are
 * held, and also leases whose data name a holder (the limit may have been larger); for WHY and QUEUE the mutex, where all
 * wait. The children of its directory show that a name is a semaphore's if this host does not know that. LOCKS asks for the
 * names below a root (ROOT), and then about locks one by one, each in a turn of its own (scan.h).
 *
 * Accounts take turns, operators come first: they are asked in order of tags. A tag is one more than the tag of the
 * account's question before, and at least one more than the tag of the latest question whose turn has come.
 *
 * A hand-over carries only ASKED: all but REVOKING is asked again on the next process's connection (or see answer.h).
 * Nothing is asked when this host holds the lock exclusively, or in standalone mode. Without a connection the answer has
 * only the facts of this host. The data read may be older than the question: holders write about themselves (holder.h), and
 * a server may lag behind the others. A `fresh` query sends a write first. The list after it shows all that was committed
 * before it.
 */
#pragma once

#include "base/queue.h"
#include "core/znode/flavour.h"
#include "core/session/operation.h"
#include "protocol/bytes.h"
#include "protocol/commands.h"

struct client;
struct hosts;

enum {
	QUERY_CHILDREN_MAX = 1000, /* further ones are not shown; a revocation takes all */
	QUERY_READS_MAX = 16,      /* at a time */
	QUERY_ACTIVE_MAX = 4,      /* questions at a time: locks and heartbeats go first */
	QUERY_OPEN_MAX = 64,       /* open operations, also of freed queries: then the next query waits */
	QUERY_DATA_MAX = 2048,     /* bytes kept of each znode */
};

enum query_state { QUERY_ASKED, QUERY_LISTING, QUERY_READING, QUERY_REVOKING, QUERY_ANSWERING };
enum query_part { QUERY_LOCK, QUERY_LIMIT, QUERY_SLOTS, QUERY_MUTEX, QUERY_ROOT };

struct query_child {
	struct bytes name, data;
	enum mode mode;
	bool ours, gone;
	uint32_t seq;
	int64_t owner;
	struct target *target; /* REVOKING: to which it belongs; NULL: to none */
};

struct query {
	struct hosts *hosts;
	struct client *client;
	TAILQ_ENTRY(query) link; /* hosts->queries */
	uint64_t number, tag;
	enum query_state state;
	enum command command; /* HOLDERS, QUEUE, WHY, LEADER, HOSTS, LOCKS or LIMIT; REVOKE or FORCEUNLOCK: for `revocation` */
	enum flavour flavour;
	struct bytes name, path;
	enum query_part part; /* LOCK: it is not a semaphore, as far as is known */
	int64_t permits;      /* of a semaphore: the limit; 0: not known */
	bool no_semaphore;    /* the directory's data say that, whatever else shows */
	bool crowded;         /* ... a host waits for room among its leases */
	struct query_child *holders; /* ... its leases, once the mutex is asked for */
	size_t holder_count;
	int64_t limit, tries; /* LIMIT: to be set, and how often that was tried; 0: only read */
	struct revocation *revocation;
	struct answer *answer; /* ANSWERING, but LOCKS; else NULL */
	struct scan *scan; /* LOCKS; else NULL */
	bool known, fresh, wrote; /* HOLDERS: no host is to be asked; a write comes before the list; it was sent */
	struct query_child *children; /* in their order */
	size_t count, sent, answered;
	bool partial, refused, unread; /* ZooKeeper could not be asked; refused to show it; LOCKS: more hold than were read */
};

struct query *query_new(struct hosts *h, struct client *c, enum command command, struct slice name);
bool query_begin(struct query *q); /* true: it is finished at once. Not of LIMIT, which proceeds by itself */
void query_take_seen(struct query *q); /* instead of query_begin(), for `known`: only the holder a try saw (sighting.h) */
/* Continues the queries whose turn it is, after every event. Returns a finished one, to be answered and freed; or NULL. */
struct query *query_finished(struct hosts *h);
/* A hand-over ends the connection: all results so far are forgotten. Only queries that ask nobody have an answer now. */
void query_move_all(struct hosts *h);
void query_go_last(struct query *q); /* after one: behind all others, in the order in which they stood */
void query_aim(struct query *q); /* where it begins, as if it was just asked */
void query_refresh(struct query *q); /* asks once more, in its turn, as a fresh query */
void query_next(struct query *q, struct slice name); /* LOCKS: then, in its turn, about that lock; empty: about a root */
void query_free(struct query *q); /* after its answer, or when its client is gone: it has no answer, scan or revocation */
bool query_is_elsewhere(const struct query_child *child); /* it is another host's and still there */
bool query_is_held(const struct query *q, const struct query_child *lease, size_t place); /* else it waits for room */
size_t query_entitled(const struct query *q); /* so many children stand before all that conflict with them: they hold it */
void query_send(struct query *q, enum effect_type type, const struct operation_request *request); /* for it */
struct query *query_find(const struct hosts *h, uint64_t number);
/* The query whose operation was answered; NULL, as above: its client is gone. To be called once for each operation. */
struct query *query_of(struct hosts *h, const struct operation *op);
void query_answered(struct hosts *h, const struct operation *op, const struct event *event);
