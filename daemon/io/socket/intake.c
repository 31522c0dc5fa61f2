/* SPDX-License-Identifier: Apache-2.0 */
#include "io/socket/intake.h"

#include <sys/socket.h>
#include <sys/uio.h>

/* Of Linux 6.16 and 6.5; the C library's headers may be older. */
#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83
#endif
#ifndef SO_PASSPIDFD
#define SO_PASSPIDFD 76
#endif

enum { PART_BYTES = 8192 };

static void set(int fd, int option, int value)
{
	setsockopt(fd, SOL_SOCKET, option, &value, sizeof(value));
}

void intake_close(int listener)
{
	set(listener, SO_PASSRIGHTS, 0);
}

bool intake_is_open(int fd)
{
	socklen_t len = sizeof(int);
	int passes = 1;

	/* A connection has what its listener had when it began. Earlier kernels do not know the option. */
	if (getsockopt(fd, SOL_SOCKET, SO_PASSRIGHTS, &passes, &len) == 0 && !passes)
		return false;
	set(fd, SO_OOBINLINE, 1);
	/* For each of these the kernel would have something beside all bytes, if the listener was made so. */
	set(fd, SO_PASSCRED, 0);
	set(fd, SO_PASSSEC, 0);
	set(fd, SO_PASSPIDFD, 0);
	return true;
}

/* Without room for descriptors, the kernel only says that there are some. */
static ssize_t look(int fd, void *bytes, size_t size, bool *ret_brings)
{
	struct iovec part = { bytes, size };
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };
	ssize_t len = recvmsg(fd, &message, MSG_PEEK | MSG_DONTWAIT);

	*ret_brings = len > 0 && (message.msg_flags & MSG_CTRUNC);
	return len;
}

ssize_t intake_read(int fd, bool open, void *bytes, size_t size, bool *ret_brings)
{
	ssize_t len;

	*ret_brings = false;
	if (!open)
		return recv(fd, bytes, size, 0);
	len = look(fd, bytes, size, ret_brings);
	return len <= 0 || *ret_brings ? len : recv(fd, bytes, (size_t)len, 0);
}

bool intake_empty(int fd)
{
	char bytes[PART_BYTES];
	bool brings;

	while (intake_read(fd, true, bytes, sizeof(bytes), &brings) > 0 && !brings)
		continue;
	return !brings;
}
