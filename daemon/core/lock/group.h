/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A lock group of clients: a program that has a connection for each of its threads or processes can say that they
 * belong together (CLIENT SETINFO OWNER). Only deadlock detection uses this: it assumes that no member releases
 * anything while another member waits. Each lock is still held by one client.
 *
 * Groups of different users are different, even if their names are equal. A client joins or leaves a group only while
 * it neither holds nor waits, so that the waits-for graph does not change.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/map.h"
#include "base/queue.h"
#include "protocol/bytes.h"

struct client;

TAILQ_HEAD(group_clients, client);

struct group {
	struct map_node node; /* broker->groups */
	uint32_t uid;
	struct bytes name;
	struct group_clients clients; /* at least one */
};

/* Puts the client into the group of that name; an empty name: into none. False: it holds or waits. */
bool group_join(struct client *c, struct slice name);
/* The client, which neither holds nor waits, leaves its group. */
void group_leave(struct client *c);
/* The two are the same client, or of the same group. */
bool group_same(const struct client *a, const struct client *b);
