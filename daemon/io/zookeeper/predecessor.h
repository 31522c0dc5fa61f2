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

struct loop;
struct saved;
struct successor;
struct worker;
struct zookeeper;

struct successor_conf {
	struct saved *saved;
	const struct zookeeper *zookeeper; /* knows the servers */
	int timeout_ms, tick_ms;
	const char *secret;
};

/* What the configuration names must outlive it. */
struct successor *successor_new(struct loop *loop, struct worker *worker, const struct successor_conf *conf);
/* After the worker has stopped. Takes NULL. */
void successor_free(struct successor *s);
/* Effect. */
void successor_end(struct successor *s, int64_t session);
void successor_settle(struct successor *s);
/* At the end: no more events. Takes NULL. */
void successor_stop(struct successor *s);
