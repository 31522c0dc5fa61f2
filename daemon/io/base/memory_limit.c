/* SPDX-License-Identifier: Apache-2.0 */
#include "io/base/memory_limit.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "io/base/file.h"

enum { FILE_MAX = 16 << 10, PERCENT = 100 };

/* The hierarchy of older systems says by a number of this kind that there is no limit. */
#define LIMIT_MAX (UINT64_C(1) << 56)

/* The hierarchy that has the memory: the unified one or, on older systems, one of its own; its files and words in them. */
static const struct hierarchy {
	const char *mark, *folder, *events, *used, *limit, *cache, *shared;
} hierarchies[] = {
	{ "0::/", "/sys/fs/cgroup", "memory.events", "memory.current", "memory.max", "file ", "shmem " },
	{ ":memory:/", "/sys/fs/cgroup/memory", "memory.oom_control", "memory.usage_in_bytes", "memory.limit_in_bytes",
	  "total_cache ", "total_shmem " },
};

/*
 * The number in that file of the group, in the line that begins with that word. False: there is none. Stdio would take
 * memory for the thread.
 */
static bool number_in(const char *group, const char *file, const char *word, uint64_t *ret)
{
	char path[2 * PATH_MAX], text[FILE_MAX];
	const char *line = text;

	snprintf(path, sizeof(path), "%s/%s", group, file);
	file_read(AT_FDCWD, path, 0, text, sizeof(text));
	while (strncmp(line, word, strlen(word)) != 0) {
		line = strchr(line, '\n');
		if (!line)
			return false;
		line++;
	}
	return sscanf(line + strlen(word), "%" SCNu64, ret) == 1;
}

/* Calls for the folder of this process's group in each hierarchy, and of those around it; false ends that for one. */
static void for_each(const char *root, bool (*call)(const struct hierarchy *h, const char *group, void *arg), void *arg)
{
	char path[PATH_MAX], text[FILE_MAX], group[2 * PATH_MAX];
	char *next, *up;

	snprintf(path, sizeof(path), "%s/proc/self/cgroup", root);
	file_read(AT_FDCWD, path, 0, text, sizeof(text));
	for (char *line = text; *line; line = next) {
		next = line + strcspn(line, "\n");
		if (*next)
			*next++ = '\0';
		for (size_t i = 0; i < sizeof(hierarchies) / sizeof(hierarchies[0]); i++) {
			const struct hierarchy *h = &hierarchies[i];
			const char *at = strstr(line, h->mark);
			int len;

			if (!at || (i == 0 && at != line))
				continue;
			len = snprintf(group, sizeof(group), "%s%s", root, h->folder);
			snprintf(group + len, sizeof(group) - (size_t)len, "%s", at + strlen(h->mark) - 1);
			up = group + len;
			while (call(h, group, arg) && *up)
				*(strrchr(up, '/') ? strrchr(up, '/') : up) = '\0';
		}
	}
}

/* A container may show its own group as the outermost one, under another name than it has. */
static bool add_kills(const struct hierarchy *h, const char *group, void *arg)
{
	uint64_t kills;

	if (!number_in(group, h->events, "oom_kill ", &kills))
		return true;
	*(int64_t *)arg += (int64_t)kills;
	return false;
}

int64_t memory_limit_kills(const char *root)
{
	int64_t count = 0;

	for_each(root, add_kills, &count);
	return count;
}

uint64_t memory_use_percent(const struct memory_use *use)
{
	return use->limit ? use->used * PERCENT / use->limit : 0;
}

static bool read_use(const struct hierarchy *h, const char *group, void *arg)
{
	struct memory_use use = { 0 }, *nearest = arg;
	uint64_t cache = 0, shared = 0;

	if (!number_in(group, h->limit, "", &use.limit) || use.limit >= LIMIT_MAX || !number_in(group, h->used, "", &use.used))
		return true;
	if (memory_use_percent(&use) >= MEMORY_LIMIT_EXACT && number_in(group, "memory.stat", h->cache, &cache) &&
	    number_in(group, "memory.stat", h->shared, &shared) && cache > shared && cache - shared < use.used)
		use.used -= cache - shared;
	if (!nearest->limit || memory_use_percent(&use) > memory_use_percent(nearest))
		*nearest = use;
	return true;
}

bool memory_limit_read(const char *root, struct memory_use *ret)
{
	*ret = (struct memory_use){ 0 };
	for_each(root, read_use, ret);
	return ret->limit;
}
