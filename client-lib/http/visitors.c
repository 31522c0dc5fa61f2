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

#include "client-lib/clock.h"

enum { READ_SECONDS = 5, INPUT_BYTES_MAX = 4096, STREAM_KERNEL_BYTES = 32 * 1024 };

static const struct timeval look_often = { .tv_usec = 250000 };

/* `bev` is ours as well, so that it can be looked at after evhttp has dropped it. */
struct visitor {
	struct bufferevent *bev; /* NULL: the place is free */
	int64_t since_s;         /* of the monotonic clock */
	unsigned long number;    /* of the connections in their order */
	bool complete;           /* its request is */
	enum { FROM_UNKNOWN, FROM_HERE, FROM_ELSEWHERE } from;
	struct in6_addr network;     /* FROM_ELSEWHERE: of one of these of IPv6, who has an address has 2^64 */
	struct evhttp_request *asks; /* it waits for an answer, or gets a stream; NULL: it does not */
	int about;                   /* the subject of what it waits for */
	bool streams;
	int behind; /* events since it had read all that was sent before */
};

struct visitors {
	struct event_base *base;
	const struct visitors_conf *conf;
	struct evconnlistener *listener;
	struct event *timer, *accepted;
	size_t count, streams;
	unsigned long number;
	struct visitor list[]; /* as many as the configuration says */
};

static struct visitor *end_of(struct visitors *all)
{
	return all->list + all->conf->most;
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
	if ((conf->address && strcasecmp(host, conf->address) == 0) ||
	    (conf->loopback && strcasecmp(host, "localhost") == 0))
		return true;
	if (conf->any_address && is_address(host))
		return true;
	for (const char *const *name = conf->hosts; *name; name++)
		if (strcasecmp(host, *name) == 0)
			return true;
	return false;
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
	all->streams -= v->streams;
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
		struct sockaddr_storage room;
	} peer = { .room = { 0 } };
	socklen_t len = sizeof(peer);
	bool here;

	if (!v->bev || v->from != FROM_UNKNOWN || getpeername(bufferevent_getfd(v->bev), &peer.any, &len) < 0)
		return;
	if (peer.any.sa_family == AF_UNIX) {
		here = true;
	} else if (peer.any.sa_family == AF_INET) {
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

/* Who is to go first, of one network or of all (NULL). NULL: each of them waits for an answer, or is a stream. */
static struct visitor *find_slowest(struct visitors *all, const struct in6_addr *network)
{
	struct visitor *found = NULL;

	for (struct visitor *v = all->list; v < end_of(all); v++)
		if (v->bev && !v->asks && (!network || is_of(v, network)) && (!found || goes_before(v, found)))
			found = v;
	return found;
}

static size_t count_of(struct visitors *all, const struct in6_addr *network)
{
	size_t count = 0;

	for (struct visitor *v = all->list; v < end_of(all); v++)
		count += is_of(v, network);
	return count;
}

/* From elsewhere, one network has a part of the places only. On this host all come from one address. */
static void bound_networks(struct visitors *all)
{
	for (struct visitor *v = all->list; v < end_of(all); v++)
		find_network(v);
	for (struct visitor *v = all->list; v < end_of(all); v++) {
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

/* While everybody waits for an answer, nobody is let in, and nobody is turned out. */
static void listen_or_not(struct visitors *all)
{
	if (all->count < all->conf->most || find_slowest(all, NULL))
		evconnlistener_enable(all->listener);
	else
		evconnlistener_disable(all->listener);
}

static void look(evutil_socket_t none, short what, void *arg)
{
	struct visitors *all = arg;
	int64_t now_s = clock_ms(CLOCK_MONOTONIC) / 1000;

	for (struct visitor *v = all->list; v < end_of(all); v++) {
		if (!v->bev)
			continue;
		if (is_dropped(v->bev))
			leave(all, v);
		else if (!v->streams && now_s - v->since_s >= VISITORS_SECONDS)
			shutdown(bufferevent_getfd(v->bev), SHUT_RDWR); /* evhttp sees its end */
	}
	listen_or_not(all);
	if (all->count > 0)
		evtimer_add(all->timer, &look_often);
}

static struct visitor *find_place(struct visitors *all)
{
	for (struct visitor *v = all->list; v < end_of(all); v++) {
		if (v->bev && is_dropped(v->bev))
			leave(all, v);
		if (!v->bev)
			return v;
	}
	return NULL;
}

/*
 * A connection was accepted, which should happen only while there is a place for it, or somebody who can be turned out:
 * handle() refuses one without a place. What is sent behind a request waits in the kernel.
 */
static struct bufferevent *welcome(struct event_base *base, void *arg)
{
	static const struct timeval at_once = { 0 };
	struct visitors *all = arg;
	struct visitor *v = find_place(all), *slowest;
	/* The descriptor lives as long as its events do: its number must not be another connection's by then. */
	struct bufferevent *bev = bufferevent_socket_new(base, -1, BEV_OPT_CLOSE_ON_FREE);

	if (!bev)
		abort();
	bufferevent_setwatermark(bev, EV_READ, 0, 2 * VISITORS_HEADER_BYTES_MAX);
	if (!v) {
		bound_networks(all);
		slowest = all->count == all->conf->most ? find_slowest(all, NULL) : NULL;
		if (slowest)
			turn_out(all, slowest);
		v = find_place(all);
	}
	if (!v) {
		listen_or_not(all);
		return bev;
	}
	v->bev = bev;
	bufferevent_incref(bev);
	v->since_s = clock_ms(CLOCK_MONOTONIC) / 1000;
	v->number = all->number++;
	all->count++;
	listen_or_not(all);
	evtimer_add(all->accepted, &at_once);
	evtimer_add(all->timer, &look_often);
	return bev;
}

/* ---- answers ---- */

static void add_headers(struct evhttp_request *req, const char *type, const char *cache)
{
	static const char *const always[][2] = {
		{ "X-Content-Type-Options", "nosniff" },
		{ "Referrer-Policy", "no-referrer" },
		{ "Content-Security-Policy",
		  "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'" },
		{ "Cross-Origin-Resource-Policy", "same-origin" },
		{ "Connection", "close" },
	};
	struct evkeyvalq *headers = evhttp_request_get_output_headers(req);

	evhttp_add_header(headers, "Content-Type", type);
	evhttp_add_header(headers, "Cache-Control", cache);
	for (size_t i = 0; i < sizeof(always) / sizeof(always[0]); i++)
		evhttp_add_header(headers, always[i][0], always[i][1]);
}

void visitors_reply(struct evhttp_request *req, int code, const char *type, const char *cache, struct slice body)
{
	struct evbuffer *buffer = evbuffer_new();
	char length[24];

	if (!buffer)
		abort();
	snprintf(length, sizeof(length), "%zu", body.len);
	add_headers(req, type, cache);
	evhttp_add_header(evhttp_request_get_output_headers(req), "Content-Length", length);
	if (evhttp_request_get_command(req) != EVHTTP_REQ_HEAD)
		evbuffer_add(buffer, body.data, body.len);
	/* libevent has the other reasons. */
	evhttp_send_reply(req, code, code == 421 ? "Misdirected Request" : NULL, buffer);
	evbuffer_free(buffer);
}

/* NULL: there was no place for it. */
static struct visitor *visitor_of(struct visitors *all, struct evhttp_request *req)
{
	struct bufferevent *bev = evhttp_connection_get_bufferevent(evhttp_request_get_connection(req));

	for (struct visitor *v = all->list; v < end_of(all); v++)
		if (v->bev == bev)
			return v;
	return NULL;
}

/* evhttp leaves a request to us that has lost its connection. */
static void gone(struct evhttp_connection *connection, void *arg)
{
	struct visitor *v = arg;

	if (v->asks && !evhttp_request_get_connection(v->asks))
		evhttp_request_free(v->asks);
	v->asks = NULL;
}

static void keep(struct visitor *v, struct evhttp_request *req, int about)
{
	v->asks = req;
	v->about = about;
	evhttp_connection_set_closecb(evhttp_request_get_connection(req), gone, v);
}

void visitors_wait(struct visitors *all, struct evhttp_request *req, int about)
{
	keep(visitor_of(all, req), req, about);
	listen_or_not(all);
}

void visitors_answer(struct visitors *all, int about, void (*answer)(void *of, struct evhttp_request *req, int about))
{
	for (struct visitor *v = all->list; v < end_of(all); v++) {
		struct evhttp_request *req = v->asks;

		if (!req || v->streams || (about >= 0 && v->about != about))
			continue;
		v->asks = NULL;
		answer(all->conf->of, req, v->about);
	}
	listen_or_not(all);
}

/* ---- streams ---- */

bool visitors_stream(struct visitors *all, struct evhttp_request *req)
{
	static const struct timeval patience = { .tv_sec = READ_SECONDS };
	const int kernel_bytes = STREAM_KERNEL_BYTES;
	struct visitor *v = visitor_of(all, req);

	for (struct visitor *other = all->list; other < end_of(all); other++)
		if (other->bev && is_dropped(other->bev))
			leave(all, other);
	if (all->streams == all->conf->streams)
		return false;
	all->streams++;
	v->streams = true;
	keep(v, req, 0);
	listen_or_not(all);
	add_headers(req, "text/event-stream", "no-store");
	evhttp_send_reply_start(req, 200, "OK");
	/* It is silent from now on. What it says all the same is read up to a bound only. */
	bufferevent_set_timeouts(v->bev, NULL, &patience);
	/* The kernel would take some minutes' events of one that does not read. */
	setsockopt(bufferevent_getfd(v->bev), SOL_SOCKET, SO_SNDBUF, &kernel_bytes, sizeof(kernel_bytes));
	bufferevent_setwatermark(v->bev, EV_READ, 0, INPUT_BYTES_MAX);
	return true;
}

static void send_to(struct visitors *all, struct visitor *v, struct slice event)
{
	struct evbuffer *buffer;

	size_t unread = evbuffer_get_length(bufferevent_get_output(v->bev));

	v->behind = unread > 0 ? v->behind + 1 : 0;
	if (v->behind > VISITORS_STREAM_BEHIND_MAX || unread + event.len > VISITORS_STREAM_BYTES_MAX) {
		turn_out(all, v);
		return;
	}
	buffer = evbuffer_new();
	if (!buffer)
		abort();
	evbuffer_add(buffer, event.data, event.len);
	evhttp_send_reply_chunk(v->asks, buffer);
	evbuffer_free(buffer);
}

void visitors_send(struct visitors *all, struct slice event)
{
	for (struct visitor *v = all->list; v < end_of(all); v++)
		if (v->streams && v->asks)
			send_to(all, v, event);
}

void visitors_send_first(struct visitors *all, struct evhttp_request *req, struct slice event)
{
	send_to(all, visitor_of(all, req), event);
}

size_t visitors_streams(const struct visitors *all)
{
	return all->streams;
}

/* ---- requests ---- */

static void handle(struct evhttp_request *req, void *arg)
{
	struct visitors *all = arg;
	const struct visitors_conf *conf = all->conf;
	const struct evhttp_uri *uri = evhttp_request_get_evhttp_uri(req);
	const char *named = uri ? evhttp_uri_get_host(uri) : NULL;
	const char *host = evhttp_find_header(evhttp_request_get_input_headers(req), "Host");
	enum evhttp_cmd_type method = evhttp_request_get_command(req);
	struct visitor *v = visitor_of(all, req);

	if (!v) {
		conf->refuse(req, 503, "too many ask at a time: ask again later");
		return;
	}
	v->complete = true;
	if (!visitors_admit(conf, host) || (named && !visitors_admit(conf, named)))
		conf->refuse(req, 421, "this is no name of this server: see --host");
	else if (method != EVHTTP_REQ_GET && method != EVHTTP_REQ_HEAD)
		conf->refuse(req, 405, "only GET and HEAD are answered here");
	else
		conf->handle(conf->of, req);
}

struct visitors *visitors_new(struct event_base *base, int fd, const struct visitors_conf *conf)
{
	static const struct timeval patience = { .tv_sec = READ_SECONDS };
	struct visitors *all = calloc(1, sizeof(*all) + conf->most * sizeof(all->list[0]));
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
	evhttp_set_allowed_methods(http, (ev_uint16_t)conf->methods);
	evhttp_set_max_headers_size(http, VISITORS_HEADER_BYTES_MAX);
	evhttp_set_max_body_size(http, 0);
	evhttp_set_timeout_tv(http, &patience);
	evhttp_set_bevcb(http, welcome, all);
	evhttp_set_gencb(http, handle, all);
	return all;
}
