/* SPDX-License-Identifier: Apache-2.0 */
/* Answers of ZooKeeper: the result of an operation, what a watch has seen, the metadata of a znode. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* How ZooKeeper answered an operation. The first five went through the quorum when the operation was a write. */
enum zk_code {
	ZK_OK,
	ZK_NONODE,
	ZK_NODEEXISTS,
	ZK_NOTEMPTY,
	ZK_BADVERSION,
	ZK_REFUSED, /* any other definite error (ACL, bad arguments, ...): nothing was done, and another try would not help */
	ZK_BUSY,    /* refused for the moment: nothing was done, nothing is known, and it is to be tried again */
	ZK_UNKNOWN, /* connection loss and its kin: it may or may not have been done, or may still be */
};

/* Why it was refused, or was busy: the word by which it is counted. */
#define ZK_CAUSES(X) X(other) X(acl) X(quota) X(local_session) X(throttled) X(read_only)
enum zk_cause {
#define X(word) ZK_CAUSE_##word,
	ZK_CAUSES(X)
#undef X
};

static inline bool zk_refuses(enum zk_code code)
{
	return code == ZK_REFUSED || code == ZK_BUSY;
}

enum zk_watch { ZK_WATCH_CREATED, ZK_WATCH_DELETED, ZK_WATCH_CHANGED, ZK_WATCH_CHILDREN };

struct zk_stat {
	int64_t czxid, mzxid, pzxid;
	int64_t owner; /* the session of an ephemeral, else 0 */
	int32_t version, cversion, children;
};
