/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory that the control group of this process may have, and so the service: MemoryMax= of its unit. A group can be
 * inside others that have limits of their own, as a slice or a container has.
 *
 * `root` is a folder that has /proc and /sys: "" but in a test.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* How many processes the kernel has ended in the group for want of memory. 0: none, or it cannot be known. */
int64_t memory_limit_kills(const char *root);

enum { MEMORY_LIMIT_EXACT = 75 };

struct memory_use {
	uint64_t used, limit;
};

/* In percent of the limit. */
uint64_t memory_use_percent(const struct memory_use *use);
/*
 * Of the group, or of the group around it that is nearest to its limit. False: there is no limit, or it cannot be known.
 * Pages of files, which the kernel takes back before it ends a process, count as long as less than MEMORY_LIMIT_EXACT
 * percent are used: to leave them out takes the kernel longer. For a thread that may wait.
 */
bool memory_limit_read(const char *root, struct memory_use *ret);
