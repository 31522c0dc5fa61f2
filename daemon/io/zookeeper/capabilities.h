/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The capabilities of each server. The protocol has no question for them, and servers that are old, or are not
 * Apache's, lack operations that the broker needs: they refuse them, close the connection, or never answer. So each
 * server is tried at the first connection to it, before the broker learns of the connection: an operation below a znode
 * that does not exist changes nothing, and a server that knows the operation answers that there is no such znode.
 *
 *   capability | is tried by                | without it
 *   CREATE2    | such an operation          | create in its place: no Stat comes with the answer
 *   STAT       | a get of a created znode   | the Stat of an answer to a create is not believed
 *   CONTAINERS | such an operation          | the broker makes persistent directories, and removes them when they are idle
 *   CZXID      | a get of a created znode   | the server is not used: tokens are made of this number
 *
 *   state   | means                                     | event -> next
 *   UNKNOWN | nothing is known                          | carried out -> PRESENT; refused as unknown -> LACKING; the
 *           |                                           |   connection ended before the trial was answered -> SUSPECT
 *   SUSPECT | that happened once, perhaps by chance     | the same; once more -> LACKING
 *   PRESENT | it was carried out                        | refused as unknown -> LACKING; the connection ended, and the
 *           |                                           |   operation was the next to be answered -> UNKNOWN
 *   LACKING | the handle does without                   | the first connection after ten minutes -> UNKNOWN
 *
 * So a server that is exchanged for another at the same address is found out, whichever of both can do more. A missing
 * capability is logged once, and again after it was there. It belongs to the server, and outlives sessions, but no
 * process.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "io/zookeeper/handle.h"

enum zk_capability { ZK_CREATE2, ZK_STAT, ZK_CONTAINERS, ZK_CZXID, ZK_CAPABILITIES };
enum zk_capability_state { ZK_UNTRIED, ZK_SUSPECT, ZK_PRESENT, ZK_LACKING };

enum { ZK_CAPABLE_SERVERS = 32 }; /* beyond that, the server that was met first is forgotten */

struct zk_capable {
	char server[ZK_SERVER_NAME_MAX]; /* "address:port"; "": none */
	enum zk_capability_state state[ZK_CAPABILITIES];
	int64_t since_ns[ZK_CAPABILITIES]; /* LACKING */
	bool said[ZK_CAPABILITIES];        /* the log has said that it is lacking */
	bool refuses; /* the latest such operation, for another reason, as an ACL: until one is carried out nothing is tried */
};

/* Zero-initialised. */
struct zk_capabilities {
	struct zk_capable list[ZK_CAPABLE_SERVERS];
	unsigned int next; /* where the next unknown server is noted */
};

/*
 * There is a connection to that server: a capability that was lacking for long counts as UNKNOWN. Valid while the table
 * is.
 */
struct zk_capable *zk_capable_connected(struct zk_capabilities *all, const char *server);
bool zk_capable_lacks(const struct zk_capable *c, enum zk_capability what);
bool zk_capable_untried(const struct zk_capable *c, enum zk_capability what); /* UNKNOWN or SUSPECT */
void zk_capable_shown(struct zk_capable *c, enum zk_capability what, bool present, const char *how);
/*
 * An answer to an operation that needs it, with that code of the library. True: the server does not know the operation; it
 * has done nothing, and the operation can be replaced from now on.
 */
bool zk_capable_answered(struct zk_capable *c, enum zk_capability what, int rc);
/* It has refused one for another reason: the broker hears of that by its own operations. */
void zk_capable_refuses(struct zk_capable *c);
/* The connection has ended, and such an operation, perhaps a trial, was the next to be answered. */
void zk_capable_ended(struct zk_capable *c, enum zk_capability what);
/* The ZK_LACKS_* for the broker. */
unsigned int zk_capable_word(const struct zk_capable *c);
