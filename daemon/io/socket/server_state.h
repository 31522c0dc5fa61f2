/* SPDX-License-Identifier: Apache-2.0 */
/* The struct of a server, shared by server.c and server_legacy.c. */
#pragma once

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "io/socket/conn_env.h"
#include "io/socket/server.h"

struct acceptor;
struct conn;
struct kept;
struct kin;
struct watch;

struct server {
	struct feed *feed;
	size_t numbers_max;
	struct life *life; /* NULL: pages are given out at once */
	struct saved *saved;
	struct kin *kin;
	struct keeper *keeper;
	bool same_keeper; /* as that of the process that handed over */
	struct kept *kept;
	int64_t look_ns;         /* the next look at all connections */
	int64_t due_ns;          /* a turn that ends before has nothing to do for it: look_ns while `looking` is set */
	struct watch *looking;   /* wakes the loop for it */
	size_t ghosts, ghost;    /* how many there are; the number to be looked at next */
	struct conn_env env;
	struct acceptor *acceptor;
	struct conn **conns; /* by number */
	uint32_t *free_numbers;
	size_t conns_cap, free_count, count;
};

static inline struct conn *server_conn(const struct server *s, uint32_t number)
{
	assert(number < s->conns_cap && s->conns[number]);
	return s->conns[number];
}

/* Makes room for more connection numbers. */
void server_grow(struct server *s);
/* The keeper has the connection: from now on the next process can go on with it, unless a mark in `saved` forbids that. */
void server_kept(struct server *s, struct conn *c);
