/* SPDX-License-Identifier: Apache-2.0 */
/* A handle whose server sends answers in pieces, long ones, and such as cannot be right. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/unit/unit.h"

#include "base/clock.h"
#include "base/log.h"
#include "io/base/watch.h"
#include "io/zookeeper/handle.h"
#include "zk_fixture.h"

enum { OPS_MAX = 16 };

static struct bytes said; /* what the server is about to write */
static struct watch_base *base;
static struct watch *alarm_clock;
static struct zk_handle *handle;
static int listener, server;
static int32_t xids[OPS_MAX];
static size_t xid_count;

static struct {
	bool connected, rung;
	unsigned int suspended, expired, troubles, answered, watched;
	enum zk_code code;
	size_t count;
	char text[256], trouble[512];
} seen;

static void copy_text(struct slice s)
{
	snprintf(seen.text, sizeof(seen.text), "%.*s", (int)s.len, s.len ? s.data : "");
}

static void event(void *arg, const struct event *e)
{
	seen.connected = e->type == EVENT_ZK_CONNECTED || (seen.connected && e->type != EVENT_ZK_SUSPENDED);
	seen.suspended += e->type == EVENT_ZK_SUSPENDED;
	seen.expired += e->type == EVENT_ZK_EXPIRED;
	if (e->type == EVENT_ZK_WATCH) {
		seen.watched++;
		copy_text(e->zk_watch.path);
	}
	if (e->type != EVENT_ZK_ANSWERED)
		return;
	seen.answered++;
	seen.code = e->zk_answered.code;
	seen.count = e->zk_answered.count;
	copy_text(e->zk_answered.path.len ? e->zk_answered.path
		  : e->zk_answered.count  ? e->zk_answered.children[e->zk_answered.count - 1]
					  : e->zk_answered.data);
}

static void trouble(void *arg, enum zk_handle_trouble kind, const char *text)
{
	seen.troubles++;
	snprintf(seen.trouble, sizeof(seen.trouble), "%s", text);
}

static void refused(void *arg, const char *text)
{
	fail_msg("%s", text);
}

static void rings(int fd, short what, void *arg)
{
	seen.rung = true;
}

static void turn(bool wait)
{
	zk_handle_settle(handle);
	watch_base_turn(base, wait);
	zk_handle_settle(handle);
}

/* Notes the xids of all requests that the handle has sent together. */
static void server_reads(void)
{
	unsigned char request[4096];
	ssize_t got = recv(server, request, sizeof(request), 0);
	size_t at = 0;

	assert_true(got > 0);
	xid_count = 0;
	while (at + 12 <= (size_t)got && xid_count < OPS_MAX) {
		uint32_t words[3];

		memcpy(words, request + at, sizeof(words));
		xids[xid_count++] = (int32_t)ntohl(words[1]);
		at += sizeof(words[0]) + ntohl(words[0]);
	}
	assert_int_equal(at, got);
}

static void serve(void)
{
	static const char password[17];
	struct bytes b = { 0 };
	int yes = 1;
	char request[256];

	while ((server = accept(listener, NULL, NULL)) < 0)
		turn(true);
	assert_int_equal(setsockopt(server, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes)), 0);
	while (recv(server, request, sizeof(request), MSG_PEEK | MSG_DONTWAIT) < 0)
		turn(true);
	assert_true(recv(server, request, sizeof(request), 0) > 40);
	put(&b, 37);
	put(&b, 0);
	put(&b, 10000);
	put(&b, 0);
	put(&b, 5);
	put(&b, 16);
	bytes_append(&b, password, sizeof(password));
	assert_int_equal(send(server, b.data, b.len, 0), b.len);
	while (!seen.connected)
		turn(true);
	bytes_free(&b);
}

static int begin(void **state)
{
	static const struct zk_handle_conf conf = { .timeout_ms = 10000, .timeout_min_ms = 1, .timeout_max_ms = 60000 };
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(address);
	char name[64];

	bytes_clear(&said);
	memset(&seen, 0, sizeof(seen));
	listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	assert_int_equal(bind(listener, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(listener, 4), 0);
	assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &len), 0);
	snprintf(name, sizeof(name), "127.0.0.1:%d", ntohs(address.sin_port));
	base = watch_base_new();
	alarm_clock = watch_new(base, rings, NULL);
	handle = zk_handle_new(base, &conf, &(struct zk_handle_owner){ NULL, event, trouble, refused });
	assert_int_equal(zk_handle_connect(handle, name, NULL), 0);
	serve();
	return 0;
}

static int end(void **state)
{
	zk_handle_forget(handle);
	zk_handle_free(handle);
	watch_free(alarm_clock);
	watch_base_free(base);
	close(server);
	close(listener);
	bytes_free(&said);
	return 0;
}

#undef TEST
#define TEST(name) TEST_WITH(name, begin, end)

static void ask(enum effect_type type, const char *path, bool watch)
{
	const struct effect effect = { .type = type, .op = 1, .create = ZK_EPHEMERAL_SEQUENTIAL, .watch = watch };

	assert_int_equal(zk_handle_send(handle, &effect, slice_of(path), SLICE("")), ZK_OK);
	zk_handle_settle(handle);
	server_reads();
}

/* With its length, in pieces of so many bytes. */
static void server_says(const struct bytes *b, size_t piece)
{
	struct bytes frame = { 0 };

	put(&frame, (int32_t)b->len);
	bytes_slice(&frame, bytes_view(b));
	for (size_t at = 0; at < frame.len;) {
		size_t left = frame.len - at;
		ssize_t sent = send(server, frame.data + at, left < piece ? left : piece, MSG_DONTWAIT | MSG_NOSIGNAL);

		assert_true(sent > 0 || errno == EAGAIN);
		at += (size_t)(sent > 0 ? sent : 0);
		if (at < frame.len)
			turn(sent < 0);
	}
	bytes_free(&frame);
}

static void server_answers_a_list(int32_t xid, int32_t count, size_t piece)
{
	struct bytes b = { 0 };

	put_header(&b, xid, 0);
	put(&b, count);
	for (int32_t i = 0; i < count; i++)
		put_text(&b, i == count - 1 ? "last" : "_c_00000000-0000-8000-0000-000000000000-lock-0000000001");
	put_stat(&b);
	server_says(&b, piece);
	bytes_free(&b);
}

TEST(an_answer_may_come_in_pieces)
{
	for (size_t piece = 1; piece < 40; piece++) {
		ask(EFFECT_ZK_LIST, "/a", false);
		seen.answered = 0;
		server_answers_a_list(xids[0], 2, piece);
		while (!seen.answered)
			turn(true);
		assert_int_equal(seen.code, ZK_OK);
		assert_int_equal(seen.count, 2);
		assert_string_equal(seen.text, "last");
	}
	assert_int_equal(seen.suspended, 0);
}

/* 3 MB, whatever the socket holds. What is asked while it comes is answered after it. */
TEST(an_answer_may_be_longer_than_a_socket_holds)
{
	enum { CHILDREN = 60000 };

	ask(EFFECT_ZK_LIST, "/a", false);
	server_answers_a_list(xids[0], CHILDREN, SIZE_MAX);
	while (!seen.answered)
		turn(true);
	assert_int_equal(seen.code, ZK_OK);
	assert_int_equal(seen.count, CHILDREN);
	assert_string_equal(seen.text, "last");
	ask(EFFECT_ZK_GET, "/a", false);
	put_header(&said, xids[0], 0);
	put_body(&said, ZK_BODY_DATA);
	server_says(&said, SIZE_MAX);
	while (seen.answered < 2)
		turn(true);
	assert_string_equal(seen.text, "data");
	assert_int_equal(seen.suspended, 0);
}

/* Two and a half answers at once, and then the rest. */
TEST(answers_that_come_together_are_read_one_by_one)
{
	struct bytes all = { 0 };
	size_t half;

	for (size_t i = 0; i < 3; i++) {
		ask(EFFECT_ZK_GET, "/a", true);
		bytes_clear(&said);
		put_header(&said, xids[0], 0);
		put_body(&said, ZK_BODY_DATA);
		put(&all, (int32_t)said.len);
		bytes_slice(&all, bytes_view(&said));
	}
	half = all.len - said.len / 2;
	assert_int_equal(send(server, all.data, half, 0), half);
	while (seen.answered < 2)
		turn(true);
	turn(false);
	assert_int_equal(seen.answered, 2);
	assert_int_equal(send(server, all.data + half, all.len - half, 0), all.len - half);
	while (seen.answered < 3)
		turn(true);
	bytes_clear(&said);
	put_event(&said, 3, "/a");
	server_says(&said, 7);
	while (!seen.watched)
		turn(true);
	assert_string_equal(seen.text, "/a");
	assert_int_equal(seen.suspended, 0);
	bytes_free(&all);
}

/* The loop is woken by what comes, and by time; not by what has come before. */
TEST(a_part_of_an_answer_spins_nothing)
{
	unsigned int turns = 0;

	ask(EFFECT_ZK_GET, "/a", false);
	put(&said, 1000);
	put_header(&said, xids[0], 0);
	for (size_t part = 1; part < said.len; part = 2 * part + 1) {
		assert_int_equal(send(server, said.data, part, 0), part);
		seen.rung = false;
		watch_set(alarm_clock, -1, 0, 100 * CLOCK_NS_PER_MS);
		for (turns = 0; !seen.rung; turns++)
			turn(true);
		assert_true(turns < 10);
		assert_int_equal(seen.answered, 0);
		zk_handle_drop(handle);
		while (seen.connected)
			turn(true);
		close(server);
		serve();
		ask(EFFECT_ZK_GET, "/a", false);
		seen.answered = 0;
	}
}

/* What the server says comes in place of an answer: the connection ends with that sentence, and another one is made. */
static void server_spoils(int32_t length, const char *why)
{
	struct bytes frame = { 0 };

	put(&frame, length);
	bytes_slice(&frame, bytes_view(&said));
	seen.answered = seen.suspended = seen.troubles = 0;
	assert_int_equal(send(server, frame.data, frame.len, MSG_NOSIGNAL), frame.len);
	while (!seen.suspended)
		turn(true);
	assert_int_equal(seen.troubles, 1);
	if (!strstr(seen.trouble, why))
		fail_msg("\"%s\" does not say \"%s\"", seen.trouble, why);
	assert_int_equal(seen.answered, 1);
	assert_int_equal(seen.code, ZK_UNKNOWN);
	assert_int_equal(seen.expired, 0);
	close(server);
	serve();
	bytes_free(&frame);
	bytes_clear(&said);
}

TEST(a_wrong_answer_ends_the_connection_and_not_the_session)
{
	ask(EFFECT_ZK_CREATE, "/a/x-", false);
	put_header(&said, xids[0], 0);
	put_text(&said, "/x");
	put_stat(&said);
	server_spoils((int32_t)said.len, "spoils its answers: the answer to the creation of /a/x- names another znode");
	/* Cut short. */
	ask(EFFECT_ZK_LIST, "/a", false);
	put_header(&said, xids[0], 0);
	put(&said, 1);
	put(&said, 0x4000);
	server_spoils((int32_t)said.len, "the list of children of /a ends too early");
	/* Of another request than the first. */
	ask(EFFECT_ZK_GET, "/a", false);
	put_header(&said, xids[0] + 1, -101);
	server_spoils((int32_t)said.len, "not of the request that was sent first");
	/* News of the session that no server may send. */
	ask(EFFECT_ZK_GET, "/a", true);
	put_event(&said, -1, "/a");
	server_spoils((int32_t)said.len, "the event of a watch has a type that servers do not send");
	ask(EFFECT_ZK_GET, "/a", false);
	put_header(&said, AUTH_XID, -115);
	server_spoils((int32_t)said.len, "the answer to an authentication was not asked for");
}

TEST(an_answer_of_an_impossible_length_ends_the_connection)
{
	static const int32_t lengths[] = { 0, 15, -1, INT32_MIN, INT32_MAX, ZK_ANSWER_BYTES_MAX + 1 };

	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		ask(EFFECT_ZK_GET, "/a", false);
		server_spoils(lengths[i], "has a length that none has");
	}
}

TEST(an_answer_to_nothing_ends_the_connection)
{
	put(&said, ZK_ANSWER_HEADER_BYTES);
	put_header(&said, 7, 0);
	assert_int_equal(send(server, said.data, said.len, 0), said.len);
	while (!seen.suspended)
		turn(true);
	assert_non_null(strstr(seen.trouble, "an answer was not asked for"));
}

void unit_begin(int argc, char **argv)
{
	log_setup(LOG_LEVEL_ERROR, LOG_FORM_PLAIN);
}
