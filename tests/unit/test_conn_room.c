/* SPDX-License-Identifier: Apache-2.0 */
/* What a connection may use: the limits of requests and output, its turn among others, and the room of its account. */
#include <linux/sockios.h>

#include "io/socket/conn.h"
#include "io/socket/socket_pools.h"
#include "conn_fixture.h"
#include "handed_over.h"

/* ---- limits ---- */

/* A request of two words that has so many bytes. */
static void says_request_of(int bytes)
{
	char text[REQUEST_BYTES + 32];
	int header = snprintf(text, sizeof(text), "*2\r\n$3\r\nNOW\r\n$%d\r\n", bytes - 13 - 5 - 2);

	memset(text + header, 'x', sizeof(text) - (size_t)header);
	memcpy(text + bytes - 2, "\r\n", 2);
	says(client, (struct slice){ text, (size_t)bytes });
	turn();
}

TEST(a_request_as_long_as_the_limit_is_served_and_a_longer_one_ends_the_connection)
{
	bool ended;

	says_request_of(REQUEST_BYTES);
	assert_int_equal(asked, 1);
	assert_int_equal(heard(client, &ended).len, REQUEST_BYTES - 20);
	assert_false(ended);
	says_request_of(REQUEST_BYTES + 1);
	assert_int_equal(asked, 1);
	assert_heard(client, "-ERR Protocol error: invalid bulk length\r\n", true);
	assert_string_equal(told, "connected gone ");
}

TEST(half_of_the_output_limit_holds_the_next_request_back)
{
	char text[64];

	for (int unread = OUTPUT_BYTES / 2 - 1; unread <= OUTPUT_BYTES / 2; unread++) {
		int before = asked;

		snprintf(text, sizeof(text), "REPLY %d\r\nNOW a\r\n", unread);
		says(client, slice_of(text));
		watch_base_turn(base, false);
		server_continue(server);
		assert_int_equal(asked - before, 2);
	}
}

TEST(pushes_up_to_the_output_limit_are_written_and_more_end_the_connection)
{
	bool ended;

	asks("PUSH 50000\r\n");
	assert_int_equal(heard(client, &ended).len, OUTPUT_BYTES + strlen("50000"));
	assert_false(ended);
	assert_string_equal(told, "connected written ");
	asks("PUSH 50001\r\n");
	assert_heard(client, "", true);
	assert_string_equal(told, "connected written gone ");
}

TEST_WITH(a_client_too_many_is_told_so, begin_alone, end)
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

/* The next process has one connection, which is that user's. */
static void another_server(uint32_t uid)
{
	static const uint32_t uids[] = { 1000 };
	const struct server_conf conf = { .user_share = 100,
					  .clients = CLIENTS,
					  .request_bytes = REQUEST_BYTES,
					  .request_args = REQUEST_ARGS,
					  .by_unit = uids,
					  .by_unit_count = 1 };

	origin = (struct client_origin){ .uid = uid, .unit = SLICE("web.service") };
	hand_over(&conf, 1);
}

/* The core and the sockets have accounts of their own: of one connection it is the same one. */
TEST(a_connection_of_a_process_before_is_of_the_account_that_the_core_has)
{
	const struct account *account;

	another_server(1000);
	account = TAILQ_FIRST(&server_accounts(server)->list);
	assert_int_equal(account->uid, 1000);
	assert_string_equal(account->unit, "web.service");
	assert_int_equal(account->used[SOCKET_CONNECTIONS], 1);
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
		int fds[CLIENTS - 1];

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
	int fd, all;
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
}

TEST(a_long_answer_is_sent_in_smaller_parts_where_there_are_others)
{
	bool ended;
	int fd;

	another_server(getuid() + 1);
	fd = connected();
	says(fd, SLICE("REPLY 50000\r\n"));
	says(client, SLICE("NOW b\r\n"));
	looked_at = fd;
	turn();
	assert_int_equal(there_by_then, CONN_TURN_PART_BYTES);
	assert_int_equal(heard(fd, &ended).len, 50000);
	assert_heard(client, "b", false);
	close(fd);
}

TEST(a_crowd_at_the_door_keeps_nobody_waiting)
{
	int fds[CLIENTS + 1];

	for (int i = 0; i <= CLIENTS; i++)
		fds[i] = at_the_door();
	step_ns = PARTY_TURN_NS;
	asks("NOW b\r\n");
	assert_heard(client, "b", false);
	assert_in_range(told_by_then, 0, 2 * strlen("connected "));
	assert_string_equal(told, "connected connected connected connected ");
	for (int i = 0; i <= CLIENTS; i++)
		close(fds[i]);
}

TEST(others_leave_room_for_one_long_request_and_one_long_answer)
{
	struct account *other = account_enter((struct accounts *)server_accounts(server), 1, "", 0);
	struct charge all[2] = { { 0 }, { 0 } };
	char text[REQUEST_BYTES];
	bool ended;

	charge_force(&all[0], other, SOCKET_INPUT, 2 * CONN_UNPARSED_MAX);
	charge_force(&all[1], other, SOCKET_OUTPUT, 2 * CONN_UNWRITTEN_MAX);
	snprintf(text, sizeof(text), "PUSH %d\r\nLOCKS\r\nLOCKS\r\n", OUTPUT_BYTES);
	asks(text);
	assert_int_equal(heard(client, &ended).len, OUTPUT_BYTES + strlen("50000"));
	assert_int_equal(asked, 2);
	for (int i = 0; i < 2; i++) {
		server_reply(server, NUMBER, many(OUTPUT_BYTES), false);
		turn();
		assert_int_equal(heard(client, &ended).len, OUTPUT_BYTES);
	}
	assert_int_equal(asked, 3);
	assert_false(ended);
	charge_give_back(&all[0], SOCKET_INPUT);
	charge_give_back(&all[1], SOCKET_OUTPUT);
	account_leave(other);
}

/* Of so many words, but for the last one. */
static void begins_request_of(int words)
{
	char text[8192];
	int len = snprintf(text, sizeof(text), "*%d\r\n$4\r\nWAIT\r\n", words);

	for (int i = 2; i < words; i++, len += 6)
		memcpy(text + len, "$0\r\n\r\n", 7);
	says(client, (struct slice){ text, (size_t)len });
	turn();
}

/* The client came when requests could be long. */
static int begin_long_requests(void **state)
{
	struct server_conf conf = {
		.user_share = 100, .clients = CLIENTS, .request_bytes = 65536, .request_args = 1024, .output_bytes = OUTPUT_BYTES,
	};

	begin_alone(state);
	server_limits(server, &conf);
	client = connected();
	return 0;
}

TEST_WITH(what_is_found_in_an_unfinished_request_is_charged, begin_long_requests, end)
{
	const size_t word = sizeof(struct slice) + sizeof(size_t);
	struct account *mine = TAILQ_FIRST(&server_accounts(server)->list);

	begins_request_of(200);
	assert_int_equal(mine->used[SOCKET_INPUT], 0);
	asks("$0\r\n\r\n");
	assert_int_equal(asked, 1);
	server_reply(server, NUMBER, SLICE("a"), false);
	begins_request_of(1024);
	assert_int_equal(mine->used[SOCKET_INPUT], 17 + 6 * 1022 + 1024 * word - CONN_UNPARSED_SMALL);
	asks("$0\r\n\r\n");
	assert_int_equal(asked, 2);
	assert_int_equal(mine->used[SOCKET_INPUT], 0);
}

TEST_WITH(past_its_share_a_user_may_begin_a_request_of_few_words_and_none_of_many, begin_long_requests, end)
{
	struct charge all = { 0 };
	struct slice got;
	bool ended;

	charge_force(&all, TAILQ_FIRST(&server_accounts(server)->list), SOCKET_INPUT, CONN_UNPARSED_MAX);
	begins_request_of(256); /* 16 + 6 * 254 bytes, and 256 words of 24: 7,684 */
	assert_heard(client, "", false);
	asks("$0\r\n\r\n");
	assert_int_equal(asked, 1);
	server_reply(server, NUMBER, SLICE("a"), false);
	turn();
	assert_heard(client, "a", false);
	begins_request_of(259); /* so many words have places for 512 */
	got = heard(client, &ended);
	assert_true(ended && got.len > 6 && memcmp(got.data, "-LIMIT", 6) == 0);
	assert_int_equal(asked, 1);
	charge_give_back(&all, SOCKET_INPUT);
}

TEST(the_kernel_keeps_little_of_what_is_not_read)
{
	int there;

	asks("REPLY 50000\r\nREPLY 50000\r\n");
	assert_int_equal(ioctl(client, FIONREAD, &there), 0);
	assert_in_range(there, CONN_PART_BYTES, 3 * CONN_KERNEL_BYTES);
}

TEST(a_request_for_much_waits_until_its_user_has_room)
{
	const struct pool *pool = &server_accounts(server)->pools[SOCKET_OUTPUT];
	int next = connected(), other = connected();
	struct account *mine = TAILQ_FIRST(&server_accounts(server)->list);
	struct charge rest = { 0 };
	bool ended;

	asks("LOCKS\r\n");
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
	assert_int_equal(heard(client, &ended).len, OUTPUT_BYTES);
	assert_int_equal(asked, 3);
	close(other);
	server_reply(server, NUMBER + 1, SLICE("z"), false);
	turn();
	assert_heard(next, "zx", true);
	assert_int_equal(mine->used[SOCKET_OUTPUT], rest.amount);
	charge_give_back(&rest, SOCKET_OUTPUT);
	close(next);
}
