/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether what a server sent is an answer that the C client can read. The client checks no lengths, and uses memory that it
 * has not written when an answer is too short; so nothing reaches it that is not right here:
 *
 *   xid        | the body
 *   -1         | a watch event: type (created, deleted, changed, children or a later one), state, path
 *   -2, -8     | a ping, watches that were set again: not read
 *   -4         | the authentication: not read, but only a client that authenticates may be sent one
 *   any other  | of the operation that was sent first and is not answered; not read if the header has an error. The client
 *              | compares the number itself
 *
 * A body may be longer than what is read of it, as that of a later server could be.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "protocol/slice.h"

enum {
	ZK_ANSWER_LEN_BYTES = 4,          /* the length, before each answer */
	ZK_ANSWER_HEADER_BYTES = 16,      /* xid, zxid, error */
	ZK_ANSWER_BYTES_MAX = 32 << 20,   /* without the length: a directory of 500,000 children */
	ZK_ANSWER_SENTENCE_MAX = 320,   /* with the NUL */
};

/* What the answer to an operation consists of when that has succeeded. */
enum zk_body {
	ZK_BODY_CREATED, /* of create2: the path that was asked for, and the metadata */
	ZK_BODY_NUMBERED, /* the same of a sequential znode: the server puts a number behind the path */
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
