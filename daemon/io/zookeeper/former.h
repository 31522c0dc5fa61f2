/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Carries out what the broker wants of the sessions that earlier daemons left, or that it gave up itself: looks every now
 * and then whether a holder of the former still lives, and ends them, one after the other, each with a handle of its own:
 *
 *     idle --asked--> attaching --connected--> closing --done--> idle, the same session again
 *                         \--expired--> idle: it is over, told
 *
 * Only the answer that ZooKeeper knows it no more counts as its end: a farewell may not be heard. While no server can be
 * reached it goes on trying; when servers refuse it, or it is still there after some farewells, it is given up.
 */
#pragma once

#include <stdint.h>

struct feed;
struct zk_former;
struct worker;
struct zookeeper;
struct zookeeper_conf;

/* `zookeeper` knows the servers; it and what `conf` points to must outlive this. */
struct zk_former *zk_former_new(struct feed *feed, struct worker *worker,
				const struct zookeeper *zookeeper, const struct zookeeper_conf *conf);
/* After the worker has stopped. Takes NULL. */
void zk_former_free(struct zk_former *f);
/* Effect. */
void zk_former_end(struct zk_former *f, int64_t session);
void zk_former_settle(struct zk_former *f);
/* At the end: no more events. Takes NULL. */
void zk_former_stop(struct zk_former *f);
