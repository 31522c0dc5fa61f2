/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connections that another process could go on with: when the keeper is asked to hold a copy, when the file says that it has
 * one, and when they are busy. The test is the keeper. In the place of the broker stands a feed that answers each request
 * with "+", but for WAIT, which the test answers; PUSH pushes before, and DELEGATE gets a page.
 */
#include "io/socket/server.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "tests/unit/unit.h"

#include "io/base/feed.h"
#include "io/base/keeper.h"
#include "io/base/peer.h"
#include "io/base/watch.h"
#include "io/files/saved.h"
#include "io/files/saved_previous.h"

#define SECOND INT64_C(1000000000)

enum { CLIENTS = 4, OUTPUT_BYTES = 1 << 20, NUMBER = 0 };

static char dir[64];
static struct watch_base *base;
static bool hurry;
static struct saved *saved;
static struct keeper *keeper;
static struct server *server;
static int listening, channel; /* the keeper's end */
static struct sockaddr_un address;
static socklen_t address_len;
static int64_t now_ns, since_ns;
static bool gone;

/* ---- the feed ---- */

struct watch_base *feed_base(const struct feed *f)
{
	return base;
}

int64_t feed_now(struct feed *f)
{
	return now_ns;
}

int64_t feed_seen(const struct feed *f)
{
	return now_ns;
}

int64_t feed_held_since(const struct feed *f, uint32_t conn)
{
	return since_ns;
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
	return (struct client_origin){ 0 };
}

void feed_begin_share(struct feed *f, int64_t begun_ns, int64_t share_ns)
{
}

bool feed_share_spent(const struct feed *f)
{
	return false;
}

void feed_hurry(struct feed *f)
{
	hurry = true;
}

void feed_event(struct feed *f, const struct event *event)
{
	if (event->type == EVENT_CLIENT_GONE)
		gone = true;
	if (event->type == EVENT_CLIENT_PAGE)
		server_reply_page(server, event->conn, SLICE("+"));
}

void feed_asked(struct feed *f, uint32_t conn, size_t argc, const struct slice *argv)
{
	static char text[OUTPUT_BYTES / 2];

	if (slice_eq(argv[0], SLICE("WAIT")))
		return;
	if (slice_eq(argv[0], SLICE("DELEGATE"))) {
		server_page(server, conn);
		return;
	}
	if (slice_eq(argv[0], SLICE("PUSH")))
		server_push(server, conn, (struct slice){ text, sizeof(text) }, false);
	server_reply(server, conn, SLICE("+"), slice_eq(argv[0], SLICE("LAZY")));
}

/* ---- the daemon ---- */

static int begin(void **state)
{
	const struct saved_conf conf = { .rundir = dir, .boot_id = "boot", .host = "host", .clients = CLIENTS };
	struct server_conf server_conf = {
		.user_share = 100,
		.clients = CLIENTS,
		.pages = CLIENTS,
		.request_bytes = 100,
		.request_args = 8,
		.output_bytes = OUTPUT_BYTES,
	};
	struct saved_previous *left;
	char text[16];
	int ours;

	now_ns = 10 * SECOND;
	since_ns = INT64_MAX;
	gone = false;
	snprintf(dir, sizeof(dir), "%s/test_kept.XXXXXX", access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
	assert_non_null(mkdtemp(dir));
	assert_int_equal(saved_previous_read(&left, &conf), 0);
	assert_int_equal(saved_open(&saved, &conf, left), 0);
	saved_previous_free(left);
	assert_int_equal(keeper_message_pair(&channel, &ours), 0);
	snprintf(text, sizeof(text), "%d", ours);
	setenv(KEEPER_VARIABLE, text, 1);
	keeper = keeper_new();
	assert_non_null(keeper);
	address = (struct sockaddr_un){ .sun_family = AF_UNIX };
	listening = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
	assert_int_equal(bind(listening, (struct sockaddr *)&address, sizeof(address.sun_family)), 0);
	assert_int_equal(listen(listening, CLIENTS + 1), 0);
	address_len = sizeof(address);
	assert_int_equal(getsockname(listening, (struct sockaddr *)&address, &address_len), 0);
	base = watch_base_new();
	server_conf.saved = saved;
	server_conf.keeper = keeper;
	server = server_new(NULL, listening, -1, &server_conf);
	keeper_attach(keeper, base, NULL, NULL);
	server_begin(server);
	return 0;
}

static int end(void **state)
{
	char path[96];

	server_free(server);
	keeper_free(keeper);
	watch_base_free(base);
	saved_close(saved);
	close(listening);
	close(channel);
	snprintf(path, sizeof(path), "%s/saved", dir);
	unlink(path);
	return rmdir(dir);
}

#undef TEST
#define TEST(name) TEST_WITH(name, begin, end)

static void turn(void)
{
	do {
		hurry = false;
		watch_base_turn(base, false);
		server_continue(server);
		server_settle(server);
	} while (hurry);
	keeper_settle(keeper);
}

static void a_second_passes(void)
{
	now_ns += SECOND;
	turn();
}

static int connected(void)
{
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	assert_int_equal(connect(fd, (struct sockaddr *)&address, address_len), 0);
	turn();
	return fd;
}

static void says(int fd, const char *text)
{
	assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), strlen(text));
	turn();
}

/* Whether it has ended. */
static bool hears(int fd)
{
	char text[4096];
	ssize_t got;

	while ((got = recv(fd, text, sizeof(text), MSG_DONTWAIT)) > 0)
		;
	return got == 0;
}

/* ---- the keeper ---- */

/* The id of the one KEEP or DROP that has come, and its descriptor; 0: none came. */
static uint64_t told(enum keeper_kind kind, int *ret_fd)
{
	struct keeper_message_with with;
	struct keeper_message m;

	while (keeper_message_receive(channel, &m, &with) == 0) {
		if (m.kind != (uint32_t)kind)
			continue;
		assert_int_equal(m.count, 1);
		if (ret_fd)
			*ret_fd = with.fds[0];
		return m.numbers[0];
	}
	return 0;
}

static void answers(enum keeper_kind kind, uint64_t id)
{
	const struct keeper_message m = { .kind = kind, .count = 1, .numbers = { id } };

	assert_int_equal(keeper_message_send(channel, &m, NULL), 0);
	turn();
}

static const struct saved_conn *entry(void)
{
	return saved_conn(saved, NUMBER);
}

/* Returns the client's end; *ret_fd: the keeper's copy of the other one. */
static int a_kept_connection(int *ret_fd)
{
	int fd = connected();

	since_ns = now_ns;
	a_second_passes();
	answers(KEEPER_KEPT, told(KEEPER_KEEP, ret_fd));
	assert_true(entry()->kept);
	return fd;
}

/* ---- who is kept ---- */

TEST(a_holder_is_kept_after_a_second_and_known_to_be_when_the_keeper_says_so)
{
	int fd = connected(), copy = -1;
	uint64_t id;

	a_second_passes();
	assert_int_equal(told(KEEPER_KEEP, NULL), 0);
	since_ns = now_ns;
	now_ns += SECOND - 1;
	turn();
	a_second_passes();
	id = told(KEEPER_KEEP, &copy);
	assert_true(id && id == peer_cookie(copy) && id == entry()->cookie);
	assert_false(entry()->kept);
	a_second_passes();
	assert_int_equal(told(KEEPER_KEEP, NULL), 0);
	answers(KEEPER_KEPT, id);
	assert_true(entry()->kept && !entry()->busy);
	close(copy);
	close(fd);
}

TEST(whoever_the_keeper_has_no_room_for_is_not_kept_and_asked_for_again)
{
	int fd = connected(), copy;

	since_ns = now_ns;
	a_second_passes();
	answers(KEEPER_REFUSED, told(KEEPER_KEEP, &copy));
	assert_false(entry()->kept);
	assert_int_equal(told(KEEPER_KEEP, NULL), 0);
	close(copy);
	/* Until there is. */
	a_second_passes();
	answers(KEEPER_KEPT, told(KEEPER_KEEP, &copy));
	assert_true(entry()->kept);
	close(copy);
	close(fd);
}

TEST(a_copy_does_not_keep_the_connection_open)
{
	int copy, fd = a_kept_connection(&copy);
	uint64_t id = entry()->cookie;

	server_close(server, NUMBER);
	turn();
	assert_true(gone && hears(fd));
	assert_true(told(KEEPER_DROP, NULL) == id);
	assert_false(entry()->cookie || entry()->kept);
	close(copy);
	close(fd);
}

/* The number is another connection's by then. */
TEST(an_answer_that_comes_late_is_for_nobody)
{
	int fd = connected(), copy;
	uint64_t id;

	since_ns = now_ns;
	a_second_passes();
	id = told(KEEPER_KEEP, &copy);
	close(fd);
	turn();
	assert_true(gone);
	since_ns = INT64_MAX;
	fd = connected();
	assert_true(entry()->cookie && entry()->cookie != id);
	answers(KEEPER_KEPT, id);
	assert_false(entry()->kept);
	close(copy);
	close(fd);
}

/* A connection with delegated locks can go on in the next process only with its page. */
TEST(a_page_that_is_refused_is_asked_for_again)
{
	int copy, page, fd = a_kept_connection(&copy);
	uint64_t id;

	says(fd, "DELEGATE\r\n");
	for (int i = 0; i < 2; i++) {
		a_second_passes();
		id = told(KEEPER_KEEP, &page);
		assert_true(id == (KEEPER_PAGE | entry()->cookie));
		close(page);
		answers(KEEPER_REFUSED, id);
	}
	a_second_passes();
	answers(KEEPER_KEPT, told(KEEPER_KEEP, &page));
	a_second_passes();
	assert_int_equal(told(KEEPER_KEEP, NULL), 0);
	assert_true(entry()->kept);
	close(page);
	close(copy);
	close(fd);
}

TEST(an_answer_about_a_page_that_comes_late_is_for_nobody)
{
	int copy, page, fd = a_kept_connection(&copy);
	uint64_t id;

	says(fd, "DELEGATE\r\n");
	a_second_passes();
	id = told(KEEPER_KEEP, &page);
	close(fd);
	turn();
	assert_true(gone);
	since_ns = INT64_MAX;
	fd = connected();
	answers(KEEPER_REFUSED, id);
	assert_false(hears(fd));
	close(page);
	close(copy);
	close(fd);
}

/* ---- busy ---- */

TEST(a_request_is_marked_until_its_reply_is_written)
{
	int copy, fd = a_kept_connection(&copy);

	says(fd, "WAIT\r\n");
	assert_true(entry()->busy);
	server_reply(server, NUMBER, SLICE("+"), false);
	turn();
	assert_false(entry()->busy);
	says(fd, "NOW\r\n");
	assert_false(entry()->busy);
	close(copy);
	close(fd);
}

TEST(a_part_of_a_request_is_marked)
{
	int copy, fd = a_kept_connection(&copy);

	says(fd, "NO");
	assert_true(entry()->busy);
	says(fd, "W\r\n");
	assert_false(entry()->busy);
	says(fd, "\r\n");
	assert_false(entry()->busy);
	close(copy);
	close(fd);
}

TEST(what_is_behind_a_request_is_marked_with_it)
{
	int copy, fd = a_kept_connection(&copy);

	says(fd, "WAIT\r\nWAIT\r\n");
	server_reply(server, NUMBER, SLICE("+"), false);
	turn();
	turn();
	assert_true(entry()->busy);
	server_reply(server, NUMBER, SLICE("+"), false);
	turn();
	assert_false(entry()->busy);
	close(copy);
	close(fd);
}

TEST(a_push_is_marked_until_it_is_written)
{
	int copy, fd = a_kept_connection(&copy);

	server_push(server, NUMBER, SLICE("!"), false);
	assert_true(entry()->busy);
	turn();
	assert_false(entry()->busy);
	says(fd, "PUSH\r\n"); /* more than the socket takes */
	assert_true(entry()->busy);
	while (entry()->busy) {
		hears(fd);
		turn();
	}
	close(copy);
	close(fd);
}

/* It would be busy for as long as the client asks nothing. */
TEST(a_reply_that_may_wait_is_written_at_the_next_look)
{
	int copy, fd = a_kept_connection(&copy);

	says(fd, "LAZY\r\n");
	assert_true(entry()->busy);
	a_second_passes();
	assert_false(entry()->busy);
	close(copy);
	close(fd);
}

TEST(what_is_under_way_when_it_is_kept_is_marked)
{
	int fd = connected(), copy;

	since_ns = now_ns;
	says(fd, "WAIT\r\n");
	a_second_passes();
	answers(KEEPER_KEPT, told(KEEPER_KEEP, &copy));
	assert_true(entry()->kept && entry()->busy);
	close(copy);
	close(fd);
}
