/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The clients over HTTP. A connection is answered once and closed. There are at most visitors_conf.most connections.
 * None lives longer than VISITORS_SECONDS, however slowly it sends or reads, unless it is a stream.
 *
 *     all places are taken          -> for one more, the connection goes whose request has been incomplete longest;
 *                                      if all are complete, the connection that has read its answer for longest
 *     all wait for an answer        -> further ones wait in the kernel's queue
 *     a network beyond this host    -> has at most VISITORS_OF_NETWORK_MAX: for one more, one of its own goes likewise
 *     a stream                      -> is never turned out for others: there are at most visitors_conf.streams. It
 *                                      goes when VISITORS_STREAM_BYTES_MAX of it are not read yet, or when it has
 *                                      not read all before any of VISITORS_STREAM_BEHIND_MAX events
 */
#pragma once

#include <event2/event.h>
#include <event2/http.h>
#include <stdbool.h>

#include "protocol/slice.h"

enum {
	VISITORS_MAX = 64,
	VISITORS_OF_NETWORK_MAX = 16,
	VISITORS_SECONDS = 15,
	VISITORS_HEADER_BYTES_MAX = 8192,
	VISITORS_STREAM_BYTES_MAX = 256 * 1024,
	VISITORS_STREAM_BEHIND_MAX = 5,
};

struct visitors;
struct visitor;

struct visitors_conf {
	const char *address;      /* that is listened on, as a Host header has it, without the port; NULL: a path */
	bool any_address;         /* it is none in particular: any literal address may be asked for */
	bool loopback;            /* "localhost" may be asked for */
	const char *const *hosts; /* other names by which it may be asked, NULL-terminated */
	size_t most, streams;     /* connections, and how many of them may be streams: fewer */
	unsigned int methods;     /* that are not refused by evhttp itself, whose refusals have a page of their own */
	/*
	 * A whole request to a name of this server, by GET or HEAD: is answered by visitors_reply(), later by
	 * visitors_wait(), or by visitors_stream().
	 */
	void (*handle)(void *of, struct evhttp_request *req);
	/* Answers with that error. */
	void (*refuse)(struct evhttp_request *req, int code, const char *sentence);
	void *of;
};

/* Serves on a socket that is bound and listens; it and the configuration outlive it. */
struct visitors *visitors_new(struct event_base *base, int fd, const struct visitors_conf *conf);

/* Answers a request, and ends its connection. `cache`: the value of Cache-Control. */
void visitors_reply(struct evhttp_request *req, int code, const char *type, const char *cache, struct slice body);
/* It is answered later, by visitors_answer() for that subject. */
void visitors_wait(struct visitors *all, struct evhttp_request *req, int about);
/* All that wait for the subject (negative: for any) are to be answered by the function, which gets them one by one. */
void visitors_answer(struct visitors *all, int about, void (*answer)(void *of, struct evhttp_request *req, int about));
/* Begins an answer of type text/event-stream that has no end. False: there are too many streams, and nothing is done. */
bool visitors_stream(struct visitors *all, struct evhttp_request *req);
/* Sends this to each stream. */
void visitors_send(struct visitors *all, struct slice event);
/* Sends this to one stream only, which was just begun. */
void visitors_send_first(struct visitors *all, struct evhttp_request *req, struct slice event);
size_t visitors_streams(const struct visitors *all);
