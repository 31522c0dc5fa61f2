/* SPDX-License-Identifier: Apache-2.0 */
/* How a claim that waits for long is looked at, and what a reconnection asks, and in which order. */
#include <string.h>

#include "claim_fixture.h"
#include "core_test.h"
#include "core/claim/listing.h"

static int setup(void **state)
{
	struct fixture *f = fixture_new(false);

	f->conf.limits.requests_per_client = f->conf.limits.grants_per_client = f->conf.limits.grants = 55;
	f->conf.limits.requests = 55;
	return fixture_setup(f, 4, state);
}

/* Until something other than the heartbeat is asked; how long that took. */
static int64_t pass_until_asked(struct fixture *f)
{
	int64_t began = f->now_ns;

	fixture_answer_beats(f);
	while (!fixture_is_open(f)) {
		fixture_pass(f, 100);
		fixture_answer_beats(f);
		assert_true(f->now_ns - began < 60000 * MS);
	}
	return (f->now_ns - began) / MS;
}

static void expect_reads(struct fixture *f)
{
	assert_false(fixture_op(f, EFFECT_ZK_GET, f->znode)->effect.watch);
	assert_in_range(f->end_op - f->first_op, 2, 3); /* a heartbeat may be the third */
}

/* The answer to a list; then nothing else is asked. */
static void answer_look(struct fixture *f, const char *path, const char *before)
{
	fixture_serve_list(f, path, 2, (const char *[]){ f->znode, before });
	fixture_answer_beats(f);
	fixture_no_op(f);
}

static void answer_reads(struct fixture *f)
{
	expect_reads(f);
	fixture_answer_get(f, 77, SESSION, "");
	assert_false(fixture_op(f, EFFECT_ZK_GET, foreign_low)->effect.watch);
	fixture_answer_get(f, 70, BETA, "1\nhost=beta\n");
	fixture_answer_beats(f);
	fixture_no_op(f);
}

TEST(a_long_wait_is_two_small_reads_and_each_tenth_time_a_list)
{
	claim_waits(f, f->znode);
	for (int round = 0; round < 2; round++) {
		for (int i = 1; i < LOOKS_MAX; i++) {
			assert_in_range(pass_until_asked(f), 19000, 30200);
			answer_reads(f);
		}
		assert_in_range(pass_until_asked(f), 19000, 30200);
		answer_look(f, "/lb/a", foreign_low);
	}
}

TEST(a_znode_that_is_not_there_is_listed)
{
	claim_waits(f, f->znode);
	pass_until_asked(f);
	expect_reads(f);
	fixture_answer(f, ZK_NONODE);
	fixture_answer_get(f, 70, BETA, "");
	fixture_serve_list(f, "/lb/a", 1, (const char *[]){ foreign_low }); /* ours was deleted by hand */
	fixture_op(f, EFFECT_ZK_CREATE, "-__WRIT__");
}

/* Somebody has made one of that name. */
TEST(a_znode_that_is_not_ours_is_listed)
{
	claim_waits(f, f->znode);
	pass_until_asked(f);
	fixture_answer_get(f, 77, BETA, "");
	fixture_answer_get(f, 70, BETA, "");
	fixture_serve_list(f, "/lb/a", 2, (const char *[]){ f->znode, foreign_low });
	pass_until_asked(f);
	fixture_answer_get(f, 78, SESSION, "");
	fixture_answer_get(f, 70, BETA, "");
	fixture_op(f, EFFECT_ZK_LIST, "/lb/a");
}

/* Its server has missed the watch. */
TEST(a_predecessor_that_is_gone_is_listed)
{
	claim_waits(f, f->znode);
	pass_until_asked(f);
	fixture_answer_get(f, 77, SESSION, "");
	fixture_answer(f, ZK_NONODE);
	fixture_serve_list(f, "/lb/a", 1, (const char *[]){ f->znode });
	fixture_expect(f, 0, ":78848");
}

/* Whether only readers stand before it, only a list tells. */
TEST(a_claim_in_another_mode_than_its_head_is_listed)
{
	claim_waits(f, f->znode);
	fixture_ask(f, 1, "LOCK a SHARED");
	fixture_simple(f, EVENT_CLIENT_GONE, 0);
	fixture_no_op(f);
	pass_until_asked(f);
	fixture_op(f, EFFECT_ZK_LIST, "/lb/a");
}

/* Named as ours are, and no name that we make: nothing here knows it, and nothing here deletes it. */
TEST(a_claim_behind_a_stray_of_its_session_is_listed)
{
	static const char stray[] = "_c_1000abcd-ef01-8234-8500-000000000001-made-by-hand----__WRIT__0000000003";

	fixture_join(f, 0, "LOCK a");
	fixture_answer_list(f, 1, 2, (const char *[]){ f->znode, stray });
	assert_true(fixture_op(f, EFFECT_ZK_GET, stray)->effect.watch);
	fixture_answer_get(f, 70, SESSION, "");
	for (int i = 0; i < 2; i++) {
		pass_until_asked(f);
		answer_look(f, "/lb/a", stray);
	}
}

/* Its permits, too: one of ours that nobody knows would keep out who is before us. */
TEST(who_waits_for_a_semaphore_lists_its_queue_and_its_permits)
{
	static const char before[] = "_c_4c61f3c2-7f3c-4c11-9d3e-1c6f0f3a9b11-lock-0000000003";

	fixture_ask(f, 0, "ACQUIRE s LIMIT 3");
	fixture_answer_get(f, 1, 0, "1\nkind=semaphore\nlimit=3\n");
	fixture_serve_made(f, "-lock-", 5, 77, f->znode);
	fixture_answer_list(f, 1, 2, (const char *[]){ f->znode, before });
	fixture_serve_get(f, before, 70, BETA, "1\nhost=beta\n");
	pass_until_asked(f);
	fixture_serve_list(f, "/lb/s/locks", 2, (const char *[]){ f->znode, before });
	fixture_op(f, EFFECT_ZK_LIST, "/lb/s/leases");
	fixture_answer_list(f, 2, 0, NULL);
	fixture_answer_beats(f);
	fixture_no_op(f);
}

/* Those who began to wait together do not look together. */
TEST(looks_do_not_come_all_at_once)
{
	enum { LOCKS = 20 };
	size_t most = 0, count = 0;

	for (int i = 0; i < LOCKS; i++) {
		fixture_join(f, 0, fixture_words(f, "ENQUEUE x%02d", i));
		fixture_answer_list(f, 1, 2, (const char *[]){ f->znode, foreign_low });
		fixture_refuse_own(f);
		fixture_answer_get(f, 70, 9, "1\nhost=beta\n");
	}
	while (count < 2 * LOCKS) {
		size_t open;

		pass_until_asked(f);
		open = f->end_op - f->first_op;
		most = open > most ? open : most;
		count += open;
		while (fixture_is_open(f))
			fixture_answer_get(f, 77, SESSION, "");
	}
	assert_in_range(most, 2, LOCKS / 2);
}

/* ---- after a reconnection ---- */

TEST(a_held_claim_is_asked_for_by_its_name)
{
	fixture_held(f, f->znode);
	fixture_reconnect(f);
	assert_true(fixture_op(f, EFFECT_ZK_GET, f->znode)->effect.watch);
	fixture_answer_get(f, 77, SESSION, "");
	fixture_no_op(f);
	fixture_watch_contender(f, ZK_WATCH_DELETED, f->znode);
	fixture_serve_list(f, "/lb/a", 0, NULL);
	fixture_say(f, 0, "VALID a", ":0");
}

TEST(one_that_is_gone_meanwhile_is_lost)
{
	fixture_held(f, f->znode);
	fixture_reconnect(f);
	fixture_serve(f, EFFECT_ZK_GET, f->znode, ZK_NONODE);
	fixture_serve_list(f, "/lb/a", 0, NULL);
	fixture_say(f, 0, "VALID a", ":0");
}

TEST(where_somebody_here_waits_too_the_directory_is_listed)
{
	fixture_held(f, f->znode);
	fixture_ask(f, 1, "LOCK a");
	fixture_reconnect(f);
	fixture_op(f, EFFECT_ZK_LIST, "/lb/a");
}

/* Or a session that is nearly full could take no further lock: each watch would be as long as a znode's path. */
TEST(what_is_left_for_watches_is_left_for_those_who_join)
{
	size_t watch;

	fixture_held(f, f->znode);
	watch = strlen("/lb/a/") + strlen(f->znode) + 4;
	f->conf.limits.session_path_bytes = 2 * watch;
	fixture_reconnect(f);
	fixture_op(f, EFFECT_ZK_GET, f->znode);
	f->conf.limits.session_path_bytes = 2 * watch - 1;
	fixture_reconnect(f);
	fixture_serve_list(f, "/lb/a", 1, (const char *[]){ f->znode });
	fixture_no_op(f);
}

/* Who else waits is to be known of a grant of some age, as ever. */
TEST(who_waits_elsewhere_is_asked_afterwards)
{
	fixture_held(f, f->znode);
	fixture_reconnect(f);
	fixture_serve_get(f, f->znode, 77, SESSION, "");
	fixture_no_op(f);
	fixture_pass(f, 1000);
	assert_true(fixture_op(f, EFFECT_ZK_LIST, "/lb/a")->effect.watch);
}

static void hold(struct fixture *f, const char *lock, uint32_t seq)
{
	fixture_lock_held(f, 0, lock, seq, 70 + seq, f->znode, sizeof(f->znode));
	bytes_clear(&f->replies[0]);
}

/* What the last connection had found out comes last on the next one. */
TEST(what_was_found_out_longest_ago_goes_first)
{
	hold(f, "a", 1);
	fixture_pass(f, 10);
	hold(f, "b", 2);
	fixture_pass(f, 10);
	hold(f, "c", 3);
	fixture_reconnect(f);
	assert_non_null(strstr(fixture_oldest(f)->path, "/lb/a/"));
	fixture_pass(f, 10);
	fixture_answer_get(f, 71, SESSION, "");
	assert_non_null(strstr(fixture_oldest(f)->path, "/lb/b/"));
	fixture_reconnect(f);
	assert_non_null(strstr(fixture_oldest(f)->path, "/lb/b/"));
	fixture_answer_get(f, 72, SESSION, "");
	assert_non_null(strstr(fixture_oldest(f)->path, "/lb/c/"));
	fixture_answer_get(f, 73, SESSION, "");
	assert_non_null(strstr(fixture_oldest(f)->path, "/lb/a/"));
}
