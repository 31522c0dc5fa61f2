/* SPDX-License-Identifier: Apache-2.0 */
/* What a ZooKeeper server writes: for tests of what reads it. */
#pragma once

#include <arpa/inet.h>
#include <stdint.h>
#include <string.h>

#include "io/zookeeper/answer.h"
#include "protocol/bytes.h"

enum { WATCH_XID = -1, PING_XID = -2, AUTH_XID = -4, SET_WATCHES_XID = -8, STAT_BYTES = 68 };

static inline void put(struct bytes *b, int32_t number)
{
	uint32_t n = htonl((uint32_t)number);

	bytes_append(b, &n, sizeof(n));
}

static inline void put_text(struct bytes *b, const char *text)
{
	put(b, (int32_t)strlen(text));
	bytes_text(b, text);
}

static inline void put_stat(struct bytes *b)
{
	for (size_t i = 0; i < STAT_BYTES / sizeof(int32_t); i++)
		put(b, i == 1 ? 7 : 0); /* the czxid is 7 */
}

static inline void put_header(struct bytes *b, int32_t xid, int32_t error)
{
	put(b, xid);
	put(b, 0);
	put(b, 9); /* the zxid */
	put(b, error);
}

static inline void put_body(struct bytes *b, enum zk_body body)
{
	switch (body) {
	case ZK_BODY_CREATED:
		put_text(b, "/a/b");
		put_stat(b);
		break;
	case ZK_BODY_NUMBERED:
		put_text(b, "/a/x-0000000007");
		put_stat(b);
		break;
	case ZK_BODY_PATH:
		put_text(b, "/a/b");
		break;
	case ZK_BODY_PATH_NUMBERED:
		put_text(b, "/a/x-0000000007");
		break;
	case ZK_BODY_LIST:
		put(b, 2);
		put_text(b, "one");
		put_text(b, "another");
		put_stat(b);
		break;
	case ZK_BODY_DATA:
		put_text(b, "data");
		put_stat(b);
		break;
	case ZK_BODY_STAT:
		put_stat(b);
		break;
	case ZK_BODY_NONE:
		break;
	}
}

static inline void put_event(struct bytes *b, int32_t type, const char *path)
{
	put_header(b, WATCH_XID, 0);
	put(b, type);
	put(b, 3);
	put_text(b, path);
}
