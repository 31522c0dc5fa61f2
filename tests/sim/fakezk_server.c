/* SPDX-License-Identifier: Apache-2.0 */
/* One server: its connections, the order of their requests and answers, and its watches. */
#include "fakezk.h"

#include <assert.h>
#include <stdlib.h>

enum { WATCH_CHILDREN = 1, WATCH_DATA };

static void answer_push(struct zconn *c, struct message *m)
{
	struct fakezk *z = c->server->z;

	m->zxid = c->server->zxid;
	pipe_push(&c->down, m, rng_between(&z->rng, MS / 20, z->delay_max));
}

static void watch_add(struct zconn *c, int kind, struct slice path)
{
	struct sched *s = c->server->z->sched;
	struct message *w;

	for (w = c->watches; w; w = w->next)
		if (w->kind == kind && slice_eq(message_path(w), path))
			return;
	w = message_new(s, kind);
	message_text(w, path, (struct slice){ 0 });
	w->op = fakezk_hash(path);
	w->next = c->watches;
	c->watches = w;
}

/* Fires what `conn` watches of that kind (0: both) at that path: once, however many watches there are. */
static void watch_fire(struct zconn *c, int kind, const struct znode *n, enum zk_watch what)
{
	struct fakezk *z = c->server->z;
	struct slice path = { n->path, n->len };
	struct message **at = &c->watches, *w;
	bool fired = false;

	while ((w = *at)) {
		if ((kind && w->kind != kind) || w->op != n->hash || !slice_eq(message_path(w), path)) {
			at = &w->next;
			continue;
		}
		*at = w->next;
		message_free(z->sched, w);
		fired = true;
	}
	if (!fired)
		return;
	w = message_new(z->sched, PACKET_WATCH);
	message_text(w, path, (struct slice){ 0 });
	w->code = (enum zk_code)what;
	answer_push(c, w);
}

static void list_put(struct message *m, struct znode *n, int view)
{
	struct znode *child;

	m->text.len = m->path_len;
	TAILQ_FOREACH(child, &n->children, sibling) {
		if (!child->view[view].exists)
			continue;
		bytes_append(&m->text, child->path + child->name_at, child->len - child->name_at + 1);
		m->count++;
	}
	m->data_len = m->text.len - m->path_len;
}

static void read_answer(struct zconn *c, struct message *m)
{
	struct fakezk *z = c->server->z;
	int view = c->server->index;
	struct znode *n = fakezk_find(z, message_path(m), view);

	m->kind = PACKET_ANSWER;
	if (m->code != ZK_BUSY)
		m->code = n ? ZK_OK : ZK_NONODE;
	if (n && z->refuses_reads_until > z->sched->now && rng_percent(&z->rng, 50))
		m->code = ZK_REFUSED;
	z->refused = z->refused || m->code == ZK_REFUSED;
	if (m->code == ZK_OK) {
		m->stat = fakezk_stat(n, view);
		if (m->watch)
			watch_add(c, m->request == EFFECT_ZK_LIST ? WATCH_CHILDREN : WATCH_DATA, message_path(m));
		if (m->request == EFFECT_ZK_LIST)
			list_put(m, n, view);
		else
			message_text(m, (struct slice){ n->path, n->len },
				     (struct slice){ n->view[view].data->bytes, n->view[view].data->len });
	}
	answer_push(c, m);
}

static bool is_read(const struct message *m)
{
	return m->request == EFFECT_ZK_LIST || m->request == EFFECT_ZK_GET;
}

static void pending_run(struct zconn *c)
{
	while (c->pending && (c->pending->answered || is_read(c->pending))) {
		struct message *m = c->pending;

		c->pending = m->next;
		if (!c->pending)
			c->pending_tail = &c->pending;
		if (is_read(m)) {
			read_answer(c, m);
		} else {
			m->kind = PACKET_ANSWER;
			answer_push(c, m);
		}
	}
}

/* The write that came through this connection is applied here: answer it, and the reads behind it. */
static void write_answer(struct zconn *c, const struct txn *t)
{
	struct message *m = c->pending;

	while (m && (m->op != t->op || is_read(m)))
		m = m->next;
	if (!m)
		return;
	if (t->code == ZK_UNKNOWN) {
		fakezk_conn_close(c, false); /* the session has moved: an error of the connection */
		return;
	}
	m->answered = true;
	m->code = t->code;
	if (t->node && t->type != TXN_DELETE)
		message_text(m, (struct slice){ t->node->path, t->node->len }, (struct slice){ 0 });
	if (t->node && t->type != TXN_DELETE && t->node->view[c->server->index].exists)
		m->stat = fakezk_stat(t->node, c->server->index);
	pending_run(c);
}

static void established(struct zconn *c)
{
	struct zserver *s = c->server;
	struct zconn *other, *next;
	struct message *m;

	for (other = LIST_FIRST(&s->conns); other; other = next) {
		next = LIST_NEXT(other, link);
		if (other != c && other->session == c->session)
			fakezk_conn_close(other, false);
	}
	c->established = true;
	m = message_new(s->z->sched, PACKET_CONNECTED);
	m->subject = c->session;
	answer_push(c, m);
}

static void applied_watches(struct zconn *c, const struct txn *t)
{
	switch (t->type) {
	case TXN_CREATE:
		watch_fire(c, WATCH_CHILDREN, t->node->parent, ZK_WATCH_CHILDREN);
		break;
	case TXN_DELETE:
		watch_fire(c, 0, t->node, ZK_WATCH_DELETED);
		watch_fire(c, WATCH_CHILDREN, t->node->parent, ZK_WATCH_CHILDREN);
		break;
	case TXN_SET:
		watch_fire(c, WATCH_DATA, t->node, ZK_WATCH_CHANGED);
		break;
	case TXN_OPEN:
	case TXN_CLOSE:
	case TXN_ERROR:
		break;
	}
}

void fakezk_applied(struct zserver *s, const struct txn *t)
{
	struct zconn *c, *next;

	for (c = LIST_FIRST(&s->conns); c; c = next) {
		next = LIST_NEXT(c, link);
		if (c->watches)
			applied_watches(c, t);
		if (t->type == TXN_CLOSE && c->session == t->session)
			fakezk_conn_close(c, false);
	}
	if (t->origin != s->index || !t->conn || !t->conn->server_open)
		return;
	if (t->type == TXN_OPEN)
		established(t->conn);
	else
		write_answer(t->conn, t);
}

void fakezk_commit_to(struct fakezk *z, struct zserver *s)
{
	if (!s->up)
		while (s->applied < z->log_base + z->log_count)
			fakezk_apply(z, s);
	else if (!s->cut)
		pipe_push(&s->from_leader, message_new(z->sched, LINK_COMMIT), rng_between(&z->rng, MS / 20, z->lag_max));
}

void fakezk_touch(struct fakezk *z, struct zsession *s)
{
	if (s->alive)
		s->expiry = ((z->sched->now + s->timeout) / z->tick + 1) * z->tick;
}

/* A request has come in: the server knows that the session lives, and tells the leader when that asks. */
static void touched(struct zconn *c)
{
	struct zserver *s = c->server;
	struct zsession *session;
	size_t i;

	if (s->index == s->z->leader) {
		fakezk_touch(s->z, c->session);
		return;
	}
	for (i = 0; i < s->touched.len; i += sizeof(session)) {
		memcpy(&session, s->touched.data + i, sizeof(session));
		if (session == c->session)
			return;
	}
	bytes_append(&s->touched, &c->session, sizeof(c->session));
}

static void to_leader(struct zconn *c, struct message *m)
{
	struct zserver *s = c->server;
	struct fakezk *z = s->z;

	m->subject = c;
	if (s->index == z->leader)
		fakezk_leader_delivered(s, m);
	else if (!s->cut)
		pipe_push(&s->to_leader, m, rng_between(&z->rng, MS / 20, z->lag_max));
	else
		message_free(z->sched, m);
}

static struct zsession *session_new(struct fakezk *z, struct zconn *c, int64_t timeout)
{
	struct zsession *session = calloc(1, sizeof(*session));

	assert(session);
	session->id = (int64_t)((uint64_t)(c->server->index + 1) << 56 | (rng_next(&z->rng) >> 8));
	session->timeout = timeout;
	session->owner = -1;
	session->user = c->handle ? c->handle->owner : NULL;
	LIST_INIT(&session->ephemerals);
	LIST_INSERT_HEAD(&z->sessions, session, link);
	return session;
}

static void received_connect(struct zconn *c, struct message *m)
{
	struct zserver *s = c->server;
	struct fakezk *z = s->z;

	if (!c->session) {
		if (s->cut) {
			fakezk_conn_close(c, true);
			message_free(z->sched, m);
			return;
		}
		c->session = session_new(z, c, (int64_t)m->op);
		m->request = EFFECT_ZK_OPEN;
		to_leader(c, m);
		return;
	}
	if (m->zxid > s->zxid) {
		fakezk_conn_close(c, true);
		message_free(z->sched, m);
		return;
	}
	/* A former leader asks nobody: what it has not heard of it takes for expired. */
	if (s->cut) {
		fakezk_revalidated(c, c->session->known[s->index]);
		message_free(z->sched, m);
		return;
	}
	m->kind = LINK_REVALIDATE;
	to_leader(c, m);
}

/* What others than hosts do there without containers is up to them: their directories stay. */
static bool refuses_container(const struct zconn *c, struct message *m)
{
	if (m->request != EFFECT_ZK_CREATE || m->create != ZK_CONTAINER || !(c->server->lacks & ZK_LACKS_CONTAINERS))
		return false;
	if (c->handle && c->handle->adapts)
		return true;
	m->create = ZK_PERSISTENT;
	return false;
}

/* The server itself says so, whether it has a leader or not, after its answers to what came before. */
static bool throttles(struct zconn *c, struct message *m)
{
	struct fakezk *z = c->server->z;

	if (!refuses_container(c, m) &&
	    (z->throttles_until <= z->sched->now || m->request == EFFECT_ZK_DROP || rng_percent(&z->rng, 50)))
		return false;
	m->code = ZK_BUSY;
	m->answered = true;
	m->next = NULL;
	if (!is_read(m))
		z->refused_at = z->sched->now;
	*c->pending_tail = m;
	c->pending_tail = &m->next;
	pending_run(c);
	return true;
}

static void received_request(struct zconn *c, struct message *m)
{
	struct fakezk *z = c->server->z;

	if (throttles(c, m))
		return;
	if (is_read(m) && !c->pending) {
		read_answer(c, m);
		return;
	}
	if (!is_read(m)) {
		struct message *forward = message_new(z->sched, LINK_FORWARD);

		forward->op = m->op;
		forward->request = m->request;
		forward->create = m->create;
		forward->exact = m->exact;
		forward->version = m->version;
		message_text(forward, message_path(m), message_data(m));
		m->next = NULL;
		*c->pending_tail = m;
		c->pending_tail = &m->next;
		to_leader(c, forward);
		return;
	}
	m->next = NULL;
	*c->pending_tail = m;
	c->pending_tail = &m->next;
}

void fakezk_received(void *conn, struct message *m)
{
	struct zconn *c = conn;
	struct fakezk *z = c->server->z;

	z->sched->steps++;
	if (!c->server_open || m->kind == PACKET_FIN) {
		if (c->server_open)
			fakezk_conn_close(c, true);
		message_free(z->sched, m);
	} else if (m->kind == PACKET_CONNECT) {
		received_connect(c, m);
	} else {
		touched(c);
		if (m->kind == PACKET_REQUEST) {
			received_request(c, m);
		} else {
			m->kind = PACKET_PONG;
			answer_push(c, m);
		}
	}
}

void fakezk_conn_close(struct zconn *c, bool lose_answers)
{
	struct sched *sched = c->server->z->sched;
	struct message *m;

	if (!c->server_open)
		return;
	c->server_open = c->established = false;
	LIST_REMOVE(c, link);
	while ((m = c->pending)) {
		c->pending = m->next;
		message_free(sched, m);
	}
	c->pending_tail = &c->pending;
	while ((m = c->watches)) {
		c->watches = m->next;
		message_free(sched, m);
	}
	if (lose_answers)
		pipe_clear(&c->down);
	pipe_release(&c->down);
	pipe_push(&c->down, message_new(sched, PACKET_FIN), MS / 20);
}

void fakezk_revalidated(struct zconn *c, bool valid)
{
	if (!c->server_open)
		return;
	if (valid) {
		established(c);
		return;
	}
	answer_push(c, message_new(c->server->z->sched, PACKET_EXPIRED));
}
