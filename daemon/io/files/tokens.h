/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Standalone: the file <statedir>/tokens has the number below which claim numbers may have been used, so that no
 * fencing token is ever repeated. A reservation is on the disk before the broker is told. The file is one line of
 * digits; anything else is an error, because a guess could repeat a token.
 */
#pragma once

#include <stdint.h>

#include "io/base/worker.h"

struct tokens;

/*
 * Makes `statedir` if it is missing, locks <statedir>/tokens.lock (-EBUSY: another daemon has it) and reads the file
 * (missing: 0; -EBADMSG: corrupt). -errno otherwise.
 */
int tokens_open(struct tokens **ret_tokens, const char *statedir, int64_t *ret_limit);
/* From here on tokens_reserve() may be called; `reserved` is called on the loop. */
void tokens_start(struct tokens *t, struct watch_base *base, struct worker *worker,
		  void (*reserved)(void *arg, int64_t limit), void *arg);
/* The worker writes the file; a failed write is repeated every second until it succeeds. */
void tokens_reserve(struct tokens *t, int64_t limit);
/* To be called after the worker has stopped. Takes NULL. */
void tokens_free(struct tokens *t);
