/* SPDX-License-Identifier: Apache-2.0 */
#include "io/base/socket.h"

#include <assert.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "protocol/number.h"

ssize_t socket_send(int fd, const struct iovec *parts, size_t part_count, const int *fds, size_t fd_count)
{
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(SOCKET_FDS_MAX * sizeof(int))];
	} control;
	struct msghdr message = { .msg_iov = (struct iovec *)(uintptr_t)parts, .msg_iovlen = part_count };
	size_t len = fd_count * sizeof(int);

	assert(fd_count <= SOCKET_FDS_MAX);
	if (len) {
		memset(&control, 0, CMSG_SPACE(len));
		control.header.cmsg_level = SOL_SOCKET;
		control.header.cmsg_type = SCM_RIGHTS;
		control.header.cmsg_len = CMSG_LEN(len);
		memcpy(CMSG_DATA(&control.header), fds, len);
		message.msg_control = &control;
		message.msg_controllen = CMSG_SPACE(len);
	}
	return sendmsg(fd, &message, MSG_NOSIGNAL);
}

static int option(int fd, int name)
{
	socklen_t len = sizeof(int);
	int value;

	return getsockopt(fd, SOL_SOCKET, name, &value, &len) < 0 ? -1 : value;
}

bool socket_is_stream(int fd, bool listens)
{
	return option(fd, SO_DOMAIN) == AF_UNIX && option(fd, SO_TYPE) == SOCK_STREAM &&
	       option(fd, SO_ACCEPTCONN) == listens;
}

int socket_inherited(const char *variable)
{
	const char *text = getenv(variable);
	int64_t fd = -1;

	if (!text)
		return -1;
	number_parse(slice_of(text), &fd);
	unsetenv(variable);
	if (fd <= STDERR_FILENO || fd > INT32_MAX || option((int)fd, SO_TYPE) != SOCK_SEQPACKET ||
	    fcntl((int)fd, F_SETFD, FD_CLOEXEC) < 0)
		return -1;
	return (int)fd;
}
