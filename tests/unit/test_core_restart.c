/* SPDX-License-Identifier: Apache-2.0 */
/* RESTART: who may ask for a hand-over, and who is told its outcome (command.h). */
#include "core_test.h"

static int setup(void **state)
{
	struct fixture *f = fixture_new(true);

	f->conf.version = "1.2.3";
	f->conf.pid = 4711;
	return fixture_setup(f, 3, state);
}

static void over(struct fixture *f, const char *sentence)
{
	fixture_event(f, &(struct event){ .type = EVENT_RESTART_OVER,
					  .restart = { .done = !sentence,
						       .paused_ns = 12345678,
						       .sentence = slice_of(sentence ? sentence : "") } });
}

TEST(who_asked_is_told_who_took_over)
{
	fixture_ask(f, 0, "RESTART");
	fixture_expect(f, 0, "");
	assert_int_equal(f->restarts, 1);
	over(f, NULL);
	fixture_expect(f, 0, "*6 $10 process_id :4711 $7 version $5 1.2.3 $9 paused_us :12345");
	fixture_say(f, 0, "PING", "+PONG");
}

TEST(who_asked_is_told_why_not)
{
	fixture_ask(f, 0, "RESTART");
	over(f, "the new process ended");
	fixture_expect(f, 0, "-ERR not restarted: the new process ended");
	fixture_ask(f, 0, "RESTART");
	assert_int_equal(f->restarts, 2);
}

TEST(the_second_who_asks_is_refused)
{
	fixture_ask(f, 0, "RESTART");
	fixture_say(f, 1, "RESTART", "-ERR not restarted: client 1 has asked for that already, and is waiting for it");
	assert_int_equal(f->restarts, 1);
	over(f, "no");
	fixture_expect(f, 0, "-ERR not restarted: no");
	fixture_expect(f, 1, "");
}

/* It may be a hand-over that nobody asked for, or whoever asked may have left. */
TEST(the_outcome_is_told_to_nobody_else)
{
	over(f, NULL);
	fixture_ask(f, 0, "RESTART");
	fixture_simple(f, EVENT_CLIENT_GONE, 0);
	over(f, NULL);
	fixture_ask(f, 1, "RESTART");
	assert_int_equal(f->restarts, 2);
	fixture_simple(f, EVENT_CLIENT_HALF_CLOSED, 1);
	fixture_expect(f, 1, "");
	over(f, "no");
	fixture_expect(f, 1, "-ERR not restarted: no");
}

TEST(only_operators_may_restart)
{
	fixture_operators(f, false);
	fixture_say(f, 0, "RESTART", "-DENIED only operators may restart the daemon" DENIED_HOW);
	assert_int_equal(f->restarts, 0);
}

TEST(a_daemon_that_stops_is_not_restarted)
{
	fixture_say(f, 1, "LOCK a", ":1024");
	fixture_simple(f, EVENT_STOP, 0);
	fixture_say(f, 0, "RESTART", "-DRAINING the daemon is stopping");
	assert_int_equal(f->restarts, 0);
}
