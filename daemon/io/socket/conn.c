/* SPDX-License-Identifier: Apache-2.0 */
#include "io/socket/conn.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <sys/socket.h>

#include "base/cold.h"
#include "base/log.h"
#include "base/mem.h"
#include "core/port/account_text.h"
#include "io/base/feed.h"
#include "io/base/parcel.h"
#include "io/base/watch.h"
#include "io/socket/conn_mark.h"
#include "io/socket/conn_output.h"
#include "io/socket/conn_page.h"
#include "io/socket/conn_room.h"
#include "io/socket/disposer.h"
#include "io/socket/intake.h"

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
	bool queued = c->place.queued;

	c->account = account;
	if (!conn_is_ghost(c)) {
		party_leave(&c->env->parties, &c->place);
		party_enter(&c->env->parties, &c->place, account);
	}
	if (queued)
		party_add(&c->env->parties, &c->place);
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
	party_leave(&c->env->parties, &c->place);
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

	if (conn_may_keep(c) || !conn_may_parse(c) || c->place.queued || c->eof)
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
	else if (c->eof && conn_may_parse(c) && !c->place.queued)
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
	conn_unmark(c);
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
	conn_unmark(c);
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

	conn_mark(c);
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
		if (c->place.queued) /* for the next part, its end, or the next request */
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
	if (what != (WATCH_READ | WATCH_EDGE) || c->waiting || c->eof || c->place.held) {
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
	} else if (c->place.held) {
		conn_flush(c);
	} else {
		c->sending = true;
		conn_set_ready(c);
	}
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
	party_enter(&env->parties, &c->place, c->account);
	c->input = watch_new(feed_base(env->feed), conn_input, c);
	c->output = watch_new(feed_base(env->feed), conn_output, c);
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
