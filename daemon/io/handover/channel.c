/* SPDX-License-Identifier: Apache-2.0 */
#include "io/handover/channel.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "io/base/file.h"
#include "io/base/parcel.h"
#include "io/base/socket.h"

enum { SEALS = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE };

static int write_all(int fd, struct slice text)
{
	while (text.len > 0) {
		ssize_t n = write(fd, text.data, text.len);

		if (n < 0 && errno != EINTR)
			return -errno;
		if (n > 0)
			text = (struct slice){ text.data + n, text.len - (size_t)n };
	}
	return 0;
}

int sealed_make(struct slice text, int *ret)
{
	int fd = memfd_create("lockbroker", MFD_CLOEXEC | MFD_ALLOW_SEALING), rc;

	*ret = -1;
	if (fd < 0)
		return -errno;
	rc = write_all(fd, text);
	if (rc == 0 && fcntl(fd, F_ADD_SEALS, SEALS) < 0)
		rc = -errno;
	if (rc < 0)
		close(fd);
	else
		*ret = fd;
	return rc;
}

int sealed_map(int fd, int64_t bytes_max, struct parcel *ret)
{
	int seals = fcntl(fd, F_GET_SEALS);
	struct stat st;
	void *data;

	if (seals < 0 || (seals & SEALS) != SEALS || fstat(fd, &st) < 0 || st.st_size > bytes_max)
		return -EBADMSG;
	if (st.st_size == 0)
		return 0;
	data = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE | MAP_POPULATE, fd, 0);
	if (data == MAP_FAILED)
		return -errno;
	ret->text = (struct bytes){ .data = data, .len = (size_t)st.st_size };
	ret->text_is_mapped = true;
	return 0;
}

enum { CHANNEL_MAGIC = 0x4c42484f, FULL_PAUSE_MS = 1 };

struct header {
	uint32_t magic, kind;
};

struct sizes {
	int64_t bytes, fds;
};

union control {
	struct cmsghdr header;
	char bytes[CMSG_SPACE(CHANNEL_PART_FDS * sizeof(int))];
};

int channel_pair(int ret_fds[2])
{
	return socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ret_fds) < 0 ? -errno : 0;
}

/* 0: something may have become possible. */
static int wait_for(int fd, short what, int64_t until_ns)
{
	struct pollfd p = { .fd = fd, .events = what };
	int64_t left_ns = until_ns - clock_now_ns();
	int timeout_ms = -1, rc;

	if (until_ns != CHANNEL_FOREVER) {
		if (left_ns <= 0)
			return -ETIMEDOUT;
		timeout_ms = left_ns > CLOCK_NS_PER_S ? 1000 : (int)(left_ns / CLOCK_NS_PER_MS) + 1;
	}
	rc = poll(&p, 1, timeout_ms);
	return rc < 0 && errno != EINTR ? -errno : 0;
}

/* More descriptors are under way than this user may have open: some are received meanwhile. */
static int wait_for_room(int64_t until_ns)
{
	if (clock_now_ns() >= until_ns)
		return -ETIMEDOUT;
	poll(NULL, 0, FULL_PAUSE_MS);
	return 0;
}

static int send_with(int fd, enum channel_kind kind, struct slice text, const int *fds, size_t fd_count,
		     int64_t until_ns)
{
	struct header header = { .magic = CHANNEL_MAGIC, .kind = kind };
	const struct iovec parts[] = { { &header, sizeof(header) }, { (void *)(uintptr_t)text.data, text.len } };
	int rc = 0;

	while (socket_send(fd, parts, 2, fds, fd_count) < 0) {
		if (errno == EAGAIN || errno == ENOBUFS)
			rc = wait_for(fd, POLLOUT, until_ns);
		else if (errno == ETOOMANYREFS)
			rc = wait_for_room(until_ns);
		else if (errno != EINTR)
			rc = -errno;
		if (rc < 0)
			return rc == -ECONNRESET ? -EPIPE : rc;
	}
	return 0;
}

int channel_send(int fd, enum channel_kind kind, struct slice text, int64_t until_ns)
{
	if (text.len > CHANNEL_TEXT_MAX)
		text.len = CHANNEL_TEXT_MAX;
	return send_with(fd, kind, text, NULL, 0, until_ns);
}

static size_t min(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* The parts, each with at most so many descriptors. */
static int send_parts(int fd, const int *fds, size_t count, int64_t until_ns)
{
	int rc = 0;

	for (size_t sent = 0; rc == 0 && sent < count; sent += CHANNEL_PART_FDS)
		rc = send_with(fd, CHANNEL_PART, SLICE(""), fds + sent, min(count - sent, CHANNEL_PART_FDS), until_ns);
	return rc;
}

int channel_send_parcel(int fd, const struct parcel *p, int64_t until_ns)
{
	struct sizes sizes = { .bytes = (int64_t)p->text.len, .fds = (int64_t)p->fd_count };
	size_t count = p->fd_count + (p->text.len > 0);
	int text = -1, *fds, rc;

	if (sizes.bytes > CHANNEL_BYTES_MAX || sizes.fds > CHANNEL_FDS_MAX)
		return -EMSGSIZE;
	rc = p->text.len ? sealed_make(bytes_view(&p->text), &text) : 0;
	if (rc < 0)
		return rc;
	fds = mem_new_array(count + 1, sizeof(*fds));
	fds[0] = text;
	if (p->fd_count)
		memcpy(fds + (count - p->fd_count), p->fds, p->fd_count * sizeof(*fds));
	rc = channel_send(fd, CHANNEL_PARCEL, (struct slice){ (const char *)&sizes, sizeof(sizes) }, until_ns);
	if (rc == 0)
		rc = send_parts(fd, fds, count, until_ns);
	mem_free(fds);
	file_close(&text);
	return rc;
}

/* The descriptors of the message go to `fds`, if there is room for all of them; else they are closed. */
static int take_fds(struct msghdr *message, int *fds, size_t room, size_t *ret_count)
{
	size_t total = 0;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c; c = CMSG_NXTHDR(message, c)) {
		size_t count = c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS
				       ? (c->cmsg_len - CMSG_LEN(0)) / sizeof(int)
				       : 0;

		for (size_t i = 0; i < count; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(c) + i * sizeof(fd), sizeof(fd));
			if (total < room)
				fds[total] = fd;
			else
				close(fd);
			total++;
		}
	}
	*ret_count = min(total, room);
	if (message->msg_flags & MSG_CTRUNC)
		return -EMFILE;
	return total > room || (message->msg_flags & MSG_TRUNC) ? -EBADMSG : 0;
}

/* The length of the text, or -errno. */
static ssize_t receive_with(int fd, enum channel_kind *ret_kind, char *text, size_t size, int *fds, size_t *fd_count,
			    int64_t until_ns)
{
	struct header header = { 0 };
	struct iovec parts[] = { { &header, sizeof(header) }, { text, size } };
	union control control;
	size_t room = *fd_count;
	struct msghdr message;
	ssize_t len;
	int rc = 0;

	*fd_count = 0;
	do {
		message = (struct msghdr){
			.msg_iov = parts, .msg_iovlen = 2, .msg_control = &control, .msg_controllen = sizeof(control)
		};
		len = recvmsg(fd, &message, MSG_CMSG_CLOEXEC);
		if (len < 0 && errno == EAGAIN)
			rc = wait_for(fd, POLLIN, until_ns);
		/* The other end was closed before all was read there; what it sent is there all the same. */
		else if (len < 0 && errno != EINTR && errno != ECONNRESET)
			rc = -errno;
	} while (len < 0 && rc == 0);
	if (rc < 0)
		return rc;
	rc = take_fds(&message, fds, room, fd_count);
	if (rc < 0)
		return rc;
	if (len == 0)
		return -EPIPE;
	if ((size_t)len < sizeof(header) || header.magic != CHANNEL_MAGIC)
		return -EBADMSG;
	*ret_kind = (enum channel_kind)header.kind;
	return len - (ssize_t)sizeof(header);
}

int channel_receive(int fd, struct channel_message *ret, int64_t until_ns)
{
	size_t none = 0;
	ssize_t len = receive_with(fd, &ret->kind, ret->text, sizeof(ret->text), NULL, &none, until_ns);

	ret->len = len < 0 ? 0 : (size_t)len;
	return len < 0 ? (int)len : 0;
}

static int receive_part(int fd, struct parcel *p, size_t count, int64_t until_ns)
{
	size_t fds = min(count - p->fd_count, CHANNEL_PART_FDS);
	enum channel_kind kind;
	ssize_t len;

	len = receive_with(fd, &kind, NULL, 0, p->fds + p->fd_count, &fds, until_ns);
	p->fd_count += fds;
	if (len < 0)
		return (int)len;
	return kind == CHANNEL_PART && fds > 0 ? 0 : -EBADMSG;
}

/* The first descriptor is the text. */
static int take_text(struct parcel *p, int64_t bytes)
{
	int text = p->fds[0], rc;

	p->fd_count--;
	memmove(p->fds, p->fds + 1, p->fd_count * sizeof(*p->fds));
	rc = sealed_map(text, bytes, p);
	close(text);
	return rc == 0 && (int64_t)p->text.len != bytes ? -EBADMSG : rc;
}

int channel_receive_parcel(int fd, const struct channel_message *announced, struct parcel *p, int64_t until_ns)
{
	struct sizes sizes;
	size_t count;
	int rc = 0;

	*p = (struct parcel){ 0 };
	if (announced->kind != CHANNEL_PARCEL || announced->len != sizeof(sizes))
		return -EBADMSG;
	memcpy(&sizes, announced->text, sizeof(sizes));
	if (sizes.bytes < 0 || sizes.bytes > CHANNEL_BYTES_MAX || sizes.fds < 0 || sizes.fds > CHANNEL_FDS_MAX)
		return -EBADMSG;
	count = (size_t)sizes.fds + (sizes.bytes > 0);
	p->fd_cap = count + 1;
	p->fds = mem_new_array(p->fd_cap, sizeof(*p->fds));
	while (rc == 0 && p->fd_count < count)
		rc = receive_part(fd, p, count, until_ns);
	return rc == 0 && sizes.bytes > 0 ? take_text(p, sizes.bytes) : rc;
}

enum {
	QUEUE_BYTES = 1 << 24, /* room for as many messages as a million descriptors need */
};

/* Without the right to more, as much as everybody may have. */
static void make_room(int fd)
{
	const int bytes = QUEUE_BYTES;

	if (setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &bytes, sizeof(bytes)) < 0)
		setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
}

int store_make(const struct parcel *p, struct store *ret, int *ret_kept)
{
	const struct parcel fds = { .fds = p->fds, .fd_count = p->fd_count };
	int ends[2] = { -1, -1 }, rc;

	*ret = (struct store){ .text = -1, .queue = -1 };
	*ret_kept = -1;
	rc = sealed_make(bytes_view(&p->text), &ret->text);
	if (rc == 0)
		rc = channel_pair(ends);
	if (rc < 0) {
		store_close(ret);
		return rc;
	}
	ret->queue = ends[1];
	make_room(ends[0]);
	rc = channel_send_parcel(ends[0], &fds, 0);
	if (rc < 0) {
		close(ends[0]);
		store_close(ret);
		return rc;
	}
	*ret_kept = ends[0];
	return 0;
}

int store_read(const struct store *s, struct parcel *ret)
{
	struct channel_message m;
	int rc;

	*ret = (struct parcel){ 0 };
	rc = channel_receive(s->queue, &m, 0);
	if (rc == 0)
		rc = channel_receive_parcel(s->queue, &m, ret, 0);
	if (rc == 0)
		rc = ret->text.len == 0 ? sealed_map(s->text, CHANNEL_BYTES_MAX, ret) : -EBADMSG;
	/* All of it is there before somebody reads it. */
	return rc == -ETIMEDOUT || rc == -EPIPE ? -EBADMSG : rc;
}

void store_close(struct store *s)
{
	file_close(&s->text);
	file_close(&s->queue);
	*s = (struct store){ .text = -1, .queue = -1 };
}
