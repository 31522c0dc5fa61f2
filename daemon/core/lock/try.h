/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A try: a request that waits no longer (WAIT 0, or its wait has run out), and whether the lock is taken for it. Another
 * host's idle claim, which lingers, is not: its host lets go of it when it sees ours.
 *
 *   what stands nearest before our claim         | the lock is taken
 *   one who waits for somebody before it         | at once
 *   no broker's znode                            | when its data were read
 *   a broker's whose data say `held`, or `leader`| the same; and as long as that is seen (below) without a claim of ours
 *   a broker's whose data do not say so          | `locks.try_ms` after our claim was first listed behind a stranger
 *   one of this host, which leaves               | not yet: when that is gone, a list tells who is next
 *   readers only, and the request is a reader's  | not yet: it gets a claim of its own mode when it is the first
 *
 * Other hosts do not count a claim that only tries want among those who wait, or hand-offs would end for nothing: its name
 * says so, and its host writes none that bears it for a request that waits. A host that sees one behind a claim with
 * grants writes `held` into the data of that claim, once. From then on the claim never lingers, nor does one that follows
 * it without a gap (rollover.h): the word stays true until the znode goes. What the data say besides (holder.h) may be of an
 * earlier grant.
 */
#pragma once

#include <stdbool.h>

#include "core/znode/mode.h"

struct claim;
struct lock;

/* Nothing but tries want the lock. */
bool try_only(const struct lock *lock);
/* For a request of that mode, by what was seen. */
bool try_seen_taken(const struct lock *lock, enum mode mode);
/* Our claim waits, and was listed: the lock is taken for a request of that mode. */
bool try_taken(const struct claim *c, enum mode mode);
