/* SPDX-License-Identifier: Apache-2.0 */
/* What INFO says of the session and of ZooKeeper; what one session may put into one packet. */
#include "core_test.h"

#include <stdio.h>
#include <string.h>

SETUP(setup, false, 5)

static int setup_never_connected(void **state)
{
	*state = fixture_new(false);
	fixture_start(*state);
	fixture_connect(*state, 4);
	return 0;
}

/* INFO has that line. */
static void expect_info(struct fixture *f, const char *key, const char *value)
{
	char line[160];

	snprintf(line, sizeof(line), "\n%s:%s\r\n", key, value);
	fixture_say_part(f, 4, "INFO", line);
}

static void trouble(struct fixture *f, bool refused, const char *sentence)
{
	fixture_event(f, &(struct event){ .type = EVENT_ZK_TROUBLE,
					  .zk_trouble = { .refused = refused, .sentence = slice_of(sentence) } });
}

static void packet(struct fixture *f, int64_t bytes)
{
	fixture_event(f, &(struct event){ .type = EVENT_ZK_PACKET, .zk_packet = { bytes, SLICE("server:1") } });
}

TEST_IN(a_session_that_never_was_says_for_how_long, setup_never_connected)
{
	fixture_pass(f, 3000);
	expect_info(f, "session_why", "never connected; trying for 3000 ms");
	expect_info(f, "zookeeper_state", "connecting");
	expect_info(f, "disconnected_ms", "3000");
	expect_info(f, "asked_timeout_ms", "12000");
	expect_info(f, "trouble", "");
}

TEST_IN(a_trouble_lasts_until_a_write_is_answered, setup_never_connected)
{
	trouble(f, false, "a:1 cannot be reached");
	fixture_pass(f, 700);
	expect_info(f, "trouble", "a:1 cannot be reached");
	expect_info(f, "trouble_age_ms", "700");
	expect_info(f, "zookeeper_state", "connecting");
	trouble(f, true, "a:1 is read-only");
	expect_info(f, "trouble", "a:1 is read-only");
	expect_info(f, "trouble_age_ms", "0");
	expect_info(f, "zookeeper_state", "refused");
	fixture_zk_connected(f, SESSION);
	expect_info(f, "trouble", "a:1 is read-only");
	expect_info(f, "session_why", "connected; no write was answered yet");
	fixture_answer_session(f);
	expect_info(f, "trouble", "");
	expect_info(f, "zookeeper_state", "connected");
}

TEST(each_state_of_the_session_says_why)
{
	fixture_pass(f, 300);
	expect_info(f, "session_why", "last proof 300 ms ago");
	fixture_simple(f, EVENT_ZK_SUSPENDED, 0);
	fixture_pass(f, 4700);
	expect_info(f, "session_state", "jeopardy");
	expect_info(f, "session_why", "last proof 5000 ms ago; not connected; lost in 3000 ms unless a write is answered");
	expect_info(f, "disconnected_ms", "4700");
	fixture_pass(f, 4000);
	expect_info(f, "session_why", "last proof 9000 ms ago; every grant made before is void; no connection");
	fixture_pass(f, 10000);
	expect_info(f, "session_why",
		    "last proof 19000 ms ago; every grant made before is void; a new session is asked for");
	fixture_zk_connected(f, SESSION + 1);
	expect_info(f, "session_why", "connected; no write was answered yet");
}

TEST(a_refused_heartbeat_is_a_trouble_until_one_is_taken)
{
	fixture_pass(f, 1500);
	fixture_serve(f, EFFECT_ZK_SET, "/lb/.hosts/alpha", ZK_REFUSED);
	expect_info(f, "trouble", "ZooKeeper refuses to announce this host: ");
	fixture_pass(f, 1500);
	fixture_serve(f, EFFECT_ZK_SET, "/lb/.hosts/alpha", ZK_OK);
	expect_info(f, "trouble", "");
}

/* This host itself tries to make a znode, and deletes it. */
static void answer_tries(struct fixture *f, enum zk_code code)
{
	assert_int_equal(fixture_op(f, EFFECT_ZK_CREATE, "/lb/.try_alpha")->effect.create, ZK_EPHEMERAL);
	fixture_answer(f, code);
	fixture_serve(f, EFFECT_ZK_DELETE, "/lb/.try_alpha", code == ZK_OK ? ZK_OK : ZK_NONODE);
}

TEST(a_refused_join_outlives_the_heartbeats)
{
	fixture_ask(f, 0, "LOCK a");
	fixture_answer_get(f, 1, 0, LOCK_DATA);
	fixture_serve(f, EFFECT_ZK_CREATE, "-__WRIT__", ZK_REFUSED);
	fixture_answer_list(f, 1, 0, NULL);
	fixture_expect(f, 0, "-UNAVAILABLE ZooKeeper refuses to create the znode: a");
	expect_info(f, "trouble", "ZooKeeper refuses to create a znode in /lb/a: ");
	fixture_pass(f, 1500);
	fixture_serve(f, EFFECT_ZK_SET, "/lb/.hosts/alpha", ZK_OK);
	expect_info(f, "trouble", "ZooKeeper refuses to create a znode in /lb/a: ");
	answer_tries(f, ZK_OK);
	fixture_lock_held(f, 0, "b", 5, 77, f->znode, sizeof(f->znode));
	expect_info(f, "trouble", "");
}

/* ---- whether a lock can be had ---- */

static void refuse_join(struct fixture *f, enum zk_cause cause)
{
	struct event refused = { .type = EVENT_ZK_ANSWERED,
				 .zk_answered = { .code = ZK_REFUSED, .cause = cause, .data = SLICE("because") } };

	fixture_ask(f, 0, "LOCK a");
	while (fixture_oldest(f)->effect.type == EFFECT_ZK_GET)
		fixture_answer_get(f, 1, 0, LOCK_DATA);
	refused.zk_answered.op = fixture_op(f, EFFECT_ZK_CREATE, "-__WRIT__")->effect.op;
	f->first_op++;
	fixture_event(f, &refused);
	fixture_answer_list(f, 1, 0, NULL);
	fixture_expect(f, 0, "-UNAVAILABLE ZooKeeper refuses to create the znode: a");
}

static void pass_answered(struct fixture *f, int64_t ms)
{
	for (int64_t passed = 0; passed < ms; passed += 100) {
		fixture_pass(f, 100);
		fixture_answer_beats(f);
	}
}

#define WHY_REFUSED "ZooKeeper refuses to create a znode in /lb/a: because"

TEST(a_try_whose_end_was_refused_ends_with_the_next_one)
{
	refuse_join(f, ZK_CAUSE_acl);
	fixture_pass(f, 1500);
	fixture_answer_beats(f);
	fixture_serve(f, EFFECT_ZK_CREATE, "/lb/.try_alpha", ZK_OK);
	fixture_serve(f, EFFECT_ZK_DELETE, "/lb/.try_alpha", ZK_REFUSED);
	while (!fixture_is_open(f)) {
		fixture_pass(f, 100);
		fixture_answer_beats(f);
	}
	fixture_serve(f, EFFECT_ZK_CREATE, "/lb/.try_alpha", ZK_NODEEXISTS);
	fixture_serve(f, EFFECT_ZK_DELETE, "/lb/.try_alpha", ZK_OK);
	pass_answered(f, 20000);
	fixture_no_op(f);
}

TEST(what_is_refused_for_one_name_is_of_that_name)
{
	refuse_join(f, ZK_CAUSE_acl);
	expect_info(f, "refused_acl_total", "1");
	expect_info(f, "names_refused", "1");
	fixture_pass(f, 1500);
	fixture_answer_beats(f);
	answer_tries(f, ZK_OK);
	expect_info(f, "locks_barred", "0");
	expect_info(f, "refusal", WHY_REFUSED);
	fixture_ask(f, 0, "WHY a");
	fixture_answer_list(f, 1, 0, NULL);
	fixture_expect_part(f, 0, WHY_REFUSED);
	fixture_ask(f, 0, "WHY c");
	fixture_answer_list(f, 1, 0, NULL);
	assert_false(fixture_has(f, 0, "refuses"));
	bytes_clear(&f->replies[0]);
	pass_answered(f, 1000);
	fixture_lock_held(f, 0, "a", 5, 77, f->znode, sizeof(f->znode));
	expect_info(f, "names_refused", "0");
	expect_info(f, "refusal", "");
}

TEST(a_refusal_is_shown_for_five_minutes)
{
	refuse_join(f, ZK_CAUSE_acl);
	fixture_pass(f, 1500);
	fixture_answer_beats(f);
	answer_tries(f, ZK_OK);
	pass_answered(f, 298000);
	expect_info(f, "names_refused", "1");
	pass_answered(f, 2000);
	expect_info(f, "names_refused", "0");
}

#define WHY_BARRED "ZooKeeper refuses to make a znode for whatever lock: "

/* At most once in T, which is 12 s here. */
TEST(no_lock_can_be_had_while_the_try_is_refused)
{
	refuse_join(f, ZK_CAUSE_quota);
	expect_info(f, "refused_quota_total", "1");
	fixture_pass(f, 1500);
	fixture_answer_beats(f);
	answer_tries(f, ZK_REFUSED);
	for (int n = 0; n < 3; n++) {
		expect_info(f, "locks_barred", "1");
		expect_info(f, "refusal", WHY_BARRED);
		pass_answered(f, 10400);
		fixture_no_op(f);
		fixture_ask(f, 0, "WHY c");
		fixture_answer_list(f, 1, 0, NULL);
		assert_false(fixture_has(f, 0, "nobody"));
		fixture_expect_part(f, 0, WHY_BARRED);
		while (!fixture_is_open(f))
			pass_answered(f, 100);
		answer_tries(f, n == 0 ? ZK_BUSY : n == 1 ? ZK_REFUSED : ZK_OK); /* busy: nothing is known */
	}
	expect_info(f, "locks_barred", "0");
	pass_answered(f, 30000);
	fixture_no_op(f);
}

TEST(a_host_that_is_not_announced_says_for_how_long)
{
	pass_answered(f, 20000);
	expect_info(f, "unannounced_ms", "500");
	for (int n = 0; n < 10; n++) {
		fixture_pass(f, 1500);
		while (fixture_is_open(f))
			fixture_answer(f, strstr(fixture_oldest(f)->path, ".hosts") ? ZK_REFUSED : ZK_OK);
	}
	expect_info(f, "unannounced_ms", "15500");
	expect_info(f, "locks_barred", "0");
	fixture_pass(f, 1500);
	fixture_answer_beats(f);
	expect_info(f, "unannounced_ms", "0");
}

TEST(small_packets_lower_the_limit_and_large_ones_give_it_back)
{
	expect_info(f, "limit_session_path_bytes", "10000");
	packet(f, 5000);
	expect_info(f, "limit_session_path_bytes", "4500");
	expect_info(f, "configured_session_path_bytes", "10000");
	expect_info(f, "packet_bytes", "5000");
	packet(f, 20000);
	expect_info(f, "limit_session_path_bytes", "10000");
	packet(f, 0);
	expect_info(f, "limit_session_path_bytes", "10000");
	expect_info(f, "packet_bytes", "0");
}

TEST(the_lowered_limit_refuses_and_takes_nothing_away)
{
	fixture_operators(f, false);
	fixture_held(f, f->znode);
	f->conf.limits.session_path_bytes = 1000;
	packet(f, 720); /* 648 bytes of paths, 12 of them reserved */
	for (uint32_t i = 1; i < 9; i++) {
		char lock[2] = { (char)('a' + i), 0 };

		fixture_lock_held(f, i / 3, lock, 5, 77, f->znode, sizeof(f->znode));
		fixture_expect(f, i / 3, ":78848");
	}
	packet(f, 600); /* 540, and 621 are used */
	fixture_say(
		f, 3, "LOCK j",
		"-LIMIT user 1000 uses 621 of 530 allowed bytes of znode paths in this host's session (limits.session_path_bytes, "
		"limits.user_share): release some locks before you ask for more: j");
	fixture_say(f, 0, "UNLOCK a", ":0");
}

/* What a request for that name is answered; valid until the next call. */
static const char *too_long(const char *name)
{
	static char reply[300];

	snprintf(reply, sizeof(reply), "-LIMIT that name is too long for the packets this ZooKeeper server takes: %s", name);
	return reply;
}

TEST(a_request_that_is_too_large_is_never_sent)
{
	char words[180] = "LOCK ";

	packet(f, 700);
	memset(words + 5, 'x', 150);
	fixture_say(f, 0, words, too_long(words + 5));
	fixture_no_op(f);
	fixture_held(f, f->znode);
	packet(f, 0);
	fixture_ask(f, 1, words);
	fixture_op(f, EFFECT_ZK_GET, "xxx");
}

TEST(a_lock_under_way_that_is_too_large_is_given_up)
{
	char words[180] = "LOCK ";

	memset(words + 5, 'x', 150);
	fixture_ask(f, 0, words);
	fixture_simple(f, EVENT_ZK_SUSPENDED, 0);
	packet(f, 700);
	fixture_expect(f, 0, too_long(words + 5));
	expect_info(f, "claims", "0");
	fixture_zk_connected(f, SESSION);
	fixture_answer_session(f);
	fixture_no_op(f);
}

TEST(watches_are_counted_while_claims_rest_on_them)
{
	static const char foreign[] = "_c_00000000-0000-4000-8000-000000000000-__WRIT__0000000001";
	char watched[24];

	fixture_held(f, f->znode);
	expect_info(f, "watch_path_bytes", "0");
	fixture_pass(f, 1100); /* the children of /lb/a */
	expect_info(f, "watch_path_bytes", "9");
	fixture_answer_list(f, 1, 2, (const char *[]){ f->znode, foreign });
	snprintf(watched, sizeof(watched), "%zu", 9 + strlen("/lb/a/") + strlen(f->znode) + 4);
	expect_info(f, "watch_path_bytes", watched);
	fixture_simple(f, EVENT_ZK_SUSPENDED, 0);
	expect_info(f, "watch_path_bytes", "0");
}

TEST(a_claim_that_could_not_watch_is_refused)
{
	fixture_operators(f, false);
	f->conf.limits.session_path_bytes = fixture_total(5 + 64 + 4 + 5 + 4 - 1);
	fixture_say(f, 0, "LOCK a",
		    "-LIMIT user 1000 uses 0 of 81 allowed bytes of watched znode paths (limits.session_path_bytes, "
		    "limits.user_share): release some locks before you ask for more: a");
	f->conf.limits.session_path_bytes = fixture_total(5 + 64 + 4 + 5 + 4);
	fixture_ask(f, 0, "LOCK a");
	fixture_op(f, EFFECT_ZK_GET, "/lb/a");
}
