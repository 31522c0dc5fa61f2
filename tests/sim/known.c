/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a host has learnt of the waiters for a lock on other hosts (a try does not wait), from lists that set the
 * children watch and from that watch. It is kept beside the broker's own state, and says whether a reader may join
 * other readers.
 */
#include "world.h"

#include "core/znode/contender.h"

#include <inttypes.h>

enum { NEARLY_ALL_TOKENS = 1000 };

static const int64_t PROVEN_WITHIN = 3; /* ... times T after the last fault */

static void take_in_list(struct host *h, int lock, const struct event *e)
{
	struct known *k = &h->known[lock];
	struct contender c;
	size_t i;

	k->op = 0;
	if (e->zk_answered.code != ZK_OK)
		return;
	k->armed = true;
	k->moved = k->op_moved;
	k->others = k->writers = false;
	for (i = 0; i < e->zk_answered.count; i++) {
		if (contender_of_session(e->zk_answered.children[i], h->w->lock_flavour[lock], h->session) ||
		    contender_tries(e->zk_answered.children[i], h->w->lock_flavour[lock]) ||
		    !contender_parse(e->zk_answered.children[i], h->w->lock_flavour[lock], &c))
			continue;
		k->others = true;
		k->writers = k->writers || c.mode == MODE_EXCLUSIVE;
	}
}

/* What was armed stays so until there is a connection: it was, when that went. */
static void disconnected(struct host *h)
{
	int lock;

	for (lock = 0; lock < LOCKS_MAX; lock++)
		h->known[lock].op = 0;
	h->hears = false;
}

void known_forget(struct host *h)
{
	memset(h->known, 0, sizeof(h->known));
	h->hears = false;
}

void known_event(struct host *h, const struct event *e)
{
	int lock;

	memcpy(h->known_before, h->known, sizeof(h->known));
	if (e->type == EVENT_ZK_SUSPENDED || e->type == EVENT_ZK_EXPIRED)
		disconnected(h);
	if (e->type == EVENT_ZK_CONNECTED) {
		known_forget(h);
		h->hears = true;
	}
	if (e->type == EVENT_ZK_WATCH && h->hears) {
		lock = world_lock_of(h->w, e->zk_watch.path.data, e->zk_watch.path.len);
		if (lock >= 0)
			h->known[lock].armed = false;
	}
	if (e->type == EVENT_ZK_ANSWERED)
		for (lock = 0; lock < h->w->lock_count; lock++)
			if (h->known[lock].op == e->zk_answered.op)
				take_in_list(h, lock, e);
}

static int directory_of(const struct world *w, struct slice path)
{
	const char *slash = memrchr(path.data, '/', path.len);

	return slash ? world_lock_of(w, path.data, (size_t)(slash - path.data)) : -1;
}

static void asked(struct host *h, const struct effect *e, struct slice path)
{
	int lock = world_lock_of(h->w, path.data, path.len);
	struct known *k = &h->known[lock < 0 ? 0 : lock];

	if (lock < 0 || !e->watch || h->w->election[lock])
		return;
	/* Another one comes with a join, which it has to follow, or is about the claim that is first now. */
	if (k->op && !k->op_moved && k->made_at_step != h->w->sched.steps)
		world_fail(h->w, lock, "host %d: asks for a list with watch of %s, and one is under way", h->index,
			   h->w->lock_name[lock]);
	k->op = e->op;
	k->op_moved = false;
}

static void gone(struct known *k)
{
	k->moved = k->op_moved = true;
}

void known_effect(struct host *h, const struct effect *e, struct slice text)
{
	int lock = e->type == EFFECT_ZK_CREATE || e->type == EFFECT_ZK_DELETE ? directory_of(h->w, text) : -1;

	switch ((int)e->type) {
	case EFFECT_ZK_DROP:
	case EFFECT_ZK_OPEN: /* by a deadline: before what the event told */
		memcpy(h->known, h->known_before, sizeof(h->known));
		disconnected(h);
		break;
	case EFFECT_ZK_LIST:
		asked(h, e, text);
		break;
	case EFFECT_ZK_CREATE:
		if (lock >= 0)
			h->known[lock].made_at_step = h->w->sched.steps;
		break;
	case EFFECT_ZK_DELETE:
		if (lock >= 0)
			gone(&h->known[lock]);
		break;
	case EFFECT_HOLD:
		break;
	case EFFECT_LOG:
		for (lock = 0; answer_begins(text, "somebody deleted our znode") && lock < h->w->lock_count; lock++)
			gone(&h->known[lock]);
		break;
	}
}

/* The znode that this grant rests on; NULL: it is gone in the truth. */
static const struct znode *znode_under(struct world *w, int lock, int64_t token)
{
	struct slice path = { w->lock_path[lock], w->lock_path_len[lock] };
	const struct znode *dir = fakezk_find(&w->zk, path, FAKEZK_TRUTH), *n;

	if (dir)
		TAILQ_FOREACH(n, &dir->children, sibling)
			if (n->czxid == token >> 10)
				return n;
	return NULL;
}

/* A list has shown somebody who conflicts with that znode. */
static bool conflicts(const struct world *w, int lock, const struct known *k, const struct znode *own)
{
	struct slice name = { own->path + own->name_at, own->len - own->name_at };
	struct contender c = { .mode = MODE_EXCLUSIVE };

	contender_parse(name, w->lock_flavour[lock], &c);
	return c.mode == MODE_EXCLUSIVE ? k->others : k->writers;
}

static bool lets_go(const struct caller *c, int lock)
{
	return c->asking && c->current.command != COMMAND_LOCK && c->current.command != COMMAND_ENQUEUE &&
	       (c->current.lock == lock || c->current.command != COMMAND_UNLOCK);
}

/* Another client of its host reads for certain, and did so before this event. */
static bool others_read(const struct caller *c, int lock)
{
	const struct host *h = c->host;
	int i;

	for (i = 0; i < h->client_count; i++) {
		const struct caller *o = &h->clients[i];

		if (o != c && o->holding[lock].shared && check_grant_valid(o, lock) && !lets_go(o, lock))
			return true;
	}
	return false;
}

/* Another znode of the same session, which has its turn: who stands behind that came later. Or it was there just now. */
static bool has_its_turn(const struct world *w, int lock, const struct znode *own)
{
	const struct znode *n;

	if (w->taken_at[lock] && w->taken_at[lock] + SECOND + w->slow_ns > w->sched.now)
		return true;
	TAILQ_FOREACH(n, &own->parent->children, sibling)
		if (n != own && n->session == own->session && n->view[FAKEZK_TRUTH].exists && check_is_reader(n) &&
		    check_is_reader(own) && !stray_is(n) && !check_ahead_of(w, n))
			return true;
	return false;
}

/* NULL: it may read, whoever was let in before it. */
static const char *refuses(const struct caller *c, const struct ask *a, int64_t token, const struct znode *own)
{
	struct host *h = c->host;
	struct world *w = h->w;
	const struct known *k = &h->known[a->lock], *before = &h->known_before[a->lock];
	const struct tokens *t = &w->tokens_of[a->lock];
	bool contended = conflicts(w, a->lock, k, own);

	if (others_read(c, a->lock)) {
		/* Also before the event: deadlines come first, and a wait that ran out may have kept this one. */
		if ((!k->armed || contended) && (!before->armed || conflicts(w, a->lock, before, own)) &&
		    !has_its_turn(w, a->lock, own))
			return k->armed ? "joins those who read, and somebody is known to wait elsewhere"
					: "joins those who read, and whether somebody waits elsewhere cannot be known";
		w->stats->joined++;
	} else if (h->hears && k->armed && !k->moved && contended && before->armed && t->last_shared && t->last == token) {
		return "reads after readers, past somebody who waits elsewhere";
	}
	return NULL;
}

void known_check_reader(struct caller *c, const struct ask *a, int64_t token)
{
	struct host *h = c->host;
	struct batch_seen *b = &h->batch[a->lock];
	const struct znode *own = znode_under(h->w, a->lock, token);
	const char *why;

	/* Those at the front get it together: the first of them counts. */
	if (!a->shared || h->conf.standalone || !own || h->read_at_step[a->lock] == h->w->sched.steps)
		return;
	why = refuses(c, a, token, own);
	/* One by one in turns: who asked before the latest one that needed nobody, or before one that nobody saw. */
	if (!why || (h->conf.all_in_pieces && check_granted_unseen(h, a->lock)))
		b->latest = h->w->sched.now;
	else if (!h->conf.all_in_pieces || (b->token && b->token != token) || a->asked_at > b->latest)
		world_fail(h->w, a->lock, "host %d: client %u, %s: %s", h->index, c->conn, h->w->lock_name[a->lock], why);
}

bool known_open(struct host *h, int lock, int64_t token)
{
	struct world *w = h->w;
	const struct known *k = &h->known[lock];
	const struct znode *own = znode_under(w, lock, token);

	if (!own || !h->hears || !k->armed || k->moved || w->mix->operator_every_ms)
		return false;
	if ((token & 1023) >= NEARLY_ALL_TOKENS || w->last_fault + PROVEN_WITHIN * w->timeout > w->sched.now)
		return false;
	return !conflicts(w, lock, k, own);
}
