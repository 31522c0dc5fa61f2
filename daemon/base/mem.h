/*
 * Memory that is there: running out of it ends the process. Everything that can grow has a limit far below what
 * a host has, so an allocation that fails means that the host is beyond saving, and a lock service that ends is
 * one whose holders learn of it.
 */
#pragma once

#include <stdlib.h>

static inline void *mem_new(size_t size)
{
	void *p = calloc(1, size);

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
