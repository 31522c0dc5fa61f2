/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that is always there: running out of it ends the process. Everything that can grow has a limit far below the
 * memory of a host, so a failing allocation means that the host is beyond repair; and when a lock service ends, its
 * holders learn of it.
 */
#pragma once

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/*
 * Zeroed memory. Requests need small pieces that come and go: glibc keeps such pieces at hand for malloc(), but before
 * 2.41 not for calloc(), which takes ten times as long. The compiler would turn malloc() and memset() into calloc(), so
 * it must not see both.
 */
static inline void *mem_new(size_t size)
{
	void *p = malloc(size);

	if (!p)
		abort();
	__asm__("" : "+r"(p));
	return memset(p, 0, size);
}

/* Zeroed memory for large arrays, which is not written before it is used. */
static inline void *mem_new_array(size_t count, size_t size)
{
	void *p = calloc(count, size);

	if (!p)
		abort();
	return p;
}

static inline void *mem_resize(void *old, size_t size)
{
	void *p = realloc(old, size);

	if (!p)
		abort();
	return p;
}

enum { MEM_ROOM_FIRST = 64 };

/* Room for one more element behind `count` of them: twice as much if there is none. `*cap` is 0 at first. */
static inline void *mem_room(void *array, size_t count, size_t *cap, size_t size)
{
	if (count < *cap)
		return array;
	*cap = *cap ? 2 * *cap : MEM_ROOM_FIRST;
	return mem_resize(array, *cap * size);
}

/* A copy of that part of a text, with its own end; freed by mem_free(). */
static inline char *mem_text_part(const char *text, size_t len)
{
	char *copy = mem_new(len + 1);

	if (len)
		memcpy(copy, text, len);
	return copy;
}

/* The same of a whole text. */
static inline char *mem_text(const char *text)
{
	return mem_text_part(text, strlen(text));
}

/* Overwrites a secret: the compiler may not leave it out, as it may memset() before free(). Takes NULL. */
static inline void mem_wipe(void *p, size_t size)
{
	if (p)
		memset(p, 0, size);
	__asm__ volatile("" : : "r"(p) : "memory");
}

static inline void mem_free(void *p)
{
	free(p);
}

/*
 * Zeroes an object that is allocated and freed with each request. Each request writes the first `used` bytes; the rest of
 * the object, at least MEM_PIECE_BYTES, is mostly zero already. In the rest, a piece that is zero is not written again, so
 * that its line of the cache stays clean.
 */
enum { MEM_PIECE_BYTES = 64 };

static inline void mem_clear(void *object, size_t used, size_t size)
{
	typedef uint64_t words __attribute__((vector_size(16)));
	char *p = object, *last = p + size - MEM_PIECE_BYTES;
	words w[MEM_PIECE_BYTES / sizeof(words)], any;

	assert(used + MEM_PIECE_BYTES <= size);
	memset(p, 0, used);
	for (p += used;; p = p + MEM_PIECE_BYTES < last ? p + MEM_PIECE_BYTES : last) {
		memcpy(w, p, MEM_PIECE_BYTES);
		any = w[0] | w[1] | w[2] | w[3];
		if (any[0] | any[1])
			memset(p, 0, MEM_PIECE_BYTES);
		if (p == last)
			return;
	}
}

/*
 * For objects of one size: the last one that was freed is kept at *spare for the next. Not if a sanitizer watches freed
 * memory. `used`: see mem_clear().
 */
static inline void *mem_new_spared(void **spare, size_t used, size_t size)
{
	void *p = *spare;

	if (!p)
		return mem_new(size);
	*spare = NULL;
	mem_clear(p, used, size);
	return p;
}

static inline void mem_spare(void **spare, void *p)
{
#ifdef __SANITIZE_ADDRESS__
	bool keep = false;
#else
	bool keep = !*spare;
#endif

	if (keep)
		*spare = p;
	else
		mem_free(p);
}
