/* SPDX-License-Identifier: Apache-2.0 */
#include "core/claim/directories.h"

#include <assert.h>

#include "base/container.h"

void directory_init(struct directory *d, struct directories *all, struct lock *lock)
{
	d->directories = all;
	d->lock = lock;
	d->timer.kind = TIMER_DIRECTORY;
	d->pause_until_ns = INT64_MIN;
	TAILQ_INIT(&d->slots);
	TAILQ_INIT(&d->leaving);
}

void directory_deinit(struct directory *d)
{
	struct directories *all = d->directories;

	assert(!d->claim_count && !d->claim && !d->next && TAILQ_EMPTY(&d->slots) && TAILQ_EMPTY(&d->leaving));
	assert(!d->facts && !d->operations);
	if (d->touched)
		directory_untouch(d);
	heap_unset(&all->env->timers, &d->timer);
	turn_forget(d);
	if (all->turns.served == d)
		all->turns.served = NULL;
	map_remove(&all->paths, &d->path_node);
	bytes_free(&d->failure.sentence);
	bytes_free(&d->seen.by);
	bytes_free(&d->seen.data);
	bytes_free(&d->path);
}

void directory_add(struct directory *d)
{
	struct map *paths = &d->directories->paths;

	map_add(paths, &d->path_node, map_hash(paths, d->path.data, d->path.len));
}

struct directory *directory_find(const struct directories *all, struct slice path)
{
	struct map_node *node = map_first(&all->paths, map_hash(&all->paths, path.data, path.len));

	for (; node; node = map_next(node)) {
		struct directory *d = container_of(node, struct directory, path_node);

		if (slice_eq(bytes_view(&d->path), path))
			return d;
	}
	return NULL;
}

void directory_touch(struct directory *d)
{
	if (d->touched)
		return;
	d->touched = true;
	TAILQ_INSERT_TAIL(&d->directories->touched, d, touched_link);
}

void directory_untouch(struct directory *d)
{
	assert(d->touched);
	d->touched = false;
	TAILQ_REMOVE(&d->directories->touched, d, touched_link);
}

void directory_pause(struct directory *d, int64_t pause_ns)
{
	d->pause_until_ns = d->directories->env->now_ns + pause_ns;
	directory_touch(d);
}

bool directory_may_send(const struct directory *d)
{
	return d->directories->ensemble->session.connected && d->directories->env->now_ns >= d->pause_until_ns;
}

void directory_remember(struct directory *d, bool remembered)
{
	if (d->remembered == remembered)
		return;
	d->remembered = remembered;
	d->directories->remembered_count += remembered ? 1 : (size_t)-1;
}

void directory_verified(struct directory *d)
{
	d->verified_ns = d->directories->env->now_ns;
	if (!d->remembered)
		return;
	d->directories->env->stats.relisted_total++;
	directory_remember(d, false);
}
