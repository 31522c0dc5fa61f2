/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The holds and waits of a lock, by its entries in the journal (docs/design/log.md). An entry of a hold is
 * written at the hold's end, and is whole; so a hold that overlaps the asked time can stand anywhere behind it, and all
 * entries of a name are read, in their order.
 *
 *     granted, waits     -> open
 *     released, lost     -> a hold. Its open row is closed; a part of a semaphore's permits leaves the rest open
 *     waited             -> a long wait, which closes its open row
 *     granted, released, -> an open wait of the same client has ended before this grant, and the end is not in the journal
 *     lost
 *     serves             -> the same of all open waits of that host: they end with the process, and not in a hand-over
 *     granted, released, -> an open row of another client that cannot share has ended before this grant, and the end is
 *     lost, delegated       not in the journal: a daemon was killed, or its line was left out
 *     delegated, summary -> a row that stands for several holds
 *     the last entry     -> a row that is still open is held, or waits
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client-lib/cli/journal.h"

/* Rows that are kept of each list: beyond that, the oldest ones are left out, and counted. */
enum { HISTORY_ROWS_MAX = 20000 };

enum history_state { HISTORY_ENDED, HISTORY_OPEN, HISTORY_UNKNOWN /* its end is not in the journal */ };

struct history_row {
	int64_t since_ms, until_ms; /* since 1970; HISTORY_OPEN: INT64_MAX; HISTORY_UNKNOWN: no later than that */
	enum history_state state;
	uint64_t who;     /* distinguishes clients, but for collisions */
	bool is_shared;   /* of a hold: others of its kind go on beside it */
	uint64_t number;  /* of its entry, for rows of one instant */
	uint64_t permits; /* of a hold of a semaphore; HISTORY_OPEN: the permits that are left */
	bool is_older;    /* HISTORY_OPEN: its host's daemon was started again since */
	struct journal_entry entry,
		begin; /* `begin`: of a wait that has ended, the entry that said it is long; or empty */
};

struct history_rows {
	struct history_row *rows;
	size_t count, cap;
	uint64_t left_out;
};

struct history {
	const char *name;
	int64_t from_ms, to_ms; /* the asked time: all rows that overlap it */
	/* Out: rows in the order of their begin. */
	struct history_rows holds, waits;
	/* The gaps of the rows, in the asked time. */
	uint64_t delegations, takings; /* rows, and the takings that they stand for */
	uint64_t summaries, summed;    /* likewise, holds and long waits */
	uint64_t others_summed;        /* of locks that have no summary of their own: perhaps some of this lock */
	uint64_t unread, held_back;    /* lines of any event that the journal, or the daemon's bounds, left out */
	bool standalone;               /* by the last entry that says so */
	/* Private. */
	struct history_rows open_holds, open_waits;
	uint64_t entries;
};

/* For journal_read(): the context is the struct. */
bool history_take(void *context, struct journal_entry *entry);
/* After the last entry. */
void history_end(struct history *h);
void history_free(struct history *h);
