/* SPDX-License-Identifier: Apache-2.0 */
#include "core/connection.h"

#include <assert.h>

#include "base/mem.h"
#include "core/client/mlock.h"
#include "core/client/reply.h"
#include "core/hosts/release.h"
#include "core/state.h"

enum { CONNS_FIRST_SIZE = 64 };

static void reserve_conn(struct locks *locks, uint32_t conn)
{
	size_t cap = locks->conns_cap ? locks->conns_cap : CONNS_FIRST_SIZE;

	if (conn < locks->conns_cap)
		return;
	while (cap <= conn)
		cap *= 2;
	locks->conns = mem_resize(locks->conns, cap * sizeof(struct client *));
	memset(locks->conns + locks->conns_cap, 0, (cap - locks->conns_cap) * sizeof(struct client *));
	locks->conns_cap = cap;
}

/* The peer chose its command's name: characters that would break a list of one line per client are not kept. */
static void keep_printable(struct bytes *to, struct slice text)
{
	for (size_t i = 0; i < text.len; i++)
		bytes_char(to, text.data[i] > ' ' && text.data[i] <= '~' ? text.data[i] : '?');
}

static void refuse(struct client *c)
{
	size_t begin = effects_begin(c->locks->env->out);

	resp_error(reply_out(c), ERROR_LIMIT,
		   SLICE("this user already has as many connections as one user may (limits.clients_per_uid)"));
	reply_push(c, begin);
	c->locks->env->stats.limits_total++;
	client_close(c);
}

void connection_begin(struct broker *b, const struct event *event)
{
	struct locks *locks = &b->locks;
	struct client *c = mem_new(sizeof(*c));

	reserve_conn(locks, event->conn);
	assert(!locks->conns[event->conn]);
	locks->conns[event->conn] = c;
	c->locks = locks;
	c->conn = event->conn;
	c->id = ++locks->last_client;
	c->pid = event->connected.pid;
	c->uid = event->connected.uid;
	c->version = 2;
	c->last_command = COMMAND_COUNT;
	c->connected_ns = locks->env->now_ns;
	c->events_timer.kind = TIMER_EVENTS;
	keep_printable(&c->comm, event->connected.comm);
	TAILQ_INIT(&c->requests);
	TAILQ_INIT(&c->grants);
	TAILQ_INIT(&c->notifications);
	TAILQ_INIT(&c->observers);
	c->user = user_enter(locks, c->uid);
	TAILQ_INSERT_TAIL(&locks->clients, c, link);
	locks->client_count++;
	locks->env->stats.connections_total++;
	if (c->user->clients > locks->env->conf->limits.clients_per_uid)
		refuse(c);
}

void connection_process(struct client *c, const struct event *event)
{
	/* The client may have named another process since. */
	if (event->process.pid != c->child)
		return;
	if (event->process.comm.len) {
		bytes_clear(&c->child_comm);
		keep_printable(&c->child_comm, event->process.comm);
	}
	c->child_known = true;
	c->peer_ended = event->process.peer_ended;
	c->child_ended = event->process.child_ended;
}

void connection_gone(struct broker *b, struct client *c)
{
	struct locks *locks = &b->locks;

	/* This comes first, so that no effect names the connection any longer. */
	locks->conns[c->conn] = NULL;
	if (locks->restarter == c)
		locks->restarter = NULL;
	if (c->closing && !c->closed)
		TAILQ_REMOVE(&locks->closing, c, closing_link);
	release_client(&b->hosts, c);
	TAILQ_REMOVE(&locks->clients, c, link);
	locks->client_count--;
	group_leave(c);
	user_leave(locks, c->user);
	bytes_free(&c->comm);
	bytes_free(&c->child_comm);
	bytes_free(&c->name);
	bytes_free(&c->lib_name);
	bytes_free(&c->lib_version);
	mem_free(c);
}

void connection_half_closed(struct client *c)
{
	struct request *r;

	c->half_closed = true;
	c->locks->after = c;
	if (c->mlock)
		mlock_hurry(c->mlock);
	TAILQ_FOREACH(r, &c->requests, client_link)
		if (!r->expired)
			request_expire(r);
}
