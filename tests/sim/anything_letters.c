/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is done under a value on the host that has granted the lock (core/hosts/forward.h), in the worlds of "anything":
 *
 *   - a letter is posted for a request that is under way
 *   - it is answered once, by the host that it was sent to
 *   - "ours" is answered only by who holds the lock under that value for that uid, and has not released it in another way
 *   - who has released or extended it so is told so, unless the connection is lost
 *   - who releases or extends by the value of a lock that is held all the while is not told that it is gone; and who is told
 *     that it is released has released it
 *   - a client that asks who holds a lock, or releases or extends it by its name alone, is not told that the lock is free
 *     while a client of any host holds it all the time
 */
#include "anything.h"

#include <inttypes.h>
#include <stdio.h>

#include "core/hosts/lookup.h"
#include "core/kind/semaphore.h"
#include "core/lock/bearer.h"
#include "core/znode/record.h"

/* The grant under that value, if it is valid, and whoever asked for it knows. NULL: it is none. */
static const struct grant *held(const struct world *w, const struct host *h, int name, const struct any_shown *shown)
{
	const struct lock *lock = h->broker && name >= 0 ? lock_find(&h->broker->locks, slice_of(any_names[name])) : NULL;
	const struct grant *g = lock ? TAILQ_FIRST(&lock->grants) : NULL;

	if (!g || !g->client->bearer || !bearer_is_told(g->client) || g->lost || any_is_void(w, g) || !any_is_proven(h) ||
	    g->client->uid != shown->uid || g->lease.due_ns <= host_now(h))
		return NULL;
	return slice_eq(bytes_view(&g->client->bearer->value), (struct slice){ shown->text, shown->len }) ? g : NULL;
}

static const struct grant *held_anywhere(const struct world *w, int name, const struct any_shown *shown)
{
	const struct grant *g = NULL;

	for (int i = 0; i < w->host_count && !g; i++)
		g = held(w, &w->hosts[i], name, shown);
	return g;
}

/* The grant stands: it is not free in a page. A turn that is kept for a place stands, too. */
static bool stands(const struct world *w, const struct host *h, const struct grant *g)
{
	return !g->lost && !g->delegated && !any_is_void(w, g) && any_is_proven(h) &&
	       !(g->lease.place && g->lease.due_ns <= host_now(h)) && !(g->client->bearer && bearer_has_place(g->client));
}

/* The token of a grant of the lock that stands on any host; only `token` itself, if it is not 0. 0: there is none. */
static int64_t token_anywhere(const struct world *w, int name, int64_t token)
{
	for (int i = 0; i < w->host_count; i++) {
		const struct host *h = &w->hosts[i];
		const struct lock *lock = h->broker ? lock_find(&h->broker->locks, slice_of(any_names[name])) : NULL;
		const struct grant *g;

		if (!lock || semaphore_of(lock))
			continue;
		TAILQ_FOREACH(g, &lock->grants, link)
			if (stands(w, h, g) && (!token || g->token == token))
				return g->token;
	}
	return 0;
}

/* ---- who asks ---- */

static bool asks_who_holds(enum command command)
{
	return command == COMMAND_EXISTS || command == COMMAND_TTL || command == COMMAND_PTTL || command == COMMAND_GET ||
	       command == COMMAND_DEL || command == COMMAND_UNLINK || command == COMMAND_EXPIRE || command == COMMAND_PEXPIRE;
}

/*
 * If the request has several names, "none is held" is also an answer about the first one. Where an operator deletes znodes,
 * two hosts may hold one lock, so nothing is checked.
 */
void letters_asking(struct any_peer *p, int name)
{
	const struct grant *g = p->shown.only >= 0 ? held_anywhere(p->host->w, p->shown.only, &p->shown) : NULL;

	p->shown.token = g ? g->token : 0;
	p->shown.about = asks_who_holds(p->command) && !p->host->w->any->forces ? name : -1;
	p->shown.held = p->shown.about >= 0 ? token_anywhere(p->host->w, p->shown.about, 0) : 0;
}

static bool is_nil(struct slice reply)
{
	return slice_eq(reply, SLICE("$-1\r\n")) || slice_eq(reply, SLICE("_\r\n"));
}

/* For TTL and PTTL, 0 is a time that is left. */
static bool says_nobody(const struct any_peer *p, struct slice reply)
{
	return p->command == COMMAND_TTL || p->command == COMMAND_PTTL ? slice_eq(reply, SLICE(":-2\r\n"))
									 : slice_eq(reply, SLICE(":0\r\n")) || is_nil(reply);
}

static void check_nobody(const struct any_peer *p, struct slice reply)
{
	const struct any_shown *shown = &p->shown;

	if (shown->held && says_nobody(p, reply) && token_anywhere(p->host->w, shown->about, shown->held))
		world_fail(p->host->w, -1, "host %d client %u: is told that nobody holds %s, which is held by token %" PRId64,
			   p->host->index, p->conn, any_names[shown->about], shown->held);
}

/* It answers for a grant of its own, whose znode an operator deleted, and has not learnt that yet: another host grants. */
static bool goes_by_void(const struct host *h, int name)
{
	const struct lock *lock = h->broker ? lock_find(&h->broker->locks, slice_of(any_names[name])) : NULL;
	const struct grant *g = lock ? TAILQ_FIRST(&lock->grants) : NULL;

	return g && !g->lost && any_is_void(h->w, g);
}

void letters_replied(const struct any_peer *p, struct slice reply)
{
	const struct any_shown *shown = &p->shown;
	const struct grant *g = shown->token ? held_anywhere(p->host->w, shown->only, shown) : NULL;
	const char *name = shown->only >= 0 ? any_names[shown->only] : "";
	bool gone = slice_eq(reply, SLICE(":0\r\n")) || is_nil(reply);

	check_nobody(p, reply);
	if (shown->done && gone)
		world_fail(p->host->w, -1, "host %d client %u: is told that %s is gone, and has released or extended it",
			   p->host->index, p->conn, name);
	if (!g || g->token != shown->token)
		return;
	/* There is no end of it to put off. */
	if (gone && shown->adds && !g->lease.place)
		return;
	if (gone && !goes_by_void(p->host, shown->only))
		world_fail(p->host->w, -1, "host %d client %u: is told that %s is gone, which is held under %.*s",
			   p->host->index, p->conn, name, (int)shown->len, shown->text);
	if (shown->releases && slice_eq(reply, SLICE(":1\r\n")))
		world_fail(p->host->w, -1, "host %d client %u: is told that %s is released, which is held under %.*s",
			   p->host->index, p->conn, name, (int)shown->len, shown->text);
}

/* ---- letters ---- */

static struct any_peer *asker(const struct host *h, struct slice id)
{
	struct any_host *a = any_of(h);

	for (int i = 0; i < a->peer_count; i++) {
		const struct client *c = h->broker && a->peers[i].on && !h->crashed ? h->broker->locks.conns[i] : NULL;

		if (c && c->lookup && c->lookup->forward && slice_eq(bytes_view(&c->lookup->forward->id), id))
			return &a->peers[i];
	}
	return NULL;
}

static void posted(struct host *h, struct slice id, struct slice data)
{
	struct any *all = h->w->any;
	struct any_letter *l = &all->letters[all->letter_count++ % ANY_LETTERS];
	const struct any_peer *p = asker(h, id);

	if (!p || !p->asking)
		world_fail(h->w, -1, "host %d: letter %.*s is of no request", h->index, (int)id.len, id.data);
	*l = (struct any_letter){ .shown = p->shown, .at = h->w->sched.now, .open = true };
	l->name = any_name_of(record_get(data, "name"));
	l->releases = slice_is(record_get(data, "act"), "release");
	l->extends = slice_is(record_get(data, "act"), "extend");
	snprintf(l->id, sizeof(l->id), "%.*s", (int)id.len, id.data);
}

/* Who asked, as long as it waits for that. */
static struct any_peer *asker_anywhere(const struct world *w, struct slice id)
{
	struct any_peer *p = NULL;

	for (int i = 0; i < w->host_count && !p; i++)
		p = asker(&w->hosts[i], id);
	return p && p->asking && p->shown.only >= 0 ? p : NULL;
}

/* As it was after the event before this one. What is held under a name that nobody means is not kept. */
static bool is_under(const struct host *h, const struct any_letter *l)
{
	const struct any_value *v = &any_of(h)->values[l->name < 0 ? 0 : l->name];

	return l->name < 0 || (v->token && v->uid == l->shown.uid &&
			       slice_eq((struct slice){ v->text, v->len }, (struct slice){ l->shown.text, l->shown.len }));
}

static void answered(struct host *h, struct slice data)
{
	struct slice id = record_get(data, "re");
	struct any *all = h->w->any;
	struct any_letter *l = NULL;
	struct any_peer *p;

	for (int i = 0; i < ANY_LETTERS && !l; i++)
		if (slice_eq(slice_of(all->letters[i].id), id))
			l = &all->letters[i];
	if (!l || !l->open)
		world_fail(h->w, -1, "host %d: answers letter %.*s, which is not open", h->index, (int)id.len, id.data);
	l->open = false;
	if (!slice_is(record_get(data, "found"), "ours"))
		return;
	if (!is_under(h, l))
		world_fail(h->w, -1, "host %d: acts upon %s for %.*s, under which it is not held", h->index,
			   any_names[l->name], (int)l->shown.len, l->shown.text);
	p = asker_anywhere(h->w, id);
	if (p)
		p->shown.done = true;
}

void letters_created(struct host *h, struct slice path, struct slice data)
{
	const char *slash = memrchr(path.data, '/', path.len);

	if (slice_is(record_get(data, "kind"), "bearer"))
		posted(h, (struct slice){ slash + 1, (size_t)(path.data + path.len - slash - 1) }, data);
	else if (slice_is(record_get(data, "kind"), "answer") && record_get(data, "found").len)
		answered(h, data);
}

bool letters_ask(const struct host *h, int name, const struct any_value *v, bool releases)
{
	const struct any *all = h->w->any;

	for (int i = 0; i < ANY_LETTERS; i++) {
		const struct any_letter *l = &all->letters[i];

		if (l->name == name && (releases ? l->releases : l->extends) && l->at > h->w->sched.now - 3 * h->w->timeout &&
		    v->uid == l->shown.uid &&
		    slice_eq((struct slice){ v->text, v->len }, (struct slice){ l->shown.text, l->shown.len }))
			return true;
	}
	return false;
}
