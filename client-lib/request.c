/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "request.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "protocol/errors.h"
#include "protocol/limits.h"

enum { WORDS_MAX = 1024 };
/* More than the options will ever need. */
enum { OPTIONS_BYTES_MAX = 4096 };

static const struct lb_options defaults = LB_OPTIONS;

static const enum lb_result result_of_error[ERROR_COUNT] = {
	[ERROR_ERR] = LB_REFUSED,       [ERROR_BADNAME] = LB_BADNAME,   [ERROR_NOTHELD] = LB_NOTHELD,
	[ERROR_LOST] = LB_LOST,         [ERROR_DEADLOCK] = LB_DEADLOCK, [ERROR_LIMIT] = LB_LIMIT,
	[ERROR_DENIED] = LB_DENIED,     [ERROR_MISMATCH] = LB_MISMATCH, [ERROR_UNAVAILABLE] = LB_UNAVAILABLE,
	[ERROR_DRAINING] = LB_DRAINING, [ERROR_NOPROTO] = LB_REFUSED,   [ERROR_HELD] = LB_REFUSED,
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

enum lb_result request_ask(struct lb *lb, size_t argc, const struct slice *argv, int64_t wait_ms)
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

enum lb_result request_unexpected(struct lb *lb, const char *command)
{
	return wire_fail(lb, LB_REFUSED, "The daemon gave %s an answer that this library does not understand.", command);
}

enum lb_result request_ask_integer(struct lb *lb, size_t argc, const struct slice *argv, int64_t *ret)
{
	enum lb_result r = request_ask(lb, argc, argv, 0);

	if (r != LB_OK)
		return r;
	if (lb->replies.values[0].type != RESP_INTEGER)
		return request_unexpected(lb, argv[0].data);
	*ret = lb->replies.values[0].integer;
	return LB_OK;
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
	request_add(r, slice_of(word));
	request_add(r, (struct slice){ digits, len });
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
	r->timeout_ms = options->timeout_ms > LIMIT_MS_MAX ? LIMIT_MS_MAX : options->timeout_ms;
	r->lease_ms = options->lease_ms > LIMIT_MS_MAX ? LIMIT_MS_MAX : options->lease_ms;
	if (options->shared)
		request_add(r, SLICE("SHARED"));
	if (r->timeout_ms >= 0)
		request_add_number(r, "WAIT", r->timeout_ms);
	if (r->lease_ms)
		request_add_number(r, "LEASE", r->lease_ms);
	if (options->data) {
		request_add(r, SLICE("DATA"));
		request_add(r, slice_of(options->data));
	}
	return LB_OK;
}

void request_reenters(struct request *r)
{
	request_add(r, SLICE("REENTER"));
}

enum lb_result request_fill(struct lb *lb, struct request *r, const char *command, const char *name,
			    const struct lb_options *options)
{
	r->words[0] = slice_of(command);
	r->words[1] = slice_of(name);
	r->count = 2;
	r->numbers = 0;
	r->lease_ms = 0;
	if (request_options(lb, r, options) != LB_OK)
		return LB_REFUSED;
	if (r->words[1].len > NAME_BYTES_MAX)
		return wire_fail(lb, LB_BADNAME, "The name of a lock has at most %d bytes.", NAME_BYTES_MAX);
	return LB_OK;
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
	r = request_ask(lb, (size_t)argc, words, 0);
	if (r == LB_OK && ret)
		*ret = (const struct lb_reply *)lb->replies.values;
	return r;
}
