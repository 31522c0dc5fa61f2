/* SPDX-License-Identifier: Apache-2.0 */
/* What a lock asks of ZooKeeper, operation by operation: nothing that is superfluous, nothing that others wait for. */
#include <stdio.h>
#include <string.h>

#include "claim_fixture.h"

/* Behind all that the tests make. */
static const char foreign_last[] = "_c_4c61f3c2-7f3c-4c11-9d3e-1c6f0f3a9b11-__WRIT__0000000200";

static int setup(void **state)
{
	return fixture_setup(fixture_new(false), 4, state);
}

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

/* Held by 0, handed off once, known to be wanted by nobody else. */
static void held_and_quiet(struct fixture *f, char name[128])
{
	fixture_held(f, name);
	assert_int_equal(hand_off(f, 0, 0, 1), 1);
	expect_list(f, true);
	fixture_answer_list(f, 1, 1, (const char *[]){ name });
	fixture_no_op(f);
}

/* The next one is asked for with grant number 768, and stands behind `name`: its create fires the watch. */
static uint32_t queue_next(struct fixture *f, uint32_t holder, const char *name, uint32_t seq, char next[128])
{
	holder = hand_off(f, holder, 767, 768);
	fixture_op(f, EFFECT_ZK_CREATE, "-__WRIT__");
	fixture_watch(f, ZK_WATCH_CHILDREN, "/lb/a");
	fixture_answer_made(f, seq, seq, next, 128);
	expect_list(f, true);
	fixture_answer_list(f, 1, 2, (const char *[]){ next, name });
	fixture_no_op(f);
	return holder;
}

/* `name`, which 1 holds, comes to the end of its tokens; 0 holds next, which stands behind. */
static void spend(struct fixture *f, const char name[128], char next[128])
{
	uint32_t holder = hand_off(f, 1, 1, 767);

	fixture_no_op(f);
	holder = queue_next(f, holder, name, 99, next);
	assert_int_equal(hand_off(f, holder, 768, 1023), 1);
	fixture_no_op(f);
	fixture_ask(f, 0, "LOCK a");
	fixture_say(f, 1, "UNLOCK a", ":0");
	fixture_expect(f, 0, ":101376"); /* 99 << 10 */
	fixture_no_op(f);
}

static void spent(struct fixture *f, char name[128], char next[128])
{
	held_and_quiet(f, name);
	spend(f, name, next);
}

/* What a warm lock costs: a delete, a create and a list, together, once in 1,024 grants; no grant waits for them. */
TEST(a_warm_lock_goes_on_on_its_next_znode_without_a_gap)
{
	struct fixture *f = *state;
	char name[128], next[128], third[128];

	spent(f, name, next);
	for (uint32_t round = 0; round < 3; round++) {
		uint32_t holder = hand_off(f, 0, 0, 768);

		fixture_op(f, EFFECT_ZK_DELETE, name);
		assert_int_equal(f->end_op - f->first_op, 3);
		fixture_watch(f, ZK_WATCH_CHILDREN, "/lb/a");
		fixture_answer(f, ZK_OK);
		fixture_answer_made(f, 100 + round, 100 + round, third, sizeof(third));
		expect_list(f, true);
		fixture_answer_list(f, 1, 2, (const char *[]){ third, next });
		assert_int_equal(hand_off(f, holder, 768, 1024), 0);
		fixture_no_op(f);
		memcpy(name, next, sizeof(name));
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
	struct fixture *f = *state;
	char name[128], next[128];

	spent(f, name, next);
	hand_off(f, 0, 0, 768);
	expect_together(f, 3);
}

TEST_IN(what_is_asked_later_does_not_wait_for_it, claim_setup_linger)
{
	struct fixture *f = *state;
	char name[128];

	fixture_held(f, name);
	fixture_say(f, 0, "UNLOCK a", ":0");
	expect_list(f, true);
	fixture_answer_list(f, 1, 1, (const char *[]){ name });
	fixture_pass(f, 100);
	expect_together(f, 1);
	fixture_ask(f, 0, "LOCK a");
	assert_false(fixture_op(f, EFFECT_ZK_DELETE, name)->effect.more);
	fixture_answer(f, ZK_OK);
	expect_together(f, 2);
}

/* One client alone never waits: what its lock needs next is there all the same. */
TEST_IN(a_lock_of_one_client_goes_on_without_a_gap, claim_setup_linger)
{
	struct fixture *f = *state;
	char name[128], next[128];

	held_and_quiet(f, name);
	for (int n = 1; n <= 1024; n++) {
		char reply[32];

		snprintf(reply, sizeof(reply), ":%d", n < 1023 ? 78849 + n : 101376 + n - 1023);
		fixture_say(f, 1, "UNLOCK a", ":0");
		fixture_say(f, 1, "LOCK a", reply);
		if (n != 767)
			continue;
		fixture_op(f, EFFECT_ZK_CREATE, "-__WRIT__");
		fixture_watch(f, ZK_WATCH_CHILDREN, "/lb/a");
		fixture_say(f, 1, "UNLOCK a",
			    ":0"); /* the event is most likely of our own doing: that does not end it */
		fixture_say(f, 1, "LOCK a", ":79617");
		fixture_answer_made(f, 99, 99, next, sizeof(next));
		expect_list(f, true);
		fixture_answer_list(f, 1, 2, (const char *[]){ next, name });
		n++;
	}
	fixture_no_op(f);
	/* At its end the spent one goes first. */
	fixture_say(f, 1, "UNLOCK a", ":0");
	fixture_no_op(f);
	fixture_pass(f, 100);
	fixture_op(f, EFFECT_ZK_DELETE, name);
	fixture_answer(f, ZK_OK);
	fixture_op(f, EFFECT_ZK_DELETE, next);
	fixture_answer(f, ZK_OK);
	fixture_no_op(f);
}

/* What its data say is believed as long as it stands, whoever has followed it. */
TEST_IN(what_follows_a_znode_that_was_said_to_be_held_does_not_linger, claim_setup_linger)
{
	static const char beta_tries[] = "_c_2000abcd-ef01-8234-8580-000000000004-__WRIT__0000000009";
	struct fixture *f = *state;
	char name[128], next[128];

	held_and_quiet(f, name);
	fixture_watch(f, ZK_WATCH_CHILDREN, "/lb/a");
	expect_list(f, true);
	fixture_answer_list(f, 1, 2, (const char *[]){ name, beta_tries });
	assert_non_null(strstr(fixture_op(f, EFFECT_ZK_SET, name)->data, "\nheld=1\n"));
	fixture_answer(f, ZK_OK);
	fixture_watch(f, ZK_WATCH_CHILDREN, "/lb/a");
	fixture_pass(f, 1000);
	fixture_answer_beats(f);
	expect_list(f, true);
	fixture_answer_list(f, 1, 1, (const char *[]){ name });
	spend(f, name, next);
	fixture_say(f, 0, "UNLOCK a", ":0");
	fixture_op(f, EFFECT_ZK_DELETE, name);
	fixture_answer(f, ZK_OK);
	fixture_op(f, EFFECT_ZK_DELETE, next);
	fixture_answer(f, ZK_OK);
	fixture_no_op(f);
}

TEST_IN(a_spent_znode_goes_when_somebody_comes, claim_setup_linger)
{
	struct fixture *f = *state;
	char name[128], next[128];

	spent(f, name, next);
	fixture_watch(f, ZK_WATCH_CHILDREN, "/lb/a");
	fixture_pass(f, 999);
	fixture_no_op(f);
	fixture_pass(f, 1);
	expect_list(f, true);
	fixture_answer_list(f, 1, 3, (const char *[]){ foreign_last, next, name });
	fixture_op(f, EFFECT_ZK_DELETE, name);
	fixture_answer(f, ZK_OK);
	fixture_op(f, EFFECT_ZK_GET, next);
	fixture_answer_get(f, 99, SESSION, "");
	fixture_op(f, EFFECT_ZK_SET, next);
	fixture_answer(f, ZK_OK);
	fixture_no_op(f);
	fixture_say(f, 0, "UNLOCK a", ":0");
	fixture_op(f, EFFECT_ZK_DELETE, next);
	fixture_answer(f, ZK_OK);
	fixture_no_op(f);
}

TEST(a_spent_znode_stays_over_a_reconnection)
{
	struct fixture *f = *state;
	char name[128], next[128];

	spent(f, name, next);
	fixture_simple(f, EVENT_ZK_SUSPENDED, 0);
	fixture_reconnected(f);
	expect_list(f, false);
	fixture_answer_list(f, 1, 2, (const char *[]){ name, next });
	fixture_no_op(f);
	fixture_say(f, 0, "VALID a", ":8000");
	fixture_say(f, 0, "UNLOCK a", ":0");
	fixture_op(f, EFFECT_ZK_DELETE, name);
	fixture_answer(f, ZK_OK);
	fixture_op(f, EFFECT_ZK_DELETE, next);
	fixture_answer(f, ZK_OK);
	fixture_no_op(f);
}

/* Somebody deleted what took over while it waited, or since: others are kept out until its holder is told. */
TEST_IN(who_took_over_is_told_of_its_loss_before_others_are_let_in, claim_setup_linger)
{
	struct fixture *f = *state;
	char name[128], next[128];

	spent(f, name, next);
	fixture_watch(f, ZK_WATCH_CHILDREN, "/lb/a");
	fixture_no_op(f);
	fixture_pass(f, 1000);
	expect_list(f, true);
	fixture_answer_list(f, 1, 2, (const char *[]){ name, foreign_last });
	fixture_op(f, EFFECT_ZK_DELETE, name);
	fixture_answer(f, ZK_OK);
	fixture_say(f, 0, "VALID a", ":0");
	fixture_no_op(f);
}

TEST(who_took_over_is_told_of_its_loss_before_others_are_let_in_after_a_reconnection)
{
	struct fixture *f = *state;
	char name[128], next[128];

	spent(f, name, next);
	fixture_simple(f, EVENT_ZK_SUSPENDED, 0);
	fixture_reconnected(f);
	expect_list(f, false);
	fixture_answer_list(f, 1, 2, (const char *[]){ name, foreign_last });
	fixture_op(f, EFFECT_ZK_DELETE, name);
	fixture_answer(f, ZK_OK);
	fixture_say(f, 0, "VALID a", ":0");
	fixture_no_op(f);
}

/* Its delete is tried again every second: while it is on its way once more nothing takes its place. */
TEST(a_spent_znode_that_may_not_be_deleted_counts)
{
	struct fixture *f = *state;
	char name[128], next[128], third[128];
	uint32_t holder;

	spent(f, name, next);
	holder = hand_off(f, 0, 0, 768);
	fixture_op(f, EFFECT_ZK_DELETE, name);
	fixture_watch(f, ZK_WATCH_CHILDREN, "/lb/a");
	fixture_answer(f, ZK_REFUSED);
	fixture_answer_made(f, 100, 100, third, sizeof(third));
	fixture_answer_list(f, 1, 3, (const char *[]){ third, name, next });
	holder = hand_off(f, holder, 768, 1024);
	fixture_pass(f, 1000);
	while (f->ops[f->first_op % FIXTURE_OPS].effect.type == EFFECT_ZK_SET)
		fixture_answer(f, ZK_OK);
	fixture_op(f, EFFECT_ZK_DELETE, name);
	holder = hand_off(f, holder, 0, 768);
	assert_int_equal(f->end_op - f->first_op, 1);
	fixture_answer(f, ZK_OK);
	fixture_op(f, EFFECT_ZK_DELETE, next);
	fixture_answer(f, ZK_OK);
	fixture_op(f, EFFECT_ZK_CREATE, "-__WRIT__");
}

TEST(nobody_takes_over_past_who_stands_between)
{
	struct fixture *f = *state;
	char name[128], next[128];
	uint32_t holder;

	f->conf.handoff_max = 100000;
	f->conf.handoff_ns = 1000000 * MS;
	held_and_quiet(f, name);
	holder = hand_off(f, 1, 1, 768);
	fixture_watch(f, ZK_WATCH_CHILDREN, "/lb/a");
	fixture_answer_made(f, 99, 99, next, sizeof(next));
	fixture_answer_list(f, 1, 3, (const char *[]){ next, name, foreign_high });
	fixture_refuse_own(f);
	fixture_op(f, EFFECT_ZK_GET, foreign_high);
	fixture_answer_get(f, 90, 9, "");
	holder = hand_off(f, holder, 768, 1023);
	fixture_no_op(f);
	fixture_ask(f, !holder, "LOCK a");
	fixture_ask(f, holder, "UNLOCK a");
	fixture_expect(f, !holder, "");
	fixture_op(f, EFFECT_ZK_DELETE, name);
	fixture_answer(f, ZK_OK);
	fixture_no_op(f);
}

/* Nothing but a znode of ours before it: that goes, and whether it is first now, is asked in one breath. */
TEST_IN(what_waits_behind_our_own_is_listed_with_its_delete, claim_setup_strict)
{
	struct fixture *f = *state;
	char name[128], next[128];

	fixture_held(f, name);
	fixture_ask(f, 1, "LOCK a");
	fixture_say(f, 0, "UNLOCK a", ":0");
	fixture_answer_made(f, 10, 90, next, sizeof(next));
	fixture_answer_list(f, 1, 2, (const char *[]){ name, next });
	fixture_op(f, EFFECT_ZK_DELETE, name);
	fixture_answer(f, ZK_OK);
	expect_list(f, true);
	fixture_answer_list(f, 1, 1, (const char *[]){ next });
	fixture_expect(f, 1, ":92160");
	fixture_no_op(f);
}

/* A hand-off between hosts: one event, one list, and one delete that waits for nothing. */
TEST_IN(a_hand_off_between_hosts_is_one_event_one_list_and_one_delete, claim_setup_linger)
{
	struct fixture *f = *state;
	char name[128];

	claim_waits(f, name);
	fixture_watch_contender(f, ZK_WATCH_DELETED, foreign_low);
	expect_list(f, true);
	fixture_answer_list(f, 1, 2, (const char *[]){ foreign_high, name });
	fixture_expect(f, 0, ":78848");
	fixture_no_op(f);
	fixture_say(f, 0, "UNLOCK a", ":0");
	fixture_op(f, EFFECT_ZK_DELETE, name);
	fixture_answer(f, ZK_OK);
	fixture_no_op(f);
}

/* He came after the list: the watch has told that something has changed. */
TEST_IN(who_comes_while_it_is_held_is_not_kept_waiting, claim_setup_linger)
{
	struct fixture *f = *state;
	char name[128];

	claim_waits(f, name);
	fixture_watch_contender(f, ZK_WATCH_DELETED, foreign_low);
	fixture_answer_list(f, 1, 1, (const char *[]){ name });
	fixture_expect(f, 0, ":78848");
	fixture_watch(f, ZK_WATCH_CHILDREN, "/lb/a");
	fixture_no_op(f);
	fixture_say(f, 0, "UNLOCK a", ":0");
	fixture_op(f, EFFECT_ZK_DELETE, name);
	fixture_answer(f, ZK_OK);
	fixture_no_op(f);
}

/* Where somebody waited behind the last claim: 0 holds the next one, as the list showed that came without a watch. */
static void contended_again(struct fixture *f, char name[128], size_t count, const char *const *others)
{
	const char *children[4] = { name };

	a_hand_off_between_hosts_is_one_event_one_list_and_one_delete((void **)&f);
	fixture_ask(f, 0, "LOCK a");
	fixture_answer_made(f, 10, 90, name, 128);
	fixture_answer_list(f, 1, 2, (const char *[]){ name, foreign_high });
	fixture_refuse_own(f);
	fixture_op(f, EFFECT_ZK_GET, foreign_high);
	fixture_answer_get(f, 90, 9, "");
	fixture_watch_contender(f, ZK_WATCH_DELETED, foreign_high);
	expect_list(f, false);
	for (size_t i = 0; i < count; i++)
		children[i + 1] = others[i];
	fixture_answer_list(f, 1, count + 1, children);
	fixture_expect(f, 0, ":92160");
}

/* A watch would be one event more in every hand-off, and tell what the list has told. */
TEST_IN(among_many_a_hand_off_sets_no_watch, claim_setup_linger)
{
	struct fixture *f = *state;
	char name[128];

	contended_again(f, name, 1, (const char *[]){ "_c_4c61f3c2-7f3c-4c11-9d3e-1c6f0f3a9b11-__WRIT__0000000011" });
	fixture_no_op(f);
	fixture_say(f, 0, "UNLOCK a", ":0");
	fixture_op(f, EFFECT_ZK_DELETE, name);
	fixture_answer(f, ZK_OK);
	fixture_no_op(f);
}

/* Nobody is left: whoever comes is to be heard of. */
TEST_IN(the_last_of_many_watches_who_comes, claim_setup_linger)
{
	struct fixture *f = *state;
	char name[128];

	contended_again(f, name, 0, NULL);
	expect_list(f, true);
	fixture_answer_list(f, 1, 1, (const char *[]){ name });
	fixture_no_op(f);
	fixture_watch(f, ZK_WATCH_CHILDREN, "/lb/a");
	fixture_say(f, 0, "UNLOCK a", ":0");
	fixture_op(f, EFFECT_ZK_DELETE, name);
	fixture_answer(f, ZK_OK);
	fixture_no_op(f);
}

TEST(what_is_kept_although_somebody_waits_is_watched_after_a_second)
{
	struct fixture *f = *state;
	char name[128];

	claim_waits(f, name);
	fixture_watch_contender(f, ZK_WATCH_DELETED, foreign_low);
	fixture_answer_list(f, 1, 2, (const char *[]){ foreign_high, name });
	fixture_expect(f, 0, ":78848");
	fixture_pass(f, 99);
	fixture_no_op(f);
	fixture_pass(f, 1);
	fixture_op(f, EFFECT_ZK_SET, name); /* who waits may ask who holds it */
	fixture_answer(f, ZK_OK);
	fixture_pass(f, 899);
	fixture_no_op(f);
	fixture_pass(f, 1);
	assert_true(fixture_op(f, EFFECT_ZK_GET, name)->effect.watch);
	fixture_answer_get(f, 77, SESSION, "");
	fixture_no_op(f);
}
