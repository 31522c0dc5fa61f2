/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A look at the reply to the handshake before the C client reads it. The client takes any bytes for a reply, and an
 * id that is not the session's for its end: one proxy that answers in HTTP would cost every lock of the host.
 */
#pragma once

#include <stdbool.h>

enum zk_handshake {
	ZK_HANDSHAKE_MORE,  /* not enough of it yet: the socket is not readable before there is */
	ZK_HANDSHAKE_READ,  /* let the client read: a reply or an error */
	ZK_HANDSHAKE_END,   /* the same: the server closed the connection */
	ZK_HANDSHAKE_BOGUS, /* no ZooKeeper server speaks there */
};

/*
 * Leaves the bytes where they are. `*waited` is false before the first look at a connection; to be called whenever
 * its socket is readable.
 */
enum zk_handshake zk_handshake_look(int fd, bool *waited);
/* Ends the connection and throws away what came, so that the client reads its end and nothing else. */
void zk_handshake_reject(int fd);
