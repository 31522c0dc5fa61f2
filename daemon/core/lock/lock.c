/* SPDX-License-Identifier: Apache-2.0 */
#include "core/lock/lock.h"

#include <assert.h>

#include "base/container.h"
#include "base/mem.h"
#include "core/claim/charge.h"
#include "core/lock/lock_ledger.h"
#include "core/lock/locks.h"
#include "protocol/name.h"

enum { IDLE_LOCKS_MAX = 1024 };

bool lock_in_use(const struct lock *lock)
{
	const struct directory *d;

	LOCK_DIRECTORIES(d, lock)
		if (d->claim_count || d->operations)
			return true;
	return lock->request_count || lock->grant_count || lock->observer_count || !TAILQ_EMPTY(&lock->lost);
}

bool lock_is_tried(const struct lock *lock)
{
	return lock->rule->marks_tries && lock->request_count && lock->expired_count == lock->request_count;
}

bool lock_is_confirmed(const struct lock *lock)
{
	const struct claim *c = lock->directory.claim;
	bool stands = c && (c->state == CLAIM_HELD || (c->pred_op && !operation_find(lock->locks->ensemble, c->pred_op)));
	bool fits = lock->directory.state == DIRECTORY_FITS || lock->locks->env->conf->standalone;

	return lock->grant_count || !TAILQ_EMPTY(&lock->lost) || (fits && (stands || lock->observer_count));
}

bool lock_refuses(const struct lock *lock, enum kind kind)
{
	return lock->rule->kind != kind && lock_is_confirmed(lock);
}

bool lock_sets_aside(const struct lock *lock, enum kind kind)
{
	return !TAILQ_EMPTY(&lock->aside) || (lock->rule->kind != kind && !lock->idle && !lock_is_confirmed(lock));
}

void lock_become(struct lock *lock, enum kind kind)
{
	if (lock->rule->kind == kind)
		return;
	assert(!lock_in_use(lock) && !lock->own);
	lock->directory.kind = kind;
	lock->rule = lock->locks->rules[kind];
	lock->directory.data_bytes = lock->rule->data_bytes;
	/* Its directory was of the other kind: nothing is put into it before its data are read again. */
	lock->directory.unverified = lock->directory.unverified || lock->directory.state != DIRECTORY_UNKNOWN;
	lock->directory.state = DIRECTORY_UNKNOWN;
	lock_ledger_write(lock);
}

void lock_touch_waiting(struct locks *locks)
{
	struct lock *lock;
	size_t touched = 0;

	TAILQ_FOREACH(lock, &locks->used, link)
		if (lock->request_count)
			directory_touch_one(&lock->directory, &touched);
}

void lock_take_turn(struct directory *d, enum turn turn)
{
	const struct lock *lock = d->lock;

	claim_send_deletes(d);
	if (turn == TURN_RECOVER && d->claim_count && !claim_recover(d, lock->grant_count && !lock->request_count))
		turn_wait(d, TURN_RECOVER); /* its deletes have filled the window */
	directory_touch(d);
}

const char *lock_state_word(const struct lock *lock)
{
	if (!lock)
		return "none";
	if (lock->locks->env->conf->standalone)
		return "local";
	if (lock->directory.claim)
		return claim_state_word(lock->directory.claim->state);
	return TAILQ_EMPTY(&lock->directory.leaving) ? "none" : claim_state_word(CLAIM_LEAVING);
}

/* ---- directories that idle locks leave ---- */

/* As often as Apache's servers look for empty containers. */
static const int64_t STAND_IN_IDLE_NS = 60000000000;

static int64_t after_ns(const struct lock *lock)
{
	if (lock->directory.flavour != FLAVOUR_KAZOO)
		return STAND_IN_IDLE_NS;
	return flavour_remove_idle_ns(lock->locks->env->conf, bytes_view(&lock->name));
}

/* It is removed after the next period. */
static void idle_directory_arm(struct lock *lock)
{
	int64_t idle_ns = after_ns(lock);

	if (idle_ns)
		heap_set(&lock->locks->env->timers, &lock->directory.timer, lock->locks->env->now_ns + idle_ns);
}

/*
 * Nothing uses the lock any longer. False: it need not be remembered, since its directory is gone; or, when there is no more
 * room for idle locks, because it cannot be removed, and the next one would be tried instead, one after the other.
 */
static bool idle_directory_is_known(struct lock *lock, bool full)
{
	struct directory *d = &lock->directory;
	bool refused = d->refused;

	d->refused = false;
	if (!directory_lasts(d) || lock->locks->env->conf->standalone)
		return true;
	if (!refused || !full)
		return d->state != DIRECTORY_UNKNOWN;
	lock->locks->env->stats.directories_left_total++;
	return false;
}

void lock_restore_idle_directory(struct lock *lock)
{
	struct directory *d = &lock->directory;

	assert(lock->idle && !d->left);
	d->left = (directory_lasts(d) || d->timer.place) && d->state == DIRECTORY_FITS;
	d->directories->left_count += d->left;
}

static void idle_directory_park(struct lock *lock)
{
	lock_restore_idle_directory(lock);
	if (lock->directory.left)
		idle_directory_arm(lock);
}

/* It is used again, or is about to be freed. */
static void idle_directory_forget(struct lock *lock)
{
	struct directory *d = &lock->directory;

	if (!d->left)
		return;
	d->left = false;
	d->directories->left_count--;
	heap_unset(&lock->locks->env->timers, &d->timer);
}

/* ---- the table of locks, by name; those that nobody uses are remembered for a while ---- */

static __attribute__((noinline)) struct lock *find(const struct map *names, struct slice name)
{
	struct lock *lock;

	MAP_FOREACH(lock, names, map_hash(names, name.data, name.len), name_node)
		if (slice_eq(bytes_view(&lock->name), name))
			return lock;
	return NULL;
}

static void unlink_lock(struct lock *lock)
{
	struct locks *locks = lock->locks;

	if (lock->idle) {
		TAILQ_REMOVE(&locks->idle, lock, link);
		locks->idle_count--;
	} else {
		if (!TAILQ_EMPTY(&locks->walks))
			walk_leave_lock(locks, lock);
		TAILQ_REMOVE(&locks->used, lock, link);
	}
}

void lock_free(struct lock *lock)
{
	struct locks *locks = lock->locks;

	assert(!lock_in_use(lock) && TAILQ_EMPTY(&lock->aside));
	locks->env->stats.directories_left_total += lock->directory.left;
	idle_directory_forget(lock);
	if (lock->rule->free)
		lock->rule->free(lock);
	unlink_lock(lock);
	if (locks->named == lock)
		locks->named = NULL;
	map_remove(&locks->names, &lock->name_node);
	charge_give_back(&lock->charge, POOL_LOCKS);
	lock_ledger_remove(lock);
	bytes_free(&lock->name);
	names_forget(&lock->directory);
	directory_deinit(&lock->directory);
	mem_free(lock);
}

static void evict(struct locks *locks)
{
	struct lock *oldest = TAILQ_FIRST(&locks->idle);

	if (oldest)
		lock_free(oldest);
}

/* One command looks its lock up more than once, and an UNLOCK often follows right after its LOCK. */
struct lock *lock_find(struct locks *locks, struct slice name)
{
	if (!locks->named || !slice_eq(bytes_view(&locks->named->name), name))
		locks->named = find(&locks->names, name);
	return locks->named;
}

struct account *lock_user(const struct lock *lock)
{
	const struct grant *g = TAILQ_FIRST(&lock->grants);
	const struct request *r = TAILQ_FIRST(&lock->requests);

	return g ? g->client->account : r ? r->client->account : NULL;
}

void lock_pay(struct lock *lock, struct account *payer)
{
	struct directory *d;

	charge_set(&lock->charge, payer, POOL_LOCKS, 1);
	LOCK_DIRECTORIES(d, lock)
	charge_to(d, payer);
}

/* One more comes into use. */
static inline bool charge_use(struct locks *locks, struct charge *charge, const struct client *client)
{
	struct account *a = client ? client->account : &locks->env->accounts.nobody;

	if (!account_may(a, POOL_LOCKS, 1, client && client->privileged) && !locks->restoring)
		return false;
	charge_force(charge, a, POOL_LOCKS, 1);
	return true;
}

struct lock *lock_new(struct locks *locks, struct slice name, enum kind kind, const struct client *client)
{
	struct lock *lock = lock_find(locks, name);
	struct charge charge = { 0 };

	assert(name_valid(name) && flavour_has_place(locks->env->conf, name));
	if (lock)
		lock_free(lock);
	if (!charge_use(locks, &charge, client))
		return NULL;
	if (!locks->restoring && locks->names.count >= locks->env->conf->limits.locks)
		evict(locks);
	lock = mem_new(sizeof(*lock));
	lock->charge = charge;
	lock->locks = locks;
	lock->rule = locks->rules[kind];
	directory_init(&lock->directory, locks->directories, lock);
	lock->directory.payer = charge.account;
	lock->directory.data_bytes = lock->rule->data_bytes;
	TAILQ_INIT(&lock->requests);
	TAILQ_INIT(&lock->expired);
	TAILQ_INIT(&lock->aside);
	TAILQ_INIT(&lock->grants);
	TAILQ_INIT(&lock->lost);
	bytes_slice(&lock->name, name);
	bytes_fit(&lock->name);
	map_add(&locks->names, &lock->name_node, map_hash(&locks->names, name.data, name.len));
	TAILQ_INSERT_TAIL(&locks->used, lock, link);
	lock_ledger_write(lock);
	return lock;
}

struct lock *lock_make(struct locks *locks, struct slice name, const struct client *client)
{
	struct lock *lock = lock_find(locks, name);

	if (!lock) {
		lock = locks->named = lock_new(locks, name, KIND_LOCK, client);
		if (!lock)
			return NULL;
		lock->directory.flavour = flavour_place(locks->env->conf, name, &lock->directory.path);
		bytes_fit(&lock->directory.path);
		directory_add(&lock->directory);
	}
	if (lock->idle) {
		if (!charge_use(locks, &lock->charge, client))
			return NULL;
		lock->directory.payer = lock->charge.account;
		lock->mixed = false;
		unlink_lock(lock);
		idle_directory_forget(lock);
		lock->idle = false;
		TAILQ_INSERT_TAIL(&locks->used, lock, link);
	}
	directory_touch(&lock->directory);
	return lock;
}

/* False: there is nothing to remove, or it cannot be removed now. Else the lock is in use until that is answered. */
static bool remove_directory(struct lock *lock)
{
	if (!lock->directory.left || !after_ns(lock) || !turn_is_free(lock->directory.directories))
		return false;
	if (!lock_make(lock->locks, bytes_view(&lock->name), NULL))
		return false;
	directory_delete(&lock->directory, OPERATION_DIR_REMOVE);
	return true;
}

void lock_tidy(struct lock *lock)
{
	if (lock->directory.left && !lock->directory.timer.place && after_ns(lock) && !remove_directory(lock))
		idle_directory_arm(lock);
	directory_untouch(&lock->directory);
}

void lock_park(struct lock *lock)
{
	struct locks *locks = lock->locks;

	unlink_lock(lock);
	charge_give_back(&lock->charge, POOL_LOCKS);
	lock->directory.payer = &locks->env->accounts.nobody;
	lock->idle = true;
	TAILQ_INSERT_TAIL(&locks->idle, lock, link);
	if (++locks->idle_count > IDLE_LOCKS_MAX && !remove_directory(TAILQ_FIRST(&locks->idle)))
		evict(locks);
}

/* The lock is kept for a while: the next LOCK need not make it again, nor read a known directory. */
void lock_rest(struct lock *lock)
{
	struct locks *locks = lock->locks;

	if (lock->idle || lock->directory.touched || lock_in_use(lock))
		return;
	if (lock->rule->rest) {
		lock->rule->rest(lock);
		return;
	}
	heap_unset(&locks->env->timers, &lock->directory.timer);
	turn_forget(&lock->directory);
	lock->directory.relist = false;
	directory_want_nothing(&lock->directory);
	if (idle_directory_is_known(lock, locks->idle_count >= IDLE_LOCKS_MAX)) {
		lock_park(lock);
		idle_directory_park(lock);
	} else {
		lock_free(lock);
	}
}
