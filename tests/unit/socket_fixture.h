/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A server on a socket, and clients that connect to it. In the place of the broker stands a feed, whose feed_give_page(),
 * feed_asked() and feed_event() each file defines. One file of a program includes this one.
 */
#pragma once

#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "tests/unit/unit.h"

#include "io/base/feed.h"
#include "io/base/watch.h"
#include "io/socket/server.h"

static struct watch_base *base;
static struct server *server;
static int listening;
static struct sockaddr_un address;
static socklen_t address_len;
static struct client_origin origin; /* of connections of a process before */
static int64_t now_ns, step_ns;     /* how long each look at the clock takes */
static int64_t held_since_ns;       /* all clients are holders since then */
static bool hurry;
static int asked;              /* requests */
static int share, share_begun; /* requests after which a share is spent, if it is not 0; `asked` when it began */

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
	return held_since_ns;
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

/* On a name that the kernel chooses. */
static inline void open_server(const struct server_conf *conf)
{
	enum { BACKLOG = 8 };

	origin = (struct client_origin){ 0 };
	now_ns = 1;
	step_ns = asked = share = 0;
	held_since_ns = INT64_MAX;
	address = (struct sockaddr_un){ .sun_family = AF_UNIX };
	listening = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
	assert_int_equal(bind(listening, (struct sockaddr *)&address, sizeof(address.sun_family)), 0);
	assert_int_equal(listen(listening, BACKLOG), 0);
	address_len = sizeof(address);
	assert_int_equal(getsockname(listening, (struct sockaddr *)&address, &address_len), 0);
	base = watch_base_new();
	server = server_new(NULL, listening, -1, conf);
	server_begin(server);
}

static inline void close_server(void)
{
	server_free(server);
	watch_base_free(base);
	close(listening);
}

/* As the loop does it, for as long as somebody is in a hurry. */
static inline void turn(void)
{
	do {
		hurry = false;
		watch_base_turn(base, false);
		server_continue(server);
		server_settle(server);
	} while (hurry);
}

/* A client that nobody has seen yet. */
static inline int at_the_door(void)
{
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	assert_int_equal(connect(fd, (struct sockaddr *)&address, address_len), 0);
	return fd;
}

static inline int connected(void)
{
	int fd = at_the_door();

	turn();
	return fd;
}

static inline void says(int fd, struct slice text)
{
	assert_int_equal(send(fd, text.data, text.len, MSG_NOSIGNAL), text.len);
}
