/* SPDX-License-Identifier: Apache-2.0 */
#include "core/salvaging.h"

#include <string.h>

#include "core/claim/directory_snapshot.h"
#include "core/client/client_snapshot.h"
#include "core/connection.h"
#include "core/hosts/letter_snapshot.h"
#include "core/kind/kind_snapshot.h"
#include "core/kind/observe.h"
#include "core/kind/semaphore.h"
#include "core/lock/lock_snapshot.h"
#include "core/port/entry_pairs.h"
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

bool salvaging_may_continue(const struct ledger_client *c)
{
	return !(c->flags & ~(uint64_t)LEDGER_UNREAD);
}

bool salvaging_is_back(const struct salvaging *w, const struct ledger_client *c)
{
	return c->conn < w->s->back_count && w->s->back[c->conn] && salvaging_may_continue(c);
}

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
	const struct ledger_client *r = salvaging_client(w->v, i);
	bool bearer = salvaging_is_bearer(r);

	return (struct client){
		.locks = &w->b->locks,
		.conn = r->conn,
		.uid = r->uid,
		.id = r->head.number,
		.bearer = bearer ? &w->bearer : NULL,
		.told_jeopardy = !bearer && w->holds[i] && w->v->head->jeopardy,
		.ghost = !bearer && !salvaging_is_back(w, r),
		.recorded = true,
		.last_command = COMMAND_COUNT,
	};
}

static void write_client(struct salvaging *w, size_t i)
{
	const struct ledger_client *r = salvaging_client(w->v, i);
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
static void set_tokens(struct claim *c, const struct salvaging_place *p, int64_t base)
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

static void write_kept(struct salvaging *w, const struct salvaging_place *p, const struct ledger_claim *r)
{
	enum claim_place place = r->place == LEDGER_PLACE_SLOTS ? PLACE_SLOTS : PLACE_CLAIM;
	struct claim c = {
		.number = r->head.number, .state = CLAIM_HELD, .czxid = r->czxid, .salvaged = true, .says_held = true
	};

	if (r->place == LEDGER_PLACE_CLAIM) {
		c.contended = CONTENDED;
		set_tokens(&c, p, r->czxid);
	}
	claim_snapshot(&c, place, PAIRS_OF(r), w->out);
}

/* Its grants' tokens tell all that there is to a claim of standalone mode. */
static void write_local(struct salvaging *w, const struct salvaging_place *p)
{
	struct claim c = { .number = ++w->b->directories.last_claim, .state = CLAIM_HELD };
	size_t i = 0;

	while (p->held[i].lost)
		i++;
	c.czxid = ledger_base(p->held[i].grant);
	set_tokens(&c, p, c.czxid);
	claim_snapshot(&c, PLACE_CLAIM, NULL, w->out);
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
	claim_snapshot(&c, PLACE_LEAVING, NULL, w->out);
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

	slots_snapshot(&(struct directory){ .remembered = any }, w->out);
	for (size_t i = 0; p->holds && i < p->claim_count; i++)
		if (p->claims[i].claim->place == LEDGER_PLACE_SLOTS)
			write_kept(w, p, p->claims[i].claim);
	if (noted)
		write_unknown(w, FLAVOUR_SLOTS);
	kind_snapshot(&(struct lock){ .semaphore = &(struct semaphore){ .limit = (int64_t)p->lock->limit } }, w->out);
}

static void write_observers(struct salvaging *w, const struct salvaging_place *p)
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
static void write_leader(struct salvaging *w, const struct salvaging_place *p)
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
	kind_snapshot(&(struct lock){ .observation = &leader }, w->out);
}

/* The names are those of this host: a name that is none is refused by who reads the text. */
static bool write_place(struct salvaging *w, const struct salvaging_place *p)
{
	struct slice name = { p->lock->name, p->lock->length };
	bool session = w->b->ensemble.session.id != 0, any = false;
	bool own = session && p->lock->noted & LEDGER_NOTED_OWN, slots = session && p->lock->noted & LEDGER_NOTED_SLOTS;
	struct lock lock = { .name = bytes_of(name.data, name.len), .directory.remembered = own || p->kept };

	if (p->lock->kind > KIND_SEMAPHORE || !name_valid(name) || !flavour_has_place(w->s->conf, name))
		return salvaging_refuse(w, "a lock in it has a name or kind that none can have");
	for (size_t i = 0; i < p->held_count; i++)
		any = any || p->held[i].of.mark;
	if (!any && !own && !slots && !p->watching_count)
		return true;
	lock.rule = w->b->locks.rules[p->lock->kind];
	lock_snapshot(&lock, w->out);
	write_own(w, p, own);
	if (salvaging_semaphore(p))
		write_slots(w, p, slots);
	for (size_t i = 0; i < p->held_count; i++)
		if (p->held[i].of.mark)
			write_grant(w, &p->held[i]);
	write_observers(w, p);
	if (w->standalone && p->watching_count)
		write_leader(w, p);
	return true;
}

/* Losses are told again anyway. */
static void write_notification(struct salvaging *w, size_t i)
{
	struct client c = client_of(w, i);

	if (!c.bearer && !c.ghost && salvaging_client(w->v, i)->flags & LEDGER_UNREAD)
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

bool salvaging_write(struct salvaging *w)
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
