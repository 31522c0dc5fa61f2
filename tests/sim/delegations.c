/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Clients with pages: they take and release delegated locks by the word of a slot, between any two events, and check the
 * session page as the library does. Every promise about a grant holds for a lock that they take so; and nobody else was
 * granted the lock since they held it last.
 */
#include "anything.h"

#include "core/state.h"

#include <inttypes.h>
#include <stdio.h>

enum { ASKS_PERCENT = 30, OFFERS_PERCENT = 80, LOCAL_PERCENT = 85, AGAIN_PERCENT = 60 };

static struct delegation_slot *slot_of(struct caller *c, int lock)
{
	return &c->page.slots[lock];
}

/* ---- the page ---- */

static void page_due(void *caller, uint64_t turn)
{
	struct caller *c = caller;
	struct host *h = c->host;

	if (turn != c->page_turn || !h->broker || h->dying || c->state == CLIENT_OFF || !broker_has_client(h->broker, c->conn))
		return;
	if (h->stopped_until > h->w->sched.now) {
		sched_at(&h->w->sched, h->stopped_until, page_due, c, turn);
		return;
	}
	delegation_init(&c->page);
	c->has_page = true;
	host_handle(h, &(struct event){ .type = EVENT_CLIENT_PAGE, .conn = c->conn, .page.page = &c->page });
}

void delegations_make(struct host *h, uint32_t conn)
{
	struct caller *c = &h->clients[conn];

	if (h->w->any) {
		pages_make(h, conn);
		return;
	}
	sched_at(&h->w->sched, h->w->sched.now + rng_between(&h->w->rng, 0, MS), page_due, c, ++c->page_turn);
}

void delegations_resume(struct host *h)
{
	if (h->w->any)
		pages_resume(h);
	for (int i = 0; i < h->client_count; i++) {
		struct caller *c = &h->clients[i];

		if (c->has_page && c->state != CLIENT_OFF && !h->ghosts[i].on)
			broker_give_page(h->broker, c->conn, &c->page);
	}
}

void delegations_page(struct host *h, bool another)
{
	struct session_view view;

	if (another) {
		h->page_number++;
		snprintf(h->page_id, sizeof(h->page_id), "%016x%016x", (unsigned int)h->index, (unsigned int)h->page_number);
		session_page_init(&h->session_page, (const uint8_t[SESSION_PAGE_ID_BYTES]){ 0 });
		for (int i = 0; i < SESSION_PAGE_ID_BYTES; i++) {
			unsigned int byte;

			sscanf(h->page_id + 2 * i, "%2x", &byte);
			h->session_page.id[i] = (uint8_t)byte;
		}
		return;
	}
	broker_session(h->broker, &view);
	session_page_write(&h->session_page, &view);
}

void delegations_forget(struct caller *c)
{
	c->has_page = c->asked_page = false;
	c->page_turn++;
	memset(c->kept, 0, sizeof(c->kept));
}

/* ---- what it has ---- */

/* What it held may have ended otherwise. */
static struct kept *kept_of(struct caller *c, int lock)
{
	struct kept *k = &c->kept[lock];

	if (k->state == KEPT_HELD && !c->holding[lock].held)
		k->state = KEPT_NONE;
	return k;
}

void delegations_granted(struct caller *c, const struct ask *a)
{
	struct kept *k = &c->kept[a->lock];

	k->state = KEPT_NONE;
	if (!a->slot || !delegation_read(slot_of(c, a->lock), k->seen, &k->terms))
		return;
	if (k->terms.token != c->holding[a->lock].token)
		world_fail(c->host->w, a->lock, "host %d client %u: its slot says another token than the answer", c->host->index,
			   c->conn);
	k->state = KEPT_HELD;
	k->shared = a->shared;
	k->seen = k->terms.generation;
	k->at = c->host->w->sched.now;
	c->host->w->stats->delegated++;
}

/* The daemon saw it inside, and it is not: it took the word, and has yet to look at the proof. */
bool delegations_may_lose(const struct caller *c, int lock)
{
	return c->kept[lock].state == KEPT_TAKING || c->kept[lock].state == KEPT_RETURNING;
}

bool delegations_keep(const struct caller *c, int lock)
{
	const struct client *client = c->host->broker->locks.conns[c->conn];
	struct slice name = slice_of(c->host->w->lock_name[lock]);
	const struct grant *g;

	if (delegations_may_lose(c, lock))
		return true;
	TAILQ_FOREACH(g, &client->grants, client_link)
		if ((g->delegated || (g->slot && !client->delegations)) && slice_eq(bytes_view(&g->lock->name), name))
			return true;
	return false;
}

bool delegations_returned(struct caller *c, const struct ask *a, struct slice reply)
{
	struct kept *k = &c->kept[a->lock];

	if (k->state != KEPT_RETURNING)
		return false;
	if (reply.len == 0 || (reply.data[0] != ':' && !answer_begins(reply, "-LOST") && !answer_begins(reply, "-NOTHELD")))
		answer_bad(c, a, reply, "unexpected");
	k->state = KEPT_NONE;
	c->holding[a->lock] = (struct holding){ 0 };
	return true;
}

/* ---- taking and leaving ---- */

static bool stands(const struct caller *c, const struct kept *k, int64_t min_ns)
{
	const struct host *h = c->host;
	struct session_view view;

	return session_page_read(&h->session_page, &view) &&
	       delegation_stands(&k->terms, &h->session_page, &view, host_now(h), min_ns);
}

static void moved(struct caller *c, int lock)
{
	c->host->wanted_at[lock] = c->host->moved_at[lock] = c->host->w->sched.now;
}

/* The second half: the swap is made, and anything may have happened since. */
static void enter_due(void *caller, uint64_t life)
{
	struct caller *c = caller;
	struct world *w = c->host->w;

	if (life != c->life)
		return;
	for (int lock = 0; lock < w->lock_count; lock++) {
		struct kept *k = &c->kept[lock];
		struct ask a = { .command = COMMAND_LOCK, .lock = lock, .wait_ms = -1, .order = k->order, .shared = k->shared };

		if (k->state != KEPT_TAKING)
			continue;
		moved(c, lock);
		if (c->state == CLIENT_ON && !c->holding[lock].held &&
		    delegation_holds(slot_of(c, lock), k->terms.generation) && stands(c, k, k->terms.grant_min_ns)) {
			check_taken(c, &a, k->terms.token);
			c->holding[lock] = holding_granted(c, &a, k->terms.token);
			c->done = c->done || w->quiet;
			k->state = KEPT_HELD;
			w->stats->taken++;
			w->stats->read_again += k->shared;
			continue;
		}
		k->state = delegation_leave(slot_of(c, lock), k->terms.generation) ? KEPT_NONE : KEPT_RETURNING;
		TRACE(w, lock, "host %d client %u: gives %s back, not having entered", c->host->index, c->conn,
		      w->lock_name[lock]);
	}
}

/* Most often none to speak of; now and then so long that all may be over. In thousandths of T. */
static const int64_t pauses[] = { 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 10, 10, 10, 100, 1200 };
enum { PAUSES = sizeof(pauses) / sizeof(pauses[0]) };

static bool take(struct caller *c, int lock)
{
	struct kept *k = kept_of(c, lock);
	struct world *w = c->host->w;

	if (!delegation_take(slot_of(c, lock), k->terms.generation)) {
		k->state = KEPT_NONE;
		return false;
	}
	if (!c->host->conf.standalone && c->host->broker)
		check_nobody_waits(c, lock, k->terms.token);
	if (c->host->broker && env_halts(&c->host->broker->env) && !c->host->broker->locks.halting.on)
		world_fail(w, lock, "host %d client %u: takes %s by its word, and its broker grants nothing any longer",
			   c->host->index, c->conn, w->lock_name[lock]);
	TRACE(w, lock, "host %d client %u: takes %s by its word", c->host->index, c->conn, w->lock_name[lock]);
	slot_of(c, lock)->uses++;
	slot_of(c, lock)->held_since_ns = host_now(c->host);
	k->at = w->sched.now;
	k->state = KEPT_TAKING;
	k->order = ++c->host->order;
	sched_at(&w->sched, w->sched.now + rng_between(&w->rng, 0, pauses[rng_below(&w->rng, PAUSES)] * w->timeout / 1000),
		 enter_due, c, c->life);
	return true;
}

static bool leave(struct caller *c, int lock)
{
	struct kept *k = kept_of(c, lock);
	struct holding *g = &c->holding[lock];

	if (k->state != KEPT_HELD || g->depth != 1 || !stands(c, k, 0) ||
	    !delegation_leave(slot_of(c, lock), k->terms.generation))
		return false;
	if (g->lost && (g->pushed || !holding_unsure(g)))
		world_fail(c->host->w, lock, "host %d client %u: an unlock of %s by its word says nothing of its loss",
			   c->host->index, c->conn, c->host->w->lock_name[lock]);
	TRACE(c->host->w, lock, "host %d client %u: leaves %s by its word", c->host->index, c->conn,
	      c->host->w->lock_name[lock]);
	k->state = KEPT_FREE;
	k->at = c->host->w->sched.now;
	moved(c, lock);
	*g = (struct holding){ 0 };
	return true;
}

bool delegations_busy(const struct caller *c)
{
	for (int i = 0; i < LOCKS_MAX; i++)
		if (c->kept[i].state == KEPT_TAKING)
			return true;
	return false;
}

static bool is_plain(const struct ask *a)
{
	return a->command == COMMAND_LOCK && !a->permits && !a->several && !a->lease_ms;
}

/* Most often each client wants a lock of its own, unless it reads: else delegations would end all the time. */
static void favour(const struct caller *c, struct ask *a)
{
	struct world *w = c->host->w;
	int own = a->shared ? 0 : (int)(c->conn % (uint32_t)w->lock_count);

	for (int i = 0; i < w->lock_count; i++)
		if (c->holding[i].held || c->wait[i].on)
			return;
	if (is_plain(a) && !w->election[own] && rng_percent(&w->rng, 75))
		a->lock = own;
}

bool delegations_turn(struct caller *c, struct ask *a)
{
	struct world *w = c->host->w;
	struct kept *k;

	if (!w->mix->delegations || a->permits || a->command == COMMAND_COUNT || c->auditor)
		return false;
	for (int i = 0; i < w->lock_count; i++)
		if (c->kept[i].state == KEPT_RETURNING) {
			if (c->sent)
				return true;
			*a = (struct ask){ .command = COMMAND_UNLOCK, .lock = i, .wait_ms = -1, .target = -1, .owner = -1 };
			return false;
		}
	if (c->sent || w->election[a->lock])
		return false;
	if (c->protocol == 3 && !c->has_page && !c->asked_page && !w->quiet && rng_percent(&w->rng, ASKS_PERCENT)) {
		*a = (struct ask){ .command = COMMAND_DELEGATE, .wait_ms = -1, .target = -1, .owner = -1 };
		c->asked_page = true;
		return false;
	}
	for (int i = 0; i < w->lock_count && !w->quiet; i++)
		if (kept_of(c, i)->state == KEPT_FREE && rng_percent(&w->rng, AGAIN_PERCENT))
			return take(c, i);
	favour(c, a);
	k = kept_of(c, a->lock);
	if (!c->has_page || c->wait[a->lock].on)
		return false;
	if (is_plain(a) && k->state == KEPT_FREE && k->shared == a->shared && rng_percent(&w->rng, LOCAL_PERCENT) &&
	    take(c, a->lock))
		return true;
	if (a->command == COMMAND_UNLOCK && !a->several && k->state == KEPT_HELD && rng_percent(&w->rng, LOCAL_PERCENT) &&
	    leave(c, a->lock))
		return true;
	if (a->command == COMMAND_LOCK && k->state == KEPT_FREE)
		k->state = KEPT_NONE;
	if (is_plain(a) && (delegation_none(slot_of(c, a->lock)) || k->state == KEPT_NONE) && !c->holding[a->lock].held &&
	    rng_percent(&w->rng, OFFERS_PERCENT))
		a->slot = a->lock + 1;
	return false;
}
