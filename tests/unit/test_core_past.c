/* SPDX-License-Identifier: Apache-2.0 */
/* An older state of the ensemble is restored: its transactions begin again behind what this host has seen (past.h). */
#include "core_test.h"

/* So many transactions has each leader of the servers. */
#define LEADER (INT64_C(1) << 32)

#define ANOTHER (SESSION + 1)
#define REFUSED \
	"-UNAVAILABLE tokens would repeat, because an older state of ZooKeeper was restored; the daemon's log says what to do: a"

SETUP(setup, false, 3)

static void another_session(struct fixture *f)
{
	fixture_event(f, &(struct event){ .type = EVENT_ZK_EXPIRED });
	fixture_zk_connected(f, ANOTHER);
	fixture_answer_session(f);
	fixture_pass(f, 200);
}

/* Lock a, whose znode gets that number. */
static void ask(struct fixture *f, uint32_t seq, int64_t czxid)
{
	fixture_ask(f, 1, "LOCK a");
	while (fixture_oldest(f)->effect.type != EFFECT_ZK_CREATE)
		fixture_answer_get(f, 1, 0, LOCK_DATA);
	fixture_answer_made(f, seq, czxid, f->znode, sizeof(f->znode));
}

static void is_granted(struct fixture *f, const char *token)
{
	while (fixture_oldest(f)->effect.type != EFFECT_ZK_LIST)
		fixture_answer(f, ZK_OK);
	fixture_answer_list(f, 1, 1, (const char *[]){ f->znode });
	fixture_expect(f, 1, token);
}

/* The znode goes again. */
static void is_refused(struct fixture *f)
{
	fixture_expect(f, 1, REFUSED);
	while (fixture_oldest(f)->effect.type == EFFECT_ZK_LIST)
		fixture_answer_list(f, 1, 1, (const char *[]){ f->znode });
	fixture_serve(f, EFFECT_ZK_DELETE, f->znode, ZK_OK);
}

static void beat(struct fixture *f, int64_t zxid)
{
	fixture_pass(f, 1500);
	fixture_answer_beat(f, zxid);
}

/* Heartbeats with these numbers, one after the other. */
static void beats(struct fixture *f, int64_t before, int64_t after)
{
	beat(f, before);
	beat(f, after);
}

/* Lock a was held under token 78848, of a znode with number 77. */
static void held_before(struct fixture *f)
{
	fixture_held(f, f->znode);
	another_session(f);
	fixture_logged(f, "");
}

static void ask_again(struct fixture *f, uint32_t seq, int64_t czxid)
{
	is_refused(f);
	fixture_pass(f, 1001);
	while (fixture_is_open(f))
		fixture_answer(f, ZK_OK);
	ask(f, seq, czxid);
}

TEST(a_token_that_would_repeat_is_refused)
{
	held_before(f);
	ask(f, 1, 77);
	assert_true(fixture_logged(f, "ZooKeeper has gone back to transaction 0x000000000000004d: "));
	is_refused(f);
}

TEST(what_is_above_all_that_was_seen_is_granted)
{
	held_before(f);
	ask(f, 1, 78);
	is_granted(f, ":79872");
	assert_false(fixture_logged(f, "gone back"));
}

TEST(once_the_numbers_are_higher_again_it_goes_on)
{
	held_before(f);
	ask(f, 1, 40);
	ask_again(f, 2, LEADER);
	is_granted(f, ":4398046511104");
}

TEST(it_is_said_once_in_a_while)
{
	held_before(f);
	ask(f, 1, 40);
	assert_true(fixture_logged(f, "raise acceptedEpoch and currentEpoch of its servers to 1 or more"));
	ask_again(f, 2, 41);
	assert_false(fixture_logged(f, "gone back"));
}

/* The session was a part of what was restored. */
TEST(a_heartbeat_tells_it_too)
{
	beats(f, 5000, 4000);
	assert_true(fixture_logged(f, "gone back to transaction 0x0000000000000fa0: "));
	ask(f, 1, 4001);
	is_refused(f);
}

/* Another host may have been given more than this one has seen: 5000 of a single server. */
TEST(a_single_servers_numbers_have_to_be_far_above_what_was_seen)
{
	beats(f, 5000, 4000);
	ask(f, 1, 5001);
	ask_again(f, 2, 5000 + (1 << 17));
	ask_again(f, 3, 5001 + (1 << 17));
	is_granted(f, ":139338752");
}

/* 5th number of the third leader: a fourth may have led without us. */
TEST(the_next_leaders_numbers_do_not_suffice)
{
	beats(f, 3 * LEADER + 5, 3 * LEADER + 4);
	assert_true(fixture_logged(
		f, "above 0x00000004ffffffff; raise acceptedEpoch and currentEpoch of its servers to 5 or more"));
	ask(f, 1, 4 * LEADER + 7);
	ask_again(f, 2, 5 * LEADER + 1);
	is_granted(f, ":21990232556544");
}

/* Nor by a further heartbeat, or another session. */
TEST(no_more_is_demanded_until_the_numbers_are_above_it)
{
	beats(f, 3 * LEADER + 5, 3 * LEADER + 4);
	beat(f, 3 * LEADER + 5);
	another_session(f);
	ask(f, 1, 4 * LEADER + 7);
	ask_again(f, 2, 5 * LEADER + 1);
	is_granted(f, ":21990232556544");
}

/* It is the number of another host's transaction. */
TEST(what_a_read_shows_was_seen)
{
	beat(f, 4000);
	fixture_ask(f, 1, "LOCK a");
	fixture_answer_get(f, 4500, 0, LOCK_DATA);
	while (fixture_is_open(f))
		fixture_answer(f, ZK_REFUSED);
	beat(f, 4200);
	assert_true(fixture_logged(f, "gone back to transaction 0x0000000000001068: "));
}

/* ---- other hosts write first after the restore, and bring the numbers above what this host has seen ---- */

static void is_gone_back_from_5000_to_4000(struct fixture *f)
{
	fixture_zk_connected(f, ANOTHER + 1);
	fixture_answer_session(f);
	fixture_pass(f, 200);
	ask(f, 1, 6000);
	is_refused(f);
	assert_true(fixture_logged(f, "gone back to transaction 0x0000000000001770: "));
}

static void connected_again_with_a_heartbeat_undone(struct fixture *f)
{
	beat(f, 5000);
	fixture_simple(f, EVENT_ZK_SUSPENDED, 0);
	fixture_zk_connected(f, SESSION);
	assert_true(fixture_op(f, EFFECT_ZK_SET, "/lb/.hosts/alpha")->effect.exact);
	fixture_answer(f, ZK_BADVERSION);
}

TEST(the_hosts_own_znode_shows_it_on_a_new_connection)
{
	connected_again_with_a_heartbeat_undone(f);
	fixture_answer_duplicate(f, SESSION, 4000, "");
	is_gone_back_from_5000_to_4000(f);
}

/* As lockbrokerd(8) says: to the next epoch but one of the highest that anybody has seen. */
TEST(numbers_that_were_raised_before_the_servers_started_suffice)
{
	beat(f, 3 * LEADER + 5);
	fixture_simple(f, EVENT_ZK_SUSPENDED, 0);
	fixture_zk_connected(f, SESSION);
	fixture_ask(f, 1, "LOCK a");
	fixture_answer(f, ZK_BADVERSION);
	fixture_answer_get(f, 1, 0, LOCK_DATA);
	fixture_answer_made(f, 1, 6 * LEADER + 3, f->znode, sizeof(f->znode));
	fixture_answer_list(f, 6 * LEADER + 3, 1, (const char *[]){ f->znode });
	fixture_answer_duplicate(f, SESSION, 3 * LEADER + 4, "");
	fixture_zk_connected(f, ANOTHER);
	fixture_answer_session(f);
	fixture_pass(f, 200);
	while (fixture_oldest(f)->effect.type == EFFECT_ZK_GET)
		fixture_answer_get(f, 1, 0, LOCK_DATA);
	fixture_answer_made(f, 2, 6 * LEADER + 7, f->znode, sizeof(f->znode));
	is_granted(f, ":26388279073792");
	assert_false(fixture_logged(f, "gone back"));
}

/* Of a heartbeat no answer came. */
TEST(that_the_znode_is_newer_shows_nothing)
{
	connected_again_with_a_heartbeat_undone(f);
	fixture_answer_duplicate(f, SESSION, 5001, "");
	assert_false(fixture_logged(f, "gone back"));
	fixture_pass(f, 1500);
	assert_false(fixture_op(f, EFFECT_ZK_SET, "/lb/.hosts/alpha")->effect.exact);
	fixture_answer_beat(f, 5002);
	ask(f, 1, 6000);
	is_granted(f, ":6144000");
}

/* Up to the first heartbeat of the session after one that was given up. */
static void given_up(struct fixture *f)
{
	beat(f, 5000);
	fixture_simple(f, EVENT_ZK_SUSPENDED, 0);
	fixture_pass(f, 12000);
	assert_int_equal(f->opens, 2);
	fixture_zk_connected(f, ANOTHER);
	fixture_answer(f, ZK_NODEEXISTS);
	fixture_answer(f, ZK_NODEEXISTS);
	fixture_op(f, EFFECT_ZK_CREATE, "/lb/.hosts/alpha");
	assert_int_equal(f->ended_count, 0);
}

TEST(the_znode_that_the_former_session_left_shows_it_before_that_is_ended)
{
	given_up(f);
	fixture_answer(f, ZK_NODEEXISTS);
	assert_int_equal(f->ended_count, 0);
	fixture_answer_duplicate(f, SESSION, 4000, "");
	assert_int_equal(f->ended_count, 1);
	is_gone_back_from_5000_to_4000(f);
}

TEST(a_former_session_that_has_expired_shows_nothing_and_is_ended)
{
	given_up(f);
	fixture_answer(f, ZK_OK);
	assert_int_equal(f->ended_count, 1);
	fixture_pass(f, 200);
	ask(f, 1, 6000);
	is_granted(f, ":6144000");
}

/* The server is too busy for the heartbeat. */
TEST(nothing_is_granted_before_the_host_has_looked)
{
	given_up(f);
	fixture_answer(f, ZK_BUSY);
	fixture_pass(f, 200);
	ask(f, 1, 6000);
	while (fixture_oldest(f)->effect.type != EFFECT_ZK_LIST)
		fixture_answer(f, ZK_OK);
	fixture_answer_list(f, 1, 1, (const char *[]){ f->znode });
	fixture_expect(f, 1, "");
	assert_int_equal(f->ended_count, 0);
	fixture_pass(f, 1500);
	while (fixture_oldest(f)->effect.type == EFFECT_ZK_LIST)
		fixture_answer_list(f, 1, 1, (const char *[]){ f->znode });
	fixture_expect(f, 1, "");
	fixture_serve(f, EFFECT_ZK_CREATE, "/lb/.hosts/alpha", ZK_OK);
	fixture_expect(f, 1, ":6144000");
	assert_int_equal(f->ended_count, 1);
}

TEST(a_znode_that_is_found_late_is_as_old_as_it_was_made)
{
	fixture_ask_to_create(f, 1);
	fixture_simple(f, EVENT_ZK_SUSPENDED, 0);
	fixture_zk_connected(f, SESSION);
	fixture_answer_beat(f, 90);
	fixture_serve_list(f, "/lb/a", 1, (const char *[]){ f->znode });
	fixture_serve_get(f, f->znode, 77, SESSION, "");
	is_granted(f, ":78848");
}
