/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A server, its clients, and in the place of the broker a feed that does what the words of a request say:
 *
 *     NOW word     answers with the word
 *     WAIT, LOCKS  is answered later, by the test
 *     REPLY n      answers with n bytes
 *     PUSH n       pushes n bytes, to be reported, and answers
 *
 * Each test has one client from its beginning on. One file of a program includes this one.
 */
#pragma once

#include <stdio.h>
#include <sys/ioctl.h>

#include "protocol/number.h"
#include "socket_fixture.h"

enum { CLIENTS = 4, REQUEST_BYTES = 100, REQUEST_ARGS = 8, OUTPUT_BYTES = 50000, NUMBER = 0 };

static int client;     /* its descriptor; -1: there is none */
static char told[256]; /* events that are no requests */
static int halves;     /* how often half-closed was told */
static int others_turn;              /* how many requests there were when one with the word "b" came */
static size_t told_by_then;          /* by then */
static int looked_at, there_by_then; /* a client; bytes that it could read by then */

/* ---- the feed ---- */

void feed_give_page(struct feed *f, uint32_t conn, struct delegation_page *page)
{
}

static inline void tell(const char *word)
{
	snprintf(told + strlen(told), sizeof(told) - strlen(told), "%s ", word);
}

static inline struct slice many(int64_t count)
{
	static char text[OUTPUT_BYTES + 1];

	assert_in_range(count, 1, sizeof(text));
	memset(text, 'x', sizeof(text));
	return (struct slice){ text, (size_t)count };
}

void feed_asked(struct feed *f, uint32_t conn, size_t argc, const struct slice *argv)
{
	int64_t count = 0;

	asked++;
	if (slice_eq(argv[0], SLICE("WAIT")) || slice_eq(argv[0], SLICE("LOCKS")))
		return;
	assert_int_equal(argc, 2);
	if (slice_eq(argv[1], SLICE("b"))) {
		others_turn = asked;
		told_by_then = strlen(told);
		if (looked_at >= 0)
			assert_int_equal(ioctl(looked_at, FIONREAD, &there_by_then), 0);
	}
	number_parse(argv[1], &count);
	if (slice_eq(argv[0], SLICE("PUSH")))
		server_push(server, conn, many(count), true);
	server_reply(server, conn, slice_eq(argv[0], SLICE("REPLY")) ? many(count) : argv[1], false);
}

void feed_event(struct feed *f, const struct event *event)
{
	switch ((int)event->type) {
	case EVENT_CLIENT_CONNECTED:
		tell("connected");
		break;
	case EVENT_CLIENT_HALF_CLOSED:
		halves++;
		/* A state, which is told once or more. */
		if (!strstr(told, "half"))
			tell("half");
		break;
	case EVENT_CLIENT_WRITTEN:
		tell("written");
		break;
	case EVENT_CLIENT_GONE:
		tell("gone");
		break;
	}
}

/* ---- a client ---- */

static inline int begin_alone(void **state)
{
	const struct server_conf conf = {
		.user_share = 100,
		.clients = CLIENTS,
		.request_bytes = REQUEST_BYTES,
		.request_args = REQUEST_ARGS,
		.output_bytes = OUTPUT_BYTES,
	};

	told[0] = '\0';
	halves = 0;
	client = looked_at = -1;
	open_server(&conf);
	return 0;
}

static inline int begin(void **state)
{
	begin_alone(state);
	client = connected();
	return 0;
}

static inline void leaves(void)
{
	close(client);
	client = -1;
}

static inline int end(void **state)
{
	leaves();
	close_server();
	return 0;
}

#undef TEST
#define TEST(name) TEST_WITH(name, begin, end)

/* ... and what follows from it. */
static inline void asks(const char *text)
{
	says(client, slice_of(text));
	turn();
}

/* All that is there to be read, and what follows when there is room for it; *ended: and the end after it. */
static inline struct slice heard(int fd, bool *ended)
{
	static char text[4 * OUTPUT_BYTES];
	size_t len = 0;
	ssize_t got;

	while ((got = recv(fd, text + len, sizeof(text) - len, MSG_DONTWAIT)) > 0) {
		len += (size_t)got;
		turn();
	}
	*ended = got == 0;
	return (struct slice){ text, len };
}

#define assert_heard(fd, text, end) \
	do { \
		bool ended_; \
		struct slice heard_ = heard(fd, &ended_); \
		assert_true(slice_eq(heard_, SLICE(text))); \
		assert_int_equal(ended_, end); \
	} while (0)
