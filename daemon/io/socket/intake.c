/* SPDX-License-Identifier: Apache-2.0 */
#include "io/socket/intake.h"

#include <sys/uio.h>

/* Added in Linux 6.16 and 6.5; the C library's headers may be older. */
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

	/* A connection inherits the option of its listener. On earlier kernels getsockopt() fails. */
	if (getsockopt(fd, SOL_SOCKET, SO_PASSRIGHTS, &passes, &len) == 0 && !passes)
		return false;
	set(fd, SO_OOBINLINE, 1);
	/* A listener may have set these. Then reads would bring control data, which look() would take for descriptors. */
	set(fd, SO_PASSCRED, 0);
	set(fd, SO_PASSSEC, 0);
	set(fd, SO_PASSPIDFD, 0);
	return true;
}

/* There is no room for control data, so the kernel passes no descriptor, and reports one by MSG_CTRUNC. */
static ssize_t look(int fd, void *bytes, size_t size)
{
	struct iovec part = { bytes, size };
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };
	ssize_t len = recvmsg(fd, &message, MSG_PEEK | MSG_DONTWAIT);

	return len > 0 && (message.msg_flags & MSG_CTRUNC) ? INTAKE_BRINGS : len;
}

ssize_t intake_read_open(int fd, void *bytes, size_t size)
{
	ssize_t len = look(fd, bytes, size);

	return len <= 0 ? len : recv(fd, bytes, (size_t)len, 0);
}

bool intake_empty(int fd)
{
	char bytes[PART_BYTES];
	ssize_t len;

	do {
		len = intake_read_open(fd, bytes, sizeof(bytes));
	} while (len > 0);
	return len != INTAKE_BRINGS;
}
