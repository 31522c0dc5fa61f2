/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The scan is a page of the locks of all hosts, for LOCKS ... ALL, beside its query (query.h). It finds the first names
 * behind a given one, and then asks about one of them after the other, as WHY does. Between two locks other accounts have
 * their turns to ask; this host's own work is done in pieces (core/port/work.h).
 *
 *   state | means                                             | event -> next state
 *   ROOT  | the names below a root are being listed           | listed -> NAMES
 *   NAMES | the names of the page are picked, in pieces.      | all looked at -> ROOT of the next root, or LOCKS;
 *         |   Standalone: of the locks of this host           |   no name fits -> answered
 *   LOCKS | a lock is asked about, then its row is made, in   | its row is made -> the next lock; the last one, or the
 *         |   pieces                                          |   page is as long as an answer may be -> answered
 *
 * The list of a root grows with the locks of others: of all scans one at a time is open.
 *
 * No connection, or one that is lost: answered UNAVAILABLE. Its account may not have the memory: LIMIT. If the rules of
 * access change, LOCKS starts over. A hand-over carries the question, and it starts over.
 *
 * A row is true at its own instant: a lock that is held or waited for all the time between question and answer, and whose
 * name is one of the page's, is shown once. One that nobody has or wants is not shown.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/charge.h"
#include "core/hosts/root.h"
#include "core/hosts/view.h"
#include "core/port/entry.h"
#include "core/port/work.h"
#include "protocol/bytes.h"

struct operation;

enum {
	SCAN_COUNT = 100,      /* names of a page, unless another number is asked for, */
	SCAN_COUNT_MAX = 1000, /* and at most */
	SCAN_HOLDERS_MAX = 16, /* shown of each lock */
	SCAN_READS_MAX = 64,   /* znodes read of each lock */
};

enum scan_state { SCAN_ROOT, SCAN_NAMES, SCAN_LOCKS };

struct scan {
	struct work_item work;
	struct query *query;
	struct glob *glob;           /* of the pattern */
	struct bytes after;          /* empty: from the first name on */
	int64_t most;                /* names of the page */
	enum scan_state state;
	struct root root;
	bool root_refused;   /* ZooKeeper refuses to show the names below one */
	struct walk walk;    /* NAMES, standalone */
	struct bytes name;   /* being looked at */
	struct bytes *names; /* of the page, in their order */
	size_t count, cap, name_bytes;
	bool further;   /* there are more names behind them */
	size_t at;      /* LOCKS: the name that is asked about */
	uint32_t rules; /* env->rules that the rows were made by */
	bool showing;   /* its row is being made: */
	struct view view;
	struct bytes holders, rows;
	size_t holder_count, row_count;
	struct charge charge; /* of scan_memory() */
	bool refused;         /* its client's account may not have more */
};

/* LOCKS ... ALL: answered now or later. `after` empty: from the first name on. `most`: 1 or more. */
void scan_ask(struct hosts *h, struct client *c, struct slice pattern, struct slice after, int64_t most);
/* The memory that it needs beyond the memory of a small one. */
size_t scan_memory(const struct scan *s);

/* The names below a root. */
void scan_answered(struct hosts *h, const struct operation *op, const struct event *event);
/* Its query has found out what it wanted, or cannot: goes on, now or later. The query may be freed then. */
void scan_found(struct query *q);
void scan_leave(struct query *q); /* later */
/* Some steps, at most as many as that or a few more. Returns how many. */
int64_t scan_continue(struct scan *s, int64_t steps);
/* After a hand-over the scan starts over from its question, in either process. */
void scan_restart(struct scan *s); /* takes NULL */
void scan_snapshot(const struct scan *s, struct entry_writer *w);
/* For a query that has none yet. False: the entry is refused. */
bool scan_restore(struct query *q, const struct entry *e);
/* The query is to be freed. Takes one that has none. */
void scan_end(struct query *q);
