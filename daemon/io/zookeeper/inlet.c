/* SPDX-License-Identifier: Apache-2.0 */
#include "io/zookeeper/inlet.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/socket.h>
#include <unistd.h>

#include "io/zookeeper/answer.h"

enum {
	SEEN_BYTES = 64 << 10,
	TAKEN_BYTES = 256 << 10, /* at a time: others on the loop have their turn in between */
};

static size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

void zk_inlet_reset(struct zk_inlet *in)
{
	bytes_free(&in->seen);
	bytes_free(&in->taken);
	*in = (struct zk_inlet){ 0 };
}

/* With its length, or 0 if that is not complete. */
static size_t frame_of(struct slice s)
{
	const unsigned char *at = (const unsigned char *)s.data;

	if (s.len < ZK_ANSWER_LEN_BYTES)
		return 0;
	return ZK_ANSWER_LEN_BYTES + ((size_t)at[0] << 24 | (size_t)at[1] << 16 | (size_t)at[2] << 8 | at[3]);
}

/* Appends up to `most` bytes of the socket. Returns their number; 0: the end; -1: errno. */
static ssize_t append(struct bytes *to, int fd, size_t most, int flags)
{
	ssize_t got;

	bytes_reserve(to, most);
	got = recv(fd, to->data + to->len, most, flags | MSG_DONTWAIT);
	to->len += (size_t)(got > 0 ? got : 0);
	return got;
}

static enum zk_inlet_look nothing_came(ssize_t got)
{
	return got == 0 || (errno != EAGAIN && errno != EINTR) ? ZK_INLET_END : ZK_INLET_MORE;
}

static enum zk_inlet_look found(struct zk_inlet *in, struct slice s, size_t frame, struct slice *ret)
{
	in->frame = frame;
	*ret = (struct slice){ s.data + ZK_ANSWER_LEN_BYTES, frame - ZK_ANSWER_LEN_BYTES };
	return ZK_INLET_READ;
}

static bool is_wrong(size_t frame)
{
	return frame && !zk_answer_fits(frame - ZK_ANSWER_LEN_BYTES);
}

/* Of an answer that does not stand whole in the socket. */
static enum zk_inlet_look take(struct zk_inlet *in, int fd, struct slice *ret)
{
	size_t left = TAKEN_BYTES;
	char last;
	ssize_t got;

	for (;;) {
		size_t frame = frame_of(bytes_view(&in->taken)), want = frame ? frame - 1 : ZK_ANSWER_LEN_BYTES;

		if (is_wrong(frame))
			return ZK_INLET_WRONG;
		if (in->taken.len == want)
			break;
		if (!left)
			return ZK_INLET_MORE;
		got = append(&in->taken, fd, least(want - in->taken.len, least(left, SEEN_BYTES)), 0);
		if (got <= 0)
			return nothing_came(got);
		left -= (size_t)got;
	}
	got = recv(fd, &last, 1, MSG_PEEK | MSG_DONTWAIT);
	if (got <= 0)
		return nothing_came(got);
	bytes_char(&in->taken, last);
	in->taken.len--; /* it stands in the socket, too */
	return found(in, bytes_view(&in->taken), in->taken.len + 1, ret);
}

/* The next one in the copy, or 0: it does not stand whole in there. */
static size_t next_seen(const struct zk_inlet *in)
{
	struct slice rest = { 0 };
	size_t frame;

	if (in->at < in->seen.len)
		rest = (struct slice){ in->seen.data + in->at, in->seen.len - in->at };
	frame = frame_of(rest);
	return frame <= rest.len || is_wrong(frame) ? frame : 0;
}

enum zk_inlet_look zk_inlet_look(struct zk_inlet *in, int fd, struct slice *ret)
{
	size_t frame;
	ssize_t got;

	if (in->taken.len)
		return take(in, fd, ret);
	frame = next_seen(in);
	if (!frame) {
		bool all_read = in->at && in->at == in->seen.len;

		in->at = in->seen.len = 0;
		/* If there is more, the socket is readable still. */
		if (all_read)
			return ZK_INLET_MORE;
		got = append(&in->seen, fd, SEEN_BYTES, MSG_PEEK);
		if (got <= 0)
			return nothing_came(got);
		frame = next_seen(in);
	}
	if (is_wrong(frame))
		return ZK_INLET_WRONG;
	if (frame)
		return found(in, (struct slice){ in->seen.data + in->at, in->seen.len - in->at }, frame, ret);
	in->seen.len = 0;
	return take(in, fd, ret);
}

/* The client reads what was taken from `ends[0]`, which is its socket for now. False: it does not. */
static bool pour(const struct zk_inlet *in, const int ends[2], zhandle_t *zh)
{
	size_t at = 0;

	while (at < in->taken.len) {
		ssize_t sent = send(ends[1], in->taken.data + at, in->taken.len - at, MSG_DONTWAIT | MSG_NOSIGNAL);

		if (sent < 0 && errno != EAGAIN)
			return false;
		at += (size_t)(sent > 0 ? sent : 0);
		if (zookeeper_process(zh, ZOOKEEPER_READ) != ZNOTHING) {
			errno = EPROTO;
			return false;
		}
	}
	return true;
}

/* Puts the second socket in the place of the client's, and back. */
static bool pour_instead(const struct zk_inlet *in, int fd, const int ends[2], zhandle_t *zh)
{
	int own = fcntl(fd, F_DUPFD_CLOEXEC, 0), rc;
	bool poured;

	if (own < 0)
		return false;
	poured = dup3(ends[0], fd, O_CLOEXEC) == fd && pour(in, ends, zh);
	rc = errno;
	/* A client that did not read on has closed it, and the number may be another thread's. */
	if (poured || rc != EPROTO)
		dup3(own, fd, O_CLOEXEC);
	close(own);
	errno = rc;
	return poured;
}

bool zk_inlet_give(struct zk_inlet *in, int fd, zhandle_t *zh)
{
	int ends[2], rc;
	bool given;

	if (!in->taken.len) {
		in->at += in->frame;
		return true;
	}
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) < 0)
		return false;
	given = pour_instead(in, fd, ends, zh);
	rc = errno;
	close(ends[0]);
	close(ends[1]);
	bytes_free(&in->taken);
	errno = rc;
	return given;
}
