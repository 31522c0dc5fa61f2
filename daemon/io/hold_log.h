/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lines of the log about holds and waits (EFFECT_HOLD). docs/design/log.md has their fields.
 *
 *   hold or wait                                | becomes
 *   a hold that was lost                        | a line, within the bound of that event (base/log_event.h)
 *   within the budget (base/log_budget.h);      | a line
 *     a wait, and a hold of 10 s, is important  |
 *   beyond it                                   | a part of its lock's summary (base/busiest.h)
 *   a minute after the first of these           | a line for each of the 20 busiest locks, one for all others; then
 *                                               |   nothing is summed up any longer
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "core/port/effect.h"

struct hold_log;

#define HOLD_LOG_SUMMARY_NS (INT64_C(60) * 1000000000)

/* `key`: of hashes. `host`: this one's name; it must outlive the log. `wanted`: holds are of level info, otherwise debug. */
struct hold_log *hold_log_new(const uint64_t key[2], const char *host, bool wanted, int64_t mb_per_day);
/* Takes NULL. */
void hold_log_free(struct hold_log *h);
void hold_log_set(struct hold_log *h, bool wanted, int64_t mb_per_day);
void hold_log_note(struct hold_log *h, const struct effects *effects, const struct effect *effect);
/* In so many nanoseconds, more than 0, a summary is due; 0: there is none. */
int64_t hold_log_due_ns(const struct hold_log *h, int64_t now_ns);
/* Tells the summary if its time has come; `all`: whenever there is one. */
void hold_log_tell(struct hold_log *h, int64_t now_ns, bool all);
