/* SPDX-License-Identifier: Apache-2.0 */
/*
 * New names: what is locked for the first time needs a directory in ZooKeeper, which stays for a minute or more after its
 * last use, or for good. So directories are made from a bucket, whose contents all users share like any other pool
 * (POOL_NAMES): `limits.new_names` at once, and of what is charged `limits.new_names_per_s` are given back each second,
 * the oldest first. With 0 of them nothing is limited.
 *
 *   naming | means                                                     | left by
 *   NONE   | nobody has found the directory missing                    | names_take(): made; or, of a full bucket -> WAITS
 *   WAITS  | it is missing, and its turn comes: nothing is sent for it | a charge that fits -> PAID; names_forget(): it is
 *          |                                                           |   there after all -> NONE
 *   PAID   | it may be made when it is found missing again             | names_take() -> NONE
 *
 * Turns are in order of coming; whoever has used up a share does not hold up others. So those who wait stand in lines, one
 * for each payer: a line whose first one may not be made waits as a whole, and is not looked at further. A directory that
 * somebody else pays for from now on goes to the end of that one's line. No event makes more than NAMES_MOST of those who
 * wait go on. A try does not wait: the floor above fails it (lock_settle()). A hand-over begins with an empty bucket.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/charge.h"
#include "base/queue.h"

struct account;
struct directories;
struct directory;
struct names_line;

enum { NAMES_MOST = 64 };

enum naming_state { NAMING_NONE, NAMING_WAITS, NAMING_PAID };

/* A field of each directory. */
struct naming {
	enum naming_state state;
	struct names_line *line; /* WAITS: where it stands */
	uint64_t number;         /* in order of coming */
	TAILQ_ENTRY(directory) link;
};

TAILQ_HEAD(naming_queue, directory);

/* Those who wait and have one payer: whether the first one may be made says it of all. */
struct names_line {
	struct account *account; /* has a reference */
	bool privileged;
	struct naming_queue queue; /* at least one */
	TAILQ_ENTRY(names_line) link;
};

TAILQ_HEAD(names_lines, names_line);

struct names {
	struct names_lines lines; /* whose first one came first is the first */
	size_t waiting;           /* directories in all of them */
	uint64_t last;            /* who came last has this number */
	bool more;                /* the latest look ended before all of those went on that may */
	/* What was charged, the oldest first: a ring. */
	struct charge *made;
	size_t first, count, cap;
	int64_t drained_ns; /* the instant up to which charges were given back */
};

void names_init(struct directories *all);
void names_deinit(struct directories *all);
/* The directory is missing, and may be made now. False: it waits, and is settled. */
bool names_take(struct directory *d);
/* Of a directory that waits, when it is settled: those whose turn has come go on. True: it still waits. */
bool names_continue(struct directory *d);
/* Somebody else pays for it from now on, perhaps: if it waits, it stands in that one's line. */
void names_follow(struct directory *d);
/* Why it waits, as pools_refusal() has it. */
const char *names_refusal(const struct directory *d);
/* How many are charged now: what was charged is given back when somebody looks. */
size_t names_count(struct directories *all);
/* It does not wait any longer: nobody wants it, or somebody else has made it. */
void names_forget(struct directory *d);
