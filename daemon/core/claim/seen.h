/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What lists and reads have shown of those before and behind our claim, for who asks whether the lock is taken (try.h).
 *
 * `seen` is what a znode's data said, read with a watch that still stands: whether it is in use counts for a second, who
 * holds it is told to those who ask what this host knows (HOLDERS name KNOWN).
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
	struct bytes by; /* the znode's name; empty: nothing is seen */
	struct bytes data;
	enum mode mode;
	bool first; /* nobody before it conflicts with it: it holds the lock, if somebody does */
	bool in_use;
	int64_t until_ns; /* for a try */
};

/* A list has shown who stands nearest before our claim, which waits. */
void seen_listed(struct claim *c, const struct contender *nearest, const struct event *event);
/* The data of the one before it were read, with a watch. */
void seen_read(struct claim *c, struct slice data);
/* Who holds the lock on another host has been read, and nothing has happened to that znode since. */
bool seen_tells_holder(const struct directory *d);
/* Something happened to that znode, or the connection is gone (empty). */
void seen_forget(struct directory *d, struct slice name);
/* The present claim is held: a list has shown whether there is a try of somebody else's behind it. */
void seen_behind(struct claim *c, bool some);
