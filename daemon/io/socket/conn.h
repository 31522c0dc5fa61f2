/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One connection: its input and its output.
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
 * some of its input is unread. Nothing is parsed while half of the limit for its output is unread. While the
 * connections of a user have the user's share of CONN_UNPARSED_MAX bytes that cannot be parsed yet, each of them may
 * have at most CONN_UNPARSED_SMALL: input behind a waiting request stays in the socket, and a longer request that is
 * not complete yet is refused. The rules for unread output are in conn.c.
 *
 * Turns: a socket that is ready only queues the connection, and the server serves the queues by account and then by
 * connection (party.h). One that is served reads once, and has up to CONN_REQUESTS_PER_TURN requests or the time of a
 * share; then it goes behind the others of its user. While it is queued its input stays in the socket. A dead one is
 * freed in its turn, too: it may have held much.
 *
 * A connection has buffers only while there is something in them: an idle one costs its struct. If this process is killed,
 * the next one can go on with a connection that the keeper has, unless it is busy: that is written before anything is read
 * from it or pushed to it, and undone when nothing is under way.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/account.h"
#include "base/charge.h"
#include "base/clock.h"
#include "base/log.h"
#include "io/base/feed.h"
#include "io/socket/conn_page.h"
#include "io/socket/party.h"
#include "io/socket/socket_pools.h"
#include "protocol/bytes.h"
#include "protocol/resp.h"

struct disposer;
struct remains;
struct watch;

enum {
	CONN_REQUESTS_PER_TURN = 256,
	CONN_READ_BYTES = 65536,
	CONN_TURN_BYTES = 4096, /* are read at once while other accounts have connections */
	CONN_LAZY_MAX = 256,
	CONN_SPARE_MAX = 4096,
	/* In all, of which one user has 64 MiB. */
	CONN_UNWRITTEN_MAX = 88 << 20,
	CONN_UNWRITTEN_SMALL = 8192,
	CONN_PART_BYTES = 32000,     /* of a long answer, for each turn: as much as the kernel has room for */
	CONN_TURN_PART_BYTES = 8000, /* while other accounts have connections: the kernel needs 30 to 60 us for 32,000 */
	CONN_UNPARSED_MAX = 88 << 20,
	CONN_UNPARSED_SMALL = 8192,
	/* Of a connection's output, in the kernel, which takes twice as much, and one part more than fits. */
	CONN_KERNEL_BYTES = 16384,
};

/* The parts that the connections of a server share: their limits, queues, and the memory that one uses after another. */
struct conn_env {
	struct feed *feed;
	size_t request_bytes, request_args, output_bytes;
	struct accounts accounts; /* socket_pools.h */
	char *scratch;                      /* CONN_READ_BYTES; its contents do not outlast the read */
	struct watch *patience;             /* while somebody is held back: clients that do not read are looked for */
	struct disposer *disposer;          /* closes their sockets */
	struct remains *remains;            /* parts of ended connections that their clients keep */
	size_t dead;                        /* how many of them are to be freed */
	struct parties parties;             /* the accounts whose connections are to be read, parsed or freed */
	bool one;                           /* all connections are of one account; determined for each serve */
	TAILQ_HEAD(conn_dirty, conn) dirty; /* something to write: to be settled */
	struct bytes spare;                 /* empty: the output buffer of the latest client that was answered */
	struct conn_page_list pages;        /* pages that are asked for: to be made then */
};

struct conn {
	struct conn_env *env;
	int fd;
	uint32_t number;
	bool privileged; /* it came through the operators' socket */
	int64_t until_ns; /* of a ghost */
	struct watch *input, *output; /* `output` is NULL until the connection has to wait for room */
	struct bytes in;
	struct account *account;
	struct charge connection, unparsed, unwritten; /* socket_pools.h */
	int64_t heard_ns; /* when some of its output was written last, or began to be charged */
	struct conn_page *page; /* NULL: it has none, and nobody asks for one (conn_page.h) */
	uint32_t *busy; /* once it is kept: nonzero, and no other process can go on with it; NULL: nobody looks */
	size_t unreported; /* bytes until the end of a push whose writing is to be reported; 0: none, or it is written */
	/* The fields that each request writes are together: these, and some of the reader. */
	struct bytes out;
	size_t written; /* bytes of `out` that are written */
	size_t pushed;  /* at most this many of the unwritten bytes are pushes */
	bool waiting : 1, half : 1, eof : 1, closing : 1, dead : 1;
	bool expects : 1; /* its answer may be long, and room for the longest is charged */
	bool sending : 1; /* its socket may take more than one part: the next one is sent in its turn */
	bool asking : 1; /* the broker is handling its request: the reply makes nobody ready */
	bool open : 1;   /* its input may bring descriptors (intake.h) */
	bool asked : 1;  /* the keeper was asked to have the connection, too */
	bool given : 1;  /* it may have it: a close is not its end */
	bool is_dirty : 1, report : 1; /* it is written, which is not reported yet */
	bool readable : 1;        /* something has come since a read took all that there was */
	bool more : 1;            /* of `in` may be parsed: nothing more is read before that */
	bool took : 1;            /* the peer was there after the latest read: it was sent something */
	struct party_member member; /* whose turn it is served in */
	TAILQ_ENTRY(conn) dirty;
	struct resp_reader reader;
};

/* Takes over `fd`. */
struct conn *conn_new(struct conn_env *env, int fd, uint32_t number);
/*
 * A client whose connection is closed, and whose process may still believe to hold something: its output goes nowhere,
 * and it is dead when it is closed: when its process has ended, or at that instant.
 */
struct conn *conn_ghost(struct conn_env *env, uint32_t number, int64_t until_ns);
bool conn_is_ghost(const struct conn *c);
/* It is charged to that account, whatever that has, and served in its turns; before that it is nobody's. */
void conn_enter(struct conn *c, struct account *account);
/* Something is under way: part of a request was read, or a request is not answered, or something is to be written. */
bool conn_is_busy(const struct conn *c);
void conn_free(struct conn *c);

/* Its turn has come, and it is not dead: reads, and parses its input. */
void conn_serve(struct conn *c);
/*
 * A hand-over: the fields of its record, and the connection that they make, NULL if they make none. That one reads and
 * writes nothing before conn_begin().
 */
void conn_pack(const struct conn *c, struct parcel *p, struct entry_writer *w);
struct conn *conn_unpack(struct conn_env *env, struct parcel *p, const struct entry *e);
void conn_begin(struct conn *c);

/*
 * The common part of a connection's input and output: the events that it waits for, whether it may be read and parsed,
 * and whose turn it is in.
 */

/* While a connection closes, a peer that reads nothing for so long is no longer waited for. */
#define CONN_PATIENCE_NS (5 * CLOCK_NS_PER_S)

void conn_watch_output(struct conn *c);
/* Its output is written when the turn settles, or before. */
void conn_set_dirty(struct conn *c);
/* It is freed in one of its next turns. */
void conn_die(struct conn *c);
void conn_tell(struct conn *c, enum event_type type);
struct log_account conn_log_account(const struct account *account); /* whose lines of the log are rated together */

static inline size_t conn_unwritten(const struct conn *c)
{
	return c->out.len - c->written;
}

static inline void conn_set_ready(struct conn *c)
{
	party_add(&c->env->parties, &c->member);
}

/* Its user may have so much more unread: one answer of the longest kind always, whatever others leave of the pool. */
static inline bool conn_may_have(const struct conn *c, size_t more)
{
	return c->account->used[SOCKET_OUTPUT] + more <= c->env->output_bytes ||
	       account_may(c->account, SOCKET_OUTPUT, more, c->privileged);
}

/* For the longest answer. */
static inline bool conn_has_room(const struct conn *c)
{
	return conn_may_have(c, c->env->output_bytes);
}

/* Its next request may be parsed. */
static inline bool conn_may_parse(const struct conn *c)
{
	size_t unwritten = conn_unwritten(c);

	if (c->waiting || c->closing || c->dead)
		return false;
	return unwritten == 0 || (unwritten < c->env->output_bytes / 2 && conn_has_room(c));
}

/* A share of the room for input that cannot be parsed yet: one request of the longest kind always. */
static inline bool conn_has_share(const struct conn *c)
{
	return c->account->used[SOCKET_INPUT] < c->env->request_bytes ||
	       account_may(c->account, SOCKET_INPUT, 1, c->privileged);
}

/* Input that cannot be parsed yet, with the words that the reader has found in it. */
static inline size_t conn_unparsed(const struct conn *c)
{
	return c->in.len ? c->in.len + resp_reader_memory(&c->reader) : 0;
}

/* It may keep that, and more of that request. */
static inline bool conn_may_keep(const struct conn *c)
{
	size_t max = c->reader.request_bytes_max;

	return max <= CONN_UNPARSED_SMALL || conn_has_share(c) ? c->in.len <= max : conn_unparsed(c) <= CONN_UNPARSED_SMALL;
}

static inline bool conn_may_read(const struct conn *c)
{
	return conn_may_parse(c) && !c->eof && conn_may_keep(c);
}

/* Input that has come is read when it may be: it is not reported again. */
static inline void conn_read_on(struct conn *c)
{
	if (c->readable && conn_may_read(c))
		conn_set_ready(c);
}

/* Whether a connection that the keeper has, too, is busy: something is under way on it, so no other process can go on. */

/* The kernel must not have given or taken anything before; the compiler sees no use of the word. */
static inline void conn_set_busy(struct conn *c)
{
	if (!c->busy)
		return;
	__atomic_store_n(c->busy, 1, __ATOMIC_RELEASE);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
}

static inline void conn_clear_busy(struct conn *c)
{
	if (c->busy && !conn_is_busy(c))
		__atomic_store_n(c->busy, 0, __ATOMIC_RELEASE);
}

/*
 * The output of a connection: replies, pushes, and the end. It is queued, and written when the turn settles. Long
 * output is written in parts of CONN_PART_BYTES or CONN_TURN_PART_BYTES, each in a turn of its user, as long as the socket
 * takes them.
 */

/* `lazy`: it may wait for the next output, but at most CONN_LAZY_MAX bytes do. */
void conn_reply(struct conn *c, struct slice text, bool lazy);
/* The reply is `text` from `at` on; it is copied only if other output is unwritten. `text` is empty afterwards. */
void conn_reply_whole(struct conn *c, struct bytes *text, size_t at);
/* The reply to DELEGATE: the file descriptor of the page goes along. */
void conn_reply_page(struct conn *c, struct slice text);
/* `report`: EVENT_CLIENT_WRITTEN follows when it has been written. */
void conn_push(struct conn *c, struct slice text, bool report);
/* It is closed when the queued output is written. */
void conn_close(struct conn *c);
/* A reply that waits for the next output waits no longer. */
void conn_hurry(struct conn *c);
/* Writes the queued output of all. */
void conn_flush_all(struct conn_env *env);
/* Closes it if it keeps others waiting. */
void conn_lose_patience(struct conn *c, int64_t now_ns);
