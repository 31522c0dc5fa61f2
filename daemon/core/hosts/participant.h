/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One that holds or waits, on this host or elsewhere, as it is shown to those who ask (query.h). Of this host's own all
 * is known; what is known of others stands in the data of their znodes (holder.h), and is as old as those say.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "core/znode/mode.h"
#include "protocol/bytes.h"

struct grant;
struct hosts;
struct query_child;
struct request;

struct participant {
	struct slice host, name, command, znode;
	enum mode mode;
	bool here;
	int64_t client, pid, uid, depth, token;
	int64_t count; /* of permits it waits for; 0: of a lock */
	int64_t for_ms; /* it holds or waits; -1: not known */
	int64_t age_ms; /* of what is said here */
	int64_t lease_ms; /* that it still has; -1: none, or not known */
	struct slice data;
	/* Elsewhere: by what the permits of one client are known to be its. */
	int64_t session, its_client, since;
};

/* Borrow from what they show. */
struct participant participant_holder(const struct hosts *h, const struct grant *g);
struct participant participant_waiter(const struct hosts *h, const struct request *r);
struct participant participant_elsewhere(const struct hosts *h, const struct query_child *child);
/* A number in what a znode says. */
int64_t participant_number(struct slice data, const char *key, int64_t otherwise);
/* Maps, as HOLDERS, QUEUE and LEADER show them. */
void participant_write_holder(const struct participant *p, struct bytes *out, int version);
void participant_write_waiter(const struct participant *p, size_t position, struct bytes *out, int version);
void participant_write_leader(const struct participant *p, struct bytes *out, int version);
/* "on this host, pid 12 (cmd), for 5 ms" */
void participant_say(struct bytes *text, const struct participant *p);
