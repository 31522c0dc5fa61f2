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
 * A reader finds no record in a chunk whose word is 0: the word becomes 0 before the first of its cells is removed.
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
	void **list; /* the free cells: the last is taken first. Each has its index in this list as its number */
	size_t count, cap;
	char **chunks; /* the chunks that are divided into these cells */
	size_t chunk_count, look; /* the chunks from `look` on were looked at */
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

/* True: more than half of the memory is unused, and at least `bytes`. */
bool ledger_may_shrink(const struct ledger *l, size_t bytes);
/* Starts looking at all chunks. To be called between two events. */
void ledger_shrink_begin(struct ledger *l);
/*
 * Gives back some unused chunks, of which `keep` bytes stay, or looks at one divided chunk. False: nothing is left to look
 * at. Returns in *ret the memory that is given back, which is the caller's from now on, as long as the memory of the ledger
 * exists. *ret_bytes is a multiple of a chunk; 0: nothing was given back this time.
 */
bool ledger_shrink(struct ledger *l, size_t keep, void **ret, size_t *ret_bytes);
