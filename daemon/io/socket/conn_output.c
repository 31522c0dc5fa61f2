/* SPDX-License-Identifier: Apache-2.0 */
#include "io/socket/conn_output.h"

#include <errno.h>
#include <sys/socket.h>

#include "base/cold.h"
#include "base/log.h"
#include "base/queue.h"
#include "io/base/watch.h"
#include "io/socket/conn_mark.h"
#include "io/socket/conn_page.h"
#include "io/socket/conn_room.h"

void conn_queue(struct conn *c, struct slice text)
{
	if (!c->out.data) {
		c->out = c->env->spare;
		c->env->spare = (struct bytes){ 0 };
	}
	bytes_slice(&c->out, text);
	if (conn_unwritten(c) > CONN_UNWRITTEN_SMALL)
		conn_count_output(c);
}

void conn_drop_output(struct conn *c)
{
	if (!c->env->spare.data && c->out.cap <= CONN_SPARE_MAX) {
		c->env->spare = c->out;
		c->env->spare.len = 0;
		c->out = (struct bytes){ 0 };
	} else {
		bytes_free(&c->out);
	}
	c->written = 0;
	c->pushed = 0;
	if (c->unwritten.amount)
		conn_count_output(c);
}

void conn_hurry_lazy(struct conn *c)
{
	if (c->is_dirty || c->waiting || conn_unwritten(c) == 0)
		return;
	if (!conn_may_parse(c) && !watch_is_set(c->output))
		conn_set_dirty(c);
}

void conn_hurry(struct conn *c)
{
	if (conn_unwritten(c) > 0 && !watch_is_set(c->output))
		conn_set_dirty(c);
}

/* Of what may be long it was known before it was asked that there is room. */
static inline bool conn_takes_reply(struct conn *c, size_t len)
{
	if (c->dead || c->closing)
		return false;
	return c->asking || c->expects || conn_unwritten(c) + len <= CONN_UNWRITTEN_SMALL || conn_admits(c, len);
}

static inline void conn_replied(struct conn *c, bool lazy)
{
	if (c->expects) {
		c->expects = false;
		conn_count_output(c);
	}
	if (!lazy || conn_unwritten(c) > CONN_LAZY_MAX)
		conn_set_dirty(c);
	if (!c->waiting)
		return;
	c->waiting = false;
	if (!c->asking && (c->in.len > 0 || c->half || c->readable))
		conn_set_ready(c);
}

void conn_reply(struct conn *c, struct slice text, bool lazy)
{
	if (!conn_takes_reply(c, text.len))
		return;
	conn_queue(c, text);
	conn_replied(c, lazy);
}

static void conn_take_whole(struct conn *c, struct bytes *text, size_t at)
{
	c->out = *text;
	c->written = at;
	*text = (struct bytes){ 0 };
	bytes_fit(&c->out); /* what it has is charged, and no more */
	conn_count_output(c);
}

COLD void conn_reply_whole(struct conn *c, struct bytes *text, size_t at)
{
	struct slice reply = { text->data + at, text->len - at };

	if (conn_takes_reply(c, reply.len)) {
		if (c->out.data)
			conn_queue(c, reply);
		else
			conn_take_whole(c, text, at);
		conn_replied(c, false);
	}
	bytes_free(text);
}

void conn_reply_page(struct conn *c, struct slice text)
{
	size_t before = conn_unwritten(c);

	conn_reply(c, text, false);
	if (conn_unwritten(c) > before)
		conn_page_pass(c->page, before);
}

void conn_push(struct conn *c, struct slice text, bool report)
{
	if (c->dead || c->closing)
		return;
	conn_mark(c);
	c->pushed += text.len;
	if (c->pushed > c->env->output_bytes) {
		const struct log_account who = conn_log_account(c->account);

		log_caused(LOG_LEVEL_WARNING, LOG_EVENT_client_closed, &who,
			   LOG_FIELDS("why=%s bytes=%d", "output", c->pushed),
			   "closed a client that does not read: more is queued for it than limits.output_bytes = %zu",
			   c->env->output_bytes);
		conn_die(c);
		return;
	}
	if (c->pushed > CONN_UNWRITTEN_SMALL && !conn_admits(c, text.len))
		return;
	conn_queue(c, text);
	if (report)
		c->unreported = conn_unwritten(c);
	conn_set_dirty(c);
}

void conn_close(struct conn *c)
{
	if (conn_is_ghost(c) && !c->dead)
		conn_die(c);
	if (c->dead || c->closing)
		return;
	c->closing = true;
	watch_clear(c->input);
	if (watch_is_set(c->output))
		conn_watch_output(c);
	conn_set_dirty(c);
}

/*
 * A client that reads, but gets more all the time, never leaves `out` empty: written bytes are dropped when they are
 * half of it; and when little is left, which is not charged, of a buffer that is large.
 */
static __attribute__((noinline)) void conn_sent_part(struct conn *c)
{
	size_t left = conn_unwritten(c);
	bool large = left <= CONN_UNWRITTEN_SMALL && c->out.cap > 2 * CONN_UNWRITTEN_SMALL;

	conn_count_output(c);
	if (c->pushed > left)
		c->pushed = left;
	if (c->written < left && !large)
		return;
	memmove(c->out.data, c->out.data + c->written, left);
	c->out.len = left;
	c->written = 0;
	if (c->out.cap > 2 * CONN_UNWRITTEN_SMALL && c->out.cap / 2 > left)
		bytes_fit(&c->out);
}

static void conn_count_unreported(struct conn *c, size_t sent)
{
	c->report = c->unreported <= sent;
	c->unreported -= c->report ? c->unreported : sent;
}

/* Sends a part of the unwritten bytes. True: the socket has taken all of it, and may take more. */
static bool conn_send(struct conn *c)
{
	size_t left = conn_unwritten(c), part = left < CONN_PART_BYTES ? left : CONN_PART_BYTES;
	bool passes = c->page && c->page->due;
	ssize_t sent;

	if (passes)
		part = conn_page_part(c->page, part);
	sent = passes ? conn_page_send(c->page, c->fd, (struct slice){ c->out.data + c->written, part })
		      : send(c->fd, c->out.data + c->written, part, MSG_NOSIGNAL);

	if (sent >= 0) {
		c->written += (size_t)sent;
		c->took = true;
		if (c->unwritten.amount)
			c->heard_ns = feed_seen(c->env->feed);
		if (c->unreported)
			conn_count_unreported(c, (size_t)sent);
	} else if (errno != EAGAIN && errno != EINTR) {
		conn_die(c);
	}
	return sent == (ssize_t)part;
}

void conn_flush(struct conn *c)
{
	bool more = !c->dead && conn_unwritten(c) > 0 && conn_send(c);

	if (c->dead)
		return;
	c->sending = more && conn_unwritten(c) > 0;
	if (conn_unwritten(c) > 0) {
		conn_sent_part(c);
		if (c->sending && !c->place.held)
			conn_set_ready(c);
		else
			conn_watch_output(c);
	} else {
		conn_drop_output(c);
		if (c->closing)
			conn_die(c);
	}
	conn_read_on(c);
	/* Continues with input that was held back by unread output. */
	if ((c->in.len > 0 || c->eof) && conn_may_parse(c))
		conn_set_ready(c);
	if (c->report) {
		c->report = false;
		conn_tell(c, EVENT_CLIENT_WRITTEN);
	}
	conn_unmark(c);
}

void conn_flush_all(struct conn_env *env)
{
	struct conn *c;

	while ((c = TAILQ_FIRST(&env->dirty))) {
		TAILQ_REMOVE(&env->dirty, c, dirty);
		c->is_dirty = false;
		conn_flush(c);
	}
}
