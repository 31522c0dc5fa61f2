/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events are the inputs of the broker. One at a time goes into broker_handle(); nothing in it is kept past the
 * call. Instants are nanoseconds of one clock that goes on during suspend (CLOCK_BOOTTIME).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "protocol/slice.h"

/* Answers of ZooKeeper: the result of an operation, the event of a watch, the metadata of a znode. */

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

/* Operations that a server may lack if it is not Apache's, or is old. The words are ZooKeeper's, for people. */
#define ZK_LACKS(X) X(CREATE2, 1, "create2") X(STAT, 2, "the Stat of create2") X(CONTAINERS, 4, "createContainer")
enum zk_lacks {
#define X(name, bit, words) ZK_LACKS_##name = (bit),
	ZK_LACKS(X)
#undef X
};

enum zk_watch { ZK_WATCH_CREATED, ZK_WATCH_DELETED, ZK_WATCH_CHANGED, ZK_WATCH_CHILDREN };

struct zk_stat {
	int64_t czxid, mzxid, pzxid;
	int64_t owner; /* the session of an ephemeral, else 0 */
	int32_t version, cversion, children;
};

enum event_type {
	EVENT_TIME, /* nothing but time passed */
	EVENT_CLIENT_CONNECTED,
	EVENT_CLIENT_ASKED, /* one request; the next only after its one EFFECT_REPLY */
	EVENT_CLIENT_HALF_CLOSED, /* it sends nothing further: its waits end, its earlier requests may still come */
	EVENT_CLIENT_WRITTEN, /* the latest push with `report` is written, and all output that was queued before it */
	EVENT_CLIENT_PROCESS, /* whether the named process and the peer live; not for another user's process */
	EVENT_CLIENT_LEAVES,  /* GONE is near: some of its grants and requests are released (broker_owns_much()) */
	EVENT_CLIENT_GONE,    /* the connection is closed: no effect may name it any longer, its number is free */
	EVENT_ZK_CONNECTED, /* also after a reconnection; may come without a SUSPENDED before */
	/* The connection is gone, the session may live; open operations are ZK_UNKNOWN. `planned`: it comes back at once. */
	EVENT_ZK_SUSPENDED,
	EVENT_ZK_EXPIRED,   /* the server said so; the handle is dead, EFFECT_ZK_OPEN asks for a new one */
	EVENT_ZK_ANSWERED,  /* exactly one per operation; in the order of sending within a connection */
	EVENT_ZK_WATCH,     /* fires once per watch set; gone with the connection */
	EVENT_ZK_TROUBLE,   /* why there is no connection, as far as is known; any number of times */
	EVENT_ZK_LACKS,     /* the operations that the server lacks: before it is CONNECTED, and when more is known */
	EVENT_ZK_PACKET,    /* the largest packet that the servers take, as far as is known */
	EVENT_TOKENS,       /* standalone: claim numbers below `limit` may be used, durably reserved */
	EVENT_FORMER_FREE,  /* no process that was granted something under that session is alive any longer */
	EVENT_FORMER_OVER,  /* the session that EFFECT_FORMER_END named is ended, or the attempt given up */
	EVENT_RESTART_OVER, /* a hand-over, asked for or not: this is the new process, or the old one goes on */
	EVENT_CONF,         /* the configuration was read again; asked for by EFFECT_RELOAD, or by a signal */
	EVENT_STOP,         /* SIGTERM, SIGINT */
	EVENT_LIFELINE,     /* the state of the process that EFFECT_LIFELINE named: once, but for ENDED behind WATCHED */
	EVENT_CLIENT_PAGE,   /* for EFFECT_PAGE */
	EVENT_CLIENT_GROUPS, /* of a connection that goes on in this process: they are not in a snapshot */
};
/* The process is watched; has ended; is not watched, and the sentence says why. */
enum process_is { PROCESS_WATCHED, PROCESS_ENDED, PROCESS_REFUSED };
/* Of the process that connected, the first one being its own; not all: others are unknown. */
struct event_groups { const uint32_t *list; size_t count; bool all; };
struct broker_conf; struct delegation_page;
struct event {
	enum event_type type;
	uint32_t conn; /* CLIENT_*: the adapter's number of the connection, small and dense, reused after GONE */
	union {
		struct {
			uint32_t pid, uid, gid; uint64_t started; /* of the process: no other one has both; 0: not known */
			struct slice comm, unit; /* command name of the peer, may be empty, and its systemd unit (base/unit_name.h) */
			bool privileged; /* it came through the operators' socket */
			struct event_groups groups;
		} connected;
		struct event_groups groups;
		struct { struct delegation_page *page; struct slice sentence; bool limited; } page; /* `conn`'s; NULL: why not */
		struct { uint32_t pid; struct slice comm; bool peer_ended, child_ended; } process; /* no comm: no change */
		struct { size_t argc; /* at least 1 */ const struct slice *argv; } asked;
		struct {
			int64_t session; /* never 0 */
			int64_t timeout_ns; /* negotiated */
			int64_t asked_ns; /* before the handshake was sent; the server's view of us is not older */
			struct slice server; /* "address:port", for people */
		} zk_connected;
		struct { bool planned; } zk_suspended;
		struct {
			uint64_t op;
			enum zk_code code; enum zk_cause cause; /* cause: of REFUSED and BUSY */
			struct slice path; /* create: the given one, and `-?[0-9]{10}` if sequential: the adapter refuses others */
			/* create, get, set: the znode's; list: the directory's. A create's is 0 where it cannot be believed. */
			struct zk_stat stat;
			struct slice data; /* get; REFUSED, BUSY: a sentence */
			size_t count; /* list */
			const struct slice *children;
		} zk_answered;
		struct { enum zk_watch type; struct slice path; } zk_watch;
		struct {
			bool refused; /* a server answered, and gives no usable session; else none answered */
			struct slice sentence;
		} zk_trouble;
		unsigned int zk_lacks; /* ZK_LACKS_* */
		struct {
			int64_t bytes;       /* the smallest of all servers tried; 0: none takes less than the limits need */
			struct slice server; /* the server that takes no more */
		} zk_packet;
		struct { int64_t limit; } tokens;
		struct { uint64_t number; uint32_t pid; enum process_is is; struct slice sentence; } lifeline;
		struct {
			bool done;
			int64_t paused_ns;     /* done: how long nobody was served */
			struct slice sentence; /* else why not */
		} restart;
		struct {
			const struct broker_conf *now; /* from now on; NULL: it has an error, and the present one goes on */
			struct slice text; /* the changes, a line each; or the sentence about the error */
		} conf;
		struct {
			int64_t session;
			bool ended; /* OVER: ZooKeeper does not know it any longer */
		} former;
	};
};
