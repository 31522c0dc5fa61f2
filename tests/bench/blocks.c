/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A library to be preloaded into a program: it records the program's blocks of the heap in the file that BENCH_BLOCKS
 * names (lines.py). The file is an array of the entries below; the first one has their number as its size.
 * Blocks of at least a line of the cache begin with one, so that the lines of a structure are the same in each run.
 */
#include "mapped.h"

#include <malloc.h>
#include <stdint.h>
#include <string.h>

/* More than a daemon allocates while it starts and serves a few dozen requests. Later blocks are left out. */
enum { ENTRIES_MAX = 1 << 20, WORDS = 8, LINE_BYTES = 64 };

struct entry {
	uint64_t block, size; /* the size 0: it was freed */
	/* Words of the stack, from which lines.py finds the callers; the first is the return address. Unwinding is too slow. */
	uint64_t stack[WORDS];
};

static struct entry *entries;

/* glibc's own. */
extern void *__libc_malloc(size_t size);
extern void *__libc_memalign(size_t alignment, size_t size);
extern void __libc_free(void *p);

static __attribute__((constructor)) void begin(void)
{
	const char *path = getenv("BENCH_BLOCKS");

	if (!path)
		abort();
	/* A program that has replaced itself by this one (exec) may have left its entries in the file. */
	entries = mapped_file(path, ENTRIES_MAX * sizeof(*entries));
}

/* `frame`: the address of the caller's frame. The return address and the frames of further callers follow it. */
static void note(void *block, size_t size, const uint64_t *frame)
{
	uint64_t i;

	if (!entries || !block)
		return;
	i = __atomic_add_fetch(&entries[0].size, 1, __ATOMIC_RELAXED);
	if (i >= ENTRIES_MAX)
		return;
	entries[i].block = (uintptr_t)block;
	entries[i].size = size;
	for (int word = 0; size && word < WORDS; word++)
		entries[i].stack[word] = frame[1 + word];
}

static void *get(size_t size)
{
	return size < LINE_BYTES ? __libc_malloc(size) : __libc_memalign(LINE_BYTES, size);
}

void *malloc(size_t size)
{
	void *p = get(size);

	note(p, size, __builtin_frame_address(0));
	return p;
}

void *calloc(size_t count, size_t size)
{
	void *p = count && size > SIZE_MAX / count ? NULL : get(count * size);

	if (p)
		memset(p, 0, count * size);
	note(p, count * size, __builtin_frame_address(0));
	return p;
}

void *realloc(void *old, size_t size)
{
	size_t had = malloc_usable_size(old);
	void *p = get(size);

	if (!p)
		return NULL;
	if (old)
		memcpy(p, old, had < size ? had : size);
	free(old);
	note(p, size, __builtin_frame_address(0));
	return p;
}

void free(void *p)
{
	note(p, 0, NULL);
	__libc_free(p);
}
