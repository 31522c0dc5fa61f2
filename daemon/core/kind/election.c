/* SPDX-License-Identifier: Apache-2.0 */
#include "core/kind/election.h"

#include "core/kind/observe.h"
#include "core/kind/rwlock.h"
#include "core/lock/claims.h"
#include "core/lock/locks.h"
#include "protocol/limits.h"

/* Requests are proclaimed before they are granted, except in standalone mode. */
static bool proclaims(const struct lock *lock)
{
	return !lock->locks->env->conf->standalone;
}

/* The request has its token on this claim. */
static bool has_begun(const struct request *r, const struct claim *c)
{
	return r->proclamation.token && r->proclamation.token >> 10 == c->czxid;
}

/* The head has its token on the claim, or may get one. */
static bool may_proclaim(const struct lock *lock, const struct claim *c)
{
	const struct request *head = TAILQ_FIRST(&lock->requests);

	return proclaims(lock) && head && (has_begun(head, c) || claims_may_hand_off(lock, c, head->mode));
}

static void serve(struct lock *lock)
{
	struct claim *c = lock->directory.claim;
	struct request *head;

	if (!proclaims(lock)) {
		rwlock_serve(lock);
		return;
	}
	head = request_first(lock);
	if (head && rwlock_may_serve(lock, c, head) && has_begun(head, c) &&
	    head->proclamation.state == PROCLAMATION_DONE)
		rwlock_grant(lock, c, head, head->proclamation.token);
}

static void send(struct request *r, struct claim *c, int64_t token)
{
	claims_tell_leader(r, token);
	r->proclamation.state = PROCLAMATION_SENT;
	r->proclamation.token = token;
	r->proclamation.op = claim_write(c, OPERATION_PROCLAIM);
}

static void proclaim(struct lock *lock)
{
	struct request *head = TAILQ_FIRST(&lock->requests);
	struct claim *c = lock->directory.claim;

	if (!c || c->state != CLAIM_HELD || c->salvaged || lock->grant_count)
		return;
	if (!session_grants(lock->locks->ensemble) || !may_proclaim(lock, c))
		return;
	if (!turn_may(&lock->directory, TURN_JOIN))
		return;
	if (!has_begun(head, c))
		send(head, c, claims_take_token(lock, c, head->mode, false));
	else if (head->proclamation.state == PROCLAMATION_AGAIN)
		send(head, c, head->proclamation.token);
}

static void settle(struct lock *lock)
{
	rwlock_decide(lock);
	if (claims_may_ask(&lock->directory)) {
		claims_ask_again(&lock->directory);
		proclaim(lock);
		claims_watch(lock);
		observe_continue(lock);
	} else if (!proclaims(lock)) {
		observe_continue(lock);
	}
}

static void learn(struct lock *lock, unsigned int facts)
{
	const struct failure *f = &lock->directory.failure;

	claims_learn(lock, facts);
	if (facts & FACT_FAILED && f->failed == FAILED_ALL)
		observe_fail_all(lock, f->code, f->sentence.data);
}

static void proclaimed(const struct operation *op, const struct event *event)
{
	struct directory *d = op->directory;
	struct request *r = TAILQ_FIRST(&d->lock->requests);
	enum zk_code code = event->zk_answered.code;

	/* The request gave up meanwhile, or was proclaimed again on another claim. */
	if (!r || r->proclamation.state != PROCLAMATION_SENT || r->proclamation.op != event->zk_answered.op)
		return;
	r->proclamation.state = PROCLAMATION_AGAIN;
	if (code == ZK_OK) {
		r->proclamation.state = PROCLAMATION_DONE;
	} else if (code == ZK_NONODE) {
		/* Nothing more is written to the znode until the list has shown what became of it. */
		r->proclamation.state = PROCLAMATION_SENT;
		directory_list(d, false);
	} else if (code == ZK_BUSY) {
		directory_retry(d);
	} else if (code != ZK_UNKNOWN) {
		directory_pause(d);
		request_fail(r, ERROR_UNAVAILABLE, "ZooKeeper refuses to write the leader's data");
	}
}

static void answered(const struct operation *op, const struct event *event)
{
	if (op->kind == OPERATION_PROCLAIM)
		proclaimed(op, event);
	else
		observe_answered(op, event);
}

static bool is_sound(const struct lock *lock)
{
	const struct observation *o = observation_of(lock);

	return o ? lock->observer_count && (o->left > 0) == (o->work.worker != NULL) : !lock->observer_count;
}

const struct kind_rule election_rule = {
	.kind = KIND_ELECTION,
	.verb = RULE_campaign,
	.lost = "an earlier leadership was lost; ask again",
	.held = "this client already leads it, and has to RESIGN first",
	.waits = "this client already campaigns for it, and RESIGN withdraws that",
	.lease_over = "the lease of the grant ran out",
	.data_bytes = LIMIT_DATA_BYTES_MAX,
	.make = lock_make,
	.marks_tries = true,
	.learn = learn,
	.settle = settle,
	.serve = serve,
	.is_taken = rwlock_is_taken,
	.serves_soon = may_proclaim,
	.suspended = observe_suspended,
	.answered = answered,
	.watched = observe_watched,
	.snapshot = observation_snapshot,
	.restore = observation_restore,
	.is_sound = is_sound,
};
