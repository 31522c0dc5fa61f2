/* SPDX-License-Identifier: Apache-2.0 */
/*
 * New names: a name that is locked for the first time needs a directory in ZooKeeper, which stays for a minute or more after
 * its last use, or for good. So directories are made from a bucket, whose contents all users share like any other pool
 * (POOL_NAMES): `limits.new_names` at once. Each second `limits.new_names_per_s` charges are given back, the oldest first;
 * 0: there is no limit.
 *
 *   naming | means                                                     | left by
 *   NONE   | nobody has found the directory missing                    | names_take(): made; or, of a full bucket -> WAITS
 *   WAITS  | it is missing, and its turn comes: nothing is sent for it | a charge that fits -> PAID; names_forget(): it is
 *          |                                                           |   there after all -> NONE
 *   PAID   | it may be made when it is found missing again             | names_take() -> NONE
 *
 * Directories take their turns in the order in which they came, but a user who has used up a share does not delay others. So
 * waiting directories stand in lines, one line for each payer. If the first directory of a line may not be made, the whole
 * line waits, and the rest of it is not looked at. A directory that gets another payer goes to the end of the new payer's
 * line. At most NAMES_MOST waiting directories go on in one event. A try does not wait: the floor above fails it
 * (lock_settle()). A hand-over begins with an empty bucket.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/charge.h"
#include "base/queue.h"

struct directories;
struct directory;
struct names_line;

enum { NAMES_MOST = 64 };

enum naming_state { NAMING_NONE, NAMING_WAITS, NAMING_PAID };

/* A field of each directory. */
struct naming {
	enum naming_state state;
	struct names_line *line; /* WAITS: the line in which it stands */
	uint64_t number;         /* directories are numbered in the order in which they came */
	TAILQ_ENTRY(directory) link;
};

TAILQ_HEAD(naming_queue, directory);

/* The waiting directories of one payer: if the first one may not be made, no other may. */
struct names_line {
	struct account *account; /* has a reference */
	bool privileged;
	struct naming_queue queue; /* at least one */
	TAILQ_ENTRY(names_line) link;
};

TAILQ_HEAD(names_lines, names_line);

struct names {
	struct names_lines lines; /* in the order in which their first directories came */
	size_t waiting;           /* directories in all of them */
	uint64_t last;            /* the number of the directory that came last */
	bool more;                /* the latest look ended at NAMES_MOST: more directories may go on */
	/* The charges, the oldest first: a ring. */
	struct charge *made;
	size_t first, count, cap;
	int64_t drained_ns; /* the instant up to which charges were given back */
};

void names_init(struct directories *all);
void names_deinit(struct directories *all);
/* True: the missing directory may be made now. False: it waits, and is settled; or it was refused (lasting.h), and fails. */
bool names_take(struct directory *d);
/* For a waiting directory, when it is settled: the directories whose turn has come go on. True: `d` still waits. */
bool names_continue(struct directory *d);
/* The directory's payer may have changed: a directory that waits moves to the line of its payer. */
void names_follow(struct directory *d);
/* How many are charged now. It gives back the charges that are due. */
size_t names_count(struct directories *all);
/* It does not wait any longer: nobody wants it, or somebody else has made it. */
void names_forget(struct directory *d);
