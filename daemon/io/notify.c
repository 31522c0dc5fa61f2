/* SPDX-License-Identifier: Apache-2.0 */
#include "io/notify.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { NOTIFY_STATUS_MAX = 512 };

int notify_open(struct notify *n)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	const char *path = getenv("NOTIFY_SOCKET");
	size_t len = path ? strlen(path) : 0;
	int rc = 0;

	n->fd = -1;
	if (len == 0)
		return 0;
	if ((path[0] != '/' && path[0] != '@') || len >= sizeof(addr.sun_path))
		return -EINVAL;
	memcpy(addr.sun_path, path, len);
	if (path[0] == '@')
		addr.sun_path[0] = '\0';
	n->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (n->fd < 0)
		return -errno;
	if (connect(n->fd, (const struct sockaddr *)&addr, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len)) <
	    0) {
		rc = -errno;
		notify_close(n);
	}
	unsetenv("NOTIFY_SOCKET");
	return rc;
}

void notify_close(struct notify *n)
{
	if (n->fd >= 0)
		close(n->fd);
	n->fd = -1;
}

void notify_send(const struct notify *n, const char *state)
{
	ssize_t sent;

	if (n->fd < 0)
		return;
	sent = send(n->fd, state, strlen(state), MSG_NOSIGNAL);
	(void)sent;
}

void notify_main_pid(const struct notify *n, pid_t pid)
{
	char state[64];

	snprintf(state, sizeof(state), "MAINPID=%ld", (long)pid);
	notify_send(n, state);
}

void notify_status(const struct notify *n, const char *text, int len)
{
	char state[NOTIFY_STATUS_MAX];
	size_t i;

	if (n->fd < 0)
		return;
	snprintf(state, sizeof(state), "STATUS=%.*s", len, text);
	for (i = 0; state[i]; i++)
		if ((unsigned char)state[i] < 0x20)
			state[i] = ' ';
	notify_send(n, state);
}
