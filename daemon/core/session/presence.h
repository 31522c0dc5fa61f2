/* SPDX-License-Identifier: Apache-2.0 */
/*
 * <root>/.hosts/<host>: the host's own znode, ephemeral. It announces this daemon to the others (version, pid, boot,
 * start, tick), writing it is the heartbeat, and its name guards against a second daemon of the same name.
 *
 * When the znode is another session's, every heartbeat fails and looks at it:
 *
 *   the other session                            | then
 *   a session that an earlier daemon left here   | nothing: it is being ended (former.h)
 *   one that has stopped writing it              | nothing: it expires
 *   one that goes on writing it: a rival         | never announced in this daemon's life: it gives up, its name is
 *                                                | taken; else it lost its session and the name with it: it goes
 *                                                | on, and says so as an error
 *
 * Two heartbeats may have been under way when their writer died: a rival has been seen to write three times.
 *
 * The first heartbeat of a connection succeeds only if the znode has the version that this daemon wrote last. Otherwise the
 * daemon reads the znode: the number of its transaction shows whether ZooKeeper has gone back (past.h).
 */
#pragma once

#include "core/port/event.h"
#include "core/session/operation.h"
#include "protocol/bytes.h"

struct presence {
	struct bytes path; /* of the host's own znode */
	int32_t version;   /* of that znode when it was last written; INT32_MAX: not known */
	/* The other session that has our name, as it was last seen. */
	int64_t session; /* 0: nobody was seen */
	int64_t mzxid;
	int writes;      /* seen of that session */
	bool lives;
	int64_t complain_ns; /* when that is to be said again */
	int64_t stood_ns;    /* when the host's own znode was last known to stand; at first, when that began to matter */
	struct bytes other;  /* its daemon, for people */
};

void presence_init(struct ensemble *zk);
/* Creates the parents of a path, each level that may be missing. */
void presence_above(struct ensemble *zk, struct slice path);
/* Makes the znode, or writes it: a write that proves the session when it is answered. */
void presence_beat(struct ensemble *zk);
/* A write without effect: the host's own znode never has that version. Reads after it show all that was committed before. */
void presence_write(const struct ensemble *zk, struct operation_request *ret);
/* The answers of PATH, BEAT and DUPLICATE operations. False: the name is another daemon's, and this one has to end. */
bool presence_answered(struct ensemble *zk, enum operation_kind kind, const struct event *event);
