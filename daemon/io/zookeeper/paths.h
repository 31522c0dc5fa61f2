/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The paths that have watches in ZooKeeper. When the C client reconnects, it would set all of them again in one packet,
 * and a packet of 1 MB is the end of the session. So they are removed from the client at every disconnection, and the
 * broker sets the watches again that it needs. The broker's own count (core/session/budget.h) limits how many these
 * are; it is not the remedy.
 */
#pragma once

#include <stdbool.h>
#include <sys/queue.h>

#include "base/map.h"
#include "core/port/event.h"

enum { ZK_PATH_DATA = 1, ZK_PATH_CHILDREN = 2 };

struct zk_path {
	struct map_node node;
	TAILQ_ENTRY(zk_path) entry;
	unsigned int kinds;
	char path[];
};

struct zk_paths {
	struct map map;
	TAILQ_HEAD(zk_path_list, zk_path) list;
};

void zk_paths_init(struct zk_paths *p);
void zk_paths_deinit(struct zk_paths *p);
void zk_paths_add(struct zk_paths *p, const char *path, unsigned int kind);
/* Removes these kinds from the path, which may be unknown. */
void zk_paths_remove(struct zk_paths *p, const char *path, unsigned int kinds);
/* The library reports an event on the path: watches that it used up are removed. False: `type` is no event of a watch. */
bool zk_paths_fired(struct zk_paths *p, const char *path, int type, enum zk_watch *ret);
/* Calls the function for every path, and forgets all paths. */
void zk_paths_clear(struct zk_paths *p, void (*each)(void *arg, const char *path), void *arg);
