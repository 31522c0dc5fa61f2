/* SPDX-License-Identifier: Apache-2.0 */
#include "io/zookeeper/paths.h"

#include <string.h>
#include <sys/random.h>
#include <zookeeper/zookeeper.h>

#include "base/container.h"
#include "base/mem.h"

void zk_paths_init(struct zk_paths *p)
{
	uint64_t key[2] = { 0, 0 };

	/* Without random numbers the table still works. */
	if (getrandom(key, sizeof(key), GRND_NONBLOCK) < 0)
		key[0] = 1;
	map_init(&p->map, key[0], key[1]);
	TAILQ_INIT(&p->list);
}

static struct zk_path *find(const struct zk_paths *p, const char *path, uint64_t hash)
{
	struct zk_path *found;

	MAP_FOREACH(found, &p->map, hash, node)
		if (strcmp(found->path, path) == 0)
			return found;
	return NULL;
}

static void forget(struct zk_paths *p, struct zk_path *found)
{
	map_remove(&p->map, &found->node);
	TAILQ_REMOVE(&p->list, found, entry);
	mem_free(found);
}

void zk_paths_add(struct zk_paths *p, const char *path, unsigned int kind)
{
	size_t len = strlen(path);
	uint64_t hash = map_hash(&p->map, path, len);
	struct zk_path *found = find(p, path, hash);

	if (!found) {
		found = mem_new(sizeof(*found) + len + 1);
		memcpy(found->path, path, len + 1);
		map_add(&p->map, &found->node, hash);
		TAILQ_INSERT_TAIL(&p->list, found, entry);
	}
	found->kinds |= kind;
}

void zk_paths_remove(struct zk_paths *p, const char *path, unsigned int kinds)
{
	struct zk_path *found = find(p, path, map_hash(&p->map, path, strlen(path)));

	if (!found)
		return;
	found->kinds &= ~kinds;
	if (!found->kinds)
		forget(p, found);
}

bool zk_paths_fired(struct zk_paths *p, const char *path, int type, enum zk_watch *ret)
{
	const struct {
		int type;
		enum zk_watch watch;
		unsigned int kinds;
	} events[] = {
		{ ZOO_CREATED_EVENT, ZK_WATCH_CREATED, ZK_PATH_DATA | ZK_PATH_CHILDREN },
		{ ZOO_DELETED_EVENT, ZK_WATCH_DELETED, ZK_PATH_DATA | ZK_PATH_CHILDREN },
		{ ZOO_CHANGED_EVENT, ZK_WATCH_CHANGED, ZK_PATH_DATA },
		{ ZOO_CHILD_EVENT, ZK_WATCH_CHILDREN, ZK_PATH_CHILDREN },
	};

	for (size_t i = 0; i < sizeof(events) / sizeof(events[0]); i++) {
		if (events[i].type != type)
			continue;
		*ret = events[i].watch;
		zk_paths_remove(p, path, events[i].kinds);
		return true;
	}
	return false;
}

void zk_paths_clear(struct zk_paths *p, void (*each)(void *arg, const char *path), void *arg)
{
	struct zk_path *first;

	while ((first = TAILQ_FIRST(&p->list))) {
		if (each)
			each(arg, first->path);
		forget(p, first);
	}
}

void zk_paths_deinit(struct zk_paths *p)
{
	zk_paths_clear(p, NULL, NULL);
	map_deinit(&p->map);
}
