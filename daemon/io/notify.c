/* SPDX-License-Identifier: Apache-2.0 */
#include "io/notify.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "io/base/file.h"
#include "io/base/keeper.h"
#include "io/base/socket.h"

/* With the byte 0; and how many descriptors one message may have. */
enum { NOTIFY_STATUS_MAX = KEEPER_TEXT_MAX, NOTIFY_FDS_MAX = 1 };
enum { NOTIFY_ROOM_MS = 1000 }; /* how long what changes the store waits for room */

static const char STORE[] = "FDSTORE", BARRIER[] = "BARRIER=1";
static const char LOSS = '!'; /* is what who waits at a barrier reads, if something before it was lost */

int notify_open(struct notify *n)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	const char *path = getenv("NOTIFY_SOCKET");
	size_t len = path ? strlen(path) : 0;
	int rc = 0;

	*n = (struct notify){ .fd = -1 };
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
	file_close(&n->fd);
}

/* 0 or -errno. */
static int pass_on(const struct notify *n, const char *text, size_t len, const int *fds, size_t fd_count)
{
	const struct iovec part = { (char *)(uintptr_t)text, len };

	if (fd_count > NOTIFY_FDS_MAX)
		return -E2BIG;
	return socket_send(n->fd, &part, 1, fds, fd_count) < 0 ? -errno : 0;
}

static bool begins(const char *text, size_t len, const char *with)
{
	return len >= strlen(with) && memcmp(text, with, strlen(with)) == 0;
}

static int pass_on_in_time(const struct notify *n, const char *text, size_t len, const int *fds, size_t fd_count)
{
	struct pollfd room = { .fd = n->fd, .events = POLLOUT };
	int rc = pass_on(n, text, len, fds, fd_count);

	if (rc == -EAGAIN && poll(&room, 1, NOTIFY_ROOM_MS) == 1)
		rc = pass_on(n, text, len, fds, fd_count);
	return rc;
}

void notify_pass_on(struct notify *n, const char *text, size_t len, const int *fds, size_t fd_count)
{
	bool barrier = begins(text, len, BARRIER);

	if (n->fd < 0)
		return;
	if (!barrier && !begins(text, len, STORE)) {
		pass_on(n, text, len, fds, fd_count);
		return;
	}
	if ((barrier && n->lost) || pass_on_in_time(n, text, len, fds, fd_count) < 0)
		n->lost = true;
	if (!barrier || !n->lost)
		return;
	/* Closed without a word, it would be taken for passed. */
	n->lost = fd_count && write(fds[0], &LOSS, 1) != 1;
}

void notify_send(const struct notify *n, const char *state)
{
	if (n->fd < 0)
		return;
	if (n->keeper)
		keeper_notify(n->keeper, state, -1);
	else
		pass_on(n, state, strlen(state), NULL, 0);
}

void notify_stopping(const struct notify *n, int64_t within_ms)
{
	char state[64];

	snprintf(state, sizeof(state), "STOPPING=1\nEXTEND_TIMEOUT_USEC=%lld", (long long)within_ms * 1000);
	notify_send(n, state);
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

static int send_with(const struct notify *n, const char *state, int fd)
{
	if (n->fd < 0)
		return -ENOTCONN;
	return n->keeper ? keeper_notify(n->keeper, state, fd) : pass_on(n, state, strlen(state), &fd, 1);
}

/* A socket of which the other end is closed would be dropped if the manager looked at its state. */
int notify_store(const struct notify *n, const char *name, int fd)
{
	char state[128];

	snprintf(state, sizeof(state), "FDSTORE=1\nFDNAME=%s\nFDPOLL=0", name);
	return send_with(n, state, fd);
}

void notify_unstore(const struct notify *n, const char *name)
{
	char state[128];

	snprintf(state, sizeof(state), "FDSTOREREMOVE=1\nFDNAME=%s", name);
	notify_send(n, state);
}

int notify_barrier(const struct notify *n, int timeout_ms)
{
	struct pollfd end;
	int fds[2], rc;

	if (pipe2(fds, O_CLOEXEC) < 0)
		return -errno;
	rc = send_with(n, BARRIER, fds[1]);
	close(fds[1]);
	end = (struct pollfd){ .fd = fds[0], .events = POLLIN };
	if (rc == 0 && poll(&end, 1, timeout_ms) != 1)
		rc = -ETIMEDOUT;
	else if (rc == 0 && (end.revents & POLLIN))
		rc = -ENOBUFS;
	close(fds[0]);
	return rc;
}
