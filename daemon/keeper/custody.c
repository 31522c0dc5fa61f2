/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/custody.h"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/container.h"
#include "base/map.h"
#include "base/mem.h"
#include "io/base/keeper_message.h"

struct kept {
	struct map_node node;
	uint64_t id;
	size_t at; /* its place in `all` */
	int fd;
};

struct custody {
	struct map ids;
	struct kept **all;
	size_t count, cap, max;
};

static struct kept *find(const struct custody *c, uint64_t id)
{
	uint64_t hash = map_hash(&c->ids, &id, sizeof(id));
	struct kept *k;

	MAP_FOREACH(k, &c->ids, hash, node)
		if (k->id == id)
			return k;
	return NULL;
}

static void end(struct custody *c, struct kept *k)
{
	map_remove(&c->ids, &k->node);
	c->all[k->at] = c->all[--c->count];
	c->all[k->at]->at = k->at;
	close(k->fd);
	mem_free(k);
}

static void add(struct custody *c, uint64_t id, int fd)
{
	struct kept *k = mem_new(sizeof(*k));

	if (c->count == c->cap) {
		c->cap = c->cap ? 2 * c->cap : 64;
		c->all = mem_resize(c->all, c->cap * sizeof(struct kept *));
	}
	*k = (struct kept){ .id = id, .at = c->count, .fd = fd };
	c->all[c->count++] = k;
	map_add(&c->ids, &k->node, map_hash(&c->ids, &id, sizeof(id)));
}

struct custody *custody_new(size_t max)
{
	struct custody *c = mem_new(sizeof(*c));
	uint64_t key[2] = { 0 };

	/* Without randomness at hand the table is as good: ids are the worker's. */
	if (getrandom(key, sizeof(key), GRND_NONBLOCK) < 0)
		key[0] = 1;
	map_init(&c->ids, key[0], key[1]);
	c->max = max;
	return c;
}

void custody_free(struct custody *c)
{
	if (!c)
		return;
	while (c->count)
		end(c, c->all[c->count - 1]);
	map_deinit(&c->ids);
	mem_free(c->all);
	mem_free(c);
}

bool custody_put(struct custody *c, uint64_t id, int fd)
{
	struct kept *k = find(c, id);

	if (k) {
		close(k->fd);
		k->fd = fd;
	} else if (c->count >= c->max) {
		close(fd);
		return false;
	} else {
		add(c, id, fd);
	}
	return true;
}

void custody_drop(struct custody *c, uint64_t id)
{
	struct kept *k = find(c, id);

	if (k)
		end(c, k);
}

size_t custody_count(const struct custody *c)
{
	return c->count;
}

int custody_at(const struct custody *c, size_t at, uint64_t *ret_id)
{
	*ret_id = c->all[at]->id;
	return c->all[at]->fd;
}

size_t custody_end_connections(struct custody *c)
{
	size_t ended = 0;

	for (size_t at = c->count; at-- > 0;) {
		struct kept *k = c->all[at];

		if (k->id & KEEPER_ROLE)
			continue;
		shutdown(k->fd, SHUT_RDWR);
		end(c, k);
		ended++;
	}
	return ended;
}

void custody_inherit(const struct custody *c, bool inherit)
{
	for (size_t at = 0; at < c->count; at++)
		fcntl(c->all[at]->fd, F_SETFD, inherit ? 0 : FD_CLOEXEC);
}
