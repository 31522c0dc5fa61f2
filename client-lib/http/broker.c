/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "client-lib/http/broker.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "client-lib/socket_path.h"
#include "protocol/bytes.h"
#include "protocol/resp.h"

/* Longer than an answer may be by default; a value has at least 4 bytes. Without a greeting, a short text is asked for. */
enum { ANSWER_BYTES_MAX = 16 * 1024 * 1024, VALUES_MAX = 1024 * 1024, TEXT_BYTES_MAX = 1024 * 1024, TEXT_VALUES_MAX = 16 };

struct question {
	STAILQ_ENTRY(question) link;
	broker_answered answered; /* NULL: nobody wants to know */
	void *of;
};

STAILQ_HEAD(questions, question);

struct broker {
	struct event_base *base;
	const char *path;
	struct timeval patience;
	bool greets;
	struct bufferevent *bev; /* NULL: there is no connection */
	struct event *silence;
	struct resp_replies replies;
	struct questions questions;
	size_t open;
	char trouble[256];
};

/* ---- the connection ---- */

/* All questions end without an answer: they may ask again, which connects again. */
void broker_leave(struct broker *b)
{
	struct questions left = STAILQ_HEAD_INITIALIZER(left);
	struct question *q;

	if (!b->bev)
		return;
	bufferevent_free(b->bev);
	b->bev = NULL;
	evtimer_del(b->silence);
	resp_replies_deinit(&b->replies);
	STAILQ_CONCAT(&left, &b->questions);
	b->open = 0;
	while ((q = STAILQ_FIRST(&left))) {
		STAILQ_REMOVE_HEAD(&left, link);
		if (q->answered)
			q->answered(q->of, NULL);
		free(q);
	}
}

static void hang_up(struct broker *b, const char *why)
{
	snprintf(b->trouble, sizeof(b->trouble), "lockbrokerd at %.150s %s.", b->path, why);
	broker_leave(b);
}

static void silent(evutil_socket_t none, short what, void *arg)
{
	hang_up(arg, "does not answer");
}

static void ended(struct bufferevent *bev, short what, void *arg)
{
	if (what & (BEV_EVENT_EOF | BEV_EVENT_ERROR))
		hang_up(arg, "has ended the connection");
}

/* ---- answers ---- */

struct slice broker_error(const struct lb_reply *reply)
{
	const struct resp_value *v = (const struct resp_value *)reply;

	return v->type == RESP_ERROR ? v->text : SLICE("");
}

/* The oldest question has its answer. */
static void answer(struct broker *b)
{
	struct question *q = STAILQ_FIRST(&b->questions);

	STAILQ_REMOVE_HEAD(&b->questions, link);
	b->open--;
	if (q->answered)
		q->answered(q->of, (const struct lb_reply *)b->replies.values);
	free(q);
}

static void read_more(struct bufferevent *bev, void *arg)
{
	struct evbuffer *input = bufferevent_get_input(bev);
	struct broker *b = arg;

	for (;;) {
		struct slice text = { .len = evbuffer_get_length(input) };
		size_t used = 0;

		text.data = (const char *)evbuffer_pullup(input, -1);
		switch (resp_read_reply(&b->replies, text, &used)) {
		case RESP_MORE:
			return;
		case RESP_BROKEN:
			hang_up(b, "sends bytes that are no answer");
			return;
		case RESP_DONE:
			break;
		}
		/* Nothing that is asked here brings a push: it may not lengthen the wait for an answer either. */
		if (b->replies.values[0].type == RESP_PUSH) {
			evbuffer_drain(input, used);
			continue;
		}
		if (STAILQ_EMPTY(&b->questions)) {
			hang_up(b, "sends an answer without a question");
			return;
		}
		answer(b);
		if (!b->bev)
			return;
		evbuffer_drain(input, used);
		if (b->open > 0)
			evtimer_add(b->silence, &b->patience);
		else
			evtimer_del(b->silence);
	}
}

/* ---- questions ---- */

static bool connect_now(struct broker *b)
{
	int fd = socket_path_connect(b->path);

	if (fd < 0) {
		snprintf(b->trouble, sizeof(b->trouble), "lockbrokerd cannot be reached at %.150s: %s.", b->path,
			 strerror(errno));
		return false;
	}
	b->bev = bufferevent_socket_new(b->base, fd, BEV_OPT_CLOSE_ON_FREE);
	if (!b->bev)
		abort();
	resp_replies_init(&b->replies, b->greets ? VALUES_MAX : TEXT_VALUES_MAX,
			  b->greets ? ANSWER_BYTES_MAX : TEXT_BYTES_MAX);
	bufferevent_setcb(b->bev, read_more, NULL, ended, b);
	bufferevent_enable(b->bev, EV_READ | EV_WRITE);
	return true;
}

static void put(struct broker *b, broker_answered answered, void *of, size_t count, const struct slice *words)
{
	struct question *q = calloc(1, sizeof(*q));
	struct bytes request = { 0 };

	if (!q)
		abort();
	q->answered = answered;
	q->of = of;
	STAILQ_INSERT_TAIL(&b->questions, q, link);
	if (b->open++ == 0)
		evtimer_add(b->silence, &b->patience);
	resp_request(&request, count, words);
	bufferevent_write(b->bev, request.data, request.len);
	bytes_free(&request);
}

bool broker_ask(struct broker *b, broker_answered answered, void *of, size_t count, const struct slice *words)
{
	const struct slice hello[] = { SLICE("HELLO"), SLICE("3"), SLICE("SETNAME"), SLICE("page") };

	if (b->open >= BROKER_OPEN_MAX)
		return false;
	if (!b->bev) {
		if (!connect_now(b))
			return false;
		if (b->greets)
			put(b, NULL, NULL, sizeof(hello) / sizeof(hello[0]), hello);
	}
	put(b, answered, of, count, words);
	return true;
}

struct broker *broker_new(struct event_base *base, const char *path, int patience_s, bool greets)
{
	struct broker *b = calloc(1, sizeof(*b));

	if (!b)
		abort();
	b->base = base;
	b->path = path;
	b->patience.tv_sec = patience_s;
	b->greets = greets;
	b->silence = evtimer_new(base, silent, b);
	if (!b->silence)
		abort();
	STAILQ_INIT(&b->questions);
	return b;
}

size_t broker_open(const struct broker *b)
{
	return b->open;
}

const char *broker_trouble(const struct broker *b)
{
	return b->trouble;
}
