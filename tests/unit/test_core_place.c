/* SPDX-License-Identifier: Apache-2.0 */
/* Places in the queue of a lock (core/lock/place.h), for programs that ask again and again with SET. */
#include <string.h>

#include "core_test.h"
#include "core/lock/bearer.h"
#include "core/state.h"

enum { SECOND_MS = 1000, POLLERS = 100 };

static const char elsewhere[] = "_c_4c61f3c2-7f3c-4c11-9d3e-1c6f0f3a9b11-__WRIT__0000000003";

/* 0 and 1 are of one user and one process, 2 is another process of that user, 3 is of another user. */
static int begin(bool standalone, void **state)
{
	fixture_setup(fixture_new(standalone), 0, state);
	fixture_connect_process(*state, 0, 1000, 50, 7);
	fixture_connect_process(*state, 1, 1000, 50, 7);
	fixture_connect_process(*state, 2, 1000, 60, 7);
	fixture_connect_process(*state, 3, 2000, 70, 7);
	return 0;
}

static int setup(void **state)
{
	return begin(false, state);
}

static int setup_standalone(void **state)
{
	return begin(true, state);
}

static void refused_twice(struct fixture *f, uint32_t conn, const char *words)
{
	fixture_say(f, conn, words, "$-1");
	fixture_say(f, conn, words, "$-1");
}

/* Client 0 holds it under v1, and client 1 has a place for v2. */
static void held_and_polled(struct fixture *f)
{
	fixture_say(f, 0, "SET a v1 NX PX 60000", "+OK");
	refused_twice(f, 1, "SET a v2 NX PX 60000");
}

static size_t waiting(const struct fixture *f)
{
	return f->broker->locks.request_count;
}

ALONE(who_polls_is_served_in_the_order_of_coming)
{
	held_and_polled(f);
	refused_twice(f, 2, "SET a v3 NX PX 60000");
	fixture_pass(f, SECOND_MS - 1);
	fixture_say(f, 2, "SET a v3 NX PX 60000", "$-1");
	fixture_say(f, 1, "SET a v2 NX PX 60000", "$-1");
	fixture_say(f, 0, "DEL a", ":1");
	fixture_say(f, 0, "SET a v1 NX PX 60000", "$-1");
	fixture_say(f, 2, "SET a v3 NX PX 60000", "$-1");
	fixture_say(f, 1, "SET a v2 NX PX 60000", "+OK");
	fixture_say(f, 1, "PTTL a", ":60000");
	fixture_say(f, 1, "DEL a", ":1");
	fixture_say(f, 1, "SET a v2 NX PX 60000", "$-1");
	fixture_say(f, 2, "SET a v3 NX PX 60000", "+OK");
	fixture_say(f, 2, "GET a", "$2 v3");
	fixture_pass(f, SECOND_MS);
	fixture_say(f, 2, "DEL a", ":1");
	assert_int_equal(f->broker->locks.bearer_count, 0);
	assert_int_equal(f->broker->env.stats.places_unused_total, 0);
}

ALONE(what_waits_on_a_connection_has_its_turn_among_them)
{
	held_and_polled(f);
	fixture_ask(f, 3, "LOCK a");
	refused_twice(f, 2, "SET a v3 NX PX 60000");
	fixture_say(f, 0, "DEL a", ":1");
	fixture_expect(f, 3, "");
	fixture_say(f, 1, "SET a v2 NX PX 60000", "+OK");
	fixture_say(f, 1, "DEL a", ":1");
	fixture_expect(f, 3, ":1026");
	fixture_say(f, 2, "SET a v3 NX PX 60000", "$-1");
	fixture_say(f, 3, "UNLOCK a", ":0");
	fixture_say(f, 2, "SET a v3 NX PX 60000", "+OK");
}

ALONE(who_never_comes_back_costs_at_most_a_second)
{
	held_and_polled(f);
	refused_twice(f, 2, "SET a v3 NX PX 60000");
	fixture_ask(f, 3, "LOCK a");
	fixture_say(f, 0, "DEL a", ":1");
	fixture_pass(f, SECOND_MS - 1);
	fixture_say(f, 2, "SET a v3 NX PX 60000", "$-1");
	fixture_expect(f, 3, "");
	/* With the turn that ends unused all places end: v3 may not come back, either. */
	fixture_pass(f, 1);
	fixture_expect(f, 3, ":1026");
	assert_int_equal(waiting(f), 0);
	assert_int_equal(f->broker->env.stats.places_unused_total, 1);
	fixture_say(f, 3, "UNLOCK a", ":0");
	fixture_say(f, 0, "SET a v4 NX PX 60000", "+OK");
}

/* A program that takes a new value after some tries would else keep the lock from itself. */
ALONE(values_that_are_given_up_leave_the_lock_free)
{
	held_and_polled(f);
	fixture_say(f, 0, "DEL a", ":1");
	fixture_pass(f, SECOND_MS - 200);
	refused_twice(f, 1, "SET a v3 NX PX 60000");
	fixture_pass(f, 200);
	fixture_say(f, 1, "SET a v4 NX PX 60000", "+OK");
}

ALONE(a_place_that_nobody_asks_for_ends)
{
	held_and_polled(f);
	assert_int_equal(waiting(f), 1);
	fixture_pass(f, SECOND_MS);
	assert_int_equal(waiting(f), 0);
	assert_int_equal(f->broker->locks.bearer_count, 1);
	assert_int_equal(f->broker->env.stats.places_unused_total, 0);
}

ALONE(a_value_that_is_asked_once_keeps_the_lock_from_nobody)
{
	fixture_say(f, 0, "SET a v1 NX PX 60000", "+OK");
	fixture_say(f, 1, "SET a v2 NX PX 60000", "$-1");
	fixture_pass(f, SECOND_MS);
	/* A second later it is as if it had never asked; another user's value is another one. */
	fixture_say(f, 1, "SET a v2 NX PX 60000", "$-1");
	fixture_say(f, 3, "SET a v2 NX PX 60000", "$-1");
	fixture_say(f, 1, "SET a v3 NX PX 60000", "$-1");
	assert_int_equal(waiting(f), 0);
	fixture_say(f, 0, "DEL a", ":1");
	fixture_say(f, 1, "SET a v3 NX PX 60000", "+OK");
}

ALONE(what_is_kept_for_a_value_is_not_held_under_it)
{
	held_and_polled(f);
	fixture_say(f, 0, "DEL a", ":1");
	fixture_say(f, 1, "GET a", "$10 held@alpha");
	fixture_say(f, 1, "EXISTS a", ":1");
	fixture_say(f, 1, "TOKEN a v2", "-NOTHELD it is not held under that value: a");
	fixture_say(f, 1, "SET a v2 XX PX 60000", "$-1");
	fixture_say(f, 1, "DEL a", ":0");
	fixture_say(f, 1, "EXPIRE a 60", ":0");
	fixture_say(f, 1, "EVALSHA c3f8721cbb97f72bc19e972846bd7aaf91901658 1 a v2", ":0");
	fixture_say(f, 3, "SET a v2 NX PX 60000", "$-1");
	fixture_say_begin(f, 2, "DEL a", "-DENIED a is held");
	/* It is of the process that has asked for it last. */
	fixture_say(f, 2, "SET a v2 NX PX 60000", "+OK");
	fixture_say_begin(f, 1, "DEL a", "-DENIED a is held");
	fixture_say(f, 2, "DEL a", ":1");
}

ALONE(scripts_that_take_a_lock_have_places_too)
{
	static const char take[] = "EVALSHA e5a322e2634ef59a516e8ea150cb085afafee684 1 a v2 60000";

	fixture_say(f, 0, "SET a v1 NX PX 60000", "+OK");
	fixture_say(f, 1, take, ":0");
	fixture_say(f, 1, take, ":0");
	fixture_say(f, 0, "DEL a", ":1");
	fixture_say(f, 2, "SET a v3 NX PX 60000", "$-1");
	fixture_say(f, 1, take, ":1");
	fixture_say(f, 1, "GET a", "$2 v2");
}

/* It might have all others never, and would keep this one from who needs no other. */
ALONE(a_script_for_several_locks_has_no_place)
{
	static const char take[] = "EVALSHA e5a322e2634ef59a516e8ea150cb085afafee684 2 a b v2 60000";

	fixture_say(f, 0, "SET a v1 NX PX 60000", "+OK");
	for (int i = 0; i < 3; i++)
		fixture_say(f, 1, take, ":0");
	assert_int_equal(waiting(f), 0);
	fixture_say(f, 0, "DEL a", ":1");
	fixture_ask(f, 1, take);
	fixture_pass(f, 0);
	fixture_expect(f, 1, ":2");
}

ALONE(places_take_half_of_what_may_wait_for_a_lock)
{
	f->conf.limits.requests_per_lock = 4;
	held_and_polled(f);
	refused_twice(f, 2, "SET a v3 NX PX 60000");
	assert_int_equal(waiting(f), 2);
	refused_twice(f, 3, "SET a v4 NX PX 60000");
	assert_int_equal(waiting(f), 2);
	fixture_ask(f, 3, "LOCK a");
	assert_int_equal(waiting(f), 3);
	/* With a place less there is room again. */
	fixture_pass(f, SECOND_MS);
	assert_int_equal(waiting(f), 1);
	refused_twice(f, 1, "SET a v2 NX PX 60000");
	assert_int_equal(waiting(f), 2);
}

ALONE(places_take_half_of_what_a_user_s_waits_may_be)
{
	f->conf.limits.requests = fixture_total(20);
	fixture_say(f, 0, "SET a v1 NX PX 60000", "+OK");
	for (int i = 0; i < 11; i++)
		refused_twice(f, 1, fixture_words(f, "SET a w%d NX PX 60000", i));
	assert_int_equal(waiting(f), 5);
	fixture_ask(f, 2, "LOCK a");
	assert_int_equal(waiting(f), 6);
	fixture_expect(f, 2, "");
}

ALONE(places_take_half_of_a_user_s_memory)
{
	f->conf.limits.memory_bytes = fixture_total(12 * bearer_memory(SLICE("w00")));
	fixture_say(f, 0, "SET a v01 NX PX 60000", "+OK");
	for (int i = 10; i < 22; i++)
		refused_twice(f, 1, fixture_words(f, "SET a w%d NX PX 60000", i));
	/* Notes and what is held are of that half. */
	assert_in_range(waiting(f), 3, 5);
	fixture_say(f, 2, "SET b w99 NX PX 60000", "+OK");
}

ALONE(a_note_is_charged_for_its_second)
{
	fixture_say(f, 0, "SET a v1 NX PX 60000", "+OK");
	fixture_say(f, 1, "SET a v2 NX PX 60000", "$-1");
	assert_int_equal(f->broker->env.accounts.pools[POOL_MEMORY].used, bearer_memory(SLICE("v1")) + sizeof(struct attempt));
	fixture_pass(f, SECOND_MS);
	assert_int_equal(f->broker->env.accounts.pools[POOL_MEMORY].used, bearer_memory(SLICE("v1")));
}

ALONE(a_hand_over_keeps_places_turns_and_what_was_asked_once)
{
	fixture_say(f, 0, "SET a v1 NX PX 60000", "+OK");
	fixture_say(f, 0, "SET b v1 NX PX 60000", "+OK");
	refused_twice(f, 1, "SET a v2 NX PX 60000");
	refused_twice(f, 2, "SET a v3 NX PX 60000");
	refused_twice(f, 2, "SET b v3 NX PX 60000");
	fixture_say(f, 3, "SET a v4 NX PX 60000", "$-1");
	fixture_say(f, 0, "DEL b", ":1");
	fixture_pass(f, 500);
	fixture_hand_over(f);
	fixture_say(f, 3, "SET a v4 NX PX 60000", "$-1");
	assert_int_equal(waiting(f), 3);
	fixture_say(f, 0, "SET b v1 NX PX 60000", "$-1");
	fixture_say(f, 2, "SET b v3 NX PX 60000", "+OK");
	fixture_say(f, 0, "DEL a", ":1");
	fixture_say(f, 2, "SET a v3 NX PX 60000", "$-1");
	fixture_say(f, 1, "SET a v2 NX PX 60000", "+OK");
	fixture_pass(f, 500);
	assert_int_equal(waiting(f), 2);
}

ALONE(a_place_ends_as_any_wait_and_any_grant)
{
	fixture_connect(f, 5);
	held_and_polled(f);
	fixture_say(f, 0, "DEL a", ":1");
	fixture_say(f, 5, "FORCEUNLOCK a", ":1");
	held_and_polled(f);
	fixture_ask(f, 5, "DRAIN");
	assert_int_equal(waiting(f), 0);
	assert_int_equal(f->broker->locks.bearer_count, 1);
}

/* It is granted to nobody any longer, and the session need not be left to time out for it. */
ALONE(a_stop_ends_a_kept_turn)
{
	held_and_polled(f);
	fixture_say(f, 0, "DEL a", ":1");
	assert_int_equal(f->broker->locks.bearers_hold, 1);
	fixture_simple(f, EVENT_STOP, 0);
	assert_int_equal(f->broker->locks.bearer_count, 0);
	assert_int_equal(f->stopped, 2);
}

/* ---- with ZooKeeper ---- */

/* How many operations of that type are open; all are answered as a directory with a contender of another host. */
static size_t answer_all(struct fixture *f, enum effect_type type, uint32_t *seq)
{
	size_t count = 0;
	char name[128] = "";

	for (; fixture_is_open(f); ++*seq) {
		const struct fixture_op *op = fixture_oldest(f);

		count += op->effect.type == type && !strstr(op->path, ".hosts");
		if (strstr(op->path, ".hosts"))
			fixture_answer(f, ZK_OK);
		else if (op->effect.type == EFFECT_ZK_CREATE)
			fixture_answer_made(f, *seq, 70 + *seq, name, sizeof(name));
		else if (op->effect.type == EFFECT_ZK_LIST)
			fixture_answer_list(f, 1, name[0] ? 2 : 1, (const char *const[]){ elsewhere, name });
		else if (op->effect.type == EFFECT_ZK_GET)
			fixture_answer_get(f, 1, 9, strstr(op->path, "_c_") ? "" : LOCK_DATA);
		else
			fixture_answer(f, ZK_OK);
	}
	return count;
}

TEST(a_hundred_that_poll_cost_zookeeper_one_wait)
{
	uint32_t seq = 5;
	size_t made = 0;

	f->conf.limits.requests = f->conf.limits.grants = f->conf.limits.requests_per_lock = 4 * POLLERS;
	f->conf.limits.memory_bytes = 10000000;
	for (int round = 0; round < 50; round++) {
		for (int i = 0; i < POLLERS; i++) {
			fixture_ask(f, 1, fixture_words(f, "SET a v%d NX PX 60000", i));
			made += answer_all(f, EFFECT_ZK_CREATE, &seq);
			fixture_expect(f, 1, "$-1");
		}
		fixture_pass(f, 100);
		made += answer_all(f, EFFECT_ZK_CREATE, &seq);
		/* In the first round each try is a wait of its own, and in the second one the first. */
		if (round == 1)
			made = 0;
	}
	assert_int_equal(waiting(f), POLLERS);
	assert_int_equal(made, 0);
	fixture_pass(f, SECOND_MS);
	assert_int_equal(waiting(f), 0);
}
