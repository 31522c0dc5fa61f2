/* SPDX-License-Identifier: Apache-2.0 */
#include "io/base/unit.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/unit_name.h"

static bool ends_with(struct slice text, const char *end)
{
	size_t len = strlen(end);

	return text.len > len && memcmp(text.data + text.len - len, end, len) == 0;
}

static struct slice cut(struct slice text, size_t from)
{
	return (struct slice){ text.data + from, text.len - from };
}

static struct slice next_until(struct slice *rest, char separator)
{
	const char *end = rest->len ? memchr(rest->data, separator, rest->len) : NULL;
	struct slice part = { rest->data, end ? (size_t)(end - rest->data) : rest->len };

	*rest = cut(*rest, end ? part.len + 1 : part.len);
	return part;
}

/* The characters that systemd.unit(5) allows. */
static bool is_name(struct slice name)
{
	static const char marks[] = ":-_.\\@";

	if (name.len > UNIT_NAME_MAX || (name.len && name.data[0] == '@'))
		return false;
	for (size_t i = 0; i < name.len; i++) {
		char c = name.data[i];

		if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9')) &&
		    (c == '\0' || !strchr(marks, c)))
			return false;
	}
	return name.len > 0;
}

/* The kinds of units that processes are put into, without slices. */
static bool is_unit(struct slice name)
{
	return is_name(name) && (ends_with(name, ".service") || ends_with(name, ".scope") || ends_with(name, ".socket") ||
				 ends_with(name, ".mount") || ends_with(name, ".swap"));
}

/* The path in the hierarchy that systemd uses: the unified one or, on older systems, one of its own. */
static struct slice path_in(struct slice cgroup)
{
	struct slice path = { 0 }, unified = SLICE("0::"), own = SLICE(":name=systemd:");

	while (cgroup.len) {
		struct slice line = next_until(&cgroup, '\n');
		const char *at = line.len ? memmem(line.data, line.len, own.data, own.len) : NULL;

		if (line.len > unified.len + 1 && memcmp(line.data, unified.data, unified.len) == 0)
			return cut(line, unified.len);
		if (at && at < line.data + line.len && memchr(line.data, ':', line.len) == at)
			path = cut(line, (size_t)(at - line.data) + own.len);
	}
	return path;
}

static struct slice below(struct slice path, struct slice root)
{
	bool is_below = root.len && path.len > root.len && memcmp(path.data, root.data, root.len) == 0 &&
			path.data[root.len] == '/';

	return is_below ? cut(path, root.len) : path;
}

struct slice unit_of(struct slice cgroup, struct slice root)
{
	struct slice rest = below(path_in(cgroup), root), part;

	if (!rest.len || rest.data[0] != '/')
		return (struct slice){ 0 };
	rest = cut(rest, 1);
	do
		part = next_until(&rest, '/');
	while (rest.len && is_name(part) && ends_with(part, ".slice"));
	/* Names that the kernel has a use for are written with one more of these. */
	if (part.len && part.data[0] == '_')
		part = cut(part, 1);
	return is_unit(part) ? part : (struct slice){ 0 };
}

static struct slice read_cgroup(pid_t pid, char text[UNIT_CGROUP_MAX])
{
	char path[32];
	ssize_t len;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/cgroup", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return (struct slice){ 0 };
	len = read(fd, text, UNIT_CGROUP_MAX);
	close(fd);
	/* What is cut off could be the line that counts. */
	return (struct slice){ text, len > 0 && len < UNIT_CGROUP_MAX ? (size_t)len : 0 };
}

struct slice unit_root(char text[UNIT_CGROUP_MAX])
{
	struct slice root = path_in(read_cgroup(1, text));

	return ends_with(root, "/init.scope") ? (struct slice){ root.data, root.len - strlen("/init.scope") }
					      : (struct slice){ 0 };
}

struct slice unit_read(pid_t pid, struct slice root, char text[UNIT_CGROUP_MAX])
{
	struct slice cgroup = pid > 0 ? read_cgroup(pid, text) : (struct slice){ 0 };

	return cgroup.len ? unit_of(cgroup, root) : SLICE(UNIT_UNKNOWN);
}
