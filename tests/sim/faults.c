/* SPDX-License-Identifier: Apache-2.0 */
/* Faults, and how long they last. Each one moves w->last_fault to the instant its effects are over. */
#include "world.h"

#include <stdlib.h>

unsigned int servers_lack(struct world *w)
{
	return rng_percent(&w->rng, 30) ? 0 : rng_below(&w->rng, 8);
}

static void lasts_until(struct world *w, int64_t until)
{
	if (until + w->slow_ns > w->last_fault)
		w->last_fault = until + w->slow_ns;
}

/* Mostly short against T, sometimes just past the instants that matter. */
static int64_t duration(struct world *w)
{
	int64_t T = w->timeout;

	switch (rng_below(&w->rng, 6)) {
	case 0:
		return rng_between(&w->rng, MS, 50 * MS);
	case 1:
		return rng_between(&w->rng, T / 6 - T / 30, T / 6 + T / 30);
	case 2:
		return rng_between(&w->rng, T / 3 - T / 30, T / 3 + T / 30);
	case 3:
		return rng_between(&w->rng, T * 2 / 3 - T / 10, T * 2 / 3 + T / 10);
	case 4:
		return rng_between(&w->rng, T * 4 / 5, T * 3 / 2);
	default:
		return rng_between(&w->rng, 50 * MS, T / 3);
	}
}

static struct zhandle *any_handle(struct world *w)
{
	int i = (int)rng_below(&w->rng, (uint32_t)(w->host_count + w->foreign_count));

	return i < w->host_count ? w->hosts[i].zk : w->foreign[i - w->host_count].zk;
}

static struct host *any_host(struct world *w)
{
	return &w->hosts[rng_below(&w->rng, (uint32_t)w->host_count)];
}

static struct zserver *any_follower(struct world *w)
{
	int i = (int)rng_below(&w->rng, FAKEZK_SERVERS);

	return i == w->zk.leader ? &w->zk.server[(i + 1) % FAKEZK_SERVERS] : &w->zk.server[i];
}

static void conn_stall(struct world *w, struct zconn *c, int64_t until)
{
	uint32_t way = rng_below(&w->rng, 4);

	if (way != 1)
		pipe_hold(&c->up);
	if (way != 2)
		pipe_hold(&c->down);
	sched_at(&w->sched, until, zconn_release, c, 0);
}

static void server_speaks(void *server, uint64_t life)
{
	struct zserver *s = server;
	struct zconn *c;

	if (s->life != (int64_t)life)
		return;
	s->silent = false;
	LIST_FOREACH(c, &s->conns, link)
		zconn_release(c, 0);
}

static void server_silent(struct world *w, int64_t until)
{
	struct zserver *s = &w->zk.server[rng_below(&w->rng, FAKEZK_SERVERS)];
	struct zconn *c;

	s->silent = true;
	LIST_FOREACH(c, &s->conns, link) {
		pipe_hold(&c->up);
		pipe_hold(&c->down);
	}
	sched_at(&w->sched, until, server_speaks, s, (uint64_t)s->life);
}

static void link_ends(void *server, uint64_t life)
{
	struct zserver *s = server;
	struct world *w = s->z->hooks.ctx;

	if (s->life != (int64_t)life)
		return;
	if (rng_percent(&w->rng, 40) && !w->quiet) {
		fakezk_server_down(s->z, s, rng_between(&w->rng, 100 * MS, 2 * SECOND));
		return;
	}
	pipe_release(&s->to_leader);
	pipe_release(&s->from_leader);
}

/* Who depends on that server finds no other for a while: nothing renews its session behind its back. */
static void strand_clients(struct world *w, struct zserver *s, int64_t until)
{
	struct zconn *c;

	LIST_FOREACH(c, &s->conns, link)
		if (c->handle)
			c->handle->reachable_at = until;
	lasts_until(w, until);
}

static void link_shut(void *server, uint64_t life)
{
	struct zserver *s = server;
	struct world *w = s->z->hooks.ctx;

	if (s->life != (int64_t)life || w->quiet)
		return;
	pipe_hold(&s->to_leader);
	pipe_hold(&s->from_leader);
	TRACE(w, -1, "the link of server %d is dead again", s->index);
}

/* A few messages get through, or all of a short while; then the link is dead again. */
static void link_trickle(void *server, uint64_t life)
{
	struct zserver *s = server;
	struct world *w = s->z->hooks.ctx;

	if (s->life != (int64_t)life || w->quiet)
		return;
	if (rng_percent(&w->rng, 60))
		strand_clients(w, s, w->sched.now + w->timeout);
	/* The worst that a link can do: writes that wait get through and are answered, what the server says to pings
	 * on the same occasion does not. */
	if (rng_percent(&w->rng, 60))
		pipe_trickle(&s->to_leader, s->to_leader.head ? pipe_length(&s->to_leader) : 1);
	else
		pipe_release(&s->to_leader);
	pipe_release(&s->from_leader);
	TRACE(w, -1, "the link of server %d opens, for %d messages to the leader", s->index, s->to_leader.budget);
	sched_at(&w->sched, w->sched.now + rng_between(&w->rng, 5 * MS, w->tick / 2), link_shut, s, life);
}

static void link_hold(struct world *w, int64_t until, bool trickle)
{
	struct zserver *s = any_follower(w);

	TRACE(w, -1, "the link of server %d is dead", s->index);

	pipe_hold(&s->to_leader);
	pipe_hold(&s->from_leader);
	if (trickle) {
		sched_at(&w->sched, until, link_trickle, s, (uint64_t)s->life);
		until += rng_between(&w->rng, MS, w->timeout / 2);
		lasts_until(w, until);
	}
	sched_at(&w->sched, until, link_ends, s, (uint64_t)s->life);
}

static void handshake_link(void *handle, uint64_t until)
{
	struct zhandle *h = handle;
	struct world *w = h->z->hooks.ctx;
	struct zserver *s;

	if (!h->conn || h->state != ZHANDLE_CONNECTING || h->conn->server->index == h->z->leader || w->quiet)
		return;
	s = h->conn->server;
	pipe_hold(&s->to_leader);
	pipe_hold(&s->from_leader);
	TRACE(w, -1, "the link of server %d is dead", s->index);
	sched_at(&w->sched, (int64_t)until + rng_between(&w->rng, 0, 100 * MS), link_trickle, s, (uint64_t)s->life);
	sched_at(&w->sched, (int64_t)until + w->timeout, link_ends, s, (uint64_t)s->life);
}

/* The answer to a handshake comes late, and the server's link is nearly dead by then. */
static void handshake_slow(struct world *w, struct zhandle *h, int64_t until)
{
	h->slow_handshake = until - w->sched.now;
	zhandle_drop(h, true);
	if (rng_percent(&w->rng, 70))
		sched_at(&w->sched, w->sched.now + w->timeout / 20, handshake_link, h, (uint64_t)until);
	lasts_until(w, until + w->timeout * 2);
}

static void host_freeze(struct host *h, int64_t until)
{
	if (!h->crashed)
		h->stopped_until = until;
}

static void host_stop(struct host *h)
{
	if (!h->broker || h->stopping || h->stopped_until > h->w->sched.now)
		return;
	h->stopping = true;
	host_handle(h, &(struct event){ .type = EVENT_STOP });
}

static void host_isolate(struct world *w, struct host *h, int64_t until)
{
	h->zk->reachable_at = until;
	if (h->zk->conn)
		conn_stall(w, h->zk->conn, until);
}

/* No longer than a few znodes' paths, or long enough again. */
static void packet_learn(struct world *w, struct host *h)
{
	struct event e = { .type = EVENT_ZK_PACKET };

	if (!h->broker || h->stopped_until > w->sched.now)
		return;
	e.zk_packet.bytes = rng_percent(&w->rng, 50) ? 0 : rng_between(&w->rng, 800, 1500);
	/* Not so little that an election's data do not fit for good. */
	for (int i = 0; i < w->lock_count && e.zk_packet.bytes; i++)
		e.zk_packet.bytes += w->election[i] && e.zk_packet.bytes < 1300 ? 500 : 0;
	e.zk_packet.server = SLICE("server");
	host_handle(h, &e);
}

/* A third party ends a session, as whoever knows its number can. To its holders that is what an operator does. */
static void evict(struct world *w, struct zsession *s)
{
	if (!s || !s->alive || w->zk.leader < 0)
		return;
	s->evicted = true;
	fakezk_session_close(&w->zk, s, (struct txn){ .origin = -1 }, ZK_BY_OPERATOR);
}

static void reset(struct world *w, struct zhandle *h)
{
	if (rng_percent(&w->rng, 50))
		zhandle_drop(h, rng_percent(&w->rng, 50));
	else if (h->conn)
		fakezk_conn_close(h->conn, rng_percent(&w->rng, 50));
}

static void stall(struct world *w, struct zhandle *h, int64_t until)
{
	if (h->conn)
		conn_stall(w, h->conn, until);
}

/* Writes, reads or both: without a random number more, so that all else is what it was. */
static void refuse(struct world *w, enum fault fault, int64_t until)
{
	if (fault == FAULT_THROTTLE)
		w->zk.throttles_until = until;
	else if (fault == FAULT_QUOTA)
		w->zk.quota_until = until;
	else if (until % 3 != 1)
		w->zk.refuses_until = until;
	if (fault == FAULT_REFUSE && until % 3 != 0)
		w->zk.refuses_reads_until = until;
}

static void link_opens(void *server, uint64_t life)
{
	struct zserver *s = server;

	if (s->life == (int64_t)life)
		pipe_release(&s->to_leader);
}

/*
 * The next write of the host's own znode gets no further than to its server, for now, and the process dies meanwhile.
 * An earlier one may be under way, too: its successor sees two writes of a daemon that is dead.
 */
static void late_write(struct world *w, struct host *h)
{
	struct zserver *s = h->zk->conn ? h->zk->conn->server : NULL;

	if (!h->broker || !s || s->index == w->zk.leader)
		return;
	pipe_hold(&s->to_leader);
	h->dies_writing_until = w->sched.now + w->timeout / 3;
	sched_at(&w->sched, w->sched.now + rng_between(&w->rng, w->timeout / 3, w->timeout), link_opens, s,
		 (uint64_t)s->life);
	lasts_until(w, w->sched.now + 3 * w->timeout);
}

static void die_late(void *host, uint64_t life)
{
	struct host *h = host;

	if (h->life != life || h->w->quiet)
		return;
	h->file_lost = true;
	host_die(h, false);
}

void faults_written(struct host *h, struct slice path)
{
	struct world *w = h->w;

	if (w->sched.now >= h->dies_writing_until || !memmem(path.data, path.len, "/.hosts/", 8))
		return;
	h->dies_writing_until = 0;
	sched_at(&w->sched, w->sched.now + w->zk.delay_max, die_late, h, h->life);
}

static const char *fault_name(enum fault kind)
{
	static const char *const names[] = {
#define X(name) #name,
		FAULTS(X)
#undef X
	};

	return names[kind];
}

/* Another program serves there from now on, or it is found out what this one lacks. */
static void servers_change(struct world *w, int64_t down_for)
{
	struct zserver *s = any_follower(w);
	bool restarts = rng_percent(&w->rng, 70);
	struct zconn *c;

	s->lacks = servers_lack(w);
	TRACE(w, -1, "server %d lacks %u", s->index, s->lacks);
	if (restarts) {
		fakezk_server_down(&w->zk, s, down_for);
		return;
	}
	LIST_FOREACH(c, &s->conns, link)
		if (c->handle && c->handle->state == ZHANDLE_CONNECTED)
			zhandle_tell_lacks(c->handle);
}

static void fault(struct world *w, enum fault kind)
{
	int64_t d = duration(w), until = w->sched.now + d;

	w->stats->faults[kind]++;
	TRACE(w, -1, "fault %s, %lld ms", fault_name(kind), (long long)(d / MS));
	lasts_until(w, until + w->timeout);
	switch (kind) {
	case FAULT_RESET:
		reset(w, any_handle(w));
		break;
	case FAULT_STALL:
		stall(w, any_handle(w), until);
		break;
	case FAULT_SILENT:
		server_silent(w, until);
		break;
	case FAULT_LINK:
		link_hold(w, until, false);
		break;
	case FAULT_TRICKLE:
		link_hold(w, until, true);
		break;
	case FAULT_CUT:
		fakezk_elect(&w->zk, rng_between(&w->rng, 50 * MS, w->timeout / 2), d);
		break;
	case FAULT_ELECTION:
		/* All servers at once, for longer than a session lasts: they count anew, its own host gives it up. */
		fakezk_elect(&w->zk, until % 4 == 0 ? 2 * w->timeout : d, 0);
		lasts_until(w, w->sched.now + 3 * w->timeout);
		break;
	case FAULT_RESTART:
		fakezk_server_down(&w->zk, any_follower(w), d);
		break;
	case FAULT_FREEZE:
		host_freeze(any_host(w), until);
		break;
	case FAULT_KILL:
		host_die(any_host(w), false);
		break;
	case FAULT_STOP:
		host_stop(any_host(w));
		break;
	case FAULT_ISOLATE:
		host_isolate(w, any_host(w), until);
		break;
	case FAULT_HANDSHAKE:
		until = w->sched.now + rng_between(&w->rng, w->timeout / 4, w->timeout * 2 / 3 - 10 * MS);
		handshake_slow(w, any_handle(w), until);
		break;
	case FAULT_REFUSE:
	case FAULT_THROTTLE:
	case FAULT_QUOTA:
		refuse(w, kind, until);
		break;
	case FAULT_EVICT:
		evict(w, any_handle(w)->session);
		break;
	case FAULT_LATE:
		late_write(w, any_host(w));
		break;
	case FAULT_PACKET:
		if (!w->ballast.names) /* which has no room in so little */
			packet_learn(w, any_host(w));
		break;
	case FAULT_SERVERS:
		servers_change(w, d);
		break;
	case FAULT_COUNT:
		break;
	}
}

static void fault_due(void *world, uint64_t argument)
{
	struct world *w = world;
	uint32_t total = 0, roll;
	int i;

	(void)argument;
	if (w->quiet)
		return;
	sched_at(&w->sched, w->sched.now + rng_between(&w->rng, 1, w->fault_every_ms * 2) * MS, fault_due, w, 0);
	for (i = 0; i < FAULT_COUNT; i++)
		total += w->mix->fault_weight[i];
	roll = rng_below(&w->rng, total);
	for (i = 0; roll >= w->mix->fault_weight[i]; i++)
		roll -= w->mix->fault_weight[i];
	fault(w, (enum fault)i);
}

void faults_start(struct world *w)
{
	if (w->fault_every_ms)
		sched_at(&w->sched, w->sched.now + rng_between(&w->rng, 0, 2 * SECOND), fault_due, w, 0);
}

void faults_stop(struct world *w)
{
	int i;

	fakezk_heal(&w->zk);
	for (i = 0; i < w->host_count; i++) {
		if (w->hosts[i].stopped_until > w->sched.now && !w->hosts[i].crashed)
			w->hosts[i].stopped_until = w->sched.now;
		w->hosts[i].zk->reachable_at = 0;
	}
}
