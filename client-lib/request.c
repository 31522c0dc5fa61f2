/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "request.h"

#include <assert.h>
#include <errno.h>
#include <grp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "protocol/errors.h"
#include "protocol/limits.h"
#include "reply.h"

/* Connecting to the daemon's socket, and what to say if that fails. Not part of the public interface. */

/* The error for a socket that this user may not use: it names the path and what to do about it. */
static enum lb_result may_not(struct lb *lb, const char *path)
{
	struct group group, *found = NULL;
	char text[1024], number[24];
	const char *name = number;
	struct stat st;

	if (stat(path, &st) < 0)
		return wire_fail(lb, LB_DENIED, "This user may not look for lockbrokerd at %s: a directory of the path "
			    "cannot be searched. See its mode, or daemon.socket in lockbroker.conf.", path);
	if (!(st.st_mode & S_IWGRP))
		return wire_fail(lb, LB_DENIED, "This user may not use lockbrokerd at %s: the mode of the socket is %04o. "
			    "Set daemon.socket_mode in lockbroker.conf to admit more users.", path,
			    (unsigned)st.st_mode & 0777);
	if (st.st_gid == 0)
		return wire_fail(lb, LB_DENIED, "This user may not use lockbrokerd at %s: the socket belongs to the group "
			    "root; a member of it may. Set daemon.socket_group in lockbroker.conf to admit more users.", path);
	snprintf(number, sizeof(number), "%u", (unsigned)st.st_gid);
	if (getgrgid_r(st.st_gid, &group, text, sizeof(text), &found) == 0 && found)
		name = group.gr_name;
	return wire_fail(lb, LB_DENIED, "This user may not use lockbrokerd at %s: only the group %s may. Become a member "
		    "(usermod -aG %s USER, then log in again); the key daemon.socket_group in lockbroker.conf names "
		    "the group.", path, name, name);
}

static enum lb_result cannot_connect(struct lb *lb, const char *path, int error)
{
	switch (error) {
	case ENOENT:
	case ECONNREFUSED:
		return wire_fail(lb, LB_CONNECTION, "No lockbrokerd is serving %s: %s. %s", path, strerror(error), lb->remedy);
	case EACCES:
	case EPERM:
		return may_not(lb, path);
	case EAGAIN:
		return wire_fail(lb, LB_CONNECTION, "The lockbrokerd at %s does not accept connections.", path);
	}
	return wire_fail(lb, LB_CONNECTION, "Cannot connect to lockbrokerd at %s: %s.", path, strerror(error));
}

/* The send timeout limits each blocking connect() to a local socket whose queue may be full. */
static int connect_within(int fd, const struct sockaddr_un *address, int64_t ms)
{
	int64_t deadline = wire_deadline(ms);

	for (; ms > 0; ms = deadline - wire_deadline(0)) {
		struct timeval timeout = { .tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000 };

		if (setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout)) < 0)
			return errno;
		if (connect(fd, (const struct sockaddr *)address, sizeof(*address)) == 0)
			return 0;
		if (errno != EINTR)
			return errno;
	}
	return EAGAIN;
}

/* Connects within the patience to the socket at lb->path. LB_CONNECTION: nobody listens; LB_DENIED: not permitted. */
static enum lb_result connect_socket(struct lb *lb)
{
	const char *path = lb->path;
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
	lb->refused = error == ECONNREFUSED;
	if (error) {
		close(fd);
		return cannot_connect(lb, path, error);
	}
	lb->fd = fd;
	return LB_OK;
}

enum { WORDS_MAX = 1024 };
/* More than the options will ever need. */
enum { OPTIONS_BYTES_MAX = 4096 };
/* How often a daemon is tried that is not there: at first, and at last. */
enum { RECONNECT_FIRST_MS = 10, RECONNECT_MS_MAX = 250 };

static const struct lb_options defaults = LB_OPTIONS;

static const enum lb_result result_of_error[ERROR_COUNT] = {
	[ERROR_ERR] = LB_REFUSED,       [ERROR_BADNAME] = LB_BADNAME,   [ERROR_NOTHELD] = LB_NOTHELD,
	[ERROR_LOST] = LB_LOST,         [ERROR_DEADLOCK] = LB_DEADLOCK, [ERROR_LIMIT] = LB_LIMIT,
	[ERROR_DENIED] = LB_DENIED,     [ERROR_MISMATCH] = LB_MISMATCH, [ERROR_UNAVAILABLE] = LB_UNAVAILABLE,
	[ERROR_DRAINING] = LB_DRAINING, [ERROR_NOPROTO] = LB_REFUSED, [ERROR_NOSCRIPT] = LB_REFUSED,   [ERROR_HELD] = LB_REFUSED,
};

int64_t request_clock_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_BOOTTIME, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

int64_t request_clock_ms(void)
{
	return request_clock_ns() / 1000000;
}

bool request_result_of(struct slice code, enum lb_result *ret)
{
	for (int i = 0; i < ERROR_COUNT; i++) {
		if (slice_eq(code, slice_of(error_word((enum error_code)i)))) {
			*ret = result_of_error[i];
			return true;
		}
	}
	return false;
}

static enum lb_result error_reply(struct lb *lb, struct slice text)
{
	const char *space = memchr(text.data, ' ', text.len);
	size_t len = space ? (size_t)(space - text.data) : text.len;
	enum lb_result r = LB_REFUSED;

	if (request_result_of((struct slice){ text.data, len }, &r) && space)
		text = (struct slice){ space + 1, text.len - len - 1 };
	return wire_fail(lb, r, "%.*s", (int)text.len, text.data);
}

/* The answer to what was sent. */
static enum lb_result answer(struct lb *lb, int64_t deadline)
{
	enum lb_result r;
	bool push = false;

	do {
		r = wire_read(lb, deadline, &push);
	} while (r == LB_OK && push);
	if (r == LB_NONE)
		return wire_hang_up(lb, "the daemon did not answer in time", 0);
	if (r == LB_OK && lb->replies.values[0].type == RESP_ERROR)
		return error_reply(lb, lb->replies.values[0].text);
	return r;
}

/* One request and its answer, on a connection that is open. */
static enum lb_result exchange(struct lb *lb, size_t argc, const struct slice *argv, int64_t deadline)
{
	enum lb_result r = wire_begin(lb);

	if (r != LB_OK)
		return r;
	wire_add_question(lb);
	resp_request(&lb->out, argc, argv);
	r = wire_send(lb);
	return r == LB_OK || r == LB_NONE ? answer(lb, deadline) : r;
}

int64_t request_answer_by(const struct lb *lb, int64_t end)
{
	return end >= WIRE_FOREVER - lb->patience_ms ? WIRE_FOREVER : end + lb->patience_ms;
}

/* ---- connecting, and connecting again ---- */

/* The answer that follows the one that was read last. */
static enum lb_result next_answer(struct lb *lb, int64_t deadline)
{
	enum lb_result r = wire_begin(lb);

	return r == LB_OK ? answer(lb, deadline) : r;
}

/* A broker that refuses says why, unless too many others have not read why they were refused. */
static const char ENDED_UNGREETED[] =
	"lockbrokerd has closed the connection without a word: it starts again, or this user has too many connections, of which "
	"many have not read that they were refused (\"lockbroker accounts\" shows who has them). Close some, and try again.";

/* All is sent at once: a name and an owner cost no round trip of their own. */
static enum lb_result greet(struct lb *lb, int64_t deadline)
{
	const struct slice hello[] = { SLICE("HELLO"), SLICE("3") };
	struct slice label[] = { SLICE("CLIENT"), SLICE("SETNAME"), { NULL, 0 } };
	struct slice owner[] = { SLICE("CLIENT"), SLICE("SETINFO"), SLICE("OWNER"), { NULL, 0 } };
	enum lb_result r = wire_begin(lb);

	if (r != LB_OK)
		return r;
	resp_request(&lb->out, 2, hello);
	if (lb->label) {
		label[2] = slice_of(lb->label);
		resp_request(&lb->out, 3, label);
	}
	if (lb->owner) {
		owner[3] = slice_of(lb->owner);
		resp_request(&lb->out, 4, owner);
	}
	r = wire_send(lb);
	if (r == LB_OK || r == LB_NONE)
		r = answer(lb, deadline);
	if (r == LB_CONNECTION && lb->ended)
		return wire_fail(lb, r, "%s", ENDED_UNGREETED);
	if (r != LB_OK)
		return r;
	wire_map_page(lb);
	/* A name that is refused is no failure; a connection that ended is one. */
	if (lb->label && (r = next_answer(lb, deadline)) == LB_CONNECTION)
		return r;
	return lb->owner ? next_answer(lb, deadline) : LB_OK;
}

enum lb_result request_connect(struct lb *lb)
{
	enum lb_result r;

	resp_replies_deinit(&lb->replies);
	resp_replies_init(&lb->replies, WIRE_VALUES_MAX, WIRE_REPLY_BYTES_MAX);
	lb->ended = lb->refused = false;
	r = connect_socket(lb);
	if (r == LB_OK)
		r = greet(lb, wire_deadline(lb->patience_ms));
	if (r == LB_OK)
		return r;
	if (lb->fd >= 0)
		close(lb->fd);
	lb->fd = -1;
	memcpy(lb->end, lb->error, sizeof(lb->end));
	return r;
}

static void pause_ms(long ms)
{
	nanosleep(&(struct timespec){ .tv_nsec = ms * 1000000 }, NULL);
}

static enum lb_result connect_by(struct lb *lb, int64_t deadline)
{
	int64_t patience_ms = lb->patience_ms, left = deadline - wire_now_ms();
	enum lb_result r;

	lb->patience_ms = left > 1 ? left : 1;
	r = request_connect(lb);
	lb->patience_ms = patience_ms;
	return r;
}

/* Pauses that grow. False: the next one would not end before the deadline. */
static bool rest(long *pause, int64_t deadline)
{
	if (wire_now_ms() + *pause >= deadline)
		return false;
	pause_ms(*pause);
	*pause = *pause * 2 < RECONNECT_MS_MAX ? *pause * 2 : RECONNECT_MS_MAX;
	return true;
}

enum lb_result request_reconnect(struct lb *lb, int64_t deadline)
{
	long pause = RECONNECT_FIRST_MS;
	enum lb_result r;

	if (!lb->reconnects)
		return wire_fail(lb, LB_CONNECTION, "%s", lb->end);
	do
		r = connect_by(lb, deadline);
	while ((r == LB_CONNECTION || r == LB_DRAINING) && rest(&pause, deadline));
	return r;
}

enum lb_result request_await(struct lb *lb, enum lb_result r, int64_t deadline)
{
	long pause = RECONNECT_FIRST_MS;

	while ((r == LB_DRAINING || (r == LB_CONNECTION && (lb->refused || lb->ended))) && rest(&pause, deadline))
		r = connect_by(lb, deadline);
	return r;
}

/*
 * Sends the words and waits for the answer, which must come within the patience. An error reply becomes its result; any
 * other reply is left in lb->replies. A connection that is closed is made again first; LB_CONNECTION: it ended before the
 * answer came, and what became of the request is unknown.
 */
static enum lb_result request_ask(struct lb *lb, size_t argc, const struct slice *argv)
{
	enum lb_result r = LB_OK;

	if (lb->fd < 0)
		r = request_reconnect(lb, wire_deadline(lb->patience_ms));
	return r == LB_OK ? exchange(lb, argc, argv, wire_deadline(lb->patience_ms)) : r;
}

/* ---- requests that are made again if their connection ends ---- */

/* LB_LOST, once, for each lock that was held when its connection ended, or was lost before, and no call had said so. */
static enum lb_result check_lost(struct lb *lb, const struct request *r)
{
	for (size_t i = r->first; i < r->first + r->names; i++)
		if (holdings_take_lost(&lb->holdings, r->words[i]))
			return wire_fail(lb, LB_LOST, "The lock was lost by the time the connection to lockbrokerd ended: %.*s",
					 (int)r->words[i].len, r->words[i].data);
	return LB_OK;
}

/* The daemon ends the connection of a client that sends a word longer than a request may be, and all its locks with it. */
static enum lb_result check_words(struct lb *lb, const struct request *r)
{
	for (size_t i = 1; i < r->count; i++) {
		if ((i == 1 || i - r->first < r->names) && r->words[i].len > NAME_BYTES_MAX)
			return wire_fail(lb, LB_BADNAME, "The name of a lock has at most %d bytes.", NAME_BYTES_MAX);
		if (r->words[i].len > LIMIT_DATA_BYTES_MAX)
			return wire_fail(lb, LB_REFUSED, "The data of a grant have at most %d bytes.", LIMIT_DATA_BYTES_MAX);
	}
	return LB_OK;
}

/* The rest of the time, in the words of the request. */
static void write_rest(struct request *r, int64_t end)
{
	int64_t left = end - wire_now_ms();

	if (r->wait)
		r->words[r->wait].len = (size_t)snprintf(r->wait_digits, sizeof(r->digits[0]), "%lld",
							 left > 0 ? (long long)left : 0LL);
}

/* False: the daemon ends connection after connection, and the patience is over. */
static bool may_make_again(const struct lb *lb, struct request *r)
{
	int64_t now = wire_now_ms();

	if (!lb->reconnects || !lb->ended)
		return false;
	if (!r->ended_ms || now - r->ended_ms > lb->patience_ms)
		r->give_up_ms = wire_deadline(lb->patience_ms);
	r->ended_ms = now;
	return now < r->give_up_ms;
}

static bool ends_with(struct slice text, struct slice name)
{
	return text.len > name.len + 2 && memcmp(text.data + text.len - name.len, name.data, name.len) == 0 &&
	       memcmp(text.data + text.len - name.len - 2, ": ", 2) == 0;
}

/* The answer is about the one name, or about that of several with which its sentence ends: the longest that does. */
static void told(struct lb *lb, const struct request *r)
{
	struct slice text = lb->replies.values[0].text, about = SLICE("");

	for (size_t i = r->first; i < r->first + r->names; i++)
		if (r->names == 1 || (ends_with(text, r->words[i]) && r->words[i].len > about.len))
			about = r->words[i];
	holdings_told(&lb->holdings, about);
}

enum lb_result request_make(struct lb *lb, struct request *r, int64_t wait_ms)
{
	int64_t end = wire_deadline(wait_ms);
	enum lb_result result = check_words(lb, r);

	if (result != LB_OK)
		return result;
	r->ended_ms = 0;
	for (;;) {
		if (check_lost(lb, r) != LB_OK)
			return LB_LOST;
		if (lb->fd < 0)
			result = request_reconnect(lb, wire_deadline(lb->patience_ms));
		if (result == LB_OK)
			result = exchange(lb, r->count, r->words, request_answer_by(lb, end));
		if (result == LB_LOST || result == LB_NOTHELD)
			told(lb, r);
		if (result != LB_CONNECTION || !may_make_again(lb, r))
			return result;
		result = LB_OK;
		pause_ms(RECONNECT_FIRST_MS);
		if (end < WIRE_FOREVER)
			write_rest(r, end);
	}
}

enum lb_result request_read_events(struct lb *lb)
{
	enum lb_result r;

	do {
		r = wire_read_push(lb, 0);
	} while (r == LB_OK);
	return r == LB_NONE ? LB_OK : r;
}

enum lb_result request_unexpected(struct lb *lb, const char *command)
{
	return wire_fail(lb, LB_REFUSED, "The daemon gave %s an answer that this library does not understand.", command);
}

static enum lb_result take_integer(struct lb *lb, const char *command, int64_t *ret)
{
	if (lb->replies.values[0].type != RESP_INTEGER)
		return request_unexpected(lb, command);
	*ret = lb->replies.values[0].integer;
	return LB_OK;
}

enum lb_result request_ask_integer(struct lb *lb, size_t argc, const struct slice *argv, int64_t *ret)
{
	enum lb_result r = request_ask(lb, argc, argv);

	return r == LB_OK ? take_integer(lb, argv[0].data, ret) : r;
}

enum lb_result request_make_integer(struct lb *lb, struct request *r, int64_t *ret)
{
	enum lb_result result = request_make(lb, r, 0);

	return result == LB_OK ? take_integer(lb, r->words[0].data, ret) : result;
}

enum lb_result request_late_failure(struct lb *lb)
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

void request_add(struct request *r, struct slice word)
{
	assert(r->count < REQUEST_WORDS_MAX);
	r->words[r->count++] = word;
}

void request_add_number(struct request *r, const char *word, int64_t number)
{
	char *digits = r->digits[r->numbers];
	size_t len;

	assert(r->numbers < REQUEST_NUMBERS_MAX);
	r->numbers++;
	len = (size_t)snprintf(digits, sizeof(r->digits[0]), "%lld", (long long)number);
	if (word)
		request_add(r, slice_of(word));
	request_add(r, (struct slice){ digits, len });
}

void request_add_wait(struct request *r, int64_t timeout_ms)
{
	r->timeout_ms = timeout_ms > LIMIT_MS_MAX ? LIMIT_MS_MAX : timeout_ms;
	if (r->timeout_ms < 0)
		return;
	request_add_number(r, "WAIT", r->timeout_ms);
	r->wait = r->count - 1;
	r->wait_digits = r->digits[r->numbers - 1];
}

/* Whether a newer program has set a member that this library does not know. */
static bool sets_more(const struct lb_options *options)
{
	const char *bytes = (const char *)options;

	for (size_t i = sizeof(*options); i < options->size; i++)
		if (bytes[i])
			return true;
	return false;
}

static enum lb_result check_size(struct lb *lb, const struct lb_options *options)
{
	if (options->size < sizeof(*options) || options->size > OPTIONS_BYTES_MAX)
		return wire_fail(lb, LB_REFUSED, "The size of struct lb_options is not set: initialize it with LB_OPTIONS.");
	if (sets_more(options))
		return wire_fail(lb, LB_REFUSED, "An option is set that liblockbroker %s does not support.", LOCKBROKER_VERSION);
	return LB_OK;
}

enum lb_result request_options(struct lb *lb, struct request *r, const struct lb_options *options)
{
	if (!options)
		options = &defaults;
	if (check_size(lb, options) != LB_OK)
		return LB_REFUSED;
	r->lease_ms = options->lease_ms > LIMIT_MS_MAX ? LIMIT_MS_MAX : options->lease_ms;
	if (options->shared)
		request_add(r, SLICE("SHARED"));
	request_add_wait(r, options->timeout_ms);
	if (r->lease_ms)
		request_add_number(r, "LEASE", r->lease_ms);
	if (options->data) {
		request_add(r, SLICE("DATA"));
		request_add(r, slice_of(options->data));
	}
	return LB_OK;
}

void request_begin(struct request *r, const char *command)
{
	r->words[0] = slice_of(command);
	r->count = 1;
	r->first = r->names = r->numbers = r->wait = 0;
	r->lease_ms = 0;
}

void request_about(struct request *r, const char *command, const char *name)
{
	request_begin(r, command);
	request_add(r, slice_of(name));
}

void request_name(struct request *r, const char *command, const char *name)
{
	request_about(r, command, name);
	r->first = r->names = 1;
}

enum lb_result request_fill(struct lb *lb, struct request *r, const char *command, const char *name,
			    const struct lb_options *options)
{
	request_name(r, command, name);
	return request_options(lb, r, options);
}

int64_t request_lease_end(int64_t from_ns, int64_t lease_ms)
{
	return lease_ms ? from_ns + lease_ms * 1000000 : HELD_FOREVER;
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
	r = request_ask(lb, (size_t)argc, words);
	if (r == LB_OK && ret)
		*ret = (const struct lb_reply *)lb->replies.values;
	return r;
}
