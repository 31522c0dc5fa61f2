/* SPDX-License-Identifier: Apache-2.0 */
/* Tier 2: what a claim asks of ZooKeeper and makes of the answers. The rules' names stand in claim.h and lock.h. */
#include "claim_fixture.h"
#include "core_test.h"

static int setup(void **state)
{
	return fixture_setup(fixture_new(false), 4, state);
}

#define RUNS_OUT \
	"-LIMIT the sequence numbers of this lock's directory run out: it can be used again once nobody uses it: a"

TEST(a_cold_lock_costs_one_breath_and_its_end_one_delete)
{
	fixture_ask(f, 0, "LOCK a/b");
	fixture_serve_get(f, "/lb/a%2Fb", 1, 0, LOCK_DATA);
	fixture_serve_made(f, "-__WRIT__", 5, 77, f->znode);
	assert_memory_equal(f->znode, "_c_1000abcd-ef01-8234-85", 24);
	assert_int_equal(strlen(f->znode), 3 + 36 + 1 + 8 + 10);
	fixture_serve_list(f, "/lb/a%2Fb", 1, (const char *[]){ f->znode });
	fixture_expect(f, 0, ":78848");
	fixture_no_op(f);
	fixture_say(f, 0, "UNLOCK a/b", ":0");
	fixture_serve(f, EFFECT_ZK_DELETE, f->znode, ZK_OK);
	/* The directory is known now: no read of its data. */
	fixture_ask(f, 0, "LOCK a/b");
	fixture_serve_alone(f, "-__WRIT__", 6, 80, f->znode);
	fixture_expect(f, 0, ":81920");
}

/* Pitfall 22. */
TEST(a_waiter_watches_only_its_predecessor_and_lists_when_that_goes)
{
	claim_waits(f, f->znode);
	fixture_watch_contender(f, ZK_WATCH_CHANGED, foreign_low);
	fixture_serve_get(f, foreign_low, 70, 9, "");
	fixture_watch_contender(f, ZK_WATCH_DELETED, foreign_low);
	fixture_expect(f, 0, "");
	fixture_serve_list(f, "/lb/a", 2, (const char *[]){ foreign_high, f->znode });
	fixture_expect(f, 0, ":78848");
}

/* Pitfall 16. */
TEST(nonode_from_the_watch_lists_again)
{
	fixture_join(f, 0, "LOCK a");
	fixture_answer_list(f, 1, 2, (const char *[]){ f->znode, foreign_low });
	fixture_refuse_own(f);
	fixture_answer(f, ZK_NONODE);
	fixture_serve_list(f, "/lb/a", 1, (const char *[]){ f->znode });
	fixture_expect(f, 0, ":78848");
}

TEST(a_waiter_whose_znode_was_deleted_joins_again)
{
	claim_waits(f, f->znode);
	fixture_watch_contender(f, ZK_WATCH_DELETED, foreign_low);
	fixture_answer_list(f, 1, 1, (const char *[]){ foreign_high });
	fixture_expect(f, 0, "");
	fixture_serve_made(f, "-__WRIT__", 10, 90, f->znode);
	fixture_answer_list(f, 1, 2, (const char *[]){ foreign_high, f->znode });
	fixture_refuse_own(f);
	fixture_op(f, EFFECT_ZK_GET, foreign_high);
}

TEST(a_try_behind_another_host_is_nil_and_takes_its_znode_away)
{
	claim_waits(f, f->znode);
	fixture_say(f, 1, "LOCK a WAIT 0", "$-1");
	fixture_no_op(f);
	fixture_simple(f, EVENT_CLIENT_HALF_CLOSED, 0);
	fixture_expect(f, 0, "$-1");
	fixture_serve(f, EFFECT_ZK_DELETE, f->znode, ZK_NONODE);
	fixture_no_op(f);
}

TEST(a_try_without_connection_is_unavailable)
{
	fixture_simple(f, EVENT_ZK_SUSPENDED, 0);
	fixture_say(f, 0, "LOCK a WAIT 0",
		    "-UNAVAILABLE there is no connection to ZooKeeper, so it is not known whether the lock is taken: a");
	fixture_say(f, 0, "LOCK a WAIT 50", "");
	fixture_pass(f, 50);
	fixture_expect(
		f, 0,
		"-UNAVAILABLE there is no connection to ZooKeeper, so it is not known whether the lock is taken: a");
}

TEST(a_hand_off_asks_zookeeper_only_who_waits)
{
	fixture_held(f, f->znode);
	fixture_ask(f, 1, "LOCK a");
	fixture_ask(f, 2, "LOCK a");
	fixture_no_op(f);
	fixture_say(f, 0, "UNLOCK a", ":0");
	fixture_expect(f, 1, ":78849");
	assert_true(fixture_op(f, EFFECT_ZK_LIST, "/lb/a")->effect.watch);
	fixture_answer_list(f, 1, 1, (const char *[]){ f->znode });
	fixture_say(f, 1, "UNLOCK a", ":0");
	fixture_expect(f, 2, ":78850");
	fixture_no_op(f);
}

/* handoff_max = 0: the distributed lock goes before the local one, and next is queued before that. */
TEST_IN(the_strict_order_gives_back_and_queues_next_first, claim_setup_strict)
{
	char name[128], next[128];

	fixture_held(f, name);
	fixture_ask(f, 1, "LOCK a");
	fixture_say(f, 0, "UNLOCK a", ":0");
	fixture_expect(f, 1, "");
	fixture_answer_made(f, 10, 90, next, sizeof(next));
	fixture_serve_list(f, "/lb/a", 3, (const char *[]){ name, foreign_high, next });
	fixture_serve(f, EFFECT_ZK_DELETE, name, ZK_OK);
	fixture_refuse_own(f);
	fixture_serve_get(f, foreign_high, 80, 9, "");
	fixture_watch_contender(f, ZK_WATCH_DELETED, foreign_high);
	fixture_answer_list(f, 1, 1, (const char *[]){ next });
	fixture_expect(f, 1, ":92160");
}

TEST_IN(a_claim_lingers_until_somebody_else_comes, claim_setup_linger)
{
	fixture_held(f, f->znode);
	fixture_say(f, 0, "UNLOCK a", ":0");
	assert_true(fixture_op(f, EFFECT_ZK_LIST, "/lb/a")->effect.watch);
	fixture_answer_list(f, 1, 1, (const char *[]){ f->znode });
	fixture_pass(f, 99);
	fixture_say(f, 1, "LOCK a", ":78849");
	fixture_say(f, 1, "UNLOCK a", ":0");
	fixture_no_op(f);
	fixture_watch(f, ZK_WATCH_CHILDREN, "/lb/a");
	fixture_op(f, EFFECT_ZK_DELETE, f->znode); /* without asking who it is */
	fixture_answer(f, ZK_OK);
	fixture_no_op(f);
}

/* Pitfall 12. */
TEST_IN(an_idle_claim_ends_after_its_linger, claim_setup_linger)
{
	fixture_held(f, f->znode);
	fixture_say(f, 0, "UNLOCK a", ":0");
	fixture_answer_list(f, 1, 1, (const char *[]){ f->znode });
	fixture_pass(f, 100);
	fixture_op(f, EFFECT_ZK_DELETE, f->znode);
}

TEST(a_held_znode_deleted_by_hand_is_told_as_lost)
{
	fixture_held(f, f->znode);
	fixture_pass(f, 1000);
	assert_true(fixture_op(f, EFFECT_ZK_LIST, "/lb/a")->effect.watch);
	fixture_answer_list(f, 1, 1, (const char *[]){ f->znode });
	fixture_watch(f, ZK_WATCH_CHILDREN, "/lb/a");
	fixture_answer_list(f, 1, 1, (const char *[]){ foreign_high });
	fixture_say(f, 0, "VALID a", ":0");
	fixture_say(f, 0, "UNLOCK a", "-LOST the grant was lost before it was released: a");
	fixture_say(f, 0, "UNLOCK a", "-NOTHELD this client does not hold a");
}

TEST(waiters_outlive_a_full_session_at_a_give_back)
{
	fixture_operators(f, false);
	f->conf.handoff_max = 0;
	f->conf.limits.session_path_bytes = fixture_total(2 * (5 + 64) - 1); /* one znode, and what it may watch */
	fixture_held(f, f->znode);
	fixture_ask(f, 1, "LOCK a");
	fixture_say(f, 0, "UNLOCK a", ":0");
	fixture_expect(f, 1, "");
	fixture_serve(f, EFFECT_ZK_DELETE, f->znode, ZK_OK);
	fixture_op(f, EFFECT_ZK_CREATE, "-__WRIT__");
}

TEST(hand_offs_go_on_without_a_connection)
{
	f->conf.handoff_max = 1;
	fixture_held(f, f->znode);
	fixture_ask(f, 1, "LOCK a");
	fixture_ask(f, 2, "LOCK a");
	fixture_ask(f, 3, "LOCK a");
	fixture_simple(f, EVENT_ZK_SUSPENDED, 0);
	fixture_say(f, 0, "UNLOCK a", ":0");
	fixture_pass(f, 300);
	fixture_expect(f, 1, ":78849");
	fixture_say(f, 1, "UNLOCK a", ":0");
	fixture_pass(f, 300);
	fixture_expect(f, 2, ":78850");
	fixture_say(f, 2, "UNLOCK a", ":0");
	fixture_expect(f, 3, ":78851");
}

TEST(a_try_leaves_no_watch_on_the_holder)
{
	fixture_join(f, 0, "LOCK a WAIT 0");
	fixture_answer_list(f, 1, 2, (const char *[]){ f->znode, foreign_low });
	fixture_expect(f, 0, "$-1");
	fixture_serve(f, EFFECT_ZK_DELETE, f->znode, ZK_OK);
	fixture_no_op(f);
}

/* With the first number that nobody may use. */
static void join_near_the_wrap(struct fixture *f)
{
	fixture_ask(f, 0, "LOCK a");
	fixture_answer_get(f, 1, 0, LOCK_DATA);
	fixture_serve_made(f, "-__WRIT__", 2147483647u - (1u << 20), 77, f->znode);
}

/* Pitfall 7. */
TEST(near_the_wrap_nobody_joins)
{
	join_near_the_wrap(f);
	/* The list that went with the create says nothing: it shows what is being deleted. */
	fixture_answer_list(f, 1, 2, (const char *[]){ f->znode, foreign_high });
	fixture_serve(f, EFFECT_ZK_DELETE, f->znode, ZK_OK);
	fixture_expect(f, 0, "");
	fixture_serve_list(f, "/lb/a", 1, (const char *[]){ foreign_high });
	fixture_expect(f, 0, RUNS_OUT);
	/* The next request only looks; once the directory is empty it is made anew. */
	fixture_ask(f, 0, "LOCK a");
	fixture_serve_list(f, "/lb/a", 1, (const char *[]){ foreign_high });
	fixture_expect(f, 0, RUNS_OUT);
	fixture_ask(f, 0, "LOCK a");
	fixture_answer_list(f, 1, 0, NULL);
	fixture_serve(f, EFFECT_ZK_DELETE, "/lb/a", ZK_OK);
	fixture_op(f, EFFECT_ZK_GET, "/lb/a");
}

/* What 0 waits for is empty, and its deletion has been sent. */
static void ending(struct fixture *f)
{
	join_near_the_wrap(f);
	fixture_answer_list(f, 1, 1, (const char *[]){ f->znode });
	fixture_serve(f, EFFECT_ZK_DELETE, f->znode, ZK_OK);
	fixture_answer_list(f, 1, 0, NULL);
	fixture_op(f, EFFECT_ZK_DELETE, "/lb/a");
}

TEST(near_the_wrap_a_directory_of_ours_alone_is_made_anew)
{
	ending(f);
	fixture_answer(f, ZK_OK);
	fixture_answer(f, ZK_NONODE); /* get */
	fixture_answer(f, ZK_NONODE); /* create */
	fixture_answer(f, ZK_NONODE); /* list */
	fixture_answer(f, ZK_OK);     /* the directory */
	fixture_answer_get(f, 90, 0, LOCK_DATA);
	fixture_answer_made(f, 0, 91, f->znode, sizeof(f->znode));
	fixture_answer_list(f, 90, 1, (const char *[]){ f->znode });
	fixture_expect(f, 0, ":93184");
}

/* Of another host, that had known the directory for longer. */
TEST(near_the_wrap_who_came_just_before_the_deletion_is_not_waited_for)
{
	ending(f);
	fixture_answer(f, ZK_NOTEMPTY);
	fixture_expect(f, 0, RUNS_OUT);
	fixture_no_op(f);
	fixture_ask(f, 0, "LOCK a");
	fixture_serve_list(f, "/lb/a", 0, NULL);
	fixture_op(f, EFFECT_ZK_DELETE, "/lb/a");
}

TEST(near_the_wrap_a_deletion_of_unknown_outcome_is_looked_at_again)
{
	ending(f);
	fixture_simple(f, EVENT_ZK_SUSPENDED, 0);
	fixture_expect(f, 0, "");
	fixture_reconnected(f);
	fixture_expect(f, 0, "");
	fixture_serve(f, EFFECT_ZK_LIST, "/lb/a", ZK_NONODE);
	fixture_op(f, EFFECT_ZK_GET, "/lb/a");
	fixture_expect(f, 0, "");
}

TEST(the_session_has_room_for_so_many_paths)
{
	int held = 0;

	fixture_operators(f, false);
	f->conf.limits.session_path_bytes = fixture_total(3 * (5 + 64));
	for (char c = 'a'; c < 'd'; c++, held++) {
		char lock[2] = { c, 0 };

		fixture_lock_held(f, (uint32_t)held, lock, 5, 77, f->znode, sizeof(f->znode));
		bytes_clear(&f->replies[held]);
	}
	fixture_say(
		f, 3, "LOCK d",
		"-LIMIT user 1000 uses 207 of 207 allowed bytes of znode paths in this host's session (limits.session_path_bytes, "
		"limits.user_share): release some locks before you ask for more: d");
	fixture_no_op(f);
}
