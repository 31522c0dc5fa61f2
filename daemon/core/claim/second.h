/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A waiting claim that is second in line holds at once when its predecessor goes, without a list, if two facts were shown
 * on this connection. They are forgotten with it, and so at a hand-over and a kill:
 *
 *   second    | no other host's contender is before it but | a list showed that. Left by: another list, another
 *             |   its predecessor: later ones are behind   |   predecessor
 *   own_watch | STANDS: its znode existed when that watch  | UNSET -> ASKED: it waits; ASKED -> STANDS: answered;
 *             |   was answered, and nothing has happened   |   CHANGED, DELETED -> UNSET: that used the watch up, and what
 *             |   to it since                              |   comes then would not be told
 *
 * All of this comes on one connection, in the order in which it happened. So when the predecessor's DELETED comes (or
 * NONODE answers the get), nothing else was before the claim at that moment, and its own znode existed. The answer about
 * the own znode must come first: a watch that an earlier claim set on the same predecessor may still stand, and reports its
 * end before that.
 *
 * A claim farther back also watches `ahead`, the contender before its predecessor. When the znode of `ahead` is deleted, the
 * predecessor gets the lock; a list at that time shows that the claim is second, and no hand-off waits for the list. The
 * deletion alone does not prove that the claim is second: more contenders may have been before the predecessor.
 *
 * In all other cases a list decides. Nobody has looked who waits behind a claim that held at once: somebody may (`rivals`).
 */
#pragma once

#include <stdbool.h>

#include "core/port/event.h"
#include "protocol/slice.h"

struct claim;

/* Of a znode: not set, or used up; sent; answered, and nothing has happened since. */
enum claim_watch { CLAIM_UNSET, CLAIM_ASKED, CLAIM_STANDS };

/* WAITING: its predecessor is gone, and it is first now. */
bool second_is_first(const struct claim *c);
/* WAITING: a list has shown which contender is before its predecessor. `ahead` is empty if no other host's is. */
void second_listed(struct claim *c, struct slice ahead);
/* WAITING: its own znode, or the znode before its predecessor, has to be watched, and is not watched yet. */
bool second_wants_own(const struct claim *c);
bool second_wants_ahead(const struct claim *c);
/* The watched znode of that name was deleted or written; the answer of WATCH_AHEAD. */
void second_watched(struct claim *c, enum zk_watch type, struct slice child);
void second_answered(struct claim *c, const struct event *event);
void second_forget(struct claim *c); /* it is no longer known which contenders are before the claim */
