/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Standalone: the file <statedir>/tokens has the number below which claim numbers may have been used, so that no
 * fencing token is ever repeated. A reservation is on the disk before the broker learns of it. The file is one line of
 * digits; anything else is an error, because a guess could repeat a token.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "io/base/worker.h"

struct parcel;
struct tokens;

/*
 * Makes `statedir` if it is missing, locks <statedir>/tokens.lock (-EBUSY: another daemon has it) and reads the file
 * (missing: 0; -EBADMSG: corrupt). -errno otherwise.
 */
int tokens_open(struct tokens **ret_tokens, const char *statedir, int64_t *ret_limit);
/* From here on tokens_reserve() may be called; `reserved` is called on the loop. */
void tokens_start(struct tokens *t, struct watch_base *base, struct worker *worker,
		  void (*reserved)(void *arg, int64_t limit), void *arg);
/* Nothing is reserved before that many nanoseconds have passed, so nothing is granted. */
void tokens_hold(struct tokens *t, int64_t ns);
/* Somebody has removed the lock file, or the file. */
bool tokens_are_missing(const struct tokens *t, const char *statedir);
/* Makes them again. 0 or -errno; -EBUSY: another daemon has the lock. */
int tokens_again(struct tokens *t, const char *statedir);
/* The worker writes the file; a failed write is repeated every second until it succeeds. */
void tokens_reserve(struct tokens *t, int64_t limit);
/*
 * A hand-over, only while nothing is being written: the worker of this process must not replace the file that the next
 * process wrote. The broker repeats its request. 0 or -errno.
 */
bool tokens_writing(const struct tokens *t);
void tokens_pack(const struct tokens *t, struct parcel *p);
int tokens_unpack(struct tokens **ret_tokens, struct parcel *p, const char *statedir);
/* To be called after the worker has stopped. Takes NULL. */
void tokens_free(struct tokens *t);
