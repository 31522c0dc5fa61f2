/* SPDX-License-Identifier: Apache-2.0 */
#include "core/kind/rwlock.h"

#include "base/cold.h"
#include "core/lock/claims.h"
#include "core/lock/locks.h"
#include "core/lock/take_back.h"

static bool conflicts_with_grants(const struct lock *lock, enum mode mode)
{
	const struct grant *g = TAILQ_FIRST(&lock->grants);

	return g && mode_conflicts(g->mode, mode);
}

bool rwlock_may_serve(const struct lock *lock, const struct claim *c, const struct request *r)
{
	if (!c || c->state != CLAIM_HELD || c->salvaged)
		return false;
	return mode_covers(c->mode, r->mode) && session_grants(lock->locks->ensemble) &&
	       !conflicts_with_grants(lock, r->mode);
}

void rwlock_grant(struct lock *lock, struct claim *c, struct request *r, int64_t token)
{
	c->idle_ns = 0;
	if (lock->grant_count == 0)
		c->granted_ns = lock->locks->env->now_ns;
	request_grant(r, token);
}

/* The head may be granted now, or, if others are before it in this event, in a later one. */
static bool may_be_next(const struct lock *lock, struct claim *c, const struct request *r)
{
	if (batch_has(lock, r))
		return true;
	return lock->grant_count ? readers_may_join(lock) : claims_may_hand_off(lock, c, r->mode);
}

/* Readers at the front get the lock together, as a batch: those after the first are no further hand-offs. */
static struct request *serve(struct lock *lock)
{
	size_t left = batch_piece(lock);
	struct request *r;

	while ((r = request_first(lock))) {
		struct claim *c = lock->directory.claim;
		bool together = batch_has(lock, r);

		if (!rwlock_may_serve(lock, c, r) || !may_be_next(lock, c, r))
			break;
		if (together && !left) {
			batch_leave(lock, r);
			break;
		}
		if (!together)
			batch_begin(lock, r->mode);
		rwlock_grant(lock, c, r, claims_take_token(lock, c, r->mode, together));
		left -= left > 0;
	}
	return r;
}

void rwlock_serve(struct lock *lock)
{
	const struct claim *c = lock->directory.claim;
	const struct request *head;

	if (batch_waits(lock))
		return;
	head = TAILQ_EMPTY(&lock->requests) ? NULL : serve(lock);
	if (!head || !c || c->state != CLAIM_HELD || !batch_has(lock, head))
		batch_end(lock);
}

bool rwlock_is_taken(const struct lock *lock, enum mode mode, bool behind)
{
	return lock->grant_count && (behind || conflicts_with_grants(lock, mode) || readers_are_closed(lock));
}

/*
 * The lock may be taken by another host, as far as this connection has shown, by a client of this host, or, while others
 * read, by a request that waits before. Until it is known whether somebody waits elsewhere, a reader may yet join.
 */
static bool is_taken(const struct lock *lock, enum mode mode, bool behind)
{
	const struct claim *c = lock->directory.claim;

	if (sighting_taken(&lock->directory, mode))
		return true;
	if (c && c->state == CLAIM_WAITING && c->listed)
		return behind || sighting_taken_before(c, mode);
	return lock->rule->is_taken(lock, mode, behind);
}

/* A request that conflicts with it waits before it: most often the first one does. */
static bool is_behind(const struct lock *lock, const struct request *r)
{
	const struct request *other = TAILQ_FIRST(&lock->requests);

	while (other != r && (other->expired || !mode_conflicts(other->mode, r->mode)))
		other = TAILQ_NEXT(other, link);
	return other != r;
}

/* True when one ended. Thousands may wait that have not expired: they are not looked at if the answer is clear. */
static bool end_expired(struct lock *lock)
{
	struct locks *locks = lock->locks;
	bool may_be_known = session_reaches(locks->ensemble) || locks->env->conf->standalone;
	size_t before = lock->expired_count;
	struct request *r, *after;

	TAILQ_FOREACH_SAFE(r, &lock->expired, expired_link, after) {
		bool taken = (!batch_has(lock, r) && is_taken(lock, r->mode, false)) ||
			     (is_taken(lock, r->mode, true) && is_behind(lock, r));

		if (!taken && may_be_known)
			continue;
		locks->env->stats.timeouts_total++;
		if (taken)
			request_time_out(r);
		else
			request_fail(r, ERROR_UNAVAILABLE, REQUEST_UNCONNECTED);
	}
	return lock->expired_count != before;
}

/* If the directory does not tell its kind, only the contenders in it do. */
static bool is_other_kind(const struct claim *c)
{
	return c && c->state == CLAIM_WAITING && c->other_kind;
}

static COLD void refuse_other_kind(struct lock *lock)
{
	struct bytes why = { 0 };

	bytes_format(&why, "that name is in use as %s", lock->directory.claim->other_kind);
	bytes_char(&why, '\0');
	request_fail_all(lock, ERROR_MISMATCH, why.data);
	bytes_free(&why);
}

/*
 * A request that waits, here or on another host, takes delegations back. But a reader that is granted the lock at once
 * shares it with the readers that have it delegated.
 */
static void take_back(struct lock *lock)
{
	const struct request *head = TAILQ_FIRST(&lock->requests);
	struct claim *c = lock->directory.claim;

	if (!delegated_is_wanted(lock))
		return;
	if (!head || !rwlock_may_serve(lock, c, head) || !may_be_next(lock, c, head))
		delegated_take_back(lock, true);
}

/*
 * Runs to a fixpoint: a step repeats only if a later one changed its input. The operations that join() sends change no
 * input until they are answered, and only join() looks at a *next* that give_back() let go.
 */
void rwlock_decide(struct lock *lock)
{
	if (!LIST_EMPTY(&lock->delegated))
		take_back(lock);
	do {
		if (is_other_kind(lock->directory.claim))
			refuse_other_kind(lock);
		claims_succeed(lock);
		do
			lock->rule->serve(lock);
		while (lock->expired_count && end_expired(lock));
	} while (claims_settle(lock));
	directory_untouch(&lock->directory); /* all that touched it meanwhile is settled */
}

/* The same, and sends the operations that the claims need. */
static void settle(struct lock *lock)
{
	rwlock_decide(lock);
	if (!claims_may_ask(&lock->directory))
		return;
	claims_ask_again(&lock->directory);
	claims_watch(lock);
}

static const char *obstacle(const struct lock *lock)
{
	return readers_hold_back(lock) && lock->directory.watch == WATCH_CONTENDED
		       ? "a waiter on another host comes before further readers of this host"
		       : NULL;
}

const struct kind_rule lock_rule = {
	.kind = KIND_LOCK,
	.verb = RULE_lock,
	.lost = "an earlier grant of this lock was lost; ask again",
	.held = "this connection holds it already; say REENTER to enter it again, or use one connection for each thread",
	.waits = "this client already waits for it, and CANCEL withdraws its ENQUEUE",
	.lease_over = "the lease of the grant ran out",
	.make = lock_make,
	.lingers = true,
	.follows = true,
	.tells_holder = true,
	.marks_tries = true,
	.learn = claims_learn,
	.settle = settle,
	.serve = rwlock_serve,
	.obstacle = obstacle,
	.is_taken = rwlock_is_taken,
};
