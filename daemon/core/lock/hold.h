/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lines of the log about holds and long waits (EFFECT_HOLD; the fields are in docs/design/log.md).
 *
 *   state  | timer                                    | event -> line
 *   a hold | set: it is younger than 10 s             | it ends -> `released` or `lost`; the timer -> `granted`
 *          | not set                                  | it ends -> `released` or `lost`
 *   a wait | set: it is younger than long_wait_ns     | it ends -> nothing; the timer -> `waits`
 *          | not set, `said`                          | it ends -> `waited`
 *          | not set: long_wait_ns was 0 when it began | it ends -> nothing
 *
 * A delegation is said when it ends (`delegated`), and is no hold, unless its process holds the lock then. After a kill the
 * timers of holds and waits that go on are not set.
 */
#pragma once

#include <stdint.h>

#include "base/log_event.h"

struct grant;
struct locks;
struct request;
struct timer;

/* `count` permits, or the lock. `why`: NULL unless they have ended. Takes `delegated` of a grant that is not. */
void hold_say(const struct grant *g, enum log_event event, const char *why, int64_t count);
/* They begin. */
void hold_watch(struct grant *g);
void hold_watch_wait(struct request *r);
void hold_waited(struct request *r, const char *why); /* it has ended */
void hold_due(struct locks *locks, struct timer *t); /* the timer of a hold or a wait has run out */
