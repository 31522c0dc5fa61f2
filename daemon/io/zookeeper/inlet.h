/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The answers of a server before the C client reads them, one at a time. An answer that stands whole in the socket is looked
 * at there and left to the client. What has arrived of another one is taken out, so that the socket is readable again only
 * when there is more; all but its last byte is taken, and when that has come, the client is made to read the rest from a
 * second socket that stands in for its own meanwhile. So the client never reads a byte that was not looked at, whatever
 * comes in between, and an answer may be longer than a socket can hold.
 *
 *   what stands in the socket         | zk_inlet_look()
 *   a whole answer                    | READ: it is returned. Then zk_inlet_give(), and the client reads one answer
 *   a part of one, or nothing         | MORE: the client must not read
 *   the end, or an error              | END: the client may read it
 *   a length that no answer has       | WRONG
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <zookeeper/zookeeper.h>

#include "protocol/bytes.h"

enum zk_inlet_look { ZK_INLET_READ, ZK_INLET_MORE, ZK_INLET_END, ZK_INLET_WRONG };

/* Zero-initialised: of a new connection. */
struct zk_inlet {
	struct bytes seen;  /* a copy of what stands in the socket, from its beginning */
	size_t at;          /* how much of that the client has read since */
	struct bytes taken; /* out of the socket: the part of an answer, with its length */
	size_t frame;       /* the answer that was returned last, with its length */
};

/* To be called when the connection has ended. Gives back all memory. */
void zk_inlet_reset(struct zk_inlet *in);
/* The answer without its length, valid until the next call. */
enum zk_inlet_look zk_inlet_look(struct zk_inlet *in, int fd, struct slice *ret);
/*
 * The answer that was returned is right, and the client reads it next: gives it what was taken out of its socket `fd`,
 * which is not on the loop. False: it cannot be given, errno says why, and the connection has to end.
 */
bool zk_inlet_give(struct zk_inlet *in, int fd, zhandle_t *zh);
