/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/limit.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

enum { LINE_MAX_BYTES = PATH_MAX + 64 };

/* The hierarchy that has the memory: the unified one or, on older systems, one of its own; and the file that counts. */
static const struct {
	const char *mark, *root, *file;
} hierarchies[] = {
	{ "0::/", "/sys/fs/cgroup", "memory.events" },
	{ ":memory:/", "/sys/fs/cgroup/memory", "memory.oom_control" },
};

static int64_t count_in(const char *path)
{
	FILE *f = fopen(path, "re");
	char line[64];
	long count = 0;

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "oom_kill %ld", &count) == 1)
			break;
	if (f)
		fclose(f);
	return count;
}

int64_t limit_kills(void)
{
	char line[LINE_MAX_BYTES], path[LINE_MAX_BYTES + 128];
	FILE *f = fopen("/proc/self/cgroup", "re");
	int64_t count = 0;

	while (f && fgets(line, sizeof(line), f))
		for (size_t i = 0; i < sizeof(hierarchies) / sizeof(hierarchies[0]); i++) {
			const char *at = strstr(line, hierarchies[i].mark);

			line[strcspn(line, "\n")] = '\0';
			if (!at || (i == 0 && at != line))
				continue;
			snprintf(path, sizeof(path), "%s%s/%s", hierarchies[i].root,
				 at + strlen(hierarchies[i].mark) - 1, hierarchies[i].file);
			count += count_in(path);
		}
	if (f)
		fclose(f);
	return count;
}
