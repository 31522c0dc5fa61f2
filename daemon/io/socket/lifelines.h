/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The processes whose ends free locks (core/lock/lifeline.h): EFFECT_LIFELINE and EFFECT_LIFELINE_OVER. Each is watched by a
 * pidfd. That is of the process which started at the instant that the broker knows: the start is read before and after the
 * descriptor is opened, so that a number that is another process' by now is never taken for it.
 *
 * A descriptor counts as a connection of its user (socket_pools.h): a user who may not have one more is refused, unless
 * something is tied to the process already, as after a hand-over or a kill. If the kernel gives no descriptor for one
 * of those, the process is looked at now and then.
 */
#pragma once

#include <stdint.h>

#include "protocol/slice.h"

struct accounts;
struct effect;
struct feed;
struct lifelines;
struct remains;

/* The accounts of connections must outlive it, and also the remains of ended connections. */
struct lifelines *lifelines_new(struct feed *feed, struct accounts *accounts, struct remains *remains);
/* Takes NULL. */
void lifelines_free(struct lifelines *l);
/* The end of the process is reported when all is settled, for the broker is handling an event now. */
void lifelines_watch(struct lifelines *l, const struct effect *effect, struct slice unit);
void lifelines_over(struct lifelines *l, uint64_t number);
void lifelines_settle(struct lifelines *l);
