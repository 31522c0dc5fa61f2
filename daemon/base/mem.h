/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that is always there: running out of it ends the process. Everything that can grow has a limit far below the
 * memory of a host, so a failing allocation means that the host is beyond repair; and when a lock service ends, its
 * holders learn of it.
 */
#pragma once

#include <stdbool.h>
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
 * For objects of one size that come and go with each request: the last one that was freed is kept at *spare for the next.
 * Not if a sanitizer watches freed memory.
 */
static inline void *mem_new_spared(void **spare, size_t size)
{
	void *p = *spare;

	if (!p)
		return mem_new(size);
	*spare = NULL;
	return memset(p, 0, size);
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
