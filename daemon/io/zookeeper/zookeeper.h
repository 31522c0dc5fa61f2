/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ZooKeeper's side: carries out the EFFECT_ZK_* with one zk_handle and tells the broker what came of them. Decides
 * when to open a session (with a back-off, in no hurry against a server that lies), looks up names in the worker,
 * again while no server can be reached, asks how large a packet the servers take, and answers what cannot be sent.
 * Whatever keeps it from a session it logs, now and then, and tells the broker each time.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "core/port/effect.h"
#include "io/zookeeper/handle.h"

struct feed;
struct worker;
struct zookeeper;

struct zookeeper_conf {
	const char *servers; /* as in the configuration */
	struct zk_handle_conf handle;
	int64_t packet_bytes; /* the largest packet that the limits may need */
	struct saved *saved;  /* told of every session before the broker is */
};

/* What `conf` points to must outlive the adapter. */
struct zookeeper *zookeeper_new(struct feed *feed, struct worker *worker, const struct zookeeper_conf *conf);
/* After the worker has stopped. Takes NULL. */
void zookeeper_free(struct zookeeper *z);

/* Effects. */
void zookeeper_open(struct zookeeper *z);
void zookeeper_drop(struct zookeeper *z);
void zookeeper_send(struct zookeeper *z, const struct effect *effect, struct slice path, struct slice data);

void zookeeper_settle(struct zookeeper *z);
/* The addresses of the servers, numbers only; NULL: not known yet. Until the next settling. */
const char *zookeeper_addresses(const struct zookeeper *z);
/* At the end: no more events. `close_session`: the worker ends the session; else it is left to its timeout. */
void zookeeper_stop(struct zookeeper *z, bool close_session);
/* After the worker has stopped: ZooKeeper has heard that the session is over. */
bool zookeeper_session_ended(const struct zookeeper *z);
