/* SPDX-License-Identifier: Apache-2.0 */
/* What earlier daemons left and this one gave up, who has our name, and who holds something. T = 12 s, so T/8 = 1.5 s. */
#include "core_fixture.h"

#include "core/session/former.h"
#include "core/state.h"

#define LEFT INT64_C(0x10000000000000aa)
#define LEFT_TOO INT64_C(0x10000000000000bb)
#define STRANGER INT64_C(0x10000000000000cc)

static const char data[] = "1\nhost=alpha\npid=99\nboot_id=boot\nversion=9.9\n";

static struct broker_former formers[2];

static struct fixture *began(int64_t first_ms, int64_t second_ms)
{
	struct fixture *f = fixture_new(false);

	formers[0] = (struct broker_former){ LEFT, first_ms ? f->now_ns + first_ms * MS : 0 };
	formers[1] = (struct broker_former){ LEFT_TOO, second_ms ? f->now_ns + second_ms * MS : 0 };
	f->conf.formers = formers;
	f->conf.former_count = second_ms < 0 ? 1 : 2;
	fixture_start(f);
	return f;
}

static void former_event(struct fixture *f, enum event_type type, int64_t session, bool ended)
{
	fixture_event(f, &(struct event){ .type = type, .former = { session, ended } });
}

TEST_WITH(what_no_holder_outlives_is_ended_at_once, NULL, NULL)
{
	struct fixture *f = began(0, 0);

	(void)state;
	assert_int_equal(f->ended_count, 2);
	assert_int_equal(f->ended[0], LEFT);
	assert_int_equal(f->ended[1], LEFT_TOO);
	assert_int_equal(f->opens, 1); /* and it serves meanwhile */
	former_event(f, EVENT_FORMER_OVER, LEFT, true);
	former_event(f, EVENT_FORMER_OVER, LEFT, true);
	former_event(f, EVENT_FORMER_OVER, LEFT_TOO, false);
	fixture_pass(f, 60000);
	assert_int_equal(f->ended_count, 2);
	fixture_free(f);
}

TEST_WITH(what_a_holder_outlives_is_ended_at_its_instant, NULL, NULL)
{
	struct fixture *f = began(5000, 7000);

	(void)state;
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
	fixture_free(f);
}

TEST_WITH(when_no_holder_lives_any_more_the_wait_ends, NULL, NULL)
{
	struct fixture *f = began(5000, -1);

	(void)state;
	fixture_pass(f, 100);
	former_event(f, EVENT_FORMER_FREE, STRANGER, false);
	assert_int_equal(f->ended_count, 0);
	former_event(f, EVENT_FORMER_FREE, LEFT, false);
	assert_int_equal(f->ended_count, 1);
	fixture_pass(f, 60000);
	assert_int_equal(f->ended_count, 1);
	fixture_free(f);
}

/* ---- what this daemon gave up ---- */

static struct fixture *proven(void)
{
	struct fixture *f = fixture_new(false);

	fixture_start(f);
	fixture_zk_connected(f, SESSION);
	fixture_connect(f, 0);
	fixture_answer_session(f);
	return f;
}

/* T without a connection: nobody has been told anything for long. */
TEST_WITH(a_session_that_is_given_up_is_left_and_ended, NULL, NULL)
{
	struct fixture *f = proven();

	(void)state;
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
	fixture_free(f);
}

TEST_WITH(what_is_given_up_early_is_ended_at_the_last_instant_that_was_told, NULL, NULL)
{
	struct fixture *f = proven();

	(void)state;
	fixture_simple(f, EVENT_ZK_EXPIRED, 0);
	assert_int_equal(f->opens, 2);
	assert_int_equal(f->added, SESSION);
	fixture_pass(f, 7999);
	assert_int_equal(f->ended_count, 0);
	fixture_pass(f, 1);
	assert_int_equal(f->ended_count, 1);
	fixture_free(f);
}

/* The daemon stood still, and its handle was connected again: time comes first, and discards that handle. */
TEST_WITH(what_is_given_up_as_it_comes_back_is_given_up_once, NULL, NULL)
{
	struct fixture *f = proven();

	(void)state;
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
	fixture_free(f);
}

TEST_WITH(what_this_daemon_gave_up_is_no_rival, NULL, NULL)
{
	struct fixture *f = proven();

	(void)state;
	fixture_simple(f, EVENT_ZK_EXPIRED, 0);
	fixture_zk_connected(f, SESSION + 1);
	fixture_answer(f, ZK_NODEEXISTS);
	fixture_answer(f, ZK_NODEEXISTS);
	fixture_answer(f, ZK_NODEEXISTS);
	fixture_answer_duplicate(f, SESSION, 100, data);
	assert_false(fixture_logged(f, "second daemon"));
	fixture_free(f);
}

/* Nobody is ended twice, and nobody who is still to be ended is forgotten. */
TEST_WITH(of_many_that_are_given_up_those_that_are_over_make_room, NULL, NULL)
{
	struct fixture *f = proven();

	(void)state;
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
	fixture_free(f);
}

/* ---- rivals ---- */

/* Up to the first heartbeat's answer: the name is somebody else's. */
static struct fixture *nameless(void)
{
	struct fixture *f = began(0, -1);

	fixture_zk_connected(f, SESSION);
	fixture_connect(f, 0);
	fixture_answer(f, ZK_NODEEXISTS);
	fixture_answer(f, ZK_NODEEXISTS);
	fixture_op(f, EFFECT_ZK_CREATE, "/.hosts/alpha");
	fixture_answer(f, ZK_NODEEXISTS);
	return f;
}

static void beat_fails(struct fixture *f)
{
	fixture_pass(f, 1500);
	fixture_op(f, EFFECT_ZK_CREATE, "/.hosts/alpha");
	fixture_answer(f, ZK_NODEEXISTS);
}

TEST_WITH(who_goes_on_writing_has_the_name_and_a_newcomer_ends, NULL, NULL)
{
	struct fixture *f = nameless();

	(void)state;
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
	fixture_free(f);
}

static void answer_lists(struct fixture *f, const char *name)
{
	while (fixture_oldest(f)->effect.type == EFFECT_ZK_LIST)
		fixture_answer_list(f, 1, 1, &name);
}

TEST_WITH(a_newcomer_that_granted_something_ends_as_at_a_signal, NULL, NULL)
{
	struct fixture *f = nameless();
	char name[128];

	(void)state;
	fixture_answer_duplicate(f, STRANGER, 100, data);
	fixture_lock_held(f, 0, "a", 1, 5, name, sizeof(name));
	fixture_pass(f, 400);
	fixture_resp3(f, 0);
	for (int i = 1; i <= 3; i++) {
		fixture_pass(f, 1500);
		answer_lists(f, name);
		fixture_op(f, EFFECT_ZK_CREATE, "/.hosts/alpha");
		fixture_answer(f, ZK_NODEEXISTS);
		answer_lists(f, name);
		fixture_answer_duplicate(f, STRANGER, 100 + i, data);
	}
	assert_int_equal(f->stopped, 0);
	assert_true(f->pushes[0].len > 0); /* asked to let go */
	fixture_pass(f, f->conf.stop_timeout_ns / MS);
	assert_int_equal(f->stopped, 1);
	assert_true(f->refused);
	fixture_free(f);
}

TEST_WITH(who_is_not_seen_to_write_is_waited_for, NULL, NULL)
{
	struct fixture *f = nameless();

	(void)state;
	fixture_answer_duplicate(f, STRANGER, 100, data);
	for (int i = 0; i < 20; i++) {
		beat_fails(f);
		fixture_answer_duplicate(f, STRANGER, 100, data);
	}
	assert_int_equal(f->stopped, 0);
	fixture_pass(f, 1500);
	fixture_answer(f, ZK_OK);
	fixture_no_op(f);
	fixture_free(f);
}

TEST_WITH(each_session_is_judged_by_itself, NULL, NULL)
{
	struct fixture *f = nameless();

	(void)state;
	fixture_answer_duplicate(f, STRANGER, 100, data);
	for (int i = 1; i < 20; i++) {
		beat_fails(f);
		fixture_answer_duplicate(f, STRANGER + i, 100 + i, data);
	}
	assert_int_equal(f->stopped, 0);
	fixture_free(f);
}

TEST_WITH(what_an_earlier_daemon_left_is_no_rival, NULL, NULL)
{
	struct fixture *f = nameless();

	(void)state;
	fixture_answer_duplicate(f, LEFT, 100, data);
	for (int i = 1; i < 5; i++) {
		beat_fails(f);
		fixture_answer_duplicate(f, LEFT, 100 + i, data);
	}
	assert_int_equal(f->stopped, 0);
	fixture_free(f);
}

TEST_WITH(who_was_announced_goes_on_whoever_has_its_name, NULL, NULL)
{
	struct fixture *f = began(0, -1);

	(void)state;
	fixture_connect(f, 0);
	fixture_zk_connected(f, SESSION);
	fixture_answer_session(f);
	fixture_simple(f, EVENT_ZK_EXPIRED, 0);
	fixture_zk_connected(f, SESSION + 1);
	fixture_answer(f, ZK_NODEEXISTS);
	fixture_answer(f, ZK_NODEEXISTS);
	fixture_answer(f, ZK_NODEEXISTS);
	fixture_answer_duplicate(f, STRANGER, 100, data);
	for (int i = 1; i <= 4; i++) {
		beat_fails(f);
		fixture_answer_duplicate(f, STRANGER, 100 + i, data);
		assert_int_equal(fixture_logged(f, "was taken"), i == 3); /* said once */
	}
	assert_int_equal(f->stopped, 0);
	fixture_ask(f, 0, "INFO session");
	assert_non_null(memmem(f->replies[0].data, f->replies[0].len,
			       "rival:pid \"99\" on this host, boot id \"boot\", version \"9.9\"\r", 59));
	bytes_clear(&f->replies[0]);
	fixture_pass(f, 1500);
	fixture_answer(f, ZK_OK);
	fixture_ask(f, 0, "INFO session");
	assert_non_null(memmem(f->replies[0].data, f->replies[0].len, "announced:1\r\nrival:\r", 20));
	bytes_clear(&f->replies[0]);
	fixture_free(f);
}

/* ---- holders ---- */

TEST_WITH(the_table_names_who_holds_something_valid, NULL, NULL)
{
	struct fixture *f = fixture_new(false);
	char name[128];

	(void)state;
	fixture_start(f);
	fixture_zk_connected(f, SESSION);
	fixture_connect(f, 0);
	fixture_connect(f, 1);
	fixture_answer_session(f);
	fixture_lock_held(f, 0, "a", 5, 77, name, sizeof(name));
	assert_true(f->holds[0]);
	fixture_lock_held(f, 0, "b", 5, 78, name, sizeof(name));
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
	fixture_free(f);
}

/* Nobody reads it there: an adapter that is told anyway fails every test. */
TEST_WITH(standalone_there_is_no_table, NULL, NULL)
{
	struct fixture *f = fixture_new(true);

	(void)state;
	fixture_start(f);
	fixture_connect(f, 0);
	fixture_say(f, 0, "LOCK a", ":1024");
	assert_false(f->holds[0]);
	fixture_free(f);
}

TEST_WITH(a_loss_takes_its_holder_off_the_table, NULL, NULL)
{
	struct fixture *f = fixture_new(false);
	char name[128];

	(void)state;
	fixture_start(f);
	fixture_zk_connected(f, SESSION);
	fixture_connect(f, 0);
	fixture_answer_session(f);
	fixture_lock_held(f, 0, "a", 5, 77, name, sizeof(name));
	assert_true(f->holds[0]);
	fixture_simple(f, EVENT_ZK_SUSPENDED, 0);
	assert_true(f->holds[0]);
	fixture_pass(f, 8000);
	assert_false(f->holds[0]);
	fixture_free(f);
}

/* A restored ensemble may end two sessions before the host has looked at its own znode. */
TEST_WITH(a_session_that_nobody_was_told_of_is_waited_for_no_time, NULL, NULL)
{
	struct fixture *f = fixture_new(false);

	(void)state;
	fixture_start(f);
	fixture_zk_connected(f, SESSION);
	fixture_answer_session(f);
	fixture_pass(f, 1500);
	fixture_answer_beat(f, 5000);
	fixture_simple(f, EVENT_ZK_EXPIRED, 0);
	fixture_zk_connected(f, LEFT);
	fixture_simple(f, EVENT_ZK_EXPIRED, 0);
	assert_int_equal(formers_open(&f->broker->ensemble), 2);
	fixture_pass(f, 12000);
	assert_int_equal(formers_wait_ns(&f->broker->ensemble), 0);
	fixture_free(f);
}
