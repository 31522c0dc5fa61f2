/* SPDX-License-Identifier: Apache-2.0 */
/* The smaller and the larger of two instants or lengths. */
#pragma once

#include <stdint.h>

static inline int64_t min64(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static inline int64_t max64(int64_t a, int64_t b)
{
	return a > b ? a : b;
}
