/* SPDX-License-Identifier: Apache-2.0 */
#include "core/lock/lock.h"

#include <assert.h>

#include "base/container.h"
#include "base/mem.h"
#include "core/kind/semaphore.h"
#include "core/state.h"
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

static struct lock *lock_new(struct broker *b, struct slice name)
{
	struct lock *lock = mem_new(sizeof(*lock));

	lock->broker = b;
	lock->timer.kind = TIMER_LOCK;
	lock->pause_until_ns = INT64_MIN;
	TAILQ_INIT(&lock->requests);
	TAILQ_INIT(&lock->grants);
	TAILQ_INIT(&lock->lost);
	TAILQ_INIT(&lock->leaving);
	observe_init(&lock->observation);
	TAILQ_INIT(&lock->permits);
	bytes_slice(&lock->name, name);
	TAILQ_INSERT_TAIL(&b->locks_used, lock, link);
	return lock;
}

static void add_path(struct lock *lock)
{
	const struct bytes *path = &lock->directory.path;
	struct map *paths = &lock->broker->paths;

	map_add(paths, &lock->path_node, map_hash(paths, path->data, path->len));
}

static struct lock *lock_new_named(struct broker *b, struct slice name)
{
	struct lock *lock = lock_new(b, name);

	assert(name_valid(name) && flavour_has_place(b->conf, name));
	lock->flavour = flavour_place(b->conf, name, &lock->directory.path);
	map_add(&b->names, &lock->name_node, map_hash(&b->names, name.data, name.len));
	add_path(lock);
	return lock;
}

struct lock *lock_new_part(struct semaphore *s, struct slice name, struct slice path, enum flavour flavour)
{
	struct lock *lock = lock_new(s->broker, name);

	lock->semaphore = s;
	lock->flavour = flavour;
	lock->directory.state = DIRECTORY_FITS; /* the semaphore's own data say what is below */
	bytes_slice(&lock->directory.path, path);
	add_path(lock);
	return lock;
}

static void unlink_lock(struct lock *lock)
{
	struct broker *b = lock->broker;

	if (lock->idle) {
		TAILQ_REMOVE(&b->locks_idle, lock, link);
		b->idle_count--;
	} else {
		TAILQ_REMOVE(&b->locks_used, lock, link);
	}
}

bool lock_in_use(const struct lock *lock)
{
	return lock->request_count || lock->grant_count || lock->claim_count || lock->operations ||
	       lock->observation.count || !TAILQ_EMPTY(&lock->lost);
}

void lock_free(struct lock *lock)
{
	struct broker *b = lock->broker;

	assert(!lock_in_use(lock));
	heap_unset(&b->timers, &lock->timer);
	if (lock->dirty)
		lock_untouch(lock);
	turn_forget(lock);
	if (b->turns.served == lock)
		b->turns.served = NULL;
	unlink_lock(lock);
	if (b->named == lock)
		b->named = NULL;
	if (!lock->semaphore)
		map_remove(&b->names, &lock->name_node);
	map_remove(&b->paths, &lock->path_node);
	bytes_free(&lock->name);
	bytes_free(&lock->directory.path);
	bytes_free(&lock->seen.by);
	bytes_free(&lock->seen.data);
	observe_deinit(&lock->observation);
	mem_free(lock);
}

static bool evict(struct broker *b)
{
	struct lock *oldest = TAILQ_FIRST(&b->locks_idle);

	if (!oldest)
		return false;
	lock_free(oldest);
	return true;
}

bool lock_has_room(struct broker *b)
{
	return b->names.count + b->semaphores.count < b->conf->limits.locks || evict(b);
}

/* A request asks more than once, and an UNLOCK often comes right behind its LOCK. */
struct lock *lock_find(struct broker *b, struct slice name)
{
	if (!b->named || !slice_eq(bytes_view(&b->named->name), name))
		b->named = find(&b->names, name, false);
	return b->named;
}

struct lock *lock_make(struct broker *b, struct slice name)
{
	struct lock *lock = lock_find(b, name);

	if (!lock) {
		if (!lock_has_room(b))
			return NULL;
		lock = b->named = lock_new_named(b, name);
	}
	if (lock->idle) {
		unlink_lock(lock);
		lock->idle = false;
		TAILQ_INSERT_TAIL(&b->locks_used, lock, link);
	}
	lock_touch(lock);
	return lock;
}

struct lock *lock_find_path(struct broker *b, struct slice path)
{
	return find(&b->paths, path, true);
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
	struct broker *b = lock->broker;

	if (lock->idle || lock->dirty || lock_in_use(lock))
		return;
	if (lock->semaphore) {
		semaphore_rest(lock->semaphore);
		return;
	}
	heap_unset(&b->timers, &lock->timer);
	turn_forget(lock);
	lock->relist = false;
	directory_want_nothing(lock);
	unlink_lock(lock);
	lock->idle = true;
	TAILQ_INSERT_TAIL(&b->locks_idle, lock, link);
	if (++b->idle_count > IDLE_LOCKS_MAX)
		evict(b);
}

void lock_remember(struct lock *lock, bool remembered)
{
	if (lock->remembered == remembered)
		return;
	lock->remembered = remembered;
	lock->broker->remembered_count += remembered ? 1 : (size_t)-1;
}

void lock_verified(struct lock *lock)
{
	lock->verified_ns = lock->broker->now_ns;
	if (!lock->remembered)
		return;
	lock->broker->stats.relisted_total++;
	lock_remember(lock, false);
}

void lock_touch(struct lock *lock)
{
	if (lock->dirty)
		return;
	lock->dirty = true;
	TAILQ_INSERT_TAIL(&lock->broker->dirty, lock, dirty_link);
}

void lock_untouch(struct lock *lock)
{
	assert(lock->dirty);
	lock->dirty = false;
	TAILQ_REMOVE(&lock->broker->dirty, lock, dirty_link);
}

void lock_pause(struct lock *lock, int64_t pause_ns)
{
	lock->pause_until_ns = lock->broker->now_ns + pause_ns;
	lock_touch(lock);
}
