/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A lock group of clients: a program that has a connection for each of its threads or processes can say that they
 * belong together (CLIENT SETINFO OWNER). It means one thing only, to deadlock detection: nothing that one of them
 * holds is let go while another of them waits. A lock is still held by one client.
 *
 * Owners of different users are different ones, whatever their names. A client joins or leaves one only while it
 * neither holds nor waits, so that what waits for whom does not change by it.
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

/* Makes it one of the clients of that owner; an empty name: of none. False: it holds or waits. */
bool group_join(struct client *c, struct slice name);
/* It is by itself again. It neither holds nor waits. */
void group_leave(struct client *c);
/* The same client, or clients of the same owner. */
bool group_same(const struct client *a, const struct client *b);
