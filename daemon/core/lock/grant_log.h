/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The log lines of locks: one for each grant, release and loss, if the configuration wants them
 * (broker_conf.log_grants; the caller checks that, so that it costs nothing otherwise). A re-entry has no line.
 *
 *   granted: lock "orders/42", exclusive, token 4398046511105, to client 12, uid 1000, pid 4711 ("worker")
 *   released: lock "orders/42", exclusive, token 4398046511105, after 1250 ms, by client 12, uid 1000, ...
 *   lost (session): election "e", exclusive, token 8796093022208, after 60000 ms, by client 3, uid 0, ...
 *   granted: 2 permits of semaphore "s", to client 12, uid 1000, ...
 *
 * The brackets at the end hold the client's program and the name that it gave itself; those of `lost` hold the loss.
 */
#pragma once

#include <stdint.h>

#include "core/lock/grant.h"

/* `count`: the number of permits. */
void grant_log_granted(const struct grant *g, int64_t count);
void grant_log_released(const struct grant *g, int64_t count);
/* The grant has just been lost. */
void grant_log_lost(const struct grant *g);
