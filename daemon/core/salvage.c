/* SPDX-License-Identifier: Apache-2.0 */
#include "core/salvage.h"

#include <string.h>

#include "base/mem.h"
#include "core/claim/directory_snapshot.h"
#include "core/lock/grant.h"
#include "core/port/entry.h"
#include "core/port/seal.h"
#include "core/session/ensemble_snapshot.h"
#include "core/snapshot.h"
#include "core/state.h"
#include "core/znode/contender.h"
#include "protocol/name.h"

enum {
	SAFE_PART = 3, /* of T, as in session.c */
	/* As many znodes as a lock may have: with so many of unknown outcome, nothing more is put into its directory. */
	UNKNOWN_ALONE = 2,
	UNKNOWN_BESIDE = 1,
};

/* Far more hand-offs than are allowed while somebody waits. */
static const int64_t CONTENDED = INT64_MAX / 2;

/* Nothing is counted that far. */
static const uint64_t CEILING_MAX = UINT64_C(1) << 62;

/* A grant, and what becomes of it. */
struct held {
	const struct ledger_grant *grant;
	size_t lock, client; /* where they are in their lists */
	uint32_t mark;       /* its place among all; 0: it is left out */
	bool lost;
	enum loss loss;
};

struct noted {
	const struct ledger_claim *claim;
	size_t lock;
};

struct place {
	const struct ledger_lock *lock;
	struct held *held; /* its grants, the oldest first */
	const struct noted *claims;
	size_t held_count, claim_count;
	const struct ledger_claim *kept; /* what its grants rest on, unless it is a semaphore */
	bool holds;                      /* some of them are valid */
};

struct work {
	const struct salvage *s;
	const struct ledger_view *v;
	struct broker *b; /* has what is the broker's own */
	struct bytes *out, *why;
	struct held *held;
	struct noted *claims;
	struct place *places;
	bool *holds; /* by client: it has a valid grant */
	size_t held_count, claim_count;
	bool standalone;
};

static bool refuse(struct work *w, const char *what)
{
	bytes_text(w->why, what);
	return false;
}

static const struct ledger_client *client_at(const struct ledger_view *v, size_t i)
{
	return ledger_view_client(v->of[LEDGER_CLIENT].list[i]);
}

static bool may_continue(const struct ledger_client *c)
{
	return !(c->flags & ~(uint64_t)LEDGER_UNREAD);
}

void salvage_may_continue(const struct ledger_view *v, bool *ret_may, size_t count)
{
	memset(ret_may, 0, count * sizeof(*ret_may));
	for (size_t i = 0; i < v->of[LEDGER_CLIENT].count; i++)
		if (client_at(v, i)->conn < count)
			ret_may[client_at(v, i)->conn] = may_continue(client_at(v, i));
}

int64_t salvage_session(const struct ledger_view *v, int64_t session)
{
	return v->head->session == (uint64_t)session ? session : 0;
}

static bool is_back(const struct work *w, const struct ledger_client *c)
{
	return c->conn < w->s->back_count && w->s->back[c->conn] && may_continue(c);
}

/* ---- what belongs together ---- */

static int by_lock(const void *a, const void *b)
{
	const struct held *x = a, *y = b;

	if (x->lock != y->lock)
		return x->lock < y->lock ? -1 : 1;
	return (x->grant->head.number > y->grant->head.number) - (x->grant->head.number < y->grant->head.number);
}

static int claims_by_lock(const void *a, const void *b)
{
	const struct noted *x = a, *y = b;

	if (x->lock != y->lock)
		return x->lock < y->lock ? -1 : 1;
	return (x->claim->head.number > y->claim->head.number) - (x->claim->head.number < y->claim->head.number);
}

/* One without its client was just released. */
static bool read_grants(struct work *w)
{
	const struct ledger_list *all = &w->v->of[LEDGER_GRANT];

	w->held = mem_new_array(all->count + 1, sizeof(w->held[0]));
	for (size_t i = 0; i < all->count; i++) {
		struct held h = { .grant = ledger_view_grant(all->list[i]) };

		if (!ledger_view_find(w->v, LEDGER_LOCK, h.grant->lock, &h.lock))
			return refuse(w, "a grant in it is of no lock");
		if (!ledger_view_find(w->v, LEDGER_CLIENT, h.grant->client, &h.client))
			continue;
		h.lost = h.grant->flags & LEDGER_LOST;
		h.loss = (enum loss)(h.grant->flags / LEDGER_LOSS);
		w->held[w->held_count++] = h;
	}
	if (w->held_count)
		qsort(w->held, w->held_count, sizeof(w->held[0]), by_lock);
	return true;
}

static void read_claims(struct work *w)
{
	const struct ledger_list *all = &w->v->of[LEDGER_CLAIM];

	w->claims = mem_new_array(all->count + 1, sizeof(w->claims[0]));
	for (size_t i = 0; i < all->count && w->b->ensemble.session.id; i++) {
		struct noted n = { .claim = ledger_view_claim(all->list[i]) };

		if (n.claim->place != LEDGER_PLACE_WITHHELD &&
		    ledger_view_find(w->v, LEDGER_LOCK, n.claim->lock, &n.lock))
			w->claims[w->claim_count++] = n;
	}
	if (w->claim_count)
		qsort(w->claims, w->claim_count, sizeof(w->claims[0]), claims_by_lock);
}

static void read_places(struct work *w)
{
	const struct ledger_list *all = &w->v->of[LEDGER_LOCK];
	size_t held = 0, claims = 0;

	w->places = mem_new_array(all->count + 1, sizeof(w->places[0]));
	for (size_t i = 0; i < all->count; i++) {
		struct place *p = &w->places[i];

		p->lock = ledger_view_lock(all->list[i]);
		p->held = w->held + held;
		p->claims = w->claims + claims;
		for (; held < w->held_count && w->held[held].lock == i; held++)
			p->held_count++;
		for (; claims < w->claim_count && w->claims[claims].lock == i; claims++)
			p->claim_count++;
	}
}

/* ---- what is valid ---- */

static int64_t token_of(uint64_t word)
{
	return (int64_t)(word >> 1);
}

static int64_t base_of(const struct ledger_grant *g)
{
	return token_of(g->token) >> 10;
}

static void lose(struct held *h, enum loss loss)
{
	if (h->lost)
		return;
	h->lost = true;
	h->loss = loss;
}

/* All grants of a lock rest on one claim: on that of the latest. */
static void judge_grants(struct work *w, struct place *p)
{
	enum loss loss = w->b->ensemble.session.id ? LOSS_DELETED : LOSS_SESSION;
	int64_t base = -1;

	for (size_t i = p->held_count; i-- > 0;) {
		struct held *h = &p->held[i];

		if (h->lost)
			continue;
		if (base < 0) {
			base = base_of(h->grant);
			for (size_t j = 0; j < p->claim_count; j++)
				if (p->claims[j].claim->place == LEDGER_PLACE_CLAIM &&
				    p->claims[j].claim->czxid == base)
					p->kept = p->claims[j].claim;
		}
		if ((!w->standalone && !p->kept) || base_of(h->grant) != base)
			lose(h, loss);
		p->holds = p->holds || !h->lost;
	}
}

/* Each permit rests on a claim of its own. */
static void judge_permits(struct work *w, struct place *p)
{
	enum loss loss = w->b->ensemble.session.id ? LOSS_DELETED : LOSS_SESSION;
	int64_t left = w->standalone ? INT64_MAX : 0;

	for (size_t i = 0; i < p->claim_count; i++)
		left += p->claims[i].claim->place == LEDGER_PLACE_SLOTS;
	for (size_t i = 0; i < p->held_count; i++) {
		struct held *h = &p->held[i];

		if (!h->lost && h->grant->depth > left)
			lose(h, loss);
		if (h->lost)
			continue;
		left -= h->grant->depth;
		p->holds = true;
	}
}

static bool is_semaphore(const struct place *p)
{
	return p->lock->kind == KIND_SEMAPHORE;
}

static void judge(struct work *w)
{
	w->holds = mem_new_array(w->v->of[LEDGER_CLIENT].count + 1, sizeof(bool));
	for (size_t i = 0; i < w->v->of[LEDGER_LOCK].count; i++) {
		if (is_semaphore(&w->places[i]))
			judge_permits(w, &w->places[i]);
		else
			judge_grants(w, &w->places[i]);
	}
	for (size_t i = 0; i < w->held_count; i++)
		if (!w->held[i].lost)
			w->holds[w->held[i].client] = true;
}

static bool is_in(const struct work *w, const struct held *h)
{
	return !h->lost || is_back(w, client_at(w->v, h->client));
}

static int by_age(const void *a, const void *b)
{
	const struct held *x = *(struct held *const *)a, *y = *(struct held *const *)b;

	return (x->grant->head.number > y->grant->head.number) - (x->grant->head.number < y->grant->head.number);
}

/* The clients have their grants in the order in which they were made. */
static void mark(struct work *w)
{
	struct held **in = mem_new_array(w->held_count + 1, sizeof(*in));
	size_t count = 0;

	for (size_t i = 0; i < w->held_count; i++)
		if (is_in(w, &w->held[i]))
			in[count++] = &w->held[i];
	if (count)
		qsort(in, count, sizeof(*in), by_age);
	for (size_t i = 0; i < count; i++)
		in[i]->mark = (uint32_t)i + 1;
	mem_free(in);
}

/* ---- the broker's own ---- */

/*
 * Holders were told how the session stood: it is reviewed with the first event, and what is different then is told. If the
 * proof is younger than T/3, so is the last event of the killed process; else that may have stood still for long.
 */
static void set_session(struct work *w, struct session *s)
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

static bool set_broker(struct work *w)
{
	const uint64_t *ceilings = w->v->head->ceilings;
	struct broker *b = w->b;

	b->env.draining = w->v->head->draining != 0;
	for (size_t i = 0; i < CEILINGS; i++)
		if (ceilings[i] > CEILING_MAX)
			return refuse(w, "a number in it is too large");
	if (w->v->head->zxid > INT64_MAX)
		return refuse(w, "a number in it is too large");
	b->ensemble.past.seen = (int64_t)w->v->head->zxid;
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

/* ---- writing ---- */

static void write_client(struct work *w, size_t i)
{
	const struct ledger_client *c = client_at(w->v, i);
	struct entry_writer e;

	if (!is_back(w, c) && !w->holds[i])
		return;
	e = entry_begin(w->out, "client");
	entry_number(&e, "conn", c->conn);
	entry_number(&e, "uid", c->uid);
	entry_number(&e, "id", (int64_t)c->head.number);
	entry_number(&e, "told jeopardy", w->holds[i] && w->v->head->jeopardy);
	entry_number(&e, "ghost", !is_back(w, c));
	entry_number(&e, "recorded", true);
	entry_pairs(&e, (struct slice){ c->text, c->length }, c->pairs);
	entry_end(&e);
}

static void write_grant(struct work *w, const struct held *h)
{
	const struct ledger_grant *g = h->grant;
	struct entry_writer e = entry_begin(w->out, "grant");

	entry_number(&e, "client", client_at(w->v, h->client)->conn);
	entry_number(&e, "mark", h->mark);
	entry_number(&e, "mode", g->token & 1);
	entry_number(&e, "token", token_of(g->token));
	entry_number(&e, "depth", g->depth);
	entry_number(&e, "granted", g->granted_ns);
	entry_text(&e, "data", (struct slice){ g->data, g->length });
	if (h->lost) {
		entry_number(&e, "lost", 1);
		entry_number(&e, "loss", h->loss);
		entry_number(&e, "untold", 1);
		entry_number(&e, "counted", h->loss == LOSS_LEASE && g->flags & LEDGER_COUNTED);
	} else {
		entry_number(&e, "counted", (g->flags & LEDGER_COUNTED) != 0);
		if (g->lease_ns != LEDGER_NO_LEASE)
			entry_number(&e, "lease", g->lease_ns);
	}
	entry_end(&e);
}

/* Its number of hand-offs is at least that of each of its grants. Only the latest one tells which mode that fences. */
static void write_tokens(struct entry_writer *e, const struct place *p, int64_t base)
{
	int64_t latest = token_of(p->lock->latest), highest = base << 10;
	bool told = p->lock->latest && latest >> 10 == base;

	for (size_t i = 0; i < p->held_count; i++)
		if (!p->held[i].lost && token_of(p->held[i].grant->token) > highest)
			highest = token_of(p->held[i].grant->token);
	told = told && latest >= highest;
	entry_number(e, "granted", 1);
	entry_number(e, "granted mode", told ? p->lock->latest & 1 : MODE_EXCLUSIVE);
	entry_number(e, "handoffs", (told ? latest : highest) & 1023);
}

static void write_kept(struct work *w, const struct place *p, const struct ledger_claim *c)
{
	struct entry_writer e = entry_begin(w->out, "claim");

	entry_number(&e, "place", c->place == LEDGER_PLACE_SLOTS ? PLACE_SLOTS : PLACE_CLAIM);
	entry_pairs(&e, (struct slice){ c->text, c->length }, c->pairs);
	entry_number(&e, "number", (int64_t)c->head.number);
	entry_number(&e, "state", CLAIM_HELD);
	entry_number(&e, "czxid", c->czxid);
	entry_number(&e, "salvaged", 1);
	entry_number(&e, "says held", 1);
	if (c->place == LEDGER_PLACE_CLAIM) {
		entry_number(&e, "contended", CONTENDED);
		write_tokens(&e, p, c->czxid);
	}
	entry_end(&e);
}

/* Its grants' tokens tell all that there is to a claim of standalone mode. */
static void write_local(struct work *w, const struct place *p)
{
	struct entry_writer e;
	size_t i = 0;

	while (p->held[i].lost)
		i++;
	e = entry_begin(w->out, "claim");
	entry_number(&e, "place", PLACE_CLAIM);
	entry_number(&e, "number", (int64_t)++w->b->directories.last_claim);
	entry_number(&e, "state", CLAIM_HELD);
	entry_number(&e, "czxid", base_of(p->held[i].grant));
	write_tokens(&e, p, base_of(p->held[i].grant));
	entry_end(&e);
}

/* A create of unknown outcome that nobody wants: the directory is listed, and what stands there unknown is deleted. */
static void write_unknown(struct work *w, enum flavour flavour)
{
	struct directories *all = &w->b->directories;
	struct entry_writer e = entry_begin(w->out, "claim");
	struct bytes name = { 0 };

	contender_name(&name, w->b->ensemble.session.id, ++all->last_nonce, flavour, MODE_EXCLUSIVE);
	entry_number(&e, "place", PLACE_LEAVING);
	entry_number(&e, "number", (int64_t)++all->last_claim);
	entry_number(&e, "nonce", (int64_t)all->last_nonce);
	entry_number(&e, "state", CLAIM_LEAVING);
	entry_text(&e, "name", bytes_view(&name));
	entry_number(&e, "name length", (int64_t)name.len);
	entry_end(&e);
	bytes_free(&name);
}

static enum flavour flavour_of(const struct work *w, const struct place *p)
{
	struct bytes path = { 0 };
	enum flavour flavour = FLAVOUR_MUTEX;

	if (!is_semaphore(p))
		flavour = flavour_place(w->s->conf, (struct slice){ p->lock->name, p->lock->length }, &path);
	bytes_free(&path);
	return flavour;
}

static void write_own(struct work *w, const struct place *p, bool noted)
{
	if (p->kept)
		write_kept(w, p, p->kept);
	else if (w->standalone && p->holds && !is_semaphore(p))
		write_local(w, p);
	for (int i = 0; noted && i < (p->kept ? UNKNOWN_BESIDE : UNKNOWN_ALONE); i++)
		write_unknown(w, flavour_of(w, p));
}

static void write_slots(struct work *w, const struct place *p, bool noted)
{
	bool any = noted || (p->holds && p->claim_count);
	struct entry_writer e = entry_begin(w->out, "slots");

	entry_number(&e, "remembered", any);
	entry_end(&e);
	for (size_t i = 0; p->holds && i < p->claim_count; i++)
		if (p->claims[i].claim->place == LEDGER_PLACE_SLOTS)
			write_kept(w, p, p->claims[i].claim);
	if (noted)
		write_unknown(w, FLAVOUR_SLOTS);
	e = entry_begin(w->out, "semaphore");
	entry_number(&e, "limit", (int64_t)p->lock->limit);
	entry_end(&e);
}

/* The names are those of this host: a name that is none is refused by who reads the text. */
static bool write_place(struct work *w, const struct place *p)
{
	struct slice name = { p->lock->name, p->lock->length };
	bool session = w->b->ensemble.session.id != 0, any = false;
	bool own = session && p->lock->noted & LEDGER_NOTED_OWN, slots = session && p->lock->noted & LEDGER_NOTED_SLOTS;
	struct entry_writer e;

	if (p->lock->kind > KIND_SEMAPHORE || !name_valid(name) || !flavour_has_place(w->s->conf, name))
		return refuse(w, "a lock in it has a name or kind that none can have");
	for (size_t i = 0; i < p->held_count; i++)
		any = any || p->held[i].mark;
	if (!any && !own && !slots)
		return true;
	e = entry_begin(w->out, "lock");
	entry_text(&e, "name", name);
	entry_number(&e, "kind", p->lock->kind);
	entry_number(&e, "remembered", own || p->kept);
	entry_end(&e);
	write_own(w, p, own);
	if (is_semaphore(p))
		write_slots(w, p, slots);
	for (size_t i = 0; i < p->held_count; i++)
		if (p->held[i].mark)
			write_grant(w, &p->held[i]);
	return true;
}

/* Losses are told again anyway. */
static void write_notification(struct work *w, const struct ledger_client *c)
{
	struct entry_writer e;

	if (!is_back(w, c) || !(c->flags & LEDGER_UNREAD))
		return;
	e = entry_begin(w->out, "notification");
	entry_number(&e, "client", c->conn);
	entry_number(&e, "type", NOTIFICATION_SESSION);
	entry_end(&e);
}

static void write_letter(struct work *w, const struct ledger_letter *l)
{
	struct entry_writer e = entry_begin(w->out, "letter");

	entry_number(&e, "number", (int64_t)l->head.number);
	entry_number(&e, "state", LETTER_POSTED);
	entry_number(&e, "due", w->s->now_ns + w->s->timeout_ns);
	entry_pairs(&e, (struct slice){ l->text, l->length }, l->pairs);
	entry_end(&e);
}

static bool write_all(struct work *w)
{
	snapshot_begin(w->b, w->out);
	for (size_t i = 0; i < w->v->of[LEDGER_CLIENT].count; i++)
		write_client(w, i);
	for (size_t i = 0; i < w->v->of[LEDGER_LOCK].count; i++)
		if (!write_place(w, &w->places[i]))
			return false;
	for (size_t i = 0; i < w->v->of[LEDGER_CLIENT].count; i++)
		write_notification(w, client_at(w->v, i));
	for (size_t i = 0; w->b->ensemble.session.id && i < w->v->of[LEDGER_LETTER].count; i++)
		write_letter(w, ledger_view_letter(w->v->of[LEDGER_LETTER].list[i]));
	snapshot_end(w->b, w->out);
	return true;
}

static bool check_clients(struct work *w)
{
	for (size_t i = 0; i < w->v->of[LEDGER_CLIENT].count; i++)
		if (client_at(w->v, i)->conn >= w->s->back_count)
			return refuse(w, "a client in it is of a connection that there is not");
	return true;
}

static bool write_text(struct work *w)
{
	size_t begin = seal_begin(w->out);
	bool good;

	if (!check_clients(w) || !set_broker(w) || !read_grants(w))
		return false;
	read_claims(w);
	read_places(w);
	judge(w);
	mark(w);
	good = write_all(w);
	seal_end(w->out, begin);
	return good;
}

bool salvage(const struct salvage *s, struct bytes *ret_text, struct bytes *why)
{
	struct work w = { .s = s, .v = s->ledger, .out = ret_text, .why = why, .standalone = s->conf->standalone };
	bool good;

	bytes_clear(why);
	if (s->ledger->head->place != snapshot_place(s->conf))
		return refuse(&w, "the configuration has another host, root, prefix or mode than it");
	w.b = broker_new(s->conf, s->seed, s->now_ns);
	good = write_text(&w);
	broker_free(w.b);
	mem_free(w.held);
	mem_free(w.claims);
	mem_free(w.places);
	mem_free(w.holds);
	return good;
}
