/* SPDX-License-Identifier: Apache-2.0 */
/* The limit of a semaphore: on that all agree (semaphore.h), and LIMIT (cmd_semaphore.c). */
#include <stdio.h>

#include "semaphore_fixture.h"
#include "core_test.h"

SETUP(setup, false, 4)
SETUP(setup_standalone, true, 4)

ALONE(all_agree_on_the_limit_while_anybody_uses_it)
{
	fixture_say(f, 0, "LIMIT s", "$-1");
	fixture_say(f, 0, "ACQUIRE s LIMIT 2", ":1");
	fixture_say(f, 1, "ACQUIRE s LIMIT 3", "-MISMATCH this semaphore has a limit of 2, not 3: s");
	/* And not that it would wait for itself. */
	fixture_say(f, 0, "ACQUIRE s LIMIT 1", "-MISMATCH this semaphore has a limit of 2, not 1: s");
	fixture_say(f, 1, "LIMIT s", ":2");
	fixture_say(f, 0, "RELEASE s", ":0");
	fixture_say(f, 1, "ACQUIRE s LIMIT 3", ":1");
	fixture_say(f, 0, "LOCK l", ":3072");
	fixture_say(f, 1, "LIMIT l", "-MISMATCH this name is in use as a lock, not as a semaphore: l");
}

ALONE(operators_change_the_limit)
{
	fixture_say(f, 0, "ACQUIRE s LIMIT 1", ":1");
	fixture_say(f, 1, "ACQUIRE s LIMIT 1", "");
	fixture_say(f, 0, "LIMIT s 2", ":2");
	fixture_expect(f, 1, "-MISMATCH this semaphore has a limit of 2, not 1: s");
	fixture_say(f, 1, "ACQUIRE s LIMIT 2", ":1");
	fixture_operators(f, false);
	fixture_say(f, 0, "LIMIT s 3", "-DENIED only operators may change a limit" DENIED_HOW);
}

TEST(another_limit_is_refused_and_nothing_created)
{
	fixture_ask(f, 0, "ACQUIRE s LIMIT 3");
	fixture_answer_get(f, 1, 0, SEMAPHORE_DATA(2));
	fixture_expect(f, 0, "-MISMATCH this semaphore has a limit of 2, not 3: s");
	fixture_no_op(f);
}

TEST(who_does_not_say_a_limit_is_told_one_under_the_mutex)
{
	fixture_ask(f, 0, "ACQUIRE s LIMIT 3");
	turn_comes(f, "10.0.0.7", f->znode);
	assert_string_equal(fixture_op(f, EFFECT_ZK_SET, "/lb/s")->data, SEMAPHORE_DATA(3));
	fixture_answer(f, ZK_OK);
	fixture_serve_get(f, "/lb/s", 1, 0, SEMAPHORE_DATA(3));
	turn_listed(f, f->znode);
	fixture_op(f, EFFECT_ZK_CREATE, "-lease-");
}

TEST(whose_limit_is_another_one_is_told_so_first)
{
	permit_held(f, f->znode);
	fixture_say(f, 0, "ACQUIRE s LIMIT 1", "-MISMATCH this semaphore has a limit of 3, not 1: s");
	fixture_watch(f, ZK_WATCH_CHANGED, "/lb/s"); /* it may be agreed on by now */
	fixture_say(f, 0, "ACQUIRE s LIMIT 1",
		    "-DEADLOCK this client has 1 permits and asks for 1 more: it would wait for itself; release some first");
}

/* Somebody overwrote the data, and so the limit, while permits are waited for: who is next says it again. */
TEST(a_limit_that_was_overwritten_is_said_again)
{
	char mutex[128], lease[128];

	fixture_ask(f, 0, "ACQUIRE s LIMIT 2 COUNT 1");
	turn_comes(f, SEMAPHORE_DATA(2), mutex);
	turn_listed(f, mutex);
	fixture_answer_made(f, 3, 80, lease, sizeof(lease));
	fixture_answer_list(f, 2, 3, (const char *[]){ foreign_lease, "_c_x-lease-0000000002", lease });
	turn_listed(f, mutex);
	fixture_answer_list(f, 2, 3, (const char *[]){ foreign_lease, "_c_x-lease-0000000002", lease });
	fixture_no_op(f);
	fixture_watch(f, ZK_WATCH_CHANGED, "/lb/s");
	fixture_serve_get(f, "/lb/s", 1, 0, "");
	while (fixture_is_open(f) && fixture_oldest(f)->effect.type == EFFECT_ZK_LIST)
		fixture_answer_list(f, 2, 1, (const char *[]){ lease });
	fixture_expect(f, 0, "");
	assert_string_equal(fixture_op(f, EFFECT_ZK_SET, "/lb/s")->data, SEMAPHORE_DATA(2));
	fixture_answer(f, ZK_OK);
	fixture_answer_get(f, 1, 0, SEMAPHORE_DATA(2));
	fixture_op(f, EFFECT_ZK_LIST, "/lb/s/leases");
	fixture_answer_list(f, 2, 1, (const char *[]){ lease });
	fixture_expect(f, 0, ":1");
}

TEST(limit_reads_and_sets_what_zookeeper_has)
{
	fixture_ask(f, 0, "LIMIT s");
	fixture_answer_get(f, 1, 0, SEMAPHORE_DATA(3));
	fixture_expect(f, 0, ":3");
	fixture_ask(f, 0, "LIMIT s 2");
	fixture_answer_get(f, 1, 0, SEMAPHORE_DATA(3));
	assert_string_equal(fixture_op(f, EFFECT_ZK_SET, "/lb/s")->data, SEMAPHORE_DATA(2));
	assert_true(fixture_op(f, EFFECT_ZK_SET, "/lb/s")->effect.exact);
	fixture_answer(f, ZK_OK);
	fixture_expect(f, 0, ":2");
	fixture_ask(f, 0, "LIMIT s 2");
	fixture_answer_get(f, 1, 0, LOCK_DATA);
	fixture_expect(f, 0,
		       "-MISMATCH this name is in use as a lock, not as a semaphore, until some minutes after its last use");
	fixture_no_op(f);
	fixture_ask(f, 0, "LIMIT s");
	fixture_answer(f, ZK_NONODE);
	fixture_expect(f, 0, "$-1");
}

/* Read, and before it is set the semaphore is gone and somebody makes a lock of that name. */
TEST(limit_writes_over_nothing_that_it_has_not_read)
{
	fixture_ask(f, 0, "LIMIT s 2");
	fixture_answer_get(f, 1, 0, SEMAPHORE_DATA(3));
	fixture_serve(f, EFFECT_ZK_SET, "/lb/s", ZK_BADVERSION);
	fixture_expect(f, 0, "");
	fixture_answer_get(f, 1, 0, SEMAPHORE_DATA(3));
	fixture_serve(f, EFFECT_ZK_SET, "/lb/s", ZK_BADVERSION);
	fixture_answer_get(f, 2, 0, LOCK_DATA);
	fixture_expect(f, 0,
		       "-MISMATCH this name is in use as a lock, not as a semaphore, until some minutes after its last use");
	fixture_no_op(f);
	fixture_ask(f, 0, "LIMIT s 2");
	for (int tries = 0; tries < 8; tries++) {
		fixture_answer_get(f, 1, 0, SEMAPHORE_DATA(3));
		fixture_answer(f, ZK_BADVERSION);
	}
	fixture_expect(f, 0, "-UNAVAILABLE ZooKeeper refused to tell the limit");
	fixture_no_op(f);
}

TEST(a_limit_that_nobody_could_agree_to_is_none)
{
	static const char *const impossible[] = { "0", "-5", "1000001", "9223372036854775807" };
	char data[64];

	for (size_t i = 0; i < 4; i++) {
		snprintf(data, sizeof(data), "1\nkind=semaphore\nlimit=%s\n", impossible[i]);
		fixture_ask(f, 0, "LIMIT s");
		fixture_answer_get(f, 1, 0, data);
		fixture_expect(f, 0, "$-1");
	}
}
