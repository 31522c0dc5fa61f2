/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A waiting claim that is second in line holds at once when its predecessor goes, without a list, if two facts were shown
 * on this connection. They are forgotten with it, and so at a hand-over and a kill:
 *
 *   before    | the number of other hosts' contenders       | a list sets it. If all of them are watched
 *             |   before it; 1: it is second. Contenders    |   (`all_watched`), the deletion of one takes 1 off.
 *             |   that come later stand behind it           |   Another list or predecessor: 0, unknown
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
 * predecessor gets the lock, and the claim has to know whether it is second before the predecessor goes. A claim with two or
 * three writers before it watches all of them, so their deletions show when it is second. With more contenders the deletion
 * proves nothing, because others may have been before the predecessor: the claim lists, and no hand-off waits for that list.
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

enum { SECOND_AHEAD = 2 }; /* the most contenders that are watched, besides the predecessor and the own znode */

/* Contenders before a claim's predecessor, the nearest first; an empty name: there is none, or it need not be watched. */
struct second {
	uint8_t before;
	bool all_watched; /* all contenders before the claim will be watched: its predecessor, and those in `ahead` */
	bool watched[SECOND_AHEAD];
	struct bytes ahead[SECOND_AHEAD];
};

/* WAITING: its predecessor is gone, and it is first now. */
bool second_is_first(const struct claim *c);
/*
 * WAITING: a list has shown `others` contenders of other hosts before it. `readers`: there are readers among them. `ahead`:
 * the nearest contenders before its predecessor; an empty name: there is none, or it is this host's.
 */
void second_listed(struct claim *c, size_t others, bool readers, const struct slice ahead[SECOND_AHEAD]);
/* WAITING: its own znode needs a watch that was not sent yet. */
bool second_wants_own(const struct claim *c);
/* WAITING: a contender before its predecessor that the caller has to watch now; it counts as watched. Empty: none. */
struct slice second_watch_ahead(struct claim *c);
/* The watched znode of that name was deleted or written; the answer of WATCH_AHEAD. */
void second_watched(struct claim *c, enum zk_watch type, struct slice child);
void second_answered(struct claim *c, const struct event *event);
void second_forget(struct claim *c); /* it is no longer known which contenders are before the claim */
void second_free(struct claim *c);
