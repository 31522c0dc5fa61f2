/* SPDX-License-Identifier: Apache-2.0 */
#include "io/socket/conn.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/queue.h"
#include "io/base/feed.h"
#include "io/base/parcel.h"
#include "io/base/watch.h"

/* While a connection closes, a peer that reads nothing for so long is no longer waited for. */
#define CONN_PATIENCE_NS (5 * CLOCK_NS_PER_S)
/*
 * A connection whose recent requests average above this is "slow": it asks for lists, and is not only on a slow machine.
 */
#define CONN_SLOW_NS (200 * INT64_C(1000))

enum { CONN_MEAN_PART = 4, CONN_WORDS_KEPT = 16 };

/* Why something that may be parsed is left for another turn. */
enum left { LEFT_NOTHING, LEFT_BY_TIME, LEFT_BY_SHARE };

static bool conn_is_slow(const struct conn *c)
{
	return c->mean_ns > CONN_SLOW_NS;
}

static void conn_set_ready(struct conn *c, bool later)
{
	if (c->queue)
		return;
	c->queue = later || conn_is_slow(c) ? &c->env->later : &c->env->ready;
	TAILQ_INSERT_TAIL(c->queue, c, ready);
}

static void conn_set_dirty(struct conn *c)
{
	if (c->is_dirty)
		return;
	c->is_dirty = true;
	TAILQ_INSERT_TAIL(&c->env->dirty, c, dirty);
}

static size_t conn_unwritten(const struct conn *c)
{
	return c->out.len - c->written;
}

static bool conn_may_parse(const struct conn *c)
{
	size_t unwritten = conn_unwritten(c);

	if (c->waiting || c->closing || c->dead)
		return false;
	return unwritten == 0 || (unwritten < c->env->output_bytes / 2 && c->env->unwritten < CONN_UNWRITTEN_MAX);
}

/* How much input that cannot be parsed yet the connection may keep. */
static size_t conn_input_max(const struct conn *c)
{
	size_t max = c->reader.request_bytes_max;

	return c->env->unparsed > CONN_UNPARSED_MAX && max > CONN_UNPARSED_SMALL ? CONN_UNPARSED_SMALL : max;
}

static void conn_count_input(struct conn *c)
{
	c->env->unparsed += c->in.len - c->unparsed;
	c->unparsed = c->in.len;
}

bool conn_is_ghost(const struct conn *c)
{
	return c->fd < 0;
}

bool conn_is_busy(const struct conn *c)
{
	return c->waiting || c->closing || c->dead || c->in.len > 0 || c->unreported || c->report || conn_unwritten(c) > 0;
}

/* The kernel must not have given or taken anything before; the compiler sees no use of the mark. */
static inline void conn_mark(struct conn *c)
{
	if (!c->mark)
		return;
	__atomic_store_n(c->mark, 1, __ATOMIC_RELEASE);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
}

static inline void conn_unmark(struct conn *c)
{
	if (c->mark && !conn_is_busy(c))
		__atomic_store_n(c->mark, 0, __ATOMIC_RELEASE);
}

static inline void conn_queue(struct conn *c, struct slice text)
{
	if (!c->out.data) {
		c->out = c->env->spare;
		c->env->spare = (struct bytes){ 0 };
	}
	bytes_slice(&c->out, text);
	c->env->unwritten += text.len;
}

static inline void conn_drop_output(struct conn *c)
{
	c->env->unwritten -= conn_unwritten(c);
	if (!c->env->spare.data && c->out.cap <= CONN_SPARE_MAX) {
		c->env->spare = c->out;
		c->env->spare.len = 0;
		c->out = (struct bytes){ 0 };
	} else {
		bytes_free(&c->out);
	}
	c->written = 0;
	c->pushed = 0;
}

static inline bool conn_may_read(const struct conn *c)
{
	return conn_may_parse(c) && !c->eof && c->in.len <= conn_input_max(c);
}

/*
 * What the input event should wait for. A level-triggered event reports a half-closed peer again and again; if there is
 * nothing to read from it, only the edge of its final hang-up is of interest.
 */
static enum conn_watch conn_wants(const struct conn *c)
{
	if (c->dead || c->closing)
		return CONN_WATCH_NONE;
	if (conn_may_read(c))
		return CONN_WATCH_READ;
	return c->half || c->eof ? CONN_WATCH_EDGE : CONN_WATCH_HANGUP;
}

static void conn_watch_output(struct conn *c)
{
	unsigned int edge = c->watch == CONN_WATCH_HANGUP || c->watch == CONN_WATCH_EDGE ? WATCH_EDGE : 0;

	watch_set(c->output, c->fd, WATCH_WRITE | edge, c->closing ? CONN_PATIENCE_NS : WATCH_NO_TIMEOUT);
}

static void conn_watch(struct conn *c, enum conn_watch watch)
{
	static const unsigned int flags[] = {
		[CONN_WATCH_READ] = WATCH_READ | WATCH_HANGUP | WATCH_KEEP,
		[CONN_WATCH_HANGUP] = WATCH_READ | WATCH_HANGUP | WATCH_EDGE | WATCH_KEEP,
		[CONN_WATCH_EDGE] = WATCH_READ | WATCH_HANGUP | WATCH_EDGE | WATCH_KEEP,
	};

	if (c->watch == watch)
		return;
	c->watch = watch;
	if (watch == CONN_WATCH_NONE)
		watch_clear(c->input);
	else
		watch_set(c->input, c->fd, flags[watch], WATCH_NO_TIMEOUT);
	if (watch_is_set(c->output))
		conn_watch_output(c);
}

/* Reading stops only when input comes that may not be read: most waiting clients send nothing meanwhile. */
static inline void conn_rewatch(struct conn *c)
{
	if (c->watch != CONN_WATCH_READ || c->half || c->eof || c->closing || c->dead)
		conn_watch(c, conn_wants(c));
}

/* A reply that may wait for the next one must not keep that next one from being requested. */
static inline void conn_hurry_lazy(struct conn *c)
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

void conn_free(struct conn *c)
{
	watch_free(c->input);
	watch_free(c->output);
	if (c->queue)
		TAILQ_REMOVE(c->queue, c, ready);
	if (c->is_dirty)
		TAILQ_REMOVE(&c->env->dirty, c, dirty);
	resp_reader_deinit(&c->reader);
	bytes_free(&c->in);
	conn_count_input(c);
	conn_drop_output(c);
	if (c->given)
		shutdown(c->fd, SHUT_RDWR);
	if (c->fd >= 0)
		close(c->fd);
	mem_free(c);
}

static void conn_die(struct conn *c)
{
	c->dead = true;
	conn_watch(c, CONN_WATCH_NONE);
	watch_clear(c->output);
	conn_set_dirty(c);
}

void conn_reply(struct conn *c, struct slice text, bool lazy)
{
	if (c->dead || c->closing)
		return;
	conn_queue(c, text);
	if (!lazy || conn_unwritten(c) > CONN_LAZY_MAX)
		conn_set_dirty(c);
	if (!c->waiting)
		return;
	c->waiting = false;
	if (!c->asking && (c->in.len > 0 || c->half || c->watch != CONN_WATCH_READ))
		conn_set_ready(c, false);
}

void conn_push(struct conn *c, struct slice text, bool report)
{
	if (c->dead || c->closing)
		return;
	conn_mark(c);
	c->pushed += text.len;
	if (c->pushed > c->env->output_bytes) {
		log_rated(&c->env->rate_overflow, LOG_LEVEL_WARNING,
			  "closed a client that does not read: more is queued for it than limits.output_bytes = %zu",
			  c->env->output_bytes);
		conn_die(c);
		return;
	}
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
	conn_watch(c, CONN_WATCH_NONE);
	conn_set_dirty(c);
}

static void conn_refuse(struct conn *c, enum error_code code, struct slice sentence)
{
	struct bytes text = { 0 };

	resp_error(&text, code, sentence);
	conn_queue(c, bytes_view(&text));
	bytes_free(&text);
	conn_close(c);
}

static void conn_broken(struct conn *c)
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
	if (c->in.len == 0 || c->in.len <= conn_input_max(c) || !conn_may_parse(c) || c->queue || c->eof)
		return;
	log_rated(&c->env->rate_unparsed, LOG_LEVEL_WARNING,
		  "closed a client: the requests of all clients that cannot be served yet have more than %d MiB",
		  CONN_UNPARSED_MAX >> 20);
	_Static_assert(CONN_UNPARSED_MAX == 64 << 20 && CONN_UNPARSED_SMALL == 8 << 10, "the sentence names them");
	conn_refuse(c, ERROR_LIMIT,
		    SLICE("the requests of all clients that cannot be served yet have more than 64 MiB: for now a request may "
			  "have at most 8 KiB"));
}

/* The latest request, of `env->asker`, took until `now_ns`. */
static void conn_charge(struct conn_env *env, int64_t now_ns)
{
	/* One request can add only half of what makes a connection slow: the daemon may have had to wait for its core. */
	const int64_t most_ns = CONN_SLOW_NS * CONN_MEAN_PART / 2;
	struct conn *c = env->asker;
	int64_t took_ns = now_ns - env->asked_ns;

	if (took_ns > most_ns)
		took_ns = most_ns;
	c->mean_ns += (took_ns - c->mean_ns) / CONN_MEAN_PART;
}

/* If there was only one request, its duration is not measured: that would take a look at the clock. */
void conn_end_turn(struct conn_env *env)
{
	if (env->several)
		conn_charge(env, feed_now(env->feed));
	env->asker = NULL;
	env->several = false;
}

static void conn_ask(struct conn *c)
{
	struct conn_env *env = c->env;
	struct event event;
	int64_t now_ns;

	/* The other members of the event are not set: only these are read. */
	event.type = EVENT_CLIENT_ASKED;
	event.conn = c->number;
	event.asked.argc = c->reader.argc;
	event.asked.argv = c->reader.argv;
	c->waiting = c->asking = true;
	feed_event(env->feed, &event);
	c->asking = false;
	/* The clock was read for the event, so that the duration of each request costs nothing. */
	now_ns = feed_seen(env->feed);
	if (env->asker) {
		conn_charge(env, now_ns);
		env->several = true;
	}
	env->asker = c;
	env->asked_ns = now_ns;
}

/* Parses at most `share` requests. Returns how many bytes were used. */
static size_t conn_parse(struct conn *c, struct slice input, int share, enum left *ret_left)
{
	size_t total = 0, used;

	while (total < input.len && conn_may_parse(c)) {
		struct slice rest = { input.data + total, input.len - total };

		if (share-- == 0 || feed_share_spent(c->env->feed)) {
			*ret_left = share < 0 ? LEFT_BY_SHARE : LEFT_BY_TIME;
			break;
		}
		switch (resp_read_request(&c->reader, rest, &used)) {
		case RESP_MORE:
			return total;
		case RESP_BROKEN:
			conn_broken(c);
			return input.len;
		case RESP_DONE:
			total += used;
			if (c->reader.argc > 0)
				conn_ask(c);
			break;
		}
	}
	return total;
}

/* Seldom called: kept apart from those who have no other use for the room that the event takes. */
static __attribute__((noinline)) void conn_tell(struct conn *c, enum event_type type)
{
	const struct event event = { .type = type, .conn = c->number };

	feed_event(c->env->feed, &event);
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
	conn_count_input(c);
	conn_refuse_long(c);
}

/* All of its input was used. An idle connection does not keep the words of a large request. */
static void conn_keep_nothing(struct conn *c)
{
	if (c->in.len > 0) {
		bytes_free(&c->in);
		conn_count_input(c);
	}
	if (c->reader.argv_cap > CONN_WORDS_KEPT) {
		size_t args_max = c->reader.args_max, bytes_max = c->reader.request_bytes_max;

		resp_reader_deinit(&c->reader);
		resp_reader_init(&c->reader, args_max, bytes_max);
	}
}

/*
 * A client that reads, but gets more all the time, never leaves `out` empty: written bytes are dropped when they are
 * half of it.
 */
static void conn_sent_part(struct conn *c)
{
	size_t left = conn_unwritten(c);

	if (c->pushed > left)
		c->pushed = left;
	if (c->written < left)
		return;
	memmove(c->out.data, c->out.data + c->written, left);
	c->out.len = left;
	c->written = 0;
}

static void conn_count_unreported(struct conn *c, size_t sent)
{
	c->report = c->unreported <= sent;
	c->unreported -= c->report ? c->unreported : sent;
}

/* Sends as many of the unwritten bytes as the socket accepts. */
static void conn_send(struct conn *c)
{
	ssize_t sent = send(c->fd, c->out.data + c->written, conn_unwritten(c), MSG_NOSIGNAL);

	if (sent >= 0) {
		c->written += (size_t)sent;
		c->env->unwritten -= (size_t)sent;
		if (c->unreported)
			conn_count_unreported(c, (size_t)sent);
	} else if (errno != EAGAIN && errno != EINTR) {
		conn_die(c);
	}
}

void conn_flush(struct conn *c)
{
	if (!c->dead && conn_unwritten(c) > 0)
		conn_send(c);
	if (c->dead)
		return;
	if (conn_unwritten(c) > 0) {
		conn_sent_part(c);
		conn_watch_output(c);
	} else {
		conn_drop_output(c);
		if (c->closing)
			conn_die(c);
	}
	conn_rewatch(c);
	/* Continues with input that was held back by unread output. */
	if ((c->in.len > 0 || c->eof) && conn_may_parse(c))
		conn_set_ready(c, false);
	if (c->report) {
		c->report = false;
		conn_tell(c, EVENT_CLIENT_WRITTEN);
	}
	conn_unmark(c);
}

/* A client that was answered continues in the turn of the others. Dead connections wait for the end of the turn. */
static void conn_flush_all(struct conn_env *env)
{
	struct conn *c, *after;

	TAILQ_FOREACH_SAFE(c, &env->dirty, dirty, after) {
		if (c->dead)
			continue;
		TAILQ_REMOVE(&env->dirty, c, dirty);
		c->is_dirty = false;
		conn_flush(c);
	}
}

/* The peer will send no more. */
static void conn_end_half(struct conn *c)
{
	if (c->waiting)
		conn_tell(c, EVENT_CLIENT_HALF_CLOSED); /* the broker's answer makes the connection ready again */
	/* If it neither waits nor is held back by its output, all complete requests are answered. */
	else if (c->eof && conn_may_parse(c) && !c->queue)
		conn_close(c);
}

static void conn_consume(struct conn *c, struct slice input, int share)
{
	enum left left = LEFT_NOTHING;
	size_t used = conn_parse(c, input, share, &left);

	if (left)
		conn_set_ready(c, left == LEFT_BY_SHARE);
	if (used == input.len || c->closing || c->dead)
		conn_keep_nothing(c);
	else
		conn_keep_rest(c, input, used);
	if (c->half)
		conn_end_half(c);
	conn_hurry_lazy(c);
	conn_flush_all(c->env);
	conn_rewatch(c);
	conn_unmark(c);
}

void conn_continue(struct conn *c)
{
	if (c->dead || c->closing)
		return;
	conn_consume(c, bytes_view(&c->in), conn_is_slow(c) ? 1 : CONN_REQUESTS_PER_TURN);
}

/* A connection that is in a queue, or belongs into the later one, is served when its turn comes. */
static void conn_read(struct conn *c)
{
	size_t most = c->env->unparsed > CONN_UNPARSED_MAX ? CONN_UNPARSED_SMALL : CONN_READ_BYTES;
	struct slice input = { c->env->scratch, 0 };
	int share = c->queue || conn_is_slow(c) ? 0 : CONN_REQUESTS_PER_TURN;
	ssize_t len;

	conn_mark(c);
	len = recv(c->fd, c->env->scratch, most, 0);
	if (len < 0) {
		if (errno != EAGAIN && errno != EINTR)
			conn_die(c);
		conn_unmark(c);
		return;
	}
	if (len == 0)
		c->half = c->eof = true;
	input.len = (size_t)len;
	if (c->in.len > 0) {
		bytes_slice(&c->in, input);
		input = bytes_view(&c->in);
	}
	conn_consume(c, input, share);
}

/* Whether the peer has closed both directions, and not only the one in which it sends. */
static bool conn_hung_up(const struct conn *c)
{
	struct pollfd p = { .fd = c->fd, .events = POLLRDHUP };

	return poll(&p, 1, 0) == 1 && (p.revents & (POLLHUP | POLLERR | POLLNVAL));
}

/* Handles events other than input that may be read. Returns whether there is such input as well. */
static __attribute__((noinline)) bool conn_changed(struct conn *c, short what)
{
	if (conn_hung_up(c)) {
		conn_die(c);
		return false;
	}
	if (what & WATCH_HANGUP) {
		c->half = true;
		if (c->waiting)
			conn_tell(c, EVENT_CLIENT_HALF_CLOSED);
	}
	if (c->dead || c->closing)
		return false;
	if ((what & WATCH_READ) && conn_may_read(c))
		return true;
	conn_refuse_long(c);
	conn_hurry_lazy(c);
	conn_watch(c, conn_wants(c));
	return false;
}

static void conn_input(int fd, short what, void *arg)
{
	struct conn *c = arg;

	if ((what == WATCH_READ && conn_may_read(c)) || conn_changed(c, what))
		conn_read(c);
}

static void conn_output(int fd, short what, void *arg)
{
	struct conn *c = arg;

	if (what & WATCH_TIMEOUT)
		conn_die(c);
	else
		conn_flush(c);
}

static struct conn *conn_make(struct conn_env *env, int fd, uint32_t number)
{
	struct conn *c = mem_new(sizeof(*c));

	c->env = env;
	c->fd = fd;
	c->number = number;
	resp_reader_init(&c->reader, env->request_args, env->request_bytes);
	c->input = watch_new(feed_base(env->feed), conn_input, c);
	c->output = watch_new(feed_base(env->feed), conn_output, c);
	return c;
}

struct conn *conn_new(struct conn_env *env, int fd, uint32_t number)
{
	struct conn *c = conn_make(env, fd, number);

	conn_watch(c, CONN_WATCH_READ);
	return c;
}

struct conn *conn_ghost(struct conn_env *env, uint32_t number)
{
	struct conn *c = conn_make(env, -1, number);

	c->closing = true;
	return c;
}

/* ---- a hand-over ---- */

void conn_pack(const struct conn *c, struct parcel *p)
{
	assert(!c->dead && !c->asking && !c->report);
	parcel_int(p, "number", c->number);
	parcel_int(p, "ghost", conn_is_ghost(c));
	if (conn_is_ghost(c))
		return;
	parcel_fd(p, "fd", c->fd);
	parcel_text(p, "in", bytes_view(&c->in));
	if (c->out.len > c->written)
		parcel_text(p, "out", (struct slice){ c->out.data + c->written, conn_unwritten(c) });
	parcel_int(p, "pushed", (int64_t)c->pushed);
	parcel_int(p, "unreported", (int64_t)c->unreported);
	parcel_int(p, "mean_ns", c->mean_ns);
	parcel_int(p, "waiting", c->waiting);
	parcel_int(p, "half", c->half);
	parcel_int(p, "eof", c->eof);
	parcel_int(p, "closing", c->closing);
}

struct conn *conn_unpack(struct conn_env *env, struct parcel *p, const struct parcel_record *r)
{
	int fd = parcel_take_fd(p, r, "fd");
	struct slice out = parcel_get_text(r, "out");
	uint32_t number = (uint32_t)parcel_get_int(r, "number");
	struct conn *c;

	if (parcel_get_int(r, "ghost"))
		return conn_ghost(env, number);
	if (fd < 0)
		return NULL;
	c = conn_make(env, fd, number);
	bytes_slice(&c->in, parcel_get_text(r, "in"));
	conn_count_input(c);
	bytes_slice(&c->out, out);
	env->unwritten += out.len;
	c->pushed = (size_t)parcel_get_int(r, "pushed");
	c->unreported = (size_t)parcel_get_int(r, "unreported");
	c->mean_ns = parcel_get_int(r, "mean_ns");
	c->waiting = parcel_get_int(r, "waiting");
	c->half = parcel_get_int(r, "half");
	c->eof = parcel_get_int(r, "eof");
	c->closing = parcel_get_int(r, "closing");
	return c;
}

/* What was due in the other process is due now: output is written, and input parsed, if it may be. */
void conn_begin(struct conn *c)
{
	if (conn_is_ghost(c))
		return;
	conn_watch(c, conn_wants(c));
	if (conn_unwritten(c) > 0 || c->closing)
		conn_set_dirty(c);
	if (c->in.len > 0 || c->half || c->eof)
		conn_set_ready(c, false);
}
