/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One connection: its input here, its output in conn_output.h.
 *
 *     state     meaning                                  reads  leaves by
 *     open      its next request may be parsed            yes   a request without its reply -> waiting
 *     waiting   one request waits for its one reply       no    the reply -> open
 *     half      the peer will send no more: the requests  yes   everything answered -> closing
 *               it sent are answered, waits cancelled
 *     closing   only the queued output is written         no    written, or 5 s without progress -> dead
 *     dead      to be freed when the turn settles         no    EVENT_CLIENT_GONE
 *
 * `waiting` and `half` are flags, because they combine. A peer that closed both directions is dead at once, even if
 * some of its input is unread. Nothing is parsed while half of the limit for its output is unread. While the connections of
 * a user have the user's share of CONN_UNPARSED_MAX bytes that cannot be parsed yet, each of them may have at most
 * CONN_UNPARSED_SMALL: input behind a waiting request stays in the socket, and a longer request that is not complete yet is
 * refused. What is unread has its rules in conn_room.h.
 *
 * Turns: what is ready only queues the connection, and the server serves the queues by account and then by connection
 * (party.h). One that is served reads once, and has up to CONN_REQUESTS_PER_TURN requests or the time of a share; then it
 * goes behind the others of its user. While it is queued its input stays in the socket. A dead one is freed in its turn,
 * too: what it held may be much.
 *
 * A connection has buffers only while there is something in them: an idle one costs its struct. If this process is killed,
 * the next one can go on with a connection that the keeper has, unless it is marked: that is done before anything is read
 * from it or pushed to it, and undone when nothing is under way.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/charge.h"
#include "io/socket/conn_env.h"
#include "protocol/resp.h"

struct conn_page;
struct entry;
struct entry_writer;
struct parcel;
struct watch;

struct conn {
	struct conn_env *env;
	int fd;
	uint32_t number;
	bool privileged; /* it came through the operators' socket */
	int64_t until_ns; /* of a ghost */
	struct watch *input, *output;
	struct resp_reader reader;
	struct bytes in, out;
	struct account *account;
	struct charge connection, unparsed, unwritten; /* socket_pools.h */
	size_t written; /* bytes of `out` that are written */
	size_t pushed;  /* at most this many of the unwritten bytes are pushes */
	int64_t heard_ns; /* when some of its output was written last, or began to be charged */
	size_t unreported; /* bytes until the end of a push whose writing is to be reported; 0: none, or it is written */
	bool waiting : 1, half : 1, eof : 1, closing : 1, dead : 1;
	bool expects : 1; /* its answer may be long, and room for the longest is charged */
	bool sending : 1; /* its socket may take more than one part: the next one is sent in its turn */
	bool asking : 1; /* the broker is handling its request: the reply makes nobody ready */
	bool open : 1;   /* its input may bring descriptors (intake.h) */
	bool asked : 1;  /* the keeper was asked to have the connection, too */
	bool given : 1;  /* it may have it: a close is not its end */
	bool is_dirty : 1, report : 1; /* it is written, which is not reported yet */
	struct conn_page *page; /* NULL: it has none, and nobody asks for one (conn_page.h) */
	uint32_t *mark; /* once it is kept: nonzero, and no other process can go on with it; NULL: nobody looks */
	bool readable : 1;        /* something has come since a read took all that there was */
	bool more : 1;            /* of `in` may be parsed: nothing more is read before that */
	bool took : 1;            /* the peer was there after the latest read: it was sent something */
	struct party_place place; /* whose turn it is served in */
	TAILQ_ENTRY(conn) dirty;
};

/* Takes over `fd`. */
struct conn *conn_new(struct conn_env *env, int fd, uint32_t number);
/*
 * A client whose connection is closed, and whose process may still believe to hold something: what is sent to it goes
 * nowhere, and it is dead when it is closed: when its process has ended, or at that instant.
 */
struct conn *conn_ghost(struct conn_env *env, uint32_t number, int64_t until_ns);
bool conn_is_ghost(const struct conn *c);
/* It is charged to that account, whatever that has, and served in its turns; before that it is nobody's. */
void conn_enter(struct conn *c, struct account *account);
/* Something is under way: part of a request was read, or a request is not answered, or something is to be written. */
bool conn_is_busy(const struct conn *c);
void conn_free(struct conn *c);

/* Its turn has come, and it is not dead: reads, and parses what it has. */
void conn_serve(struct conn *c);
/*
 * A hand-over: the fields of its record, and the connection that they make, NULL if they make none. That one reads and
 * writes nothing before conn_begin().
 */
void conn_pack(const struct conn *c, struct parcel *p, struct entry_writer *w);
struct conn *conn_unpack(struct conn_env *env, struct parcel *p, const struct entry *e);
void conn_begin(struct conn *c);
