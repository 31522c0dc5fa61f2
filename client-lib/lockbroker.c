/*
 * The blocking client. One request is on the wire at a time; what is not its answer is a push, kept for lb_event().
 * Input stays in `in` until the next call, because replies point into it. Once anything went wrong with the stream
 * the descriptor is closed: an answer could no longer be told from that of an earlier request.
 */
#include "lockbroker.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "protocol/bytes.h"
#include "protocol/errors.h"
#include "protocol/name.h"
#include "protocol/resp.h"
#include "reply.h"

#define SOCKET_DEFAULT "/run/lockbroker/lockbroker.sock"

enum {
	PATIENCE_MS = 10000,
	REPLY_VALUES_MAX = 16 * 1024 * 1024,
	REPLY_BYTES_MAX = 256 * 1024 * 1024,
	EVENTS_BYTES_MAX = 1024 * 1024,
	WORDS_MAX = 1024,
};

#define FOREVER INT64_MAX
/* A year: the daemon takes no more. */
#define TIMEOUT_MS_MAX INT64_C(31536000000)

struct lb {
	int fd; /* -1: closed, and `error` says why */
	int64_t patience_ms;
	struct bytes in;
	size_t reply_bytes; /* the first bytes of `in` are the last reply; dropped when the next call begins */
	struct resp_replies replies;
	struct bytes out;
	struct bytes events;                        /* whole pushes, oldest first */
	char name[NAME_BYTES_MAX + 1], reason[256]; /* of the last event */
	char error[512];
};

static const enum lb_result result_of_error[ERROR_COUNT] = {
	[ERROR_ERR] = LB_REFUSED,       [ERROR_BADNAME] = LB_BADNAME,   [ERROR_NOTHELD] = LB_NOTHELD,
	[ERROR_LOST] = LB_LOST,         [ERROR_DEADLOCK] = LB_DEADLOCK, [ERROR_LIMIT] = LB_LIMIT,
	[ERROR_DENIED] = LB_DENIED,     [ERROR_MISMATCH] = LB_MISMATCH, [ERROR_UNAVAILABLE] = LB_UNAVAILABLE,
	[ERROR_DRAINING] = LB_DRAINING, [ERROR_NOPROTO] = LB_REFUSED,
};

/* ---- time and failure ---- */

static int64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static int64_t deadline_after(int64_t ms)
{
	int64_t now = now_ms();

	return ms < 0 || ms > FOREVER - now ? FOREVER : now + ms;
}

static enum lb_result fail(struct lb *lb, enum lb_result result, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
static enum lb_result fail(struct lb *lb, enum lb_result result, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(lb->error, sizeof(lb->error), format, args);
	va_end(args);
	return result;
}

static enum lb_result hang_up(struct lb *lb, const char *why, int error)
{
	close(lb->fd);
	lb->fd = -1;
	return fail(lb, LB_CONNECTION, "The connection to lockbrokerd is closed: %s%s%s.", why, error ? ": " : "",
		    error ? strerror(error) : "");
}

/* ---- bytes in and out ---- */

static enum lb_result wait_for(struct lb *lb, short events, int64_t deadline)
{
	struct pollfd p = { .fd = lb->fd, .events = events };

	for (;;) {
		int64_t left = deadline == FOREVER ? -1 : deadline - now_ms();
		int n;

		if (deadline != FOREVER && left < 0)
			left = 0;
		n = poll(&p, 1, left > 60000 ? 60000 : (int)left);
		if (n > 0)
			return LB_OK;
		if (n < 0 && errno != EINTR)
			return hang_up(lb, "poll failed", errno);
		if (n == 0 && deadline != FOREVER && now_ms() >= deadline)
			return LB_NONE;
	}
}

static enum lb_result send_out(struct lb *lb, int64_t deadline)
{
	size_t sent = 0;

	while (sent < lb->out.len) {
		ssize_t n = send(lb->fd, lb->out.data + sent, lb->out.len - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
		enum lb_result r;

		if (n > 0) {
			sent += (size_t)n;
			continue;
		}
		/* A daemon that refuses a client says why before it closes: the receiver finds that. */
		if (n < 0 && (errno == EPIPE || errno == ECONNRESET))
			return LB_OK;
		if (n < 0 && errno != EAGAIN && errno != EINTR)
			return hang_up(lb, "the request could not be sent", errno);
		r = wait_for(lb, POLLOUT, deadline);
		if (r == LB_NONE)
			return hang_up(lb, "the daemon did not take the request in time", 0);
		if (r != LB_OK)
			return r;
	}
	return LB_OK;
}

/* LB_NONE: `deadline` passed. */
static enum lb_result receive_more(struct lb *lb, int64_t deadline)
{
	for (;;) {
		enum lb_result r;
		ssize_t n;

		bytes_reserve(&lb->in, 4096);
		n = recv(lb->fd, lb->in.data + lb->in.len, lb->in.cap - lb->in.len, MSG_DONTWAIT);
		if (n > 0) {
			lb->in.len += (size_t)n;
			return LB_OK;
		}
		if (n == 0)
			return hang_up(lb, "the daemon ended it", 0);
		if (errno == EINTR)
			continue;
		if (errno != EAGAIN)
			return hang_up(lb, "nothing can be received", errno);
		r = wait_for(lb, POLLIN, deadline);
		if (r != LB_OK)
			return r;
	}
}

static void drop_front(struct bytes *b, size_t n)
{
	assert(n <= b->len);
	b->len -= n;
	if (b->len > 0)
		memmove(b->data, b->data + n, b->len);
}

/* The memory of an unusually large reply is not kept. */
static void drop_reply(struct lb *lb)
{
	drop_front(&lb->in, lb->reply_bytes);
	lb->reply_bytes = 0;
	if (lb->in.len == 0 && lb->in.cap > REPLY_BYTES_MAX / 256)
		bytes_free(&lb->in);
}

static enum lb_result keep_event(struct lb *lb, size_t bytes)
{
	if (lb->events.len + bytes > EVENTS_BYTES_MAX)
		return hang_up(lb, "nobody takes its events", 0);
	bytes_append(&lb->events, lb->in.data, bytes);
	drop_front(&lb->in, bytes);
	return LB_OK;
}

/*
 * Takes one message off the input, waiting for it. LB_OK: *ret_push tells which kind; a push went to `events`, a
 * reply stands in `replies` and `reply_bytes`. LB_NONE: `deadline` passed.
 */
static enum lb_result read_message(struct lb *lb, int64_t deadline, bool *ret_push)
{
	for (;;) {
		enum lb_result r;
		size_t used;

		switch (resp_read_reply(&lb->replies, bytes_view(&lb->in), &used)) {
		case RESP_DONE:
			*ret_push = lb->replies.values[0].type == RESP_PUSH;
			if (*ret_push)
				return keep_event(lb, used);
			lb->reply_bytes = used;
			return LB_OK;
		case RESP_BROKEN:
			return hang_up(lb, lb->replies.error, 0);
		case RESP_MORE:
			break;
		}
		r = receive_more(lb, deadline);
		if (r != LB_OK)
			return r;
	}
}

/* ---- requests ---- */

static enum lb_result begin(struct lb *lb)
{
	if (lb->fd < 0)
		return LB_CONNECTION;
	drop_reply(lb);
	bytes_clear(&lb->out);
	return LB_OK;
}

static enum lb_result error_reply(struct lb *lb, struct slice text)
{
	const char *space = memchr(text.data, ' ', text.len);
	size_t len = space ? (size_t)(space - text.data) : text.len;
	struct slice word = { text.data, len };
	int code;

	for (code = 0; code < ERROR_COUNT; code++) {
		if (slice_eq(word, slice_of(error_word((enum error_code)code))))
			break;
	}
	if (space && code < ERROR_COUNT)
		text = (struct slice){ space + 1, text.len - len - 1 };
	return fail(lb, code < ERROR_COUNT ? result_of_error[code] : LB_REFUSED, "%.*s", (int)text.len, text.data);
}

/*
 * One request and its answer, which must come within `wait_ms` (negative: no bound) plus the patience. An error
 * reply becomes its result; any other reply stands in lb->replies.
 */
static enum lb_result ask(struct lb *lb, size_t argc, const struct slice *argv, int64_t wait_ms)
{
	int64_t deadline = FOREVER;
	enum lb_result r;
	bool push = false;

	r = begin(lb);
	if (r != LB_OK)
		return r;
	resp_request(&lb->out, argc, argv);
	r = send_out(lb, deadline_after(lb->patience_ms));
	if (r != LB_OK)
		return r;
	if (wait_ms >= 0 && wait_ms < FOREVER - lb->patience_ms)
		deadline = deadline_after(wait_ms + lb->patience_ms);
	do {
		r = read_message(lb, deadline, &push);
	} while (r == LB_OK && push);
	if (r == LB_NONE)
		return hang_up(lb, "the daemon did not answer in time", 0);
	if (r == LB_OK && lb->replies.values[0].type == RESP_ERROR)
		return error_reply(lb, lb->replies.values[0].text);
	return r;
}

static enum lb_result unexpected(struct lb *lb, const char *command)
{
	return fail(lb, LB_REFUSED, "The daemon gave %s an answer this library does not understand.", command);
}

static enum lb_result ask_integer(struct lb *lb, size_t argc, const struct slice *argv, int64_t *ret)
{
	enum lb_result r = ask(lb, argc, argv, 0);

	if (r != LB_OK)
		return r;
	if (lb->replies.values[0].type != RESP_INTEGER)
		return unexpected(lb, argv[0].data);
	*ret = lb->replies.values[0].integer;
	return LB_OK;
}

/* ---- open and close ---- */

static enum lb_result cannot_connect(struct lb *lb, const char *path, int error)
{
	switch (error) {
	case ENOENT:
	case ECONNREFUSED:
		return fail(lb, LB_CONNECTION, "No lockbrokerd is serving %s: %s.", path, strerror(error));
	case EACCES:
		return fail(lb, LB_CONNECTION, "This user may not use lockbrokerd at %s: %s.", path, strerror(error));
	case EAGAIN:
		return fail(lb, LB_CONNECTION, "The lockbrokerd at %s does not accept connections.", path);
	}
	return fail(lb, LB_CONNECTION, "Cannot connect to lockbrokerd at %s: %s.", path, strerror(error));
}

/* The kernel bounds a blocking connect() to a local socket, whose queue may be full, by the send timeout. */
static int connect_within(int fd, const struct sockaddr_un *address, int64_t ms)
{
	struct timeval timeout = { .tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000 };

	if (setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout)) < 0)
		return errno;
	while (connect(fd, (const struct sockaddr *)address, sizeof(*address)) < 0) {
		if (errno != EINTR)
			return errno;
	}
	return 0;
}

static enum lb_result connect_to(struct lb *lb, const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int error, fd;

	if (strlen(path) >= sizeof(address.sun_path))
		return fail(lb, LB_CONNECTION, "The path of the socket is longer than %zu bytes: %.200s.",
			    sizeof(address.sun_path) - 1, path);
	memcpy(address.sun_path, path, strlen(path) + 1);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return fail(lb, LB_CONNECTION, "Cannot make a socket: %s.", strerror(errno));
	error = connect_within(fd, &address, lb->patience_ms);
	if (error) {
		close(fd);
		return cannot_connect(lb, path, error);
	}
	lb->fd = fd;
	return LB_OK;
}

static struct lb *new_handle(void)
{
	struct lb *lb = calloc(1, sizeof(*lb));

	if (!lb)
		abort();
	lb->fd = -1;
	lb->patience_ms = PATIENCE_MS;
	resp_replies_init(&lb->replies, REPLY_VALUES_MAX, REPLY_BYTES_MAX);
	snprintf(lb->error, sizeof(lb->error), "Nothing has failed.");
	return lb;
}

enum lb_result lb_open(const char *path, struct lb **ret)
{
	const struct slice hello[] = { SLICE("HELLO"), SLICE("3") };
	struct lb *lb = *ret = new_handle();
	enum lb_result r;

	if (!path)
		path = secure_getenv("LOCKBROKER_SOCKET");
	if (!path || !*path)
		path = SOCKET_DEFAULT;
	r = connect_to(lb, path);
	if (r == LB_OK)
		r = ask(lb, 2, hello, 0);
	if (r != LB_OK && lb->fd >= 0) {
		close(lb->fd);
		lb->fd = -1;
	}
	return r;
}

void lb_close(struct lb *lb)
{
	int kept = errno;

	if (!lb)
		return;
	if (lb->fd >= 0)
		close(lb->fd);
	resp_replies_deinit(&lb->replies);
	bytes_free(&lb->in);
	bytes_free(&lb->out);
	bytes_free(&lb->events);
	free(lb);
	errno = kept;
}

/* ---- locks ---- */

enum lb_result lb_lock_timeout(struct lb *lb, const char *name, int64_t timeout_ms, int64_t *ret_token)
{
	char digits[24];
	struct slice words[] = { SLICE("LOCK"), slice_of(name), SLICE("WAIT"), { digits, 0 } };
	enum lb_result r;

	if (words[1].len > NAME_BYTES_MAX)
		return fail(lb, LB_BADNAME, "The name of a lock has at most %d bytes.", NAME_BYTES_MAX);
	if (timeout_ms > TIMEOUT_MS_MAX)
		timeout_ms = TIMEOUT_MS_MAX;
	words[3].len = (size_t)snprintf(digits, sizeof(digits), "%lld", (long long)timeout_ms);
	r = ask(lb, timeout_ms < 0 ? 2 : 4, words, timeout_ms);
	if (r != LB_OK)
		return r;
	switch (lb->replies.values[0].type) {
	case RESP_INTEGER:
		if (ret_token)
			*ret_token = lb->replies.values[0].integer;
		return LB_OK;
	case RESP_NIL:
		return fail(lb, LB_TAKEN, "The lock %s is held by somebody else.", name);
	case RESP_STATUS:
	case RESP_ERROR:
	case RESP_BULK:
	case RESP_ARRAY:
	case RESP_MAP:
	case RESP_PUSH:
	case RESP_BOOL:
	case RESP_DOUBLE:
		break;
	}
	return unexpected(lb, "LOCK");
}

enum lb_result lb_lock(struct lb *lb, const char *name, int64_t *ret_token)
{
	return lb_lock_timeout(lb, name, -1, ret_token);
}

enum lb_result lb_try(struct lb *lb, const char *name, int64_t *ret_token)
{
	return lb_lock_timeout(lb, name, 0, ret_token);
}

enum lb_result lb_unlock(struct lb *lb, const char *name)
{
	const struct slice words[] = { SLICE("UNLOCK"), slice_of(name) };
	int64_t depth;

	return ask_integer(lb, 2, words, &depth);
}

enum lb_result lb_valid(struct lb *lb, const char *name, int64_t *ret_ms)
{
	const struct slice words[] = { SLICE("VALID"), slice_of(name) };

	return ask_integer(lb, 2, words, ret_ms);
}

enum lb_result lb_command(struct lb *lb, int argc, const char *const *argv, const struct lb_reply **ret)
{
	struct slice words[WORDS_MAX];
	enum lb_result r;
	int i;

	if (argc < 1 || argc > WORDS_MAX)
		return fail(lb, LB_REFUSED, "A request has 1 to %d words.", WORDS_MAX);
	for (i = 0; i < argc; i++)
		words[i] = slice_of(argv[i]);
	r = ask(lb, (size_t)argc, words, 0);
	if (r == LB_OK && ret)
		*ret = (const struct lb_reply *)lb->replies.values;
	return r;
}

/* ---- events ---- */

/* Items of a push are never nested deeper than the push: the i-th stands at i + 1. */
static int64_t event_integer(const struct resp_replies *e, size_t i)
{
	return e->count > i + 1 && e->values[i + 1].type == RESP_INTEGER ? e->values[i + 1].integer : 0;
}

static void event_text(const struct resp_replies *e, size_t i, char *ret, size_t size)
{
	struct slice text = e->count > i + 1 ? reply_text(&e->values[i + 1]) : SLICE("");

	snprintf(ret, size, "%.*s", (int)text.len, text.data);
}

static void event_fill(struct lb *lb, const struct resp_replies *e, struct lb_event *ret)
{
	struct slice kind = e->count > 1 ? reply_text(&e->values[1]) : SLICE("");

	bool lost = slice_is(kind, "lost"), revoke = slice_is(kind, "revoke");

	lb->name[0] = lb->reason[0] = '\0';
	*ret = (struct lb_event){ .type = LB_EVENT_OTHER, .name = lb->name, .reason = lb->reason };
	if (lost || revoke) {
		ret->type = lost ? LB_EVENT_LOST : LB_EVENT_REVOKE;
		event_text(e, 1, lb->name, sizeof(lb->name));
		ret->token = event_integer(e, 2);
		event_text(e, 3, lb->reason, sizeof(lb->reason));
	} else if (slice_is(kind, "jeopardy")) {
		ret->type = LB_EVENT_JEOPARDY;
		ret->ms = event_integer(e, 1);
	} else if (slice_is(kind, "safe")) {
		ret->type = LB_EVENT_SAFE;
	}
}

/* Events were whole and sound when they were kept. */
static void take_event(struct lb *lb, struct lb_event *ret)
{
	struct resp_replies e;
	enum resp_result whole;
	size_t used;

	resp_replies_init(&e, REPLY_VALUES_MAX, REPLY_BYTES_MAX);
	whole = resp_read_reply(&e, bytes_view(&lb->events), &used);
	assert(whole == RESP_DONE);
	event_fill(lb, &e, ret);
	resp_replies_deinit(&e);
	drop_front(&lb->events, used);
}

/* What was kept is handed out even after the end of the connection: a loss must not hide behind it. */
enum lb_result lb_event(struct lb *lb, int64_t timeout_ms, struct lb_event *ret)
{
	int64_t deadline = deadline_after(timeout_ms);
	enum lb_result r = LB_OK;
	bool push = false;

	if (lb->events.len == 0) {
		r = begin(lb);
		if (r == LB_OK)
			r = read_message(lb, deadline, &push);
		if (r == LB_OK && !push)
			r = hang_up(lb, "the daemon answered what was not asked", 0);
	}
	if (r == LB_NONE)
		return fail(lb, LB_NONE, "No event within %lld ms.", (long long)timeout_ms);
	if (r == LB_OK)
		take_event(lb, ret);
	return r;
}

/* ---- the handle ---- */

int lb_fd(const struct lb *lb)
{
	return lb->fd;
}

void lb_set_patience(struct lb *lb, int64_t ms)
{
	lb->patience_ms = ms < 1 ? 1 : ms;
}

const char *lb_error(const struct lb *lb)
{
	return lb->error;
}
