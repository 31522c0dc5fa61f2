/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ZooKeeper's side: carries out the EFFECT_ZK_* with one zk_handle and tells the broker their outcome. It decides when
 * to open a session (with a back-off, and slowly after a reply that is not usable), looks up names in a worker of its
 * own, again while no server is reachable (every T/8 until T has passed, then every 5 s), asks how large a packet the
 * servers accept, and answers operations that cannot be sent. Everything that prevents a session is logged, now and
 * then, and reported to the broker each time.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "core/port/effect.h"
#include "io/zookeeper/handle.h"

struct feed;
struct parcel;
struct resolved;
struct worker;
struct zookeeper;

struct zookeeper_conf {
	const char *servers; /* as in the configuration */
	struct zk_handle_conf handle;
	int64_t packet_bytes; /* the largest packet that the limits may need */
	struct saved *saved;  /* learns of every session before the broker does */
};

/* All that `conf` points to must outlive the adapter, except `servers`. `resolver`: a worker that nothing else waits for. */
struct zookeeper *zookeeper_new(struct feed *feed, struct worker *worker, struct worker *resolver,
				const struct zookeeper_conf *conf);
/* To be called after both workers have stopped. Takes NULL. */
void zookeeper_free(struct zookeeper *z);

/*
 * Other servers of the same ensemble, as in the configuration, and their addresses that were looked up, which are
 * emptied. The session goes on: if the server in use is not among them, the connection ends, and another one is made at
 * once.
 */
void zookeeper_set_servers(struct zookeeper *z, const char *servers, struct resolved *found);

/* Effects. */
void zookeeper_open(struct zookeeper *z);
void zookeeper_drop(struct zookeeper *z);
void zookeeper_send(struct zookeeper *z, const struct effect *effect, struct slice path, struct slice data);

void zookeeper_settle(struct zookeeper *z);
/*
 * A hand-over. First the connection ends, without a farewell, and the broker is notified; then there is none until the
 * next settling. The next process continues the session with the identity that `saved` has. A server may wrongly tell a
 * handle that is new that the session has expired: that is believed only when a second server says so as well, or when
 * `timeout_ns` has passed. Unpacking sends nothing before the first settling. 0, or -EBADMSG.
 */
void zookeeper_suspend(struct zookeeper *z);
void zookeeper_pack(const struct zookeeper *z, struct parcel *p);
int zookeeper_unpack(struct zookeeper *z, struct parcel *p, int64_t timeout_ns);
/* Goes on with the session in the file `saved`, likewise. */
void zookeeper_continue(struct zookeeper *z, int64_t timeout_ns);
/* The names were looked up before; empties `found`. */
void zookeeper_prepared(struct zookeeper *z, struct resolved *found);
/* The numeric addresses of the servers, valid until the next settling; NULL: not known yet. */
const char *zookeeper_addresses(const struct zookeeper *z);
/*
 * At the end: no more events. `close_session`: the worker ends the session; otherwise the session stays until its
 * timeout.
 */
void zookeeper_stop(struct zookeeper *z, bool close_session);
/* After the worker has stopped: whether ZooKeeper has received the end of the session. */
bool zookeeper_session_ended(const struct zookeeper *z);
