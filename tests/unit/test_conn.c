/* SPDX-License-Identifier: Apache-2.0 */
/* Connections: requests however their bytes come, order, answers, and ends. */
#include "io/socket/conn.h"
#include "conn_fixture.h"

/* ---- requests ---- */

TEST(a_request_may_be_cut_anywhere)
{
	const struct slice text =
		SLICE("*2\r\n$3\r\nNOW\r\n$1\r\na\r\nNOW 'b c'\r\n*2\r\n$3\r\nNOW\r\n$12\r\nabcdefghijkl\r\n");

	for (size_t first = 1; first < text.len; first++) {
		for (size_t at = 0; at < text.len; at += first) {
			says(client, (struct slice){ text.data + at, text.len - at < first ? text.len - at : first });
			turn();
			turn();
		}
		assert_heard(client, "ab cabcdefghijkl", false);
	}
}

TEST(the_next_request_is_asked_when_the_one_before_has_its_reply)
{
	asks("NOW a\r\nWAIT\r\nNOW c\r\nNOW d\r\n");
	turn();
	assert_int_equal(asked, 2);
	assert_heard(client, "a", false);
	server_reply(server, NUMBER, SLICE("b"), false);
	turn();
	assert_int_equal(asked, 4);
	assert_heard(client, "bcd", false);
}

TEST(a_turn_has_a_share_for_each_client)
{
	int other = connected();

	for (int i = 0; i <= CONN_REQUESTS_PER_TURN; i++)
		says(client, SLICE("NOW a\r\n"));
	says(other, SLICE("NOW b\r\n"));
	turn();
	assert_int_equal(asked, CONN_REQUESTS_PER_TURN + 2);
	assert_int_equal(others_turn, CONN_REQUESTS_PER_TURN + 1);
	close(other);
}

/* ---- answers that are long ---- */

TEST(a_long_reply_is_taken_over_or_comes_behind_what_is_unwritten)
{
	bool ended;

	for (int behind = 0; behind < 2; behind++) {
		struct bytes text = { 0 };
		struct slice got;

		asks("WAIT\r\n");
		if (behind)
			server_push(server, NUMBER, SLICE("first"), false);
		bytes_text(&text, "not this:");
		bytes_slice(&text, many(OUTPUT_BYTES / 2));
		server_reply_whole(server, NUMBER, &text, strlen("not this:"));
		assert_null(text.data);
		turn();
		got = heard(client, &ended);
		assert_int_equal(got.len, OUTPUT_BYTES / 2 + (behind ? strlen("first") : 0));
		assert_memory_equal(got.data, behind ? "firstxxx" : "xxxxxxxx", 8);
		assert_false(ended);
	}
	asks("NOW a\r\n");
	assert_heard(client, "a", false);
}

TEST(a_long_reply_of_who_has_gone_is_freed)
{
	struct bytes text = { 0 };

	asks("WAIT\r\n");
	server_close(server, NUMBER);
	bytes_slice(&text, many(OUTPUT_BYTES / 2));
	server_reply_whole(server, NUMBER, &text, 0);
	assert_null(text.data);
	turn();
	assert_heard(client, "", true);
}

TEST(a_long_answer_is_sent_in_parts_between_which_others_are_served)
{
	int other = connected();
	bool ended;

	says(client, SLICE("REPLY 50000\r\n"));
	says(other, SLICE("NOW b\r\n"));
	looked_at = client;
	turn();
	assert_int_equal(there_by_then, CONN_PART_BYTES);
	assert_int_equal(heard(client, &ended).len, 50000);
	assert_heard(other, "b", false);
	close(other);
}

/* ---- ends ---- */

TEST(a_peer_that_sends_no_more_gets_its_replies)
{
	says(client, SLICE("NOW a\r\nWAIT\r\nNOW c\r\nNOW"));
	shutdown(client, SHUT_WR);
	turn();
	turn();
	assert_string_equal(told, "connected half ");
	assert_heard(client, "a", false);
	server_reply(server, NUMBER, SLICE("b"), false);
	turn();
	turn();
	assert_heard(client, "bc", true);
	assert_string_equal(told, "connected half gone ");
}

/* While its request waits, nothing of it is read: its end would be reported for as long as it lasts. */
TEST(the_end_of_what_a_peer_sends_is_reported_once)
{
	int before;

	asks("WAIT\r\nNOW b\r\n");
	shutdown(client, SHUT_WR);
	turn();
	assert_string_equal(told, "connected half ");
	before = halves;
	for (int turns = 0; turns < 10; turns++)
		turn();
	assert_int_equal(halves, before);
	/* That it goes then is reported, too. */
	leaves();
	turn();
	turn();
	assert_string_equal(told, "connected half gone ");
}

TEST(a_peer_that_is_gone_gets_nothing)
{
	asks("WAIT\r\n");
	leaves();
	turn();
	assert_string_equal(told, "connected gone ");
}

/* For a hand-over, which takes no connection along that has ended. */
TEST(at_rest_there_is_none_whose_peer_is_gone)
{
	asks("WAIT\r\n");
	leaves();
	server_reply(server, NUMBER, SLICE("a"), false);
	server_come_to_rest(server);
	assert_true(server_is_clean(server));
	assert_int_equal(server_count(server), 0);
	assert_string_equal(told, "connected gone ");
}

TEST(what_is_queued_is_written_before_the_end)
{
	asks("WAIT\r\n");
	server_reply(server, NUMBER, SLICE("a"), true);
	server_close(server, NUMBER);
	server_reply(server, NUMBER, SLICE("b"), false);
	turn();
	assert_heard(client, "a", true);
	assert_string_equal(told, "connected gone ");
}

TEST_WITH(who_came_and_went_without_a_word_is_no_client, begin_alone, end)
{
	for (int i = 0; i < 3; i++) {
		int fd = at_the_door();

		if (i == 1)
			says(fd, SLICE("NOW a\r\n"));
		close(fd);
	}
	turn();
	turn();
	assert_int_equal(asked, 0); /* what it wanted is of no use to it */
	assert_string_equal(told, "connected gone ");
}

/* ---- output that may wait ---- */

TEST(a_lazy_reply_waits_for_the_next_output)
{
	asks("WAIT\r\n");
	server_reply(server, NUMBER, SLICE("a"), true);
	turn();
	assert_heard(client, "", false);
	asks("NOW b\r\n");
	assert_heard(client, "ab", false);
}

TEST(only_so_much_waits_for_the_next_output)
{
	bool ended;

	for (int bytes = CONN_LAZY_MAX; bytes <= CONN_LAZY_MAX + 1; bytes++) {
		asks("WAIT\r\n");
		server_reply(server, NUMBER, many(bytes), true);
		turn();
		assert_int_equal(heard(client, &ended).len, bytes > CONN_LAZY_MAX ? bytes : 0);
		asks("NOW b\r\n");
		assert_int_equal(heard(client, &ended).len, bytes > CONN_LAZY_MAX ? 1 : bytes + 1);
	}
}
