/* SPDX-License-Identifier: Apache-2.0 */
#include "core/lock/leftover.h"

#include <assert.h>

#include "core/lock/locks.h"

static int64_t after_ns(const struct lock *lock)
{
	return flavour_remove_idle_ns(lock->locks->env->conf, bytes_view(&lock->name));
}

void leftover_arm(struct lock *lock)
{
	int64_t idle_ns = after_ns(lock);

	if (idle_ns)
		heap_set(&lock->locks->env->timers, &lock->directory.timer, lock->locks->env->now_ns + idle_ns);
}

bool leftover_is_known(struct lock *lock, bool full)
{
	struct directory *d = &lock->directory;
	bool refused = d->refused;

	d->refused = false;
	if (d->flavour != FLAVOUR_KAZOO || lock->locks->env->conf->standalone)
		return true;
	if (!refused || !full)
		return d->state != DIRECTORY_UNKNOWN;
	lock->locks->env->stats.directories_left_total++;
	return false;
}

void leftover_restore(struct lock *lock)
{
	struct directory *d = &lock->directory;

	assert(lock->idle && !d->left);
	d->left = d->flavour == FLAVOUR_KAZOO && d->state == DIRECTORY_FITS;
	d->directories->left_count += d->left;
}

void leftover_park(struct lock *lock)
{
	leftover_restore(lock);
	if (lock->directory.left)
		leftover_arm(lock);
}

void leftover_forget(struct lock *lock)
{
	struct directory *d = &lock->directory;

	if (!d->left)
		return;
	d->left = false;
	d->directories->left_count--;
	heap_unset(&lock->locks->env->timers, &d->timer);
}

bool leftover_is_due(const struct lock *lock)
{
	return lock->directory.left && !lock->directory.timer.place && after_ns(lock);
}

bool leftover_may_go(const struct lock *lock)
{
	return lock->directory.left && after_ns(lock) && turn_is_free(lock->directory.directories);
}
