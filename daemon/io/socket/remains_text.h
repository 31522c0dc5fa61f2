/* SPDX-License-Identifier: Apache-2.0 */
/* What clients keep of connections that have ended (remains.h), in sentences that name the processes which keep most. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "protocol/bytes.h"

enum { REMAINS_TOP = 8 /* processes that may be named */ };

/* Zeroed: nothing. Each thing is proposed; then each is counted. So no more memory is needed for more processes. */
struct remains_tally {
	struct {
		uint32_t pid; /* 0: unknown */
		size_t votes, count;
	} top[REMAINS_TOP];
	size_t count;
	uint64_t bytes;
};

/* A process that has more than one in REMAINS_TOP + 1 of all is among `top` then, whatever the order. */
void remains_propose(struct remains_tally *t, uint32_t pid);
void remains_count(struct remains_tally *t, uint32_t pid, uint32_t bytes);

/* Nothing is appended if nothing is kept. */
void remains_answers_text(const struct remains_tally *t, struct bytes *out);
/* `late`: how many more pages nobody has open any longer. */
void remains_pages_text(const struct remains_tally *t, size_t late, struct bytes *out);
