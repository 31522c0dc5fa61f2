/* SPDX-License-Identifier: Apache-2.0 */
#include "io/zookeeper/farewell.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include "base/clock.h"

#define FAREWELL_NS (1500 * CLOCK_NS_PER_MS)

/* Waits until the server has closed its side, but not longer than a farewell may take, whatever else the server sends. */
static bool await_end(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	int64_t until_ns = clock_now_ns() + FAREWELL_NS, left_ns;
	char rest[4096];
	ssize_t got = -1;

	while ((left_ns = until_ns - clock_now_ns()) > 0 &&
	       poll(&p, 1, (int)(left_ns / CLOCK_NS_PER_MS) + 1) == 1 && (got = read(fd, rest, sizeof(rest))) > 0)
		;
	return got == 0;
}

/*
 * The library closes the socket as soon as it has read anything. Data that it left unread would make the kernel reset the
 * connection, and the server would lose the farewell; so a copy of the socket stays open until the server has closed it.
 */
bool zk_farewell(zhandle_t *zh, int fd)
{
	bool heard = false;
	int copy = fd >= 0 ? fcntl(fd, F_DUPFD_CLOEXEC, 0) : -1;

	if (zh)
		zookeeper_close(zh);
	if (copy >= 0) {
		heard = await_end(copy);
		close(copy);
	}
	return heard;
}
