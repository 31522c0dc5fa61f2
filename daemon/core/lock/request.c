/* SPDX-License-Identifier: Apache-2.0 */
#include "core/lock/request.h"

#include <assert.h>

#include "base/cold.h"
#include "base/container.h"
#include "base/mem.h"
#include "core/claim/charge.h"
#include "core/lock/client_ledger.h"
#include "core/lock/hold.h"
#include "core/lock/locks.h"

/* Once a wait has run out, the answer that tells whether the lock is taken may take this part of T besides try_ms. */
static const int64_t EXPIRED_PART = 6;

static void count(struct request *r, size_t one)
{
	*(r->aside ? &r->lock->aside_count : &r->lock->request_count) += one;
	r->lock->locks->request_count += one;
	r->client->request_count += one;
	if (!r->queued)
		r->lock->locks->blocked_count += one;
	else
		client_ledger_review(r->client);
}

/* That it is admitted was asked before: what is restored, and so is behind the limits, is charged, too. */
static inline void charge(struct request *r)
{
	struct account *a = r->client->account;

	charge_add(a, POOL_REQUESTS, 1);
	charge_add(a, POOL_GRANTS, 1);
	r->place = true;
	if (r->queued)
		charge_force(&r->event, a, POOL_MEMORY, POOL_EVENT_BYTES + r->lock->name.len);
}

static inline void add(struct request *r)
{
	if (!r->queued)
		r->client->request = r;
	TAILQ_INSERT_TAIL(&r->client->requests, r, client_link);
	TAILQ_INSERT_TAIL(r->aside ? &r->lock->aside : &r->lock->requests, r, link);
	count(r, 1);
	charge(r);
	r->lock->mixed |= r->client->account != r->lock->charge.account;
}

void request_add(struct request *r)
{
	add(r);
}

enum kind request_kind(const struct request *r)
{
	return r->aside ? (enum kind)(r->aside - 1) : r->lock->rule->kind;
}

void request_new(struct lock *lock, struct client *client, const struct request_terms *terms)
{
	struct locks *locks = lock->locks;
	struct request *r = terms->queued ? mem_new(sizeof(*r)) : client_blocking(client);

	assert(terms->queued || (!client->request && r->outcome.kind == OUTCOME_NONE));
	mem_clear(r, offsetof(struct request, outcome.sentence), sizeof(*r));
	r->client = client;
	r->lock = lock;
	r->aside = lock_sets_aside(lock, terms->kind) ? (uint8_t)(1 + terms->kind) : 0;
	r->mode = terms->mode;
	r->queued = terms->queued;
	r->asked_ns = locks->env->now_ns;
	r->lease_ns = terms->lease_ns;
	r->limit = terms->limit;
	r->count = terms->count;
	r->slot = terms->slot;
	r->fresh = terms->fresh;
	r->timer.kind = TIMER_REQUEST;
	bytes_slice(&r->data, terms->data);
	if (r->queued)
		locks->env->stats.enqueued_total++;
	add(r);
	hold_watch_wait(r);
	if (lock->rule->begun && !r->aside)
		lock->rule->begun(lock, r);
	if (terms->wait_ns == 0)
		request_expire(r);
	else if (terms->wait_ns > 0)
		heap_set(&locks->env->timers, &r->timer, locks->env->now_ns + terms->wait_ns);
	directory_touch(&lock->directory);
}

/* Hundreds may wait on one connection, and thousands for one lock: the search takes the shorter list. */
struct request *request_find(const struct lock *lock, const struct client *client)
{
	struct request *r;

	if (client->request_count < lock->request_count || lock->aside_count) {
		TAILQ_FOREACH(r, &client->requests, client_link)
			if (r->lock == lock)
				return r;
	} else {
		TAILQ_FOREACH(r, &lock->requests, link)
			if (r->client == client)
				return r;
	}
	return NULL;
}

/* Takes it off its lock and its client at once, so that the rule sees the truth. */
static void take_off(struct request *r, const char *why)
{
	struct lock *lock = r->lock;

	hold_waited(r, why);
	if (lock->rule->ended)
		lock->rule->ended(lock, r);
	if (!TAILQ_EMPTY(&lock->locks->walks))
		walk_leave_request(lock->locks, r);
	TAILQ_REMOVE(r->aside ? &lock->aside : &lock->requests, r, link);
	TAILQ_REMOVE(&r->client->requests, r, client_link);
	count(r, (size_t)-1);
	batch_lacks(lock, r);
	charge_remove(r->client->account, POOL_REQUESTS, 1);
	if (r->place)
		charge_remove(r->client->account, POOL_GRANTS, 1);
	if (r->queued)
		charge_give_back(&r->event, POOL_MEMORY);
	if (r->expired && !r->aside) {
		TAILQ_REMOVE(&lock->expired, r, expired_link);
		lock->expired_count--;
	}
	heap_unset(&lock->locks->env->timers, &r->timer);
	bytes_free(&r->data);
	/* Its account may go before payers are settled. */
	if (lock->slots && lock->directory.payer == r->client->account)
		charge_to(&lock->directory, lock->charge.account);
	if (!r->queued)
		r->client->request = NULL;
	directory_touch(&lock->directory);
}

void request_free(struct request *r)
{
	assert(r->outcome.kind == OUTCOME_NONE);
	if (r->outcome.sentence.data)
		bytes_free(&r->outcome.sentence);
	if (r->queued)
		mem_free(r);
}

COLD void request_end(struct request *r)
{
	take_off(r, "withdrawn");
	request_free(r);
}

struct request *request_first(struct lock *lock)
{
	struct request *r;

	while ((r = TAILQ_FIRST(&lock->requests)) && r->client->closed)
		request_end(r);
	return r;
}

static void count_grant(const struct request *r)
{
	struct lock *lock = r->lock;
	struct env *env = lock->locks->env;

	histogram_add(&env->stats.wait, env->now_ns - r->asked_ns);
	if (r->asked_ns >= lock->ended_ns)
		return;
	histogram_add(&env->stats.handoff, env->now_ns - lock->ended_ns);
	lock->ended_ns = 0;
}

void request_granted(struct request *r, int64_t number)
{
	count_grant(r);
	take_off(r, "granted");
	outcome_add(&r->lock->locks->outcomes, &r->outcome, OUTCOME_GRANTED, r->client);
	r->outcome.number = number;
}

void request_grant(struct request *r, int64_t token)
{
	struct lock *lock = r->lock;

	assert(!r->client->closed);
	grant_new(r, r->mode, token);
	request_granted(r, token);
	delegability_count(&lock->delegability, r->mode == MODE_SHARED ? DELEGABILITY_READERS : r->client->id);
	if (r->slot && r->asked_ns == lock->locks->env->now_ns)
		delegated_offer(TAILQ_LAST(&lock->grants, grant_list), r->slot);
}

void request_time_out(struct request *r)
{
	take_off(r, "timeout");
	outcome_add(&r->lock->locks->outcomes, &r->outcome, OUTCOME_TIMED_OUT, r->client);
}

void request_fail(struct request *r, enum error_code code, const char *sentence)
{
	struct locks *locks = r->lock->locks;

	if (code == ERROR_LIMIT)
		locks->env->stats.limits_total++;
	take_off(r, "failed");
	outcome_add_error(&locks->outcomes, &r->outcome, OUTCOME_FAILED, r->client, code, sentence);
}

void request_forget_ended(struct client *c)
{
	struct outcome_list *outcomes = &c->locks->outcomes;
	struct outcome *o, *after;

	TAILQ_FOREACH_SAFE(o, outcomes, link, after) {
		bool of_request = o->kind == OUTCOME_GRANTED || o->kind == OUTCOME_TIMED_OUT || o->kind == OUTCOME_FAILED;

		if (o->client != c || !of_request)
			continue;
		outcome_drop(outcomes, o);
		request_free(container_of(o, struct request, outcome));
	}
}

void request_fail_all(struct lock *lock, enum error_code code, const char *sentence)
{
	struct request *r;

	while ((r = TAILQ_FIRST(&lock->requests)))
		request_fail(r, code, sentence);
}

static const char *why_unknown(const struct locks *locks)
{
	if (locks->env->conf->standalone)
		return "no fencing token could be reserved in daemon.statedir: the log says why";
	if (!locks->ensemble->session.connected)
		return REQUEST_UNCONNECTED;
	if (health_refusal(locks->ensemble, (struct slice){ 0 }))
		return health_refusal(locks->ensemble, (struct slice){ 0 });
	return "ZooKeeper did not tell in time whether the lock is taken";
}

void request_mark_expired(struct request *r)
{
	r->expired = true;
	if (r->aside)
		return;
	TAILQ_INSERT_TAIL(&r->lock->expired, r, expired_link);
	r->lock->expired_count++;
}

void request_expire(struct request *r)
{
	struct locks *locks = r->lock->locks;

	if (r->expired) {
		locks->env->stats.timeouts_total++;
		request_fail(r, ERROR_UNAVAILABLE, why_unknown(locks));
		return;
	}
	request_mark_expired(r);
	heap_set(&locks->env->timers, &r->timer,
		 locks->env->now_ns + locks->ensemble->session.timeout_ns / EXPIRED_PART + locks->env->conf->try_ns);
	directory_touch(&r->lock->directory);
}
