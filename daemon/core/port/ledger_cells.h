/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cells of a ledger (ledger.h), by their sizes, and how it becomes smaller: memory that no record is in is given back.
 *
 *   chunk    | means                           | left by
 *   unused   | it is in a part of the ledger   | a record finds no free cell -> divided; ledger_shrink() -> given back
 *   divided  | it is in the list of its size   | ledger_shrink(), if all its cells are free -> given back
 *   given    | the caller of ledger_shrink()   | ledger_add() -> unused
 *   back     |   has it                        |
 *
 * For a reader, no record is in a chunk whose word is 0: that is stored before the first of its cells goes.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "core/port/ledger_record.h"

struct ledger;

/* Unused chunks in a row. */
struct ledger_part {
	char *next, *end;
};

struct ledger_cells {
	void **list; /* those that are free: the last is taken first. The number of each is its place here */
	size_t count, cap;
	char **chunks; /* that they are in */
	size_t chunk_count, look; /* those from here on were looked at */
};

static inline size_t ledger_cell_size(unsigned int class)
{
	return (size_t)LEDGER_CELL_MIN << class;
}

/* In a chunk. */
static inline size_t ledger_cell_count(unsigned int class)
{
	return (LEDGER_CHUNK_BYTES - LEDGER_CELLS_AT) / ledger_cell_size(class);
}

static inline struct ledger_record *ledger_cell(char *chunk, unsigned int class, size_t i)
{
	return (struct ledger_record *)(void *)(chunk + LEDGER_CELLS_AT + i * ledger_cell_size(class));
}

/* More than half of all is free, and so many bytes at least. */
bool ledger_may_shrink(const struct ledger *l, size_t bytes);
/* All chunks are looked at from now on. Between two events. */
void ledger_shrink_begin(struct ledger *l);
/*
 * One of them is; of what is unused, `keep` bytes stay. False: that was all. Returns in *ret what is given back: from now on
 * it is the caller's, as long as the memory that it lies in. *ret_bytes is a multiple of a chunk; 0: nothing was, this time.
 */
bool ledger_shrink(struct ledger *l, size_t keep, void **ret, size_t *ret_bytes);
