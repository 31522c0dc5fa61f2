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
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "protocol/resp.h"
#include "protocol/slice.h"

/*
 * One question to the daemon: METRICS, on a connection of its own. It never blocks, and ends by a deadline, whatever the
 * daemon does or does not do.
 */

enum { QUESTION_SECONDS = 5, QUESTION_BYTES_MAX = 1024 * 1024 };

enum { VALUES_MAX = 16 };

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

/* -1: it cannot be reached. A socket whose queue is full counts as one, so that nothing waits for it. */
static int connect_to(const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd;

	if (strlen(path) >= sizeof(address.sun_path))
		return -1;
	memcpy(address.sun_path, path, strlen(path) + 1);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -1;
	if (connect(fd, (const struct sockaddr *)&address, sizeof(address)) == 0)
		return fd;
	close(fd);
	return -1;
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
	int fd = connect_to(path);
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

enum { READ_SECONDS = 5 };

static const struct timeval look_often = { .tv_usec = 250000 };

/* `bev` is ours as well, so that it can be looked at after evhttp has dropped it. */
struct visitor {
	struct bufferevent *bev;     /* NULL: the place is free */
	time_t since_s;              /* of the monotonic clock */
	unsigned long number;        /* of the connections in their order */
	bool complete;               /* its request is */
	enum { FROM_UNKNOWN, FROM_HERE, FROM_ELSEWHERE } from;
	struct in6_addr network;     /* FROM_ELSEWHERE: of one of these of IPv6, who has an address has 2^64 */
	struct evhttp_request *asks; /* it waits for the daemon's answer; NULL: it does not */
	bool health;                 /* it asked for /healthz */
};

struct visitors {
	struct event_base *base;
	const struct visitors_conf *conf;
	struct evconnlistener *listener;
	struct event *timer, *accepted;
	struct question *question; /* NULL: none is open */
	struct visitor list[VISITORS_MAX];
	size_t count;
	unsigned long number;
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

/* Whether a request with that Host header may be answered: else a web page could ask, by a name that leads here. */
static bool visitors_admit(const struct visitors_conf *conf, const char *header)
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

/* ---- connections ---- */

/* evhttp has dropped it, and what was asked on it. */
static bool is_dropped(struct bufferevent *bev)
{
	bufferevent_data_cb readable, writable;
	bufferevent_event_cb happened;

	bufferevent_getcb(bev, &readable, &writable, &happened, NULL);
	return !readable && !writable && !happened;
}

static void leave(struct visitors *all, struct visitor *v)
{
	bufferevent_decref(v->bev);
	*v = (struct visitor){ 0 };
	all->count--;
}

/* evhttp drops it at once, as if the peer had ended it. */
static void turn_out(struct visitors *all, struct visitor *v)
{
	bufferevent_trigger_event(v->bev, BEV_EVENT_READING | BEV_EVENT_EOF, 0);
	leave(all, v);
}

/* Once it has its descriptor. */
static void find_network(struct visitor *v)
{
	union {
		struct sockaddr any;
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
	} peer = { .v6 = { 0 } };
	socklen_t len = sizeof(peer);
	bool here;

	if (!v->bev || v->from != FROM_UNKNOWN || getpeername(bufferevent_getfd(v->bev), &peer.any, &len) < 0)
		return;
	if (peer.any.sa_family == AF_INET) {
		memcpy(v->network.s6_addr + 12, &peer.v4.sin_addr, 4);
		here = ntohl(peer.v4.sin_addr.s_addr) >> 24 == 127;
	} else {
		memcpy(v->network.s6_addr, &peer.v6.sin6_addr, IN6_IS_ADDR_V4MAPPED(&peer.v6.sin6_addr) ? 16 : 8);
		here = IN6_IS_ADDR_LOOPBACK(&peer.v6.sin6_addr);
	}
	v->from = here ? FROM_HERE : FROM_ELSEWHERE;
}

static bool is_of(const struct visitor *v, const struct in6_addr *network)
{
	return v->bev && v->from == FROM_ELSEWHERE && IN6_ARE_ADDR_EQUAL(&v->network, network);
}

/* Whether `a` is to go before `b`: who is slow to ask before who is slow to read, and the earlier one first. */
static bool goes_before(const struct visitor *a, const struct visitor *b)
{
	return a->complete != b->complete ? b->complete : a->number < b->number;
}

/* Who is to go first, of one network or of all (NULL). NULL: each of them waits for the daemon. */
static struct visitor *find_slowest(struct visitors *all, const struct in6_addr *network)
{
	struct visitor *found = NULL;

	for (struct visitor *v = all->list; v < all->list + VISITORS_MAX; v++)
		if (v->bev && !v->asks && (!network || is_of(v, network)) && (!found || goes_before(v, found)))
			found = v;
	return found;
}

static size_t count_of(const struct visitors *all, const struct in6_addr *network)
{
	size_t count = 0;

	for (size_t i = 0; i < VISITORS_MAX; i++)
		count += is_of(&all->list[i], network);
	return count;
}

/* From elsewhere, one network has a part of the places only. On this host all come from one address. */
static void bound_networks(struct visitors *all)
{
	for (size_t i = 0; i < VISITORS_MAX; i++)
		find_network(&all->list[i]);
	for (struct visitor *v = all->list; v < all->list + VISITORS_MAX; v++) {
		struct in6_addr network = v->network;
		struct visitor *slowest;

		while (is_of(v, &network) && count_of(all, &network) > VISITORS_OF_NETWORK_MAX) {
			slowest = find_slowest(all, &network);
			if (!slowest)
				break;
			turn_out(all, slowest);
		}
	}
}

/* Only now the connection that was accepted has its descriptor. */
static void settle(evutil_socket_t none, short what, void *arg)
{
	bound_networks(arg);
}

/* While everybody waits for the daemon, nobody is let in, and nobody is turned out. */
static void listen_or_not(struct visitors *all)
{
	if (all->count < VISITORS_MAX || find_slowest(all, NULL))
		evconnlistener_enable(all->listener);
	else
		evconnlistener_disable(all->listener);
}

static void look(evutil_socket_t none, short what, void *arg)
{
	struct visitors *all = arg;
	time_t now = now_s();

	for (size_t i = 0; i < VISITORS_MAX; i++) {
		struct visitor *v = &all->list[i];

		if (!v->bev)
			continue;
		if (is_dropped(v->bev))
			leave(all, v);
		else if (now - v->since_s >= VISITORS_SECONDS)
			shutdown(bufferevent_getfd(v->bev), SHUT_RDWR); /* evhttp sees its end */
	}
	listen_or_not(all);
	if (all->count > 0)
		evtimer_add(all->timer, &look_often);
}

static struct visitor *find_place(struct visitors *all)
{
	for (struct visitor *v = all->list; v < all->list + VISITORS_MAX; v++) {
		if (v->bev && is_dropped(v->bev))
			leave(all, v);
		if (!v->bev)
			return v;
	}
	return NULL;
}

/* A connection was accepted, which happens only while there is a place for it, or somebody who can be turned out. */
static struct bufferevent *welcome(struct event_base *base, void *arg)
{
	static const struct timeval at_once = { 0 };
	struct visitors *all = arg;
	struct visitor *v = find_place(all), *slowest;

	if (!v) {
		bound_networks(all);
		slowest = all->count == VISITORS_MAX ? find_slowest(all, NULL) : NULL;
		if (slowest)
			turn_out(all, slowest);
		v = find_place(all);
	}
	if (!v)
		abort();
	/* The descriptor lives as long as its events do: its number must not be another connection's by then. */
	v->bev = bufferevent_socket_new(base, -1, BEV_OPT_CLOSE_ON_FREE);
	if (!v->bev)
		abort();
	bufferevent_incref(v->bev);
	v->since_s = now_s();
	v->number = all->number++;
	all->count++;
	listen_or_not(all);
	evtimer_add(all->accepted, &at_once);
	evtimer_add(all->timer, &look_often);
	return v->bev;
}

/* ---- questions ---- */

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
	listen_or_not(all);
}

static void gone(struct evhttp_connection *connection, void *arg)
{
	((struct visitor *)arg)->asks = NULL;
}

static struct visitor *visitor_of(struct visitors *all, struct evhttp_request *req)
{
	struct bufferevent *bev = evhttp_connection_get_bufferevent(evhttp_request_get_connection(req));
	struct visitor *v = all->list;

	while (v->bev != bev)
		v++;
	return v;
}

static void ask(struct visitors *all, struct evhttp_request *req, bool health)
{
	struct visitor *v = visitor_of(all, req);

	if (!all->question)
		all->question = question_new(all->base, all->conf->socket, answered, all);
	if (!all->question) {
		reply_state(req, health, (struct slice){ 0 });
		return;
	}
	v->asks = req;
	v->health = health;
	evhttp_connection_set_closecb(evhttp_request_get_connection(req), gone, v);
	listen_or_not(all);
}

static void handle(struct evhttp_request *req, void *arg)
{
	struct visitors *all = arg;
	const struct evhttp_uri *uri = evhttp_request_get_evhttp_uri(req);
	const char *path = uri ? evhttp_uri_get_path(uri) : NULL, *named = uri ? evhttp_uri_get_host(uri) : NULL;
	const char *host = evhttp_find_header(evhttp_request_get_input_headers(req), "Host");

	visitor_of(all, req)->complete = true;
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
	all->accepted = evtimer_new(base, settle, all);
	all->listener = evconnlistener_new(base, NULL, NULL, LEV_OPT_CLOSE_ON_EXEC, 0, fd);
	if (!all->timer || !all->accepted || !all->listener || !evhttp_bind_listener(http, all->listener))
		abort();
	evhttp_set_allowed_methods(http, EVHTTP_REQ_GET | EVHTTP_REQ_HEAD);
	evhttp_set_max_headers_size(http, VISITORS_HEADER_BYTES_MAX);
	evhttp_set_max_body_size(http, 0);
	evhttp_set_timeout_tv(http, &patience);
	evhttp_set_bevcb(http, welcome, all);
	evhttp_set_gencb(http, handle, all);
	return all;
}
