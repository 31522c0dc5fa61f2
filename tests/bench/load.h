/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A load: processes that take and release locks of one service, each through a session of its own, as fast as they
 * can. A peer is a kind of service; it knows how to lock there and nothing of what is measured.
 *
 * The parent calls prepare() once, each process open() once, then lock() and unlock() in turn. A peer whose request
 * and answer can be told apart gives ask() and granted() instead of lock(). All but prepare() return 0 or -1, having
 * said why on the standard error. Nothing in them may fail silently: what fails ends the load.
 */
#pragma once

#include <stdint.h>

struct lock_name {
	uint32_t number; /* the same for the same text */
	char text[64];
};

struct peer {
	const char *word;
	int (*prepare)(const char *target, const struct lock_name *names, int count); /* may be NULL */
	void *(*open)(const char *target);                                            /* NULL: failed */
	int (*lock)(void *session, const struct lock_name *name);                     /* NULL: ask and granted */
	int (*lock_shared)(void *session, const struct lock_name *name);              /* NULL: it is not measured with readers */
	int (*ask)(void *session, const struct lock_name *name);
	int (*granted)(void *session, const struct lock_name *name);
	int (*unlock)(void *session, const struct lock_name *name);
	void (*close)(void *session); /* may be NULL: the end of the process does */
};

extern const struct peer peer_null, peer_null_silent, peer_lockbroker, peer_library, peer_redis, peer_blpop,
	peer_memcached, peer_postgres, peer_flock, peer_mutex, peer_recipe, peer_herd, peer_create, peer_relay, peer_etcd;

/* A moment between two tries of a lock that is polled: 100 to 1,000 us, at random so that no two stay in step. */
void poll_pause(void);
