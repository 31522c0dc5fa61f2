/* SPDX-License-Identifier: Apache-2.0 */
/*
 * AUDIT: looks into every lock directory for what should not be there. Above all for contenders of our own session
 * that no live claim knows: the session lives for months, and such a znode would block its lock as long.
 *
 *   state | means                                           | event -> next state
 *   IDLE  | nobody asks                                     | asked -> ROOT
 *   ROOT  | the directories below a root are being listed   | listed -> WALK
 *   WALK  | they are being looked at, a few at a time       | the last one answered -> ROOT of the next; no more -> CLEAR
 *   CLEAR | what was sent up to the last list, deletes of   | all answered -> clients are answered, IDLE
 *         |   strays included, is being answered            |
 *
 * From any of them, connection lost, daemon stopping or nobody waiting any longer -> IDLE. Who asks while a sweep is
 * under way waits for it to end and shares the next one: what stood when it asked is looked at.
 *
 * A sweep goes last: it sends only while the connection proves, recovery is done and the window has room, and has few
 * operations open, so that locks and heartbeats do not wait for it. Of the directories it keeps the names of one root,
 * nothing else. A child is judged when its list is answered, by the same code as in any other list: a create sent
 * after that list cannot be in it, and one sent before it is a claim's.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/lock/client.h"
#include "core/port/event.h"
#include "protocol/bytes.h"

struct hosts;
struct operation;

enum {
	AUDIT_OPEN_MAX = 16,     /* operations open at once: a list and a read for each directory */
	AUDIT_EXAMPLES_MAX = 16, /* of what was found, told in the answer */
	AUDIT_EXAMPLE_BYTES = 2048,
};

enum audit_state { AUDIT_IDLE, AUDIT_ROOT, AUDIT_WALK, AUDIT_CLEAR };

/* What is counted, one list: the answer is made from it. */
#define AUDIT_COUNTS(X) \
	X(directories, "lock directories looked at") \
	X(contenders, "children that wait for a lock or hold it, ours included") \
	X(ours, "those of this host's session that its claims know") \
	X(strays, "those of this host's session that no claim knows: deleted") \
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
	struct client_list served, queued; /* by this sweep, by the next */
	uint64_t sweep;        /* its number; 0: none yet */
	size_t open;           /* operations without an answer, those of sweeps that ended early included */
	size_t root;           /* the one being looked at: */
	struct slice path, prefix; /* <path>/<znode name> is the lock <prefix><name> */
	bool root_asked;
	struct bytes names;    /* of the directories below it, each with a NUL */
	size_t sent, answered; /* so many bytes of `names` */
	bool mismatch;         /* the next directory to be answered is of another kind */
	uint64_t clear_op;     /* CLEAR: what has a smaller number must be answered */
	int64_t begun_ns;
	struct audit_counts counts;
	struct audit_example examples[AUDIT_EXAMPLES_MAX];
	size_t example_count;
};

void audit_init(struct hosts *h);
void audit_deinit(struct hosts *h);
/* AUDIT: answered at once, or when the sweep has ended. */
void audit_ask(struct hosts *h, struct client *c);
/* It waits for no audit any longer, and is not answered. */
void audit_leave(struct hosts *h, struct client *c);
/* Goes on with what can be sent or finished now. After every event. */
void audit_continue(struct hosts *h);
/* Answers of AUDIT_ROOT, AUDIT_DATA, AUDIT_LIST and AUDIT_DELETE. */
void audit_answered(struct hosts *h, const struct operation *op, const struct event *event);
/* The connection is gone. */
void audit_suspended(struct hosts *h);
/* The daemon is stopping. */
void audit_stopping(struct hosts *h);
