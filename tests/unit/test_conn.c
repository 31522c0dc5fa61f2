/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connections: requests however their bytes come, order, limits, and ends. In the place of the broker stands a feed that
 * does what the words of a request say:
 *
 *     NOW word     answers with the word
 *     WAIT, LOCKS  is answered later, by the test
 *     REPLY n      answers with n bytes
 *     PUSH n       pushes n bytes, to be reported, and answers
 */
#include "io/socket/server.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "tests/unit/unit.h"

#include "io/base/feed.h"
#include "io/base/parcel.h"
#include "io/base/watch.h"
#include "io/socket/conn.h"
#include "io/socket/socket_pools.h"
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

static void tell(const char *word)
{
	snprintf(told + strlen(told), sizeof(told) - strlen(told), "%s ", word);
}

static struct slice many(int64_t count)
{
	static char text[OUTPUT_BYTES + 1];

	assert_in_range(count, 1, sizeof(text));
	memset(text, 'x', sizeof(text));
	return (struct slice){ text, (size_t)count };
}

static void asks(uint32_t conn, size_t argc, const struct slice *argv)
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

static int begin(void **state)
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

static int end(void **state)
{
	server_free(server);
	watch_base_free(base);
	close(listening);
	return 0;
}

#undef TEST
#define TEST(name) TEST_WITH(name, begin, end)

/* As the loop does it. */
static void turn(void)
{
	do {
		hurry = false;
		watch_base_turn(base, false);
		server_continue(server);
		server_settle(server);
	} while (hurry);
}

static int connected(void)
{
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	assert_int_equal(connect(fd, (struct sockaddr *)&address, address_len), 0);
	turn();
	return fd;
}

static void says(int fd, struct slice text)
{
	assert_int_equal(send(fd, text.data, text.len, MSG_NOSIGNAL), text.len);
}

/* All that is there to be read, and what follows when there is room for it; *ended: and the end after it. */
static struct slice heard(int fd, bool *ended)
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

/* ---- requests ---- */

TEST(a_request_may_be_cut_anywhere)
{
	const struct slice text =
		SLICE("*2\r\n$3\r\nNOW\r\n$1\r\na\r\nNOW 'b c'\r\n*2\r\n$3\r\nNOW\r\n$12\r\nabcdefghijkl\r\n");
	int fd = connected();

	for (size_t first = 1; first < text.len; first++) {
		for (size_t at = 0; at < text.len; at += first) {
			says(fd, (struct slice){ text.data + at, text.len - at < first ? text.len - at : first });
			turn();
			turn();
		}
		assert_heard(fd, "ab cabcdefghijkl", false);
	}
	close(fd);
}

TEST(the_next_request_is_asked_when_the_one_before_has_its_reply)
{
	int fd = connected();

	says(fd, SLICE("NOW a\r\nWAIT\r\nNOW c\r\nNOW d\r\n"));
	turn();
	turn();
	assert_int_equal(asked, 2);
	assert_heard(fd, "a", false);
	server_reply(server, NUMBER, SLICE("b"), false);
	turn();
	assert_int_equal(asked, 4);
	assert_heard(fd, "bcd", false);
	close(fd);
}

TEST(a_turn_has_a_share_for_each_client)
{
	int fd = connected(), other = connected();

	for (int i = 0; i <= CONN_REQUESTS_PER_TURN; i++)
		says(fd, SLICE("NOW a\r\n"));
	says(other, SLICE("NOW b\r\n"));
	turn();
	assert_int_equal(asked, CONN_REQUESTS_PER_TURN + 2);
	assert_int_equal(others_turn, CONN_REQUESTS_PER_TURN + 1);
	close(other);
	close(fd);
}

/* ---- limits ---- */

/* A request of two words that has so many bytes. */
static void says_request_of(int fd, int bytes)
{
	char text[REQUEST_BYTES + 32];
	int header = snprintf(text, sizeof(text), "*2\r\n$3\r\nNOW\r\n$%d\r\n", bytes - 13 - 5 - 2);

	memset(text + header, 'x', sizeof(text) - (size_t)header);
	memcpy(text + bytes - 2, "\r\n", 2);
	says(fd, (struct slice){ text, (size_t)bytes });
}

TEST(a_request_as_long_as_the_limit_is_served_and_a_longer_one_ends_the_connection)
{
	bool ended;
	int fd = connected();

	says_request_of(fd, REQUEST_BYTES);
	turn();
	assert_int_equal(asked, 1);
	assert_int_equal(heard(fd, &ended).len, REQUEST_BYTES - 20);
	assert_false(ended);
	says_request_of(fd, REQUEST_BYTES + 1);
	turn();
	assert_int_equal(asked, 1);
	assert_heard(fd, "-ERR Protocol error: invalid bulk length\r\n", true);
	assert_string_equal(told, "connected gone ");
	close(fd);
}

TEST(half_of_the_output_limit_holds_the_next_request_back)
{
	char text[64];
	int fd = connected();

	for (int unread = OUTPUT_BYTES / 2 - 1; unread <= OUTPUT_BYTES / 2; unread++) {
		int before = asked;

		snprintf(text, sizeof(text), "REPLY %d\r\nNOW a\r\n", unread);
		says(fd, slice_of(text));
		watch_base_turn(base, false);
		server_continue(server);
		assert_int_equal(asked - before, 2);
	}
	close(fd);
}

TEST(pushes_up_to_the_output_limit_are_written_and_more_end_the_connection)
{
	bool ended;
	int fd = connected();

	says(fd, SLICE("PUSH 50000\r\n"));
	turn();
	assert_int_equal(heard(fd, &ended).len, OUTPUT_BYTES + strlen("50000"));
	assert_false(ended);
	assert_string_equal(told, "connected written ");
	says(fd, SLICE("PUSH 50001\r\n"));
	turn();
	assert_heard(fd, "", true);
	assert_string_equal(told, "connected written gone ");
	close(fd);
}

TEST(a_client_too_many_is_told_so)
{
	static const char end[] = " allowed connections (limits.clients, limits.user_share): close some\r\n";
	int fds[CLIENTS + 1];
	struct slice refusal;
	bool ended;

	for (int i = 0; i <= CLIENTS; i++)
		fds[i] = connected();
	assert_heard(fds[CLIENTS - 1], "", false);
	/* Root has an account for each unit, which the sentence names. */
	refusal = heard(fds[CLIENTS], &ended);
	assert_true(ended && refusal.len > sizeof(end) && memcmp(refusal.data, "-LIMIT user ", 12) == 0);
	assert_memory_equal(refusal.data + refusal.len - (sizeof(end) - 1), end, sizeof(end) - 1);
	for (int i = 0; i <= CLIENTS; i++)
		close(fds[i]);
}

/* The server of the next process takes over what this one has: one connection, which is that user's. */
static void another_server(uint32_t uid)
{
	static const uint32_t uids[] = { 1000 };
	const struct server_conf conf = { .user_share = 100,
					  .clients = CLIENTS,
					  .request_bytes = REQUEST_BYTES,
					  .request_args = REQUEST_ARGS,
					  .by_unit = uids,
					  .by_unit_count = 1 };
	struct parcel parcel = { 0 };

	server_pack(server, &parcel);
	assert_int_equal(parcel.fd_count, 1);
	parcel.fds[0] = dup(parcel.fds[0]);
	server_free(server);
	origin = (struct client_origin){ .uid = uid, .unit = SLICE("web.service") };
	server = server_new(NULL, listening, -1, &conf);
	assert_int_equal(server_unpack(server, &parcel), 0);
	server_begin(server);
	parcel_free(&parcel);
}

/* The core and the sockets have accounts of their own: of one connection it is the same one. */
TEST(a_connection_of_a_process_before_is_of_the_account_that_the_core_has)
{
	const struct account *account;
	int fd = connected();

	another_server(1000);
	account = TAILQ_FIRST(&server_accounts(server)->list);
	assert_int_equal(account->uid, 1000);
	assert_string_equal(account->unit, "web.service");
	assert_int_equal(account->used[SOCKET_CONNECTIONS], 1);
	close(fd);
}

static size_t were_read(const int *fds, size_t count)
{
	size_t found = 0;
	int unread;

	for (size_t i = 0; i < count; i++) {
		assert_int_equal(ioctl(fds[i], SIOCOUTQ, &unread), 0);
		found += unread == 0;
	}
	return found;
}

/* What they say is no request yet, so that no event tells how late it is. */
TEST(who_says_little_uses_its_turn_too_where_there_are_others)
{
	for (int others = 0; others < 2; others++) {
		int fds[CLIENTS - 1], other = connected();

		if (others)
			another_server(getuid() + 1);
		for (size_t i = 0; i < CLIENTS - 1; i++)
			fds[i] = connected();
		for (size_t i = 0; i < CLIENTS - 1; i++)
			says(fds[i], SLICE("NO"));
		step_ns = PARTY_TURN_NS;
		watch_base_turn(base, false);
		server_continue(server);
		assert_int_equal(were_read(fds, CLIENTS - 1), others ? 1 : CLIENTS - 1);
		step_ns = 0;
		for (size_t i = 0; i < CLIENTS - 1; i++)
			close(fds[i]);
		close(other);
		turn();
	}
}

static int unread_of(int fd)
{
	int unread;

	assert_int_equal(ioctl(fd, SIOCOUTQ, &unread), 0);
	return unread;
}

/* What is read is parsed in turns of 16 bytes here: until then nothing more is read. */
TEST(no_more_is_read_than_turns_need_where_there_are_others)
{
	enum { PARTS = 3, PART = CONN_TURN_BYTES, REQUEST = 8 };
	char part[PART];
	int other = connected(), fd, all;
	ssize_t answers = 0;
	bool ended;

	another_server(getuid() + 1);
	fd = connected();
	for (size_t i = 0; i < sizeof(part); i += REQUEST)
		memcpy(part + i, "NOW  a\r\n", REQUEST);
	for (int i = 0; i < PARTS; i++)
		says(fd, (struct slice){ part, sizeof(part) });
	all = unread_of(fd);
	step_ns = PARTY_TURN_NS;
	share = 2;
	while (asked + 2 * share < PART / REQUEST) {
		watch_base_turn(base, false);
		server_continue(server);
		assert_int_equal(unread_of(fd), all * (PARTS - 1) / PARTS);
		answers += recv(fd, part, sizeof(part), MSG_DONTWAIT);
	}
	share = 0;
	turn();
	assert_int_equal(answers + (ssize_t)heard(fd, &ended).len, PARTS * PART / REQUEST);
	assert_int_equal(asked, PARTS * PART / REQUEST);
	close(fd);
	close(other);
}

TEST(a_long_reply_is_taken_over_or_comes_behind_what_is_unwritten)
{
	int fd = connected();
	bool ended;

	for (int behind = 0; behind < 2; behind++) {
		struct bytes text = { 0 };
		struct slice got;

		says(fd, SLICE("WAIT\r\n"));
		turn();
		if (behind)
			server_push(server, NUMBER, SLICE("first"), false);
		bytes_text(&text, "not this:");
		bytes_slice(&text, many(OUTPUT_BYTES / 2));
		server_reply_whole(server, NUMBER, &text, strlen("not this:"));
		assert_null(text.data);
		turn();
		got = heard(fd, &ended);
		assert_int_equal(got.len, OUTPUT_BYTES / 2 + (behind ? strlen("first") : 0));
		assert_memory_equal(got.data, behind ? "firstxxx" : "xxxxxxxx", 8);
		assert_false(ended);
	}
	says(fd, SLICE("NOW a\r\n"));
	turn();
	assert_heard(fd, "a", false);
	close(fd);
}

TEST(a_long_reply_of_who_has_gone_is_freed)
{
	struct bytes text = { 0 };
	int fd = connected();

	says(fd, SLICE("WAIT\r\n"));
	turn();
	server_close(server, NUMBER);
	bytes_slice(&text, many(OUTPUT_BYTES / 2));
	server_reply_whole(server, NUMBER, &text, 0);
	assert_null(text.data);
	turn();
	assert_heard(fd, "", true);
	close(fd);
}

TEST(a_crowd_at_the_door_keeps_nobody_waiting)
{
	int fds[CLIENTS + 1], fd = connected();

	for (int i = 0; i <= CLIENTS; i++) {
		fds[i] = socket(AF_UNIX, SOCK_STREAM, 0);
		assert_int_equal(connect(fds[i], (struct sockaddr *)&address, address_len), 0);
	}
	says(fd, SLICE("NOW b\r\n"));
	step_ns = PARTY_TURN_NS;
	turn();
	assert_heard(fd, "b", false);
	assert_in_range(told_by_then, 0, 2 * strlen("connected "));
	assert_string_equal(told, "connected connected connected connected ");
	for (int i = 0; i <= CLIENTS; i++)
		close(fds[i]);
	close(fd);
}

TEST(who_came_and_went_without_a_word_is_no_client)
{
	for (int i = 0; i < 3; i++) {
		int fd = socket(AF_UNIX, SOCK_STREAM, 0);

		assert_int_equal(connect(fd, (struct sockaddr *)&address, address_len), 0);
		if (i == 1)
			says(fd, SLICE("NOW a\r\n"));
		close(fd);
	}
	turn();
	turn();
	assert_int_equal(asked, 0); /* what it wanted is of no use to it */
	assert_string_equal(told, "connected gone ");
}

TEST(others_leave_room_for_one_long_request_and_one_long_answer)
{
	struct account *other = account_enter((struct accounts *)server_accounts(server), 1, "", 0);
	struct charge all[2] = { { 0 }, { 0 } };
	char text[REQUEST_BYTES];
	int fd = connected();
	bool ended;

	charge_force(&all[0], other, SOCKET_INPUT, 2 * CONN_UNPARSED_MAX);
	charge_force(&all[1], other, SOCKET_OUTPUT, 2 * CONN_UNWRITTEN_MAX);
	snprintf(text, sizeof(text), "PUSH %d\r\nLOCKS\r\nLOCKS\r\n", OUTPUT_BYTES);
	says(fd, slice_of(text));
	turn();
	assert_int_equal(heard(fd, &ended).len, OUTPUT_BYTES + strlen("50000"));
	assert_int_equal(asked, 2);
	for (int i = 0; i < 2; i++) {
		server_reply(server, NUMBER, many(OUTPUT_BYTES), false);
		turn();
		assert_int_equal(heard(fd, &ended).len, OUTPUT_BYTES);
	}
	assert_int_equal(asked, 3);
	assert_false(ended);
	charge_give_back(&all[0], SOCKET_INPUT);
	charge_give_back(&all[1], SOCKET_OUTPUT);
	account_leave(other);
	close(fd);
}

/* Of so many words, but for the last one. */
static void begins_request_of(int fd, int words)
{
	char text[8192];
	int len = snprintf(text, sizeof(text), "*%d\r\n$4\r\nWAIT\r\n", words);

	for (int i = 2; i < words; i++, len += 6)
		memcpy(text + len, "$0\r\n\r\n", 7);
	says(fd, (struct slice){ text, (size_t)len });
	turn();
}

static void long_requests(void)
{
	struct server_conf conf = {
		.user_share = 100, .clients = CLIENTS, .request_bytes = 65536, .request_args = 1024, .output_bytes = OUTPUT_BYTES,
	};

	server_limits(server, &conf);
}

TEST(what_is_found_in_an_unfinished_request_is_charged)
{
	const size_t word = sizeof(struct slice) + sizeof(size_t);
	struct account *mine;
	int fd;

	long_requests();
	fd = connected();
	mine = TAILQ_FIRST(&server_accounts(server)->list);
	begins_request_of(fd, 200);
	assert_int_equal(mine->used[SOCKET_INPUT], 0);
	says(fd, SLICE("$0\r\n\r\n"));
	turn();
	assert_int_equal(asked, 1);
	server_reply(server, NUMBER, SLICE("a"), false);
	begins_request_of(fd, 1024);
	assert_int_equal(mine->used[SOCKET_INPUT], 17 + 6 * 1022 + 1024 * word - CONN_UNPARSED_SMALL);
	says(fd, SLICE("$0\r\n\r\n"));
	turn();
	assert_int_equal(asked, 2);
	assert_int_equal(mine->used[SOCKET_INPUT], 0);
	close(fd);
}

TEST(past_its_share_a_user_may_begin_a_request_of_few_words_and_none_of_many)
{
	struct charge all = { 0 };
	struct slice got;
	bool ended;
	int fd;

	long_requests();
	fd = connected();
	charge_force(&all, TAILQ_FIRST(&server_accounts(server)->list), SOCKET_INPUT, CONN_UNPARSED_MAX);
	begins_request_of(fd, 256); /* 16 + 6 * 254 bytes, and 256 words of 24: 7,684 */
	assert_heard(fd, "", false);
	says(fd, SLICE("$0\r\n\r\n"));
	turn();
	assert_int_equal(asked, 1);
	server_reply(server, NUMBER, SLICE("a"), false);
	turn();
	assert_heard(fd, "a", false);
	begins_request_of(fd, 259); /* so many words have places for 512 */
	got = heard(fd, &ended);
	assert_true(ended && got.len > 6 && memcmp(got.data, "-LIMIT", 6) == 0);
	assert_int_equal(asked, 1);
	charge_give_back(&all, SOCKET_INPUT);
	close(fd);
}

TEST(the_kernel_keeps_little_of_what_is_not_read)
{
	int fd = connected(), there;

	says(fd, SLICE("REPLY 50000\r\nREPLY 50000\r\n"));
	turn();
	assert_int_equal(ioctl(fd, FIONREAD, &there), 0);
	assert_in_range(there, CONN_PART_BYTES, 3 * CONN_KERNEL_BYTES);
	close(fd);
}

/* ---- answers that are long ---- */

TEST(a_long_answer_is_sent_in_parts_between_which_others_are_served)
{
	int fd = connected(), other = connected();
	bool ended;

	says(fd, SLICE("REPLY 50000\r\n"));
	says(other, SLICE("NOW b\r\n"));
	looked_at = fd;
	turn();
	assert_int_equal(there_by_then, CONN_PART_BYTES);
	assert_int_equal(heard(fd, &ended).len, 50000);
	assert_heard(other, "b", false);
	close(fd);
	close(other);
}

TEST(a_request_for_much_waits_until_its_user_has_room)
{
	const struct pool *pool = &server_accounts(server)->pools[SOCKET_OUTPUT];
	int fd = connected(), next = connected(), other = connected();
	struct account *mine = TAILQ_FIRST(&server_accounts(server)->list);
	struct charge rest = { 0 };
	bool ended;

	says(fd, SLICE("LOCKS\r\n"));
	turn();
	assert_int_equal(asked, 1);
	assert_int_equal(mine->used[SOCKET_OUTPUT], OUTPUT_BYTES);
	charge_force(&rest, mine, SOCKET_OUTPUT, pool->total - pool->reserve - 2 * OUTPUT_BYTES + 1);
	says(next, SLICE("LOCKS\r\nNOW x\r\n"));
	says(other, SLICE("NOW y\r\nLOCKS\r\n"));
	turn();
	assert_heard(other, "y", false);
	assert_int_equal(asked, 2);
	shutdown(next, SHUT_WR);
	turn();
	server_reply(server, NUMBER, many(OUTPUT_BYTES), false);
	turn();
	assert_int_equal(heard(fd, &ended).len, OUTPUT_BYTES);
	assert_int_equal(asked, 3);
	close(other);
	server_reply(server, NUMBER + 1, SLICE("z"), false);
	turn();
	assert_heard(next, "zx", true);
	assert_int_equal(mine->used[SOCKET_OUTPUT], rest.amount);
	charge_give_back(&rest, SOCKET_OUTPUT);
	close(fd);
	close(next);
}

/* ---- ends ---- */

TEST(a_peer_that_sends_no_more_gets_its_replies)
{
	int fd = connected();

	says(fd, SLICE("NOW a\r\nWAIT\r\nNOW c\r\nNOW"));
	shutdown(fd, SHUT_WR);
	turn();
	turn();
	assert_string_equal(told, "connected half ");
	assert_heard(fd, "a", false);
	server_reply(server, NUMBER, SLICE("b"), false);
	turn();
	turn();
	assert_heard(fd, "bc", true);
	assert_string_equal(told, "connected half gone ");
	close(fd);
}

/* While its request waits, nothing of it is read: its end would be reported for as long as it lasts. */
TEST(the_end_of_what_a_peer_sends_is_reported_once)
{
	int fd = connected(), before;

	says(fd, SLICE("WAIT\r\nNOW b\r\n"));
	turn();
	shutdown(fd, SHUT_WR);
	turn();
	assert_string_equal(told, "connected half ");
	before = halves;
	for (int turns = 0; turns < 10; turns++)
		turn();
	assert_int_equal(halves, before);
	/* That it goes then is reported, too. */
	close(fd);
	turn();
	turn();
	assert_string_equal(told, "connected half gone ");
}

TEST(a_peer_that_is_gone_gets_nothing)
{
	int fd = connected();

	says(fd, SLICE("WAIT\r\n"));
	turn();
	close(fd);
	turn();
	assert_string_equal(told, "connected gone ");
}

/* For a hand-over, which takes no connection along that has ended. */
TEST(at_rest_there_is_none_whose_peer_is_gone)
{
	int fd = connected();

	says(fd, SLICE("WAIT\r\n"));
	turn();
	close(fd);
	server_reply(server, NUMBER, SLICE("a"), false);
	server_come_to_rest(server);
	assert_true(server_is_clean(server));
	assert_int_equal(server_count(server), 0);
	assert_string_equal(told, "connected gone ");
}

TEST(what_is_queued_is_written_before_the_end)
{
	int fd = connected();

	says(fd, SLICE("WAIT\r\n"));
	turn();
	server_reply(server, NUMBER, SLICE("a"), true);
	server_close(server, NUMBER);
	server_reply(server, NUMBER, SLICE("b"), false);
	turn();
	assert_heard(fd, "a", true);
	assert_string_equal(told, "connected gone ");
	close(fd);
}

/* ---- output that may wait ---- */

TEST(a_lazy_reply_waits_for_the_next_output)
{
	int fd = connected();

	says(fd, SLICE("WAIT\r\n"));
	turn();
	server_reply(server, NUMBER, SLICE("a"), true);
	turn();
	assert_heard(fd, "", false);
	says(fd, SLICE("NOW b\r\n"));
	turn();
	assert_heard(fd, "ab", false);
	close(fd);
}

TEST(only_so_much_waits_for_the_next_output)
{
	bool ended;
	int fd = connected();

	for (int bytes = CONN_LAZY_MAX; bytes <= CONN_LAZY_MAX + 1; bytes++) {
		says(fd, SLICE("WAIT\r\n"));
		turn();
		server_reply(server, NUMBER, many(bytes), true);
		turn();
		assert_int_equal(heard(fd, &ended).len, bytes > CONN_LAZY_MAX ? bytes : 0);
		says(fd, SLICE("NOW b\r\n"));
		turn();
		assert_int_equal(heard(fd, &ended).len, bytes > CONN_LAZY_MAX ? 1 : bytes + 1);
	}
	close(fd);
}
