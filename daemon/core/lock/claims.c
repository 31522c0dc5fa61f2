/* SPDX-License-Identifier: Apache-2.0 */
#include "core/lock/claims.h"

#include <assert.h>

#include "core/claim/charge.h"
#include "core/claim/claim_ledger.h"
#include "core/claim/listing.h"
#include "core/lock/lock_ledger.h"
#include "core/lock/locks.h"
#include "core/znode/holder.h"
#include "protocol/limits.h"

enum { LOCK_ZNODES_MAX = 2 };

/* For a grant older than this the broker finds out whether somebody waits elsewhere, or its znode was deleted. */
static const int64_t WATCH_AFTER_NS = 1000000000;

/* ---- what the data of a claim tell of its holder ---- */

static const int64_t YOUNG_NS = 100000000; /* most grants end before anybody asks */
static const int64_t EVERY_NS = 1000000000;

/* When the data of the lock's first grant are due. Its claim has rivals. INT64_MAX: not at all for now. */
static int64_t holder_data_due_ns(const struct lock *lock)
{
	const struct grant *g = TAILQ_FIRST(&lock->grants);
	const struct claim *c = lock->directory.claim;
	int64_t due_ns;

	assert(c->state == CLAIM_HELD && c->rivals);
	if (!g || !lock->rule->tells_holder ||
	    (c->holder_client == g->client->id && c->holder_token == g->token))
		return INT64_MAX;
	due_ns = g->granted_ns + YOUNG_NS;
	return c->holder_ns && c->holder_ns + EVERY_NS > due_ns ? c->holder_ns + EVERY_NS : due_ns;
}

static struct bytes *write(const struct lock *lock, const struct client *client, struct holder *h)
{
	struct bytes *data = operation_data(lock->locks->ensemble);
	const struct env *env = lock->locks->env;

	h->pid = client_shown(client, &h->command);
	h->uid = client->uid;
	h->name = bytes_view(&client->name);
	h->written_ms = env_wall_ms(env, env->now_ns);
	holder_begin(data, env->conf->host, lock->directory.kind);
	holder_write(data, h);
	return data;
}

static struct bytes *write_grant(const struct grant *g)
{
	struct holder h = {
		.mode = g->mode,
		.token = g->token,
		.holders = (int64_t)g->lock->grant_count,
		.since_ms = env_wall_ms(g->lock->locks->env, g->granted_ns),
	};

	return write(g->lock, g->client, &h);
}

void claims_tell_permits(const struct grant *g)
{
	bytes_format(write_grant(g), "client=%d\n", g->client->id);
}

void claims_tell_leader(const struct request *r, int64_t token)
{
	const struct env *env = r->lock->locks->env;
	struct holder h = { .mode = r->mode, .token = token, .holders = 1, .since_ms = env_wall_ms(env, env->now_ns) };

	bytes_format(write(r->lock, r->client, &h), "leader=1\ndata=%s\n", bytes_view(&r->data));
}

static void write_first(struct lock *lock)
{
	const struct grant *g = TAILQ_FIRST(&lock->grants);
	struct claim *c = lock->directory.claim;
	struct bytes *data = write_grant(g);

	c->holder_client = g->client->id;
	c->holder_token = g->token;
	c->holder_ns = lock->locks->env->now_ns;
	if (g->data.len && charge_fits(&lock->directory, LIMIT_DATA_BYTES_MAX))
		bytes_format(data, "data=%s\n", bytes_view(&g->data));
	if (c->says_held)
		bytes_text(data, "held=1\n");
	claim_write(c, OPERATION_HOLDER);
}

/* Writes them at once, with `held`, if another host tries to get the lock, and `held` was not written yet. */
static void holder_data_say_held(struct lock *lock)
{
	struct claim *c = lock->directory.claim;

	/* On a new connection it is unknown whether it was written. */
	if (!c->tried || !lock->grant_count || !lock->rule->tells_holder || (c->says_held && c->holder_client))
		return;
	if (!turn_may(&lock->directory, TURN_JOIN))
		return;
	c->says_held = true;
	write_first(lock);
}

/* ---- claims, tokens and hand-offs ---- */

bool claims_may_ask(const struct directory *d)
{
	return directory_may_send(d) && d->directories->ensemble->session.proving;
}

void lock_lose(struct lock *lock)
{
	struct claim *c, *after;
	struct directory *d;

	grant_lose_all(lock, LOSS_SESSION);
	lock->token = 0;
	lock_ledger_token(lock, 0, MODE_EXCLUSIVE);
	LOCK_DIRECTORIES(d, lock) {
		TAILQ_FOREACH_SAFE(c, &d->slots, link, after)
			if (c->state == CLAIM_HELD)
				claim_leave(c);
		if (d->next && d->next->state == CLAIM_HELD)
			claim_leave(d->next);
		if (d->claim && d->claim->state == CLAIM_HELD)
			claim_leave(d->claim);
		directory_touch(d);
	}
}

/* The grants that rest on the held claim: a semaphore's permits rest on claims of their own. */
static size_t holders(const struct lock *lock)
{
	return lock->slots ? 0 : lock->grant_count;
}

static bool nobody_waits(const struct lock *lock)
{
	return lock->directory.watch == WATCH_UNCONTENDED;
}

static bool somebody_waits(const struct lock *lock)
{
	return lock->directory.claim->rivals || lock->directory.watch == WATCH_CONTENDED;
}

/*
 * The claim has no grants. Until the list with watch is answered, a hand-off counts as if somebody waited. Without a
 * connection nothing could be given back; the znode is ours until safe_until, and hand-offs go on. A reader after
 * readers would only join late: it does not pass a contender that is known to wait (readers.h).
 */
bool claims_may_hand_off(const struct lock *lock, const struct claim *c, enum mode mode)
{
	const struct request *head = TAILQ_FIRST(&lock->requests);
	const struct locks *locks = lock->locks;

	if (!c->granted)
		return true;
	if (head && head->fresh)
		return false;
	if (c->handoffs >= CLAIM_HANDOFFS_MAX && mode_conflicts(c->granted_mode, mode))
		return false;
	if (!locks->ensemble->session.connected || nobody_waits(lock))
		return true;
	if (!mode_conflicts(c->granted_mode, mode) && somebody_waits(lock))
		return false;
	if (c->contended >= locks->env->conf->handoff_max)
		return false;
	return c->contended == 0 || locks->env->now_ns - c->contended_ns < locks->env->conf->handoff_ns;
}

static void count_hand_off(const struct lock *lock, struct claim *c, enum mode mode, bool together)
{
	struct locks *locks = lock->locks;

	locks->env->stats.handoffs_total++;
	if (mode_conflicts(c->granted_mode, mode))
		c->handoffs++;
	if (together || !locks->ensemble->session.connected || nobody_waits(lock))
		return;
	env_note(locks->env, FLIGHT_hand_off, (int64_t)c->number, c->handoffs, bytes_view(&lock->name));
	if (c->contended++ == 0)
		c->contended_ns = locks->env->now_ns;
}

int64_t claims_take_token(const struct lock *lock, struct claim *c, enum mode mode, bool together)
{
	int64_t token;

	if (c->granted)
		count_hand_off(lock, c, mode, together);
	else if (!lock->slots)
		claim_ledger_add(c);
	c->granted = true;
	c->granted_mode = mode;
	token = (c->czxid << 10) | c->handoffs;
	lock_ledger_token(lock, token, mode);
	return token;
}

static bool may_join(const struct lock *lock)
{
	const struct locks *locks = lock->locks;

	if (env_halts(locks->env) || lock->directory.claim_count - claim_spent_count(&lock->directory) >= LOCK_ZNODES_MAX)
		return false;
	if (locks->env->conf->standalone)
		return locks->directories->token_next < locks->directories->token_limit;
	if (lock->rule->may_join && !lock->rule->may_join(lock))
		return false;
	/* A directory that was of another kind is read again before anything is put into it. */
	if (lock->directory.exhausted || (lock->directory.unverified && lock->directory.state != DIRECTORY_FITS))
		return false;
	return directory_may_send(&lock->directory);
}

static void queue_next(struct lock *lock, enum mode mode)
{
	if (!lock->directory.next && !lock->locks->env->conf->standalone && may_join(lock) &&
	    turn_may(&lock->directory, TURN_JOIN))
		lock->directory.next = claim_join(&lock->directory, mode, lock_is_tried(lock), readers_hold_back(lock));
}

static void leave_both(struct lock *lock)
{
	if (lock->directory.next)
		claim_leave(lock->directory.next);
	claim_leave(lock->directory.claim);
}

static bool may_linger(const struct lock *lock, const struct claim *c)
{
	const struct locks *locks = lock->locks;

	if (env_halts(locks->env) || locks->env->conf->standalone || !lock->rule->lingers || c->rivals)
		return false;
	if (c->tried || c->says_held)
		return false;
	/* A contender that came since waits, and a list would delay it further. A reader may have joined readers. */
	if (lock->directory.watch == WATCH_FIRED && c->mode == MODE_EXCLUSIVE)
		return false;
	if (lock->directory.watch == WATCH_CONTENDED)
		return false;
	return locks->env->now_ns < c->idle_ns + locks->env->conf->linger_ns;
}

/* A lock that nobody else wants can continue on a znode of ours behind the held one. */
static bool may_succeed(const struct lock *lock, enum mode mode)
{
	return mode == MODE_EXCLUSIVE && lock->rule->follows && nobody_waits(lock);
}

/* Without a gap: while the held znode exists no other host is let in, and next has nothing else before it. */
void claims_succeed(struct lock *lock)
{
	const struct claim *c = lock->directory.claim, *next = lock->directory.next;

	if (!next || c->state != CLAIM_HELD || holders(lock) || c->handoffs < CLAIM_HANDOFFS_MAX)
		return;
	if (next->state != CLAIM_WAITING || !next->listed || claim_before(next) != c)
		return;
	if (may_succeed(lock, c->mode) && next->mode == MODE_EXCLUSIVE)
		claim_follow(&lock->directory);
}

/* The held claim has no grants. True: it went, and a request wants another. */
static bool give_back_held(struct lock *lock, struct claim *c)
{
	if (lock->request_count) {
		/* Only a proof is missing, or an answer that it or its kind waits for: then it will serve. */
		if (!session_grants(lock->locks->ensemble) || c->salvaged ||
		    (lock->rule->serves_soon && lock->rule->serves_soon(lock, c)))
			return false;
		queue_next(lock, TAILQ_FIRST(&lock->requests)->mode);
		claim_leave(c);
		return true;
	}
	if (!c->idle_ns)
		c->idle_ns = lock->locks->env->now_ns;
	if (!may_linger(lock, c))
		leave_both(lock);
	return false;
}

/* The claim is not HELD yet: another one can serve the head, or serve it sooner. */
static bool is_outdated(const struct claim *c, enum mode mode)
{
	/* Other hosts must count a request that waits. */
	if (!mode_covers(c->mode, mode) || (c->tries && !lock_is_tried(c->directory->lock)))
		return true;
	return c->mode != mode && c->state == CLAIM_WAITING && c->listed && c->readers_ahead;
}

/* The held claim keeps its next near the end of its tokens, or every hand-off would make a new one. */
static bool is_needless(const struct claim *next, const struct claim *held, const struct request *head)
{
	if (head && next->tries && !lock_is_tried(next->directory->lock))
		return true;
	return head ? !mode_covers(next->mode, head->mode) : held->handoffs < CLAIM_NEXT_FROM;
}

static bool give_back(struct lock *lock)
{
	const struct request *head = TAILQ_FIRST(&lock->requests);
	struct claim *c = lock->directory.claim;

	if (!c)
		return false;
	if (c->state != CLAIM_HELD) {
		if (head && !is_outdated(c, head->mode))
			return false;
		leave_both(lock);
		return true;
	}
	if (!holders(lock) && give_back_held(lock, c))
		return true;
	/* No request wants next any longer, and the claim may linger: next would hold back others for nothing. */
	if (lock->directory.next && is_needless(lock->directory.next, c, head))
		claim_leave(lock->directory.next);
	return false;
}

/*
 * The head's user is refused, and so are all requests of that user, but operators' if the head is none; the next may have
 * room.
 */
static void refuse_head(struct lock *lock)
{
	const struct client *head = TAILQ_FIRST(&lock->requests)->client;
	const struct account *whose = head->account;
	bool privileged = head->privileged;
	const char *why = charge_refuses(&lock->directory, 1);
	struct request *r, *after;

	TAILQ_FOREACH_SAFE(r, &lock->requests, link, after)
		if (r->client->account == whose && r->client->privileged <= privileged)
			request_fail(r, ERROR_LIMIT, why);
}

/* If this lock's own leaving claims will free enough room, the request waits for that. True: as join(). */
static bool join_first(struct lock *lock, enum mode mode)
{
	struct account *payer = TAILQ_FIRST(&lock->requests)->client->account;

	/* The recovery after a reconnection comes first. */
	if (lock->directory.waits[TURN_RECOVER] || !may_join(lock) || !turn_may(&lock->directory, TURN_JOIN))
		return false;
	if (lock->slots && lock->directory.payer != payer)
		charge_to(&lock->directory, payer);
	else if (lock->charge.account != payer)
		lock_pay(lock, payer);
	lock->directory.claim = claim_join(&lock->directory, mode, lock_is_tried(lock), false);
	if (!lock->directory.claim && !lock->directory.claim_count) {
		refuse_head(lock);
		return lock->request_count;
	}
	return lock->directory.claim && lock->directory.claim->state == CLAIM_HELD;
}

static bool wants_next(const struct lock *lock, const struct claim *c, enum mode mode)
{
	if (!mode_covers(c->mode, mode) || c->handoffs >= CLAIM_NEXT_FROM)
		return true;
	return lock->directory.watch == WATCH_CONTENDED && readers_hold_back(lock);
}

/* One client at a time uses it, and never waits. */
static bool renews_early(const struct lock *lock, const struct claim *c)
{
	return c->state == CLAIM_HELD && c->handoffs >= CLAIM_NEXT_FROM && holders(lock) &&
	       may_succeed(lock, c->mode);
}

/* True when the new claim is held at once: standalone; or when another request is the first. */
static bool join(struct lock *lock)
{
	struct claim *c = lock->directory.claim;
	struct request *head = TAILQ_FIRST(&lock->requests);

	if (!head) {
		if (c && renews_early(lock, c))
			queue_next(lock, c->mode);
		return false;
	}
	lock->directory.privileged = head->client->privileged;
	if (lock->directory.unverified && directory_may_send(&lock->directory))
		directory_check(&lock->directory);
	if (lock->directory.exhausted && directory_may_send(&lock->directory))
		directory_renew(&lock->directory);
	if (!c)
		return join_first(lock, head->mode);
	if (c->state == CLAIM_HELD && wants_next(lock, c, head->mode))
		queue_next(lock, head->mode);
	return false;
}

bool claims_settle(struct lock *lock)
{
	return give_back(lock) || join(lock);
}

bool claims_want_next(const struct lock *lock)
{
	const struct claim *c = lock->directory.claim, *next = lock->directory.next;
	const struct request *head = TAILQ_FIRST(&lock->requests);

	return c && c->state == CLAIM_HELD && (head ? mode_covers(next->mode, head->mode) : c->handoffs >= CLAIM_NEXT_FROM);
}

/*
 * Whether anybody waits matters once there was a hand-off, while the claim lingers, and for a grant of some age. If it
 * is known that somebody does, the claim goes back soon; if it does not, its own znode is watched.
 */
static int64_t watch_due_ns(const struct lock *lock, const struct claim *c)
{
	if (c->rivals)
		return c->held_ns + WATCH_AFTER_NS;
	/* Tries come and go, and the data answer them; waiting contenders are listed when that begins to matter. */
	if (c->says_held && holders(lock) && !lock->request_count)
		return c->looked_ns + WATCH_AFTER_NS;
	if (!holders(lock) || c->contended || c->handoffs || lock->directory.contended_before)
		return lock->locks->env->now_ns;
	return c->granted_ns + WATCH_AFTER_NS;
}

static void watch_held(struct lock *lock, struct claim *c)
{
	if (readers_hold_back(lock))
		directory_arm(&lock->directory);
	if (watch_due_ns(lock, c) > lock->locks->env->now_ns)
		return;
	if (c->rivals && c->own_watch == CLAIM_UNSET)
		claim_watch_own(c);
	/* While nobody here is next, a look shows soon enough who waits elsewhere. */
	if (!c->rivals && !directory_watches(&lock->directory) &&
	    (lock->request_count || !holders(lock) || turn_may(&lock->directory, TURN_LOOK)))
		directory_arm(&lock->directory);
}

/* True: it listed the directory. */
static bool look(struct lock *lock, struct claim *c)
{
	const struct request *head = TAILQ_FIRST(&lock->requests);

	return look_continue(c, head && flavour_claim_mode(lock->directory.flavour, head->mode) == c->mode);
}

bool claims_watch(struct lock *lock)
{
	struct claim *c = lock->directory.claim;
	bool listed = false;

	if (lock->directory.next)
		claim_watch_pred(lock->directory.next);
	if (!c)
		return false;
	if (c->state == CLAIM_WAITING) {
		claim_watch_pred(c);
		listed = look(lock, c);
	} else if (c->state == CLAIM_HELD) {
		watch_held(lock, c);
		holder_data_say_held(lock);
	}
	if (c->rivals)
		if (holder_data_due_ns(lock) <= lock->locks->env->now_ns && turn_may(&lock->directory, TURN_LOOK))
			write_first(lock);
	return listed;
}

/* Sends what a pause or a full window held back. The lists of a recovery wait for their turn. */
void claims_ask_again(struct directory *d)
{
	if (!d->claim || d->claim->rivals || d->watch == WATCH_CONTENDED)
		claim_release(d);
	directory_list_wanted(d);
	if (d->relist && !d->waits[TURN_RECOVER] && turn_may(d, TURN_JOIN)) {
		d->relist = false;
		if (!d->claim_count)
			return;
		directory_check(d);
		directory_list(d, false);
	}
}

/* Only sets the timer earlier: settling checks again, and a pair of LOCK and UNLOCK need not move it. */
static void wake(struct lock *lock, int64_t at_ns)
{
	struct env *env = lock->locks->env;

	if (at_ns > env->now_ns && at_ns != INT64_MAX)
		heap_set_by(&env->timers, &lock->directory.timer, at_ns);
}

static void set_timer(struct lock *lock)
{
	const struct locks *locks = lock->locks;
	const struct claim *c = lock->directory.claim;

	if (locks->env->conf->standalone)
		return;
	if (lock->request_count || lock->directory.claim_count || lock->observer_count)
		wake(lock, lock->directory.pause_until_ns);
	if (c && c->state == CLAIM_WAITING && c->listed) {
		wake(lock, c->look_ns);
		if (lock->expired_count)
			wake(lock, c->taken_ns);
	}
	if (!c || c->state != CLAIM_HELD)
		return;
	if (!holders(lock) && !lock->request_count)
		wake(lock, c->idle_ns + locks->env->conf->linger_ns);
	else if (holders(lock) && locks->ensemble->session.connected)
		wake(lock, watch_due_ns(lock, c));
	/* Data that are due and not written wait for their turn. */
	if (c->rivals && claims_may_ask(&lock->directory))
		wake(lock, holder_data_due_ns(lock));
}

void claims_learn(struct lock *lock, unsigned int facts)
{
	const struct failure *f = &lock->directory.failure;

	if (facts & FACT_LOST)
		grant_lose_all(lock, LOSS_DELETED);
	if (facts & FACT_FAILED)
		request_fail_all(lock, f->code, f->sentence.data);
}

void lock_learn(struct directory *d)
{
	struct lock *lock = d->lock;
	unsigned int facts = d->facts;

	d->facts = 0;
	directory_untouch(d); /* it is settled behind what its facts touch */
	if (d == lock->slots)
		lock->rule->learn_slots(lock, facts);
	else
		lock->rule->learn(lock, facts);
	directory_touch(d);
}

/* Tries, and those that have waited long enough. */
static void refuse_expired(struct lock *lock)
{
	const struct directory *d = &lock->directory;
	const char *why = pools_refusal(d->directories->env, d->payer, POOL_NAMES, d->privileged);
	struct request *r;

	while ((r = TAILQ_FIRST(&lock->expired)))
		request_fail(r, ERROR_LIMIT, why);
}

/* It is a new name, and there are too many at once. A lock that waits may be touched often: this must take no time then. */
static void wait_for_name(struct lock *lock)
{
	if (names_continue(&lock->directory) && lock->expired_count)
		refuse_expired(lock);
	if (!lock->request_count && !lock->observer_count)
		names_forget(&lock->directory);
}

void lock_settle(struct directory *d)
{
	struct lock *lock = d->lock;

	assert(!d->facts);
	if (lock->idle) {
		lock_tidy(lock);
		return;
	}
	if (d->naming.state == NAMING_WAITS)
		wait_for_name(lock);
	claim_send_deletes(d);
	if (d == lock->slots) {
		lock->rule->settle_slots(lock);
		return;
	}
	lock->rule->settle(lock);
	names_follow(d); /* the next request in the queue may be an operator's */
	assert(!d->next || claims_want_next(lock));
	set_timer(lock);
}
