/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ledger: memory that outlives the process, from which another one can go on after a kill. Everything that a holder may
 * rely on stands there before any effect of its event is carried out. At whatever instruction the process is killed, a
 * record reads as before its change or as after it. ledger_record.h tells what it looks like.
 *
 *   a cell    | means                         | left by
 *   free      | its type is NONE              | ledger_take() -> being written
 *   taken     | the same; its owner fills it  | ledger_publish() -> record
 *   record    | it is read                    | ledger_store() -> record, with another value in one field;
 *             |                               |   ledger_drop() -> free
 *
 * To change more than one field, its owner publishes another record with the same number, and drops the first.
 *
 * Memory that no record is in is given back, so that the ledger becomes smaller:
 *
 *   chunk    | means                           | left by
 *   unused   | it is in a part of the ledger   | a record finds no free cell -> divided; ledger_shrink() -> given back
 *   divided  | it is in the list of its size   | ledger_shrink(), if all its cells are free -> given back
 *   given    | the caller of ledger_shrink()   | ledger_add() -> unused
 *   back     |   has it                        |
 *
 * A reader finds no record in a chunk whose word is 0: the word becomes 0 before the first of its cells is removed.
 *
 * For what finds no room the cell is private memory; the head says how much is missing. The caller of ledger_new() and
 * ledger_add() gives zeroed memory, aligned to 64 bytes, and owns it. A reader finds what was added right behind it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/port/ledger_record.h"

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

struct ledger {
	struct ledger_head *head;
	uint64_t generation, last_number; /* the number of the last record that had none of its own */
	struct ledger_cells cells[LEDGER_CLASSES];
	struct ledger_part *parts; /* unused chunks: the last part is used first */
	size_t part_count, room; /* bytes of those */
	struct ledger_private *private; /* records without room */
	void *arg;                      /* of ledger_stored */
};

/* The bytes are at least one chunk, and a multiple of it (LEDGER_CHUNK_BYTES). */
struct ledger *ledger_new(void *memory, size_t bytes);
void ledger_add(struct ledger *l, void *memory, size_t bytes);
/* These take NULL. The memory stays as it is. */
void ledger_free(struct ledger *l);
void ledger_session(struct ledger *l, int64_t session);
void ledger_state(struct ledger *l, uint64_t epoch, bool jeopardy);
void ledger_draining(struct ledger *l, bool draining);
void ledger_zxids(struct ledger *l, int64_t floor, int64_t seen, int64_t own);
void ledger_lasting(struct ledger *l, uint64_t count);
size_t ledger_records(const struct ledger *l);
size_t ledger_room(const struct ledger *l); /* bytes of unused chunks */
bool ledger_full(const struct ledger *l);   /* there are records without room */
void *ledger_move(struct ledger *l, void *record); /* such a one to where there is room now. Returns its place */

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

/* Tests: called after each store that a reader can notice. The daemon never sets it, so its linker leaves the calls out. */
extern void (*ledger_stored)(void *arg);
/* What the functions below do seldom. */
void *ledger_take_any(struct ledger *l, size_t bytes);
void ledger_drop_private(struct ledger *l, struct ledger_record *r);
void ledger_raise(struct ledger *l, enum ceiling which, uint64_t number);

/* Each store that a reader can notice; what is stored later is stored later. */
static inline void ledger_store(struct ledger *l, uint64_t *at, uint64_t value)
{
	__atomic_store_n(at, value, __ATOMIC_RELEASE);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	if (ledger_stored)
		ledger_stored(l->arg);
}

/* A free cell of that size or more. The caller fills it, but for the word. Never NULL. */
static inline void *ledger_take(struct ledger *l, size_t bytes)
{
	if (bytes <= LEDGER_CELL_MIN && l->cells[0].count)
		return l->cells[0].list[--l->cells[0].count];
	return ledger_take_any(l, bytes);
}

static inline void ledger_publish(struct ledger *l, struct ledger_record *r, enum ledger_type type)
{
	ledger_store(l, &r->word, ++l->generation << 8 | (r->word & 0xf0) | type);
}

static inline void ledger_drop(struct ledger *l, struct ledger_record *r)
{
	struct ledger_cells *cells = &l->cells[LEDGER_CLASS(r->word)];

	if (r->word & LEDGER_PRIVATE) {
		ledger_drop_private(l, r);
		return;
	}
	ledger_store(l, &r->word, r->word & 0xf0);
	r->number = cells->count;
	cells->list[cells->count++] = r;
}

/* Before a number is used. Takes NULL. */
static inline void ledger_number(struct ledger *l, enum ceiling which, uint64_t number)
{
	if (l && number > l->head->ceilings[which])
		ledger_raise(l, which, number);
}
