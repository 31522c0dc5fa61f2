/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The operations that were sent to ZooKeeper and are not answered yet, in the order of sending. Each is answered once: by
 * `answered`, or by the caller that abandons it (the library then still calls its completion, which finds nobody). The
 * library reads no answer that was not looked at before (answer.h). Answers are translated for the broker.
 *
 * Some operations are sent in another form, according to the capabilities of the server (capabilities.h); the broker
 * has one answer to each all the same, in the order in which it has asked:
 *
 *   the broker asks for         | STAT is there | it is not known           | it is lacking, or CREATE2 is
 *   an ephemeral znode          | create2       | create2 and get: the get  | create2, or create, and get: the
 *                               |               |   has the Stat            |   get has the Stat
 *   an ephemeral numbered one   | create2       | create2: without a Stat,  | the same, or create: without a
 *                               |               |   so the broker gets it   |   Stat, so the broker gets it
 *   a container, persistent     | create2       | create2: without a Stat   | the same, or create
 *
 * Each get of the ephemeral znode that was made last shows whether its Stat is to be believed: its czxid is the number
 * that create2 returned, or create2 returned no transaction's number; and it is above the czxid of each znode made
 * before on the connection.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <zookeeper/zookeeper.h>

#include "core/port/effect.h"
#include "core/port/event.h"
#include "io/zookeeper/answer.h"
#include "io/zookeeper/capabilities.h"
#include "io/zookeeper/paths.h"
#include "protocol/bytes.h"

struct zk_reply {
	struct slice *children;
	size_t cap;
	char sentence[256]; /* about a refusal */
};

void zk_reply_deinit(struct zk_reply *r);
/*
 * The outcome of an operation, by the return code. A code is a refusal only if the server returns it before it does
 * anything; any other code that is not definite means that the outcome is unknown. One table classes each of them.
 */
enum zk_code zk_reply_code(int rc);
/* Sets the cause and the data of a refusal, whether for good or for the moment; they are valid until the next call. */
void zk_reply_refused(struct zk_reply *r, int rc, struct event *event);

struct zk_ops {
	TAILQ_HEAD(zk_op_list, zk_op) list;
	struct zk_paths *paths; /* where watches are noted */
	void (*answered)(void *arg, struct event *event);
	void *arg;
	struct zk_reply reply;
	struct zk_inlet inlet;
	struct zk_capable *server; /* of the present connection; NULL: it is taken for one of Apache's */
	int64_t session;
	struct { char *path; int64_t czxid; } made; /* the last ephemeral znode, or NULL; as create2 says, -1: create */
	unsigned int trial;                         /* the next one on this connection */
	int64_t highest;                            /* czxid of a znode made on this connection */
};

/* The library's handle, and the only watcher with the only context. */
struct zk_ops_client {
	zhandle_t *zh;
	watcher_fn watcher;
	const struct ACL_vector *acl; /* of created znodes */
	void *context;
};

void zk_ops_init(struct zk_ops *ops, struct zk_paths *paths, void (*answered)(void *arg, struct event *event),
		 void *arg);
/* Must be empty. */
void zk_ops_deinit(struct zk_ops *ops);
/* ZK_OK: it will be answered. Any other code is the answer. */
enum zk_code zk_ops_send(struct zk_ops *ops, const struct effect *effect, struct slice path, struct slice data,
			 const struct zk_ops_client *client);
/* A connection to that server begins. True: a trial was sent, and the connection is not to be used yet. */
bool zk_ops_begin(struct zk_ops *ops, struct zk_capable *server, const struct zk_ops_client *client);
/* The same, after any answer of that time. */
bool zk_ops_tries(struct zk_ops *ops, const struct zk_ops_client *client);
/* The connection has ended, by the server or the network: before its operations are abandoned or answered. */
void zk_ops_ended(struct zk_ops *ops);
/* Removes the first one from the list; false if there is none. */
bool zk_ops_abandon(struct zk_ops *ops, uint64_t *ret_id);
/*
 * To be called before the library reads from its connected socket `fd`, which is not on the loop, and for each answer anew.
 * READ and END: it may read one answer, or the end. WRONG: the connection has to end, and the sentence says why.
 */
enum zk_inlet_result zk_ops_look(struct zk_ops *ops, int fd, zhandle_t *zh, bool authenticates,
				char ret_sentence[ZK_ANSWER_SENTENCE_MAX]);
