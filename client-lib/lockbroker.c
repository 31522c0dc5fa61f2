/* The blocking client: requests, and what their answers mean. */
#include "lockbroker.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "protocol/bytes.h"
#include "protocol/errors.h"
#include "protocol/limits.h"
#include "protocol/name.h"
#include "protocol/resp.h"
#include "reply.h"
#include "wire.h"

#define SOCKET_DEFAULT "/run/lockbroker/lockbroker.sock"

enum {
	PATIENCE_MS = 10000,
	WORDS_MAX = 1024,
};

/* Of a lease: what may have passed of it before its start is set anew. */
enum { LEASE_SLACK_PART = 16 };

static const enum lb_result result_of_error[ERROR_COUNT] = {
	[ERROR_ERR] = LB_REFUSED,       [ERROR_BADNAME] = LB_BADNAME,   [ERROR_NOTHELD] = LB_NOTHELD,
	[ERROR_LOST] = LB_LOST,         [ERROR_DEADLOCK] = LB_DEADLOCK, [ERROR_LIMIT] = LB_LIMIT,
	[ERROR_DENIED] = LB_DENIED,     [ERROR_MISMATCH] = LB_MISMATCH, [ERROR_UNAVAILABLE] = LB_UNAVAILABLE,
	[ERROR_DRAINING] = LB_DRAINING, [ERROR_NOPROTO] = LB_REFUSED,
};

/* ---- requests ---- */

/* The clock of the session page: it goes on while the host sleeps. */
static int64_t boottime_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_BOOTTIME, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* ERROR_COUNT: a code that is not known here. */
static int code_of(struct slice word)
{
	int code;

	for (code = 0; code < ERROR_COUNT; code++)
		if (slice_eq(word, slice_of(error_word((enum error_code)code))))
			break;
	return code;
}

static enum lb_result error_reply(struct lb *lb, struct slice text)
{
	const char *space = memchr(text.data, ' ', text.len);
	size_t len = space ? (size_t)(space - text.data) : text.len;
	int code = code_of((struct slice){ text.data, len });

	if (space && code < ERROR_COUNT)
		text = (struct slice){ space + 1, text.len - len - 1 };
	return wire_fail(lb, code < ERROR_COUNT ? result_of_error[code] : LB_REFUSED, "%.*s", (int)text.len, text.data);
}

/*
 * One request and its answer, which must come within `wait_ms` (negative: no bound) plus the patience. An error
 * reply becomes its result; any other reply stands in lb->replies.
 */
static enum lb_result ask(struct lb *lb, size_t argc, const struct slice *argv, int64_t wait_ms)
{
	int64_t deadline = WIRE_FOREVER;
	enum lb_result r;
	bool push = false;

	r = wire_begin(lb);
	if (r != LB_OK)
		return r;
	resp_request(&lb->out, argc, argv);
	r = wire_send(lb);
	if (r != LB_OK && r != LB_NONE)
		return r;
	if (wait_ms >= 0 && wait_ms < WIRE_FOREVER - lb->patience_ms)
		deadline = wire_deadline(wait_ms + lb->patience_ms);
	do {
		r = wire_read(lb, deadline, &push);
	} while (r == LB_OK && push);
	if (r == LB_NONE)
		return wire_hang_up(lb, "the daemon did not answer in time", 0);
	if (r == LB_OK && lb->replies.values[0].type == RESP_ERROR)
		return error_reply(lb, lb->replies.values[0].text);
	return r;
}

static enum lb_result unexpected(struct lb *lb, const char *command)
{
	return wire_fail(lb, LB_REFUSED, "The daemon gave %s an answer this library does not understand.", command);
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
		return wire_fail(lb, LB_CONNECTION, "No lockbrokerd is serving %s: %s.", path, strerror(error));
	case EACCES:
		return wire_fail(lb, LB_CONNECTION, "This user may not use lockbrokerd at %s: %s.", path, strerror(error));
	case EAGAIN:
		return wire_fail(lb, LB_CONNECTION, "The lockbrokerd at %s does not accept connections.", path);
	}
	return wire_fail(lb, LB_CONNECTION, "Cannot connect to lockbrokerd at %s: %s.", path, strerror(error));
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
		return wire_fail(lb, LB_CONNECTION, "The path of the socket is longer than %zu bytes: %.200s.",
			    sizeof(address.sun_path) - 1, path);
	memcpy(address.sun_path, path, strlen(path) + 1);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return wire_fail(lb, LB_CONNECTION, "Cannot make a socket: %s.", strerror(errno));
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
	resp_replies_init(&lb->replies, WIRE_VALUES_MAX, WIRE_REPLY_BYTES_MAX);
	snprintf(lb->error, sizeof(lb->error), "Nothing has failed.");
	return lb;
}

/* Where the daemon keeps its proof, by its answer to HELLO. */
static void find_page(struct lb *lb)
{
	const struct lb_reply *hello = (const struct lb_reply *)lb->replies.values;
	struct slice path;

	path.data = lb_reply_text(lb_reply_field(hello, "session_page"), &path.len);
	holdings_map(&lb->holdings, path);
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
	if (r == LB_OK)
		find_page(lb);
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
	bytes_free(&lb->unlock_names);
	bytes_free(&lb->late_error);
	bytes_free(&lb->late_name);
	holdings_free(&lb->holdings);
	free(lb);
	errno = kept;
}

/* ---- locks ---- */

/* What an unlock that was not waited for had to say, once. */
static enum lb_result late_failure(struct lb *lb)
{
	char sentence[sizeof(lb->error)];
	enum lb_result r;

	if (lb->late_error.len == 0)
		return LB_OK;
	r = error_reply(lb, bytes_view(&lb->late_error));
	memcpy(sentence, lb->error, sizeof(sentence));
	wire_fail(lb, r, "Unlocking %.*s: %s", (int)lb->late_name.len, lb->late_name.data, sentence);
	bytes_clear(&lb->late_error);
	bytes_clear(&lb->late_name);
	return r;
}

/* What fails takes nothing: the lock that was just granted goes back. */
static enum lb_result late_failure_instead(struct lb *lb, const char *name)
{
	const struct slice words[] = { SLICE("UNLOCK"), slice_of(name) };
	int64_t depth;

	if (ask_integer(lb, 2, words, &depth) == LB_CONNECTION)
		return LB_CONNECTION;
	return late_failure(lb);
}

/* LB_NONE: it cannot be sent without being waited for. */
static enum lb_result unlock_unanswered(struct lb *lb, const struct slice words[2])
{
	enum lb_result r;

	if (lb->waits_for_unlock || lb->unlocks >= WIRE_UNLOCKS_MAX || wire_begin(lb) != LB_OK ||
	    !holdings_leave(&lb->holdings, words[1], boottime_ns()))
		return LB_NONE;
	resp_request(&lb->out, 2, words);
	r = wire_send(lb);
	if (r != LB_OK)
		return r;
	lb->unlocks++;
	bytes_append(&lb->unlock_names, words[1].data, words[1].len + 1);
	return LB_OK;
}

/* A request for a lock in words; `digits` hold its numbers. */
struct request {
	struct slice words[9];
	size_t count;
	char digits[2][24];
	int64_t timeout_ms, lease_ms;
};

static const struct lb_options defaults = LB_OPTIONS;

static void add_number(struct request *r, const char *word, int64_t ms, char digits[24])
{
	size_t len = (size_t)snprintf(digits, 24, "%lld", (long long)ms);

	r->words[r->count++] = slice_of(word);
	r->words[r->count++] = (struct slice){ digits, len };
}

static enum lb_result request_fill(struct lb *lb, struct request *r, const char *command, const char *name,
				   const struct lb_options *options)
{
	if (!options)
		options = &defaults;
	r->words[0] = slice_of(command);
	r->words[1] = slice_of(name);
	r->count = 2;
	r->timeout_ms = options->timeout_ms > LIMIT_MS_MAX ? LIMIT_MS_MAX : options->timeout_ms;
	r->lease_ms = options->lease_ms > LIMIT_MS_MAX ? LIMIT_MS_MAX : options->lease_ms;
	if (r->words[1].len > NAME_BYTES_MAX)
		return wire_fail(lb, LB_BADNAME, "The name of a lock has at most %d bytes.", NAME_BYTES_MAX);
	if (options->shared)
		r->words[r->count++] = SLICE("SHARED");
	if (r->timeout_ms >= 0)
		add_number(r, "WAIT", r->timeout_ms, r->digits[0]);
	if (r->lease_ms)
		add_number(r, "LEASE", r->lease_ms, r->digits[1]);
	if (options->data) {
		r->words[r->count++] = SLICE("DATA");
		r->words[r->count++] = slice_of(options->data);
	}
	return LB_OK;
}

static int64_t lease_end(int64_t from_ns, int64_t lease_ms)
{
	return lease_ms ? from_ns + lease_ms * 1000000 : HELD_FOREVER;
}

static enum lb_result renew(struct lb *lb, const char *name, int64_t ms, int64_t token)
{
	char digits[2][24];
	struct slice words[] = { SLICE("RENEW"), slice_of(name), { digits[0], 0 }, SLICE("TOKEN"), { digits[1], 0 } };
	int64_t sent_ns = boottime_ns(), done;
	enum lb_result r;

	if (words[1].len > NAME_BYTES_MAX)
		return wire_fail(lb, LB_BADNAME, "The name of a lock has at most %d bytes.", NAME_BYTES_MAX);
	words[2].len = (size_t)snprintf(digits[0], sizeof(digits[0]), "%lld", (long long)ms);
	words[4].len = (size_t)snprintf(digits[1], sizeof(digits[1]), "%lld", (long long)token);
	r = ask_integer(lb, token < 0 ? 3 : 5, words, &done);
	if (r == LB_OK)
		holdings_renew(&lb->holdings, words[1], lease_end(sent_ns, ms));
	if (r == LB_LOST || r == LB_NOTHELD)
		holdings_remove(&lb->holdings, words[1], token);
	return r;
}

/*
 * The daemon counts the lease from the grant. When that was is not known here, only that it was after the request was
 * sent; where that is too long ago, of a grant that had to be waited for, the lease is set anew.
 */
static enum lb_result granted(struct lb *lb, const char *name, const struct request *r, int64_t sent_ns)
{
	int64_t token = lb->replies.values[0].integer, end_ns = lease_end(sent_ns, r->lease_ms);
	bool fresh = holdings_add(&lb->holdings, r->words[1], token, end_ns);

	if (!fresh || !r->lease_ms || boottime_ns() < sent_ns + r->lease_ms * (1000000 / LEASE_SLACK_PART))
		return LB_OK;
	return renew(lb, name, r->lease_ms, token);
}

enum lb_result lb_lock_with(struct lb *lb, const char *name, const struct lb_options *options, int64_t *ret_token)
{
	struct request words;
	enum lb_result r = request_fill(lb, &words, "LOCK", name, options);
	int64_t sent_ns = words.lease_ms ? boottime_ns() : 0, token;

	if (r == LB_OK)
		r = ask(lb, words.count, words.words, words.timeout_ms);
	if (r != LB_OK)
		return r;
	if (lb->replies.values[0].type == RESP_NIL)
		return wire_fail(lb, LB_TAKEN, "The lock %s is held by somebody else.", name);
	if (lb->replies.values[0].type != RESP_INTEGER)
		return unexpected(lb, "LOCK");
	if (lb->late_error.len > 0)
		return late_failure_instead(lb, name);
	token = lb->replies.values[0].integer;
	r = granted(lb, name, &words, sent_ns);
	if (r == LB_OK && ret_token)
		*ret_token = token;
	return r;
}

enum lb_result lb_lock_timeout(struct lb *lb, const char *name, int64_t timeout_ms, int64_t *ret_token)
{
	struct lb_options options = LB_OPTIONS;

	options.timeout_ms = timeout_ms;
	return lb_lock_with(lb, name, &options, ret_token);
}

enum lb_result lb_lock_shared(struct lb *lb, const char *name, int64_t timeout_ms, int64_t *ret_token)
{
	struct lb_options options = LB_OPTIONS;

	options.timeout_ms = timeout_ms;
	options.shared = 1;
	return lb_lock_with(lb, name, &options, ret_token);
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
	int64_t depth = 0;
	enum lb_result r = unlock_unanswered(lb, words);

	if (r == LB_NONE) {
		r = ask_integer(lb, 2, words, &depth);
		if (r == LB_OK || r == LB_LOST || r == LB_NOTHELD)
			holdings_left(&lb->holdings, words[1], depth);
	}
	return r == LB_OK ? late_failure(lb) : r;
}

enum lb_result lb_renew(struct lb *lb, const char *name, int64_t lease_ms)
{
	return renew(lb, name, lease_ms > LIMIT_MS_MAX ? LIMIT_MS_MAX : lease_ms, -1);
}

enum lb_result lb_enqueue(struct lb *lb, const char *name, const struct lb_options *options)
{
	struct request words;
	enum lb_result r = request_fill(lb, &words, "ENQUEUE", name, options);
	int64_t sent_ns = boottime_ns();

	if (r == LB_OK)
		r = ask(lb, words.count, words.words, 0);
	if (r != LB_OK)
		return r;
	if (lb->replies.values[0].type != RESP_STATUS)
		return unexpected(lb, "ENQUEUE");
	holdings_wait(&lb->holdings, words.words[1], lease_end(sent_ns, words.lease_ms));
	return LB_OK;
}

enum lb_result lb_cancel(struct lb *lb, const char *name)
{
	const struct slice words[] = { SLICE("CANCEL"), slice_of(name) };
	int64_t done = 0;
	enum lb_result r = ask_integer(lb, 2, words, &done);

	if (r == LB_OK && !done)
		return wire_fail(lb, LB_NONE, "Nothing waits for the lock %s.", name);
	if (r == LB_OK)
		holdings_unwait(&lb->holdings, words[1]);
	return r;
}

enum lb_result lb_downgrade(struct lb *lb, const char *name)
{
	const struct slice words[] = { SLICE("DOWNGRADE"), slice_of(name) };
	int64_t token = 0;
	enum lb_result r = ask_integer(lb, 2, words, &token);

	if (r == LB_LOST || r == LB_NOTHELD)
		holdings_remove(&lb->holdings, words[1], -1);
	return r;
}

enum lb_result lb_acquire(struct lb *lb, const char *name, int64_t limit, int64_t count, int64_t timeout_ms,
			  int64_t *ret_held)
{
	struct request r = { .words = { SLICE("ACQUIRE"), slice_of(name) }, .count = 2 };
	char digits[24];
	enum lb_result result;

	if (r.words[1].len > NAME_BYTES_MAX)
		return wire_fail(lb, LB_BADNAME, "The name of a semaphore has at most %d bytes.", NAME_BYTES_MAX);
	timeout_ms = timeout_ms > LIMIT_MS_MAX ? LIMIT_MS_MAX : timeout_ms;
	add_number(&r, "LIMIT", limit, r.digits[0]);
	add_number(&r, "COUNT", count, r.digits[1]);
	if (timeout_ms >= 0)
		add_number(&r, "WAIT", timeout_ms, digits);
	result = ask(lb, r.count, r.words, timeout_ms);
	if (result == LB_LOST)
		holdings_remove(&lb->holdings, r.words[1], -1);
	if (result != LB_OK)
		return result;
	if (lb->replies.values[0].type == RESP_NIL)
		return wire_fail(lb, LB_TAKEN, "The semaphore %s has not that many permits left.", name);
	if (lb->replies.values[0].type != RESP_INTEGER)
		return unexpected(lb, "ACQUIRE");
	holdings_add(&lb->holdings, r.words[1], 0, HELD_FOREVER);
	if (ret_held)
		*ret_held = lb->replies.values[0].integer;
	return LB_OK;
}

enum lb_result lb_release(struct lb *lb, const char *name, int64_t count)
{
	struct request r = { .words = { SLICE("RELEASE"), slice_of(name) }, .count = 2 };
	int64_t rest = 0;
	enum lb_result result;

	add_number(&r, "COUNT", count, r.digits[0]);
	result = ask_integer(lb, r.count, r.words, &rest);
	if ((result == LB_OK && rest == 0) || result == LB_LOST)
		holdings_remove(&lb->holdings, r.words[1], -1);
	return result;
}

/* ---- elections ---- */

static void campaign_fill(struct request *r, const char *name, const char *data, int64_t timeout_ms)
{
	*r = (struct request){ .words = { SLICE("CAMPAIGN"), slice_of(name), SLICE("DATA"), slice_of(data) }, .count = 4 };
	r->timeout_ms = timeout_ms > LIMIT_MS_MAX ? LIMIT_MS_MAX : timeout_ms;
	if (r->timeout_ms >= 0)
		add_number(r, "WAIT", r->timeout_ms, r->digits[0]);
}

enum lb_result lb_campaign(struct lb *lb, const char *name, const char *data, int64_t timeout_ms, int64_t *ret_token)
{
	struct request words;
	enum lb_result r;

	campaign_fill(&words, name, data, timeout_ms);
	r = ask(lb, words.count, words.words, words.timeout_ms);
	if (r != LB_OK)
		return r;
	if (lb->replies.values[0].type == RESP_NIL)
		return wire_fail(lb, LB_TAKEN, "Somebody else leads %s.", name);
	if (lb->replies.values[0].type != RESP_INTEGER)
		return unexpected(lb, "CAMPAIGN");
	holdings_add(&lb->holdings, words.words[1], lb->replies.values[0].integer, HELD_FOREVER);
	if (ret_token)
		*ret_token = lb->replies.values[0].integer;
	return LB_OK;
}

enum lb_result lb_campaign_enqueue(struct lb *lb, const char *name, const char *data, int64_t timeout_ms)
{
	struct request words;
	enum lb_result r;

	campaign_fill(&words, name, data, timeout_ms);
	words.words[words.count++] = SLICE("ENQUEUE");
	r = ask(lb, words.count, words.words, 0);
	if (r != LB_OK)
		return r;
	if (lb->replies.values[0].type != RESP_STATUS)
		return unexpected(lb, "CAMPAIGN");
	holdings_wait(&lb->holdings, words.words[1], HELD_FOREVER);
	return LB_OK;
}

enum lb_result lb_resign(struct lb *lb, const char *name)
{
	const struct slice words[] = { SLICE("RESIGN"), slice_of(name) };
	int64_t led = 0;
	enum lb_result r = ask_integer(lb, 2, words, &led);

	if (r == LB_OK && !led)
		holdings_unwait(&lb->holdings, words[1]);
	else if (r == LB_OK || r == LB_LOST || r == LB_NOTHELD)
		holdings_remove(&lb->holdings, words[1], -1);
	return r;
}

enum lb_result lb_leader(struct lb *lb, const char *name, const struct lb_reply **ret)
{
	const struct slice words[] = { SLICE("LEADER"), slice_of(name) };
	enum lb_result r = ask(lb, 2, words, 0);

	if (r != LB_OK)
		return r;
	if (lb->replies.values[0].type == RESP_NIL)
		return wire_fail(lb, LB_NONE, "Nobody leads %s.", name);
	*ret = (const struct lb_reply *)lb->replies.values;
	return LB_OK;
}

enum lb_result lb_observe(struct lb *lb, const char *name)
{
	const struct slice words[] = { SLICE("OBSERVE"), slice_of(name) };

	return ask(lb, 2, words, 0);
}

enum lb_result lb_unobserve(struct lb *lb, const char *name)
{
	const struct slice words[] = { SLICE("UNOBSERVE"), slice_of(name) };
	int64_t done = 0;
	enum lb_result r = ask_integer(lb, 2, words, &done);

	return r == LB_OK && !done ? wire_fail(lb, LB_NONE, "The election %s was not observed.", name) : r;
}

/* What the daemon has sent so far, without waiting for more. */
static enum lb_result read_events(struct lb *lb)
{
	enum lb_result r;
	bool push = false;

	r = wire_begin(lb);
	while (r == LB_OK) {
		r = wire_read(lb, 0, &push);
		if (r == LB_OK && !push)
			r = wire_hang_up(lb, "the daemon answered what was not asked", 0);
	}
	return r == LB_NONE ? LB_OK : r;
}

enum lb_result lb_valid(struct lb *lb, const char *name, int64_t *ret_ms)
{
	const struct slice words[] = { SLICE("VALID"), slice_of(name) };
	enum lb_result r;

	if (!lb->holdings.page)
		return ask_integer(lb, 2, words, ret_ms);
	r = read_events(lb);
	if (r == LB_OK)
		*ret_ms = holdings_valid_ms(&lb->holdings, name, boottime_ns());
	return r;
}

enum lb_result lb_command(struct lb *lb, int argc, const char *const *argv, const struct lb_reply **ret)
{
	struct slice words[WORDS_MAX];
	enum lb_result r;
	int i;

	if (argc < 1 || argc > WORDS_MAX)
		return wire_fail(lb, LB_REFUSED, "A request has 1 to %d words.", WORDS_MAX);
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

static const struct {
	const char *word;
	enum lb_event_type type;
} event_kinds[] = {
	{ "lost", LB_EVENT_LOST },       { "jeopardy", LB_EVENT_JEOPARDY }, { "safe", LB_EVENT_SAFE },
	{ "revoke", LB_EVENT_REVOKE },   { "granted", LB_EVENT_GRANTED },   { "timeout", LB_EVENT_TIMEOUT },
	{ "failed", LB_EVENT_FAILED },     { "leader", LB_EVENT_LEADER },     { "unobserved", LB_EVENT_UNOBSERVED },
};

static enum lb_event_type event_type(const struct resp_replies *e)
{
	struct slice kind = e->count > 1 ? reply_text(&e->values[1]) : SLICE("");

	for (size_t i = 0; i < sizeof(event_kinds) / sizeof(event_kinds[0]); i++)
		if (slice_is(kind, event_kinds[i].word))
			return event_kinds[i].type;
	return LB_EVENT_OTHER;
}

static void event_fill(struct lb *lb, const struct resp_replies *e, struct lb_event *ret)
{
	int code;

	lb->name[0] = lb->reason[0] = lb->data[0] = '\0';
	*ret = (struct lb_event){ .type = event_type(e), .name = lb->name, .reason = lb->reason, .data = lb->data };
	switch (ret->type) {
	case LB_EVENT_LOST:
	case LB_EVENT_REVOKE:
	case LB_EVENT_GRANTED:
		event_text(e, 1, lb->name, sizeof(lb->name));
		ret->token = event_integer(e, 2);
		event_text(e, 3, lb->reason, sizeof(lb->reason));
		break;
	case LB_EVENT_TIMEOUT:
		event_text(e, 1, lb->name, sizeof(lb->name));
		ret->result = LB_TAKEN;
		break;
	case LB_EVENT_LEADER:
		event_text(e, 1, lb->name, sizeof(lb->name));
		ret->token = event_integer(e, 2);
		event_text(e, 3, lb->reason, sizeof(lb->reason));
		event_text(e, 4, lb->data, sizeof(lb->data));
		break;
	case LB_EVENT_FAILED:
	case LB_EVENT_UNOBSERVED:
		event_text(e, 1, lb->name, sizeof(lb->name));
		event_text(e, 3, lb->reason, sizeof(lb->reason));
		code = e->count > 3 ? code_of(reply_text(&e->values[3])) : ERROR_COUNT;
		ret->result = code < ERROR_COUNT ? result_of_error[code] : LB_REFUSED;
		break;
	case LB_EVENT_JEOPARDY:
		ret->ms = event_integer(e, 1);
		break;
	case LB_EVENT_SAFE:
	case LB_EVENT_OTHER:
		break;
	}
}

/* Events were whole and sound when they were kept. */
static void take_event(struct lb *lb, struct lb_event *ret)
{
	struct resp_replies e;
	enum resp_result whole;
	size_t used;

	resp_replies_init(&e, WIRE_VALUES_MAX, WIRE_REPLY_BYTES_MAX);
	whole = resp_read_reply(&e, bytes_view(&lb->events), &used);
	assert(whole == RESP_DONE);
	event_fill(lb, &e, ret);
	resp_replies_deinit(&e);
	wire_drop(&lb->events, used);
}

/* What was kept is handed out even after the end of the connection: a loss must not hide behind it. */
enum lb_result lb_event(struct lb *lb, int64_t timeout_ms, struct lb_event *ret)
{
	int64_t deadline = wire_deadline(timeout_ms);
	enum lb_result r = LB_OK;
	bool push = false;

	if (lb->events.len == 0) {
		r = wire_begin(lb);
		if (r == LB_OK)
			r = wire_read(lb, deadline, &push);
		if (r == LB_OK && !push)
			r = wire_hang_up(lb, "the daemon answered what was not asked", 0);
	}
	if (r == LB_NONE)
		return wire_fail(lb, LB_NONE, "No event within %lld ms.", (long long)timeout_ms);
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

void lb_set_deferred(struct lb *lb, int on)
{
	lb->waits_for_unlock = !on;
}

const char *lb_error(const struct lb *lb)
{
	return lb->error;
}
