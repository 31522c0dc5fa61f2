/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "client-lib/http/metrics.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client-lib/http/broker.h"
#include "protocol/resp.h"

enum { QUESTION_SECONDS = 5 };

enum { ABOUT_METRICS, ABOUT_HEALTH };

struct metrics {
	struct visitors *visitors;
	struct broker *broker;
	struct slice text; /* while an answer is passed on; NULL: there is none */
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

/* Each question has a connection of its own, so that the daemon does not count one between them. */
static void answered(void *of, const struct lb_reply *answer)
{
	const struct resp_value *value = (const struct resp_value *)answer;
	struct metrics *m = of;

	m->text = value && value->type == RESP_BULK ? value->text : (struct slice){ 0 };
	visitors_answer(m->visitors, -1, pass_on);
	broker_leave(m->broker);
}

static void metrics_handle(void *of, struct evhttp_request *req)
{
	const struct slice question = SLICE("METRICS");
	struct metrics *m = of;
	const struct evhttp_uri *uri = evhttp_request_get_evhttp_uri(req);
	const char *path = uri ? evhttp_uri_get_path(uri) : NULL;
	bool health = path && strcmp(path, "/healthz") == 0;

	if (!health && (!path || strcmp(path, "/metrics") != 0)) {
		metrics_refuse(req, 404, "there are /metrics and /healthz");
		return;
	}
	if (broker_open(m->broker) > 0 || broker_ask(m->broker, answered, m, 1, &question))
		visitors_wait(m->visitors, req, health ? ABOUT_HEALTH : ABOUT_METRICS);
	else
		reply_state(req, health, (struct slice){ 0 });
}

struct metrics *metrics_new(struct event_base *base, int fd, const char *socket, struct visitors_conf *conf)
{
	struct metrics *m = calloc(1, sizeof(*m));

	if (!m)
		abort();
	m->broker = broker_new(base, socket, QUESTION_SECONDS, false);
	conf->most = VISITORS_MAX;
	conf->methods = EVHTTP_REQ_GET | EVHTTP_REQ_HEAD;
	conf->handle = metrics_handle;
	conf->refuse = metrics_refuse;
	conf->of = m;
	m->visitors = visitors_new(base, fd, conf);
	return m;
}
