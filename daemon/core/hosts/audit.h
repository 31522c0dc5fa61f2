/* SPDX-License-Identifier: Apache-2.0 */
/*
 * AUDIT looks into every lock directory for znodes that should not be there: above all for contenders of our own session
 * that no live claim knows. The session lives for months, and such a znode would block its lock for as long.
 *
 *   state | means                                           | event -> next state
 *   IDLE  | nobody asks for an audit                        | asked -> ROOT
 *   ROOT  | the directories below a root are being listed   | listed -> NAMES
 *   NAMES | their names are looked at, in pieces (work.h)   | all looked at -> WALK
 *   WALK  | they are being looked at, a few at a time       | all answered -> ROOT of the next root, or CLEAR
 *   CLEAR | operations sent up to the last list, deletes of | all answered -> clients are answered, IDLE
 *         |   strays included, are being answered           |
 *
 * From any of them, connection lost, daemon stopping or nobody waiting any longer -> IDLE. A client that asks while
 * a sweep is under way waits for its end and shares the next one, which sees all that stood when the client asked.
 *
 * A sweep goes last: it sends only while the connection proves, recovery is done and the window has room, and it has
 * few operations open, so that locks and heartbeats do not wait for it. It keeps the names of the directories of one
 * root, and nothing else. A child is judged when its list is answered, by the same code as in any other list: a create
 * sent after that list cannot be in it, and one sent before it is a claim's.
 */
#pragma once

#include "core/hosts/root.h"
#include "core/lock/client.h"
#include "core/port/event.h"
#include "core/port/work.h"
#include "protocol/bytes.h"

struct hosts;

enum {
	AUDIT_OPEN_MAX = 16,     /* operations open at once: a list and a read for each directory */
	AUDIT_EXAMPLES_MAX = 16, /* shown in the answer */
	AUDIT_EXAMPLE_BYTES = 2048,
};

enum audit_state { AUDIT_IDLE, AUDIT_ROOT, AUDIT_NAMES, AUDIT_WALK, AUDIT_CLEAR };

/* All counts, in one list: the answer is made from it. */
#define AUDIT_COUNTS(X) \
	X(directories, "lock directories looked at") \
	X(contenders, "children that wait for a lock or hold it, ours included") \
	X(ours, "children of this host's session that its claims know") \
	X(strays, "children of this host's session that no claim knows: deleted") \
	X(undeleted, "strays that are not deleted yet") \
	X(odd_children, "children of no known kind") \
	X(odd_names, "names below a root that are no lock's") \
	X(mismatched, "directories made for another kind of lock") \
	X(refused, "directories that ZooKeeper refuses to show")

struct audit_counts {
#define X(name, text) int64_t name;
	AUDIT_COUNTS(X)
#undef X
};

struct audit_example {
	const char *what; /* the name of its count */
	struct bytes path;
};

struct audit {
	enum audit_state state;
	struct client_list served, queued; /* by this sweep; by the next */
	uint64_t sweep;        /* its number; 0: none yet */
	size_t open;           /* operations without an answer, also of sweeps that ended early */
	struct root root;      /* the one being looked at */
	bool root_asked;
	struct work_item work; /* NAMES: for the user of the first in `served` */
	struct bytes names;    /* of the directories below it, each behind its flavour and with a NUL */
	size_t sent, answered; /* up to these bytes of `names` */
	bool mismatch;         /* the next directory to be answered is of another kind */
	uint64_t clear_op;     /* CLEAR: every operation with a smaller number must be answered */
	int64_t begun_ns;
	struct audit_counts counts;
	struct audit_example examples[AUDIT_EXAMPLES_MAX];
	size_t example_count;
};

static inline bool audit_is_idle(const struct audit *a)
{
	return a->state == AUDIT_IDLE && TAILQ_EMPTY(&a->queued);
}

void audit_deinit(struct hosts *h);
/* AUDIT: answered at once, or when the sweep has ended. */
void audit_ask(struct hosts *h, struct client *c);
void audit_wait(struct hosts *h, struct client *c); /* the same, at the end of the next sweep */
/* The client does not wait for an audit any longer, and gets no answer. */
void audit_leave(struct hosts *h, struct client *c);
void audit_continue(struct hosts *h); /* sends and finishes as much as it can now; after every event */
/* Some steps of NAMES, at most as many as that or a few more. Returns how many. */
int64_t audit_look(struct hosts *h, int64_t steps);
void audit_answered(struct hosts *h, const struct operation *op, const struct event *event);
/* The connection is lost. At a hand-over, the audits begin again on the next connection. */
void audit_suspended(struct hosts *h);
void audit_stopping(struct hosts *h);
