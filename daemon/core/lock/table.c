/* SPDX-License-Identifier: Apache-2.0 */
/* The table of locks: by name and by path; those that nobody uses are remembered for a while. */
#include "core/lock/lock.h"

#include <assert.h>

#include "base/container.h"
#include "base/mem.h"
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
	lock->rule = locks->rules[KIND_LOCK];
	lock->flavour = flavour_place(locks->env->conf, name, &lock->directory.path);
	map_add(&locks->names, &lock->name_node, map_hash(&locks->names, name.data, name.len));
	add_path(lock);
	return lock;
}

struct lock *lock_new_part(struct locks *locks, struct slice name, struct slice path, enum flavour flavour)
{
	struct lock *lock = lock_new(locks, name);

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

void lock_free(struct lock *lock)
{
	struct locks *locks = lock->locks;

	assert(!lock_in_use(lock) && !lock->observation);
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

/* Kept a while: the next LOCK need not make it again, nor read a known directory. */
void lock_rest(struct lock *lock)
{
	struct locks *locks = lock->locks;

	if (lock->idle || lock->dirty || lock_in_use(lock))
		return;
	if (lock->rule->rest) {
		lock->rule->rest(lock);
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
