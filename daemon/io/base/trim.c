/* SPDX-License-Identifier: Apache-2.0 */
#include "io/base/trim.h"

#include <malloc.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
	MMAP_BYTES = 1 << 20, /* larger blocks are no part of the heap */
	FREE_AT_ONCE = 64,
	SMALLER = 2, /* the next size is that part of the one before */
	SMALLEST_BYTES = 8 << 10,
};

_Static_assert((int)TRIM_PIECE_BYTES < (int)MMAP_BYTES, "a block is from the heap");

/* What it begins with stays resident. */
struct trim_block {
	struct trim_block *next;
};

/*
 * Bounds that are set once stay: otherwise the C library raises them to the largest block that was ever freed. And small
 * blocks that are free are joined at once: otherwise all of them when a larger one is asked for, a million in 100 ms.
 */
void trim_setup(void)
{
	mallopt(M_MXFAST, 0);
	mallopt(M_MMAP_THRESHOLD, MMAP_BYTES);
	mallopt(M_TRIM_THRESHOLD, MMAP_BYTES);
}

void trim_init(struct trim *t)
{
	*t = (struct trim){ .heap = sbrk(0) };
}

void trim_deinit(struct trim *t)
{
	if (t->state == TRIM_TAKING)
		t->state = TRIM_FREEING;
	while (t->state != TRIM_REST)
		trim_piece(t, 0);
}

void trim_ask(struct trim *t, uint64_t used, int64_t now_ns)
{
	trim_note(t, used);
	if (t->state != TRIM_REST || t->most - used < TRIM_FELL_BYTES || now_ns < t->not_before_ns)
		return;
	t->most = used;
	t->state = TRIM_TAKING;
	t->size = TRIM_PIECE_BYTES;
	t->taken = 0;
}

/* Whole pages of it: its neighbours may be in use. */
static void give_back(struct trim_block *block, size_t size)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	uintptr_t begin = ((uintptr_t)(block + 1) + page - 1) / page * page, end = ((uintptr_t)block + size) / page * page;

	if (begin < end)
		madvise((void *)begin, end - begin, MADV_DONTNEED);
}

/* Of that size. NULL: there is none, and the heap would have to grow for it. */
static struct trim_block *take(size_t size)
{
	const char *end = sbrk(0);
	struct trim_block *block = malloc(size);

	if (block && sbrk(0) == end)
		return block;
	free(block);
	return NULL;
}

/* Under an allocator that has no such heap, there is nothing to be taken. */
static bool take_next(struct trim *t)
{
	struct trim_block *block;

	if (t->taken >= (size_t)((char *)sbrk(0) - t->heap))
		return false;
	block = take(t->size);
	if (!block) {
		t->size /= SMALLER;
		return t->size >= SMALLEST_BYTES;
	}
	give_back(block, t->size);
	block->next = t->blocks;
	t->blocks = block;
	t->taken += t->size;
	return true;
}

static void free_some(struct trim *t)
{
	struct trim_block *block;

	for (int i = 0; i < FREE_AT_ONCE && (block = t->blocks); i++) {
		t->blocks = block->next;
		free(block);
	}
}

void trim_piece(struct trim *t, int64_t now_ns)
{
	if (t->state == TRIM_TAKING && !take_next(t))
		t->state = TRIM_FREEING;
	else if (t->state == TRIM_FREEING)
		free_some(t);
	if (t->state == TRIM_FREEING && !t->blocks) {
		t->state = TRIM_REST;
		t->not_before_ns = now_ns + TRIM_PAUSE_NS;
	}
}
