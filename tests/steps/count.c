/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/steps/count.h"

#include <stdlib.h>
#include <string.h>

enum { BYTES_A_STEP = 16 };

static __thread uint64_t steps;

uint64_t steps_count(void)
{
	return steps;
}

/* What the compiler calls on each edge (-fsanitize-coverage=trace-pc). It is wrapped: libFuzzer has one of that name. */
void __wrap___sanitizer_cov_trace_pc(void);
void __wrap___sanitizer_cov_trace_pc(void)
{
	steps++;
}

/* ---- in the place of functions of libc (bytes.h) ---- */

void *steps_memcpy(void *to, const void *from, size_t size);
void *steps_memmove(void *to, const void *from, size_t size);
void *steps_memset(void *to, int byte, size_t size);
int steps_memcmp(const void *a, const void *b, size_t size);
void *steps_memchr(const void *in, int byte, size_t size);
size_t steps_strlen(const char *text);
void *steps_calloc(size_t count, size_t size);

static void count(size_t bytes)
{
	steps += 1 + bytes / BYTES_A_STEP;
}

void *steps_memcpy(void *to, const void *from, size_t size)
{
	count(size);
	return memcpy(to, from, size);
}

void *steps_memmove(void *to, const void *from, size_t size)
{
	count(size);
	return memmove(to, from, size);
}

void *steps_memset(void *to, int byte, size_t size)
{
	count(size);
	return memset(to, byte, size);
}

int steps_memcmp(const void *a, const void *b, size_t size)
{
	count(size);
	return memcmp(a, b, size);
}

void *steps_memchr(const void *in, int byte, size_t size)
{
	const char *found = memchr(in, byte, size);

	count(found ? (size_t)(found - (const char *)in) : size);
	return (void *)(uintptr_t)found;
}

size_t steps_strlen(const char *text)
{
	size_t len = strlen(text);

	count(len);
	return len;
}

void *steps_calloc(size_t items, size_t size)
{
	count(items * size);
	return calloc(items, size);
}
