/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Invariants between two events: each counter equals its sum, each part keeps its promises, each account is charged for
 * exactly what its user has, and the ledger has a record of everything.
 */
#include "core/check.h"

#include <stdint.h>
#include <stdlib.h>

#include "base/mem.h"
#include "core/claim/charge.h"
#include "core/claim/claim_ledger.h"
#include "core/client/bid.h"
#include "core/client/mlock.h"
#include "core/command/list.h"
#include "core/hosts/scan.h"
#include "core/kind/observe.h"
#include "core/kind/payer.h"
#include "core/lock/bearer.h"
#include "core/lock/claims.h"
#include "core/lock/client_ledger.h"
#include "core/lock/lock_ledger.h"
#include "core/state.h"

/* Notes the first that is broken. */
#define CHECK(holds) \
	do { \
		if (!(holds) && !*wrong) \
			*wrong = #holds; \
	} while (0)

/* All that is wanted is sent or waits for its turn; and beside a claim that a list showed waiting nothing is unknown. */
static void check_sending(const struct directory *d, const char **wrong)
{
	bool sends = d->directories->ensemble->session.proving && d->pause_until_ns <= d->directories->env->now_ns;
	bool listed = d->claim && d->claim->state == CLAIM_WAITING && d->claim->listed;
	const struct claim *c;

	CHECK(!sends || !d->wanted || d->waits[TURN_JOIN] || d->waits[TURN_DELETE]);
	CHECK(!listed || (!d->next && !d->remembered && d->claim->named));
	TAILQ_FOREACH(c, &d->leaving, link) {
		CHECK(!sends || !c->named || c->withheld || c->leave_op || d->waits[TURN_DELETE]);
		CHECK(!listed || c->named);
	}
}

static size_t check_directory(const struct directory *d, const char **wrong)
{
	const struct claim *c;
	size_t claims = (size_t)(d->claim != NULL) + (size_t)(d->next != NULL);

	TAILQ_FOREACH(c, &d->leaving, link) {
		CHECK(c->state == CLAIM_LEAVING);
		claims++;
	}
	TAILQ_FOREACH(c, &d->slots, link) {
		CHECK(c->state != CLAIM_LEAVING && d->flavour == FLAVOUR_SLOTS);
		claims++;
	}
	CHECK(!d->facts && (!d->next || (d->claim && d->next != d->claim)));
	CHECK(!d->claim || d->claim->state != CLAIM_LEAVING);
	CHECK(!d->next || (d->next->state != CLAIM_LEAVING && claims_want_next(d->lock)));
	check_sending(d, wrong);
	CHECK(d->watches.amount == charge_watches(d) && claims == d->claim_count && (claims || !d->remembered));
	return claims;
}

static void check_lock(const struct lock *lock, size_t *requests, size_t *grants, size_t *lost, const char **wrong)
{
	const struct directory *d = &lock->directory;
	const struct request *r;
	const struct grant *g;
	size_t n_requests = 0, n_aside = 0, n_expired = 0, n_marked = 0, n_grants = 0, n_lost = 0, n_delegated = 0;

	TAILQ_FOREACH(r, &lock->requests, link) {
		CHECK(r->lock == lock && !r->aside &&
		      (r->queued || (r->client->request == r && (r->client->asking || r->client->bearer))));
		n_requests++;
		n_expired += r->expired;
	}
	TAILQ_FOREACH(r, &lock->aside, link)
		n_aside += r->lock == lock && r->aside;
	TAILQ_FOREACH(r, &lock->expired, expired_link)
		n_marked++;
	LIST_FOREACH(g, &lock->delegated, delegated_link) {
		CHECK(g->lock == lock && g->delegated);
		n_delegated++;
	}
	CHECK(n_delegated == lock->delegability.count && n_delegated <= SHARED_DELEGATIONS_MAX);
	CHECK(!n_delegated || !lock->request_count);
	TAILQ_FOREACH(g, &lock->grants, link) {
		CHECK(!g->lost && g->depth >= 1);
		CHECK(!g->delegated || (g->depth == 1 && !g->lease.place));
		n_delegated -= g->delegated;
		CHECK(!g->delegated || (g->slot && !lock->slots && !lock->observer_count));
		CHECK(!g->delegated || !env_halts(lock->locks->env) || lock->locks->halting.on);
		CHECK(g->mode != MODE_EXCLUSIVE || (n_grants == 0 && !TAILQ_NEXT(g, link)));
		n_grants++;
	}
	TAILQ_FOREACH(g, &lock->lost, link) {
		CHECK(g->lost && !g->lease.place);
		n_lost++;
	}
	CHECK(!lock->batch.work.worker || (lock->batch.until_ns && lock->request_count && lock->grant_count));
	CHECK((d->naming.state == NAMING_WAITS) == (d->naming.line != NULL));
	CHECK(!d->naming.line || (d->naming.line->account == d->payer && d->naming.line->privileged == d->privileged));
	CHECK(!lock->rule->is_sound || lock->rule->is_sound(lock));
	CHECK(!n_grants || lock->slots || (d->claim && d->claim->state == CLAIM_HELD && d->claim->granted));
	CHECK(!n_delegated); /* all delegated grants are grants of the lock */
	CHECK(n_requests == lock->request_count && n_aside == lock->aside_count && n_grants == lock->grant_count);
	/* Something is awaited that decides, or they are decided in later events. */
	CHECK(!n_aside || d->later || (lock_in_use(lock) && !lock_is_confirmed(lock)));
	CHECK(n_expired == lock->expired_count && n_marked == n_expired);
	*requests += n_requests + n_aside;
	*grants += n_grants + n_lost;
	*lost += n_lost;
}

/* A slot is of one grant, which knows it. */
static void check_delegations(const struct client *c, const char **wrong)
{
	const struct delegations *d = c->delegations;
	const struct grant *g;
	uint64_t taken = 0;
	size_t count = 0, slots = 0;

	TAILQ_FOREACH(g, &c->grants, client_link) {
		CHECK(g->slot || !g->delegated);
		CHECK(!g->slot || !(taken >> (g->slot - 1) & 1));
		taken |= g->slot ? UINT64_C(1) << (g->slot - 1) : 0;
		CHECK(!g->slot || !d || (g->slot <= d->slot_count && d->slots[g->slot - 1].grant == g));
		CHECK(!g->delegated || (d && !g->lost));
		slots += g->slot != 0;
		count += g->delegated;
	}
	for (size_t i = 0; d && i < d->slot_count; i++)
		slots -= d->slots[i].grant != NULL;
	CHECK(!d || (!slots && count == d->count && (!count || d->idle.place || d->work.worker)));
	CHECK(!d || count || !d->idle.place);
	CHECK(!count || c->locks->env->conf->delegation || (d && d->work.worker && d->all));
}

static bool is_under_way(const struct mlock *m)
{
	return m->work.worker ? m->state == MLOCK_NEXT && !m->client->request
			      : m->state == MLOCK_TAKING && m->client->request;
}

/* Its grants and its requests, of which it has so many. */
static void check_client(const struct broker *b, const struct client *c, const char **wrong)
{
	const struct request *r;
	const struct grant *g;
	size_t n = 0, n_lost = 0, n_requests = 0, n_counted = 0;

	TAILQ_FOREACH(g, &c->grants, client_link) {
		n++;
		n_lost += g->lost;
		n_counted += g->counted;
	}
	CHECK(n_counted == c->counted);
	check_delegations(c, wrong);
	TAILQ_FOREACH(r, &c->requests, client_link) {
		CHECK(r->client == c && r->queued == (r != c->request) && r->queued == (r != c->blocking));
		n_requests++;
	}
	CHECK(n == c->grant_count && n_lost == c->lost_count && n_requests == c->request_count);
	CHECK((c->bearer || b->locks.conns[c->conn] == c) && client_by_id(&b->locks, c->id) == c);
	CHECK(!c->bearer || (n + n_requests == 1 && !n_lost && !c->asking));
	CHECK(!c->bearer || (bearer_has_place(c) ? !c->bid && c->bearer->place.lock : c->bid || !n_requests));
	CHECK(!c->bearer || !c->is_holder || !TAILQ_FIRST(&c->grants)->lease.place == (c->bearer->lifeline != NULL));
	CHECK(c->is_holder == (n > n_lost));
	CHECK(!c->group || c->group->account == c->account);
	CHECK(!c->mlock || (c->mlock->client == c && is_under_way(c->mlock)));
}

static void check(const struct broker *b, const char **wrong)
{
	const struct directory *d;
	const struct lock *lock;
	const struct client *c;
	const struct letter *l;
	size_t requests = 0, grants = 0, lost = 0, claims = 0, clients = 0, waiting = 0, blocked = 0, held = 0;
	size_t letters = 0, remembered = 0, bearers = 0, bearers_hold = 0, delegated = 0, pages = 0;

	CHECK(TAILQ_EMPTY(&b->directories.touched) && TAILQ_EMPTY(&b->locks.mlocks) && TAILQ_EMPTY(&b->locks.closing));
	/* The next answer gives the next turn, so an answer must be expected. */
	CHECK(!b->ensemble.session.proving || !b->directories.turns.waiting ||
	       b->ensemble.operations.first != b->ensemble.operations.end);
	CHECK(!b->directories.turns.breath && !b->directories.turns.served);
	TAILQ_FOREACH(lock, &b->locks.used, link) {
		check_lock(lock, &requests, &grants, &lost, wrong);
		LOCK_DIRECTORIES(d, lock) {
			claims += check_directory(d, wrong);
			remembered += d->remembered;
		}
	}
	TAILQ_FOREACH(lock, &b->locks.idle, link)
		CHECK(lock->idle && !lock->request_count && !lock->grant_count && !lock->directory.claim_count &&
		      !lock->directory.watches.amount && !lock->charge.amount && !lock->directory.remembered);
	TAILQ_FOREACH(c, &b->locks.clients, link) {
		check_client(b, c, wrong);
		delegated += c->delegations ? c->delegations->count : 0;
		pages += c->delegations != NULL;
		bearers += c->bearer != NULL;
		bearers_hold += c->bearer && c->is_holder;
		clients++;
		held += c->grant_count;
		waiting += c->request_count;
		blocked += c->request != NULL;
	}
	CHECK(clients == b->locks.client_count && bearers == b->locks.bearer_count);
	CHECK(bearers_hold == b->locks.bearers_hold);
	CHECK(delegated == b->locks.delegated_count && pages == b->locks.page_count);
	CHECK(requests == b->locks.request_count && requests == waiting && blocked == b->locks.blocked_count);
	CHECK(grants == b->locks.grant_count && grants == held && lost == b->locks.lost_count);
	CHECK(!env_halts(&b->env) || !b->locks.request_count);
	CHECK(b->locks.halting.on == (b->locks.halting.work.worker != NULL));
	CHECK(!b->locks.halting.on || env_halts(&b->env));
	TAILQ_FOREACH(l, &b->hosts.letters, link)
		letters++;
	CHECK(letters == b->hosts.outbox_count && letters <= LETTERS_MAX);
	CHECK(claims == b->directories.claim_count);
	CHECK(!claims || b->ensemble.session.id || b->env.conf->standalone);
	/* No grant outlives its session: the end of that would not be told to the client. */
	CHECK(grants == lost || session_safe_until(&b->ensemble) != INT64_MIN);
	CHECK(remembered == b->directories.remembered_count && (claims || !b->directories.stray_count));
}

/* ---- what port/pools.h says is charged, counted again from what there is ---- */

struct count {
	const struct account *account;
	uint64_t used[POOLS];
};

struct recount {
	struct count *counts;
	size_t count;
};

static int by_account(const void *a, const void *b)
{
	const uintptr_t x = (uintptr_t)((const struct count *)a)->account, y = (uintptr_t)((const struct count *)b)->account;

	return (x > y) - (x < y);
}

static void add(struct recount *r, const struct account *a, enum pool_number pool, size_t amount)
{
	const struct count key = { .account = a };
	struct count *found = bsearch(&key, r->counts, r->count, sizeof(key), by_account);

	if (found)
		found->used[pool] += amount;
}

static void add_client(struct recount *r, const struct client *c)
{
	const struct notification *n;
	const struct request *q;
	const struct grant *g;

	TAILQ_FOREACH(q, &c->requests, client_link) {
		add(r, c->account, POOL_REQUESTS, 1);
		add(r, c->account, POOL_GRANTS, 1);
		if (q->queued)
			add(r, c->account, POOL_MEMORY, POOL_EVENT_BYTES + q->lock->name.len);
	}
	TAILQ_FOREACH(g, &c->grants, client_link)
		add(r, c->account, POOL_GRANTS, g->counted);
	TAILQ_FOREACH(n, &c->notifications, link)
		if (notification_counts(n->type))
			add(r, c->account, POOL_MEMORY, notification_bytes(n));
	add(r, c->account, POOL_OBSERVERS, c->observer_count);
	if (c->bearer)
		add(r, c->account, POOL_MEMORY, bearer_memory(bytes_view(&c->bearer->value)));
	if (c->bid && !c->bearer)
		add(r, c->account, POOL_MEMORY, bid_memory(c->bid));
	if (c->lookup)
		add(r, c->account, POOL_MEMORY, lookup_memory(c->lookup));
	if (c->mlock)
		add(r, c->account, POOL_MEMORY, mlock_memory(c->mlock));
	if (c->delegations)
		add(r, c->account, POOL_MEMORY, delegated_memory());
	if (c->list)
		add(r, c->account, POOL_MEMORY, list_memory(c->list));
	if (c->query && c->query->scan)
		add(r, c->account, POOL_MEMORY, scan_memory(c->query->scan));
}

/* The mutex of a semaphore is for the request that gathers. */
static const struct account *payer_of_directory(const struct lock *lock, const struct directory *d,
						const struct account *payer)
{
	const struct request *head = TAILQ_FIRST(&lock->requests);

	return lock->slots && d == &lock->directory && head ? head->client->account : payer;
}

static void add_directory(struct recount *r, const struct lock *lock, const struct directory *d,
			  const struct account *payer)
{
	const struct account *whose = payer_of_directory(lock, d, payer), *permit;
	struct payer_permits permits = { 0 };
	const struct claim *c;

	if (d == lock->slots)
		permits = payer_permits(lock);
	add(r, whose, POOL_WATCHES, charge_watches(d));
	if (d->directories->env->conf->standalone)
		return;
	CLAIM_FOREACH(c, d) {
		permit = d == lock->slots && c->state != CLAIM_LEAVING ? payer_of_next(&permits) : NULL;
		if (d == lock->slots)
			add(r, permit ? permit : c->path.account, POOL_PATHS, charge_path(d));
		else
			add(r, whose, POOL_PATHS, charge_path(d));
	}
}

static void add_lock(struct recount *r, const struct lock *lock)
{
	const struct account *payer = payer_of(lock);
	const struct directory *d;

	if (!payer)
		payer = lock->charge.account;
	add(r, payer, POOL_LOCKS, 1);
	LOCK_DIRECTORIES(d, lock)
		add_directory(r, lock, d, payer);
}

static const char *compare(const struct recount *r, const struct accounts *all)
{
	for (size_t pool = 0; pool < POOLS; pool++) {
		uint64_t sum = 0;

		for (size_t i = 0; i < r->count; i++) {
			if (r->counts[i].used[pool] != r->counts[i].account->used[pool])
				return pools_words[pool].noun;
			sum += r->counts[i].used[pool];
		}
		if (sum != all->pools[pool].used)
			return "the sum of a pool";
	}
	return NULL;
}

/* The first difference, or NULL. */
static const char *accounts_wrong(const struct broker *b)
{
	const struct accounts *all = &b->env.accounts;
	const struct names *names = &b->directories.names;
	struct recount r = { .count = 1 };
	const struct account *a;
	const struct letter *l;
	const struct client *c;
	const struct attempt *k;
	const struct lasting *lasting;
	const struct lifeline *line;
	const struct lock *lock;
	const char *wrong;
	size_t i = 0;

	TAILQ_FOREACH(a, &all->list, link)
		r.count++;
	r.counts = mem_new_array(r.count, sizeof(*r.counts));
	r.counts[i++].account = &all->nobody;
	TAILQ_FOREACH(a, &all->list, link)
		r.counts[i++].account = a;
	qsort(r.counts, r.count, sizeof(r.counts[0]), by_account);
	TAILQ_FOREACH(c, &b->locks.clients, link)
		add_client(&r, c);
	TAILQ_FOREACH(line, &b->locks.lifelines, link)
		add(&r, line->charge.account, POOL_MEMORY, sizeof(*line));
	TAILQ_FOREACH(lock, &b->locks.used, link)
		add_lock(&r, lock);
	TAILQ_FOREACH(l, &b->hosts.letters, link) {
		add(&r, l->room.account, POOL_LETTERS, 1);
		add(&r, l->path_charge.account, POOL_PATHS, l->path.len);
	}
	TAILQ_FOREACH(k, &b->locks.attempts, link)
		add(&r, k->charge.account, POOL_MEMORY, sizeof(*k));
	for (size_t name = 0; name < names->count; name++)
		add(&r, names->made[(names->first + name) % names->cap].account, POOL_NAMES, 1);
	TAILQ_FOREACH(lasting, &b->directories.lasting, link)
		add(&r, lasting->charge.account, POOL_LASTING, lasting->charge.amount);
	wrong = compare(&r, all);
	mem_free(r.counts);
	return wrong;
}

/* ---- the ledger says what the broker has, and nothing else ---- */

static bool is_of(const struct ledger_record *r, enum ledger_type type, uint64_t number)
{
	return LEDGER_TYPE(r->word) == type && r->number == number;
}

static uint64_t ceiling_of(const struct directory *d, enum ceiling which)
{
	return d->directories->env->ledger->head->ceilings[which];
}

static size_t check_claim_records(const struct directory *d, const char **wrong)
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
		CHECK(c->record->czxid == c->czxid && (c->record->role == LEDGER_ROLE_WITHHELD) == c->withheld);
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

static size_t check_lock_record(const struct lock *lock, const char **wrong)
{
	const struct ledger_lock *r = lock->directory.record;
	bool standalone = lock->locks->env->conf->standalone;
	const struct directory *d;
	size_t records = 1;

	CHECK(r && LEDGER_TYPE(r->head.word) == LEDGER_LOCK && r->kind == (uint32_t)lock->rule->kind);
	if (!r)
		return 0;
	CHECK(slice_eq(bytes_view(&lock->name), (struct slice){ r->name, r->length }));
	CHECK(!lock->rule->keeps || !lock->grant_count || r->kept == lock->rule->keeps(lock));
	check_token(lock, wrong);
	LOCK_DIRECTORIES(d, lock)
	{
		CHECK(d->record == r && (d->claim_count || !(r->noted & claim_ledger_note(d))));
		if (!standalone)
			records += check_claim_records(d, wrong);
	}
	return records;
}

static void check_grant_record(const struct grant *g, const char **wrong)
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

static size_t check_client_record(const struct client *c, const char **wrong)
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
		check_grant_record(g, wrong);
	if (!c->record)
		return observers;
	CHECK(is_of(&c->record->head, LEDGER_CLIENT, c->id) && c->record->conn == c->conn && c->record->uid == c->uid);
	CHECK(client_ledger_is_true(c));
	return 1 + c->grant_count + observers;
}

/* NULL: nothing that it says is wrong. */
static const char *record_wrong(const struct broker *b)
{
	const struct ledger *l = b->env.ledger;
	const char *found = NULL, **wrong = &found;
	const struct client *c;
	const struct lock *lock;
	const struct letter *letter;
	size_t records = b->hosts.outbox_count;

	TAILQ_FOREACH(lock, &b->locks.used, link)
		records += check_lock_record(lock, wrong);
	TAILQ_FOREACH(lock, &b->locks.idle, link)
		records += check_lock_record(lock, wrong);
	TAILQ_FOREACH(c, &b->locks.clients, link)
		records += check_client_record(c, wrong);
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

/* ---- all of it ---- */

const char *broker_wrong(const struct broker *b)
{
	const char *wrong = NULL;

	check(b, &wrong);
	if (!wrong)
		wrong = accounts_wrong(b);
	if (!wrong && b->env.ledger)
		wrong = record_wrong(b);
	return wrong;
}

void broker_check(const struct broker *b)
{
	const char *wrong = broker_wrong(b);

	if (wrong)
		__assert_fail(wrong, __FILE__, __LINE__, __func__);
}

/* Nobody uses the lock, and the delete of its directory is under way (lock/lock.h). */
static bool is_being_removed(const struct lock *lock)
{
	const struct directory *d = &lock->directory;

	return directory_lasts(d) && d->operations && !d->claim_count && !lock->request_count &&
	       !lock->grant_count && !lock->observer_count && TAILQ_EMPTY(&lock->lost);
}

static bool none_is_used(const struct locks *locks)
{
	const struct lock *lock;

	TAILQ_FOREACH(lock, &locks->used, link)
		if (!is_being_removed(lock))
			return false;
	return true;
}

bool broker_quiet(const struct broker *b)
{
	return TAILQ_EMPTY(&b->locks.clients) && none_is_used(&b->locks) && !b->locks.groups.count &&
	       !b->locks.request_count && !b->locks.grant_count && !b->directories.claim_count &&
	       !b->hosts.outbox_count;
}
