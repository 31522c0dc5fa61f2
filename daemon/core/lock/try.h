/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A try is a request that does not wait any longer (WAIT 0, or its wait has run out): is the lock taken for it? Another
 * host's idle claim, which lingers, does not take it: that host releases the claim when it sees ours.
 *
 *   the nearest contender before our claim       | the lock is taken
 *   it waits for another one before it           | at once
 *   it is not a broker's znode                   | when its data were read
 *   a broker's whose data say `held`, or `leader`| the same; and as long as that is seen (seen.h), without our claim
 *   a broker's whose data do not say so          | `locks.try_ms` after our claim was first listed behind others
 *   one of this host, which is LEAVING           | not yet: when it is gone, a list shows who is next
 *   readers only, and the request is a reader's  | not yet: it gets a claim of its own mode when it is first
 *
 * Other hosts do not count a claim that only tries want as waiting, or hand-offs would end for nothing. The claim's
 * name marks it as such, and its host creates no marked claim for a request that waits. A host that sees one behind a
 * claim with grants writes `held` into that claim's data, once. From then on neither the claim nor one that follows it
 * without a gap (rollover.h) lingers: the word stays true until the znode goes. The rest of the data (holder.h) may
 * describe an earlier grant.
 */
#pragma once

#include <stdbool.h>

#include "core/znode/mode.h"

struct claim;
struct lock;

/* Only tries want the lock. */
bool try_only(const struct lock *lock);
/* The data seen last show that the lock is taken for a request of that mode. */
bool try_seen_taken(const struct lock *lock, enum mode mode);
/* Our claim waits, and was listed: the lock is taken for a request of that mode. */
bool try_taken(const struct claim *c, enum mode mode);
