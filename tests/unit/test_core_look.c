/* SPDX-License-Identifier: Apache-2.0 */
/* How a claim that waits for long is looked at, and what a reconnection asks, and in which order. */
#include <stdio.h>
#include <string.h>

#include "claim_fixture.h"
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

static void expect_reads(struct fixture *f, const char *name)
{
	assert_false(fixture_op(f, EFFECT_ZK_GET, name)->effect.watch);
	assert_in_range(f->end_op - f->first_op, 2, 3); /* a heartbeat may be the third */
}

static void answer_reads(struct fixture *f, const char *name)
{
	expect_reads(f, name);
	fixture_answer_get(f, 77, SESSION, "");
	assert_false(fixture_op(f, EFFECT_ZK_GET, foreign_low)->effect.watch);
	fixture_answer_get(f, 70, BETA, "1\nhost=beta\n");
	fixture_answer_beats(f);
	fixture_no_op(f);
}

TEST(a_long_wait_is_two_small_reads_and_each_tenth_time_a_list)
{
	struct fixture *f = *state;
	char name[128];

	claim_waits(f, name);
	for (int round = 0; round < 2; round++) {
		for (int i = 1; i < LOOKS_MAX; i++) {
			assert_in_range(pass_until_asked(f), 19000, 30200);
			answer_reads(f, name);
		}
		assert_in_range(pass_until_asked(f), 19000, 30200);
		fixture_op(f, EFFECT_ZK_LIST, "/lb/a");
		fixture_answer_list(f, 1, 2, (const char *[]){ name, foreign_low });
		fixture_answer_beats(f);
		fixture_no_op(f);
	}
}

TEST(a_znode_that_is_not_there_is_listed)
{
	struct fixture *f = *state;
	char name[128];

	claim_waits(f, name);
	pass_until_asked(f);
	expect_reads(f, name);
	fixture_answer(f, ZK_NONODE);
	fixture_answer_get(f, 70, BETA, "");
	fixture_op(f, EFFECT_ZK_LIST, "/lb/a");
	fixture_answer_list(f, 1, 1, (const char *[]){ foreign_low }); /* ours was deleted by hand */
	fixture_op(f, EFFECT_ZK_CREATE, "-__WRIT__");
}

/* Somebody has made one of that name. */
TEST(a_znode_that_is_not_ours_is_listed)
{
	struct fixture *f = *state;
	char name[128];

	claim_waits(f, name);
	pass_until_asked(f);
	fixture_answer_get(f, 77, BETA, "");
	fixture_answer_get(f, 70, BETA, "");
	fixture_op(f, EFFECT_ZK_LIST, "/lb/a");
	fixture_answer_list(f, 1, 2, (const char *[]){ name, foreign_low });
	pass_until_asked(f);
	fixture_answer_get(f, 78, SESSION, "");
	fixture_answer_get(f, 70, BETA, "");
	fixture_op(f, EFFECT_ZK_LIST, "/lb/a");
}

/* Its server has missed the watch. */
TEST(a_predecessor_that_is_gone_is_listed)
{
	struct fixture *f = *state;
	char name[128];

	claim_waits(f, name);
	pass_until_asked(f);
	fixture_answer_get(f, 77, SESSION, "");
	fixture_answer(f, ZK_NONODE);
	fixture_op(f, EFFECT_ZK_LIST, "/lb/a");
	fixture_answer_list(f, 1, 1, (const char *[]){ name });
	fixture_expect(f, 0, ":78848");
}

/* Whether only readers stand before it, only a list tells. */
TEST(a_claim_in_another_mode_than_its_head_is_listed)
{
	struct fixture *f = *state;
	char name[128];

	claim_waits(f, name);
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
	struct fixture *f = *state;
	char name[128];

	fixture_ask(f, 0, "LOCK a");
	fixture_answer_get(f, 1, 0, LOCK_DATA);
	fixture_answer_made(f, 5, 77, name, sizeof(name));
	fixture_answer_list(f, 1, 2, (const char *[]){ name, stray });
	assert_true(fixture_op(f, EFFECT_ZK_GET, stray)->effect.watch);
	fixture_answer_get(f, 70, SESSION, "");
	for (int i = 0; i < 2; i++) {
		pass_until_asked(f);
		fixture_op(f, EFFECT_ZK_LIST, "/lb/a");
		fixture_answer_list(f, 1, 2, (const char *[]){ name, stray });
		fixture_answer_beats(f);
		fixture_no_op(f);
	}
}

/* Its permits, too: one of ours that nobody knows would keep out who is before us. */
TEST(who_waits_for_a_semaphore_lists_its_queue_and_its_permits)
{
	static const char before[] = "_c_4c61f3c2-7f3c-4c11-9d3e-1c6f0f3a9b11-lock-0000000003";
	struct fixture *f = *state;
	char name[128];

	fixture_ask(f, 0, "ACQUIRE s LIMIT 3");
	fixture_answer_get(f, 1, 0, "1\nkind=semaphore\nlimit=3\n");
	fixture_op(f, EFFECT_ZK_CREATE, "-lock-");
	fixture_answer_made(f, 5, 77, name, sizeof(name));
	fixture_answer_list(f, 1, 2, (const char *[]){ name, before });
	fixture_op(f, EFFECT_ZK_GET, before);
	fixture_answer_get(f, 70, BETA, "1\nhost=beta\n");
	pass_until_asked(f);
	fixture_op(f, EFFECT_ZK_LIST, "/lb/s/locks");
	fixture_answer_list(f, 1, 2, (const char *[]){ name, before });
	fixture_op(f, EFFECT_ZK_LIST, "/lb/s/leases");
	fixture_answer_list(f, 2, 0, NULL);
	fixture_answer_beats(f);
	fixture_no_op(f);
}

/* Those who began to wait together do not look together. */
TEST(looks_do_not_come_all_at_once)
{
	enum { LOCKS = 20 };
	struct fixture *f = *state;
	char words[32], name[128];
	size_t most = 0, count = 0;

	for (int i = 0; i < LOCKS; i++) {
		snprintf(words, sizeof(words), "ENQUEUE x%02d", i);
		fixture_ask(f, 0, words);
		fixture_answer_get(f, 1, 0, LOCK_DATA);
		fixture_answer_made(f, 5, 77, name, sizeof(name));
		fixture_answer_list(f, 1, 2, (const char *[]){ name, foreign_low });
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
	struct fixture *f = *state;
	char name[128];

	fixture_held(f, name);
	fixture_simple(f, EVENT_ZK_SUSPENDED, 0);
	fixture_reconnected(f);
	assert_true(fixture_op(f, EFFECT_ZK_GET, name)->effect.watch);
	fixture_answer_get(f, 77, SESSION, "");
	fixture_no_op(f);
	fixture_watch_contender(f, ZK_WATCH_DELETED, name);
	fixture_op(f, EFFECT_ZK_LIST, "/lb/a");
	fixture_answer_list(f, 1, 0, NULL);
	fixture_say(f, 0, "VALID a", ":0");
	bytes_clear(&f->replies[0]);
}

TEST(one_that_is_gone_meanwhile_is_lost)
{
	struct fixture *f = *state;
	char name[128];

	fixture_held(f, name);
	fixture_simple(f, EVENT_ZK_SUSPENDED, 0);
	fixture_reconnected(f);
	fixture_op(f, EFFECT_ZK_GET, name);
	fixture_answer(f, ZK_NONODE);
	fixture_op(f, EFFECT_ZK_LIST, "/lb/a");
	fixture_answer_list(f, 1, 0, NULL);
	fixture_say(f, 0, "VALID a", ":0");
	bytes_clear(&f->replies[0]);
}

TEST(where_somebody_here_waits_too_the_directory_is_listed)
{
	struct fixture *f = *state;
	char name[128];

	fixture_held(f, name);
	fixture_ask(f, 1, "LOCK a");
	fixture_simple(f, EVENT_ZK_SUSPENDED, 0);
	fixture_reconnected(f);
	fixture_op(f, EFFECT_ZK_LIST, "/lb/a");
}

/* Or a session that is nearly full could take no further lock: each watch would be as long as a znode's path. */
TEST(what_is_left_for_watches_is_left_for_those_who_join)
{
	struct fixture *f = *state;
	char name[128];
	size_t watch;

	fixture_held(f, name);
	watch = strlen("/lb/a/") + strlen(name) + 4;
	f->conf.limits.session_path_bytes = 2 * watch;
	fixture_simple(f, EVENT_ZK_SUSPENDED, 0);
	fixture_reconnected(f);
	fixture_op(f, EFFECT_ZK_GET, name);
	f->conf.limits.session_path_bytes = 2 * watch - 1;
	fixture_simple(f, EVENT_ZK_SUSPENDED, 0);
	fixture_reconnected(f);
	fixture_op(f, EFFECT_ZK_LIST, "/lb/a");
	fixture_answer_list(f, 1, 1, (const char *[]){ name });
	fixture_no_op(f);
}

/* Who else waits is to be known of a grant of some age, as ever. */
TEST(who_waits_elsewhere_is_asked_afterwards)
{
	struct fixture *f = *state;
	char name[128];

	fixture_held(f, name);
	fixture_simple(f, EVENT_ZK_SUSPENDED, 0);
	fixture_reconnected(f);
	fixture_op(f, EFFECT_ZK_GET, name);
	fixture_answer_get(f, 77, SESSION, "");
	fixture_no_op(f);
	fixture_pass(f, 1000);
	assert_true(fixture_op(f, EFFECT_ZK_LIST, "/lb/a")->effect.watch);
}

static void hold(struct fixture *f, const char *lock, uint32_t seq)
{
	char name[128];

	fixture_lock_held(f, 0, lock, seq, 70 + seq, name, sizeof(name));
	bytes_clear(&f->replies[0]);
}

/* What the last connection had found out comes last on the next one. */
TEST(what_was_found_out_longest_ago_goes_first)
{
	struct fixture *f = *state;

	hold(f, "a", 1);
	fixture_pass(f, 10);
	hold(f, "b", 2);
	fixture_pass(f, 10);
	hold(f, "c", 3);
	fixture_simple(f, EVENT_ZK_SUSPENDED, 0);
	fixture_reconnected(f);
	assert_non_null(strstr(fixture_oldest(f)->path, "/lb/a/"));
	fixture_pass(f, 10);
	fixture_answer_get(f, 71, SESSION, "");
	assert_non_null(strstr(fixture_oldest(f)->path, "/lb/b/"));
	fixture_simple(f, EVENT_ZK_SUSPENDED, 0);
	fixture_reconnected(f);
	assert_non_null(strstr(fixture_oldest(f)->path, "/lb/b/"));
	fixture_answer_get(f, 72, SESSION, "");
	assert_non_null(strstr(fixture_oldest(f)->path, "/lb/c/"));
	fixture_answer_get(f, 73, SESSION, "");
	assert_non_null(strstr(fixture_oldest(f)->path, "/lb/a/"));
	bytes_clear(&f->replies[0]);
}
