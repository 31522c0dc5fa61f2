/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * lockbroker call sends requests unchanged and shows the daemon's replies as redis-cli does.
 *
 *     with words    -> one request and its reply
 *     without words -> a request from each line of the standard input, words quoted as in inline requests
 *     -e            -> after that, the events that the daemon sends, until the command is ended
 *     --json        -> a line of JSON for each reply, {"error": ...} and {"event": [...]}
 *
 * A reply may take long, because some commands wait; events are shown as they come, even before the reply.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "client-lib/cli/commands.h"
#include "client-lib/cli/json.h"
#include "client-lib/cli/operators.h"
#include "client-lib/cli/say.h"
#include "client-lib/cli/shown.h"
#include "client-lib/wire.h"
#include "client-lib/handle.h"

enum { WORDS_MAX = 1024, LINE_BYTES_MAX = 64 * 1024 };

struct call {
	struct lb *lb;
	bool goes_on;  /* -e */
	bool failed;   /* one of the replies was an error */
	bool quit;     /* a request asked for the end of the connection */
	bool input_ended;
	struct bytes input;
};

/* ---- showing ---- */

static bool is_nested(const struct resp_value *v)
{
	return (v->type == RESP_ARRAY || v->type == RESP_PUSH || v->type == RESP_MAP) && v->integer > 0;
}

static void show_plain(const struct resp_value *v)
{
	switch (v->type) {
	case RESP_STATUS:
		cli_text(v->text);
		break;
	case RESP_ERROR:
		printf("(error) ");
		cli_text(v->text);
		break;
	case RESP_INTEGER:
		printf("(integer) %lld", (long long)v->integer);
		break;
	case RESP_BULK:
		cli_quoted(v->text);
		break;
	case RESP_DOUBLE:
		printf("(double) ");
		cli_text(v->text);
		break;
	case RESP_BOOL:
		printf(v->integer ? "(true)" : "(false)");
		break;
	case RESP_NIL:
		printf("(nil)");
		break;
	case RESP_ARRAY:
	case RESP_PUSH:
		printf("(empty array)");
		break;
	case RESP_MAP:
		printf("(empty map)");
		break;
	}
}

/* The first line is printed at the present position, further lines begin at `indent`. */
static void show(const struct resp_value *v, int indent)
{
	const struct resp_value *item = v + 1;
	char mark = v->type == RESP_MAP ? '#' : v->type == RESP_PUSH ? '>' : ')';
	int width = snprintf(NULL, 0, "%lld", (long long)v->integer);

	if (!is_nested(v)) {
		show_plain(v);
		putchar('\n');
		return;
	}
	for (int64_t i = 0; i < v->integer; i++) {
		printf("%*s%*lld%c ", i > 0 ? indent : 0, "", width, (long long)i + 1, mark);
		if (v->type == RESP_MAP) {
			show_plain(item);
			item += item->span;
			if (is_nested(item))
				printf(" =>\n%*s", indent + width + 2, "");
			else
				printf(" => ");
		}
		show(item, indent + width + 2);
		item += item->span;
	}
}

/* An error has a key, so that it cannot be taken for a text. */
static void show_json(const struct resp_value *v, const char *key)
{
	if (key)
		printf("{\"%s\":", key);
	if (v->type == RESP_ERROR)
		cli_json_text(v->text);
	else
		cli_json_plain((const struct lb_reply *)v);
	puts(key ? "}" : "");
}

static void show_reply(struct call *c)
{
	const struct resp_value *v = &c->lb->replies.values[0];

	c->failed |= v->type == RESP_ERROR;
	if (cli_json_asked)
		show_json(v, v->type == RESP_ERROR ? "error" : NULL);
	else if (v->type == RESP_BULK && v->text.len > 0 && memchr(v->text.data, '\n', v->text.len))
		cli_lines(v->text);
	else
		show(v, 0);
}

/* Only whole and well-formed events are kept. */
static void show_event(struct call *c)
{
	struct resp_replies e;
	size_t used = c->lb->events.len;

	resp_replies_init(&e, WIRE_VALUES_MAX, WIRE_REPLY_BYTES_MAX);
	if (resp_read_reply(&e, bytes_view(&c->lb->events), &used) == RESP_DONE) {
		if (!cli_json_asked) {
			show(&e.values[0], 0);
		} else {
			e.values[0].type = RESP_ARRAY; /* which is what a push is, but for its mark */
			show_json(&e.values[0], "event");
		}
	}
	resp_replies_deinit(&e);
	wire_drop(&c->lb->events, used);
}

/* ---- asking ---- */

/* Shows messages until a reply has come (LB_OK) or `deadline` has passed (LB_NONE). */
static enum lb_result hear(struct call *c, int64_t deadline)
{
	enum lb_result r = wire_begin(c->lb);
	bool push = true;

	while (r == LB_OK && push) {
		r = wire_read(c->lb, deadline, &push);
		if (r == LB_OK && push)
			show_event(c);
		else if (r == LB_OK)
			show_reply(c);
		fflush(stdout);
	}
	return r;
}

static enum lb_result request(struct call *c, size_t argc, const struct slice *argv)
{
	enum lb_result r = wire_begin(c->lb);

	if (r != LB_OK)
		return r;
	c->quit = argv[0].len == 4 && strncasecmp(argv[0].data, "quit", 4) == 0;
	resp_request(&c->lb->out, argc, argv);
	r = wire_send(c->lb);
	/* A daemon that accepts no further requests has sent its reason. */
	return r == LB_OK || r == LB_NONE ? hear(c, WIRE_FOREVER) : r;
}

static enum lb_result request_line(struct call *c, struct slice line)
{
	struct resp_reader reader;
	enum lb_result r = LB_OK;
	enum resp_result read;
	size_t used;

	resp_reader_init(&reader, WORDS_MAX, LINE_BYTES_MAX);
	read = resp_read_request(&reader, line, &used);
	if (read == RESP_DONE && reader.argc > 0) {
		r = request(c, reader.argc, reader.argv);
	} else if (read != RESP_DONE) {
		cli_say("No request: %s.", read == RESP_BROKEN ? reader.error : "a line is expected");
		c->failed = true;
	}
	resp_reader_deinit(&reader);
	return r;
}

static enum lb_result request_lines(struct call *c)
{
	enum lb_result r = LB_OK;
	const char *end;

	while (r == LB_OK && !c->quit && c->input.len > 0 && (end = memchr(c->input.data, '\n', c->input.len))) {
		size_t len = (size_t)(end - c->input.data) + 1;

		r = request_line(c, (struct slice){ c->input.data, len });
		wire_drop(&c->input, len);
	}
	return r;
}

/* Reads more of the input; a last line without a line end gets one. */
static void read_input(struct call *c)
{
	ssize_t n;

	bytes_reserve(&c->input, 4096);
	n = read(STDIN_FILENO, c->input.data + c->input.len, 4096);
	if (n > 0) {
		c->input.len += (size_t)n;
	} else if (n == 0 || errno != EINTR) {
		c->input_ended = true;
		if (c->input.len > 0)
			bytes_append(&c->input, "\n", 1);
	}
}

static enum lb_result request_input(struct call *c)
{
	enum lb_result r = LB_OK;

	while (r == LB_OK && !c->quit && !c->input_ended) {
		struct pollfd p[] = { { .fd = STDIN_FILENO, .events = POLLIN }, { .fd = lb_fd(c->lb), .events = POLLIN } };

		poll(p, 2, -1);
		if (p[1].revents)
			r = hear(c, 0);
		if (r == LB_NONE)
			r = LB_OK;
		if (r == LB_OK && p[0].revents) {
			read_input(c);
			r = request_lines(c);
		}
	}
	return r;
}

static int run(struct call *c, int argc, char **argv)
{
	struct slice words[WORDS_MAX];
	enum lb_result r;

	for (int i = 0; i < argc; i++)
		words[i] = slice_of(argv[i]);
	r = argc > 0 ? request(c, (size_t)argc, words) : request_input(c);
	/* What has already arrived is shown in any case. */
	while (r == LB_OK && !c->quit)
		r = hear(c, c->goes_on ? WIRE_FOREVER : 0);
	if (r != LB_OK && r != LB_NONE)
		return cli_failed(c->lb, r);
	return c->failed ? CLI_ERROR_REPLY : CLI_OK;
}

int cli_call(const struct cli_words *w)
{
	char path[OPERATORS_PATH_MAX];
	struct call c = { .goes_on = w->given[OPT_EVENTS] };
	enum lb_result r;
	int status;

	if (w->rest_count > WORDS_MAX)
		return cli_usage("A request has at most %d words.", WORDS_MAX);
	r = handle_open_now(operators_only(w->rest_count, w->rest) ? operators_socket(w->socket, path) : w->socket, &c.lb);
	status = r == LB_OK ? run(&c, w->rest_count, w->rest) : cli_failed(c.lb, r);
	bytes_free(&c.input);
	lb_close(c.lb);
	return status;
}
