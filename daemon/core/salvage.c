/* SPDX-License-Identifier: Apache-2.0 */
#include "core/salvage.h"

#include <string.h>

#include "base/mem.h"
#include "core/claim/directory_snapshot.h"
#include "core/client/client_snapshot.h"
#include "core/connection.h"
#include "core/hosts/letter_snapshot.h"
#include "core/kind/observe.h"
#include "core/lock/bearer.h"
#include "core/lock/lock_snapshot.h"
#include "core/port/entry.h"
#include "core/snapshot.h"
#include "core/state.h"
#include "protocol/name.h"

enum { SAFE_PART = 3 /* of T, as in session.c */ };

/* Nothing is counted that far. */
static const uint64_t CEILING_MAX = UINT64_C(1) << 62;

/* ---- what is found out of a ledger; all of it points into the ledger ---- */

struct of_lock {
	size_t lock;   /* where it is in its list */
	uint32_t mark; /* its place among all of its type, from 1; of a grant that is left out: 0 */
};

/* A grant, and what becomes of it. */
struct held {
	struct of_lock of;
	const struct ledger_grant *grant;
	size_t client; /* where it is in its list */
	bool lost;
	enum loss loss;
};

struct noted {
	struct of_lock of;
	const struct ledger_claim *claim;
};

struct watching {
	struct of_lock of;
	const struct ledger_observer *observer;
	size_t client;
};

struct salvaged_lock {
	const struct ledger_lock *lock;
	struct held *held; /* its grants, the oldest first */
	const struct noted *claims;
	const struct watching *watching;
	size_t held_count, claim_count, watching_count;
	const struct ledger_claim *kept; /* what its grants rest on, unless it has slots */
	bool holds;                      /* some of them are valid */
};

struct salvaging {
	const struct salvage *s;
	const struct ledger_view *v;
	struct broker *b; /* has what is the broker's own */
	struct bytes *out, *why;
	struct held *held;
	struct noted *claims;
	struct watching *watching;
	struct salvaged_lock *places;
	bool *holds; /* by client: it has a valid grant */
	struct bearer bearer; /* of each client that is one; its value is in the text of its record */
	size_t held_count, claim_count, watching_count;
	bool standalone;
};

static bool refuse(struct salvaging *w, const char *what)
{
	bytes_text(w->why, what);
	return false;
}

static const struct ledger_client *client_at(const struct ledger_view *v, size_t i)
{
	return ledger_view_client(v->of[LEDGER_CLIENT].list[i]);
}

/* It has no connection that could be lost. */
static bool is_bearer(const struct ledger_client *c)
{
	return c->conn == EFFECT_NO_CONN;
}

/* Its grants rest on claims of their own. */
static bool has_slots(const struct salvaging *w, const struct salvaged_lock *p)
{
	return kind_is_known(p->lock->kind) && w->b->locks.rules[p->lock->kind]->learn_slots;
}

static bool may_continue(const struct ledger_client *c)
{
	return !(c->flags & ~(uint64_t)LEDGER_UNREAD);
}

static bool is_back(const struct salvaging *w, const struct ledger_client *c)
{
	return c->conn < w->s->back_count && w->s->back[c->conn] && may_continue(c);
}

/* ---- before it is read ---- */

void salvage_may_continue(const struct ledger_view *v, bool *ret_may, size_t count)
{
	memset(ret_may, 0, count * sizeof(*ret_may));
	for (size_t i = 0; i < v->of[LEDGER_CLIENT].count; i++)
		if (client_at(v, i)->conn < count)
			ret_may[client_at(v, i)->conn] = may_continue(client_at(v, i));
}

void salvage_needs_page(const struct ledger_view *v, bool *ret_needs, size_t count)
{
	const struct ledger_list *all = &v->of[LEDGER_GRANT];

	memset(ret_needs, 0, count * sizeof(*ret_needs));
	for (size_t i = 0; i < all->count; i++) {
		const struct ledger_grant *g = ledger_view_grant(all->list[i]);
		size_t client;

		if (g->flags / LEDGER_SLOT && ledger_view_find(v, LEDGER_CLIENT, g->client, &client) &&
		    client_at(v, client)->conn < count)
			ret_needs[client_at(v, client)->conn] = true;
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
			return refuse(w, "a grant in it is of no lock");
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

		if (n.claim->role != LEDGER_ROLE_WITHHELD &&
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
			return refuse(w, "an observer in it is of no lock");
		if (!ledger_view_find(w->v, LEDGER_CLIENT, o.observer->client, &o.client) ||
		    !is_back(w, client_at(w->v, o.client)))
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
		struct salvaged_lock *p = &w->places[i];

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
static void judge_grants(struct salvaging *w, struct salvaged_lock *p)
{
	int64_t base = -1;

	for (size_t i = p->held_count; i-- > 0;) {
		struct held *h = &p->held[i];

		if (h->lost)
			continue;
		if (base < 0) {
			base = ledger_base(h->grant);
			for (size_t j = 0; j < p->claim_count; j++)
				if (p->claims[j].claim->role == LEDGER_ROLE_CLAIM &&
				    p->claims[j].claim->czxid == base)
					p->kept = p->claims[j].claim;
		}
		if ((!w->standalone && !p->kept) || ledger_base(h->grant) != base)
			lose(h, LOSS_DELETED);
		p->holds = p->holds || !h->lost;
	}
}

/* Each permit rests on a claim of its own. */
static void judge_permits(struct salvaging *w, struct salvaged_lock *p)
{
	int64_t left = w->standalone ? INT64_MAX : 0;

	for (size_t i = 0; i < p->claim_count; i++)
		left += p->claims[i].claim->role == LEDGER_ROLE_SLOTS;
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
		if (has_slots(w, &w->places[i]))
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
	return !h->lost || is_back(w, client_at(w->v, h->client));
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
			return refuse(w, "a number in it is too large");
	if (w->v->head->zxid > INT64_MAX || w->v->head->floor > INT64_MAX || w->v->head->own > INT64_MAX)
		return refuse(w, "a number in it is too large");
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

/* ---- the entries of a snapshot (snapshot.h) ---- */

enum {
	/* As many znodes as a lock may have: with so many of unknown outcome, nothing more is put into its directory. */
	UNKNOWN_ALONE = 2,
	UNKNOWN_BESIDE = 1,
};

/* Far more hand-offs than are allowed while somebody waits. */
static const int64_t CONTENDED = INT64_MAX / 2;

/* The fields that the text of a record has. */
#define PAIRS_OF(record) (&(struct entry_pairs){ { (record)->text, (record)->length }, (record)->pairs })

/* A text of the ledger, to be written. */
static struct bytes bytes_of(const char *text, size_t length)
{
	return (struct bytes){ .data = (char *)text, .len = length };
}

/* The fields that the text of its record has not. */
static struct client client_of(struct salvaging *w, size_t i)
{
	const struct ledger_client *r = client_at(w->v, i);
	bool bearer = is_bearer(r);

	return (struct client){
		.locks = &w->b->locks,
		.conn = r->conn,
		.uid = r->uid,
		.id = r->head.number,
		.bearer = bearer ? &w->bearer : NULL,
		.told_jeopardy = !bearer && w->holds[i] && w->v->head->jeopardy,
		.ghost = !bearer && !is_back(w, r),
		.recorded = true,
		.last_command = COMMAND_COUNT,
	};
}

static void write_client(struct salvaging *w, size_t i)
{
	const struct ledger_client *r = client_at(w->v, i);
	struct client c = client_of(w, i);

	if (!w->holds[i] && (c.ghost || c.bearer))
		return;
	(c.bearer ? bearer_snapshot : connection_snapshot)(&c, PAIRS_OF(r), w->out);
}

static void write_grant(struct salvaging *w, const struct held *h)
{
	const struct ledger_grant *r = h->grant;
	struct client c = client_of(w, h->client);
	struct grant g = {
		.client = &c,
		.mark = h->of.mark,
		.mode = r->token & 1,
		.counted = (!h->lost || h->loss == LOSS_LEASE) && r->flags & LEDGER_COUNTED,
		.lost = h->lost,
		.loss = h->loss,
		.slot = (uint8_t)(r->flags / LEDGER_SLOT),
		.depth = r->depth,
		.token = ledger_token(r->token),
		.granted_ns = r->granted_ns,
		.lease = { .due_ns = r->lease_ns, .place = !h->lost && r->lease_ns != LEDGER_NO_LEASE },
		.data = bytes_of(r->data, r->length),
		.outcome.kind = h->lost ? OUTCOME_LOST : OUTCOME_NONE,
	};

	grant_snapshot(&g, w->out);
}

/* Its number of hand-offs is at least that of each of its grants. Only the latest one tells which mode that fences. */
static void set_tokens(struct claim *c, const struct salvaged_lock *p, int64_t base)
{
	int64_t latest = ledger_token(p->lock->latest), highest = base << 10;
	bool told = p->lock->latest && latest >> 10 == base;

	for (size_t i = 0; i < p->held_count; i++)
		if (!p->held[i].lost && ledger_token(p->held[i].grant->token) > highest)
			highest = ledger_token(p->held[i].grant->token);
	told = told && latest >= highest;
	c->granted = true;
	c->granted_mode = told ? p->lock->latest & 1 : MODE_EXCLUSIVE;
	c->handoffs = (told ? latest : highest) & 1023;
}

static void write_kept(struct salvaging *w, const struct salvaged_lock *p, const struct ledger_claim *r)
{
	enum claim_role role = r->role == LEDGER_ROLE_SLOTS ? ROLE_SLOTS : ROLE_CLAIM;
	struct claim c = {
		.number = r->head.number, .state = CLAIM_HELD, .czxid = r->czxid, .salvaged = true, .says_held = true
	};

	if (r->role == LEDGER_ROLE_CLAIM) {
		c.contended = CONTENDED;
		set_tokens(&c, p, r->czxid);
	}
	claim_snapshot(&c, role, PAIRS_OF(r), w->out);
}

/* Its grants' tokens tell all that there is to a claim of standalone mode. */
static void write_local(struct salvaging *w, const struct salvaged_lock *p)
{
	struct claim c = { .number = ++w->b->directories.last_claim, .state = CLAIM_HELD };
	size_t i = 0;

	while (p->held[i].lost)
		i++;
	c.czxid = ledger_base(p->held[i].grant);
	set_tokens(&c, p, c.czxid);
	claim_snapshot(&c, ROLE_CLAIM, NULL, w->out);
}

/* A create of unknown outcome that nobody wants: the directory is listed, and what stands there unknown is deleted. */
static void write_unknown(struct salvaging *w, enum flavour flavour)
{
	struct directories *all = &w->b->directories;
	struct claim c = { .number = ++all->last_claim, .nonce = ++all->last_nonce, .state = CLAIM_LEAVING };
	struct bytes name = { 0 };

	contender_name(&name, w->b->ensemble.session.id, c.nonce, flavour, MODE_EXCLUSIVE);
	memcpy(c.name, name.data, name.len);
	c.name_len = name.len;
	claim_snapshot(&c, ROLE_LEAVING, NULL, w->out);
	bytes_free(&name);
}

static enum flavour flavour_of(const struct salvaging *w, const struct salvaged_lock *p)
{
	struct bytes path = { 0 };
	enum flavour flavour = FLAVOUR_MUTEX;

	if (!has_slots(w, p))
		flavour = flavour_place(w->s->conf, (struct slice){ p->lock->name, p->lock->length }, &path);
	bytes_free(&path);
	return flavour;
}

static void write_own(struct salvaging *w, const struct salvaged_lock *p, bool noted)
{
	if (p->kept)
		write_kept(w, p, p->kept);
	else if (w->standalone && p->holds && !has_slots(w, p))
		write_local(w, p);
	for (int i = 0; noted && i < (p->kept ? UNKNOWN_BESIDE : UNKNOWN_ALONE); i++)
		write_unknown(w, flavour_of(w, p));
}

static void write_slots(struct salvaging *w, const struct salvaged_lock *p, bool noted)
{
	bool any = noted || (p->holds && p->claim_count);

	slots_snapshot(&(struct directory){ .remembered = any }, w->out);
	for (size_t i = 0; p->holds && i < p->claim_count; i++)
		if (p->claims[i].claim->role == LEDGER_ROLE_SLOTS)
			write_kept(w, p, p->claims[i].claim);
	if (noted)
		write_unknown(w, FLAVOUR_SLOTS);
}

static void write_observers(struct salvaging *w, const struct salvaged_lock *p)
{
	for (size_t i = 0; i < p->watching_count; i++) {
		const struct watching *o = &p->watching[i];
		struct client c = client_of(w, o->client);
		struct observer observer = { .client = &c,
					     .mark = o->of.mark,
					     .told = o->observer->told,
					     .token = ledger_token(o->observer->told) };

		observer_snapshot(&observer, w->out);
	}
}

/* In standalone mode the first grant is the leader, and nothing else would tell of it. */
static void write_leader(struct salvaging *w, const struct salvaged_lock *p)
{
	struct observation leader = { .known = true };
	const struct ledger_grant *g = NULL;

	for (size_t i = 0; i < p->held_count && !g; i++)
		if (!p->held[i].lost)
			g = p->held[i].grant;
	if (g) {
		leader.token = ledger_token(g->token);
		leader.host = bytes_of(w->s->conf->host, strlen(w->s->conf->host));
		leader.data = bytes_of(g->data, g->length);
	}
	observation_snapshot(&(struct lock){ .rule = w->b->locks.rules[KIND_ELECTION], .own = &leader }, w->out);
}

/* The names are those of this host: a name that is none is refused by who reads the text. */
static bool write_place(struct salvaging *w, const struct salvaged_lock *p)
{
	struct slice name = { p->lock->name, p->lock->length };
	bool session = w->b->ensemble.session.id != 0, any = false;
	bool own = session && p->lock->noted & LEDGER_NOTED_OWN, slots = session && p->lock->noted & LEDGER_NOTED_SLOTS;
	struct lock lock = { .name = bytes_of(name.data, name.len), .directory.remembered = own || p->kept };

	if (!kind_is_known(p->lock->kind) || !name_valid(name) || !flavour_has_place(w->s->conf, name))
		return refuse(w, "a lock in it has a name or kind that none can have");
	for (size_t i = 0; i < p->held_count; i++)
		any = any || p->held[i].of.mark;
	if (!any && !own && !slots && !p->watching_count)
		return true;
	lock.rule = w->b->locks.rules[p->lock->kind];
	lock_snapshot(&lock, w->out);
	write_own(w, p, own);
	if (has_slots(w, p))
		write_slots(w, p, slots);
	for (size_t i = 0; i < p->held_count; i++)
		if (p->held[i].of.mark)
			write_grant(w, &p->held[i]);
	if (lock.rule->salvage)
		lock.rule->salvage(p->lock->kept, w->out);
	write_observers(w, p);
	if (w->standalone && p->watching_count)
		write_leader(w, p);
	return true;
}

/* Losses are told again anyway. */
static void write_notification(struct salvaging *w, size_t i)
{
	struct client c = client_of(w, i);

	if (!c.bearer && !c.ghost && client_at(w->v, i)->flags & LEDGER_UNREAD)
		notification_snapshot(&c, &(struct notification){ .type = NOTIFICATION_SESSION }, w->out);
}

static void write_letter(struct salvaging *w, const struct ledger_letter *r)
{
	struct letter l = {
		.number = r->head.number,
		.state = LETTER_POSTED,
		.timer = { .due_ns = w->s->now_ns + w->s->timeout_ns, .place = 1 },
	};

	letter_snapshot(&l, PAIRS_OF(r), w->out);
}

static bool write_entries(struct salvaging *w)
{
	snapshot_begin(w->b, w->out);
	for (size_t i = 0; i < w->v->of[LEDGER_CLIENT].count; i++)
		write_client(w, i);
	for (size_t i = 0; i < w->v->of[LEDGER_LOCK].count; i++)
		if (!write_place(w, &w->places[i]))
			return false;
	for (size_t i = 0; i < w->v->of[LEDGER_CLIENT].count; i++)
		write_notification(w, i);
	for (size_t i = 0; w->b->ensemble.session.id && i < w->v->of[LEDGER_LETTER].count; i++)
		write_letter(w, ledger_view_letter(w->v->of[LEDGER_LETTER].list[i]));
	snapshot_end(w->b, w->out);
	return true;
}

/* ---- the text ---- */

static bool check_clients(struct salvaging *w)
{
	for (size_t i = 0; i < w->v->of[LEDGER_CLIENT].count; i++)
		if (!is_bearer(client_at(w->v, i)) &&
		    client_at(w->v, i)->conn >= w->s->back_count)
			return refuse(w, "a client in it is of a connection that there is not");
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
	good = write_entries(w);
	seal_end(w->out, begin);
	return good;
}

bool salvage(const struct salvage *s, struct bytes *ret_text, struct bytes *why)
{
	struct salvaging w = { .s = s, .v = s->ledger, .out = ret_text, .why = why, .standalone = s->conf->standalone };
	bool good;

	bytes_clear(why);
	if (s->ledger->head->place != snapshot_place(s->conf))
		return refuse(&w, "the configuration has another host, root, prefix or mode than it");
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
