/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connections that another process could go on with: when the keeper is asked to hold a copy, when the file says that it has
 * one, and when they are busy. The test is the keeper. In the place of the broker stands a feed that answers each request
 * with "+", but for WAIT, which the test answers; PUSH pushes before, and DELEGATE gets a page.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/unit/unit.h"

#include "io/base/keeper.h"
#include "io/base/peer.h"
#include "io/files/saved.h"
#include "io/files/saved_previous.h"
#include "socket_fixture.h"

#define SECOND INT64_C(1000000000)

enum { CLIENTS = 4, OUTPUT_BYTES = 1 << 20, NUMBER = 0 };

static char dir[64];
static struct saved *saved;
static struct keeper *keeper;
static int channel; /* the keeper's end */
static int client;  /* a client's end of its connection; -1: there is none */
static int copy;    /* the keeper's copy of the other end; likewise */
static bool gone;

/* ---- the feed ---- */

void feed_give_page(struct feed *f, uint32_t conn, struct delegation_page *page)
{
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

	gone = false;
	client = copy = -1;
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
	server_conf.saved = saved;
	server_conf.keeper = keeper;
	open_server(&server_conf);
	now_ns = 10 * SECOND;
	keeper_attach(keeper, base, NULL, NULL);
	return 0;
}

static int end(void **state)
{
	char path[96];

	close(client);
	close(copy);
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

static void goes_on(void)
{
	turn();
	keeper_settle(keeper);
}

static void a_second_passes(void)
{
	now_ns += SECOND;
	goes_on();
}

static void asks(const char *text)
{
	says(client, slice_of(text));
	goes_on();
}

/* All that there is. Whether the connection has ended. */
static bool reads_to_the_end(void)
{
	char text[4096];
	ssize_t got;

	while ((got = recv(client, text, sizeof(text), MSG_DONTWAIT)) > 0)
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
	goes_on();
}

static const struct saved_conn *entry(void)
{
	return saved_conn(saved, NUMBER);
}

static void a_connection_is_kept(void)
{
	client = connected();
	held_since_ns = now_ns;
	a_second_passes();
	answers(KEEPER_KEPT, told(KEEPER_KEEP, &copy));
	assert_true(entry()->kept);
}

/* ---- who is kept ---- */

TEST(a_holder_is_kept_after_a_second_and_known_to_be_when_the_keeper_says_so)
{
	uint64_t id;

	client = connected();
	a_second_passes();
	assert_int_equal(told(KEEPER_KEEP, NULL), 0);
	held_since_ns = now_ns;
	now_ns += SECOND - 1;
	goes_on();
	a_second_passes();
	id = told(KEEPER_KEEP, &copy);
	assert_true(id && id == peer_cookie(copy) && id == entry()->cookie);
	assert_false(entry()->kept);
	a_second_passes();
	assert_int_equal(told(KEEPER_KEEP, NULL), 0);
	answers(KEEPER_KEPT, id);
	assert_true(entry()->kept && !entry()->busy);
}

TEST(whoever_the_keeper_has_no_room_for_is_not_kept_and_asked_for_again)
{
	client = connected();
	held_since_ns = now_ns;
	a_second_passes();
	answers(KEEPER_REFUSED, told(KEEPER_KEEP, &copy));
	assert_false(entry()->kept);
	assert_int_equal(told(KEEPER_KEEP, NULL), 0);
	close(copy);
	/* Until there is. */
	a_second_passes();
	answers(KEEPER_KEPT, told(KEEPER_KEEP, &copy));
	assert_true(entry()->kept);
}

TEST(a_copy_does_not_keep_the_connection_open)
{
	uint64_t id;

	a_connection_is_kept();
	id = entry()->cookie;
	server_close(server, NUMBER);
	goes_on();
	assert_true(gone && reads_to_the_end());
	assert_true(told(KEEPER_DROP, NULL) == id);
	assert_false(entry()->cookie || entry()->kept);
}

/* The number is another connection's by then. */
TEST(an_answer_that_comes_late_is_for_nobody)
{
	uint64_t id;

	client = connected();
	held_since_ns = now_ns;
	a_second_passes();
	id = told(KEEPER_KEEP, &copy);
	close(client);
	goes_on();
	assert_true(gone);
	held_since_ns = INT64_MAX;
	client = connected();
	assert_true(entry()->cookie && entry()->cookie != id);
	answers(KEEPER_KEPT, id);
	assert_false(entry()->kept);
}

/* A connection with delegated locks can go on in the next process only with its page. */
TEST(a_page_that_is_refused_is_asked_for_again)
{
	uint64_t id;
	int page;

	a_connection_is_kept();
	asks("DELEGATE\r\n");
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
}

TEST(an_answer_about_a_page_that_comes_late_is_for_nobody)
{
	uint64_t id;
	int page;

	a_connection_is_kept();
	asks("DELEGATE\r\n");
	a_second_passes();
	id = told(KEEPER_KEEP, &page);
	close(client);
	goes_on();
	assert_true(gone);
	held_since_ns = INT64_MAX;
	client = connected();
	answers(KEEPER_REFUSED, id);
	assert_false(reads_to_the_end());
	close(page);
}

/* ---- busy ---- */

TEST(a_request_is_marked_until_its_reply_is_written)
{
	a_connection_is_kept();
	asks("WAIT\r\n");
	assert_true(entry()->busy);
	server_reply(server, NUMBER, SLICE("+"), false);
	goes_on();
	assert_false(entry()->busy);
	asks("NOW\r\n");
	assert_false(entry()->busy);
}

TEST(a_part_of_a_request_is_marked)
{
	a_connection_is_kept();
	asks("NO");
	assert_true(entry()->busy);
	asks("W\r\n");
	assert_false(entry()->busy);
	asks("\r\n");
	assert_false(entry()->busy);
}

TEST(what_is_behind_a_request_is_marked_with_it)
{
	a_connection_is_kept();
	asks("WAIT\r\nWAIT\r\n");
	server_reply(server, NUMBER, SLICE("+"), false);
	goes_on();
	goes_on();
	assert_true(entry()->busy);
	server_reply(server, NUMBER, SLICE("+"), false);
	goes_on();
	assert_false(entry()->busy);
}

TEST(a_push_is_marked_until_it_is_written)
{
	a_connection_is_kept();
	server_push(server, NUMBER, SLICE("!"), false);
	assert_true(entry()->busy);
	goes_on();
	assert_false(entry()->busy);
	asks("PUSH\r\n"); /* more than the socket takes */
	assert_true(entry()->busy);
	while (entry()->busy) {
		reads_to_the_end();
		goes_on();
	}
}

/* It would be busy for as long as the client asks nothing. */
TEST(a_reply_that_may_wait_is_written_at_the_next_look)
{
	a_connection_is_kept();
	asks("LAZY\r\n");
	assert_true(entry()->busy);
	a_second_passes();
	assert_false(entry()->busy);
}

TEST(what_is_under_way_when_it_is_kept_is_marked)
{
	client = connected();
	held_since_ns = now_ns;
	asks("WAIT\r\n");
	a_second_passes();
	answers(KEEPER_KEPT, told(KEEPER_KEEP, &copy));
	assert_true(entry()->kept && entry()->busy);
}
