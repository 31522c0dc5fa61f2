/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connections that have ended, and whose clients have left something unread, behind which a descriptor may be
 * (conn_page.h). The kernel counts a descriptor that is under way for the user of this process. Beyond RLIMIT_NOFILE of them
 * it passes none, not to the keeper and not at a hand-over either. So each stays charged to the client's account until the
 * client has read all of it or has closed its end, and the socket stays open, because only the socket tells. The client sees
 * that it is shut down.
 *
 *     state    meaning                                     leaves by
 *     unread   the socket has bytes that nobody has read   a look at it: all are read, or the other end is closed -> none
 *
 * A hand-over takes them along. A kill does not: they are closed, and what is under way then is nobody's.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/charge.h"

struct feed;
struct parcel;
struct parcel_record;

struct unread {
	int fd;
	struct charge charge; /* as the connection and its page were */
	TAILQ_ENTRY(unread) link;
};

TAILQ_HEAD(unread_list, unread); /* the one that was looked at longest ago is first */

/* Of what was sent on this socket some has not been read. */
bool unread_is(int fd);
/* Takes over the socket of a connection of that account. */
void unread_add(struct unread_list *list, int fd, struct account *account);
/* Looks at each of them once, or until that instant: those whose clients have read all are closed. */
void unread_look(struct unread_list *list, struct feed *feed, int64_t until_ns);
void unread_free(struct unread_list *list);

/* A hand-over: a record for each. */
void unread_pack(const struct unread_list *list, struct parcel *p);
/* False: it is none. */
bool unread_unpack(struct unread_list *list, struct accounts *accounts, struct parcel *p, const struct parcel_record *r);
