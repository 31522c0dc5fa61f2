/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The invariants. Most are stated against the truth of the ensemble, which is ahead of what any broker can know:
 * a grant needs a znode that entitles to it in the truth (entitled.c), and no znode under a valid grant ever goes away,
 * unless an operator takes it. Both together are mutual exclusion between hosts, foreign contenders included.
 */
#include "world.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { CONTENDED_AFTER_NS = 1000000000 }; /* by then a broker without faults around it knows that somebody waits */

struct host *check_host_of(struct world *w, const struct zsession *s)
{
	int h;

	for (h = 0; h < w->host_count; h++)
		if (s && (w->hosts[h].broker || w->hosts[h].crashed) && w->hosts[h].zk->session == s)
			return &w->hosts[h];
	return NULL;
}

static int64_t czxid_of(int64_t token)
{
	return token >> 10;
}

/* What was proven when a process was killed is so as long as it was. */
static bool is_proven(const struct host *h)
{
	if (h->crashed)
		return host_now(h) < h->frozen_until;
	return h->broker && host_now(h) < broker_safe_until(h->broker);
}

bool check_resetting(const struct caller *c)
{
	return c->asking && c->current.command == COMMAND_RESET;
}

/* It is sure of that as long as the session is proven. */
static bool is_relied_on(const struct caller *c, int lock)
{
	const struct holding *g = &c->holding[lock];

	return g->held && !g->lost && !holding_unsure(g) && !check_resetting(c);
}

bool check_grant_valid(const struct caller *c, int lock)
{
	return is_relied_on(c, lock) && is_proven(c->host);
}

/* It asked for the end of its grant in this very event; its own answer may stand behind the next one's. */
static bool letting_go(const struct caller *c, int lock)
{
	const struct ask *a = &c->current;

	return c->asking && ((a->command == COMMAND_UNLOCK && a->lock == lock) ||
			     (a->command == COMMAND_MUNLOCK && (a->several & 1U << lock)) || a->command == COMMAND_QUIT);
}

/* A process that was cut off by a kill may act on its grant as long as it lives. */
static void check_kept_out(struct caller *c, const struct ask *a)
{
	struct world *w = c->host->w;

	for (size_t i = 0; i < w->belief_count && i < BELIEFS_MAX; i++) {
		const struct belief *b = &w->belief[i];

		if (b->kept_out && b->host == c->host && b->lock == a->lock && w->sched.now < b->until &&
		    !(b->shared && a->shared) && !w->forces[a->lock] && !check_is_meddled(w, b->token))
			world_fail(w, a->lock, "host %d client %u: granted %s, and a process whose connection was not kept may act "
				   "on its token %" PRId64 " for %" PRId64 " ms more", c->host->index, c->conn,
				   w->lock_name[a->lock], b->token, (b->until - w->sched.now) / MS);
	}
}

static void check_exclusive(struct caller *c, const struct ask *a, int64_t token)
{
	struct world *w = c->host->w;
	int h, i;

	check_kept_out(c, a);

	for (h = 0; h < w->host_count; h++)
		for (i = 0; i < w->hosts[h].client_count; i++) {
			struct caller *o = &w->hosts[h].clients[i];

			if (o == c || (w->hosts[h].conf.standalone && o->host != c->host))
				continue;
			if (a->shared && o->holding[a->lock].shared)
				continue;
			if (check_grant_valid(o, a->lock) && !(o->host == c->host && letting_go(o, a->lock)))
				world_fail(w, a->lock, "two grants of %s: host %d client %u got token %" PRId64
					   " (znode %" PRIx64 ") while host %d client %u holds %" PRId64
					   " (znode %" PRIx64 ")", w->lock_name[a->lock], c->host->index, c->conn, token,
					   (uint64_t)czxid_of(token), h, o->conn, o->holding[a->lock].token,
					   (uint64_t)czxid_of(o->holding[a->lock].token));
		}
}

const struct ask *check_waiting_ask(const struct caller *c, int lock)
{
	if (c->asking && c->current.command == COMMAND_LOCK && c->current.lock == lock)
		return &c->current;
	return c->wait[lock].on && !c->wait[lock].blind ? &c->wait[lock].ask : NULL;
}

static void check_fifo(struct caller *c, const struct ask *a)
{
	struct world *w = c->host->w;
	int i;

	for (i = 0; i < c->host->client_count; i++) {
		struct caller *o = &c->host->clients[i];
		const struct ask *b = check_waiting_ask(o, a->lock);

		if (o == c || !b || b->order > a->order || o->state != CLIENT_ON || o->half_closed)
			continue;
		if (b->wait_ms >= 0 && b->asked_at + b->wait_ms * MS <= w->sched.now)
			continue; /* it is on its way out */
		if (o->asking && (o->current.command == COMMAND_RESET || o->current.command == COMMAND_QUIT))
			continue; /* it takes all back in this very event */
		world_fail(w, a->lock, "host %d: client %u was granted %s before client %u, which asked earlier",
			   c->host->index, c->conn, w->lock_name[a->lock], o->conn);
	}
}

/* A kill is no reason to count anew. */
static bool is_calm(const struct world *w, int64_t since)
{
	return w->last_fault < since || (w->kills.every_ms && !w->fault_every_ms && !w->snapshots.every_ms);
}

/* The first contender of others that has waited behind that znode for a while; 0: none. */
static int64_t waiter_behind(struct world *w, int lock, const struct host *h, int64_t czxid)
{
	struct slice path = { w->lock_path[lock], w->lock_path_len[lock] };
	struct znode *dir = fakezk_find(&w->zk, path, FAKEZK_TRUTH), *n;
	const struct znode *own = NULL;

	if (!dir)
		return 0;
	TAILQ_FOREACH(n, &dir->children, sibling) {
		if (n->czxid == czxid)
			own = n;
		else if (own && n->view[FAKEZK_TRUTH].exists && n->session && n->session->user != h &&
			 n->created_at + CONTENDED_AFTER_NS + w->slow_ns < w->sched.now && is_calm(w, n->created_at) &&
			 !tries_is_one(w, lock, n) &&
			 !(check_is_reader(own) && check_is_reader(n)))
			return n->czxid;
	}
	return 0;
}

/* Perhaps: under RESP2 a queued wait ends before that is read. */
bool check_granted_unseen(const struct host *h, int lock)
{
	int i;

	for (i = 0; i < h->client_count; i++)
		if (h->clients[i].wait[lock].on && h->clients[i].wait[lock].blind)
			return true;
	return several_asked_by_any(h, lock);
}

/* It waited when the readers before it were let in, and they get it together: perhaps one in each turn (lock/readers.h). */
bool check_is_together(const struct host *h, const struct ask *a, int64_t token)
{
	const struct batch_seen *b = &h->batch[a->lock];

	if (!a->shared || h->read_at_step[a->lock] == h->w->sched.steps)
		return a->shared;
	return h->conf.all_in_pieces && b->token == token && a->asked_at <= b->at;
}

/* Hand-offs while another host waits are bounded; readers who are granted in one go are one. */
static void check_handoffs(struct caller *c, const struct ask *a, int64_t token)
{
	struct world *w = c->host->w;
	struct host *h = c->host;
	struct contended *n = &w->contended[a->lock];
	bool together = check_is_together(h, a, token);
	int64_t waiter;

	if (a->shared)
		h->read_at_step[a->lock] = w->sched.steps;
	if (!together) {
		struct batch_seen *b = &h->batch[a->lock];
		/* Behind one that nobody saw it may be of that one's batch, which began at an unknown instant. */
		bool unknown = h->conf.all_in_pieces && (!b->token || (!b->at && b->token == token));

		together = a->shared && unknown;
		*b = (struct batch_seen){ unknown ? 0 : w->sched.now, token, w->sched.now };
	}
	if (n->czxid != czxid_of(token)) {
		*n = (struct contended){ .czxid = czxid_of(token) };
		return;
	}
	w->stats->handoffs++;
	waiter = h->conf.standalone ? 0 : waiter_behind(w, a->lock, h, czxid_of(token));
	if (together || !waiter)
		return;
	if (n->waiter != waiter)
		*n = (struct contended){ .czxid = czxid_of(token), .waiter = waiter };
	if (++n->grants > h->loosest.handoff_max + 1)
		world_fail(w, a->lock, "host %d: %" PRId64 " hand-offs of %s on one znode while another host waits, %" PRId64
			   " are allowed", h->index, n->grants, w->lock_name[a->lock], h->loosest.handoff_max);
}

void check_forget_last(struct host *h, int lock)
{
	h->tokens_of[lock].last_shared = h->w->tokens_of[lock].last_shared = false;
	h->batch[lock] = (struct batch_seen){ .latest = h->w->sched.now };
}

/* Larger than that of every earlier grant it conflicts with; readers who join readers share one. */
static void check_token(struct caller *c, const struct ask *a, int64_t token)
{
	struct world *w = c->host->w;
	struct tokens *t = c->host->conf.standalone ? &c->host->tokens_of[a->lock] : &w->tokens_of[a->lock];
	int64_t floor = a->shared ? t->highest_writer : t->highest;

	if (token <= floor && !restores_excuse(c->host, token))
		world_fail(w, a->lock, "host %d client %u: token %" PRId64 " of %s is not larger than %" PRId64
			   " before it", c->host->index, c->conn, token, w->lock_name[a->lock], floor);
	if (a->shared && t->last_shared && czxid_of(token) == czxid_of(t->last) && token != t->last &&
	    !check_granted_unseen(c->host, a->lock))
		world_fail(w, a->lock, "host %d client %u: token %" PRId64 " of %s, and it joined those who read with %" PRId64,
			   c->host->index, c->conn, token, w->lock_name[a->lock], t->last);
	t->last = token;
	t->last_shared = a->shared;
	t->highest = token > t->highest ? token : t->highest;
	if (!a->shared && token > t->highest_writer)
		t->highest_writer = token;
	w->tokens_of[a->lock].last = token;
}

void check_grant(struct caller *c, const struct ask *a, int64_t token)
{
	struct world *w = c->host->w;
	struct host *h = c->host;
	bool meddled = check_is_meddled(w, token);

	w->stats->grants++;
	if ((token & 1023) > w->stats->counter_max)
		w->stats->counter_max = token & 1023;
	check_fifo(c, a);
	if (!h->conf.standalone && host_now(h) + h->conf.grant_min_ns >= broker_safe_until(h->broker))
		world_fail(w, a->lock, "host %d client %u: granted %s, proven only for %" PRId64 " ms more", h->index,
			   c->conn, w->lock_name[a->lock], host_proven_ns(h) / MS);
	kills_check_grant(w, h, a->lock, token);
	if (meddled)
		return; /* the one exception: until the broker is told */
	check_exclusive(c, a, token);
	if (!h->conf.standalone)
		check_entitled(c, a, token);
	elections_check_told(c, a->lock, token);
	known_check_reader(c, a, token);
	check_token(c, a, token);
	check_handoffs(c, a, token);
}

void check_nobody_waits(const struct caller *c, int lock, int64_t token)
{
	struct world *w = c->host->w;

	if (waiter_behind(w, lock, c->host, czxid_of(token)))
		world_fail(w, lock, "host %d client %u: takes %s by its word, and another host has waited for it for a while",
			   c->host->index, c->conn, w->lock_name[lock]);
}

void check_taken(struct caller *c, const struct ask *a, int64_t token)
{
	struct world *w = c->host->w;
	struct host *h = c->host;
	const struct tokens *t = h->conf.standalone ? &h->tokens_of[a->lock] : &w->tokens_of[a->lock];

	check_fifo(c, a);
	if (check_is_meddled(w, token))
		return;
	check_exclusive(c, a, token);
	if (!h->conf.standalone)
		check_entitled(c, a, token);
	if (a->shared ? token <= t->highest_writer : token != t->highest)
		world_fail(w, a->lock, "host %d client %u: took %s by its word with token %" PRId64 ", and %" PRId64
			   " was given since", h->index, c->conn, w->lock_name[a->lock], token,
			   a->shared ? t->highest_writer : t->highest);
}

void check_late_grant(struct caller *c, const struct ask *a, int64_t token)
{
	check_forget_last(c->host, a->lock);
	c->host->w->stats->grants++;
	if (check_is_meddled(c->host->w, token))
		return;
	check_fifo(c, a);
	check_exclusive(c, a, token);
	if (!c->host->conf.standalone)
		check_entitled(c, a, token);
	check_token(c, a, token);
	check_forget_last(c->host, a->lock);
}

void check_foreign_grant(struct world *w, int lock, const char *path)
{
	struct znode *mine = fakezk_find(&w->zk, slice_of(path), FAKEZK_TRUTH);
	int h, i;

	/* It does not look whether its session still lives: that is its own affair. */
	if (!mine || !mine->view[FAKEZK_TRUTH].exists)
		return;
	for (h = 0; h < w->host_count; h++)
		for (i = 0; i < w->hosts[h].client_count; i++)
			if (check_grant_valid(&w->hosts[h].clients[i], lock) &&
			    !(check_is_reader(mine) && w->hosts[h].clients[i].holding[lock].shared))
				world_fail(w, lock, "%s is let in while host %d client %u holds %s", path, h,
					   w->hosts[h].clients[i].conn, w->lock_name[lock]);
}

static void void_grants(struct host *h)
{
	int i, lock;

	for (i = 0; i < h->client_count; i++) {
		permits_void(&h->clients[i]);
		for (lock = 0; lock < LOCKS_MAX; lock++)
			if (h->clients[i].holding[lock].held)
				h->clients[i].holding[lock].lost = true;
	}
}

/* Deadlines are applied before the event: what is due now is over, whatever else happens. */
static void end_due(struct host *h)
{
	int i, lock;

	for (i = 0; i < h->client_count; i++) {
		permits_end_due(&h->clients[i]);
		for (lock = 0; lock < LOCKS_MAX; lock++) {
			struct holding *g = &h->clients[i].holding[lock];
			struct wait *wait = &h->clients[i].wait[lock];

			if (g->held && !g->lost && g->lease_until <= h->w->sched.now) {
				g->lost = g->by_lease = true;
				h->moved_at[lock] = h->w->sched.now;
			}
			if (wait->on && !wait->over_at && wait->ask.asked_at + wait->ask.wait_ms * MS <= h->w->sched.now)
				wait->over_at = h->w->sched.now;
		}
	}
}

/* Whoever was answered under a session knows enough to be told by nobody but the leader that it is over. */
static void check_really_expired(const struct host *h)
{
	const struct zsession *s;

	LIST_FOREACH(s, &h->w->zk.sessions, link)
		if (s->alive && !s->was_closing && s->id == h->session && h->safe_until)
			world_fail(h->w, -1, "host %d: is told that its session has expired, and it lives", h->index);
}

static void check_session(struct host *h, const struct event *e)
{
	int64_t safe;

	if (e->type == EVENT_ZK_EXPIRED)
		check_really_expired(h);
	safe = broker_safe_until(h->broker);
	if (e->type == EVENT_ZK_CONNECTED && e->zk_connected.session != h->session) {
		h->session = e->zk_connected.session;
		h->safe_until = h->saved_until = 0;
	}
	if ((safe != INT64_MIN && host_now(h) >= safe) || e->type == EVENT_ZK_EXPIRED)
		void_grants(h);
}

void check_before(struct host *h, const struct event *e)
{
	known_event(h, e);
	if (!h->conf.standalone)
		check_session(h, e);
	end_due(h);
	tries_before(h);
}

/* Holders that get pushes are told of a loss at once; the timer is set so that nobody is told late. */
static void check_told(struct host *h)
{
	int i, lock;
	bool any = false;

	for (i = 0; i < h->client_count; i++) {
		any = any || permits_valid(&h->clients[i]);
		for (lock = 0; lock < h->w->lock_count; lock++) {
			const struct caller *c = &h->clients[i];
			const struct holding *g = &c->holding[lock];

			any = any || is_relied_on(c, lock);
			if (!h->conf.standalone && check_grant_valid(c, lock) && !h->holds[c->conn])
				world_fail(h->w, lock, "host %d client %u: holds %s and is not in the table of holders",
					   h->index, c->conn, h->w->lock_name[lock]);
			if (g->held && g->lost && !g->pushed && c->protocol == 3 && c->state == CLIENT_ON &&
			    !check_resetting(c))
				world_fail(h->w, lock, "host %d client %u: the grant of %s is void and nothing was pushed",
					   h->index, c->conn, h->w->lock_name[lock]);
			if (is_relied_on(c, lock) && broker_deadline(h->broker) - h->offset > g->lease_until)
				world_fail(h->w, lock, "host %d: the timer comes after the end of a lease", h->index);
		}
	}
	if (any && !h->conf.standalone && broker_deadline(h->broker) > broker_safe_until(h->broker))
		world_fail(h->w, -1, "host %d: the timer comes after the end of the proof", h->index);
}

/* A queued wait that ran out is told of in time: a sixth of T and try_ms are left to learn what is to be told. */
static void check_wait(struct caller *c, int lock)
{
	const struct wait *wait = &c->wait[lock];
	struct world *w = c->host->w;
	int64_t end = wait->over_at ? wait->over_at + w->timeout / 6 + c->host->loosest.try_ns
				    : wait->ask.asked_at + wait->ask.wait_ms * MS;

	if (!wait->on || wait->blind || wait->ask.wait_ms < 0 || c->half_closed || check_resetting(c))
		return;
	if (wait->over_at && end <= w->sched.now)
		world_fail(w, lock, "host %d client %u: its wait for %s ran out and it was not told", c->host->index,
			   c->conn, w->lock_name[lock]);
	if (broker_deadline(c->host->broker) - c->host->offset > end)
		world_fail(w, lock, "host %d: the timer comes after the end of a wait", c->host->index);
}

static void check_waits(struct host *h)
{
	int i, lock;

	for (i = 0; i < h->client_count; i++)
		for (lock = 0; lock < h->w->lock_count; lock++)
			check_wait(&h->clients[i], lock);
}

void check_after(struct host *h)
{
	int64_t safe = broker_safe_until(h->broker);

	check_told(h);
	kills_check_told(h);
	for (int i = 0; i < h->client_count; i++)
		permits_check_told(&h->clients[i]);
	check_waits(h);
	readers_check_together(h);
	deadlock_check(h);
	several_check_left(h);
	shares_check(h);
	if (safe != INT64_MIN)
		h->safe_until = safe;
	if (safe != INT64_MIN && safe > h->saved_until)
		h->saved_until = safe;
	if (h->w->sched.steps % h->w->check_every == 0)
		broker_check(h->broker);
}

void check_created(void *world, struct znode *n)
{
	struct world *w = world;
	struct znode *o;
	int count = 0, lock;

	if (!n->session || !n->parent)
		return;
	lock = world_lock_of(w, n->parent->path, n->parent->len);
	TRACE(w, lock, "truth: %s made, zxid %" PRIx64, n->path, (uint64_t)n->czxid);
	if (lock < 0)
		return;
	TAILQ_FOREACH(o, &n->parent->children, sibling)
		count += o->view[FAKEZK_TRUTH].exists && o->session == n->session && !stray_is(o);
	/* The delete of one without tokens goes before the create, and may be refused. */
	if (count > 2 + (w->sched.now < w->zk.refused_at + 3 * SECOND + w->slow_ns && entitled_followed(w, n->parent)))
		world_fail(w, lock, "%d znodes of one session in %s", count, n->parent->path);
}

/* A process whose daemon is dead may act on its grant until the last instant it was told. */
static void check_believed(struct world *w, int lock, const struct znode *n)
{
	size_t i;

	for (i = 0; i < w->belief_count && i < BELIEFS_MAX; i++) {
		const struct belief *b = &w->belief[i];

		if (b->lock == lock && czxid_of(b->token) == n->czxid && w->sched.now < b->until)
			world_fail(w, lock, "host %d: %s goes away, and a process that its dead daemon granted it may act on "
				   "that for %" PRId64 " ms more", b->host->index, n->path, (b->until - w->sched.now) / MS);
	}
}

void check_deleted(void *world, struct znode *n, enum zk_by cause)
{
	struct world *w = world;
	int lock, h, i;

	lock = n->parent ? world_lock_of(w, n->parent->path, n->parent->len) : -1;
	TRACE(w, lock, "truth: %s gone%s", n->path, cause == ZK_BY_OPERATOR ? ", by an operator" :
	      cause == ZK_BY_EXPIRY ? ", with its session" : "");
	permits_check_deleted(w, n, cause);
	if (w->any)
		any_deleted(w, n);
	if (lock < 0)
		return;
	w->deleted_at[lock] = w->sched.now;
	tries_deleted(w, lock, n);
	if (cause == ZK_BY_SESSION && check_is_forced(w, n))
		cause = ZK_BY_OPERATOR;
	if (cause == ZK_BY_OPERATOR)
		w->taken_at[lock] = w->sched.now;
	if (cause == ZK_BY_OPERATOR)
		entitled_meddle(w, n);
	else
		check_believed(w, lock, n);
	for (h = 0; h < w->host_count; h++)
		for (i = 0; i < w->hosts[h].client_count; i++) {
			struct caller *c = &w->hosts[h].clients[i];
			struct holding *g = &c->holding[lock];

			if (!g->held || czxid_of(g->token) != n->czxid)
				continue;
			if (cause == ZK_BY_OPERATOR)
				g->meddled = check_is_meddled(w, g->token);
			else if (check_grant_valid(c, lock))
				world_fail(w, lock, "host %d client %u: %s goes away under its valid grant", h, c->conn, n->path);
		}
}

void check_expired(void *world, struct zsession *s)
{
	struct world *w = world;
	struct host *h = check_host_of(w, s);
	int64_t margin;

	w->stats->expiries++;
	restores_expired(w, s);
	TRACE(w, -1, "truth: session %" PRIx64 " expired", (uint64_t)s->id);
	if (!h || !h->safe_until)
		return;
	margin = host_now(h) - h->safe_until;
	if (margin < 0)
		world_fail(w, -1, "host %d: its session expired %" PRId64 " ms before safe_until", h->index, -margin / MS);
	if (margin * 1000 / w->timeout < w->stats->margin_permille)
		w->stats->margin_permille = margin * 1000 / w->timeout;
}

/* Everybody has left and time has passed: nothing may remain. */
void check_end(struct world *w)
{
	int h, i, lock;

	for (lock = 0; lock < w->lock_count; lock++) {
		struct slice path = { w->lock_path[lock], w->lock_path_len[lock] };
		struct znode *dir = fakezk_find(&w->zk, path, FAKEZK_TRUTH), *n;

		if (dir)
			TAILQ_FOREACH(n, &dir->children, sibling)
				if (n->view[FAKEZK_TRUTH].exists)
					world_fail(w, lock, "nobody wants %s, and it is still there", n->path);
	}
	permits_check_end(w);
	for (h = 0; h < w->host_count; h++) {
		char box[64];
		int len = snprintf(box, sizeof(box), "/locks/.mail/%s", w->hosts[h].name);
		struct znode *dir = fakezk_find(&w->zk, (struct slice){ box, (size_t)len }, FAKEZK_TRUTH), *n;

		if (dir)
			TAILQ_FOREACH(n, &dir->children, sibling)
				if (n->view[FAKEZK_TRUTH].exists)
					world_fail(w, -1, "%s was never read", n->path);
		if (!w->hosts[h].broker)
			world_fail(w, -1, "host %d has not come back", h);
		if (!broker_quiet(w->hosts[h].broker))
			world_fail(w, -1, "host %d: its clients have left, and not all that they left behind is gone", h);
		broker_check(w->hosts[h].broker);
		for (i = 0; i < w->hosts[h].client_count; i++)
			if (w->hosts[h].holds[i])
				world_fail(w, -1, "host %d client %d: nobody holds anything, and it is in the table of holders", h, i);
	}
}
