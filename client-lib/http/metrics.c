/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "client-lib/http/metrics.h"

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client-lib/http/broker.h"
#include "protocol/resp.h"

/*
 * One question to the daemon: METRICS, on a connection of its own. It never blocks, and ends by a deadline, whatever the
 * daemon does or does not do.
 */

enum { QUESTION_SECONDS = 5, QUESTION_BYTES_MAX = 1024 * 1024 };

enum { VALUES_MAX = 16 };

enum { ABOUT_METRICS, ABOUT_HEALTH };

struct question {
	struct bufferevent *bev;
	struct event *deadline;
	struct resp_replies replies;
	void (*answered)(void *of, struct slice text);
	void *of;
};

static void read_more(struct bufferevent *bev, void *arg)
{
	struct evbuffer *input = bufferevent_get_input(bev);
	struct question *q = arg;
	struct slice text = { 0 };
	size_t used;

	text.len = evbuffer_get_length(input);
	text.data = (const char *)evbuffer_pullup(input, -1);
	switch (resp_read_reply(&q->replies, text, &used)) {
	case RESP_MORE:
		return;
	case RESP_DONE:
		text = q->replies.values[0].type == RESP_BULK ? q->replies.values[0].text : (struct slice){ 0 };
		break;
	case RESP_BROKEN:
		text = (struct slice){ 0 };
		break;
	}
	q->answered(q->of, text);
}

static void ended(struct bufferevent *bev, short what, void *arg)
{
	struct question *q = arg;

	if (what & (BEV_EVENT_EOF | BEV_EVENT_ERROR))
		q->answered(q->of, (struct slice){ 0 });
}

static void too_late(evutil_socket_t fd, short what, void *arg)
{
	struct question *q = arg;

	q->answered(q->of, (struct slice){ 0 });
}

/*
 * Asks the daemon at the path. `answered` is called once, unless the question is freed before: with the text, or, if there
 * is no answer, with a text whose data are NULL. NULL: the daemon cannot be reached now.
 */
static struct question *question_new(struct event_base *base, const char *path,
				     void (*answered)(void *of, struct slice text), void *of)
{
	static const char request[] = "*1\r\n$7\r\nMETRICS\r\n";
	static const struct timeval patience = { .tv_sec = QUESTION_SECONDS };
	int fd = broker_connect(path);
	struct question *q;

	if (fd < 0)
		return NULL;
	q = calloc(1, sizeof(*q));
	if (!q)
		abort();
	q->answered = answered;
	q->of = of;
	resp_replies_init(&q->replies, VALUES_MAX, QUESTION_BYTES_MAX);
	q->bev = bufferevent_socket_new(base, fd, BEV_OPT_CLOSE_ON_FREE);
	q->deadline = evtimer_new(base, too_late, q);
	if (!q->bev || !q->deadline)
		abort();
	bufferevent_setcb(q->bev, read_more, NULL, ended, q);
	bufferevent_setwatermark(q->bev, EV_READ, 0, 2 * QUESTION_BYTES_MAX);
	bufferevent_enable(q->bev, EV_READ | EV_WRITE);
	bufferevent_write(q->bev, request, strlen(request));
	evtimer_add(q->deadline, &patience);
	return q;
}

/* may be NULL; not from within `answered` before that has used the text */
static void question_free(struct question *q)
{
	if (!q)
		return;
	bufferevent_free(q->bev);
	event_free(q->deadline);
	resp_replies_deinit(&q->replies);
	free(q);
}

/* ---- answers ---- */

struct metrics {
	struct event_base *base;
	const char *socket;
	struct visitors *visitors;
	struct question *question; /* NULL: none is open */
	struct slice text;         /* while its answer is passed on */
};

static void reply(struct evhttp_request *req, int code, struct slice text)
{
	visitors_reply(req, code, "text/plain; version=0.0.4; charset=utf-8", "no-store", text);
}

static void reply_state(struct evhttp_request *req, bool health, struct slice text)
{
	static const char down[] = "# HELP lockbroker_up 1: the daemon has answered.\n"
				   "# TYPE lockbroker_up gauge\n"
				   "lockbroker_up 0\n";

	if (!text.data)
		reply(req, 503, slice_of(health ? "lockbrokerd does not answer\n" : down));
	else
		reply(req, 200, health ? slice_of("ok\n") : text);
}

static void metrics_refuse(struct evhttp_request *req, int code, const char *sentence)
{
	char line[256];

	snprintf(line, sizeof(line), "%s\n", sentence);
	reply(req, code, slice_of(line));
}

static void pass_on(void *of, struct evhttp_request *req, int about)
{
	reply_state(req, about == ABOUT_HEALTH, ((struct metrics *)of)->text);
}

static void answered(void *of, struct slice text)
{
	struct metrics *m = of;
	struct question *question = m->question;

	m->text = text;
	m->question = NULL;
	visitors_answer(m->visitors, -1, pass_on);
	question_free(question);
}

static void metrics_handle(void *of, struct evhttp_request *req)
{
	struct metrics *m = of;
	const struct evhttp_uri *uri = evhttp_request_get_evhttp_uri(req);
	const char *path = uri ? evhttp_uri_get_path(uri) : NULL;
	bool health = path && strcmp(path, "/healthz") == 0;

	if (!health && (!path || strcmp(path, "/metrics") != 0)) {
		metrics_refuse(req, 404, "there are /metrics and /healthz");
		return;
	}
	if (!m->question)
		m->question = question_new(m->base, m->socket, answered, m);
	if (m->question)
		visitors_wait(m->visitors, req, health ? ABOUT_HEALTH : ABOUT_METRICS);
	else
		reply_state(req, health, (struct slice){ 0 });
}

struct metrics *metrics_new(struct event_base *base, int fd, const char *socket, struct visitors_conf *conf)
{
	struct metrics *m = calloc(1, sizeof(*m));

	if (!m)
		abort();
	m->base = base;
	m->socket = socket;
	conf->most = VISITORS_MAX;
	conf->methods = EVHTTP_REQ_GET | EVHTTP_REQ_HEAD;
	conf->handle = metrics_handle;
	conf->refuse = metrics_refuse;
	conf->of = m;
	m->visitors = visitors_new(base, fd, conf);
	return m;
}
