/* SPDX-License-Identifier: Apache-2.0 */
/* The table of locks: by name and by path; those that nobody uses are remembered for a while. */
#include "core/lock/lock.h"

#include <assert.h>

#include "base/container.h"
#include "base/mem.h"
#include "core/lock/locks.h"
#include "protocol/name.h"

enum { IDLE_LOCKS_MAX = 1024 };

struct lock *lock_of(const struct directory *d)
{
	return container_of(d, struct lock, directory);
}

static struct lock *find(const struct map *names, struct slice name)
{
	struct map_node *node = map_first(names, map_hash(names, name.data, name.len));

	for (; node; node = map_next(node)) {
		struct lock *lock = container_of(node, struct lock, name_node);

		if (slice_eq(bytes_view(&lock->name), name))
			return lock;
	}
	return NULL;
}

static struct lock *lock_new(struct locks *locks, struct slice name)
{
	struct lock *lock = mem_new(sizeof(*lock));

	lock->locks = locks;
	lock->timer.kind = TIMER_LOCK;
	directory_init(&lock->directory, locks->directories);
	TAILQ_INIT(&lock->requests);
	TAILQ_INIT(&lock->grants);
	TAILQ_INIT(&lock->lost);
	bytes_slice(&lock->name, name);
	TAILQ_INSERT_TAIL(&locks->used, lock, link);
	return lock;
}

static struct lock *lock_new_named(struct locks *locks, struct slice name)
{
	struct lock *lock = lock_new(locks, name);

	assert(name_valid(name) && flavour_has_place(locks->env->conf, name));
	lock->rule = locks->rules[KIND_LOCK];
	lock->directory.flavour = flavour_place(locks->env->conf, name, &lock->directory.path);
	map_add(&locks->names, &lock->name_node, map_hash(&locks->names, name.data, name.len));
	directory_add(&lock->directory);
	return lock;
}

struct lock *lock_new_part(struct locks *locks, struct slice name, struct slice path, enum flavour flavour)
{
	struct lock *lock = lock_new(locks, name);

	lock->directory.part = true;
	lock->directory.flavour = flavour;
	lock->directory.state = DIRECTORY_FITS; /* the semaphore's own data say what is below */
	bytes_slice(&lock->directory.path, path);
	directory_add(&lock->directory);
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
	unlink_lock(lock);
	if (locks->named == lock)
		locks->named = NULL;
	if (!lock->semaphore)
		map_remove(&locks->names, &lock->name_node);
	bytes_free(&lock->name);
	directory_deinit(&lock->directory);
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
		locks->named = find(&locks->names, name);
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
	directory_touch(&lock->directory);
	return lock;
}

/* Kept a while: the next LOCK need not make it again, nor read a known directory. */
void lock_rest(struct lock *lock)
{
	struct locks *locks = lock->locks;

	if (lock->idle || lock->directory.touched || lock_in_use(lock))
		return;
	if (lock->rule->rest) {
		lock->rule->rest(lock);
		return;
	}
	heap_unset(&locks->env->timers, &lock->timer);
	turn_forget(&lock->directory);
	lock->directory.relist = false;
	directory_want_nothing(&lock->directory);
	unlink_lock(lock);
	lock->idle = true;
	TAILQ_INSERT_TAIL(&locks->idle, lock, link);
	if (++locks->idle_count > IDLE_LOCKS_MAX)
		evict(locks);
}
