/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "client-lib/top/asker.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "client-lib/reply.h"
#include "client-lib/socket_path.h"
#include "client-lib/wire.h"

enum { VALUES_MAX = 4 * 1024 * 1024, REPLY_BYTES_MAX = 64 * 1024 * 1024, READ_BYTES = 65536, GREETING = -1 };

/* ---- answers that are kept ---- */

const struct lb_reply *kept_reply(const struct kept *k)
{
	return (const struct lb_reply *)k->values;
}

void kept_free(struct kept *k)
{
	bytes_free(&k->text);
	free(k->values);
	k->values = NULL;
}

void answer_keep(const struct answer *a, struct kept *k)
{
	struct resp_value *values = calloc(a->count, sizeof(*values));

	if (!values)
		abort();
	kept_free(k);
	k->values = values;
	memcpy(values, a->reply, a->count * sizeof(*values));
	bytes_slice(&k->text, a->bytes);
	for (size_t i = 0; i < a->count; i++)
		if (values[i].text.len)
			values[i].text.data = k->text.data + (values[i].text.data - a->bytes.data);
}

/* ---- the connection ---- */

void asker_init(struct asker *a, const char *path, void (*answered)(void *of, const struct answer *a), void *of)
{
	*a = (struct asker){ .path = path, .answered = answered, .of = of, .fd = -1 };
	resp_replies_init(&a->replies, VALUES_MAX, REPLY_BYTES_MAX);
}

static void leave(struct asker *a, const char *why)
{
	if (a->fd >= 0)
		close(a->fd);
	a->fd = -1;
	a->count = 0;
	bytes_clear(&a->in);
	bytes_clear(&a->out);
	resp_replies_deinit(&a->replies);
	resp_replies_init(&a->replies, VALUES_MAX, REPLY_BYTES_MAX);
	snprintf(a->why, sizeof(a->why), "%s", why);
}

void asker_deinit(struct asker *a)
{
	leave(a, "");
	resp_replies_deinit(&a->replies);
	bytes_free(&a->in);
	bytes_free(&a->out);
}

/* A socket whose queue is full counts as one where nobody listens, so that nothing waits for it. */
void asker_connect(struct asker *a)
{
	static const struct slice greeting[] = { { "HELLO", 5 }, { "3", 1 }, { "SETNAME", 7 }, { "top", 3 } };

	if (a->fd >= 0)
		return;
	a->fd = socket_path_connect(a->path);
	if (a->fd >= 0)
		asker_ask(a, GREETING, 0, sizeof(greeting) / sizeof(greeting[0]), greeting);
	else if (errno == ENAMETOOLONG)
		snprintf(a->why, sizeof(a->why), "the path of the socket is too long");
	else
		snprintf(a->why, sizeof(a->why), "no lockbrokerd is serving %s: %s", a->path, strerror(errno));
}

/* ---- questions and answers ---- */

bool asker_ask(struct asker *a, int question, uint64_t about, size_t argc, const struct slice *argv)
{
	if (a->fd < 0 || a->count == ASKER_QUESTIONS_MAX)
		return false;
	if (!a->count)
		a->asked_ms = 0;
	a->open[a->count].question = question;
	a->open[a->count++].about = about;
	resp_request(&a->out, argc, argv);
	return true;
}

static void take_answer(struct asker *a, size_t used)
{
	const struct resp_value *value = a->replies.values;
	struct answer answer = { .question = a->open[0].question,
				 .about = a->open[0].about,
				 .bytes = { a->in.data, used },
				 .count = value->span };
	const char *space;

	memmove(a->open, a->open + 1, --a->count * sizeof(a->open[0]));
	a->asked_ms = 0;
	if (value->type == RESP_ERROR) {
		space = memchr(value->text.data, ' ', value->text.len);
		answer.error = value->text;
		if (space)
			answer.error =
				(struct slice){ space + 1, (size_t)(value->text.data + value->text.len - space - 1) };
	} else {
		answer.reply = (const struct lb_reply *)value;
	}
	if (answer.question != GREETING)
		a->answered(a->of, &answer);
}

/* False: the connection is of no use any longer. What is pushed is not for us. */
static bool take_answers(struct asker *a)
{
	size_t used;
	enum resp_result r;

	while ((r = resp_read_reply(&a->replies, bytes_view(&a->in), &used)) == RESP_DONE) {
		if (a->replies.values[0].type != RESP_PUSH) {
			if (!a->count)
				return false;
			take_answer(a, used);
		}
		if (a->fd < 0)
			return true;
		wire_drop(&a->in, used);
	}
	return r == RESP_MORE;
}

static void receive(struct asker *a)
{
	ssize_t n;

	do {
		bytes_reserve(&a->in, READ_BYTES);
		n = recv(a->fd, a->in.data + a->in.len, READ_BYTES, MSG_DONTWAIT);
		if (n > 0)
			a->in.len += (size_t)n;
	} while (n == READ_BYTES || (n < 0 && errno == EINTR));
	if (!take_answers(a))
		leave(a, "the program that serves the socket is not lockbrokerd");
	else if (n == 0)
		leave(a, "the broker has closed the connection");
	else if (n < 0 && errno != EAGAIN)
		leave(a, strerror(errno));
}

static void transmit(struct asker *a)
{
	ssize_t n = send(a->fd, a->out.data, a->out.len, MSG_DONTWAIT | MSG_NOSIGNAL);

	if (n > 0)
		wire_drop(&a->out, (size_t)n);
}

struct pollfd asker_poll(const struct asker *a)
{
	return (struct pollfd){ .fd = a->fd, .events = (short)(POLLIN | (a->out.len ? POLLOUT : 0)) };
}

int64_t asker_due_ms(const struct asker *a)
{
	return a->fd < 0 && a->lasting ? a->next_ms : INT64_MAX;
}

void asker_serve(struct asker *a, short happened, int64_t now_ms)
{
	if (a->fd >= 0 && happened)
		receive(a);
	if (a->fd < 0 && a->lasting && now_ms >= a->next_ms) {
		a->next_ms = now_ms + ASKER_PAUSE_MS;
		asker_connect(a);
	}
	if (a->fd >= 0 && a->out.len)
		transmit(a);
	if (a->count && !a->asked_ms)
		a->asked_ms = now_ms;
}
