/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The paths on which watches stand in ZooKeeper. The C client would set all of them again in one packet when it
 * reconnects, and a packet of 1 MB is the end of the session; so they are taken off it at every disconnection, and
 * the broker sets anew what it needs. Its own count (core/session/budget.h) is a limit on how much that is, not the remedy.
 */
#pragma once

#include <sys/queue.h>

#include "base/map.h"

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
/* Takes the kinds off the path, which may be unknown. */
void zk_paths_remove(struct zk_paths *p, const char *path, unsigned int kinds);
/* Calls for every path, and forgets them all. */
void zk_paths_clear(struct zk_paths *p, void (*each)(void *arg, const char *path), void *arg);
