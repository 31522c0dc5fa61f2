/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that clients no longer need is given back to the kernel. It was allocated in small pieces, of which a few are
 * still in use, so it lies between these: free() alone gives back only the memory behind the last piece. malloc_trim(3)
 * gives back all, but in one step, which takes about 100 ms for a gigabyte. Here it is a few pages at a time: a block
 * is taken from the free memory, the kernel gets its pages, and when there are no more such blocks, they are all free
 * again.
 *
 *   state   | means                    | event -> next state
 *   REST    | nothing is given back    | TRIM_PAUSE_NS after the last time, TRIM_FELL_BYTES less are used than at some
 *           |                          |   time since then -> TAKING
 *   TAKING  | blocks are taken, large  | a piece: the next block; none of the smallest size is left, or as much as the
 *           |   ones first             |   process can have was taken -> FREEING
 *   FREEING | blocks are free again    | a piece: some; all -> REST
 *
 * The caller says how much is used: about, and only by clients. It calls for the next piece when nothing else is to be done.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TRIM_PAUSE_NS (10 * INT64_C(1000000000))
enum { TRIM_FELL_BYTES = 4 << 20, TRIM_PIECE_BYTES = 256 << 10 };

enum trim_state { TRIM_REST, TRIM_TAKING, TRIM_FREEING };

struct trim {
	enum trim_state state;
	uint64_t most;         /* that was used since the last time */
	int64_t not_before_ns; /* the next time */
	char *heap;            /* where it begins */
	size_t size;           /* TAKING: of a block */
	size_t taken;          /* bytes */
	struct trim_block *blocks;
};

/* Once, before there are threads: large blocks are the kernel's as soon as they are free, small ones are joined at once. */
void trim_setup(void);
void trim_init(struct trim *t);
void trim_deinit(struct trim *t);

/* So much is used now. */
static inline void trim_note(struct trim *t, uint64_t used)
{
	if (used > t->most)
		t->most = used;
}

/* Less may be used one day, and it is to be asked then: there is something that could be given back. */
static inline bool trim_may_be_due(const struct trim *t)
{
	return t->state == TRIM_REST && t->most >= TRIM_FELL_BYTES;
}

/* REST -> TAKING, if it is time. */
void trim_ask(struct trim *t, uint64_t used, int64_t now_ns);
/* TAKING and FREEING: a piece. It gives back at most TRIM_PIECE_BYTES. */
void trim_piece(struct trim *t, int64_t now_ns);
