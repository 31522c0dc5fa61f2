/* SPDX-License-Identifier: Apache-2.0 */
#include "core/lock/lock.h"

#include <assert.h>

#include "base/container.h"
#include "base/mem.h"
#include "core/kind/semaphore.h"
#include "core/lock/locks.h"
#include "protocol/name.h"

enum { IDLE_LOCKS_MAX = 1024 };

static struct lock *find(const struct map *m, struct slice key, bool by_path)
{
	struct map_node *node = map_first(m, map_hash(m, key.data, key.len));

	for (; node; node = map_next(node)) {
		struct lock *lock;

		if (by_path) {
			lock = container_of(node, struct lock, path_node);
			if (slice_eq(bytes_view(&lock->directory.path), key))
				return lock;
		} else {
			lock = container_of(node, struct lock, name_node);
			if (slice_eq(bytes_view(&lock->name), key))
				return lock;
		}
	}
	return NULL;
}

static struct lock *lock_new(struct locks *locks, struct slice name)
{
	struct lock *lock = mem_new(sizeof(*lock));

	lock->locks = locks;
	lock->timer.kind = TIMER_LOCK;
	lock->pause_until_ns = INT64_MIN;
	TAILQ_INIT(&lock->requests);
	TAILQ_INIT(&lock->grants);
	TAILQ_INIT(&lock->lost);
	TAILQ_INIT(&lock->leaving);
	observe_init(&lock->observation);
	TAILQ_INIT(&lock->permits);
	bytes_slice(&lock->name, name);
	TAILQ_INSERT_TAIL(&locks->used, lock, link);
	return lock;
}

static void add_path(struct lock *lock)
{
	const struct bytes *path = &lock->directory.path;
	struct map *paths = &lock->locks->directories->paths;

	map_add(paths, &lock->path_node, map_hash(paths, path->data, path->len));
}

static struct lock *lock_new_named(struct locks *locks, struct slice name)
{
	struct lock *lock = lock_new(locks, name);

	assert(name_valid(name) && flavour_has_place(locks->env->conf, name));
	lock->flavour = flavour_place(locks->env->conf, name, &lock->directory.path);
	map_add(&locks->names, &lock->name_node, map_hash(&locks->names, name.data, name.len));
	add_path(lock);
	return lock;
}

struct lock *lock_new_part(struct semaphore *s, struct slice name, struct slice path, enum flavour flavour)
{
	struct lock *lock = lock_new(s->locks, name);

	lock->semaphore = s;
	lock->flavour = flavour;
	lock->directory.state = DIRECTORY_FITS; /* the semaphore's own data say what is below */
	bytes_slice(&lock->directory.path, path);
	add_path(lock);
	return lock;
}

static void unlink_lock(struct lock *lock)
{
	struct locks *locks = lock->locks;

	if (lock->idle) {
		TAILQ_REMOVE(&locks->idle, lock, link);
		locks->idle_count--;
	} else {
		TAILQ_REMOVE(&locks->used, lock, link);
	}
}

bool lock_in_use(const struct lock *lock)
{
	return lock->request_count || lock->grant_count || lock->claim_count || lock->operations ||
	       lock->observation.count || !TAILQ_EMPTY(&lock->lost);
}

void lock_free(struct lock *lock)
{
	struct locks *locks = lock->locks;

	assert(!lock_in_use(lock));
	heap_unset(&locks->env->timers, &lock->timer);
	if (lock->dirty)
		lock_untouch(lock);
	turn_forget(lock);
	if (locks->directories->turns.served == lock)
		locks->directories->turns.served = NULL;
	unlink_lock(lock);
	if (locks->named == lock)
		locks->named = NULL;
	if (!lock->semaphore)
		map_remove(&locks->names, &lock->name_node);
	map_remove(&locks->directories->paths, &lock->path_node);
	bytes_free(&lock->name);
	bytes_free(&lock->directory.path);
	bytes_free(&lock->seen.by);
	bytes_free(&lock->seen.data);
	observe_deinit(&lock->observation);
	mem_free(lock);
}

static bool evict(struct locks *locks)
{
	struct lock *oldest = TAILQ_FIRST(&locks->idle);

	if (!oldest)
		return false;
	lock_free(oldest);
	return true;
}

bool lock_has_room(struct locks *locks)
{
	return locks->names.count + locks->semaphores.count < locks->env->conf->limits.locks || evict(locks);
}

/* A request asks more than once, and an UNLOCK often comes right behind its LOCK. */
struct lock *lock_find(struct locks *locks, struct slice name)
{
	if (!locks->named || !slice_eq(bytes_view(&locks->named->name), name))
		locks->named = find(&locks->names, name, false);
	return locks->named;
}

struct lock *lock_make(struct locks *locks, struct slice name)
{
	struct lock *lock = lock_find(locks, name);

	if (!lock) {
		if (!lock_has_room(locks))
			return NULL;
		lock = locks->named = lock_new_named(locks, name);
	}
	if (lock->idle) {
		unlink_lock(lock);
		lock->idle = false;
		TAILQ_INSERT_TAIL(&locks->used, lock, link);
	}
	lock_touch(lock);
	return lock;
}

struct lock *lock_find_path(struct locks *locks, struct slice path)
{
	return find(&locks->directories->paths, path, true);
}

bool lock_may_be(const struct lock *lock, enum kind kind)
{
	return lock->kind == kind || !(lock->request_count || lock->grant_count || lock->claim ||
				       lock->observation.count || !TAILQ_EMPTY(&lock->lost));
}

void lock_become(struct lock *lock, enum kind kind)
{
	if (lock->kind == kind)
		return;
	assert(lock_may_be(lock, kind));
	lock->kind = kind;
	/* Its directory was of the other kind: nothing is put into it before it was read again. */
	lock->directory.unverified = lock->directory.unverified || lock->directory.state != DIRECTORY_UNKNOWN;
	lock->directory.state = DIRECTORY_UNKNOWN;
}

/* Kept a while: the next LOCK need not make it again, nor read a known directory. */
void lock_rest(struct lock *lock)
{
	struct locks *locks = lock->locks;

	if (lock->idle || lock->dirty || lock_in_use(lock))
		return;
	if (lock->semaphore) {
		semaphore_rest(lock->semaphore);
		return;
	}
	heap_unset(&locks->env->timers, &lock->timer);
	turn_forget(lock);
	lock->relist = false;
	directory_want_nothing(lock);
	unlink_lock(lock);
	lock->idle = true;
	TAILQ_INSERT_TAIL(&locks->idle, lock, link);
	if (++locks->idle_count > IDLE_LOCKS_MAX)
		evict(locks);
}

void lock_remember(struct lock *lock, bool remembered)
{
	if (lock->remembered == remembered)
		return;
	lock->remembered = remembered;
	lock->locks->directories->remembered_count += remembered ? 1 : (size_t)-1;
}

void lock_verified(struct lock *lock)
{
	lock->verified_ns = lock->locks->env->now_ns;
	if (!lock->remembered)
		return;
	lock->locks->env->stats.relisted_total++;
	lock_remember(lock, false);
}

void lock_touch(struct lock *lock)
{
	if (lock->dirty)
		return;
	lock->dirty = true;
	TAILQ_INSERT_TAIL(&lock->locks->dirty, lock, dirty_link);
}

void lock_untouch(struct lock *lock)
{
	assert(lock->dirty);
	lock->dirty = false;
	TAILQ_REMOVE(&lock->locks->dirty, lock, dirty_link);
}

void lock_pause(struct lock *lock, int64_t pause_ns)
{
	lock->pause_until_ns = lock->locks->env->now_ns + pause_ns;
	lock_touch(lock);
}

const char *lock_state_word(const struct lock *lock)
{
	if (!lock)
		return "none";
	if (lock->locks->env->conf->standalone)
		return "local";
	if (lock->claim)
		return claim_state_word(lock->claim->state);
	return TAILQ_EMPTY(&lock->leaving) ? "none" : claim_state_word(CLAIM_LEAVING);
}
