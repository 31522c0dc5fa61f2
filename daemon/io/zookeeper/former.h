/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ends former sessions, which earlier daemons left or this one gave up, as the broker asks: looks now and then whether
 * a holder of such a session is alive, and ends the sessions, one after the other, each with a handle of its own:
 *
 *     idle --asked--> attaching --connected--> closing --done--> idle, the same session again
 *                         \--expired--> idle: it is over, and the broker is notified
 *
 * Only ZooKeeper's answer that the session has expired counts as its end, because a farewell may get lost. While no
 * server is reachable it keeps trying; if servers refuse it, or the session is still there after several farewells, it
 * gives up.
 */
#pragma once

#include <stdint.h>

struct feed;
struct zk_former;
struct worker;
struct zookeeper;
struct zookeeper_conf;

/* `zookeeper` knows the servers; it and all that `conf` points to must outlive this. */
struct zk_former *zk_former_new(struct feed *feed, struct worker *worker,
				const struct zookeeper *zookeeper, const struct zookeeper_conf *conf);
/* After the worker has stopped. Takes NULL. */
void zk_former_free(struct zk_former *f);
/* Effect: that session is to be ended. */
void zk_former_end(struct zk_former *f, int64_t session);
void zk_former_settle(struct zk_former *f);
/* At the end: no more events. Takes NULL. */
void zk_former_stop(struct zk_former *f);
