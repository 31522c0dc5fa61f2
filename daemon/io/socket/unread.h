/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connections that have ended while their clients had not read everything: the descriptor of a page may be among the unread
 * bytes (conn_page.h). The kernel counts descriptors that are under way against the user of this process, and beyond
 * RLIMIT_NOFILE of them passes no descriptor, not even to the keeper or at a hand-over. So such a connection stays charged
 * to the client's account until the client has read everything or has closed its end. The socket stays open, because only
 * the socket shows that; it is shut down, which the client sees.
 *
 *     state    meaning                                     left by
 *     unread   the socket has bytes that nobody has read   a look at it: all are read, or the other end is closed -> none
 *
 * At a hand-over the next process gets these sockets. A kill closes them, and nobody is charged for what is under way then.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/charge.h"

struct disposer;
struct feed;
struct parcel;
struct parcel_record;

struct unread {
	int fd;
	struct charge connection, page; /* as while it was open (socket_pools.h) */
	TAILQ_ENTRY(unread) link;
};

TAILQ_HEAD(unread_list, unread); /* the connection whose last look is longest ago is first */

/* The other end has not read all bytes that were sent on this socket. */
bool unread_is(int fd);
/* Owns the socket of a connection of that account from now on. */
void unread_add(struct unread_list *list, int fd, struct account *account);
/* Looks at each of them once, but not beyond that instant, and closes those whose clients have read everything. */
void unread_look(struct unread_list *list, struct disposer *disposer, struct feed *feed, int64_t until_ns);
void unread_free(struct unread_list *list, struct disposer *disposer);

/* For a hand-over: writes a record for each of them. */
void unread_pack(const struct unread_list *list, struct parcel *p);
/* Reads such a record. False: it is not valid. */
bool unread_unpack(struct unread_list *list, struct accounts *accounts, struct parcel *p, const struct parcel_record *r);
