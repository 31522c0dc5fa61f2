/* SPDX-License-Identifier: Apache-2.0 */
/* The client library: what it sends to a server, and what it reports to its owner. */
#include "fakezk.h"

#include <assert.h>
#include <stdlib.h>

/* Of one directory: those whose deletion is refused stay until their session ends. */
enum { CHILDREN_MAX = 1024 };

static void connect_later(struct zhandle *h, int64_t delay);

static void tell(struct zhandle *h, enum event_type type)
{
	h->notify(h->owner, &(struct event){ .type = type });
}

static void tell_unknown(struct zhandle *h, struct message *m)
{
	struct event e = { .type = EVENT_ZK_ANSWERED };

	e.zk_answered.op = m->op;
	e.zk_answered.code = ZK_UNKNOWN;
	message_free(h->z->sched, m);
	h->notify(h->owner, &e);
}

/* Operations that can have no answer any more are told so, in order. */
static void tell_all_unknown(struct zhandle *h)
{
	struct message *list = h->open;

	h->open = NULL;
	h->open_tail = &h->open;
	while (list) {
		struct message *m = list;

		list = m->next;
		tell_unknown(h, m);
	}
}

static void fail_late(void *handle, uint64_t argument)
{
	struct zhandle *h = handle;

	(void)argument;
	if (h->gate && *h->gate > h->z->sched->now)
		sched_at(h->z->sched, *h->gate, fail_late, h, 0);
	else if (h->state != ZHANDLE_CONNECTED)
		tell_all_unknown(h);
}

static void conn_leave(struct zhandle *h, bool lose_up)
{
	struct zconn *c = h->conn;

	if (!c)
		return;
	h->conn = NULL;
	h->life++;
	c->handle = NULL;
	if (lose_up)
		pipe_clear(&c->up);
	pipe_release(&c->up);
	pipe_push(&c->up, message_new(h->z->sched, PACKET_FIN), MS / 20);
}

/* The connection is gone: the session event first, then every open operation, then the next server. */
static void lost(struct zhandle *h, bool lose_up)
{
	bool was = h->state == ZHANDLE_CONNECTED;

	conn_leave(h, lose_up);
	h->state = ZHANDLE_WAITING;
	connect_later(h, rng_between(&h->z->rng, MS, rng_percent(&h->z->rng, 80) ? 20 * MS : h->timeout / 30));
	if (!was)
		return;
	if (!rng_percent(&h->z->rng, h->mute_suspended_percent))
		tell(h, EVENT_ZK_SUSPENDED);
	tell_all_unknown(h);
}

static void packet_push(struct zhandle *h, struct message *m)
{
	h->said = h->z->sched->now;
	pipe_push(&h->conn->up, m, rng_between(&h->z->rng, MS / 20, h->z->delay_max));
}

/* Pings and time-outs of a connection, as the C client does them. */
static void watch_over(void *handle, uint64_t life)
{
	struct zhandle *h = handle;
	int64_t now = h->z->sched->now, silent_until, next;

	if (life != h->life || !h->conn)
		return;
	if (h->gate && *h->gate > now) {
		sched_at(h->z->sched, *h->gate, watch_over, h, life);
		return;
	}
	silent_until = h->heard + h->timeout * 2 / 3;
	if (now >= silent_until) {
		lost(h, rng_percent(&h->z->rng, 50));
		return;
	}
	next = silent_until;
	if (h->state == ZHANDLE_CONNECTED) {
		if (now - h->said >= h->timeout / 3 && !h->open)
			packet_push(h, message_new(h->z->sched, PACKET_PING));
		if (now - h->said < h->timeout / 3 && h->said + h->timeout / 3 < next)
			next = h->said + h->timeout / 3;
	}
	sched_at(h->z->sched, next, watch_over, h, life);
}

void zconn_release(void *conn, uint64_t argument)
{
	struct zconn *c = conn;

	(void)argument;
	pipe_release(&c->up);
	pipe_release(&c->down);
}

static void connect_now(void *handle, uint64_t life)
{
	struct zhandle *h = handle;
	struct fakezk *z = h->z;
	struct zserver *s = &z->server[h->server];
	struct zconn *c;
	struct message *m;

	if (life != h->life || h->state != ZHANDLE_WAITING)
		return;
	if (h->gate && *h->gate > z->sched->now) {
		sched_at(z->sched, *h->gate, connect_now, h, life);
		return;
	}
	h->server = (h->server + 1) % FAKEZK_SERVERS;
	if (!s->up || z->sched->now < h->reachable_at) {
		connect_later(h, rng_between(&z->rng, MS, h->timeout / 60));
		return;
	}
	c = calloc(1, sizeof(*c));
	assert(c);
	*c = (struct zconn){ .server = s, .handle = h, .session = h->session, .server_open = true };
	c->pending_tail = &c->pending;
	pipe_init(&c->up, z->sched, fakezk_received, c);
	pipe_init(&c->down, z->sched, zhandle_received, c);
	c->down.gate = h->gate;
	c->up.bytes_s = c->down.bytes_s = z->link_bytes_s;
	LIST_INSERT_HEAD(&s->conns, c, link);
	LIST_INSERT_HEAD(&z->conns, c, all);
	if (s->silent)
		pipe_hold(&c->up);
	if (h->slow_handshake) {
		pipe_hold(&c->down);
		sched_at(z->sched, z->sched->now + h->slow_handshake, zconn_release, c, 0);
		h->slow_handshake = 0;
	}
	h->conn = c;
	h->life++;
	h->state = ZHANDLE_CONNECTING;
	h->heard = h->asked = z->sched->now;
	m = message_new(z->sched, PACKET_CONNECT);
	m->zxid = h->zxid;
	m->op = (uint64_t)h->timeout;
	packet_push(h, m);
	sched_at(z->sched, z->sched->now + h->timeout * 2 / 3, watch_over, h, h->life);
}

static void connect_later(struct zhandle *h, int64_t delay)
{
	sched_at(h->z->sched, h->z->sched->now + delay, connect_now, h, ++h->life);
}

void zhandle_tell_lacks(struct zhandle *h)
{
	struct event e = { .type = EVENT_ZK_LACKS, .zk_lacks = h->conn->server->lacks };

	if (h->adapts && h->z->lacking)
		h->notify(h->owner, &e);
}

static void connected(struct zhandle *h, struct message *m)
{
	struct event e = { .type = EVENT_ZK_CONNECTED };

	h->session = m->subject;
	tell_all_unknown(h); /* what was asked for while there was no connection */
	h->state = ZHANDLE_CONNECTED;
	zhandle_tell_lacks(h);
	e.zk_connected.session = h->session->id;
	e.zk_connected.timeout_ns = h->timeout;
	e.zk_connected.asked_ns = h->asked;
	e.zk_connected.server = SLICE("127.0.0.1:2181");
	h->notify(h->owner, &e);
}

static void answered(struct zhandle *h, struct message *m)
{
	struct message *open = h->open;
	struct event e = { .type = EVENT_ZK_ANSWERED };
	struct slice children[CHILDREN_MAX];
	const char *at;

	assert(open && open->op == m->op);
	h->open = open->next;
	if (!h->open)
		h->open_tail = &h->open;
	message_free(h->z->sched, open);
	e.zk_answered.op = m->op;
	e.zk_answered.code = m->code;
	e.zk_answered.cause = m->code == ZK_BUSY ? ZK_CAUSE_throttled :
			      h->z->quota_until > h->z->sched->now ? ZK_CAUSE_quota :
								     ZK_CAUSE_acl;
	e.zk_answered.path = message_path(m);
	if (m->request != EFFECT_ZK_CREATE || !h->adapts || !(h->conn->server->lacks & (ZK_LACKS_CREATE2 | ZK_LACKS_STAT)))
		e.zk_answered.stat = m->stat;
	if (m->request == EFFECT_ZK_LIST) {
		assert(m->count <= CHILDREN_MAX);
		for (at = m->text.data + m->path_len; e.zk_answered.count < m->count; e.zk_answered.count++) {
			children[e.zk_answered.count] = slice_of(at);
			at += children[e.zk_answered.count].len + 1;
		}
		e.zk_answered.children = children;
	} else if (m->request == EFFECT_ZK_GET) {
		e.zk_answered.data = message_data(m);
	}
	h->notify(h->owner, &e);
}

/* A server that lags does not know the session yet: a second one has to say so, too, until T has passed. */
static bool is_doubtful(struct zhandle *h)
{
	int server = h->conn->server->index;

	if (!h->resumed_at || h->zxid || h->z->sched->now > h->resumed_at + h->timeout)
		return false;
	if (h->doubtful >= 0 && h->doubtful != server)
		return false;
	h->doubtful = server;
	return true;
}

static void expired(struct zhandle *h)
{
	if (is_doubtful(h)) {
		lost(h, true);
		return;
	}
	h->resumed_at = 0;
	conn_leave(h, true);
	h->state = ZHANDLE_DEAD;
	h->session = NULL;
	tell(h, EVENT_ZK_EXPIRED);
	tell_all_unknown(h);
}

void zhandle_received(void *conn, struct message *m)
{
	struct zconn *c = conn;
	struct zhandle *h = c->handle;
	struct sched *sched = c->server->z->sched;

	if (h) {
		h->heard = sched->now;
		/* The library knows it from answers to operations only. */
		if (m->kind == PACKET_ANSWER && m->zxid > h->zxid)
			h->zxid = m->zxid;
		if (m->kind == PACKET_FIN) {
			lost(h, true);
		} else if (m->kind == PACKET_CONNECTED) {
			connected(h, m);
		} else if (m->kind == PACKET_EXPIRED) {
			expired(h);
		} else if (m->kind == PACKET_ANSWER) {
			answered(h, m);
		} else if (m->kind == PACKET_WATCH) {
			struct event e = { .type = EVENT_ZK_WATCH };

			e.zk_watch.type = (enum zk_watch)m->code;
			e.zk_watch.path = message_path(m);
			h->notify(h->owner, &e);
		}
	}
	message_free(sched, m);
}

struct zhandle *zhandle_new(struct fakezk *z, int64_t timeout, void (*notify)(void *, const struct event *),
			    void *owner, const int64_t *gate)
{
	struct zhandle *h = calloc(1, sizeof(*h));

	assert(h);
	*h = (struct zhandle){ .z = z, .timeout = timeout, .notify = notify, .owner = owner, .gate = gate };
	h->server = (int)rng_below(&z->rng, FAKEZK_SERVERS);
	h->open_tail = &h->open;
	return h;
}

void zhandle_free(struct zhandle *h)
{
	struct message *m;

	conn_leave(h, true);
	while ((m = h->open)) {
		h->open = m->next;
		message_free(h->z->sched, m);
	}
	free(h);
}

void zhandle_open(struct zhandle *h)
{
	conn_leave(h, rng_percent(&h->z->rng, 50));
	h->session = NULL;
	h->zxid = 0;
	h->state = ZHANDLE_WAITING;
	sched_at(h->z->sched, h->z->sched->now, fail_late, h, 0);
	connect_later(h, rng_between(&h->z->rng, MS, 30 * MS));
}

void zhandle_resume(struct zhandle *h, int64_t session)
{
	struct zsession *s;

	assert(h->state == ZHANDLE_CLOSED && !h->conn && !h->open);
	LIST_FOREACH(s, &h->z->sessions, link)
		if (s->id == session)
			h->session = s;
	assert(h->session && h->session->id == session);
	h->zxid = 0;
	h->resumed_at = h->z->sched->now;
	h->doubtful = -1;
	h->state = ZHANDLE_WAITING;
	connect_later(h, rng_between(&h->z->rng, MS, 30 * MS));
}

void zhandle_drop(struct zhandle *h, bool lose_up)
{
	if (h->conn)
		lost(h, lose_up);
}

void zhandle_close(struct zhandle *h, bool end_session)
{
	struct message *m;

	if (end_session && h->state == ZHANDLE_CONNECTED) {
		m = message_new(h->z->sched, PACKET_REQUEST);
		m->request = EFFECT_ZK_DROP;
		packet_push(h, m);
	}
	conn_leave(h, !end_session && rng_percent(&h->z->rng, 50));
	h->state = ZHANDLE_CLOSED;
	h->life++;
	while ((m = h->open)) {
		h->open = m->next;
		message_free(h->z->sched, m);
	}
	h->open_tail = &h->open;
}

void zhandle_send(struct zhandle *h, const struct effect *e, struct slice path, struct slice data)
{
	struct message *open = message_new(h->z->sched, 0), *m;

	open->op = e->op;
	open->next = NULL;
	*h->open_tail = open;
	h->open_tail = &open->next;
	if (h->state != ZHANDLE_CONNECTED) {
		sched_at(h->z->sched, h->z->sched->now + MS, fail_late, h, 0);
		return;
	}
	m = message_new(h->z->sched, PACKET_REQUEST);
	m->op = e->op;
	m->request = e->type;
	m->create = e->create;
	m->watch = e->watch;
	m->exact = e->exact;
	m->version = e->version;
	message_text(m, path, data);
	packet_push(h, m);
}
