/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A handle's attempts to connect: the servers in turn, and the pauses after rounds of failures.
 *
 * - After a failure the library skips every second server; here it is turned back to the one after the last.
 * - The library tries all servers again every T/60, for ever, and all hosts do so in step. Here the pause after each
 *   round of failures is longer, and random: up to T/24 while there is a session to lose, otherwise up to five seconds.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <zookeeper/zookeeper.h>

#include "base/backoff.h"

enum { ZK_SERVER_NAME_MAX = 136 }; /* "address:port" and a NUL */

/* Zero-initialised: no server was tried. */
struct zk_attempts {
	char *servers; /* in the library's form: "address:port,..." */
	size_t server_count;
	char server[ZK_SERVER_NAME_MAX]; /* the latest one that was tried; survives the library's handle */
	bool proven;                     /* a server has served this session */
	size_t failures;                 /* in a row */
	struct backoff backoff;
	int64_t next_ns; /* not before */
};

void zk_attempts_deinit(struct zk_attempts *a);
void zk_attempts_servers(struct zk_attempts *a, const char *servers);
/* The same, and tells the library's handle, which exists already. */
void zk_attempts_set_servers(struct zk_attempts *a, zhandle_t *zh, const char *servers);
/* To be called before the library is asked for a connection, so that it takes the server after the last one. */
void zk_attempts_turn(const struct zk_attempts *a, zhandle_t *zh);
/* The library now tries its current server. */
void zk_attempts_begin(struct zk_attempts *a, zhandle_t *zh);
/* `timeout_ms` is that of the session. */
void zk_attempts_failed(struct zk_attempts *a, int timeout_ms);
void zk_attempts_served(struct zk_attempts *a);
/* How long until the next attempt may begin; not positive: now. */
int64_t zk_attempts_pause_ns(const struct zk_attempts *a);
