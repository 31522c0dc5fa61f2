/* SPDX-License-Identifier: Apache-2.0 */
#include "io/socket/conn.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <sys/socket.h>

#include "base/cold.h"
#include "base/container.h"
#include "base/mem.h"
#include "base/queue.h"
#include "core/port/account_text.h"
#include "io/base/parcel.h"
#include "io/base/watch.h"
#include "io/socket/disposer.h"
#include "io/socket/intake.h"
#include "protocol/commands.h"

#define CONN_LOOK_NS CLOCK_NS_PER_S

/*
 * Room for answers. What is not read yet is charged to the user, but for CONN_UNWRITTEN_SMALL of each connection. An answer
 * is never a reason to close a client that reads: its request waits until there is room.
 *
 *   request | means                                    | event -> next state
 *   short   | its answer is short, whatever others own | asked at once
 *   long    | its answer may be long: a command that   | there is room for the longest answer, or its user has nothing
 *           |   shows much, or a request that is long  |   unread -> asked; else -> held
 *   held    | it stays unparsed, and what comes behind | an answer of its user was written, and there is room -> asked,
 *           |   it in the socket                       |   the oldest first; the connection ends -> none
 *   asked   | a long one that is not answered at once: | answered -> none; what is unread then is charged
 *           |   room for the longest answer is charged |
 *
 * So a user never has more unread than its share, or one answer if others leave less, and for each connection: twice
 * CONN_UNWRITTEN_SMALL, once for answers and once for pushes, which cannot wait; and an answer that no command of the table
 * above gives. Who would get more than that is closed.
 *
 * While a request is held, connections of that user that have had something unread for CONN_PATIENCE_NS, and read nothing
 * of it, are closed until there is room: they keep others waiting. Who reads, however slowly, is not closed.
 */

/* A place among those that are held may be free. */
static void conn_wake(struct conn *c)
{
	struct party_member *first = TAILQ_FIRST(&c->member.party->held);

	if (first && conn_has_room(container_of(first, struct conn, member)))
		party_release(&c->env->parties, first);
}

/* How much is unwritten, or expected, has changed: its account is charged for it. */
static void conn_count_output(struct conn *c)
{
	size_t unwritten = conn_unwritten(c), before = c->unwritten.amount;
	size_t amount = unwritten > CONN_UNWRITTEN_SMALL ? unwritten - CONN_UNWRITTEN_SMALL : 0;

	if (c->expects && amount < c->env->output_bytes)
		amount = c->env->output_bytes;
	if (!before)
		c->heard_ns = feed_seen(c->env->feed);
	charge_set(&c->unwritten, c->account, SOCKET_OUTPUT, amount);
	if (amount < before)
		conn_wake(c);
}

static COLD void conn_hold(struct conn *c)
{
	party_hold(&c->env->parties, &c->member);
	if (!watch_is_set(c->env->patience))
		watch_set(c->env->patience, -1, 0, CONN_LOOK_NS);
}

/* Its request, of so many bytes, may have a long answer. */
static bool conn_asks_much(const struct conn *c, size_t request_bytes)
{
	return request_bytes > CONN_UNWRITTEN_SMALL || command_shows_much(c->reader.argc, c->reader.argv);
}

static bool conn_must_wait(const struct conn *c, size_t request_bytes)
{
	return c->account->used[SOCKET_OUTPUT] && !conn_has_room(c) && conn_asks_much(c, request_bytes);
}

/* It was asked, and is not answered yet. */
static void conn_expect(struct conn *c)
{
	c->expects = true;
	conn_count_output(c);
}

static void close_deaf(struct conn *c, size_t more)
{
	const struct log_account who = conn_log_account(c->account);
	struct bytes sentence = { 0 };

	account_refusal(c->account, SOCKET_OUTPUT, c->privileged, &socket_pools_words[SOCKET_OUTPUT], &sentence);
	log_caused(LOG_LEVEL_WARNING, LOG_EVENT_client_closed, &who,
		   LOG_FIELDS("why=%s bytes=%d", "output", conn_unwritten(c) + more),
		   "closed a client that does not read: %.*s", (int)sentence.len, sentence.data);
	bytes_free(&sentence);
	conn_die(c);
	/* That is room for the next one, who need not wait until this one is freed. */
	c->out.len = c->written;
	c->expects = false;
	conn_count_output(c);
}

/* False: its user has too much that is not read, and it is closed for that. */
static bool conn_admits(struct conn *c, size_t more)
{
	if (conn_may_have(c, more))
		return true;
	close_deaf(c, more);
	return false;
}

void conn_lose_patience(struct conn *c, int64_t now_ns)
{
	if (!c->dead && !c->closing && conn_unwritten(c) > CONN_UNWRITTEN_SMALL &&
	    !TAILQ_EMPTY(&c->member.party->held) && now_ns - c->heard_ns >= CONN_PATIENCE_NS)
		close_deaf(c, 0);
}

/* Whatever is due to it. */
static void conn_queue(struct conn *c, struct slice text)
{
	if (!c->out.data) {
		c->out = c->env->spare;
		c->env->spare = (struct bytes){ 0 };
	}
	bytes_slice(&c->out, text);
	if (conn_unwritten(c) > CONN_UNWRITTEN_SMALL)
		conn_count_output(c);
}

/* What is unwritten is of no use any longer. */
static void conn_drop_output(struct conn *c)
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

/* One that may wait for the next one must not keep that next one from being requested. */
static void conn_hurry_lazy(struct conn *c)
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
	conn_set_busy(c);
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
	size_t most = c->env->one ? CONN_PART_BYTES : CONN_TURN_PART_BYTES;
	size_t left = conn_unwritten(c), part = left < most ? left : most;
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

/* writes a part of it */
static void conn_flush(struct conn *c)
{
	bool more = !c->dead && conn_unwritten(c) > 0 && conn_send(c);

	if (c->dead)
		return;
	c->sending = more && conn_unwritten(c) > 0;
	if (conn_unwritten(c) > 0) {
		conn_sent_part(c);
		if (c->sending && !c->member.held)
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
	conn_clear_busy(c);
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

void conn_set_dirty(struct conn *c)
{
	if (c->is_dirty)
		return;
	c->is_dirty = true;
	TAILQ_INSERT_TAIL(&c->env->dirty, c, dirty);
}

/*
 * Reports what comes, and the end of the peer, once each: what may not be read yet needs no other watch, and is not reported
 * again and again.
 */
static void conn_watch(struct conn *c)
{
	watch_set(c->input, c->fd, WATCH_READ | WATCH_HANGUP | WATCH_EDGE | WATCH_KEEP, WATCH_NO_TIMEOUT);
}

void conn_die(struct conn *c)
{
	c->dead = true;
	c->env->dead++;
	if (c->member.held)
		party_release(&c->env->parties, &c->member);
	watch_clear(c->input);
	watch_clear(c->output);
	conn_set_ready(c);
}

bool conn_is_ghost(const struct conn *c)
{
	return c->fd < 0;
}

bool conn_is_busy(const struct conn *c)
{
	return c->waiting || c->closing || c->dead || c->in.len > 0 || c->unreported || c->report ||
	       conn_unwritten(c) > 0;
}

struct log_account conn_log_account(const struct account *account)
{
	return (struct log_account){ account->uid, slice_of(account->unit ? account->unit : "") };
}

COLD void conn_tell(struct conn *c, enum event_type type)
{
	const struct event event = { .type = type, .conn = c->number };

	feed_event(c->env->feed, &event);
}

/* Of its reader, while it is idle. */
enum { CONN_WORDS_KEPT = 16, CONN_SCRATCH_KEPT = 256 };

static void conn_count_input(struct conn *c)
{
	size_t all = conn_unparsed(c), more = all > CONN_UNPARSED_SMALL ? all - CONN_UNPARSED_SMALL : 0;

	if (more != c->unparsed.amount)
		charge_set(&c->unparsed, c->account, SOCKET_INPUT, more);
}

void conn_enter(struct conn *c, struct account *account)
{
	bool queued = c->member.queued;

	c->account = account;
	if (!conn_is_ghost(c)) {
		party_leave(&c->env->parties, &c->member);
		party_enter(&c->env->parties, &c->member, account);
	}
	if (queued)
		party_add(&c->env->parties, &c->member);
	charge_set(&c->unwritten, account, SOCKET_OUTPUT, c->unwritten.amount);
	charge_set(&c->unparsed, account, SOCKET_INPUT, c->unparsed.amount);
	charge_set(&c->connection, account, SOCKET_CONNECTIONS, !conn_is_ghost(c));
	if (c->page)
		conn_page_enter(c->page, account);
}

void conn_free(struct conn *c)
{
	watch_free(c->input);
	watch_free(c->output);
	c->expects = false;
	conn_drop_output(c);
	party_leave(&c->env->parties, &c->member);
	c->env->dead -= c->dead;
	if (c->is_dirty)
		TAILQ_REMOVE(&c->env->dirty, c, dirty);
	resp_reader_deinit(&c->reader);
	bytes_free(&c->in);
	if (c->given && c->fd >= 0)
		shutdown(c->fd, SHUT_RDWR);
	/* Before the charges are given back: the account exists only as long as it is charged. */
	if (c->fd >= 0)
		disposer_take(c->env->disposer, c->fd, c->account);
	charge_give_back(&c->unparsed, SOCKET_INPUT);
	charge_give_back(&c->connection, SOCKET_CONNECTIONS);
	conn_page_free(c->page);
	mem_free(c);
}

static void conn_refuse(struct conn *c, enum error_code code, struct slice sentence)
{
	struct bytes text = { 0 };

	resp_error(&text, code, sentence);
	conn_queue(c, bytes_view(&text));
	bytes_free(&text);
	conn_close(c);
}

static COLD void conn_broken(struct conn *c)
{
	struct bytes sentence = { 0 };

	bytes_text(&sentence, "Protocol error: ");
	bytes_text(&sentence, c->reader.error);
	conn_refuse(c, ERROR_ERR, bytes_view(&sentence));
	bytes_free(&sentence);
}

/* The rest of the input is an incomplete request, and longer than what may be kept now. */
static void conn_refuse_long(struct conn *c)
{
	const struct log_account who = conn_log_account(c->account);
	struct bytes sentence = { 0 };

	if (conn_may_keep(c) || !conn_may_parse(c) || c->member.queued || c->eof)
		return;
	account_refusal(c->account, SOCKET_INPUT, c->privileged, &socket_pools_words[SOCKET_INPUT], &sentence);
	log_caused(LOG_LEVEL_WARNING, LOG_EVENT_client_closed, &who, LOG_FIELDS("why=%s bytes=%d", "input", c->in.len),
		   "closed a client: %.*s", (int)sentence.len, sentence.data);
	conn_refuse(c, ERROR_LIMIT, bytes_view(&sentence));
	bytes_free(&sentence);
}

static void conn_ask(struct conn *c, size_t request_bytes)
{
	c->waiting = c->asking = true;
	feed_asked(c->env->feed, c->number, c->reader.argc, c->reader.argv);
	c->asking = false;
	if (c->waiting && conn_asks_much(c, request_bytes))
		conn_expect(c);
}

/* Parses a share of its requests. Returns how many bytes were used. */
static size_t conn_parse(struct conn *c, struct slice input)
{
	int share = CONN_REQUESTS_PER_TURN;
	size_t total = 0, used;

	c->more = true;
	while (total < input.len && conn_may_parse(c)) {
		struct slice rest = { input.data + total, input.len - total };

		if (share-- == 0 || feed_share_spent(c->env->feed))
			return total;
		switch (resp_read_request(&c->reader, rest, &used)) {
		case RESP_MORE:
			c->more = false;
			return total;
		case RESP_BROKEN:
			conn_broken(c);
			return input.len;
		case RESP_DONE:
			if (c->reader.argc > 0 && conn_must_wait(c, used)) {
				conn_hold(c);
				return total;
			}
			total += used;
			if (c->reader.argc > 0)
				conn_ask(c, used);
			break;
		}
	}
	c->more = total < input.len;
	return total;
}

/* Keeps the unused part of `input`, which is c->in or was just read. */
static void conn_keep_rest(struct conn *c, struct slice input, size_t used)
{
	size_t left = input.len - used;

	if (c->in.len == 0)
		bytes_append(&c->in, input.data + used, left);
	else if (used > 0)
		memmove(c->in.data, c->in.data + used, left);
	c->in.len = left;
	/* What was there may have been much more, and was charged. */
	if (c->in.cap > 2 * CONN_UNPARSED_SMALL && c->in.cap / 2 > left)
		bytes_fit(&c->in);
	conn_count_input(c);
	conn_refuse_long(c);
}

/* Kept apart from conn_keep_nothing(): most requests come whole, and are small. */
static COLD void conn_drop_input(struct conn *c)
{
	if (c->in.len > 0) {
		bytes_free(&c->in);
		conn_count_input(c);
	}
	if (c->reader.argv_cap > CONN_WORDS_KEPT || c->reader.scratch.cap > CONN_SCRATCH_KEPT) {
		size_t args_max = c->reader.args_max, bytes_max = c->reader.request_bytes_max;

		resp_reader_deinit(&c->reader);
		resp_reader_init(&c->reader, args_max, bytes_max);
	}
}

/* All of its input was used. An idle connection does not keep the words of a large request. */
static inline void conn_keep_nothing(struct conn *c)
{
	if (c->in.len > 0 || c->reader.argv_cap > CONN_WORDS_KEPT || c->reader.scratch.cap > CONN_SCRATCH_KEPT)
		conn_drop_input(c);
}

/* The peer will send no more. */
static __attribute__((noinline)) void conn_end_half(struct conn *c)
{
	if (c->waiting)
		conn_tell(c, EVENT_CLIENT_HALF_CLOSED); /* the broker's answer makes the connection ready again */
	/* If it neither waits nor is held back by its output, all complete requests are answered. */
	else if (c->eof && conn_may_parse(c) && !c->member.queued)
		conn_close(c);
}

static void conn_consume(struct conn *c, struct slice input)
{
	size_t used = conn_parse(c, input);

	if (c->more && conn_may_parse(c))
		conn_set_ready(c);
	if (used == input.len || c->closing || c->dead)
		conn_keep_nothing(c);
	else
		conn_keep_rest(c, input, used);
	if (c->half)
		conn_end_half(c);
	conn_hurry_lazy(c);
	conn_flush_all(c->env);
	conn_read_on(c);
	conn_clear_busy(c);
	if (c->env->parties.held)
		conn_wake(c);
}

static COLD void conn_refuse_descriptors(struct conn *c)
{
	const struct log_account who = conn_log_account(c->account);

	log_caused(LOG_LEVEL_WARNING, LOG_EVENT_client_closed, &who, LOG_FIELDS("why=%s bytes=%d", "descriptors", c->in.len),
		   "closed a client that sent a file descriptor");
	conn_keep_nothing(c);
	conn_refuse(c, ERROR_ERR, SLICE("Protocol error: clients send no file descriptors (SCM_RIGHTS)"));
}

/* Whether the peer has closed both directions, and not only the one in which it sends. */
static COLD bool conn_hung_up(const struct conn *c)
{
	struct pollfd p = { .fd = c->fd, .events = POLLRDHUP };

	return poll(&p, 1, 0) == 1 && (p.revents & (POLLHUP | POLLERR | POLLNVAL));
}

static COLD void conn_read_nothing(struct conn *c, ssize_t why)
{
	if (why == INTAKE_BRINGS) {
		conn_refuse_descriptors(c);
		return;
	}
	c->readable = errno == EINTR;
	if (errno == EINTR)
		conn_set_ready(c);
	else if (errno != EAGAIN)
		conn_die(c);
	conn_clear_busy(c);
}

static size_t conn_read_most(const struct conn *c)
{
	if (!c->env->one)
		return CONN_TURN_BYTES;
	return conn_has_share(c) ? CONN_READ_BYTES : CONN_UNPARSED_SMALL;
}

static void conn_read(struct conn *c)
{
	size_t most = conn_read_most(c);
	struct slice input = { c->env->scratch, 0 };
	ssize_t len;

	conn_set_busy(c);
	c->took = false;
	len = intake_read(c->fd, c->open, c->env->scratch, most);
	if (len < 0) {
		conn_read_nothing(c, len);
		return;
	}
	if (len == 0)
		c->half = c->eof = true;
	/* Its end, too, is read. */
	c->readable = (size_t)len == most || (c->half && !c->eof);
	input.len = (size_t)len;
	if (c->in.len > 0) {
		bytes_slice(&c->in, input);
		input = bytes_view(&c->in);
	}
	conn_consume(c, input);
	/* If it had gone by then, with answers unread, that was reported as input, and will not be again. */
	if (!c->took && !c->readable && !c->closing && !c->dead && conn_hung_up(c))
		conn_die(c);
}

/* What has come may not be read now: who is refused for that? */
static __attribute__((noinline)) void conn_hold_back(struct conn *c)
{
	conn_refuse_long(c);
	conn_hurry_lazy(c);
}

void conn_serve(struct conn *c)
{
	if (c->sending) {
		conn_flush(c);
		if (c->member.queued) /* for the next part, its end, or the next request */
			return;
	}
	if (c->readable && !c->more && conn_may_read(c)) {
		conn_read(c);
		return;
	}
	if (c->closing)
		return;
	conn_consume(c, bytes_view(&c->in));
	/* Only now: what it has may have been much, and complete. */
	if (c->readable && !c->dead && !conn_may_read(c))
		conn_hold_back(c);
}

/* Events other than input alone. */
static __attribute__((noinline)) void conn_changed(struct conn *c, short what)
{
	if (conn_hung_up(c)) {
		conn_die(c);
		return;
	}
	if (what & WATCH_HANGUP) {
		c->half = true;
		if (c->waiting)
			conn_tell(c, EVENT_CLIENT_HALF_CLOSED);
	}
	if (c->dead || c->closing)
		return;
	c->readable = true;
	conn_set_ready(c);
}

static void conn_input(int fd, short what, void *arg)
{
	struct conn *c = arg;

	/* The end of a peer that leaves answers unread looks like input: who may be read is found out by that. */
	if (what != (WATCH_READ | WATCH_EDGE) || c->waiting || c->eof || c->member.held) {
		conn_changed(c, what);
	} else {
		c->readable = true;
		conn_set_ready(c);
	}
}

static void conn_output(int fd, short what, void *arg)
{
	struct conn *c = arg;

	if (what & WATCH_TIMEOUT) {
		conn_die(c);
	} else if (c->member.held) {
		conn_flush(c);
	} else {
		c->sending = true;
		conn_set_ready(c);
	}
}

/* By the edge, as its input: a descriptor is watched in one way. Most connections never need it. */
void conn_watch_output(struct conn *c)
{
	if (!c->output)
		c->output = watch_new(feed_base(c->env->feed), conn_output, c);
	watch_set(c->output, c->fd, WATCH_WRITE | WATCH_EDGE, c->closing ? CONN_PATIENCE_NS : WATCH_NO_TIMEOUT);
}

static struct conn *conn_make(struct conn_env *env, int fd, uint32_t number)
{
	struct conn *c = mem_new(sizeof(*c));

	c->env = env;
	c->account = &env->accounts.nobody;
	c->fd = fd;
	c->number = number;
	c->open = fd >= 0 && intake_is_open(fd);
	resp_reader_init(&c->reader, env->request_args, env->request_bytes);
	party_enter(&env->parties, &c->member, c->account);
	c->input = watch_new(feed_base(env->feed), conn_input, c);
	return c;
}

struct conn *conn_new(struct conn_env *env, int fd, uint32_t number)
{
	struct conn *c = conn_make(env, fd, number);

	conn_watch(c);
	return c;
}

struct conn *conn_ghost(struct conn_env *env, uint32_t number, int64_t until_ns)
{
	struct conn *c = conn_make(env, -1, number);

	c->closing = true;
	c->until_ns = until_ns;
	return c;
}

/* ---- a hand-over ---- */

void conn_pack(const struct conn *c, struct parcel *p, struct entry_writer *w)
{
	assert(!c->dead && !c->asking && !c->report);
	entry_number(w, "number", c->number);
	entry_number(w, "ghost", conn_is_ghost(c));
	entry_number(w, "until_ns", c->until_ns);
	if (conn_is_ghost(c))
		return;
	parcel_fd(p, w, "fd", c->fd);
	entry_text(w, "in", bytes_view(&c->in));
	if (c->out.len > c->written)
		entry_text(w, "out", (struct slice){ c->out.data + c->written, conn_unwritten(c) });
	entry_number(w, "pushed", (int64_t)c->pushed);
	entry_number(w, "unreported", (int64_t)c->unreported);
	entry_number(w, "waiting", c->waiting);
	entry_number(w, "expects", c->expects);
	entry_number(w, "half", c->half);
	entry_number(w, "eof", c->eof);
	entry_number(w, "closing", c->closing);
	conn_page_pack(c->page, p, w);
}

struct conn *conn_unpack(struct conn_env *env, struct parcel *p, const struct entry *e)
{
	int fd = parcel_take_fd(p, e, "fd");
	struct slice out = parcel_get_text(e, "out");
	uint32_t number = (uint32_t)parcel_get_number(e, "number");
	struct conn *c;

	if (parcel_get_number(e, "ghost"))
		return conn_ghost(env, number, parcel_get_number(e, "until_ns"));
	if (fd < 0)
		return NULL;
	c = conn_make(env, fd, number);
	if (!conn_page_unpack(c, p, e)) {
		conn_free(c);
		return NULL;
	}
	bytes_slice(&c->in, parcel_get_text(e, "in"));
	conn_count_input(c);
	bytes_slice(&c->out, out);
	c->expects = parcel_get_number(e, "expects");
	conn_count_output(c);
	c->pushed = (size_t)parcel_get_number(e, "pushed");
	c->unreported = (size_t)parcel_get_number(e, "unreported");
	c->waiting = parcel_get_number(e, "waiting");
	c->half = parcel_get_number(e, "half");
	c->eof = parcel_get_number(e, "eof");
	c->closing = parcel_get_number(e, "closing");
	return c;
}

/* What was due in the other process is due now: output is written, and input parsed, if it may be. */
void conn_begin(struct conn *c)
{
	if (conn_is_ghost(c))
		return;
	if (!c->closing)
		conn_watch(c);
	if (conn_unwritten(c) > 0 || c->closing)
		conn_set_dirty(c);
	if (c->in.len > 0 || c->half || c->eof)
		conn_set_ready(c);
}
