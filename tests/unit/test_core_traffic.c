/* SPDX-License-Identifier: Apache-2.0 */
/* What a lock asks of ZooKeeper, operation by operation: nothing that is superfluous, nothing that others wait for. */
#include <stdio.h>
#include <string.h>

#include "claim_fixture.h"
#include "core_test.h"

/* Behind all that the tests make. */
static const char foreign_last[] = "_c_4c61f3c2-7f3c-4c11-9d3e-1c6f0f3a9b11-__WRIT__0000000200";

/* The znode that takes over from f->znode. */
static char next[128];

SETUP(setup, false, 4)

/* Grants that follow each other, to 0 and 1 in turn, until n of the next one would be `end`; who holds it then. */
static uint32_t hand_off(struct fixture *f, uint32_t holder, int begin, int end)
{
	for (int n = begin; n < end; n++) {
		fixture_ask(f, !holder, "LOCK a");
		fixture_ask(f, holder, "UNLOCK a");
		holder = !holder;
	}
	bytes_clear(&f->replies[0]);
	bytes_clear(&f->replies[1]);
	return holder;
}

static void expect_list(struct fixture *f, bool watch)
{
	assert_int_equal(fixture_op(f, EFFECT_ZK_LIST, "/lb/a")->effect.watch, watch);
}

static void lists(struct fixture *f, bool watch, size_t count, const char *const *children)
{
	expect_list(f, watch);
	fixture_answer_list(f, 1, count, children);
}

/* Held by 0, handed off once, known to be wanted by nobody else. */
static void held_and_quiet(struct fixture *f)
{
	fixture_held(f, f->znode);
	assert_int_equal(hand_off(f, 0, 0, 1), 1);
	lists(f, true, 1, (const char *[]){ f->znode });
	fixture_no_op(f);
}

/*
 * The znode, which 1 holds, comes to the end of its tokens; 0 holds next, which stands behind. That is asked for with grant
 * number 768, and its create fires the watch.
 */
static void spend(struct fixture *f)
{
	uint32_t holder = hand_off(f, 1, 1, 767);

	fixture_no_op(f);
	holder = hand_off(f, holder, 767, 768);
	fixture_op(f, EFFECT_ZK_CREATE, "-__WRIT__");
	fixture_watch(f, ZK_WATCH_CHILDREN, "/lb/a");
	fixture_answer_made(f, 99, 99, next, sizeof(next));
	lists(f, true, 2, (const char *[]){ next, f->znode });
	fixture_no_op(f);
	assert_int_equal(hand_off(f, holder, 768, 1023), 1);
	fixture_no_op(f);
	fixture_ask(f, 0, "LOCK a");
	fixture_say(f, 1, "UNLOCK a", ":0");
	fixture_expect(f, 0, ":101376"); /* 99 << 10 */
	fixture_no_op(f);
}

static void spent(struct fixture *f)
{
	held_and_quiet(f);
	spend(f);
}

static void is_deleted(struct fixture *f, const char *name)
{
	fixture_serve(f, EFFECT_ZK_DELETE, name, ZK_OK);
	fixture_no_op(f);
}

static void unlock_deletes(struct fixture *f, const char *name)
{
	fixture_say(f, 0, "UNLOCK a", ":0");
	is_deleted(f, name);
}

/* What a warm lock costs: a delete, a create and a list, together, once in 1,024 grants; no grant waits for them. */
TEST(a_warm_lock_goes_on_on_its_next_znode_without_a_gap)
{
	char third[128];

	spent(f);
	for (uint32_t round = 0; round < 3; round++) {
		uint32_t holder = hand_off(f, 0, 0, 768);

		fixture_op(f, EFFECT_ZK_DELETE, f->znode);
		assert_int_equal(f->end_op - f->first_op, 3);
		fixture_watch(f, ZK_WATCH_CHILDREN, "/lb/a");
		fixture_answer(f, ZK_OK);
		fixture_answer_made(f, 100 + round, 100 + round, third, sizeof(third));
		lists(f, true, 2, (const char *[]){ third, next });
		assert_int_equal(hand_off(f, holder, 768, 1024), 0);
		fixture_no_op(f);
		memcpy(f->znode, next, sizeof(f->znode));
		memcpy(next, third, sizeof(next));
	}
}

/* So many are open, and all but the last have another behind them. */
static void expect_together(struct fixture *f, size_t count)
{
	assert_int_equal(f->end_op - f->first_op, count);
	for (size_t i = 0; i < count; i++)
		assert_int_equal(f->ops[(f->first_op + i) % FIXTURE_OPS].effect.more, i + 1 < count);
}

TEST(what_is_asked_at_once_may_go_out_together)
{
	spent(f);
	hand_off(f, 0, 0, 768);
	expect_together(f, 3);
}

TEST_IN(what_is_asked_later_does_not_wait_for_it, claim_setup_linger)
{
	fixture_held(f, f->znode);
	fixture_say(f, 0, "UNLOCK a", ":0");
	lists(f, true, 1, (const char *[]){ f->znode });
	fixture_pass(f, 100);
	expect_together(f, 1);
	fixture_ask(f, 0, "LOCK a");
	assert_false(fixture_op(f, EFFECT_ZK_DELETE, f->znode)->effect.more);
	fixture_answer(f, ZK_OK);
	expect_together(f, 2);
}

/* One client alone never waits: what its lock needs next is there all the same. */
TEST_IN(a_lock_of_one_client_goes_on_without_a_gap, claim_setup_linger)
{
	held_and_quiet(f);
	for (int n = 1; n <= 1024; n++) {
		char reply[32];

		snprintf(reply, sizeof(reply), ":%d", n < 1023 ? 78849 + n : 101376 + n - 1023);
		fixture_say(f, 1, "UNLOCK a", ":0");
		fixture_say(f, 1, "LOCK a", reply);
		if (n != 767)
			continue;
		fixture_op(f, EFFECT_ZK_CREATE, "-__WRIT__");
		fixture_watch(f, ZK_WATCH_CHILDREN, "/lb/a");
		/* The event is most likely of our own doing: that does not end it. */
		fixture_say(f, 1, "UNLOCK a", ":0");
		fixture_say(f, 1, "LOCK a", ":79617");
		fixture_answer_made(f, 99, 99, next, sizeof(next));
		lists(f, true, 2, (const char *[]){ next, f->znode });
		n++;
	}
	fixture_no_op(f);
	/* At its end the spent one goes first. */
	fixture_say(f, 1, "UNLOCK a", ":0");
	fixture_no_op(f);
	fixture_pass(f, 100);
	fixture_serve(f, EFFECT_ZK_DELETE, f->znode, ZK_OK);
	is_deleted(f, next);
}

/* What its data say is believed as long as it stands, whoever has followed it. */
TEST_IN(what_follows_a_znode_that_was_said_to_be_held_does_not_linger, claim_setup_linger)
{
	static const char beta_tries[] = "_c_2000abcd-ef01-8234-8580-000000000004-__WRIT__0000000009";
	held_and_quiet(f);
	fixture_watch(f, ZK_WATCH_CHILDREN, "/lb/a");
	lists(f, true, 2, (const char *[]){ f->znode, beta_tries });
	assert_non_null(strstr(fixture_op(f, EFFECT_ZK_SET, f->znode)->data, "\nheld=1\n"));
	fixture_answer(f, ZK_OK);
	fixture_watch(f, ZK_WATCH_CHILDREN, "/lb/a");
	fixture_pass(f, 1000);
	fixture_answer_beats(f);
	lists(f, true, 1, (const char *[]){ f->znode });
	spend(f);
	fixture_say(f, 0, "UNLOCK a", ":0");
	fixture_serve(f, EFFECT_ZK_DELETE, f->znode, ZK_OK);
	is_deleted(f, next);
}

TEST_IN(a_spent_znode_goes_when_somebody_comes, claim_setup_linger)
{
	spent(f);
	fixture_watch(f, ZK_WATCH_CHILDREN, "/lb/a");
	fixture_pass(f, 999);
	fixture_no_op(f);
	fixture_pass(f, 1);
	lists(f, true, 3, (const char *[]){ foreign_last, next, f->znode });
	fixture_serve(f, EFFECT_ZK_DELETE, f->znode, ZK_OK);
	fixture_serve_get(f, next, 99, SESSION, "");
	fixture_serve(f, EFFECT_ZK_SET, next, ZK_OK);
	fixture_no_op(f);
	unlock_deletes(f, next);
}

TEST(a_spent_znode_stays_over_a_reconnection)
{
	spent(f);
	fixture_reconnect(f);
	lists(f, false, 2, (const char *[]){ f->znode, next });
	fixture_no_op(f);
	fixture_say(f, 0, "VALID a", ":8000");
	fixture_say(f, 0, "UNLOCK a", ":0");
	fixture_serve(f, EFFECT_ZK_DELETE, f->znode, ZK_OK);
	is_deleted(f, next);
}

/* Somebody deleted what took over while it waited, or since: others are kept out until its holder is told. */
TEST_IN(who_took_over_is_told_of_its_loss_before_others_are_let_in, claim_setup_linger)
{
	spent(f);
	fixture_watch(f, ZK_WATCH_CHILDREN, "/lb/a");
	fixture_no_op(f);
	fixture_pass(f, 1000);
	lists(f, true, 2, (const char *[]){ f->znode, foreign_last });
	fixture_serve(f, EFFECT_ZK_DELETE, f->znode, ZK_OK);
	fixture_say(f, 0, "VALID a", ":0");
	fixture_no_op(f);
}

TEST(who_took_over_is_told_of_its_loss_before_others_are_let_in_after_a_reconnection)
{
	spent(f);
	fixture_reconnect(f);
	lists(f, false, 2, (const char *[]){ f->znode, foreign_last });
	fixture_serve(f, EFFECT_ZK_DELETE, f->znode, ZK_OK);
	fixture_say(f, 0, "VALID a", ":0");
	fixture_no_op(f);
}

/* Its delete is tried again every second: while it is on its way once more nothing takes its place. */
TEST(a_spent_znode_that_may_not_be_deleted_counts)
{
	char third[128];
	uint32_t holder;

	spent(f);
	holder = hand_off(f, 0, 0, 768);
	fixture_op(f, EFFECT_ZK_DELETE, f->znode);
	fixture_watch(f, ZK_WATCH_CHILDREN, "/lb/a");
	fixture_answer(f, ZK_REFUSED);
	fixture_answer_made(f, 100, 100, third, sizeof(third));
	fixture_answer_list(f, 1, 3, (const char *[]){ third, f->znode, next });
	holder = hand_off(f, holder, 768, 1024);
	fixture_pass(f, 1000);
	while (f->ops[f->first_op % FIXTURE_OPS].effect.type == EFFECT_ZK_SET)
		fixture_answer(f, ZK_OK);
	fixture_op(f, EFFECT_ZK_DELETE, f->znode);
	holder = hand_off(f, holder, 0, 768);
	assert_int_equal(f->end_op - f->first_op, 1);
	fixture_answer(f, ZK_OK);
	fixture_serve(f, EFFECT_ZK_DELETE, next, ZK_OK);
	fixture_op(f, EFFECT_ZK_CREATE, "-__WRIT__");
}

TEST(nobody_takes_over_past_who_stands_between)
{
	uint32_t holder;

	f->conf.handoff_max = 100000;
	f->conf.handoff_ns = 1000000 * MS;
	held_and_quiet(f);
	holder = hand_off(f, 1, 1, 768);
	fixture_watch(f, ZK_WATCH_CHILDREN, "/lb/a");
	fixture_answer_made(f, 99, 99, next, sizeof(next));
	fixture_answer_list(f, 1, 3, (const char *[]){ next, f->znode, foreign_high });
	fixture_refuse_own(f);
	fixture_serve_get(f, foreign_high, 90, 9, "");
	holder = hand_off(f, holder, 768, 1023);
	fixture_no_op(f);
	fixture_ask(f, !holder, "LOCK a");
	fixture_ask(f, holder, "UNLOCK a");
	fixture_expect(f, !holder, "");
	is_deleted(f, f->znode);
}

/* Nothing but a znode of ours before it: that goes, and whether it is first now, is asked in one breath. */
TEST_IN(what_waits_behind_our_own_is_listed_with_its_delete, claim_setup_strict)
{
	fixture_held(f, f->znode);
	fixture_ask(f, 1, "LOCK a");
	fixture_say(f, 0, "UNLOCK a", ":0");
	fixture_answer_made(f, 10, 90, next, sizeof(next));
	fixture_answer_list(f, 1, 2, (const char *[]){ f->znode, next });
	fixture_serve(f, EFFECT_ZK_DELETE, f->znode, ZK_OK);
	lists(f, true, 1, (const char *[]){ next });
	fixture_expect(f, 1, ":92160");
	fixture_no_op(f);
}

/* A hand-off between hosts: one event, one list, and one delete that waits for nothing. */
TEST_IN(a_hand_off_between_hosts_is_one_event_one_list_and_one_delete, claim_setup_linger)
{
	claim_waits(f, f->znode);
	fixture_watch_contender(f, ZK_WATCH_DELETED, foreign_low);
	lists(f, true, 2, (const char *[]){ foreign_high, f->znode });
	fixture_expect(f, 0, ":78848");
	fixture_no_op(f);
	unlock_deletes(f, f->znode);
}

/* He came after the list: the watch has told that something has changed. */
TEST_IN(who_comes_while_it_is_held_is_not_kept_waiting, claim_setup_linger)
{
	claim_waits(f, f->znode);
	fixture_watch_contender(f, ZK_WATCH_DELETED, foreign_low);
	fixture_answer_list(f, 1, 1, (const char *[]){ f->znode });
	fixture_expect(f, 0, ":78848");
	fixture_watch(f, ZK_WATCH_CHILDREN, "/lb/a");
	fixture_no_op(f);
	unlock_deletes(f, f->znode);
}

/* Where somebody waited behind the last claim: 0 holds the next one, as the list showed that came without a watch. */
static void contended_again(struct fixture *f, const char *other)
{
	a_hand_off_between_hosts_is_one_event_one_list_and_one_delete((void **)&f);
	fixture_ask(f, 0, "LOCK a");
	fixture_serve_made(f, "-__WRIT__", 10, 90, f->znode);
	fixture_answer_list(f, 1, 2, (const char *[]){ f->znode, foreign_high });
	fixture_refuse_own(f);
	fixture_serve_get(f, foreign_high, 90, 9, "");
	fixture_watch_contender(f, ZK_WATCH_DELETED, foreign_high);
	lists(f, false, other ? 2 : 1, (const char *[]){ f->znode, other });
	fixture_expect(f, 0, ":92160");
}

/* A watch would be one event more in every hand-off, and tell what the list has told. */
TEST_IN(among_many_a_hand_off_sets_no_watch, claim_setup_linger)
{
	contended_again(f, "_c_4c61f3c2-7f3c-4c11-9d3e-1c6f0f3a9b11-__WRIT__0000000011");
	fixture_no_op(f);
	unlock_deletes(f, f->znode);
}

/* Nobody is left: whoever comes is to be heard of. */
TEST_IN(the_last_of_many_watches_who_comes, claim_setup_linger)
{
	contended_again(f, NULL);
	lists(f, true, 1, (const char *[]){ f->znode });
	fixture_no_op(f);
	fixture_watch(f, ZK_WATCH_CHILDREN, "/lb/a");
	unlock_deletes(f, f->znode);
}

TEST(what_is_kept_although_somebody_waits_is_watched_after_a_second)
{
	claim_waits(f, f->znode);
	fixture_watch_contender(f, ZK_WATCH_DELETED, foreign_low);
	fixture_answer_list(f, 1, 2, (const char *[]){ foreign_high, f->znode });
	fixture_expect(f, 0, ":78848");
	fixture_pass(f, 99);
	fixture_no_op(f);
	fixture_pass(f, 1);
	fixture_serve(f, EFFECT_ZK_SET, f->znode, ZK_OK); /* who waits may ask who holds it */
	fixture_pass(f, 899);
	fixture_no_op(f);
	fixture_pass(f, 1);
	assert_true(fixture_op(f, EFFECT_ZK_GET, f->znode)->effect.watch);
	fixture_answer_get(f, 77, SESSION, "");
	fixture_no_op(f);
}
