/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Locks taken by force (FORCEUNLOCK), by what the brokers log: it happens only when a client asks for it; holders learn
 * of it first; a letter counts once; and a znode is deleted only when its daemon cannot be asked or its time has run
 * out.
 */
#include "world.h"

#include "core/state.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/param.h>

static bool begins(struct slice text, const char *with)
{
	return text.len >= strlen(with) && memcmp(text.data, with, strlen(with)) == 0;
}

/* "... letter "<id>"": a letter is acted upon once, by one daemon. */
static void check_letter(struct host *h, int lock, struct slice text)
{
	const char *at = memmem(text.data, text.len, ", letter ", 9);
	struct world *w = h->w;
	char id[64] = "";

	if (!at)
		return;
	at += 9;
	memcpy(id, at, MIN((size_t)(text.data + text.len - at), sizeof(id) - 1));
	for (size_t i = 0; i < MIN(w->outbox_count, (size_t)FORCED_MAX); i++)
		if (strcmp(w->letters[i], id) == 0)
			world_fail(w, lock, "host %d: letter %s was acted upon twice", h->index, id);
	memcpy(w->letters[w->outbox_count++ % FORCED_MAX], id, sizeof(id));
}

/* What the broker has for the client, which may be one that was granted it while others lost it. */
static const struct grant *grant_at(const struct caller *c, struct slice name)
{
	struct locks *locks = &c->host->broker->locks;
	const struct lock *lock = lock_find(locks, name);
	const struct client *client = locks->conns[c->conn];

	return lock && client ? grant_find(lock, client) : NULL;
}

bool forced_spared(const struct caller *c, struct slice name)
{
	const struct grant *g = c->state == CLIENT_ON && c->host->conf.all_in_pieces ? grant_at(c, name) : NULL;

	return g && !g->lost;
}

static bool has_taken(const struct caller *c, struct slice name)
{
	const struct grant *g = grant_at(c, name);

	return g && g->lost && g->loss == LOSS_FORCED;
}

/* It is taken from one after the other: those that get no pushes are not told. */
void forced_handled(struct host *h)
{
	const struct world *w = h->w;
	int i, lock;

	for (i = 0; i < h->client_count; i++) {
		struct caller *c = &h->clients[i];

		if (c->state != CLIENT_ON || c->protocol == 3)
			continue;
		for (lock = 0; lock < w->lock_count; lock++)
			if (w->forces[lock] && c->holding[lock].held && !c->holding[lock].lost &&
			    has_taken(c, slice_of(w->lock_name[lock])))
				c->holding[lock].lost = true;
		if (w->permit_forces && c->permits.count && has_taken(c, SLICE("sem")))
			c->permits.lost = true;
	}
}

/* Holders that get pushes were told before; the others find out when they ask. A RESET that is under way has released. */
static void check_forced(struct host *h, int lock, struct slice text)
{
	struct world *w = h->w;
	int i;

	if (!w->forces[lock])
		world_fail(w, lock, "host %d: %s is taken by force, which nobody wanted", h->index, w->lock_name[lock]);
	check_letter(h, lock, text);
	if (memmem(text.data, text.len, " from 0 holders", 15))
		return; /* it was not that znode, or not any more */
	w->stats->forced++;
	ghosts_forget(h, lock);
	for (i = 0; i < h->client_count; i++) {
		struct caller *c = &h->clients[i];
		struct holding *g = &c->holding[lock];

		if (!g->held || g->lost || forced_spared(c, slice_of(w->lock_name[lock])))
			continue;
		if (c->protocol == 3 && c->state == CLIENT_ON && !check_resetting(c))
			world_fail(w, lock, "host %d client %u: %s was taken by force and nothing was pushed", h->index, c->conn,
				   w->lock_name[lock]);
		g->lost = true;
	}
}

static bool asks_for_force(const struct host *h, int lock, int64_t since)
{
	int i;

	for (i = 0; i < h->client_count; i++) {
		const struct caller *c = &h->clients[i];

		if (c->asking && c->current.command == COMMAND_FORCEUNLOCK &&
		    (lock < 0 ? c->current.permits : c->current.lock == lock && !c->current.permits) &&
		    c->current.asked_at <= since)
			return true;
	}
	return false;
}

static bool is_box_of(const struct host *h, struct slice path)
{
	char box[40];
	int len = snprintf(box, sizeof(box), "/locks/.mail/%s", h->name);

	return begins(path, box) && (path.len == (size_t)len || path.data[len] == '/');
}

void forced_answered(struct host *h, const struct event *e)
{
	if (e->type == EVENT_ZK_ANSWERED && zk_refuses(e->zk_answered.code) && is_box_of(h, e->zk_answered.path))
		h->mail_refused_at = h->w->sched.now;
}

/* It was not allowed to read its mail, and asks again half a minute later. */
static bool reads_no_mail(const struct host *h)
{
	return h->mail_refused_at && h->w->sched.now < h->mail_refused_at + 31 * SECOND + h->w->slow_ns;
}

/* One that nothing ails answers in time. */
static bool should_have_answered(const struct world *w, const struct host *owner, const struct host *asker)
{
	int64_t since = w->sched.now - 5 * SECOND - w->slow_ns;

	return w->last_fault < since && w->mail_meddled_at < since && owner->conf.limits.session_path_bytes > 1000 &&
	       !owner->stopping && !asker->stopping && !reads_no_mail(owner) && !reads_no_mail(asker);
}

/* A log does not tell sessions: of the name of a znode it has the end. */
static struct znode *find_shown(struct world *w, struct slice path)
{
	const char *slash = memrchr(path.data, '/', path.len);
	size_t len = (size_t)(path.data + path.len - slash - 1);
	const struct znode *dir = fakezk_find(&w->zk, (struct slice){ path.data, (size_t)(slash - path.data) }, FAKEZK_TRUTH);
	struct znode *n;

	if (dir)
		TAILQ_FOREACH(n, &dir->children, sibling) {
			size_t all = strlen(n->path);

			if (n->view[FAKEZK_TRUTH].exists && all >= len && memcmp(n->path + all - len, slash + 1, len) == 0)
				return n;
		}
	return NULL;
}

/* Only when its daemon has had its time, or there is none that could be asked. */
static void check_force_deletes(struct host *h, struct slice path, bool unknown)
{
	struct world *w = h->w;
	struct znode *n = find_shown(w, path);
	const struct zdata *data;
	struct host *owner;
	int lock;

	if (!n)
		return;
	lock = world_lock_of(w, n->parent->path, n->parent->len);
	data = n->view[FAKEZK_TRUTH].data;
	if (!asks_for_force(h, lock, w->sched.now))
		world_fail(w, lock, "host %d deletes %s, which nobody wanted", h->index, n->path);
	owner = check_host_of(w, n->session);
	/* What an operator wrote over may have been read before its daemon wrote again. */
	if (unknown && w->mix->operator_every_ms)
		owner = NULL;
	if (owner && data && memmem(data->bytes, data->len, "\nhost=", 6)) {
		if (!asks_for_force(h, lock, w->sched.now - 2 * SECOND))
			world_fail(w, lock, "host %d deletes %s and gave its daemon no time", h->index, n->path);
		if (should_have_answered(w, owner, h))
			world_fail(w, lock, "host %d deletes %s, whose daemon should have answered", h->index, n->path);
	}
	w->stats->force_deleted++;
	w->forced[w->forced_count++ % FORCED_MAX] = n->czxid;
}

void check_logged(struct host *h, struct slice text)
{
	const char *end = memmem(text.data, text.len, " taken by force from ", 21);
	const char *quote = memmem(text.data, text.len, "\", ", 3);
	struct bytes name = { 0 };
	int i;

	if (begins(text, "lock \"sem\" taken by force")) {
		check_letter(h, -1, text);
		permits_forced(h, text);
	} else if (begins(text, "lock ") && end)
		for (i = 0; i < h->w->lock_count; i++) {
			bytes_clear(&name);
			bytes_quote(&name, slice_of(h->w->lock_name[i]));
			if (slice_eq((struct slice){ text.data + 5, (size_t)(end - text.data - 5) }, bytes_view(&name)))
				check_forced(h, i, text);
		}
	if (begins(text, "deleting \"") && quote)
		check_force_deletes(h, (struct slice){ text.data + 10, (size_t)(quote - text.data - 10) },
				    memmem(text.data, text.len, "of no host", 10));
	bytes_free(&name);
}

bool check_is_forced(const struct world *w, const struct znode *n)
{
	for (size_t i = 0; i < MIN(w->forced_count, (size_t)FORCED_MAX); i++)
		if (w->forced[i] == n->czxid)
			return true;
	return false;
}
