/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What lists and reads have shown of the contenders before and behind our claim. A try takes from it whether the lock
 * is taken (try.h).
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
void seen_listed(struct claim *c, const struct contender *nearest, const struct event *event);
/* The data of the claim's predecessor were read, with a watch. */
void seen_read(struct claim *c, struct slice data);
/* The holder on another host has been read, and nothing has happened to that znode since. */
bool seen_tells_holder(const struct directory *d);
/* Something happened to that znode, or (empty name) the connection is lost. */
void seen_forget(struct directory *d, struct slice name);
/* The present claim is held: a list has shown whether a try of another host is behind it. */
void seen_behind(struct claim *c, bool some);
