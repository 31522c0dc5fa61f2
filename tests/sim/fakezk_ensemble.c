/* SPDX-License-Identifier: Apache-2.0 */
/* The servers together: which one leads, what reaches the leader, how long sessions live. */
#include "fakezk.h"

#include <assert.h>
#include <stdlib.h>

static void leads(struct fakezk *z, int leader);
static void decided(void *ensemble, struct message *m);

void fakezk_init(struct fakezk *z, struct sched *sched, uint64_t seed, int64_t tick)
{
	int i;

	*z = (struct fakezk){
		.sched = sched, .rng = { seed }, .tick = tick, .epoch = 1, .delay_max = 2 * MS, .lag_max = 2 * MS
	};
	fakezk_tree_init(z);
	pipe_init(&z->proposals, sched, decided, z);
	for (i = 0; i < FAKEZK_SERVERS; i++) {
		struct zserver *s = &z->server[i];

		s->z = z;
		s->index = i;
		s->up = true;
		pipe_init(&s->to_leader, sched, fakezk_leader_delivered, s);
		pipe_init(&s->from_leader, sched, fakezk_link_delivered, s);
		LIST_INIT(&s->conns);
	}
	LIST_INIT(&z->sessions);
	LIST_INIT(&z->conns);
	leads(z, (int)rng_below(&z->rng, FAKEZK_SERVERS));
}

void fakezk_deinit(struct fakezk *z)
{
	struct zsession *s;
	struct zconn *c;
	int i;

	while ((c = LIST_FIRST(&z->conns))) {
		LIST_REMOVE(c, all);
		c->handle = NULL;
		fakezk_conn_close(c, true);
		pipe_clear(&c->up);
		pipe_clear(&c->down);
		free(c);
	}
	for (i = 0; i < FAKEZK_SERVERS; i++) {
		pipe_clear(&z->server[i].to_leader);
		pipe_clear(&z->server[i].from_leader);
		bytes_free(&z->server[i].touched);
	}
	pipe_clear(&z->proposals);
	fakezk_tree_free(z);
	while ((s = LIST_FIRST(&z->sessions))) {
		LIST_REMOVE(s, link);
		free(s);
	}
}

static void propose(struct fakezk *z, struct message *m)
{
	if (z->quorum_max)
		pipe_push(&z->proposals, m, rng_between(&z->rng, MS / 20, z->quorum_max));
	else
		decided(z, m);
}

/* The leader's tick: sessions that nobody touched end with their bucket. */
static void expire(void *ensemble, uint64_t life)
{
	struct fakezk *z = ensemble;
	struct zsession *s;

	if ((int64_t)life != z->life || z->leader < 0)
		return;
	LIST_FOREACH(s, &z->sessions, link)
		if (s->alive && !s->closing && s->expiry <= z->sched->now) {
			struct message *m = message_new(z->sched, LINK_EXPIRY);

			s->closing = s->was_closing = true;
			m->subject = s;
			propose(z, m);
		}
	sched_at(z->sched, (z->sched->now / z->tick + 1) * z->tick, expire, z, life);
}

static void ping(void *ensemble, uint64_t life)
{
	struct fakezk *z = ensemble;
	int i;

	if ((int64_t)life != z->life || z->leader < 0)
		return;
	for (i = 0; i < FAKEZK_SERVERS; i++)
		if (z->server[i].up && !z->server[i].cut && i != z->leader)
			pipe_push(&z->server[i].from_leader, message_new(z->sched, LINK_PING),
				  rng_between(&z->rng, MS / 20, 2 * MS));
	sched_at(z->sched, z->sched->now + z->tick / 2, ping, z, life);
	fakezk_trim(z);
}

static void leads(struct fakezk *z, int leader)
{
	struct zsession *s;

	z->leader = leader;
	z->led_at = z->sched->now;
	z->life++;
	z->epoch++;
	if (!z->single)
		z->counter = 0;
	LIST_FOREACH(s, &z->sessions, link) {
		s->owner = -1;
		s->closing = false; /* or the proposal was decided: it is over */
		fakezk_touch(z, s);
	}
	sched_at(z->sched, (z->sched->now / z->tick + 1) * z->tick, expire, z, (uint64_t)z->life);
	sched_at(z->sched, z->sched->now + rng_between(&z->rng, 0, z->tick / 2), ping, z, (uint64_t)z->life);
}

/* A quorum has it, or the next leader has: what it does to the truth. */
static void decide_write(struct fakezk *z, struct message *m)
{
	struct zconn *c = m->subject;
	struct txn t = { .origin = c->server->index,
			 .op = m->op,
			 .request = m->request,
			 .code = m->code,
			 .session = c->session,
			 .conn = c,
			 .exact = m->exact,
			 .version = m->version };

	if (m->request == EFFECT_ZK_OPEN) {
		t.type = TXN_OPEN;
		t.zxid = c->session->opened = fakezk_zxid_next(z);
		c->session->alive = true;
		fakezk_touch(z, c->session);
		fakezk_append(z, t);
	} else if (!c->session->alive) {
		return; /* somebody else ended it meanwhile */
	} else if (t.code != ZK_OK) {
		t.type = TXN_ERROR;
		t.zxid = fakezk_zxid_next(z);
		fakezk_append(z, t);
	} else if (m->request == EFFECT_ZK_DROP) {
		fakezk_session_close(z, c->session, t, ZK_BY_SESSION);
	} else {
		fakezk_write(z, t, message_path(m), message_data(m), m->create, ZK_BY_SESSION);
	}
}

static void decided(void *ensemble, struct message *m)
{
	struct fakezk *z = ensemble;
	struct zsession *s = m->subject;

	if (m->kind != LINK_EXPIRY)
		decide_write(z, m);
	else if (s->alive)
		fakezk_session_close(z, s, (struct txn){ .origin = -1 }, ZK_BY_EXPIRY);
	message_free(z->sched, m);
}

/* Checks what the order of proposals decides; the rest follows from the truth before it. */
static void leader_write(struct fakezk *z, struct zserver *from, struct message *m)
{
	struct zconn *c = m->subject;
	struct zsession *s = c->session;

	if (m->request != EFFECT_ZK_OPEN && (!s->alive || s->closing)) {
		message_free(z->sched, m);
		return; /* its server closes the connection when it hears of the end */
	}
	if (s->owner < 0)
		s->owner = from->index;
	if (s->owner != from->index)
		m->code = ZK_UNKNOWN;
	else if (m->request != EFFECT_ZK_OPEN && z->refuses_until > z->sched->now && m->request != EFFECT_ZK_DROP &&
		 rng_percent(&z->rng, 50))
		m->code = ZK_REFUSED;
	if (m->code == ZK_REFUSED) {
		z->refused_at = z->sched->now;
		z->refused = true;
	}
	if (m->code == ZK_OK && m->request == EFFECT_ZK_DROP)
		s->closing = s->was_closing = true;
	propose(z, m);
}

static void leader_revalidate(struct fakezk *z, struct zserver *from, struct zconn *c)
{
	bool valid = c->session->alive && !c->session->closing;
	struct message *m;

	if (valid) {
		c->session->owner = from->index;
		fakezk_touch(z, c->session);
	}
	if (from->index == z->leader) {
		fakezk_revalidated(c, valid);
		return;
	}
	m = message_new(z->sched, LINK_REVALIDATED);
	m->subject = c;
	m->watch = valid;
	pipe_push(&from->from_leader, m, rng_between(&z->rng, MS / 20, 2 * MS));
}

static void leader_touches(struct fakezk *z, struct message *m)
{
	struct slice list = message_data(m);
	struct zsession *s;
	size_t i;

	for (i = 0; i < list.len; i += sizeof(s)) {
		memcpy(&s, list.data + i, sizeof(s));
		fakezk_touch(z, s);
	}
}

/* From a follower's link, or from a client of the leader itself. */
void fakezk_leader_delivered(void *server, struct message *m)
{
	struct zserver *from = server;
	struct fakezk *z = from->z;

	z->sched->steps++;
	if (z->leader >= 0) {
		if (m->kind == LINK_TOUCHES)
			leader_touches(z, m);
		else if (m->kind == LINK_REVALIDATE)
			leader_revalidate(z, from, m->subject);
		else
			return leader_write(z, from, m);
	}
	message_free(z->sched, m);
}

/* From the leader's link. The leader's own commits come this way too: they wait for a quorum. */
void fakezk_link_delivered(void *server, struct message *m)
{
	struct zserver *s = server;
	struct fakezk *z = s->z;
	struct message *answer;

	z->sched->steps++;
	if (m->kind == LINK_COMMIT) {
		fakezk_apply(z, s);
	} else if (m->kind == LINK_REVALIDATED) {
		fakezk_revalidated(m->subject, m->watch);
	} else {
		answer = message_new(z->sched, LINK_TOUCHES);
		message_text(answer, (struct slice){ 0 }, bytes_view(&s->touched));
		bytes_clear(&s->touched);
		pipe_push(&s->to_leader, answer, rng_between(&z->rng, MS / 20, 2 * MS));
	}
	message_free(z->sched, m);
}

static void server_leave(struct fakezk *z, struct zserver *s)
{
	struct zconn *c;

	s->up = s->cut = s->silent = false;
	s->life++;
	while ((c = LIST_FIRST(&s->conns)))
		fakezk_conn_close(c, rng_percent(&z->rng, 50));
	pipe_clear(&s->from_leader);
	pipe_clear(&s->to_leader);
	pipe_release(&s->from_leader);
	pipe_release(&s->to_leader);
	bytes_clear(&s->touched);
	while (s->applied < z->log_base + z->log_count)
		fakezk_apply(z, s);
}

static void server_back(void *server, uint64_t life)
{
	struct zserver *s = server;

	if (s->life != (int64_t)life || s->up)
		return;
	if (s->z->leader < 0) {
		sched_at(s->z->sched, s->z->sched->now + 50 * MS, server_back, s, life);
		return;
	}
	s->up = true;
}

void fakezk_server_down(struct fakezk *z, struct zserver *s, int64_t down_for)
{
	if (!s->up || s->index == z->leader)
		return;
	/* What the clients sent before may have left this server already. */
	while (s->to_leader.head && rng_percent(&z->rng, 60))
		fakezk_leader_delivered(s, pipe_take(&s->to_leader));
	server_leave(z, s);
	sched_at(z->sched, z->sched->now + down_for, server_back, s, (uint64_t)s->life);
}

static void elected(void *ensemble, uint64_t leader)
{
	struct fakezk *z = ensemble;
	struct message *m;

	if (z->leader >= 0)
		return;
	/* It has them in its log: all who follow it get them from there. */
	while ((m = pipe_take(&z->proposals)))
		decided(z, m);
	pipe_release(&z->proposals);
	z->server[leader].up = true;
	leads(z, (int)leader);
}

static void former_gives_up(void *server, uint64_t life)
{
	struct zserver *s = server;

	if (s->life != (int64_t)life || !s->cut)
		return;
	server_leave(s->z, s);
	sched_at(s->z->sched, s->z->sched->now + 300 * MS, server_back, s, (uint64_t)s->life);
}

void fakezk_elect(struct fakezk *z, int64_t outage, int64_t cut_for)
{
	struct zserver *old = &z->server[z->leader < 0 ? 0 : z->leader], *s;
	int next = (old->index + 1 + (int)rng_below(&z->rng, FAKEZK_SERVERS - 1)) % FAKEZK_SERVERS, i;

	if (z->leader < 0)
		return;
	for (i = 0; i < FAKEZK_SERVERS; i++)
		if (z->server[i].cut)
			return; /* one of three at a time, else there is no quorum */
	z->leader = -1;
	z->life++;
	pipe_hold(&z->proposals);
	if (z->proposals.head)
		pipe_cut(&z->proposals, (int)rng_below(&z->rng, (uint32_t)pipe_length(&z->proposals) + 1));
	for (i = 0; i < FAKEZK_SERVERS; i++) {
		s = &z->server[i];
		if (s != old) {
			server_leave(z, s);
			if (i != next)
				sched_at(z->sched, z->sched->now + outage + rng_between(&z->rng, 0, SECOND),
					 server_back, s, (uint64_t)s->life);
		}
	}
	if (cut_for) {
		/* What was committed and had not come back to it stays unknown to it. */
		old->cut = true;
		old->life++;
		pipe_clear(&old->from_leader);
		sched_at(z->sched, z->sched->now + cut_for, former_gives_up, old, (uint64_t)old->life);
	} else {
		server_leave(z, old);
		sched_at(z->sched, z->sched->now + outage + rng_between(&z->rng, 0, 3 * SECOND), server_back, old,
			 (uint64_t)old->life);
	}
	sched_at(z->sched, z->sched->now + outage, elected, z, (uint64_t)next);
}

/* ---- all servers at once ---- */

static bool stop_all(struct fakezk *z, int64_t outage, void (*again)(void *ensemble, uint64_t life))
{
	for (int i = 0; i < FAKEZK_SERVERS; i++)
		if (z->leader < 0 || z->server[i].cut)
			return false;
	z->leader = -1;
	z->life++;
	pipe_clear(&z->proposals);
	pipe_release(&z->proposals);
	for (int i = 0; i < FAKEZK_SERVERS; i++) {
		server_leave(z, &z->server[i]);
		sched_at(z->sched, z->sched->now + outage + rng_between(&z->rng, 0, SECOND), server_back, &z->server[i],
			 (uint64_t)z->server[i].life);
	}
	sched_at(z->sched, z->sched->now + outage, again, z, (uint64_t)z->life);
	return true;
}

static void lead_again(void *ensemble, uint64_t life)
{
	struct fakezk *z = ensemble;
	int leader = (int)rng_below(&z->rng, FAKEZK_SERVERS);

	if ((int64_t)life != z->life)
		return;
	z->server[leader].up = true;
	leads(z, leader);
}

static void restored(void *ensemble, uint64_t life)
{
	struct fakezk *z = ensemble;
	int64_t zxid;

	if ((int64_t)life != z->life)
		return;
	zxid = z->single ? z->backup.counter : z->backup.epoch << 32 | z->backup.counter;
	fakezk_roll_back(z, zxid);
	z->epoch = z->backup.epoch;
	z->counter = z->backup.counter;
	for (int i = 0; i < FAKEZK_SERVERS; i++)
		z->server[i].zxid = zxid;
	if (z->hooks.restored)
		z->hooks.restored(z->hooks.ctx);
	lead_again(z, life);
}

void fakezk_back_up(struct fakezk *z)
{
	z->backup.made = true;
	z->backup.epoch = z->epoch;
	z->backup.counter = z->counter;
}

bool fakezk_restore(struct fakezk *z, int64_t outage)
{
	return stop_all(z, outage, restored);
}

bool fakezk_raise(struct fakezk *z, int64_t epoch, int64_t outage)
{
	if (!stop_all(z, outage, lead_again))
		return false;
	if (z->epoch < epoch)
		z->epoch = epoch;
	return true;
}

/* What was refused until now stays known to the checks. */
static void end_refusals(struct fakezk *z, int64_t *until)
{
	if (*until > z->sched->now)
		*until = z->sched->now;
}

void fakezk_heal(struct fakezk *z)
{
	struct zconn *c;
	int i;

	end_refusals(z, &z->refuses_until);
	end_refusals(z, &z->refuses_reads_until);
	end_refusals(z, &z->throttles_until);
	end_refusals(z, &z->quota_until);
	for (i = 0; i < FAKEZK_SERVERS; i++) {
		struct zserver *s = &z->server[i];

		s->silent = false;
		pipe_release(&s->to_leader);
		pipe_release(&s->from_leader);
		if (s->cut)
			former_gives_up(s, (uint64_t)s->life);
	}
	LIST_FOREACH(c, &z->conns, all) {
		pipe_release(&c->up);
		pipe_release(&c->down);
	}
}

enum zk_code fakezk_operate(struct fakezk *z, enum effect_type request, struct slice path, struct slice data)
{
	if (z->leader < 0)
		return ZK_UNKNOWN;
	return fakezk_write(z, (struct txn){ .origin = -1, .request = request }, path, data, ZK_PERSISTENT,
			    ZK_BY_OPERATOR);
}

struct zsession *fakezk_session(struct fakezk *z, int64_t timeout)
{
	struct zsession *s = calloc(1, sizeof(*s));
	int i;

	assert(s);
	*s = (struct zsession){
		.id = (int64_t)(rng_next(&z->rng) >> 8), .timeout = timeout, .alive = true, .owner = -1
	};
	for (i = 0; i < FAKEZK_SERVERS; i++)
		s->known[i] = true;
	LIST_INIT(&s->ephemerals);
	LIST_INSERT_HEAD(&z->sessions, s, link);
	fakezk_touch(z, s);
	return s;
}

void fakezk_reap(struct fakezk *z)
{
	int i;

	if (z->leader < 0)
		return;
	for (i = 0; i < FAKEZK_BUCKETS; i++) {
		struct znode *n = z->buckets[i], *next;

		for (; n; n = next) {
			const struct zview *v = &n->view[FAKEZK_TRUTH];

			next = n->hash_next;
			if (v->exists && n->type == ZK_CONTAINER && v->children == 0 &&
			    v->creates > z->first_sequence) {
				fakezk_operate(z, EFFECT_ZK_DELETE, (struct slice){ n->path, n->len },
					       (struct slice){ 0 });
				return;
			}
		}
	}
}
