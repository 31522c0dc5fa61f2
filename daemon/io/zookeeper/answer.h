/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether the bytes of a server are an answer that the C client can read. The client checks no lengths, and uses memory
 * that it has not written when an answer is too short; so nothing reaches it that is not right here:
 *
 *   xid        | the body
 *   -1         | a watch event: type (created, deleted, changed, children or a later one), state, path
 *   -2, -8     | a ping, watches that were set again: not read
 *   -4         | the authentication: not read, but only a client that authenticates may be sent one
 *   any other  | of the operation that was sent first and is not answered; not read if the header has an error. The client
 *              | compares the number itself
 *
 * A body may be longer than the part that is read, as the body of a later server could be.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <zookeeper/zookeeper.h>

#include "protocol/bytes.h"
#include "protocol/slice.h"

enum {
	ZK_ANSWER_LEN_BYTES = 4,          /* the length, before each answer */
	ZK_ANSWER_HEADER_BYTES = 16,      /* xid, zxid, error */
	ZK_ANSWER_BYTES_MAX = 32 << 20,   /* without the length: a directory of 500,000 children */
	ZK_ANSWER_SENTENCE_MAX = 320,   /* with the NUL */
};

/* The parts of the answer to an operation that has succeeded. */
enum zk_body {
	ZK_BODY_CREATED, /* of create2: the path that was asked for, and the metadata */
	ZK_BODY_NUMBERED, /* the same of a sequential znode: the server puts a number behind the path */
	ZK_BODY_PATH,    /* of create: the path that was asked for */
	ZK_BODY_PATH_NUMBERED, /* the same of a sequential znode */
	ZK_BODY_LIST,    /* of get_children2: the names of the children, and the metadata */
	ZK_BODY_DATA,    /* of get: the data, and the metadata */
	ZK_BODY_STAT,    /* of set: the metadata */
	ZK_BODY_NONE,    /* of delete */
};

/* The operation that a server answers next. */
struct zk_asked {
	enum zk_body body;
	struct slice path;
};

/* Whether an answer may be so long. */
bool zk_answer_fits(size_t bytes);
/*
 * `frame`: without its length. `asked` NULL: no operation is open. If the answer is wrong, the sentence says which answer
 * of the server that is and why, without the number of the session.
 */
bool zk_answer_is_right(struct slice frame, const struct zk_asked *asked, bool authenticates,
			char ret_sentence[ZK_ANSWER_SENTENCE_MAX]);

/*
 * The answers of a server before the C client reads them, one at a time. An answer that stands whole in the socket is
 * looked at there and left to the client. An incomplete answer is taken out as far as it has arrived, so that the
 * socket is readable again only when there is more; all but its last byte is taken, and when the last byte has come,
 * the client is made to read the rest from a second socket, which stands in for its own during that time. So the client
 * never reads a byte that was not looked at, whatever comes in between, and an answer may be longer than a socket can
 * hold.
 *   the bytes in the socket           | zk_inlet_result()
 *   a whole answer                    | READ: it is returned. Then zk_inlet_give(), and the client reads one answer
 *   a part of one, or nothing         | MORE: the client must not read
 *   the end, or an error              | END: the client may read it
 *   a length that no answer has       | WRONG
 */
enum zk_inlet_result { ZK_INLET_READ, ZK_INLET_MORE, ZK_INLET_END, ZK_INLET_WRONG };

/* Zero-initialised: of a new connection. */
struct zk_inlet {
	struct bytes seen;  /* a copy of the bytes in the socket, from its beginning */
	size_t at;          /* how much of that the client has read since */
	struct bytes taken; /* out of the socket: the part of an answer, with its length */
	size_t frame;       /* the answer that was returned last, with its length */
};

/* To be called when the connection has ended. Gives back all memory. */
void zk_inlet_reset(struct zk_inlet *in);
/* The answer without its length, valid until the next call. */
enum zk_inlet_result zk_inlet_result(struct zk_inlet *in, int fd, struct slice *ret);
/*
 * The answer that was returned is right, and the client reads it next: gives it the bytes that were taken out of its
 * socket `fd`, which is not on the loop. False: it cannot be given, errno says why, and the connection has to end.
 */
bool zk_inlet_give(struct zk_inlet *in, int fd, zhandle_t *zh);
