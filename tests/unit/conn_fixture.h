/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A server, its clients, and in the place of the broker a feed that does what the words of a request say:
 *
 *     NOW word     answers with the word
 *     WAIT, LOCKS  is answered later, by the test
 *     REPLY n      answers with n bytes
 *     PUSH n       pushes n bytes, to be reported, and answers
 *
 * It defines the functions of feed.h: one file of a program includes it.
 */
#pragma once

#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "tests/unit/unit.h"

#include "io/base/feed.h"
#include "io/base/watch.h"
#include "io/socket/server.h"
#include "protocol/number.h"

enum { CLIENTS = 4, REQUEST_BYTES = 100, REQUEST_ARGS = 8, OUTPUT_BYTES = 50000, NUMBER = 0 };

static struct watch_base *base;
static struct server *server;
static struct client_origin origin; /* of connections of a process before */
static int listening;
static struct sockaddr_un address;
static socklen_t address_len;
static char told[256]; /* events that are no requests */
static int halves;     /* how often half-closed was told */
static int asked, others_turn; /* requests; how many when one with the word "b" came */
static size_t told_by_then;            /* by then */
static int looked_at, there_by_then;   /* a client; bytes that it could read by then */
static bool hurry;
static int64_t now_ns, step_ns; /* how long each look at the clock takes */
static int share, share_begun;  /* requests after which a share is spent, if it is not 0; `asked` when it began */

/* ---- the feed ---- */

struct watch_base *feed_base(const struct feed *f)
{
	return base;
}

int64_t feed_now(struct feed *f)
{
	return now_ns += step_ns;
}

int64_t feed_seen(const struct feed *f)
{
	return now_ns;
}

int64_t feed_held_since(const struct feed *f, uint32_t conn)
{
	return INT64_MAX;
}

void feed_give_page(struct feed *f, uint32_t conn, struct delegation_page *page)
{
}

bool feed_owns_much(const struct feed *f, uint32_t conn)
{
	return false;
}

struct client_origin feed_origin(const struct feed *f, uint32_t conn)
{
	return origin;
}

void feed_begin_share(struct feed *f, int64_t begun_ns, int64_t share_ns)
{
	share_begun = asked;
}

bool feed_share_spent(const struct feed *f)
{
	return share && asked - share_begun >= share;
}

void feed_hurry(struct feed *f)
{
	hurry = true;
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

static inline void asks(uint32_t conn, size_t argc, const struct slice *argv)
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

void feed_asked(struct feed *f, uint32_t conn, size_t argc, const struct slice *argv)
{
	asks(conn, argc, argv);
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

static inline int begin(void **state)
{
	const struct server_conf conf = {
		.user_share = 100,
		.clients = CLIENTS,
		.request_bytes = REQUEST_BYTES,
		.request_args = REQUEST_ARGS,
		.output_bytes = OUTPUT_BYTES,
	};

	origin = (struct client_origin){ 0 };
	told[0] = '\0';
	asked = halves = share = 0;
	hurry = false;
	looked_at = -1;
	now_ns = 1;
	step_ns = 0;
	/* The kernel chooses a name. */
	address.sun_family = AF_UNIX;
	listening = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
	assert_int_equal(bind(listening, (struct sockaddr *)&address, sizeof(address.sun_family)), 0);
	assert_int_equal(listen(listening, CLIENTS + 1), 0);
	address_len = sizeof(address);
	assert_int_equal(getsockname(listening, (struct sockaddr *)&address, &address_len), 0);
	base = watch_base_new();
	server = server_new(NULL, listening, -1, &conf);
	server_begin(server);
	return 0;
}

static inline int end(void **state)
{
	server_free(server);
	watch_base_free(base);
	close(listening);
	return 0;
}

#undef TEST
#define TEST(name) TEST_WITH(name, begin, end)

/* As the loop does it. */
static inline void turn(void)
{
	do {
		hurry = false;
		watch_base_turn(base, false);
		server_continue(server);
		server_settle(server);
	} while (hurry);
}

static inline int connected(void)
{
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	assert_int_equal(connect(fd, (struct sockaddr *)&address, address_len), 0);
	turn();
	return fd;
}

static inline void says(int fd, struct slice text)
{
	assert_int_equal(send(fd, text.data, text.len, MSG_NOSIGNAL), text.len);
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
