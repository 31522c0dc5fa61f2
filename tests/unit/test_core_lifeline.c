/* SPDX-License-Identifier: Apache-2.0 */
/* Locks that are held without a time, until the process ends that has set them (core/lock/lifeline.h). */
#include "core_test.h"
#include "core/lock/bearer.h"
#include "core/lock/lifeline.h"
#include "core/state.h"

/* Beside these, 5 is not known either. */
static int setup_standalone(void **state)
{
	struct fixture *f = fixture_new(true);

	fixture_setup(f, 0, state);
	fixture_connect_processes(f);
	fixture_connect_process(f, 5, 1000, 70, 0);
	return 0;
}

/* Of the process that was asked for as the `at`-th. */
static void tell(struct fixture *f, size_t at, enum process_is is)
{
	const struct effect *asked = &f->lifelines[at];

	assert_true(at < f->lifeline_count);
	fixture_event(f, &(struct event){ .type = EVENT_LIFELINE,
					  .lifeline = { .number = asked->lifeline.number,
							.pid = asked->pid,
							.is = is,
							.sentence = is == PROCESS_REFUSED ? SLICE("too many") : SLICE("") } });
	fixture_pass(f, 0);
}

/* Its first lock. */
static void set(struct fixture *f, uint32_t conn, const char *words)
{
	size_t at = f->lifeline_count;

	fixture_ask(f, conn, words);
	fixture_expect(f, conn, "");
	tell(f, at, PROCESS_WATCHED);
	fixture_expect(f, conn, "+OK");
}

ALONE(it_is_held_until_the_process_ends)
{
	set(f, 0, "SET a v NX");
	assert_int_equal(f->lifelines[0].pid, 50);
	assert_int_equal(f->lifelines[0].lifeline.started, 7);
	assert_int_equal(f->lifelines[0].lifeline.uid, 1000);
	assert_false(f->lifelines[0].holds);
	fixture_simple(f, EVENT_CLIENT_GONE, 0);
	fixture_pass(f, 100000000);
	fixture_say(f, 1, "GET a", "$1 v");
	fixture_say(f, 1, "TTL a", ":-1");
	fixture_ask(f, 3, "LOCK a");
	tell(f, 0, PROCESS_ENDED);
	fixture_expect(f, 3, ":1025");
	assert_int_equal(f->lifelines_over, 1);
}

/* It has given nothing back. */
ALONE(the_log_says_that_its_process_has_ended)
{
	f->conf.log_level = EFFECT_LEVEL_INFO;
	f->conf.log_grants = true;
	set(f, 0, "SET a v NX");
	fixture_say(f, 0, "SET b v NX", "+OK");
	fixture_say(f, 0, "DEL b", ":1");
	assert_true(fixture_logged(f, "why \"released\"\n") && !fixture_logged(f, "why \"closed\"\n"));
	bytes_clear(&f->log);
	tell(f, 0, PROCESS_ENDED);
	assert_true(fixture_logged(f, "why \"closed\"\n") && !fixture_logged(f, "why \"released\"\n"));
}

ALONE(its_user_may_end_with_it)
{
	set(f, 3, "SET a v NX");
	fixture_say(f, 3, "SET b v NX", "+OK");
	fixture_simple(f, EVENT_CLIENT_GONE, 3);
	fixture_ask(f, 0, "LOCK a");
	tell(f, 0, PROCESS_ENDED);
	fixture_expect(f, 0, ":1025");
	fixture_say(f, 1, "EXISTS b", ":0");
	assert_int_equal(f->broker->locks.bearer_count, 0);
}

/* redislock's script, of several keys. */
ALONE(what_has_no_time_is_not_the_least_that_is_left)
{
	set(f, 0, "SET b v NX");
	fixture_say(f, 0, "SET a v NX PX 1000", "+OK");
	fixture_say(f, 1, "EVALSHA 66e1084c2d842a7e8c271925aae90219fac4e129 2 a b v", ":1000");
	fixture_say(f, 1, "EVALSHA 66e1084c2d842a7e8c271925aae90219fac4e129 1 b v", ":0");
}

ALONE(it_is_granted_only_when_the_process_is_watched)
{
	fixture_ask(f, 0, "SET a v NX");
	fixture_pass(f, 1000);
	fixture_expect(f, 0, "");
	fixture_say(f, 1, "EXISTS a", ":0");
	assert_int_equal(f->broker->locks.bearer_count, 0);
	tell(f, 0, PROCESS_WATCHED);
	fixture_expect(f, 0, "+OK");
}

ALONE(a_process_that_has_ended_is_granted_nothing)
{
	fixture_ask(f, 0, "SET a v NX");
	tell(f, 0, PROCESS_ENDED);
	fixture_expect(f, 0,
		       "-ERR the process that has connected has ended, and without PX or another time a lock is held "
		       "until then at most: a");
	assert_int_equal(f->lifelines_over, 1);
	fixture_say(f, 0, "SET a v NX PX 1000", "+OK");
}

ALONE(who_cannot_be_watched_is_told_why)
{
	fixture_ask(f, 0, "SET a v NX");
	fixture_ask(f, 1, "SETNX b v");
	assert_int_equal(f->lifeline_count, 1);
	tell(f, 0, PROCESS_REFUSED);
	fixture_expect(f, 0, "-LIMIT too many; or give a time with PX: a");
	fixture_expect(f, 1, "-LIMIT too many; or give a time with PX: b");
	assert_int_equal(f->lifelines_over, 1);
	assert_true(TAILQ_EMPTY(&f->broker->locks.lifelines));
	fixture_say(f, 0, "SET a v NX PX 1000", "+OK");
}

ALONE(who_cannot_be_seen_has_to_give_a_time)
{
	static const char why[] = "-ERR without a time a lock is held until its process ends at most, and the process that has "
				  "connected cannot be seen from here: give a time with PX: a";

	fixture_say(f, 4, "SET a v NX", why);
	fixture_say(f, 5, "SETNX a v", why);
	assert_int_equal(f->lifeline_count, 0);
}

ALONE(a_process_is_watched_once_whatever_it_holds)
{
	set(f, 0, "SET a v NX");
	fixture_say(f, 1, "SET b v NX", "+OK");
	fixture_say(f, 0, "SETNX c v", ":1");
	fixture_say(f, 1, "SETNX c w", ":0");
	assert_int_equal(f->lifeline_count, 1);
	fixture_say(f, 0, "DEL a b", ":2");
	assert_int_equal(f->lifelines_over, 0);
	fixture_say(f, 1, "DEL c", ":1");
	assert_int_equal(f->lifelines_over, 1);
}

ALONE(a_later_process_of_the_same_number_is_another_one)
{
	set(f, 0, "SET a v NX");
	set(f, 2, "SET b v NX");
	assert_int_equal(f->lifelines[1].lifeline.started, 8);
	tell(f, 0, PROCESS_ENDED);
	fixture_say(f, 2, "EXISTS a", ":0");
	fixture_say(f, 2, "EXISTS b", ":1");
	/* What is told of one that nobody needs any longer concerns nobody. */
	tell(f, 0, PROCESS_ENDED);
	fixture_say(f, 2, "EXISTS b", ":1");
}

ALONE(a_time_that_is_given_later_is_its_only_end)
{
	set(f, 0, "SET a v NX");
	fixture_say(f, 0, "EXPIRE a 10", ":1");
	assert_int_equal(f->lifelines_over, 1);
	tell(f, 0, PROCESS_ENDED);
	fixture_say(f, 3, "PTTL a", ":10000");
	fixture_pass(f, 10000);
	fixture_say(f, 3, "EXISTS a", ":0");
}

ALONE(xx_without_a_time_is_refused)
{
	set(f, 0, "SET a v NX");
	fixture_say(f, 0, "SET a v XX",
		    "-ERR XX and IFEQ extend a lock: say how long it is to be held from now on, with PX, EX, PXAT or EXAT: a");
	fixture_say(f, 1, "SET a v XX PX 700", "+OK");
	fixture_say(f, 1, "PTTL a", ":700");
}

/* It polls: what is kept for it has a lease, and what it gets has none. */
ALONE(a_value_that_had_to_poll_is_tied_when_it_has_its_turn)
{
	set(f, 2, "SET keeps-it-watched v NX");
	fixture_say(f, 3, "LOCK a", ":2048");
	for (int i = 0; i < 3; i++) {
		fixture_say(f, 2, "SET a v NX", "$-1");
		fixture_pass(f, 100);
	}
	fixture_say(f, 3, "UNLOCK a", ":0");
	fixture_say(f, 3, "LOCK a WAIT 0", "$-1");
	fixture_say(f, 2, "SET a v NX", "+OK");
	fixture_say(f, 2, "TTL a", ":-1");
	fixture_pass(f, 100000);
	fixture_say(f, 3, "EXISTS a", ":1");
	tell(f, 0, PROCESS_ENDED);
	fixture_say(f, 3, "EXISTS a", ":0");
}

ALONE(who_goes_while_its_process_is_looked_for_leaves_nothing)
{
	fixture_ask(f, 0, "SET a v NX");
	fixture_simple(f, EVENT_CLIENT_GONE, 0);
	assert_int_equal(f->lifelines_over, 1);
	tell(f, 0, PROCESS_WATCHED);
	fixture_say(f, 1, "EXISTS a", ":0");
}

ALONE(it_is_asked_for_anew_after_a_hand_over)
{
	set(f, 0, "SET a v NX");
	fixture_ask(f, 3, "SET b v NX");
	fixture_simple(f, EVENT_CLIENT_GONE, 0);
	fixture_hand_over(f);
	assert_int_equal(f->lifeline_count, 2);
	fixture_simple(f, EVENT_TIME, 0);
	assert_int_equal(f->lifeline_count, 4);
	/* It must not be refused if it has a lock. */
	assert_true(f->lifelines[2].pid == 50 && f->lifelines[2].holds);
	assert_true(f->lifelines[3].pid == 60 && !f->lifelines[3].holds);
	tell(f, 3, PROCESS_WATCHED);
	fixture_expect(f, 3, "+OK");
	fixture_say(f, 1, "GET a", "$1 v");
	tell(f, 2, PROCESS_ENDED);
	fixture_say(f, 1, "EXISTS a", ":0");
	fixture_say(f, 1, "EXISTS b", ":1");
}

enum { MANY = 100 };

static void set_many(struct fixture *f)
{
	f->conf.limits.locks = fixture_total(1000);
	f->conf.limits.grants = fixture_total(1000);
	f->conf.limits.grants_per_client = 1000;
	f->conf.limits.memory_bytes = 1 << 20;
	set(f, 0, "SET first v NX");
	for (int i = 1; i < MANY; i++)
		fixture_say(f, 0, fixture_words(f, "SET n%d v NX", i), "+OK");
	fixture_event(f, &(struct event){ .type = EVENT_LIFELINE,
					  .lifeline = { .number = f->lifelines[0].lifeline.number,
							.pid = 50,
							.is = PROCESS_ENDED } });
}

ALONE(many_are_released_in_pieces)
{
	int turns = 0;

	set_many(f);
	assert_int_equal(f->broker->locks.bearer_count, MANY);
	for (; f->broker->locks.bearer_count; turns++) {
		size_t before = f->broker->locks.bearer_count;

		fixture_simple(f, EVENT_TIME, 0);
		assert_true(f->broker->locks.bearer_count < before && before - f->broker->locks.bearer_count <= WORK_TURN_STEPS);
	}
	assert_true(turns > 1);
	assert_int_equal(f->lifelines_over, 1);
}

ALONE(the_rest_of_them_is_released_after_a_hand_over)
{
	set_many(f);
	fixture_simple(f, EVENT_TIME, 0);
	fixture_hand_over(f);
	/* That it has ended is known: nobody is asked. */
	fixture_pass(f, 0);
	assert_int_equal(f->lifeline_count, 1);
	assert_int_equal(f->broker->locks.bearer_count, 0);
	assert_int_equal(f->lifelines_over, 0);
}

ALONE(its_memory_is_charged)
{
	f->conf.limits.memory_bytes = fixture_total(bearer_memory(SLICE("v")) + sizeof(struct lifeline) + 100);
	fixture_say_begin(f, 0, "SET a v NX", "-LIMIT ");
	assert_int_equal(f->lifeline_count, 0);
	f->conf.limits.memory_bytes = fixture_total(bearer_memory(SLICE("v")) + sizeof(struct lifeline) + 1000);
	set(f, 0, "SET a v NX");
	assert_true(f->broker->env.accounts.pools[POOL_MEMORY].used >= bearer_memory(SLICE("v")) + sizeof(struct lifeline));
}
