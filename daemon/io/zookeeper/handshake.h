/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A look at the reply to the handshake before the C client reads it. The client accepts any bytes as a reply, and takes
 * an id that is not the session's for the session's end: a proxy that answers in HTTP would cost the host all its locks.
 */
#pragma once

#include <stdbool.h>
#include <zookeeper/zookeeper.h>

struct zk_handle_conf;

enum { ZK_HANDSHAKE_SENTENCE_MAX = 320 }; /* with the NUL */

enum zk_handshake {
	ZK_HANDSHAKE_MORE,  /* it is not complete: the socket is not readable before there is more */
	ZK_HANDSHAKE_READ,  /* let the client read a reply or an error */
	ZK_HANDSHAKE_END,   /* the same: the server closed the connection */
	ZK_HANDSHAKE_BOGUS, /* no ZooKeeper server speaks there */
};

/*
 * Leaves the bytes where they are. `*waited` is 0 before the first look at a connection. To be called whenever the socket
 * is readable. READ: the reply is complete.
 */
enum zk_handshake zk_handshake_look(int fd, int *waited);
/*
 * Whether the session that the client has from a reply can be used; otherwise a sentence says why not. The client
 * accepts any. `state` is the state that it reports.
 */
bool zk_handshake_gives(zhandle_t *zh, int state, const struct zk_handle_conf *conf, const char *server,
			char ret_sentence[ZK_HANDSHAKE_SENTENCE_MAX]);
/* Whether the connection was ever made, also if the server has closed it since. */
bool zk_handshake_reached(int fd);
/* Ends the connection and discards its input, so that the client only reads its end. */
void zk_handshake_reject(int fd);

/* The end of a session, sent to the server and received by it. */

/*
 * Ends the session and frees the library's handle, whose socket is `fd` (-1: none). It may block for seconds, and may
 * run in another thread. True: the server has received the farewell. `zh` may be NULL.
 */
bool zk_farewell(zhandle_t *zh, int fd);
