/* SPDX-License-Identifier: Apache-2.0 */
/* The claim that is second in line: when it holds without a list, and when only a list says so. The rule is in claim.h. */
#include "claim_fixture.h"
#include "core_test.h"
#include "core/claim/listing.h"
#include "core/state.h"

/* Of two more hosts: between foreign_low and ours, and a reader before all. */
static const char between[] = "_c_4c61f3c2-7f3c-4c11-9d3e-1c6f0f3a9b12-__WRIT__0000000004";
static const char reader_low[] = "_c_4c61f3c2-7f3c-4c11-9d3e-1c6f0f3a9b13-__READ__0000000001";
static const char reader_high[] = "_c_4c61f3c2-7f3c-4c11-9d3e-1c6f0f3a9b15-__READ__0000000004";
static const char writer_by_hand[] = "_c_4c61f3c2-7f3c-4c11-9d3e-1c6f0f3a9b14-__WRIT__0000000002";
/* Of our session, and no claim knows it. */
static const char orphan_low[] = "_c_1000abcd-ef01-8234-8500-0000000fffff-__WRIT__0000000001";
/* Contenders of brokers, which may be idle. */
static const char idle_low[] = "_c_2000abcd-ef01-8234-8500-000000000001-__WRIT__0000000003";
static const char idle_next[] = "_c_3000abcd-ef01-8234-8500-000000000001-__WRIT__0000000004";

SETUP(setup, false, 4)

static void answer_own(struct fixture *f)
{
	assert_true(fixture_op(f, EFFECT_ZK_GET, f->znode)->effect.watch);
	fixture_answer_get(f, 77, SESSION, "1\nhost=alpha\n");
}

static void answer_before(struct fixture *f, const char *before)
{
	assert_true(fixture_op(f, EFFECT_ZK_GET, before)->effect.watch);
	fixture_answer_get(f, 70, BETA, "1\nhost=beta\n");
}

static void expect_list(struct fixture *f)
{
	fixture_op(f, EFFECT_ZK_LIST, "/lb/a");
	fixture_expect(f, 0, "");
}

static void goes_and_it_lists(struct fixture *f, const char *before)
{
	fixture_watch_contender(f, ZK_WATCH_DELETED, before);
	expect_list(f);
}

static void goes_and_it_holds(struct fixture *f, const char *before)
{
	fixture_watch_contender(f, ZK_WATCH_DELETED, before);
	fixture_expect(f, 0, ":78848");
	fixture_no_op(f);
}

/* 0 asks, and a list shows the claim, number 5, the nearest of `before`, and then the others. */
static void ask_behind(struct fixture *f, const char *words, size_t count, const char *const *before)
{
	const char *children[5] = { f->znode };

	for (size_t i = 0; i < count; i++)
		children[1 + (i + 1) % count] = before[i];
	fixture_join(f, 0, words);
	fixture_answer_list(f, 1, count + 1, children);
}

/* 0 waits behind these; its own znode and the two nearest are watched. */
static void waits_behind(struct fixture *f, const char *words, size_t count, const char *const *before)
{
	ask_behind(f, words, count, before);
	answer_own(f);
	for (size_t i = count > 2 ? count - 2 : 0; i < count; i++)
		answer_before(f, before[i]);
	fixture_no_op(f);
	fixture_expect(f, 0, "");
}

static void is_second(struct fixture *f)
{
	waits_behind(f, "LOCK a", 1, (const char *[]){ foreign_low });
}

static void is_third(struct fixture *f)
{
	waits_behind(f, "LOCK a", 2, (const char *[]){ foreign_low, between });
}

static void is_fourth(struct fixture *f)
{
	waits_behind(f, "LOCK a", 3, (const char *[]){ writer_by_hand, foreign_low, between });
}

TEST(holds_when_the_one_before_goes_and_lists_nothing)
{
	is_second(f);
	goes_and_it_holds(f, foreign_low);
	assert_int_equal(f->broker->env.stats.successions_total, 1);
	/* Others may wait by now: it does not linger, nor look who they are. */
	fixture_say(f, 0, "UNLOCK a", ":0");
	fixture_serve(f, EFFECT_ZK_DELETE, f->znode, ZK_OK);
	fixture_no_op(f);
}

TEST(holds_when_the_one_before_is_gone_at_the_read)
{
	ask_behind(f, "LOCK a", 1, (const char *[]){ foreign_low });
	answer_own(f);
	fixture_serve(f, EFFECT_ZK_GET, foreign_low, ZK_NONODE);
	fixture_expect(f, 0, ":78848");
	fixture_no_op(f);
}

/* It stands on its own watch: a deletion by hand is told as soon as it happens. */
TEST(is_told_when_its_znode_is_deleted_then)
{
	is_second(f);
	goes_and_it_holds(f, foreign_low);
	fixture_watch_contender(f, ZK_WATCH_DELETED, f->znode);
	fixture_serve_list(f, "/lb/a", 1, (const char *[]){ foreign_high });
	fixture_say(f, 0, "VALID a", ":0");
}

/* An earlier claim's watch tells of the one before while our own znode is still being read. */
TEST(lists_until_its_own_znode_was_read)
{
	ask_behind(f, "LOCK a", 1, (const char *[]){ foreign_low });
	fixture_watch_contender(f, ZK_WATCH_DELETED, foreign_low);
	answer_own(f); /* of before somebody deleted it, perhaps */
	fixture_answer(f, ZK_NONODE);
	expect_list(f);
	fixture_answer_list(f, 1, 1, (const char *[]){ f->znode });
	fixture_expect(f, 0, ":78848");
	fixture_no_op(f);
}

/* Every tenth look is a list. */
static void look_until_it_lists(struct fixture *f, const char *before)
{
	for (int64_t began = f->now_ns; f->now_ns - began < LOOKS_MAX * 31000 * MS;) {
		fixture_pass(f, 100);
		fixture_answer_beats(f);
		if (!fixture_is_open(f))
			continue;
		if (fixture_oldest(f)->effect.type == EFFECT_ZK_LIST)
			return;
		fixture_serve_get(f, f->znode, 77, SESSION, "");
		fixture_serve_get(f, before, 70, BETA, "");
	}
	fail();
}

/*
 * A list that was under way shows another one instead of the predecessor that is being read: a znode that was made by
 * hand with an older number. That the former predecessor is gone says nothing of this one.
 */
TEST(waits_for_the_one_that_a_list_shows_when_the_one_before_that_is_gone)
{
	is_second(f);
	look_until_it_lists(f, foreign_low);
	fixture_watch_contender(f, ZK_WATCH_CHANGED, foreign_low);
	fixture_serve_list(f, "/lb/a", 2, (const char *[]){ f->znode, writer_by_hand });
	fixture_serve(f, EFFECT_ZK_GET, foreign_low, ZK_NONODE);
	fixture_expect(f, 0, "");
	answer_before(f, writer_by_hand);
	goes_and_it_holds(f, writer_by_hand);
}

TEST(lists_after_its_znode_was_written_until_it_is_watched_again)
{
	is_second(f);
	fixture_watch_contender(f, ZK_WATCH_CHANGED, f->znode);
	answer_own(f);
	fixture_watch_contender(f, ZK_WATCH_CHANGED, f->znode);
	fixture_watch_contender(f, ZK_WATCH_DELETED, foreign_low);
	answer_own(f);
	expect_list(f);
}

TEST(lists_when_its_own_znode_went_first)
{
	is_second(f);
	fixture_watch_contender(f, ZK_WATCH_DELETED, f->znode);
	goes_and_it_lists(f, foreign_low);
	fixture_answer_list(f, 1, 0, NULL);
	fixture_serve(f, EFFECT_ZK_GET, f->znode, ZK_NONODE);
	fixture_op(f, EFFECT_ZK_CREATE, "-__WRIT__");
	fixture_expect(f, 0, "");
}

/* Somebody has made one of that name. */
TEST(lists_when_its_own_znode_is_another_ones)
{
	ask_behind(f, "LOCK a", 1, (const char *[]){ foreign_low });
	fixture_serve_get(f, f->znode, 78, BETA, "");
	answer_before(f, foreign_low);
	expect_list(f);
	fixture_answer_list(f, 1, 2, (const char *[]){ f->znode, foreign_low });
	fixture_no_op(f);
	goes_and_it_lists(f, foreign_low);
}

TEST(lists_where_more_were_before_it)
{
	is_third(f);
	goes_and_it_lists(f, between);
	fixture_answer_list(f, 1, 2, (const char *[]){ f->znode, foreign_low });
	answer_before(f, foreign_low);
	goes_and_it_holds(f, foreign_low);
}

/* Both are watched: nobody lists. */
TEST(is_second_when_one_of_two_before_it_goes)
{
	is_third(f);
	fixture_watch_contender(f, ZK_WATCH_DELETED, foreign_low);
	fixture_no_op(f);
	goes_and_it_holds(f, between);
}

/* The one before has its turn: who else is before is asked while that one works. */
TEST(learns_that_it_is_second_when_the_one_before_its_predecessor_goes)
{
	is_fourth(f);
	goes_and_it_lists(f, foreign_low);
	fixture_answer_list(f, 1, 2, (const char *[]){ f->znode, between });
	fixture_no_op(f);
	goes_and_it_holds(f, between);
}

TEST(learns_it_when_that_one_is_gone_at_the_read)
{
	ask_behind(f, "LOCK a", 2, (const char *[]){ foreign_low, between });
	answer_own(f);
	fixture_serve(f, EFFECT_ZK_GET, foreign_low, ZK_NONODE);
	answer_before(f, between);
	expect_list(f);
	fixture_answer_list(f, 1, 2, (const char *[]){ f->znode, between });
	fixture_no_op(f);
	goes_and_it_holds(f, between);
}

TEST(watches_the_one_before_its_predecessor_again_after_it_was_written)
{
	is_third(f);
	fixture_watch_contender(f, ZK_WATCH_CHANGED, foreign_low);
	answer_before(f, foreign_low);
	fixture_no_op(f);
}

/* Somebody is still before the predecessor: now that one is watched, and that it goes shows that the claim is second. */
TEST(is_not_second_because_the_one_before_its_predecessor_goes)
{
	is_fourth(f);
	goes_and_it_lists(f, foreign_low);
	fixture_answer_list(f, 1, 3, (const char *[]){ f->znode, writer_by_hand, between });
	answer_before(f, writer_by_hand);
	fixture_watch_contender(f, ZK_WATCH_CHANGED, writer_by_hand);
	answer_before(f, writer_by_hand);
	fixture_watch_contender(f, ZK_WATCH_DELETED, writer_by_hand);
	fixture_no_op(f);
	goes_and_it_holds(f, between);
}

/* Its answer comes behind what was told, so it shows that: one list is enough. */
TEST(a_list_that_is_under_way_shows_that_the_predecessor_is_gone)
{
	is_fourth(f);
	fixture_watch_contender(f, ZK_WATCH_DELETED, foreign_low);
	goes_and_it_lists(f, between);
	fixture_answer_list(f, 1, 1, (const char *[]){ f->znode });
	fixture_expect(f, 0, ":78848");
	fixture_no_op(f);
}

/* An orphan of its own session goes by an answer. */
TEST(does_not_watch_what_its_own_session_has_before_its_predecessor)
{
	ask_behind(f, "LOCK a", 2, (const char *[]){ orphan_low, foreign_low });
	fixture_serve(f, EFFECT_ZK_DELETE, orphan_low, ZK_OK);
	answer_own(f);
	answer_before(f, foreign_low);
	fixture_no_op(f);
}

TEST(a_reader_is_second_behind_one_writer)
{
	ask_behind(f, "LOCK a SHARED", 2, (const char *[]){ reader_low, foreign_low });
	answer_own(f);
	answer_before(f, foreign_low);
	goes_and_it_holds(f, foreign_low);
	/* Another reader joins when it is known who waits. */
	fixture_say(f, 1, "LOCK a SHARED", "");
	assert_true(fixture_op(f, EFFECT_ZK_LIST, "/lb/a")->effect.watch);
	fixture_answer_list(f, 1, 2, (const char *[]){ reader_low, f->znode });
	fixture_expect(f, 1, ":78848");
}

TEST(a_writer_is_not_second_behind_a_reader_and_a_writer)
{
	waits_behind(f, "LOCK a", 2, (const char *[]){ reader_low, foreign_low });
	goes_and_it_lists(f, foreign_low);
}

/* Whether only readers are left decides what a reader here does; a list shows it. */
TEST(who_is_behind_a_reader_lists_when_the_writer_before_that_goes)
{
	waits_behind(f, "LOCK a", 2, (const char *[]){ writer_by_hand, reader_high });
	goes_and_it_lists(f, writer_by_hand);
}

/* Its predecessor waited for another contender, and may be idle now. */
TEST(who_is_second_now_is_not_told_that_it_is_taken)
{
	f->conf.try_ns = 10000 * MS;
	waits_behind(f, "LOCK a WAIT 1000", 2, (const char *[]){ idle_low, idle_next });
	fixture_watch_contender(f, ZK_WATCH_DELETED, idle_low);
	fixture_pass(f, 1500);
	fixture_answer_beats(f);
	fixture_expect(f, 0, "");
	goes_and_it_holds(f, idle_next);
}

/* 1 waits with `next`, behind another host, which is behind what 0 has held. */
static void next_is_behind(struct fixture *f, char next[128])
{
	fixture_held(f, f->znode);
	fixture_ask(f, 1, "LOCK a");
	fixture_say(f, 0, "UNLOCK a", ":0");
	fixture_answer_made(f, 10, 90, next, 128);
	fixture_answer_list(f, 1, 3, (const char *[]){ f->znode, foreign_high, next });
}

/* What this host has before it goes first, and its end is known by the answer. */
TEST_IN(behind_its_host_and_another_it_is_second_once_its_host_is_gone, claim_setup_strict)
{
	char next[128];

	next_is_behind(f, next);
	fixture_serve(f, EFFECT_ZK_DELETE, f->znode, ZK_OK);
	fixture_serve_get(f, next, 90, SESSION, "");
	answer_before(f, foreign_high);
	fixture_watch_contender(f, ZK_WATCH_DELETED, foreign_high);
	fixture_expect(f, 1, ":92160");
	fixture_no_op(f);
}

TEST_IN(behind_its_host_that_is_not_gone_yet_a_list_decides, claim_setup_strict)
{
	char next[128];

	next_is_behind(f, next);
	fixture_serve(f, EFFECT_ZK_DELETE, f->znode, ZK_REFUSED);
	fixture_answer_get(f, 90, SESSION, "");
	answer_before(f, foreign_high);
	fixture_no_op(f);
	fixture_watch_contender(f, ZK_WATCH_DELETED, foreign_high);
	fixture_op(f, EFFECT_ZK_LIST, "/lb/a");
	fixture_expect(f, 1, "");
}

TEST(a_new_connection_begins_with_a_list)
{
	is_second(f);
	fixture_reconnect(f);
	goes_and_it_lists(f, foreign_low);
	fixture_answer_list(f, 1, 2, (const char *[]){ f->znode, foreign_low });
	answer_own(f);
	answer_before(f, foreign_low);
	goes_and_it_holds(f, foreign_low);
}

/* It has gone before that pays. */
TEST(a_try_does_not_watch_its_own_znode)
{
	f->conf.try_ns = 100 * MS;
	ask_behind(f, "LOCK a WAIT 0", 1, (const char *[]){ idle_low });
	answer_before(f, idle_low);
	fixture_no_op(f);
}
