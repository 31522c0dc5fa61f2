/* SPDX-License-Identifier: Apache-2.0 */
/* The mode of a lock: how a request, a grant or a claim wants or holds it. */
#pragma once

#include <stdbool.h>

enum mode { MODE_EXCLUSIVE, MODE_SHARED };

static inline bool mode_conflicts(enum mode a, enum mode b)
{
	return a == MODE_EXCLUSIVE || b == MODE_EXCLUSIVE;
}

/* A claim of mode `held` can serve a request of mode `wanted`. */
static inline bool mode_covers(enum mode held, enum mode wanted)
{
	return held == MODE_EXCLUSIVE || wanted == MODE_SHARED;
}

static inline const char *mode_word(enum mode mode)
{
	return mode == MODE_EXCLUSIVE ? "exclusive" : "shared";
}
