/* SPDX-License-Identifier: Apache-2.0 */
#include "core/lock/client.h"

#include <assert.h>

#include "base/mem.h"
#include "core/client/mlock.h"
#include "core/client/reply.h"
#include "core/hosts/query.h"
#include "core/kind/observe.h"
#include "core/state.h"

enum { CONNS_FIRST_SIZE = 64 };

/* ---- life ---- */

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

/* The peer chose its command's name: what would break a list of one line per client is not kept. */
static void keep_printable(struct bytes *to, struct slice text)
{
	for (size_t i = 0; i < text.len; i++)
		bytes_char(to, text.data[i] > ' ' && text.data[i] <= '~' ? text.data[i] : '?');
}

void client_set_child(struct client *c, uint32_t pid)
{
	struct effect *e = effects_add(c->locks->env->out, EFFECT_PROCESS);

	e->conn = c->conn;
	e->pid = c->child = pid;
	c->child_known = false;
}

void client_process(struct client *c, const struct event *event)
{
	/* It may have told of another one since. */
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

uint32_t client_shown(const struct client *c, struct slice *ret_comm)
{
	bool here = !c->child_known || !c->peer_ended;

	if (here || !c->child_ended) {
		*ret_comm = bytes_view(here ? &c->comm : &c->child_comm);
		return here ? c->pid : c->child;
	}
	*ret_comm = SLICE("inherited");
	return 0;
}

static void refuse(struct client *c)
{
	size_t begin = effects_begin(c->locks->env->out);

	resp_error(reply_out(c), ERROR_LIMIT, SLICE("this user has as many connections as it may (limits.clients_per_uid)"));
	reply_push(c, begin);
	c->locks->env->stats.limits_total++;
	client_close(c);
}

void client_connected(struct locks *locks, const struct event *event)
{
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
	TAILQ_INIT(&c->events);
	TAILQ_INIT(&c->observers);
	c->user = user_enter(locks, c->uid);
	TAILQ_INSERT_TAIL(&locks->clients, c, link);
	locks->client_count++;
	locks->env->stats.connections_total++;
	if (c->user->clients > locks->env->conf->limits.clients_per_uid)
		refuse(c);
}

void client_close(struct client *c)
{
	if (c->closing)
		return;
	c->closing = true;
	TAILQ_INSERT_TAIL(&c->locks->closing, c, closing_link);
}

void client_release_all(struct client *c)
{
	struct observer *o;
	struct request *r;
	struct grant *g;

	client_drop_events(c);
	while ((o = TAILQ_FIRST(&c->observers)))
		observe_end(o);
	if (c->mlock)
		mlock_free(c->mlock);
	while ((r = TAILQ_FIRST(&c->requests)))
		request_end(r);
	if (c->query)
		query_free(c->query);
	if (c->revocation)
		revocation_free(c->revocation);
	while ((g = TAILQ_FIRST(&c->grants)))
		grant_end(g);
	heap_unset(&c->locks->env->timers, &c->events_timer);
	c->events_waiting = false;
	c->told_jeopardy = false;
	if (c->auditing)
		audit_leave(c);
}

void client_gone(struct client *c)
{
	struct locks *locks = c->locks;

	/* First, so that no effect names it any more. */
	locks->conns[c->conn] = NULL;
	if (c->closing && !c->closed)
		TAILQ_REMOVE(&locks->closing, c, closing_link);
	client_release_all(c);
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

void client_half_closed(struct client *c)
{
	struct request *r;

	c->half_closed = true;
	if (c->mlock)
		mlock_hurry(c->mlock);
	TAILQ_FOREACH(r, &c->requests, client_link)
		if (!r->expired)
			request_expire(r);
}

struct client *client_by_id(struct locks *locks, uint64_t id)
{
	struct client *c;

	TAILQ_FOREACH(c, &locks->clients, link)
		if (c->id == id)
			return c;
	return NULL;
}

bool client_is_operator(const struct client *c)
{
	return c->uid == 0 || c->uid == c->locks->env->conf->uid;
}

bool client_may_ask(const struct client *c, const char **why)
{
	const struct broker_limits *limits = &c->locks->env->conf->limits;

	if (c->request_count >= limits->requests_per_client)
		*why = "this client waits for as many locks as it may (limits.requests_per_client)";
	else if (c->counted + c->request_count >= limits->grants_per_client)
		*why = "this client holds and waits for as many locks as it may (limits.grants_per_client)";
	else if (c->user->grants + c->user->requests >= limits->grants_per_uid)
		*why = "this user holds and waits for as many locks as it may (limits.grants_per_uid)";
	else if (c->user->requests >= limits->requests_per_uid)
		*why = "this user waits for as many locks as it may (limits.requests_per_uid)";
	else
		return true;
	return false;
}

bool client_may_observe(const struct client *c, const char **why)
{
	*why = "this client observes as many elections as it may wait for locks (limits.requests_per_client)";
	return c->observer_count < c->locks->env->conf->limits.requests_per_client;
}
