/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/descriptors.h"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/container.h"
#include "base/map.h"
#include "base/mem.h"
#include "io/base/keeper_message.h"

struct descriptor {
	struct map_node node;
	uint64_t id;
	size_t at; /* its place in `all` */
	int fd;
};

struct descriptors {
	struct map ids;
	struct descriptor **all;
	size_t count, cap, max;
};

static struct descriptor *find(const struct descriptors *d, uint64_t id)
{
	uint64_t hash = map_hash(&d->ids, &id, sizeof(id));
	struct descriptor *k;

	MAP_FOREACH(k, &d->ids, hash, node)
		if (k->id == id)
			return k;
	return NULL;
}

static void end(struct descriptors *d, struct descriptor *k)
{
	map_remove(&d->ids, &k->node);
	d->all[k->at] = d->all[--d->count];
	d->all[k->at]->at = k->at;
	close(k->fd);
	mem_free(k);
}

static void add(struct descriptors *d, uint64_t id, int fd)
{
	struct descriptor *k = mem_new(sizeof(*k));

	d->all = mem_room(d->all, d->count, &d->cap, sizeof(struct descriptor *));
	*k = (struct descriptor){ .id = id, .at = d->count, .fd = fd };
	d->all[d->count++] = k;
	map_add(&d->ids, &k->node, map_hash(&d->ids, &id, sizeof(id)));
}

struct descriptors *descriptors_new(size_t max)
{
	struct descriptors *d = mem_new(sizeof(*d));
	uint64_t key[2] = { 0 };

	/* Without randomness at hand the table is as good: ids are the worker's. */
	if (getrandom(key, sizeof(key), GRND_NONBLOCK) < 0)
		key[0] = 1;
	map_init(&d->ids, key[0], key[1]);
	d->max = max;
	return d;
}

void descriptors_free(struct descriptors *d)
{
	if (!d)
		return;
	while (d->count)
		end(d, d->all[d->count - 1]);
	map_deinit(&d->ids);
	mem_free(d->all);
	mem_free(d);
}

bool descriptors_put(struct descriptors *d, uint64_t id, int fd)
{
	struct descriptor *k = find(d, id);

	if (k) {
		close(k->fd);
		k->fd = fd;
	} else if (d->count >= d->max) {
		close(fd);
		return false;
	} else {
		add(d, id, fd);
	}
	return true;
}

void descriptors_drop(struct descriptors *d, uint64_t id)
{
	struct descriptor *k = find(d, id);

	if (k)
		end(d, k);
}

size_t descriptors_count(const struct descriptors *d)
{
	return d->count;
}

int descriptors_at(const struct descriptors *d, size_t at, uint64_t *ret_id)
{
	*ret_id = d->all[at]->id;
	return d->all[at]->fd;
}

size_t descriptors_end_connections(struct descriptors *d)
{
	size_t ended = 0;

	for (size_t at = d->count; at-- > 0;) {
		struct descriptor *k = d->all[at];

		if (k->id & KEEPER_ROLE)
			continue;
		shutdown(k->fd, SHUT_RDWR);
		end(d, k);
		ended++;
	}
	return ended;
}

void descriptors_inherit(const struct descriptors *d, bool inherit)
{
	for (size_t at = 0; at < d->count; at++)
		fcntl(d->all[at]->fd, F_SETFD, inherit ? 0 : FD_CLOEXEC);
}
