/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A waiting claim that is second in line holds at once when its predecessor goes, without a list, if two facts were shown
 * on this connection. They are forgotten with it, and so at a hand-over and a kill:
 *
 *   second    | no other host's contender is before it but | a list showed that. One is sent when the data of the
 *             |   its predecessor: later ones are behind   |   predecessor say that it holds the lock: the data alone do
 *             |                                            |   not prove it, for a znode may be made again by hand with an
 *             |                                            |   older number. Left by: another list, another predecessor
 *   own_watch | STANDS: its znode existed when that watch  | UNSET -> ASKED: it is second; ASKED -> STANDS: answered;
 *             |   was answered, and nothing has happened   |   CHANGED, DELETED -> UNSET: that used the watch up, and what
 *             |   to it since                              |   comes then would not be told
 *
 * All of this comes on one connection, in the order in which it happened. So when the predecessor's DELETED comes (or
 * NONODE answers the get), nothing else was before the claim at that moment, and its own znode existed. The answer about
 * the own znode must come first: a watch that an earlier claim set on the same predecessor may still stand, and reports its
 * end before that.
 *
 * In all other cases a list decides. Nobody has looked who waits behind a claim that held at once: somebody may (`rivals`).
 */
#pragma once

#include <stdbool.h>

#include "protocol/slice.h"

struct claim;

/* Of a znode: not set, or used up; sent; answered, and nothing has happened since. */
enum claim_watch { CLAIM_UNSET, CLAIM_ASKED, CLAIM_STANDS };

/* WAITING: its predecessor is gone, and it is first now. */
bool second_is_first(const struct claim *c);
/* WAITING: its own znode is to be watched, which is not done yet. */
bool second_wants_watch(const struct claim *c);
/* The data of its predecessor were read: lists the directory if they say that it is next. */
void second_read(struct claim *c, struct slice data);
