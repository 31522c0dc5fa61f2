/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One connection.
 *
 *     state     meaning                                  reads  leaves by
 *     open      asks; its next request may be parsed      yes   a request without its reply -> waiting
 *     waiting   one request waits for its one reply       no    the reply -> open
 *     half      the peer will send no more: what it sent  yes   everything answered -> closing
 *               is answered, what waits is cancelled
 *     closing   only what is queued is written            no    written, or 5 s without progress -> dead
 *     dead      to be freed when the turn settles         no    EVENT_CLIENT_GONE
 *
 * `waiting` and `half` are flags, because they combine. A peer that closed both directions is dead at once,
 * whatever of its input is unread. While too much output is unread nothing more is parsed: of one connection half its
 * limit, and of all that leave something unread together CONN_UNWRITTEN_MAX. While all together have more that cannot
 * be parsed yet than CONN_UNPARSED_MAX, one by one has no more than CONN_UNPARSED_SMALL: what is behind a request that
 * waits stays in the socket, and a longer request that is not whole yet is refused.
 *
 * Turns: in each, a connection that is readable is served at once, with up to CONN_REQUESTS_PER_TURN requests, and what
 * is over goes to a queue: `ready` when the turn's time was used up by others, `later` when it was this connection's
 * share. Those whose requests take long (lists, patterns) are served from `later` only, one request each. A queue has
 * as much time as what is readable: so who asks for little waits for one share of the others, however many they are.
 *
 * Buffers are this connection's only while there is something in them: an idle one costs its struct.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/log.h"
#include "protocol/bytes.h"
#include "protocol/resp.h"

struct feed;
struct watch;

enum {
	CONN_REQUESTS_PER_TURN = 256,
	CONN_READ_BYTES = 65536,
	CONN_LAZY_MAX = 256,
	CONN_SPARE_MAX = 4096,
	CONN_UNWRITTEN_MAX = 64 << 20,
	CONN_UNPARSED_MAX = 64 << 20,
	CONN_UNPARSED_SMALL = 8192,
};

/* What the connections of a server share. */
struct conn_env {
	struct feed *feed;
	size_t request_bytes, request_args, output_bytes;
	size_t unwritten, unparsed; /* bytes of all connections */
	struct log_rate rate_overflow, rate_unparsed;
	char *scratch;                      /* CONN_READ_BYTES; nothing in it lasts past the read */
	struct bytes spare;                 /* empty: the output of who was answered last, for who is next */
	TAILQ_HEAD(conn_ready, conn) ready; /* more to parse */
	struct conn_ready later;            /* the same, after those */
	struct conn *asker;                 /* of the latest request in this turn, and when it began */
	int64_t asked_ns;
	bool several;                       /* it was not the first */
	TAILQ_HEAD(conn_dirty, conn) dirty; /* something to write, or dead: to be settled */
};

enum conn_watch { CONN_WATCH_NONE, CONN_WATCH_READ, CONN_WATCH_HANGUP, CONN_WATCH_EDGE };

struct conn {
	struct conn_env *env;
	int fd;
	uint32_t number;
	struct watch *input, *output;
	enum conn_watch watch; /* what `input` waits for */
	struct resp_reader reader;
	struct bytes in, out;
	size_t unparsed; /* bytes of `in` */
	size_t written; /* bytes of `out` */
	size_t pushed;  /* at most so many of the unwritten bytes are pushes */
	size_t unreported; /* bytes until the end of the push whose writing is to be reported; 0: none, or it is */
	bool waiting : 1, half : 1, eof : 1, closing : 1, dead : 1;
	bool asking : 1; /* the broker is being asked: its reply makes nobody ready */
	bool is_dirty : 1, report : 1; /* it is written, and that is not reported yet */
	struct conn_ready *queue; /* that it is in, of `ready` and `later`; NULL: none */
	TAILQ_ENTRY(conn) ready, dirty;
	int64_t mean_ns;          /* that a request of it takes */
};

/* Takes over `fd`. */
struct conn *conn_new(struct conn_env *env, int fd, uint32_t number);
void conn_free(struct conn *c);

/* `lazy`: it may wait for what is written next, but no more than CONN_LAZY_MAX bytes do. */
void conn_reply(struct conn *c, struct slice text, bool lazy);
/* `report`: EVENT_CLIENT_WRITTEN follows when it has been written. */
void conn_push(struct conn *c, struct slice text, bool report);
void conn_close(struct conn *c);
/* Parses what is buffered, up to a turn's share. */
void conn_continue(struct conn *c);
/* Before anything of the turn is freed: its latest request is over. */
void conn_end_turn(struct conn_env *env);
/* Writes what is queued. */
void conn_flush(struct conn *c);
