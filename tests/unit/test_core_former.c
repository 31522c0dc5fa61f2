/* SPDX-License-Identifier: Apache-2.0 */
/* What earlier daemons left and this one gave up, who has our name, and who holds something. T = 12 s, so T/8 = 1.5 s. */
#include "core_test.h"

#include "core/session/former.h"
#include "core/state.h"

#define LEFT INT64_C(0x10000000000000aa)
#define LEFT_TOO INT64_C(0x10000000000000bb)
#define STRANGER INT64_C(0x10000000000000cc)

static const char data[] = "1\nhost=alpha\npid=99\nboot_id=boot\nversion=9.9\n";

static struct broker_former formers[2];

static struct fixture *left(int64_t first_ms, int64_t second_ms)
{
	struct fixture *f = fixture_new(false);

	formers[0] = (struct broker_former){ LEFT, first_ms ? f->now_ns + first_ms * MS : 0 };
	formers[1] = (struct broker_former){ LEFT_TOO, second_ms ? f->now_ns + second_ms * MS : 0 };
	f->conf.formers = formers;
	f->conf.former_count = second_ms < 0 ? 1 : 2;
	return f;
}

/* It is not connected to ZooKeeper yet. */
static int begin(struct fixture *f, void **state)
{
	fixture_start(f);
	*state = f;
	return 0;
}

static int setup_free(void **state)
{
	return begin(left(0, 0), state);
}

static int setup_two(void **state)
{
	return begin(left(5000, 7000), state);
}

static int setup_one(void **state)
{
	return begin(left(5000, -1), state);
}

static int setup(void **state)
{
	return fixture_setup(fixture_new(false), 2, state);
}

static void former_event(struct fixture *f, enum event_type type, int64_t session, bool ended)
{
	fixture_event(f, &(struct event){ .type = type, .former = { session, ended } });
}

TEST_IN(what_no_holder_outlives_is_ended_at_once, setup_free)
{
	assert_int_equal(f->ended_count, 2);
	assert_int_equal(f->ended[0], LEFT);
	assert_int_equal(f->ended[1], LEFT_TOO);
	assert_int_equal(f->opens, 1); /* and it serves meanwhile */
	former_event(f, EVENT_FORMER_OVER, LEFT, true);
	former_event(f, EVENT_FORMER_OVER, LEFT, true);
	former_event(f, EVENT_FORMER_OVER, LEFT_TOO, false);
	fixture_pass(f, 60000);
	assert_int_equal(f->ended_count, 2);
}

TEST_IN(what_a_holder_outlives_is_ended_at_its_instant, setup_two)
{
	fixture_pass(f, 4999);
	assert_int_equal(f->ended_count, 0);
	fixture_pass(f, 1);
	assert_int_equal(f->ended_count, 1);
	assert_int_equal(f->ended[0], LEFT);
	fixture_pass(f, 1999);
	assert_int_equal(f->ended_count, 1);
	fixture_pass(f, 1);
	assert_int_equal(f->ended_count, 2);
	former_event(f, EVENT_FORMER_FREE, LEFT, false);
	assert_int_equal(f->ended_count, 2);
}

TEST_IN(when_no_holder_lives_any_more_the_wait_ends, setup_one)
{
	fixture_pass(f, 100);
	former_event(f, EVENT_FORMER_FREE, STRANGER, false);
	assert_int_equal(f->ended_count, 0);
	former_event(f, EVENT_FORMER_FREE, LEFT, false);
	assert_int_equal(f->ended_count, 1);
	fixture_pass(f, 60000);
	assert_int_equal(f->ended_count, 1);
}

/* ---- what this daemon gave up ---- */

/* Somebody else has the host's name. */
static void connected_without_name(struct fixture *f, int64_t session)
{
	fixture_zk_connected(f, session);
	fixture_answer(f, ZK_NODEEXISTS);
	fixture_answer(f, ZK_NODEEXISTS);
	fixture_serve(f, EFFECT_ZK_CREATE, "/.hosts/alpha", ZK_NODEEXISTS);
}

/* T without a connection: nobody has been told anything for long. */
TEST(a_session_that_is_given_up_is_left_and_ended)
{
	fixture_simple(f, EVENT_ZK_SUSPENDED, 0);
	fixture_pass(f, 11999);
	assert_int_equal(f->opens, 1);
	assert_int_equal(f->added, 0);
	fixture_pass(f, 1);
	assert_int_equal(f->opens, 2);
	assert_int_equal(f->added, SESSION);
	assert_int_equal(f->ended_count, 1);
	assert_int_equal(f->ended[0], SESSION);
	former_event(f, EVENT_FORMER_OVER, SESSION, true);
	assert_true(fixture_logged(f, "that this daemon gave up is over"));
}

TEST(what_is_given_up_early_is_ended_at_the_last_instant_that_was_told)
{
	fixture_simple(f, EVENT_ZK_EXPIRED, 0);
	assert_int_equal(f->opens, 2);
	assert_int_equal(f->added, SESSION);
	fixture_pass(f, 7999);
	assert_int_equal(f->ended_count, 0);
	fixture_pass(f, 1);
	assert_int_equal(f->ended_count, 1);
}

/* The daemon stood still, and its handle was connected again: time comes first, and discards that handle. */
TEST(what_is_given_up_as_it_comes_back_is_given_up_once)
{
	fixture_simple(f, EVENT_ZK_SUSPENDED, 0);
	f->now_ns += 20000 * MS;
	fixture_zk_connected(f, SESSION);
	assert_int_equal(f->opens, 2);
	assert_int_equal(f->added, SESSION);
	assert_int_equal(f->ended_count, 1);
	fixture_no_op(f);
	f->added = 0;
	fixture_pass(f, 60000);
	assert_int_equal(f->added, 0);
	assert_int_equal(f->opens, 2);
	fixture_zk_connected(f, SESSION + 1);
	fixture_answer_session(f);
	assert_true(broker_safe_until(f->broker) > f->now_ns);
}

TEST(what_this_daemon_gave_up_is_no_rival)
{
	fixture_simple(f, EVENT_ZK_EXPIRED, 0);
	connected_without_name(f, SESSION + 1);
	fixture_answer_duplicate(f, SESSION, 100, data);
	assert_false(fixture_logged(f, "second daemon"));
}

/* Nobody is ended twice, and nobody who is still to be ended is forgotten. */
TEST(of_many_that_are_given_up_those_that_are_over_make_room)
{
	for (int i = 1; i <= FORMERS_MAX; i++) {
		fixture_simple(f, EVENT_ZK_EXPIRED, 0);
		assert_int_equal(f->added, SESSION + i - 1);
		fixture_zk_connected(f, SESSION + i);
		fixture_answer_session(f);
	}
	fixture_simple(f, EVENT_ZK_EXPIRED, 0);
	assert_int_equal(f->added, SESSION + FORMERS_MAX - 1);
	assert_true(fixture_logged(f, "is left to its timeout: too many are still to be ended"));
	fixture_zk_connected(f, SESSION + 10);
	fixture_answer_session(f);
	former_event(f, EVENT_FORMER_OVER, SESSION + 1, true);
	fixture_simple(f, EVENT_ZK_EXPIRED, 0);
	assert_int_equal(f->added, SESSION + 10);
}

/* ---- rivals ---- */

/* Up to the first heartbeat's answer: the name is somebody else's. */
static int setup_nameless(void **state)
{
	struct fixture *f = left(0, -1);

	begin(f, state);
	connected_without_name(f, SESSION);
	fixture_connect(f, 0);
	return 0;
}

static int setup_announced(void **state)
{
	return fixture_setup(left(0, -1), 1, state);
}

static void beat_fails(struct fixture *f)
{
	fixture_pass(f, 1500);
	fixture_serve(f, EFFECT_ZK_CREATE, "/.hosts/alpha", ZK_NODEEXISTS);
}

TEST_IN(who_goes_on_writing_has_the_name_and_a_newcomer_ends, setup_nameless)
{
	fixture_answer_duplicate(f, STRANGER, 100, data);
	for (int i = 1; i <= 2; i++) { /* may have been under way when their writer died */
		beat_fails(f);
		fixture_answer_duplicate(f, STRANGER, 100 + i, data);
		assert_int_equal(f->stopped, 0);
	}
	beat_fails(f);
	fixture_answer_duplicate(f, STRANGER, 102, data);
	assert_int_equal(f->stopped, 0);
	beat_fails(f);
	fixture_answer_duplicate(f, STRANGER, 103, data);
	assert_int_equal(f->stopped, 2);
	assert_true(f->refused);
	assert_true(fixture_logged(
		f, "the name \"alpha\" is in use by another lockbrokerd (pid \"99\" on this host, boot "
		   "id \"boot\", version \"9.9\"): give each daemon its own zookeeper.host"));
}

static void answer_lists(struct fixture *f)
{
	while (fixture_oldest(f)->effect.type == EFFECT_ZK_LIST)
		fixture_answer_list(f, 1, 1, (const char *[]){ f->znode });
}

TEST_IN(a_newcomer_that_granted_something_ends_as_at_a_signal, setup_nameless)
{
	fixture_answer_duplicate(f, STRANGER, 100, data);
	fixture_lock_held(f, 0, "a", 1, 5, f->znode, sizeof(f->znode));
	fixture_pass(f, 400);
	fixture_resp3(f, 0);
	for (int i = 1; i <= 3; i++) {
		fixture_pass(f, 1500);
		answer_lists(f);
		fixture_serve(f, EFFECT_ZK_CREATE, "/.hosts/alpha", ZK_NODEEXISTS);
		answer_lists(f);
		fixture_answer_duplicate(f, STRANGER, 100 + i, data);
	}
	assert_int_equal(f->stopped, 0);
	assert_true(f->pushes[0].len > 0); /* asked to let go */
	fixture_pass(f, f->conf.stop_timeout_ns / MS);
	assert_int_equal(f->stopped, 1);
	assert_true(f->refused);
}

TEST_IN(who_is_not_seen_to_write_is_waited_for, setup_nameless)
{
	fixture_answer_duplicate(f, STRANGER, 100, data);
	for (int i = 0; i < 20; i++) {
		beat_fails(f);
		fixture_answer_duplicate(f, STRANGER, 100, data);
	}
	assert_int_equal(f->stopped, 0);
	fixture_pass(f, 1500);
	fixture_answer(f, ZK_OK);
	fixture_no_op(f);
}

TEST_IN(each_session_is_judged_by_itself, setup_nameless)
{
	fixture_answer_duplicate(f, STRANGER, 100, data);
	for (int i = 1; i < 20; i++) {
		beat_fails(f);
		fixture_answer_duplicate(f, STRANGER + i, 100 + i, data);
	}
	assert_int_equal(f->stopped, 0);
}

TEST_IN(what_an_earlier_daemon_left_is_no_rival, setup_nameless)
{
	fixture_answer_duplicate(f, LEFT, 100, data);
	for (int i = 1; i < 5; i++) {
		beat_fails(f);
		fixture_answer_duplicate(f, LEFT, 100 + i, data);
	}
	assert_int_equal(f->stopped, 0);
}

TEST_IN(who_was_announced_goes_on_whoever_has_its_name, setup_announced)
{
	fixture_simple(f, EVENT_ZK_EXPIRED, 0);
	connected_without_name(f, SESSION + 1);
	fixture_answer_duplicate(f, STRANGER, 100, data);
	for (int i = 1; i <= 4; i++) {
		beat_fails(f);
		fixture_answer_duplicate(f, STRANGER, 100 + i, data);
		assert_int_equal(fixture_logged(f, "was taken"), i == 3); /* said once */
	}
	assert_int_equal(f->stopped, 0);
	fixture_say_part(f, 0, "INFO session", "rival:pid \"99\" on this host, boot id \"boot\", version \"9.9\"\r");
	fixture_pass(f, 1500);
	fixture_answer(f, ZK_OK);
	fixture_say_part(f, 0, "INFO session", "announced:1\r\nrival:\r");
}

/* ---- holders ---- */

TEST(the_table_names_who_holds_something_valid)
{
	fixture_lock_held(f, 0, "a", 5, 77, f->znode, sizeof(f->znode));
	assert_true(f->holds[0]);
	fixture_lock_held(f, 0, "b", 5, 78, f->znode, sizeof(f->znode));
	fixture_ask(f, 0, "LOCK a");
	fixture_ask(f, 1, "LOCK a");
	assert_false(f->holds[1]);
	fixture_ask(f, 0, "UNLOCK a");
	fixture_ask(f, 0, "UNLOCK a");
	assert_true(f->holds[0] && f->holds[1]);
	fixture_ask(f, 0, "RESET");
	assert_false(f->holds[0]);
	fixture_ask(f, 0, "LOCK a");
	fixture_simple(f, EVENT_CLIENT_GONE, 1); /* nothing is said of a connection that is gone */
	fixture_connect(f, 1);
	fixture_ask(f, 1, "LOCK a");
	assert_true(f->holds[0] && !f->holds[1]);
	fixture_ask(f, 0, "UNLOCK a");
	assert_true(!f->holds[0] && f->holds[1]);
}

static int setup_standalone(void **state)
{
	return fixture_setup(fixture_new(true), 1, state);
}

/* Nobody reads it there: an adapter that is told anyway fails every test. */
ALONE(standalone_there_is_no_table)
{
	fixture_say(f, 0, "LOCK a", ":1024");
	assert_false(f->holds[0]);
}

TEST(a_loss_takes_its_holder_off_the_table)
{
	fixture_lock_held(f, 0, "a", 5, 77, f->znode, sizeof(f->znode));
	assert_true(f->holds[0]);
	fixture_simple(f, EVENT_ZK_SUSPENDED, 0);
	assert_true(f->holds[0]);
	fixture_pass(f, 8000);
	assert_false(f->holds[0]);
}

/* A restored ensemble may end two sessions before the host has looked at its own znode. */
TEST(a_session_that_nobody_was_told_of_is_waited_for_no_time)
{
	fixture_pass(f, 1500);
	fixture_answer_beat(f, 5000);
	fixture_simple(f, EVENT_ZK_EXPIRED, 0);
	fixture_zk_connected(f, LEFT);
	fixture_simple(f, EVENT_ZK_EXPIRED, 0);
	assert_int_equal(formers_open(&f->broker->ensemble), 2);
	fixture_pass(f, 12000);
	assert_int_equal(formers_wait_ns(&f->broker->ensemble), 0);
}
