/* SPDX-License-Identifier: Apache-2.0 */
/* What the log is told of holds and waits (lock/hold.h), as the fixture writes it down. */
#include "claim_fixture.h"
#include "delegation_fixture.h"
#include "core_test.h"

#define SECOND (1000 * MS)

static struct fixture *logging(struct fixture *f)
{
	f->conf.log_level = EFFECT_LEVEL_INFO;
	f->conf.log_grants = true;
	return f;
}

static int setup(void **state)
{
	return fixture_setup(logging(fixture_new(true)), 4, state);
}

static int setup_waits(void **state)
{
	struct fixture *f = fixture_new(true);

	f->conf.log_level = EFFECT_LEVEL_INFO;
	f->conf.long_wait_ns = 60 * SECOND;
	return fixture_setup(f, 4, state);
}

static int setup_zookeeper(void **state)
{
	struct fixture *f = logging(fixture_new(false));

	f->conf.long_wait_ns = SECOND;
	f->conf.handoff_max = 0;
	return fixture_setup(f, 4, state);
}

static void expect(struct fixture *f, const char *lines)
{
	bytes_char(&f->log, '\0');
	assert_string_equal(f->log.data, lines);
	bytes_clear(&f->log);
}

TEST(a_hold_is_said_at_its_end)
{
	fixture_say(f, 0, "LOCK \" DATA text", ":1024");
	fixture_say(f, 1, "LOCK \" SHARED LEASE 5", "");
	fixture_say(f, 0, "LOCK \" REENTER", ":1024");
	fixture_say(f, 0, "UNLOCK \"", ":1");
	fixture_pass(f, 20);
	expect(f, "");
	fixture_say(f, 0, "UNLOCK \"", ":0");
	expect(f, "released: lock \"\\\"\", client 1, uid 1000, pid 100, token 1024, held 20, command \"test\", data \"text\", "
		  "why \"released\"\n");
	fixture_pass(f, 5);
	expect(f, "lost: lock \"\\\"\", client 2, uid 1000, pid 101, token 1025, held 5, waited 20, command \"test\", "
		  "why \"lease\"\n");
	fixture_simple(f, EVENT_CLIENT_GONE, 1);
	expect(f, "");
	fixture_say(f, 2, "CAMPAIGN e DATA x", ":2048");
	fixture_simple(f, EVENT_CLIENT_GONE, 2);
	expect(f, "released: election \"e\", client 3, uid 1000, pid 102, token 2048, command \"test\", data \"x\", "
		  "why \"closed\"\n");
}

/* Whoever reads the log later asks who had the lock: "inherited" would not answer that. */
TEST(a_command_that_has_ended_is_still_named)
{
	const struct event ended = { .type = EVENT_CLIENT_PROCESS, .process = { 77, SLICE("backup"), true, true } };

	fixture_say(f, 0, "CLIENT SETINFO CHILD 77", "+OK");
	fixture_say(f, 0, "LOCK a", ":1024");
	fixture_event(f, &ended);
	fixture_say(f, 0, "UNLOCK a", ":0");
	expect(f, "released: lock \"a\", client 1, uid 1000, pid 77, token 1024, command \"backup\", why \"released\"\n");
}

TEST(permits_are_said_when_they_are_given_back)
{
	fixture_say(f, 3, "ACQUIRE s LIMIT 5 COUNT 3", ":3");
	fixture_say(f, 3, "ACQUIRE s LIMIT 5", ":4");
	fixture_say(f, 3, "RELEASE s COUNT 1", ":3");
	fixture_say(f, 3, "RESET", "+RESET");
	expect(f, "released: semaphore \"s\", client 4, uid 1000, pid 103, permits 1, command \"test\", why \"released\"\n"
		  "released: semaphore \"s\", client 4, uid 1000, pid 103, permits 3, command \"test\", why \"released\"\n");
}

TEST(a_hold_of_ten_seconds_is_said_before_its_end)
{
	fixture_say(f, 0, "LOCK a", ":1024");
	fixture_pass(f, 9999);
	expect(f, "");
	fixture_pass(f, 1);
	expect(f, "granted: lock \"a\", client 1, uid 1000, pid 100, token 1024, held 10000, command \"test\"\n");
	fixture_pass(f, 60000);
	expect(f, "");
	fixture_say(f, 0, "UNLOCK a", ":0");
	expect(f, "released: lock \"a\", client 1, uid 1000, pid 100, token 1024, held 70000, command \"test\", "
		  "why \"released\"\n");
}

static void take_many(struct fixture *f, int count, const char *options)
{
	f->conf.limits.grants_per_client = 2000;
	f->conf.limits.grants = f->conf.limits.locks = 10000;
	for (int i = 0; i < count; i++) {
		fixture_say_begin(f, 0, fixture_words(f, "LOCK a%d%s", i, options), ":");
	}
}

static size_t lines_of(const struct fixture *f)
{
	size_t lines = 0;

	for (size_t i = 0; i < f->log.len; i++)
		lines += f->log.data[i] == '\n';
	return lines;
}

/* The others go on: they are said in the next milliseconds. */
TEST(no_event_says_more_than_sixteen_that_go_on)
{
	take_many(f, 40, "");
	f->now_ns += 10 * SECOND;
	for (int event = 0; event < 3; event++, f->now_ns += MS) {
		fixture_simple(f, EVENT_TIME, 0);
		assert_int_equal(lines_of(f), event < 2 ? 16 * (event + 1) : 40);
	}
}

/* Its bound is more than the log takes of them. */
TEST(no_event_says_more_than_a_thousand_losses)
{
	take_many(f, 1001, " LEASE 5");
	f->now_ns += 5 * MS;
	fixture_simple(f, EVENT_TIME, 0);
	assert_int_equal(lines_of(f), 1000);
}

TEST(nothing_is_said_of_holds_unless_that_is_wanted)
{
	f->conf.log_grants = false;
	fixture_say(f, 0, "LOCK a", ":1024");
	fixture_pass(f, 10000);
	fixture_say(f, 0, "UNLOCK a", ":0");
	expect(f, "");
	f->conf.log_level = EFFECT_LEVEL_DEBUG;
	fixture_say(f, 0, "LOCK a", ":2048");
	fixture_say(f, 0, "UNLOCK a", ":0");
	assert_true(fixture_logged(f, "released: lock \"a\""));
	f->conf.log_grants = true;
	f->conf.log_level = EFFECT_LEVEL_WARNING;
	fixture_say(f, 0, "LOCK a", ":3072");
	fixture_pass(f, 10000);
	fixture_say(f, 0, "UNLOCK a", ":0");
	expect(f, "");
}

/* It is said in the process after, and only once. */
TEST(a_hold_and_its_wait_cross_a_hand_over)
{
	fixture_say(f, 0, "LOCK a", ":1024");
	fixture_say(f, 1, "LOCK a DATA text", "");
	fixture_pass(f, 3000);
	fixture_say(f, 0, "UNLOCK a", ":0");
	fixture_expect(f, 1, ":1025");
	bytes_clear(&f->log);
	fixture_pass(f, 4000);
	fixture_hand_over(f);
	fixture_pass(f, 6000);
	expect(f, "granted: lock \"a\", client 2, uid 1000, pid 101, token 1025, held 10000, waited 3000, command \"test\", "
		  "data \"text\"\n");
	fixture_hand_over(f);
	fixture_pass(f, 1000);
	expect(f, "");
	fixture_say(f, 1, "UNLOCK a", ":0");
	expect(f, "released: lock \"a\", client 2, uid 1000, pid 101, token 1025, held 11000, waited 3000, command \"test\", "
		  "data \"text\", why \"released\"\n");
}

/* ---- waits ---- */

TEST_IN(a_long_wait_is_said_when_it_becomes_one_and_when_it_ends, setup_waits)
{
	fixture_say(f, 0, "LOCK a", ":1024");
	for (int i = 1; i < 4; i++)
		fixture_say(f, (uint32_t)i, i == 2 ? "LOCK a WAIT 61000" : "LOCK a", "");
	fixture_pass(f, 59999);
	fixture_simple(f, EVENT_CLIENT_GONE, 3);
	expect(f, "");
	fixture_pass(f, 1);
	expect(f, "waits: lock \"a\", client 2, uid 1000, pid 101, waited 60000, holder_pid 100, command \"test\", "
		  "holder_command \"test\"\n"
		  "waits: lock \"a\", client 3, uid 1000, pid 102, waited 60000, holder_pid 100, command \"test\", "
		  "holder_command \"test\"\n");
	fixture_hand_over(f);
	fixture_pass(f, 1000);
	fixture_expect(f, 2, "$-1");
	expect(f, "waited: lock \"a\", client 3, uid 1000, pid 102, waited 61000, holder_pid 100, command \"test\", "
		  "holder_command \"test\", why \"timeout\"\n");
	fixture_say(f, 0, "UNLOCK a", ":0");
	fixture_expect(f, 1, ":1025");
	assert_true(fixture_logged(f, "why \"granted\""));
}

TEST_IN(no_wait_is_long_if_that_is_not_wanted, setup_waits)
{
	f->conf.long_wait_ns = 0;
	fixture_say(f, 0, "LOCK a", ":1024");
	fixture_say(f, 1, "LOCK a", "");
	fixture_pass(f, 600000);
	f->conf.long_wait_ns = 60 * SECOND;
	fixture_say(f, 0, "UNLOCK a", ":0");
	fixture_expect(f, 1, ":1025");
	expect(f, "");
}

TEST_IN(waits_that_go_on_are_not_long_after_a_reload_without_a_limit, setup_waits)
{
	fixture_say(f, 0, "LOCK a", ":1024");
	fixture_say(f, 1, "LOCK a", "");
	f->conf.long_wait_ns = 0;
	fixture_pass(f, 600000);
	fixture_say(f, 0, "UNLOCK a", ":0");
	fixture_expect(f, 1, ":1025");
	expect(f, "");
}

/* ---- other hosts ---- */

TEST_IN(who_had_the_lock_before_and_who_has_it, setup_zookeeper)
{
	claim_waits(f, f->znode);
	bytes_clear(&f->log);
	fixture_pass(f, 1000);
	expect(f, "waits: lock \"a\", client 1, uid 1000, pid 100, waited 1000, command \"test\", holder "
	       "\"1\\x0ahost=beta\\x0a\"\n");
	fixture_answer_beats(f);
	fixture_watch_contender(f, ZK_WATCH_DELETED, foreign_low);
	while (fixture_is_open(f) && fixture_oldest(f)->effect.type != EFFECT_ZK_LIST)
		fixture_answer(f, ZK_OK);
	fixture_answer_list(f, 1, 1, (const char *[]){ f->znode });
	fixture_expect_begin(f, 0, ":");
	bytes_clear(&f->log);
	fixture_say(f, 1, "LOCK a", "");
	fixture_say(f, 0, "UNLOCK a", ":0");
	assert_true(fixture_logged(f, ", command \"test\", before \"beta\", why \"released\"\n"));
}

/* ---- delegations ---- */

static int setup_delegation(void **state)
{
	int rc = delegation_setup(state);

	logging(*state);
	return rc;
}

static int setup_delegation_zookeeper(void **state)
{
	int rc = delegation_setup_zookeeper(state);

	logging(*state);
	return rc;
}

TEST_IN(a_delegation_is_said_at_its_end_and_is_no_hold, setup_delegation)
{
	delegated_a(f);
	for (int i = 0; i < 4; i++)
		assert_true(leave(0, 1) && take(0, 1));
	assert_true(leave(0, 1));
	f->now_ns += 500 * MS;
	expect(f, "");
	fixture_say(f, 2, "LOCK a", ":1025");
	expect(f, "delegated: lock \"a\", client 1, uid 1000, pid 100, token 1024, takings 5, held 500, command \"test\"\n");
}

TEST_IN(a_delegated_lock_that_is_held_goes_on_as_a_hold, setup_delegation)
{
	delegated_a(f);
	fixture_say(f, 2, "LOCK a", "");
	expect(f, "delegated: lock \"a\", client 1, uid 1000, pid 100, token 1024, takings 1, command \"test\"\n");
	fixture_pass(f, 30);
	fixture_simple(f, EVENT_CLIENT_GONE, 0);
	assert_true(fixture_logged(f, "released: lock \"a\", client 1, uid 1000, pid 100, token 1024, held 30, "
	       "command \"test\", "
				      "why \"closed\"\n"));
}

/* It waited before its client had it delegated, and not each time that the client took it. */
TEST_IN(a_delegated_lock_that_is_taken_by_force_has_not_waited, setup_delegation)
{
	delegated_a(f);
	assert_true(leave(0, 1));
	f->now_ns += 500 * MS;
	assert_true(take(0, 1));
	slot(0, 1)->held_since_ns = f->now_ns;
	f->now_ns += 30 * MS;
	fixture_say(f, 2, "FORCEUNLOCK a", ":1");
	assert_true(fixture_logged(f, "lost: lock \"a\", client 1, uid 1000, pid 100, token 1024, held 30, command \"test\", "
				      "why \"forced\"\n"));
}

/* The same of one that goes with the session. */
TEST_IN(a_delegated_lock_that_is_lost_with_the_session_has_not_waited, setup_delegation_zookeeper)
{
	give_page(f, 0);
	idle_a(f);
	fixture_say(f, 0, "LOCK a SLOT 1", ":78849");
	assert_true(is_delegated(0, 1) && leave(0, 1));
	f->now_ns += 500 * MS;
	assert_true(take(0, 1));
	slot(0, 1)->held_since_ns = f->now_ns;
	f->now_ns += 30 * MS;
	bytes_clear(&f->log);
	fixture_simple(f, EVENT_ZK_EXPIRED, 0);
	expect(f, "session expired by ZooKeeper\n"
		  "session lost: every grant is void\n"
		  "delegated: lock \"a\", client 1, uid 1000, pid 100, token 78849, takings 2, held 530, command \"test\"\n"
		  "lost: lock \"a\", client 1, uid 1000, pid 100, token 78849, held 30, command \"test\", why \"session\"\n");
}

/* Also by the process after. What was delegated until the hand-over is said as it becomes a hold of ten seconds. */
TEST_IN(a_recalled_hold_of_ten_seconds_is_said_once, setup_delegation)
{
	give_page(f, 0);
	fixture_say(f, 0, "LOCK a SLOT 1", ":1024");
	fixture_say(f, 0, "LOCK b SLOT 2", ":2048");
	assert_true(is_delegated(0, 1) && is_delegated(0, 2));
	fixture_say(f, 2, "LOCK a", "");
	bytes_clear(&f->log);
	fixture_pass(f, 10000);
	expect(f, "granted: lock \"a\", client 1, uid 1000, pid 100, token 1024, held 10000, command \"test\"\n");
	fixture_hand_over(f);
	broker_give_page(f->broker, 0, &pages[0]);
	fixture_pass(f, 5000);
	expect(f, "granted: lock \"b\", client 1, uid 1000, pid 100, token 2048, held 15000, command \"test\"\n");
	fixture_hand_over(f);
	broker_give_page(f->broker, 0, &pages[0]);
	fixture_pass(f, 5000);
	expect(f, "");
	fixture_say(f, 0, "UNLOCK a", ":0");
	expect(f, "released: lock \"a\", client 1, uid 1000, pid 100, token 1024, held 20000, command \"test\", "
		  "why \"released\"\n");
}
