/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operations sent to ZooKeeper and not answered yet. They are answered in the order of sending within a connection, so they
 * form a queue; an answer names its operation by a number that is never used twice. When the connection ends every open
 * operation is of unknown outcome, at once and here: if the adapter still reports on them later, that is dropped by its
 * number.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/port/effect.h"
#include "core/port/event.h"
#include "core/session/proof.h"

struct ensemble;
struct directory;

/* The operations: the kind, the module that acts on the answer (recovery.c), and the words for a refusal (health.h). */

/* clang-format off */
#define OPERATION_KINDS(X) \
	X(PATH, PRESENCE, "make the directories of all locks") /* create a parent of everything */ \
	X(BEAT, PRESENCE, "announce this host") /* create or set this host's own znode: the heartbeat */ \
	X(DUPLICATE, PRESENCE, "read who announced this host's name") /* get that znode, which another session made */ \
	X(TRY, PRESENCE, "make a znode for whatever lock") /* create one below the root: can any be made (health.h)? */ \
	X(TRY_END, PRESENCE, "delete the znode of a try") /* and delete it */ \
	X(DIR_MAKE, DIRECTORY, "make") /* create a lock's directory */ \
	X(DIR_GET, DIRECTORY, "read") /* get its data: kind and flavour */ \
	X(DIR_END, DIRECTORY, "delete") /* delete it: its numbers run out and it is empty */ \
	X(DIR_REMOVE, DIRECTORY, "delete") /* delete it, if it is empty: nobody here has used it for long */ \
	X(LIST, LISTING, "list") /* list it */ \
	X(JOIN, CLAIM, "create a znode in") /* create a claim's znode */ \
	X(LOOK_OWN, LOOK, "read a znode of") /* get a waiting claim's own znode (listing.h), */ \
	X(LOOK_PRED, LOOK, "read a znode of") /* and its predecessor */ \
	X(WATCH_PRED, CLAIM, "read a znode of") /* get and watch the predecessor that a claim waits for */ \
	X(WATCH_OWN, CLAIM, "read a znode of") /* get and watch a claim's own znode */ \
	X(WATCH_AHEAD, CLAIM, "read a znode of") /* get and watch the one before that predecessor (claim.h) */ \
	X(ADOPT, CLAIM, "read a znode of") /* get a znode that a create of unknown outcome left */ \
	X(LEAVE, CLAIM, "delete a znode of") /* delete a claim's znode */ \
	X(HOLDER, CLAIM, "describe a holder in") /* set the data of a held claim's znode */ \
	X(PROCLAIM, KIND, "write who leads in") /* the same, of an election: its next leader (election.h) */ \
	X(OBSERVE_LIST, KIND, "show who leads in") /* list an election's directory (observe.h) */ \
	X(OBSERVE_GET, KIND, "show who leads in") /* get and watch its first contender */ \
	X(SEMAPHORE_GET, KIND, "read the limit of") /* get and watch the data of a semaphore: its limit */ \
	X(SEMAPHORE_WRITE, KIND, "make a semaphore") /* make it or one of its directories, or set its limit */ \
	X(LIMIT_GET, LIMIT, "read or set a limit") /* get a semaphore's data for LIMIT */ \
	X(LIMIT_SET, LIMIT, "read or set a limit") /* set them for LIMIT */ \
	X(QUERY_LIST, QUERY, "say what was asked about other hosts") /* list a directory for a query (query.h) */ \
	X(QUERY_GET, QUERY, "say what was asked about other hosts") /* get a child from such a list */ \
	X(QUERY_WRITE, QUERY, "say what was asked about other hosts") /* a write without effect, before such a list */ \
	X(AUDIT_ROOT, AUDIT, "show a directory to an audit") /* list the directories below a root */ \
	X(AUDIT_DATA, AUDIT, "show a directory to an audit") /* get the data of a directory there: its kind and flavour */ \
	X(AUDIT_LIST, AUDIT, "show a directory to an audit") /* list it */ \
	X(AUDIT_DELETE, AUDIT, "delete an orphaned znode") /* delete an orphan in it, whose lock is not known */ \
	X(INBOX_LIST, INBOX, "let this host read its mail") /* list this host's mailbox, with a children watch */ \
	X(INBOX_GET, INBOX, "let this host read its mail") /* get a letter, */ \
	X(INBOX_DELETE, INBOX, "let this host read its mail") /* and delete it: both are sent together */ \
	X(LETTER_POST, OUTBOX, "pass a letter to another host") /* create a letter in another host's mailbox */ \
	X(LETTER_WITHDRAW, OUTBOX, "pass a letter to another host") /* delete it, if nobody has read it */ \
	X(REVOCATION_DELETE, REVOCATION, "delete the znode of a holder that does not answer") \
	X(SCAN_LIST, SCAN, "show which locks there are") /* list the directories below a root, for LOCKS ... ALL (scan.h) */
/* clang-format on */

enum operation_kind {
#define X(name, owner, words) OPERATION_##name,
	OPERATION_KINDS(X)
#undef X
};

#define X(name, owner, words) +1
enum { OPERATION_KIND_COUNT = 0 OPERATION_KINDS(X) };
#undef X
/*
 * How much may be open at ZooKeeper: as much as is answered in a 24th of T, and in the time that a write takes, so that
 * a heartbeat or a delete never waits for long behind earlier operations.
 *
 * Three gauges: bytes, reads and writes, for a link, a server and its disk each have a speed of their own. The answers
 * between the sending of an operation and its own answer show how fast the connection is: in that time so much went
 * through. A gauge grows to the amount that would go through in time at that speed, but to no more than twice the amount
 * that did; it shrinks when an answer took longer than it should have, and slowly while it is not made use of. An amount
 * that slows no connection down may always be open, and one operation, however large.
 *
 * Bytes are counted of requests and of their answers, as far as an answer's length can be expected (operation.c).
 */

enum window_gauge { WINDOW_BYTES, WINDOW_READS, WINDOW_WRITES, WINDOW_GAUGES };

enum {
	/* A connection begins with these; they are soon twice as much, and again, if it is faster. */
	WINDOW_FIRST_BYTES = 16384,
	WINDOW_FIRST_COUNT = 64,
	/* If so little is open and an answer still takes long, that has another reason. */
	WINDOW_LEAST_BYTES = 4096,
	WINDOW_LEAST_COUNT = 8,
};

struct window {
	int64_t open[WINDOW_GAUGES];     /* sent and not answered */
	int64_t size[WINDOW_GAUGES];     /* how much may be open */
	int64_t answered[WINDOW_GAUGES]; /* ever, on this connection */
	int64_t used_ns[WINDOW_GAUGES];  /* when at least half of it was made use of */
	int64_t trip_ns;                 /* the shortest time from a write to its answer; INT64_MAX: none yet */
};

/* Of an operation that is open. */
struct flight {
	int64_t bytes;
	bool write;
	int64_t sent_ns;
	int64_t answered[WINDOW_GAUGES]; /* before it was sent */
};

void window_begin(struct window *w, int64_t now_ns); /* a connection begins, or is gone: nothing is open */
/* flight: bytes, write and sent_ns are given. */
void window_sent(struct window *w, struct flight *flight);
void window_answered(struct window *w, const struct flight *flight, int64_t now_ns, int64_t timeout_ns);
bool window_has_room(const struct window *w);                       /* one more operation may be sent */
int64_t window_span_ns(const struct window *w, int64_t timeout_ns); /* the time in which a full window is answered */

struct operation {
	enum operation_kind kind;
	bool done;
	bool watch; /* LIST, INBOX_LIST, OBSERVE_*: it sets a watch */
	struct directory *directory; /* where it is asked, and kept alive by that; NULL: none. This floor does not look at it */
	uint64_t claim;              /* number of the claim, which may be gone by now; 0: none. AUDIT_*: of the sweep */
	uint64_t query; /* number of the query or letter, which may be gone by now; INBOX_*: of the list */
	uint64_t part;  /* REVOCATION_DELETE: which of its targets */
	struct flight flight;
	struct proof_write write; /* of a write */
};

struct operations {
	struct operation *ring;
	size_t cap;          /* a power of two */
	uint64_t first, end; /* open operations have first <= number < end; numbers start at 1 */
	int64_t answered_ns; /* when the latest answer came */
	struct window window;
	int64_t list_bytes; /* the expected list of a directory that is not known */
};

/* An operation to be sent, without its data (operation_data()). The slices are copied. */
struct operation_request {
	struct operation op; /* kind, directory, claim, flags; the rest is filled in */
	struct slice path;
	struct slice child; /* the name of a znode below `path`; empty: that is the path itself */
	int64_t list_bytes; /* EFFECT_ZK_LIST: the length of the last answer; 0: not known */
	enum zk_create create;
	bool exact; /* EFFECT_ZK_SET: only of that version */
	int32_t version;
};

/* Where the data of the operation that is sent next are written. */
struct bytes *operation_data(const struct ensemble *zk);
/* Sends it and returns its number. Only while connected. */
uint64_t operation_send(struct ensemble *zk, enum effect_type type, const struct operation_request *request);
/* When the oldest open one was sent; INT64_MAX: nothing is open. */
int64_t operation_oldest_ns(const struct ensemble *zk);
/*
 * The server has been silent since: the later of the latest answer and the sending of the oldest open operation. Pings,
 * watch events and the handshake answer nothing. INT64_MAX: nothing is open.
 */
int64_t operation_silent_since(const struct ensemble *zk);
/* NULL: it is not open. */
const struct operation *operation_find(struct ensemble *zk, uint64_t number);
/* It is answered now: measures the connection by that. Returns the bytes of a list. */
int64_t operation_measure(struct ensemble *zk, const struct operation *op, const struct event *event);
/* Off the queue, before its answer is acted on: operations that this sends are queued behind. */
struct operation operation_take(struct ensemble *zk, uint64_t number);
void operation_deinit(struct operations *o);
