/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A user of the host: all clients of one account, to whom its turns are shared; and its lock groups.
 *
 * A program that has a connection for each of its threads or processes can say that they belong together (CLIENT
 * SETINFO OWNER). Only deadlock detection uses this: it assumes that no member releases anything while another member
 * waits. Each lock is still held by one client. A client joins or leaves a group only while it neither holds nor
 * waits, so that the waits-for graph does not change.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/map.h"
#include "base/queue.h"
#include "core/port/work.h"
#include "protocol/bytes.h"

struct account;
struct client;
struct locks;
struct scripts;

TAILQ_HEAD(delegations_list, delegations);

struct user {
	struct map_node node; /* locks->users */
	struct account *account;
	size_t clients;
	struct work_user worker; /* the work for its clients */
	struct scripts *scripts; /* that it has sent (command/script.h), in one piece of memory; NULL: none */
	struct delegations_list delegations; /* of its clients that have delegated grants */
	uint64_t last_query;     /* tag of its latest question to other hosts (hosts/query.h) */
};

TAILQ_HEAD(group_clients, client);

struct group {
	struct map_node node; /* locks->groups */
	const struct account *account; /* groups of different ones are different, even if their names are equal */
	struct bytes name;
	struct group_clients clients; /* at least one */
	/* Of searches for a deadlock: the last walk that met it; waits in its set, in that walk. */
	uint64_t search, tied_in;
	size_t tied;
};

/* Adds a client: the struct lives as long as it has some. */
struct user *user_enter(struct locks *locks, struct account *account);
/* Removes one, which neither waits nor holds. True: it was the last one, and the struct is gone. */
bool user_leave(struct locks *locks, struct user *user);
/* Puts the client into the group of that name; an empty name: into none. False: it holds or waits. */
bool group_join(struct client *c, struct slice name);
void group_leave(struct client *c);                                   /* it neither holds nor waits */
bool group_same(const struct client *a, const struct client *b);      /* the same client, or of the same group */
