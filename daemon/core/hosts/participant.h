/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A participant holds or waits, on this host or elsewhere, and is shown in answers (query.h). This host knows all about
 * its own; about others it knows the data of their znodes (holder.h), which are as old as they say.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "core/znode/mode.h"
#include "protocol/bytes.h"

struct account;
struct client;
struct grant;
struct hosts;
struct query_child;
struct request;

struct participant {
	struct slice host, name, command, znode;
	enum mode mode;
	bool here;
	const struct account *account; /* NULL: elsewhere */
	int64_t client, pid, uid, depth, token;
	int64_t count; /* the permits that it waits for; 0: it waits for a lock */
	int64_t for_ms; /* the time that it holds or waits; -1: not known */
	int64_t age_ms; /* the age of these facts */
	int64_t lease_ms; /* the rest of its lease; -1: none, or not known */
	struct slice data;
	/* Elsewhere: permits that agree in these belong to one client. */
	int64_t session, its_client, since;
};

/* The result borrows from the grant, the request or the child. */
struct participant participant_holder(const struct grant *g);
struct participant participant_waiter(const struct request *r);
struct participant participant_elsewhere(const struct hosts *h, const struct query_child *child);
/* A number in a znode's data. */
int64_t participant_number(struct slice data, const char *key, int64_t otherwise);
/*
 * Takes out the facts that the client may not see: the session in a znode's name, unless it is an operator; and process,
 * command and data of another account that has that lock, unless it may look.
 */
void participant_veil(struct participant *p, const struct client *c, struct slice lock);
/* Maps, as HOLDERS, QUEUE and LEADER show them. */
void participant_write_holder(const struct participant *p, struct bytes *out, int version);
void participant_write_waiter(const struct participant *p, size_t position, struct bytes *out, int version);
void participant_write_leader(const struct participant *p, struct bytes *out, int version);
/* "on this host, pid 12 (cmd), for 5 ms" */
void participant_say(struct bytes *text, const struct participant *p);
