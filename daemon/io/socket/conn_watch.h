/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a connection waits for, whether it may be read and parsed, and whose turn it is in: what its input (conn.c) and its
 * output (conn_output.c) have in common.
 */
#pragma once

#include "base/clock.h"
#include "io/base/feed.h"
#include "io/socket/conn.h"
#include "io/socket/socket_pools.h"

/* While a connection closes, a peer that reads nothing for so long is no longer waited for. */
#define CONN_PATIENCE_NS (5 * CLOCK_NS_PER_S)

/*
 * Reports what comes, and the end of the peer, once each: what may not be read yet needs no other watch, and is not reported
 * again and again.
 */
void conn_watch(struct conn *c);
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
	party_add(&c->env->parties, &c->place);
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

/* Of what cannot be parsed yet: one request of the longest kind always. */
static inline bool conn_has_share(const struct conn *c)
{
	return c->account->used[SOCKET_INPUT] < c->env->request_bytes ||
	       account_may(c->account, SOCKET_INPUT, 1, c->privileged);
}

/* Input that cannot be parsed yet, with what the reader has found in it. */
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

/* What has come is read when it may be: it is not reported again. */
static inline void conn_read_on(struct conn *c)
{
	if (c->readable && conn_may_read(c))
		conn_set_ready(c);
}
