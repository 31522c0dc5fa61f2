/* SPDX-License-Identifier: Apache-2.0 */
#include "io/zookeeper/answer.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "core/znode/contender.h"

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
	if (asked->body == ZK_BODY_NUMBERED ? !is_sequence(rest) : rest.len != 0)
		fault(r, "names a znode of another number");
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
