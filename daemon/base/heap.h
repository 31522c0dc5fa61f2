/* SPDX-License-Identifier: Apache-2.0 */
/* A binary heap of timers, the earliest first. A timer is embedded in its owner and knows its place. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct timer {
	int64_t due_ns;
	size_t place; /* 1-based; 0: not set */
	int kind;     /* the owner's: the struct that container_of() finds */
};

struct heap {
	struct timer **timers; /* [1..count] */
	size_t count, cap;
};

void heap_deinit(struct heap *h);
/* Sets or moves the timer. */
void heap_set(struct heap *h, struct timer *t, int64_t due_ns);
/* Sets it unless it is already due earlier: for owners that check again when it fires. */
void heap_set_by(struct heap *h, struct timer *t, int64_t due_ns);
/* Does nothing if it is not set. */
void heap_unset(struct heap *h, struct timer *t);

static inline struct timer *heap_first(const struct heap *h)
{
	return h->count ? h->timers[1] : NULL;
}
