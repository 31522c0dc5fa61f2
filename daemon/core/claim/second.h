/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A waiting claim that is second in line holds at once when its predecessor goes, without a list, if two facts were shown
 * on this connection. They are forgotten with it, and so at a hand-over and a kill:
 *
 *   before    | how many other hosts' contenders are before | a list showed that; 2 -> 1: `ahead` was deleted.
 *             |   it: 1, it is second. Later ones are        |   Unknown (0): another list, another predecessor
 *             |   behind it                                 |
 *   own_watch | STANDS: its znode existed when that watch   | UNSET -> ASKED: it waits; ASKED -> STANDS: answered;
 *             |   was answered, and nothing has happened    |   CHANGED, DELETED -> UNSET: the event used the watch
 *             |   to the znode since                        |   up, so later events would not be reported
 *
 * All of this comes on one connection, in the order in which it happened. So when the predecessor's DELETED comes (or
 * NONODE answers the get), nothing else was before the claim at that moment, and its own znode existed. The answer about
 * the own znode must come first: a watch that an earlier claim set on the same predecessor may still stand, and reports its
 * end before that.
 *
 * A claim farther back also watches `ahead`, the contender before its predecessor. When the znode of `ahead` is deleted, the
 * predecessor gets the lock, and it has to be known whether the claim is second before that one goes. A claim with two
 * writers before it watches both, so that their deletions show it. With more, the deletion alone does not prove it, because
 * others may have been before the predecessor: a list shows it, and no hand-off waits for that list. To watch a third one
 * as well costs more than that list: one more host would be woken up by each release.
 *
 * In all other cases a list decides. Nobody has looked who waits behind a claim that held at once: somebody may (`rivals`).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/port/event.h"
#include "protocol/bytes.h"

struct claim;

/* Of a znode: not set, or used up; sent; answered, and nothing has happened since. */
enum claim_watch { CLAIM_UNSET, CLAIM_ASKED, CLAIM_STANDS };

struct second {
	uint8_t before;
	bool writers; /* all of those are */
	bool watched;
	struct bytes ahead; /* the contender before the predecessor; empty: none, or it need not be watched */
};

/* WAITING: its predecessor is gone, and it is first now. */
bool second_is_first(const struct claim *c);
/*
 * WAITING: a list has shown so many contenders of other hosts before it, only writers or not, and which one is before its
 * predecessor; empty: no other host's.
 */
void second_listed(struct claim *c, size_t others, bool writers, struct slice ahead);
/* WAITING: its own znode has to be watched, and is not watched yet. */
bool second_wants_own(const struct claim *c);
/* WAITING: the znode before its predecessor has to be watched, and is not watched yet. */
bool second_wants_ahead(const struct claim *c);
/* The watched znode of that name was deleted or written; the answer of WATCH_AHEAD. */
void second_watched(struct claim *c, enum zk_watch type, struct slice child);
void second_answered(struct claim *c, const struct event *event);
void second_forget(struct claim *c); /* it is no longer known which contenders are before the claim */
void second_free(struct claim *c);
