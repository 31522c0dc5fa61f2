/* SPDX-License-Identifier: Apache-2.0 */
/* The ledger says between two events what the broker has, and nothing else. */
#include "core/record_check.h"

#include "core/claim/claim_ledger.h"
#include "core/kind/observe.h"
#include "core/kind/semaphore.h"
#include "core/lock/client_ledger.h"
#include "core/lock/lock_ledger.h"
#include "core/state.h"

/* Notes the first that is not. */
#define CHECK(holds) \
	do { \
		if (!(holds) && !*wrong) \
			*wrong = #holds; \
	} while (0)

static bool is_of(const struct ledger_record *r, enum ledger_type type, uint64_t number)
{
	return LEDGER_TYPE(r->word) == type && r->number == number;
}

static uint64_t ceiling_of(const struct directory *d, enum ceiling which)
{
	return d->directories->env->ledger->head->ceilings[which];
}

static size_t check_claims(const struct directory *d, const char **wrong)
{
	const struct ledger_lock *lock = d->record;
	const struct claim *c;
	size_t records = 0;

	CLAIM_FOREACH(c, d) {
		CHECK(lock->noted & claim_ledger_note(d));
		CHECK(!c->record == !claim_ledger_wants(c));
		if (!c->record)
			continue;
		records++;
		CHECK(is_of(&c->record->head, LEDGER_CLAIM, c->number) && c->record->lock == lock->head.number);
		CHECK(c->number <= ceiling_of(d, CEILING_CLAIM) &&
		      (c->nonce & ~CONTENDER_TRY) <= ceiling_of(d, CEILING_NONCE));
		CHECK(c->record->czxid == c->czxid && (c->record->place == LEDGER_PLACE_WITHHELD) == c->withheld);
	}
	return records;
}

static void check_token(const struct lock *lock, const char **wrong)
{
	const struct claim *c = lock->directory.claim;
	uint64_t latest = lock->directory.record->latest;

	CHECK(!lock->slots || !latest);
	CHECK(lock->slots || latest >> 1 >= (uint64_t)lock->token);
	if (c && c->granted && c->state == CLAIM_HELD && !lock->slots)
		CHECK(latest == LEDGER_TOKEN(c->czxid << 10 | c->handoffs, c->granted_mode));
}

static size_t check_lock(const struct lock *lock, const char **wrong)
{
	const struct ledger_lock *r = lock->directory.record;
	bool standalone = lock->locks->env->conf->standalone;
	const struct directory *d;
	size_t records = 1;

	CHECK(r && LEDGER_TYPE(r->head.word) == LEDGER_LOCK && r->kind == (uint32_t)lock->rule->kind);
	if (!r)
		return 0;
	CHECK(slice_eq(bytes_view(&lock->name), (struct slice){ r->name, r->length }));
	CHECK(!lock->semaphore || !lock->grant_count || r->limit == (uint64_t)lock->semaphore->limit);
	check_token(lock, wrong);
	LOCK_DIRECTORIES(d, lock)
	{
		CHECK(d->record == r && (d->claim_count || !(r->noted & claim_ledger_note(d))));
		if (!standalone)
			records += check_claims(d, wrong);
	}
	return records;
}

static void check_grant(const struct grant *g, const char **wrong)
{
	const struct ledger_grant *r = g->record;

	CHECK(r && LEDGER_TYPE(r->head.word) == LEDGER_GRANT && r->client == g->client->id);
	if (!r)
		return;
	CHECK(r->lock == g->lock->directory.record->head.number && r->flags == grant_ledger_flags(g));
	CHECK(r->token == LEDGER_TOKEN(g->token, g->mode) && r->depth == g->depth && r->granted_ns == g->granted_ns);
	CHECK(r->lease_ns == (g->lease.place ? g->lease.due_ns : LEDGER_NO_LEASE));
	CHECK(slice_eq(bytes_view(&g->data), (struct slice){ r->data, r->length }));
}

static size_t check_client(const struct client *c, const char **wrong)
{
	const struct observer *o;
	const struct grant *g;
	size_t observers = 0;

	TAILQ_FOREACH(o, &c->observers, client_link) {
		CHECK(observe_recorded(o));
		observers++;
	}
	CHECK(!c->record == !c->recorded && (c->record || !c->grant_count));
	TAILQ_FOREACH(g, &c->grants, client_link)
		check_grant(g, wrong);
	if (!c->record)
		return observers;
	CHECK(is_of(&c->record->head, LEDGER_CLIENT, c->id) && c->record->conn == c->conn && c->record->uid == c->uid);
	CHECK(client_ledger_is_true(c));
	return 1 + c->grant_count + observers;
}

const char *record_wrong(const struct broker *b)
{
	const struct ledger *l = b->env.ledger;
	const char *found = NULL, **wrong = &found;
	const struct client *c;
	const struct lock *lock;
	const struct letter *letter;
	size_t records = b->hosts.outbox_count;

	TAILQ_FOREACH(lock, &b->locks.used, link)
		records += check_lock(lock, wrong);
	TAILQ_FOREACH(lock, &b->locks.idle, link)
		records += check_lock(lock, wrong);
	TAILQ_FOREACH(c, &b->locks.clients, link)
		records += check_client(c, wrong);
	TAILQ_FOREACH(letter, &b->hosts.letters, link)
		CHECK(letter->record && is_of(&letter->record->head, LEDGER_LETTER, letter->number));
	CHECK(records == ledger_records(l));
	CHECK(l->head->magic == LEDGER_MAGIC && l->head->epoch == b->ensemble.session.epoch);
	CHECK(l->head->draining == b->env.draining);
	CHECK(l->head->jeopardy == (b->ensemble.session.state == SESSION_JEOPARDY));
	CHECK(l->head->session == (uint64_t)b->ensemble.session.id);
	CHECK(l->head->own == (uint64_t)b->ensemble.past.own);
	CHECK(l->head->zxid == (uint64_t)b->ensemble.past.seen && l->head->floor == (uint64_t)b->ensemble.past.floor);
	CHECK(l->head->lasting == lasting_count(&b->directories));
	CHECK(b->locks.last_client <= l->head->ceilings[CEILING_CLIENT]);
	CHECK(b->directories.last_nonce <= l->head->ceilings[CEILING_NONCE]);
	CHECK(b->hosts.outbox_last <= l->head->ceilings[CEILING_LETTER]);
	CHECK(b->hosts.last_query <= l->head->ceilings[CEILING_QUERY]);
	CHECK(b->hosts.audit.sweep <= l->head->ceilings[CEILING_SWEEP]);
	CHECK((uint64_t)b->directories.token_limit <= l->head->ceilings[CEILING_TOKENS]);
	return found;
}
