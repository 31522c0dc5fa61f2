/* SPDX-License-Identifier: Apache-2.0 */
/* Invariants between two events: counters equal sums, and the parts keep their promises. */
#include "core/check.h"

#include <assert.h>

#include "core/accounts_check.h"
#include "core/client/mlock.h"
#include "core/claim/charge.h"
#include "core/kind/observe.h"
#include "core/lock/bearer.h"
#include "core/lock/claims.h"
#include "core/record_check.h"
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
	CHECK(!lock->observation || (lock->observation->left > 0) == (lock->observation->work.worker != NULL));
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
		CHECK(r->client == c && r->queued == (r != c->request) && r->queued == (r != &c->blocking));
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
	CHECK(remembered == b->directories.remembered_count && (claims || !b->directories.orphan_count));
}

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

/* Nobody uses the lock, and the delete of its directory is under way (lock/leftover.h). */
static bool is_being_removed(const struct lock *lock)
{
	const struct directory *d = &lock->directory;

	return d->flavour == FLAVOUR_KAZOO && d->operations && !d->claim_count && !lock->request_count &&
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
