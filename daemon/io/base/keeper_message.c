/* SPDX-License-Identifier: Apache-2.0 */
#include "io/base/keeper_message.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "io/base/socket.h"

#define HEADER_BYTES offsetof(struct keeper_message, numbers)

enum { FULL_PAUSE_MS = 1 };

union control {
	struct cmsghdr header;
	char bytes[CMSG_SPACE(KEEPER_BATCH * sizeof(int)) + CMSG_SPACE(sizeof(struct ucred))];
};

int keeper_message_pair(int *ret_keeper, int *ret_worker)
{
	const int yes = 1;
	int fds[2], rc;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) < 0)
		return -errno;
	if (setsockopt(fds[0], SOL_SOCKET, SO_PASSCRED, &yes, sizeof(yes)) < 0) {
		rc = -errno;
		close(fds[0]);
		close(fds[1]);
		return rc;
	}
	*ret_keeper = fds[0];
	*ret_worker = fds[1];
	return 0;
}

void keeper_message_text(struct keeper_message *m, const char *text)
{
	size_t len = strlen(text);

	assert(len <= sizeof(m->numbers));
	memset(m->numbers, 0, sizeof(m->numbers));
	memcpy(m->numbers, text, len);
	m->count = (uint32_t)((len + sizeof(m->numbers[0]) - 1) / sizeof(m->numbers[0]));
}

size_t keeper_message_text_len(const struct keeper_message *m)
{
	return strnlen((const char *)m->numbers, m->count * sizeof(m->numbers[0]));
}

int keeper_message_send_with(int fd, const struct keeper_message *m, const int *fds, size_t fd_count)
{
	const struct iovec part = { (void *)(uintptr_t)m, HEADER_BYTES + m->count * sizeof(m->numbers[0]) };
	ssize_t sent;

	do
		sent = socket_send(fd, &part, 1, fds, fd_count);
	while (sent < 0 && errno == EINTR);
	if (sent >= 0)
		return 0;
	/* More descriptors are under way than this user may have open: some are received meanwhile, and poll() knows nothing. */
	if (errno == ETOOMANYREFS) {
		poll(NULL, 0, FULL_PAUSE_MS);
		return -EAGAIN;
	}
	if (errno == ENOBUFS)
		return -EAGAIN;
	return errno == ECONNRESET ? -EPIPE : -errno;
}

int keeper_message_send(int fd, const struct keeper_message *m, const int *fds)
{
	return keeper_message_send_with(fd, m, fds, fds ? m->count : 0);
}

static void take(struct msghdr *message, struct keeper_message_with *with)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c; c = CMSG_NXTHDR(message, c)) {
		size_t len = c->cmsg_len - CMSG_LEN(0);

		if (c->cmsg_level != SOL_SOCKET)
			continue;
		if (c->cmsg_type == SCM_RIGHTS && len <= sizeof(with->fds)) {
			memcpy(with->fds, CMSG_DATA(c), len);
			with->fd_count = len / sizeof(int);
		} else if (c->cmsg_type == SCM_CREDENTIALS && len == sizeof(struct ucred)) {
			struct ucred who;

			memcpy(&who, CMSG_DATA(c), sizeof(who));
			with->sender = who.pid;
		}
	}
}

static int refuse(struct keeper_message_with *with)
{
	while (with->fd_count)
		close(with->fds[--with->fd_count]);
	return -EBADMSG;
}

int keeper_message_receive(int fd, struct keeper_message *ret, struct keeper_message_with *ret_with)
{
	struct iovec part = { ret, sizeof(*ret) };
	union control control;
	struct msghdr message;
	ssize_t len;

	do {
		message = (struct msghdr){
			.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)
		};
		len = recvmsg(fd, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
		/* The other end was closed before all was read there; what it sent is there all the same. */
	} while (len < 0 && (errno == EINTR || errno == ECONNRESET));
	if (len < 0)
		return -errno;
	ret_with->fd_count = 0;
	ret_with->sender = 0;
	take(&message, ret_with);
	if (len == 0)
		return refuse(ret_with) ? -EPIPE : 0;
	if ((message.msg_flags & MSG_TRUNC) || (size_t)len < HEADER_BYTES || ret->count > KEEPER_BATCH ||
	    (size_t)len != HEADER_BYTES + ret->count * sizeof(ret->numbers[0]) || ret_with->fd_count > ret->count)
		return refuse(ret_with);
	return 0;
}
