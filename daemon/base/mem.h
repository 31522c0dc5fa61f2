/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that is there: running out of it ends the process. Everything that can grow has a limit far below what
 * a host has, so an allocation that fails means that the host is beyond saving, and a lock service that ends is
 * one whose holders learn of it.
 */
#pragma once

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/*
 * Of zeros. What a request needs is small and comes and goes: glibc keeps such pieces at hand for malloc(), but before
 * 2.41 not for calloc(), which takes ten times as long. The compiler would make one of the two, so it may not see both.
 */
static inline void *mem_new(size_t size)
{
	void *p = malloc(size);

	if (!p)
		abort();
	__asm__("" : "+r"(p));
	return memset(p, 0, size);
}

/* Of zeros, and many of them: they are not written before they are used. */
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

static inline void mem_free(void *p)
{
	free(p);
}

/*
 * For what comes and goes with each request: the last one that was freed is kept at *spare, all of one size, for the next.
 * Not where freed memory is watched.
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
