/* SPDX-License-Identifier: Apache-2.0 */
#include "core/salvage.h"

#include <string.h>

#include "base/mem.h"
#include "core/port/seal.h"
#include "core/salvaging.h"
#include "core/snapshot.h"
#include "core/state.h"

enum { SAFE_PART = 3 /* of T, as in session.c */ };

/* Nothing is counted that far. */
static const uint64_t CEILING_MAX = UINT64_C(1) << 62;

void salvage_may_continue(const struct ledger_view *v, bool *ret_may, size_t count)
{
	memset(ret_may, 0, count * sizeof(*ret_may));
	for (size_t i = 0; i < v->of[LEDGER_CLIENT].count; i++)
		if (salvaging_client(v, i)->conn < count)
			ret_may[salvaging_client(v, i)->conn] = salvaging_may_continue(salvaging_client(v, i));
}

void salvage_needs_page(const struct ledger_view *v, bool *ret_needs, size_t count)
{
	const struct ledger_list *all = &v->of[LEDGER_GRANT];

	memset(ret_needs, 0, count * sizeof(*ret_needs));
	for (size_t i = 0; i < all->count; i++) {
		const struct ledger_grant *g = ledger_view_grant(all->list[i]);
		size_t client;

		if (g->flags / LEDGER_SLOT && ledger_view_find(v, LEDGER_CLIENT, g->client, &client) &&
		    salvaging_client(v, client)->conn < count)
			ret_needs[salvaging_client(v, client)->conn] = true;
	}
}

int64_t salvage_session(const struct ledger_view *v, int64_t session)
{
	return v->head->session == (uint64_t)session ? session : 0;
}

/* ---- what belongs together ---- */

static int by_lock(const void *a, const void *b)
{
	const struct of_lock *x = a, *y = b;

	if (x->lock != y->lock)
		return x->lock < y->lock ? -1 : 1;
	return (x->mark > y->mark) - (x->mark < y->mark);
}

/* One without its client was just released. */
static bool read_grants(struct salvaging *w)
{
	const struct ledger_list *all = &w->v->of[LEDGER_GRANT];

	w->held = mem_new_array(all->count + 1, sizeof(w->held[0]));
	for (size_t i = 0; i < all->count; i++) {
		struct held h = { .of.mark = (uint32_t)w->held_count + 1, .grant = ledger_view_grant(all->list[i]) };

		if (!ledger_view_find(w->v, LEDGER_LOCK, h.grant->lock, &h.of.lock))
			return salvaging_refuse(w, "a grant in it is of no lock");
		if (!ledger_view_find(w->v, LEDGER_CLIENT, h.grant->client, &h.client))
			continue;
		h.lost = h.grant->flags & LEDGER_LOST;
		h.loss = (enum loss)(h.grant->flags % LEDGER_SLOT / LEDGER_LOSS);
		w->held[w->held_count++] = h;
	}
	if (w->held_count)
		qsort(w->held, w->held_count, sizeof(w->held[0]), by_lock);
	return true;
}

static void read_claims(struct salvaging *w)
{
	const struct ledger_list *all = &w->v->of[LEDGER_CLAIM];

	w->claims = mem_new_array(all->count + 1, sizeof(w->claims[0]));
	for (size_t i = 0; i < all->count && w->b->ensemble.session.id; i++) {
		struct noted n = { .of.mark = (uint32_t)w->claim_count + 1, .claim = ledger_view_claim(all->list[i]) };

		if (n.claim->place != LEDGER_PLACE_WITHHELD &&
		    ledger_view_find(w->v, LEDGER_LOCK, n.claim->lock, &n.of.lock))
			w->claims[w->claim_count++] = n;
	}
	if (w->claim_count)
		qsort(w->claims, w->claim_count, sizeof(w->claims[0]), by_lock);
}

/* Whoever is not back is told nothing any longer. */
static bool read_observers(struct salvaging *w)
{
	const struct ledger_list *all = &w->v->of[LEDGER_OBSERVER];

	w->watching = mem_new_array(all->count + 1, sizeof(w->watching[0]));
	for (size_t i = 0; i < all->count; i++) {
		struct watching o = { .of.mark = (uint32_t)w->watching_count + 1 };

		o.observer = ledger_view_observer(all->list[i]);
		if (!ledger_view_find(w->v, LEDGER_LOCK, o.observer->lock, &o.of.lock))
			return salvaging_refuse(w, "an observer in it is of no lock");
		if (!ledger_view_find(w->v, LEDGER_CLIENT, o.observer->client, &o.client) ||
		    !salvaging_is_back(w, salvaging_client(w->v, o.client)))
			continue;
		w->watching[w->watching_count++] = o;
	}
	if (w->watching_count)
		qsort(w->watching, w->watching_count, sizeof(w->watching[0]), by_lock);
	return true;
}

static void read_places(struct salvaging *w)
{
	const struct ledger_list *all = &w->v->of[LEDGER_LOCK];
	size_t held = 0, claims = 0, watching = 0;

	w->places = mem_new_array(all->count + 1, sizeof(w->places[0]));
	for (size_t i = 0; i < all->count; i++) {
		struct salvaging_place *p = &w->places[i];

		p->lock = ledger_view_lock(all->list[i]);
		p->held = w->held + held;
		p->claims = w->claims + claims;
		p->watching = w->watching + watching;
		for (; held < w->held_count && w->held[held].of.lock == i; held++)
			p->held_count++;
		for (; claims < w->claim_count && w->claims[claims].of.lock == i; claims++)
			p->claim_count++;
		for (; watching < w->watching_count && w->watching[watching].of.lock == i; watching++)
			p->watching_count++;
	}
}

/* ---- what is valid ---- */

static void lose(struct held *h, enum loss loss)
{
	if (h->lost)
		return;
	h->lost = true;
	h->loss = loss;
}

/* A client is told of its grant once the file has the proof of the session: without that, no client was told. */
static void judge_session(struct salvaging *w)
{
	if (session_safe_until(&w->b->ensemble) != INT64_MIN)
		return;
	for (size_t i = 0; i < w->held_count; i++)
		lose(&w->held[i], LOSS_SESSION);
}

/* All grants of a lock rest on one claim: on that of the latest. */
static void judge_grants(struct salvaging *w, struct salvaging_place *p)
{
	int64_t base = -1;

	for (size_t i = p->held_count; i-- > 0;) {
		struct held *h = &p->held[i];

		if (h->lost)
			continue;
		if (base < 0) {
			base = ledger_base(h->grant);
			for (size_t j = 0; j < p->claim_count; j++)
				if (p->claims[j].claim->place == LEDGER_PLACE_CLAIM &&
				    p->claims[j].claim->czxid == base)
					p->kept = p->claims[j].claim;
		}
		if ((!w->standalone && !p->kept) || ledger_base(h->grant) != base)
			lose(h, LOSS_DELETED);
		p->holds = p->holds || !h->lost;
	}
}

/* Each permit rests on a claim of its own. */
static void judge_permits(struct salvaging *w, struct salvaging_place *p)
{
	int64_t left = w->standalone ? INT64_MAX : 0;

	for (size_t i = 0; i < p->claim_count; i++)
		left += p->claims[i].claim->place == LEDGER_PLACE_SLOTS;
	for (size_t i = 0; i < p->held_count; i++) {
		struct held *h = &p->held[i];

		if (!h->lost && h->grant->depth > left)
			lose(h, LOSS_DELETED);
		if (h->lost)
			continue;
		left -= h->grant->depth;
		p->holds = true;
	}
}

static void judge(struct salvaging *w)
{
	w->holds = mem_new_array(w->v->of[LEDGER_CLIENT].count + 1, sizeof(bool));
	judge_session(w);
	for (size_t i = 0; i < w->v->of[LEDGER_LOCK].count; i++) {
		if (salvaging_semaphore(&w->places[i]))
			judge_permits(w, &w->places[i]);
		else
			judge_grants(w, &w->places[i]);
	}
	for (size_t i = 0; i < w->held_count; i++)
		if (!w->held[i].lost)
			w->holds[w->held[i].client] = true;
}

static bool is_in(const struct salvaging *w, const struct held *h)
{
	return !h->lost || salvaging_is_back(w, salvaging_client(w->v, h->client));
}

/* The clients have their grants in the order in which they were made. */
static void mark(struct salvaging *w)
{
	struct held **in = mem_new_array(w->held_count + 1, sizeof(*in));
	uint32_t count = 0;

	for (size_t i = 0; i < w->held_count; i++) {
		if (is_in(w, &w->held[i]))
			in[w->held[i].of.mark] = &w->held[i];
		w->held[i].of.mark = 0;
	}
	for (size_t i = 1; i <= w->held_count; i++)
		if (in[i])
			in[i]->of.mark = ++count;
	mem_free(in);
}

/* ---- the broker's own ---- */

/*
 * Holders were told how the session stood: it is reviewed with the first event, and what is different then is told. If the
 * proof is younger than T/3, so is the last event of the killed process; else that may have stood still for long.
 */
static void set_session(struct salvaging *w, struct session *s)
{
	const struct salvage *given = w->s;
	bool young;

	s->had_one = true;
	s->epoch = w->v->head->epoch;
	s->id = salvage_session(w->v, given->session);
	heap_set(&w->b->env.timers, &s->timer, given->now_ns);
	if (w->b->ensemble.formers.count)
		heap_set(&w->b->env.timers, &w->b->ensemble.formers.timer, given->now_ns);
	if (!s->id)
		return;
	s->was_announced = s->moving = true;
	s->timeout_ns = given->timeout_ns;
	s->proof.safe_until_ns = s->proof.told_ns = given->safe_until_ns;
	s->proved_ns = given->now_ns;
	if (given->safe_until_ns != INT64_MIN) {
		s->state = w->v->head->jeopardy ? SESSION_JEOPARDY : SESSION_SAFE;
		s->proved_ns = given->safe_until_ns - given->timeout_ns / 3 * 2; /* or a little later: see proof.c */
	}
	young = given->safe_until_ns >= given->now_ns + given->timeout_ns / SAFE_PART;
	proof_stalled(&s->proof, given->now_ns, young ? 0 : given->conf->tick_ns);
	s->write_ns = s->announced_ns = s->beat_ns = s->contact_ns = s->silent_ns = given->now_ns;
}

static bool set_broker(struct salvaging *w)
{
	const uint64_t *ceilings = w->v->head->ceilings;
	struct broker *b = w->b;

	b->env.draining = b->locks.halting.on = w->v->head->draining != 0; /* it is not known which holders were asked */
	for (size_t i = 0; i < CEILINGS; i++)
		if (ceilings[i] > CEILING_MAX)
			return salvaging_refuse(w, "a number in it is too large");
	if (w->v->head->zxid > INT64_MAX || w->v->head->floor > INT64_MAX || w->v->head->own > INT64_MAX)
		return salvaging_refuse(w, "a number in it is too large");
	b->ensemble.past.seen = (int64_t)w->v->head->zxid;
	b->ensemble.past.floor = (int64_t)w->v->head->floor;
	b->ensemble.past.own = (int64_t)w->v->head->own;
	lasting_salvage(&b->directories, w->v->head->lasting);
	b->started = true;
	b->locks.last_client = ceilings[CEILING_CLIENT];
	b->directories.last_claim = ceilings[CEILING_CLAIM];
	b->directories.last_nonce = ceilings[CEILING_NONCE];
	b->hosts.outbox_last = ceilings[CEILING_LETTER];
	b->hosts.last_query = ceilings[CEILING_QUERY];
	b->hosts.audit.sweep = ceilings[CEILING_SWEEP];
	b->directories.token_next = b->directories.token_limit = (int64_t)ceilings[CEILING_TOKENS] + 1;
	if (!w->standalone)
		set_session(w, &b->ensemble.session);
	return true;
}

/* ---- the text ---- */

static bool check_clients(struct salvaging *w)
{
	for (size_t i = 0; i < w->v->of[LEDGER_CLIENT].count; i++)
		if (!salvaging_is_bearer(salvaging_client(w->v, i)) &&
		    salvaging_client(w->v, i)->conn >= w->s->back_count)
			return salvaging_refuse(w, "a client in it is of a connection that there is not");
	return true;
}

static bool write_text(struct salvaging *w)
{
	size_t begin = seal_begin(w->out);
	bool good;

	if (!check_clients(w) || !set_broker(w) || !read_grants(w))
		return false;
	read_claims(w);
	if (!read_observers(w))
		return false;
	read_places(w);
	judge(w);
	mark(w);
	good = salvaging_write(w);
	seal_end(w->out, begin);
	return good;
}

bool salvage(const struct salvage *s, struct bytes *ret_text, struct bytes *why)
{
	struct salvaging w = { .s = s, .v = s->ledger, .out = ret_text, .why = why, .standalone = s->conf->standalone };
	bool good;

	bytes_clear(why);
	if (s->ledger->head->place != snapshot_place(s->conf))
		return salvaging_refuse(&w, "the configuration has another host, root, prefix or mode than it");
	w.b = broker_new(s->conf, s->seed, s->now_ns);
	good = write_text(&w);
	broker_free(w.b);
	mem_free(w.held);
	mem_free(w.claims);
	mem_free(w.watching);
	mem_free(w.places);
	mem_free(w.holds);
	return good;
}
