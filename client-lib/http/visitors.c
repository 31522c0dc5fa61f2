/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "client-lib/http/visitors.h"

#include <arpa/inet.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/http.h>
#include <event2/keyvalq_struct.h>
#include <event2/listener.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <time.h>

#include "client-lib/http/question.h"

enum { READ_SECONDS = 5 };

static const struct timeval look_often = { .tv_usec = 250000 };

/* `bev` is ours as well, so that it can be looked at after evhttp has dropped it. */
struct visitor {
	struct bufferevent *bev;     /* NULL: the place is free */
	time_t since_s;              /* of the monotonic clock */
	struct evhttp_request *asks; /* it waits for the daemon's answer; NULL: it does not */
	bool health;                 /* it asked for /healthz */
};

struct visitors {
	struct event_base *base;
	const struct visitors_conf *conf;
	struct evconnlistener *listener;
	struct event *timer;
	struct question *question; /* NULL: none is open */
	struct visitor list[VISITORS_MAX];
	size_t count;
};

static time_t now_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec;
}

/* ---- who may ask ---- */

static bool is_address(const char *text)
{
	struct in6_addr any;

	return inet_pton(AF_INET, text, &any) == 1 || inet_pton(AF_INET6, text, &any) == 1;
}

/* Without the port, and the brackets of an address. False: it is none. */
static bool take_host(const char *header, char *ret, size_t size)
{
	bool bracketed = *header == '[';
	const char *begin = header + bracketed;
	size_t len = strcspn(begin, bracketed ? "]" : ":");
	const char *rest = begin + len + bracketed;

	if (len == 0 || len >= size || (bracketed && begin[len] != ']'))
		return false;
	if (*rest && (*rest != ':' || rest[1 + strspn(rest + 1, "0123456789")]))
		return false;
	memcpy(ret, begin, len);
	ret[len] = '\0';
	return true;
}

bool visitors_admit(const struct visitors_conf *conf, const char *header)
{
	char host[256];

	if (!header || !take_host(header, host, sizeof(host)))
		return false;
	if (strcasecmp(host, conf->address) == 0 || (conf->loopback && strcasecmp(host, "localhost") == 0))
		return true;
	if (conf->any_address && is_address(host))
		return true;
	for (const char *const *name = conf->hosts; *name; name++)
		if (strcasecmp(host, *name) == 0)
			return true;
	return false;
}

/* ---- answers ---- */

static void reply(struct evhttp_request *req, int code, const char *reason, struct slice text)
{
	struct evkeyvalq *headers = evhttp_request_get_output_headers(req);
	struct evbuffer *body = evbuffer_new();
	char length[24];

	if (!body)
		abort();
	snprintf(length, sizeof(length), "%zu", text.len);
	evhttp_add_header(headers, "Content-Type", "text/plain; version=0.0.4; charset=utf-8");
	evhttp_add_header(headers, "Content-Length", length);
	evhttp_add_header(headers, "Cache-Control", "no-store");
	evhttp_add_header(headers, "X-Content-Type-Options", "nosniff");
	evhttp_add_header(headers, "Connection", "close");
	if (evhttp_request_get_command(req) != EVHTTP_REQ_HEAD)
		evbuffer_add(body, text.data, text.len);
	evhttp_send_reply(req, code, reason, body);
	evbuffer_free(body);
}

static void reply_state(struct evhttp_request *req, bool health, struct slice text)
{
	static const char down[] = "# HELP lockbroker_up 1: the daemon has answered.\n"
				   "# TYPE lockbroker_up gauge\n"
				   "lockbroker_up 0\n";

	if (!text.data)
		reply(req, 503, "Service Unavailable", slice_of(health ? "lockbrokerd does not answer\n" : down));
	else
		reply(req, 200, "OK", health ? slice_of("ok\n") : text);
}

static void answered(void *of, struct slice text)
{
	struct visitors *all = of;
	struct question *question = all->question;

	for (size_t i = 0; i < VISITORS_MAX; i++) {
		struct evhttp_request *req = all->list[i].asks;

		all->list[i].asks = NULL;
		if (req)
			reply_state(req, all->list[i].health, text);
	}
	all->question = NULL;
	question_free(question);
}

/* ---- connections ---- */

/* evhttp has dropped it, and what was asked on it. */
static bool is_dropped(struct bufferevent *bev)
{
	bufferevent_data_cb readable, writable;
	bufferevent_event_cb happened;

	bufferevent_getcb(bev, &readable, &writable, &happened, NULL);
	return !readable && !writable && !happened;
}

static void look(evutil_socket_t none, short what, void *arg)
{
	struct visitors *all = arg;
	time_t now = now_s();

	for (size_t i = 0; i < VISITORS_MAX; i++) {
		struct visitor *v = &all->list[i];

		if (!v->bev)
			continue;
		if (is_dropped(v->bev)) {
			bufferevent_decref(v->bev);
			*v = (struct visitor){ 0 };
			all->count--;
		} else if (now - v->since_s >= VISITORS_SECONDS) {
			shutdown(bufferevent_getfd(v->bev), SHUT_RDWR); /* evhttp sees its end */
		}
	}
	if (all->count < VISITORS_MAX)
		evconnlistener_enable(all->listener);
	if (all->count > 0)
		evtimer_add(all->timer, &look_often);
}

/* A connection was accepted. While there is room for one more there is a free place. */
static struct bufferevent *welcome(struct event_base *base, void *arg)
{
	struct visitors *all = arg;
	struct visitor *v = all->list;

	while (v->bev)
		v++;
	v->bev = bufferevent_socket_new(base, -1, 0);
	if (!v->bev)
		abort();
	bufferevent_incref(v->bev);
	v->since_s = now_s();
	if (++all->count == VISITORS_MAX)
		evconnlistener_disable(all->listener);
	evtimer_add(all->timer, &look_often);
	return v->bev;
}

static void gone(struct evhttp_connection *connection, void *arg)
{
	((struct visitor *)arg)->asks = NULL;
}

static void ask(struct visitors *all, struct evhttp_request *req, bool health)
{
	struct evhttp_connection *connection = evhttp_request_get_connection(req);
	struct bufferevent *bev = evhttp_connection_get_bufferevent(connection);
	struct visitor *v = all->list;

	if (!all->question)
		all->question = question_new(all->base, all->conf->socket, answered, all);
	if (!all->question) {
		reply_state(req, health, (struct slice){ 0 });
		return;
	}
	while (v->bev != bev)
		v++;
	v->asks = req;
	v->health = health;
	evhttp_connection_set_closecb(connection, gone, v);
}

static void handle(struct evhttp_request *req, void *arg)
{
	struct visitors *all = arg;
	const struct evhttp_uri *uri = evhttp_request_get_evhttp_uri(req);
	const char *path = uri ? evhttp_uri_get_path(uri) : NULL, *named = uri ? evhttp_uri_get_host(uri) : NULL;
	const char *host = evhttp_find_header(evhttp_request_get_input_headers(req), "Host");

	if (!visitors_admit(all->conf, host) || (named && !visitors_admit(all->conf, named)))
		reply(req, 421, "Misdirected Request", slice_of("this is no name of this server: see --host\n"));
	else if (path && strcmp(path, "/metrics") == 0)
		ask(all, req, false);
	else if (path && strcmp(path, "/healthz") == 0)
		ask(all, req, true);
	else
		reply(req, 404, "Not Found", slice_of("there are /metrics and /healthz\n"));
}

struct visitors *visitors_new(struct event_base *base, int fd, const struct visitors_conf *conf)
{
	static const struct timeval patience = { .tv_sec = READ_SECONDS };
	struct visitors *all = calloc(1, sizeof(*all));
	struct evhttp *http = evhttp_new(base);

	if (!all || !http)
		abort();
	all->base = base;
	all->conf = conf;
	all->timer = evtimer_new(base, look, all);
	all->listener = evconnlistener_new(base, NULL, NULL, LEV_OPT_CLOSE_ON_EXEC, 0, fd);
	if (!all->timer || !all->listener || !evhttp_bind_listener(http, all->listener))
		abort();
	evhttp_set_allowed_methods(http, EVHTTP_REQ_GET | EVHTTP_REQ_HEAD);
	evhttp_set_max_headers_size(http, VISITORS_HEADER_BYTES_MAX);
	evhttp_set_max_body_size(http, 0);
	evhttp_set_timeout_tv(http, &patience);
	evhttp_set_bevcb(http, welcome, all);
	evhttp_set_gencb(http, handle, all);
	return all;
}
