/* SPDX-License-Identifier: Apache-2.0 */
#include "io/zookeeper/answer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/znode/contender.h"

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

static enum zk_inlet_result nothing_came(ssize_t got)
{
	return got == 0 || (errno != EAGAIN && errno != EINTR) ? ZK_INLET_END : ZK_INLET_MORE;
}

static enum zk_inlet_result found(struct zk_inlet *in, struct slice s, size_t frame, struct slice *ret)
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
static enum zk_inlet_result take(struct zk_inlet *in, int fd, struct slice *ret)
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

enum zk_inlet_result zk_inlet_result(struct zk_inlet *in, int fd, struct slice *ret)
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

/* Those of the C client, which does not export them. */
enum { XID_WATCH = -1, XID_PING = -2, XID_AUTH = -4, XID_SET_WATCHES = -8 };

enum {
	/* A znode's stat, and where in it the transactions are that made it, its content, and its children. */
	STAT_BYTES = 68,
	STAT_CZXID = 0,
	STAT_MZXID = 8,
	STAT_PZXID = 60,
	SEQUENCE_DIGITS = 10,
	SHOWN_BYTES = 100,
};

static const char *const names[] = {
	[ZK_BODY_CREATED] = "the answer to the creation of ", [ZK_BODY_NUMBERED] = "the answer to the creation of ",
	[ZK_BODY_PATH] = "the answer to the creation of ",    [ZK_BODY_PATH_NUMBERED] = "the answer to the creation of ",
	[ZK_BODY_LIST] = "the list of children of ",           [ZK_BODY_DATA] = "the content of ",
	[ZK_BODY_STAT] = "the answer to new content for ",     [ZK_BODY_NONE] = "the answer to the deletion of ",
};

/* What is left of the answer, and what is wrong with it. */
struct reader {
	struct slice rest;
	const char *fault; /* NULL: nothing so far */
};

static void fault(struct reader *r, const char *why)
{
	if (!r->fault)
		r->fault = why;
}

static bool skip(struct reader *r, size_t bytes)
{
	if (!r->fault && r->rest.len < bytes)
		fault(r, "ends too early");
	if (r->fault)
		return false;
	r->rest = (struct slice){ r->rest.data + bytes, r->rest.len - bytes };
	return true;
}

static int32_t number(struct reader *r)
{
	const unsigned char *at = (const unsigned char *)r->rest.data;

	if (!skip(r, sizeof(int32_t)))
		return 0;
	return (int32_t)((uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3]);
}

/* The client ends it with a NUL, and everybody behind it believes that this is the first one. */
static struct slice text(struct reader *r)
{
	int32_t len = number(r);
	struct slice s = { r->rest.data, (size_t)(len > 0 ? len : 0) };

	if (len < 0)
		fault(r, "has a text of negative length");
	if (!skip(r, s.len))
		return (struct slice){ 0 };
	if (s.len && memchr(s.data, '\0', s.len))
		fault(r, "has a NUL in a text");
	return s;
}

/*
 * A negative number would look as if the ensemble had gone back. A number above that of the header is no fault: a server
 * that applies another write meanwhile has not counted that yet.
 */
static void stat_of_znode(struct reader *r)
{
	const char *at = r->rest.data;

	if (skip(r, STAT_BYTES) && ((at[STAT_CZXID] | at[STAT_MZXID] | at[STAT_PZXID]) & 0x80))
		fault(r, "has a transaction of negative number");
}

static bool are_digits(struct slice s)
{
	for (size_t i = 0; i < s.len; i++)
		if (s.data[i] < '0' || s.data[i] > '9')
			return false;
	return true;
}

/* Ten digits, and a minus sign before them when the directory's counter has wrapped. */
static bool is_sequence(struct slice s)
{
	if (s.len == SEQUENCE_DIGITS + 1 && s.data[0] == '-')
		s = (struct slice){ s.data + 1, s.len - 1 };
	return s.len == SEQUENCE_DIGITS && are_digits(s);
}

static void created(struct reader *r, const struct zk_asked *asked)
{
	struct slice path = text(r), prefix = asked->path, rest;

	if (r->fault)
		return;
	if (path.len < prefix.len || memcmp(path.data, prefix.data, prefix.len) != 0) {
		fault(r, "names another znode");
		return;
	}
	rest = (struct slice){ path.data + prefix.len, path.len - prefix.len };
	if (asked->body == ZK_BODY_NUMBERED || asked->body == ZK_BODY_PATH_NUMBERED ? !is_sequence(rest) : rest.len != 0)
		fault(r, "names a znode of another number");
	if (asked->body == ZK_BODY_CREATED || asked->body == ZK_BODY_NUMBERED)
		stat_of_znode(r);
}

static void listed(struct reader *r)
{
	int32_t count = number(r);

	if (count < 0 || (size_t)count > r->rest.len / sizeof(int32_t))
		fault(r, "has a number of children that does not fit in it");
	for (int32_t i = 0; i < count && !r->fault; i++) {
		struct slice child = text(r);

		if (child.len == 0 || memchr(child.data, '/', child.len))
			fault(r, "names a child that cannot be one");
	}
	stat_of_znode(r);
}

static void got(struct reader *r)
{
	int32_t len = number(r);

	if (len < -1)
		fault(r, "has data of negative length");
	skip(r, (size_t)(len > 0 ? len : 0));
	stat_of_znode(r);
}

static void watched(struct reader *r)
{
	int32_t type = number(r);
	struct slice path;

	number(r);
	path = text(r);
	/* The client would take a type below 1 for news of the session itself. */
	if (type < 1)
		fault(r, "has a type that servers do not send");
	if (path.len == 0 || path.data[0] != '/')
		fault(r, "names no znode");
}

static void answered(struct reader *r, const struct zk_asked *asked)
{
	switch (asked->body) {
	case ZK_BODY_CREATED:
	case ZK_BODY_NUMBERED:
	case ZK_BODY_PATH:
	case ZK_BODY_PATH_NUMBERED:
		created(r, asked);
		break;
	case ZK_BODY_LIST:
		listed(r);
		break;
	case ZK_BODY_DATA:
		got(r);
		break;
	case ZK_BODY_STAT:
		stat_of_znode(r);
		break;
	case ZK_BODY_NONE:
		break;
	}
}

bool zk_answer_fits(size_t bytes)
{
	return bytes >= ZK_ANSWER_HEADER_BYTES && bytes <= ZK_ANSWER_BYTES_MAX;
}

/* "spoils its answers: the list of children of /a ends too early". Names of contenders and of letters have the session. */
static void say(char ret[ZK_ANSWER_SENTENCE_MAX], const char *name, struct slice path, const char *why)
{
	const char *slash = path.len ? memrchr(path.data, '/', path.len) : NULL;
	size_t parent = slash ? (size_t)(slash + 1 - path.data) : 0;
	struct slice child = { 0 };

	if (parent < path.len)
		child = (struct slice){ path.data + parent, path.len - parent };
	if (child.len)
		child = memmem(path.data, parent, "/.mail/", strlen("/.mail/")) ? SLICE("...") : contender_shown(child);
	snprintf(ret, ZK_ANSWER_SENTENCE_MAX, "spoils its answers: %s%.*s%.*s %s", name,
		 (int)(parent < SHOWN_BYTES ? parent : SHOWN_BYTES), parent ? path.data : "",
		 (int)(child.len < SHOWN_BYTES ? child.len : SHOWN_BYTES), child.len ? child.data : "", why);
}

bool zk_answer_is_right(struct slice frame, const struct zk_asked *asked, bool authenticates,
			char ret_sentence[ZK_ANSWER_SENTENCE_MAX])
{
	struct reader r = { .rest = frame };
	const char *name = "an answer";
	struct slice path = { 0 };
	int32_t xid = number(&r), error;

	skip(&r, sizeof(int64_t)); /* the zxid */
	error = number(&r);
	if (xid == XID_WATCH) {
		name = "the event of a watch";
		watched(&r);
	} else if (xid == XID_AUTH) {
		name = "the answer to an authentication";
		if (!authenticates)
			fault(&r, "was not asked for");
	} else if (xid != XID_PING && xid != XID_SET_WATCHES && !asked) {
		fault(&r, "was not asked for");
	} else if (xid != XID_PING && xid != XID_SET_WATCHES) {
		name = names[asked->body];
		path = asked->path;
		if (!r.fault && !error)
			answered(&r, asked);
	}
	if (r.fault)
		say(ret_sentence, name, path, r.fault);
	return !r.fault;
}
