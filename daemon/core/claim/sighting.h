/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The facts that lists and reads have shown about the contenders before and behind our claim, and their use for a try. A try
 * is a request that does not wait any longer (WAIT 0, or its wait has run out): is the lock taken for it? Another host's
 * idle claim, which lingers, does not take it: that host releases the claim when it sees ours.
 *
 *   the nearest contender before our claim       | the lock is taken
 *   it waits for another one before it           | at once
 *   it is not a broker's znode                   | when its data were read
 *   a broker's whose data say `held`, or `leader`| the same; and as long as that is seen, without our claim
 *   a broker's whose data do not say so          | `locks.try_ms` after our claim was first listed behind others
 *   one of this host, which is LEAVING           | not yet: when it is gone, a list shows who is next
 *   readers only, and the request is a reader's  | not yet: it gets a claim of its own mode when it is first
 *
 * Other hosts do not count a claim that only tries want as waiting, or hand-offs would end for nothing. The claim's
 * name marks it as such, and its host creates no marked claim for a request that waits. A host that sees one behind a
 * claim with grants writes `held` into that claim's data, once. From then on neither the claim nor one that follows it
 * without a gap (claim.h) lingers: the word stays true until the znode goes. The rest of the data (holder.h) may
 * describe an earlier grant.
 *
 * `seen` keeps the data of a znode, read with a watch that is still set. Whether it is in use counts for a second; its
 * holder is shown to clients that ask for what this host knows (HOLDERS name KNOWN).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "core/port/event.h"
#include "core/znode/contender.h"
#include "protocol/bytes.h"

struct claim;
struct directory;

struct seen {
	struct bytes by; /* the znode's name; empty: none */
	struct bytes data;
	enum mode mode;
	bool first; /* nobody before it conflicts: it holds the lock if anybody does */
	bool in_use;
	int64_t until_ns; /* until then it counts for a try */
};

/* A list has shown the contender nearest before our waiting claim. */
void sighting_listed(struct claim *c, const struct contender *nearest, const struct event *event);
/* The data of the claim's predecessor were read, with a watch. */
void sighting_read(struct claim *c, struct slice data);
/* The holder on another host has been read, and nothing has happened to that znode since. */
bool sighting_tells_holder(const struct directory *d);
/* Something happened to that znode, or (empty name) the connection is lost. */
void sighting_forget(struct directory *d, struct slice name);
/* The data seen last show that the lock is taken for a request of that mode. */
bool sighting_taken(const struct directory *d, enum mode mode);
/* Our claim waits, and was listed: the lock is taken for a request of that mode. */
bool sighting_taken_before(const struct claim *c, enum mode mode);
