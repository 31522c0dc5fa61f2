/* SPDX-License-Identifier: Apache-2.0 */
#include "core/salvaging.h"

#include "core/claim/directory_snapshot.h"
#include "core/lock/bearer.h"
#include "core/lock/grant.h"
#include "core/port/entry.h"
#include "core/snapshot.h"
#include "core/state.h"
#include "core/znode/contender.h"
#include "protocol/name.h"

enum {
	/* As many znodes as a lock may have: with so many of unknown outcome, nothing more is put into its directory. */
	UNKNOWN_ALONE = 2,
	UNKNOWN_BESIDE = 1,
};

/* Far more hand-offs than are allowed while somebody waits. */
static const int64_t CONTENDED = INT64_MAX / 2;

static void write_bearer(struct salvaging *w, const struct ledger_client *c)
{
	struct entry_writer e = entry_begin(w->out, "bearer");

	entry_number(&e, "uid", c->uid);
	entry_number(&e, "id", (int64_t)c->head.number);
	entry_number(&e, "recorded", true);
	entry_pairs(&e, (struct slice){ c->text, c->length }, c->pairs);
	entry_end(&e);
}

static int64_t number_of(const struct ledger_client *c)
{
	return salvaging_is_bearer(c) ? bearer_number_of(c->head.number) : c->conn;
}

static void write_client(struct salvaging *w, size_t i)
{
	const struct ledger_client *c = salvaging_client(w->v, i);
	struct entry_writer e;

	if (salvaging_is_bearer(c) && w->holds[i])
		write_bearer(w, c);
	if (salvaging_is_bearer(c))
		return;
	if (!salvaging_is_back(w, c) && !w->holds[i])
		return;
	e = entry_begin(w->out, "client");
	entry_number(&e, "conn", c->conn);
	entry_number(&e, "uid", c->uid);
	entry_number(&e, "id", (int64_t)c->head.number);
	entry_number(&e, "told jeopardy", w->holds[i] && w->v->head->jeopardy);
	entry_number(&e, "ghost", !salvaging_is_back(w, c));
	entry_number(&e, "recorded", true);
	entry_pairs(&e, (struct slice){ c->text, c->length }, c->pairs);
	entry_end(&e);
}

static void write_grant(struct salvaging *w, const struct held *h)
{
	const struct ledger_grant *g = h->grant;
	struct entry_writer e = entry_begin(w->out, "grant");

	entry_number(&e, "client", number_of(salvaging_client(w->v, h->client)));
	entry_number(&e, "mark", h->mark);
	entry_number(&e, "mode", g->token & 1);
	entry_number(&e, "token", ledger_token(g->token));
	entry_number(&e, "depth", g->depth);
	entry_number(&e, "granted", g->granted_ns);
	entry_number(&e, "slot", (int64_t)(g->flags / LEDGER_SLOT));
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
static void write_tokens(struct entry_writer *e, const struct salvaging_place *p, int64_t base)
{
	int64_t latest = ledger_token(p->lock->latest), highest = base << 10;
	bool told = p->lock->latest && latest >> 10 == base;

	for (size_t i = 0; i < p->held_count; i++)
		if (!p->held[i].lost && ledger_token(p->held[i].grant->token) > highest)
			highest = ledger_token(p->held[i].grant->token);
	told = told && latest >= highest;
	entry_number(e, "granted", 1);
	entry_number(e, "granted mode", told ? p->lock->latest & 1 : MODE_EXCLUSIVE);
	entry_number(e, "handoffs", (told ? latest : highest) & 1023);
}

static void write_kept(struct salvaging *w, const struct salvaging_place *p, const struct ledger_claim *c)
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
static void write_local(struct salvaging *w, const struct salvaging_place *p)
{
	struct entry_writer e;
	size_t i = 0;

	while (p->held[i].lost)
		i++;
	e = entry_begin(w->out, "claim");
	entry_number(&e, "place", PLACE_CLAIM);
	entry_number(&e, "number", (int64_t)++w->b->directories.last_claim);
	entry_number(&e, "state", CLAIM_HELD);
	entry_number(&e, "czxid", ledger_base(p->held[i].grant));
	write_tokens(&e, p, ledger_base(p->held[i].grant));
	entry_end(&e);
}

/* A create of unknown outcome that nobody wants: the directory is listed, and what stands there unknown is deleted. */
static void write_unknown(struct salvaging *w, enum flavour flavour)
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

static enum flavour flavour_of(const struct salvaging *w, const struct salvaging_place *p)
{
	struct bytes path = { 0 };
	enum flavour flavour = FLAVOUR_MUTEX;

	if (!salvaging_semaphore(p))
		flavour = flavour_place(w->s->conf, (struct slice){ p->lock->name, p->lock->length }, &path);
	bytes_free(&path);
	return flavour;
}

static void write_own(struct salvaging *w, const struct salvaging_place *p, bool noted)
{
	if (p->kept)
		write_kept(w, p, p->kept);
	else if (w->standalone && p->holds && !salvaging_semaphore(p))
		write_local(w, p);
	for (int i = 0; noted && i < (p->kept ? UNKNOWN_BESIDE : UNKNOWN_ALONE); i++)
		write_unknown(w, flavour_of(w, p));
}

static void write_slots(struct salvaging *w, const struct salvaging_place *p, bool noted)
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

static void write_observers(struct salvaging *w, const struct salvaging_place *p)
{
	struct entry_writer e;

	for (size_t i = 0; i < p->watching_count; i++) {
		const struct watching *o = &p->watching[i];

		e = entry_begin(w->out, "observer");
		entry_number(&e, "client", salvaging_client(w->v, o->client)->conn);
		entry_number(&e, "mark", o->mark);
		entry_number(&e, "told", o->observer->told != 0);
		entry_number(&e, "token", ledger_token(o->observer->told));
		entry_end(&e);
	}
}

/* In standalone mode the first grant is the leader, and nothing else would tell of it. */
static void write_leader(struct salvaging *w, const struct salvaging_place *p)
{
	const struct ledger_grant *g = NULL;
	struct entry_writer e;

	for (size_t i = 0; i < p->held_count && !g; i++)
		if (!p->held[i].lost)
			g = p->held[i].grant;
	e = entry_begin(w->out, "observation");
	entry_number(&e, "known", 1);
	if (g) {
		entry_number(&e, "token", ledger_token(g->token));
		entry_text(&e, "host", slice_of(w->s->conf->host));
		entry_text(&e, "data", (struct slice){ g->data, g->length });
	}
	entry_end(&e);
}

/* The names are those of this host: a name that is none is refused by who reads the text. */
static bool write_place(struct salvaging *w, const struct salvaging_place *p)
{
	struct slice name = { p->lock->name, p->lock->length };
	bool session = w->b->ensemble.session.id != 0, any = false;
	bool own = session && p->lock->noted & LEDGER_NOTED_OWN, slots = session && p->lock->noted & LEDGER_NOTED_SLOTS;
	struct entry_writer e;

	if (p->lock->kind > KIND_SEMAPHORE || !name_valid(name) || !flavour_has_place(w->s->conf, name))
		return salvaging_refuse(w, "a lock in it has a name or kind that none can have");
	for (size_t i = 0; i < p->held_count; i++)
		any = any || p->held[i].mark;
	if (!any && !own && !slots && !p->watching_count)
		return true;
	e = entry_begin(w->out, "lock");
	entry_text(&e, "name", name);
	entry_number(&e, "kind", p->lock->kind);
	entry_number(&e, "remembered", own || p->kept);
	entry_end(&e);
	write_own(w, p, own);
	if (salvaging_semaphore(p))
		write_slots(w, p, slots);
	for (size_t i = 0; i < p->held_count; i++)
		if (p->held[i].mark)
			write_grant(w, &p->held[i]);
	write_observers(w, p);
	if (w->standalone && p->watching_count)
		write_leader(w, p);
	return true;
}

/* Losses are told again anyway. */
static void write_notification(struct salvaging *w, const struct ledger_client *c)
{
	struct entry_writer e;

	if (!salvaging_is_back(w, c) || !(c->flags & LEDGER_UNREAD))
		return;
	e = entry_begin(w->out, "notification");
	entry_number(&e, "client", c->conn);
	entry_number(&e, "type", NOTIFICATION_SESSION);
	entry_end(&e);
}

static void write_letter(struct salvaging *w, const struct ledger_letter *l)
{
	struct entry_writer e = entry_begin(w->out, "letter");

	entry_number(&e, "number", (int64_t)l->head.number);
	entry_number(&e, "state", LETTER_POSTED);
	entry_number(&e, "due", w->s->now_ns + w->s->timeout_ns);
	entry_pairs(&e, (struct slice){ l->text, l->length }, l->pairs);
	entry_end(&e);
}

bool salvaging_write(struct salvaging *w)
{
	snapshot_begin(w->b, w->out);
	for (size_t i = 0; i < w->v->of[LEDGER_CLIENT].count; i++)
		write_client(w, i);
	for (size_t i = 0; i < w->v->of[LEDGER_LOCK].count; i++)
		if (!write_place(w, &w->places[i]))
			return false;
	for (size_t i = 0; i < w->v->of[LEDGER_CLIENT].count; i++)
		write_notification(w, salvaging_client(w->v, i));
	for (size_t i = 0; w->b->ensemble.session.id && i < w->v->of[LEDGER_LETTER].count; i++)
		write_letter(w, ledger_view_letter(w->v->of[LEDGER_LETTER].list[i]));
	snapshot_end(w->b, w->out);
	return true;
}
