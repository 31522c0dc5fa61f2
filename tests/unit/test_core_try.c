/* SPDX-License-Identifier: Apache-2.0 */
/* A try and the claims of other hosts: held ones, idle ones that linger, and those nobody knows about (claim/sighting.h). */
#include "claim_fixture.h"
#include "core_test.h"

#include "core/znode/contender.h"

static const char beta[] = "_c_2000abcd-ef01-8234-8500-000000000001-__WRIT__0000000003";
static const char beta_behind[] = "_c_2000abcd-ef01-8234-8500-000000000002-__WRIT__0000000004";
static const char beta_reads[] = "_c_2000abcd-ef01-8234-8500-000000000003-__READ__0000000003";
static const char gamma_waits[] = "_c_3000abcd-ef01-8234-8500-000000000001-__WRIT__0000000004";
static const char beta_tries[] = "_c_2000abcd-ef01-8234-8580-000000000004-__WRIT__0000000009";
static const char beta_tries_again[] = "_c_2000abcd-ef01-8234-8580-000000000005-__WRIT__0000000010";
static const char beta_waits[] = "_c_2000abcd-ef01-8234-8500-000000000006-__WRIT__0000000011";

static const char idle_data[] = "1\nhost=beta\n";
/* Of some grant, which is over by now for all that is known. */
static const char holder_data[] = "1\nhost=beta\npid=7\ntoken=1\nholders=1\n";
static const char held_data[] = "1\nhost=beta\npid=7\ntoken=1\nholders=1\nheld=1\n";

static int setup(void **state)
{
	struct fixture *f = fixture_new(false);

	f->conf.try_ns = 100 * MS;
	f->conf.linger_ns = 1000 * MS;
	return fixture_setup(f, 5, state);
}

static bool is_try(const char *name)
{
	return contender_tries(slice_of(name), FLAVOUR_RW);
}

/* Client 0 asks with those words, and its host's znode stands behind that one. */
static void behind(struct fixture *f, const char *words, const char *other)
{
	fixture_ask(f, 0, words);
	if (fixture_oldest(f)->effect.type == EFFECT_ZK_GET)
		fixture_answer_get(f, 1, 0, LOCK_DATA);
	fixture_serve_made(f, "", 5, 77, f->znode);
	fixture_answer_list(f, 1, 2, (const char *[]){ f->znode, other });
}

/* ... whose data are read, with a watch. */
static void reads(struct fixture *f, const char *other, const char *data)
{
	assert_true(fixture_op(f, EFFECT_ZK_GET, other)->effect.watch);
	fixture_answer_get(f, 70, BETA, data);
}

static void tries_behind(struct fixture *f, const char *other, const char *data)
{
	behind(f, "LOCK a WAIT 0", other);
	reads(f, other, data);
}

static void is_deleted(struct fixture *f)
{
	fixture_serve(f, EFFECT_ZK_DELETE, f->znode, ZK_OK);
	fixture_no_op(f);
}

/* The answer to client 0. */
static void is_nil(struct fixture *f)
{
	fixture_expect(f, 0, "$-1");
	is_deleted(f);
}

/* That one says that it holds the lock. */
static void is_told_by(struct fixture *f, const char *other)
{
	tries_behind(f, other, held_data);
	is_nil(f);
}

TEST(an_idle_claim_of_another_host_is_not_taken_for_a_held_one)
{
	behind(f, "LOCK a WAIT 0", beta);
	assert_true(is_try(f->znode));
	reads(f, beta, idle_data);
	fixture_expect(f, 0, "");
	fixture_watch_contender(f, ZK_WATCH_DELETED, beta);
	fixture_serve_list(f, "/lb/a", 1, (const char *[]){ f->znode });
	fixture_expect(f, 0, ":78848");
}

TEST(who_does_not_say_that_it_holds_it_has_so_long_to_let_go)
{
	tries_behind(f, beta, holder_data);
	fixture_pass(f, 99);
	fixture_expect(f, 0, "");
	fixture_pass(f, 1);
	is_nil(f);
	/* That is no answer for those who come later. */
	fixture_ask(f, 0, "LOCK a WAIT 0");
	fixture_op(f, EFFECT_ZK_CREATE, "-__WRIT__");
}

/* Their znode, their list and their time are one. */
TEST(tries_of_one_host_share_a_znode)
{
	tries_behind(f, beta, idle_data);
	fixture_pass(f, 60);
	fixture_ask(f, 1, "LOCK a WAIT 0");
	fixture_no_op(f);
	fixture_pass(f, 40);
	fixture_expect(f, 0, "$-1");
	fixture_expect(f, 1, "$-1");
	is_deleted(f);
}

TEST(who_says_that_it_holds_it_is_believed_at_once_and_for_a_second)
{
	is_told_by(f, beta);
	fixture_pass(f, 999);
	fixture_answer_beats(f);
	fixture_say(f, 1, "LOCK a WAIT 0", "$-1");
	fixture_say(f, 2, "LOCK a SHARED WAIT 0", "$-1");
	fixture_no_op(f);
	fixture_pass(f, 1);
	fixture_say(f, 1, "LOCK a WAIT 0", "");
	fixture_op(f, EFFECT_ZK_CREATE, "-__WRIT__");
}

TEST(what_is_seen_ends_with_the_znode)
{
	is_told_by(f, beta);
	fixture_watch_contender(f, ZK_WATCH_DELETED, beta);
	fixture_no_op(f);
	fixture_say(f, 1, "LOCK a WAIT 0", "");
	fixture_op(f, EFFECT_ZK_CREATE, "-__WRIT__");
}

TEST(what_is_seen_ends_with_the_connection)
{
	is_told_by(f, beta);
	fixture_simple(f, EVENT_ZK_SUSPENDED, 0);
	fixture_say(f, 1, "LOCK a WAIT 0",
		    "-UNAVAILABLE there is no connection to ZooKeeper, so it is not known whether the lock is taken: a");
	fixture_reconnected(f);
	fixture_say(f, 1, "LOCK a WAIT 0", "");
	fixture_op(f, EFFECT_ZK_CREATE, "-__WRIT__");
}

/* Nor does somebody who reads keep readers out. */
TEST(what_is_seen_is_for_those_whom_it_keeps_out)
{
	is_told_by(f, beta_reads);
	fixture_say(f, 1, "LOCK a WAIT 0", "$-1");
	fixture_say(f, 1, "LOCK a SHARED WAIT 0", "");
	fixture_op(f, EFFECT_ZK_CREATE, "-__READ__");
}

TEST(a_connection_lost_on_the_way_is_unavailable)
{
	tries_behind(f, beta, idle_data);
	fixture_simple(f, EVENT_ZK_SUSPENDED, 0);
	fixture_expect(
		f, 0,
		"-UNAVAILABLE there is no connection to ZooKeeper, so it is not known whether the lock is taken: a");
}

TEST(it_is_told_as_soon_as_that_is_written)
{
	tries_behind(f, beta, idle_data);
	fixture_pass(f, 20);
	fixture_watch_contender(f, ZK_WATCH_CHANGED, beta);
	fixture_expect(f, 0, "");
	reads(f, beta, held_data);
	is_nil(f);
	fixture_say(f, 0, "LOCK a WAIT 0", "$-1");
	fixture_no_op(f);
}

TEST(who_waits_before_it_is_let_in_first)
{
	fixture_join(f, 0, "LOCK a WAIT 0");
	fixture_answer_list(f, 1, 3, (const char *[]){ f->znode, beta, gamma_waits });
	is_nil(f);
}

/* The one behind may have followed the other without a gap, and both be idle. */
TEST(two_of_one_host_are_one)
{
	fixture_join(f, 0, "LOCK a WAIT 0");
	fixture_answer_list(f, 1, 3, (const char *[]){ f->znode, beta, beta_behind });
	fixture_expect(f, 0, "");
	reads(f, beta_behind, idle_data);
	fixture_expect(f, 0, "");
}

TEST(what_other_software_makes_is_held)
{
	behind(f, "LOCK a WAIT 0", foreign_low);
	fixture_expect(f, 0, "");
	reads(f, foreign_low, "192.0.2.1");
	is_nil(f);
	fixture_say(f, 0, "LOCK a WAIT 0", "$-1");
	fixture_no_op(f);
}

TEST(whoever_leads_is_no_idle_claim)
{
	fixture_ask(f, 0, "CAMPAIGN a WAIT 0 DATA x");
	fixture_answer_get(f, 1, 0, "1\nkind=election\nflavour=rw\n");
	fixture_answer_made(f, 5, 77, f->znode, sizeof(f->znode));
	fixture_answer_list(f, 1, 2, (const char *[]){ f->znode, beta });
	reads(f, beta, "1\nhost=beta\nkind=election\nleader=1\ndata=x\n");
	is_nil(f);
}

TEST(without_try_ms_whoever_stands_before_it_holds_it)
{
	f->conf.try_ns = 0;
	behind(f, "LOCK a WAIT 0", beta);
	is_nil(f);
}

TEST(a_short_wait_ends_when_its_time_is_up_and_it_is_known)
{
	behind(f, "LOCK a WAIT 30", beta);
	fixture_refuse_own(f);
	assert_false(is_try(f->znode));
	reads(f, beta, held_data);
	fixture_pass(f, 29);
	fixture_expect(f, 0, "");
	fixture_pass(f, 1);
	is_nil(f);
	fixture_pass(f, 1000);
	fixture_answer_beats(f);
	behind(f, "LOCK a WAIT 30", beta);
	fixture_refuse_own(f);
	reads(f, beta, idle_data);
	fixture_pass(f, 99);
	fixture_expect(f, 0, "");
	fixture_pass(f, 1);
	fixture_expect(f, 0, "$-1");
}

/* It is on its way out, however long that takes: what stands before it then has its own time. */
TEST(a_claim_of_this_host_that_leaves_holds_nothing)
{
	char next[128];

	f->conf.handoff_max = 0;
	fixture_held(f, f->znode);
	fixture_say(f, 0, "UNLOCK a", ":0");
	fixture_op(f, EFFECT_ZK_LIST, "/lb/a");
	fixture_ask(f, 1, "LOCK a WAIT 0");
	fixture_answer_list(f, 1, 1, (const char *[]){ f->znode });
	fixture_answer_made(f, 6, 78, next, sizeof(next));
	fixture_answer_list(f, 1, 2, (const char *[]){ f->znode, next });
	fixture_pass(f, 150);
	fixture_expect(f, 1, "");
	fixture_serve(f, EFFECT_ZK_DELETE, f->znode, ZK_OK);
	fixture_answer_list(f, 1, 2, (const char *[]){ beta, next });
	reads(f, beta, idle_data);
	fixture_pass(f, 99);
	fixture_expect(f, 1, "");
	fixture_watch_contender(f, ZK_WATCH_DELETED, beta);
	fixture_answer_list(f, 1, 1, (const char *[]){ next });
	fixture_expect(f, 1, ":79872");
}

/* The writer's try is told that readers have it; the reader's gets a znode that only writers keep out. */
TEST(a_reader_is_not_kept_out_by_those_who_read_elsewhere)
{
	char reader[128];

	behind(f, "LOCK a WAIT 0", beta_reads);
	fixture_ask(f, 1, "LOCK a SHARED WAIT 0");
	reads(f, beta_reads, held_data);
	fixture_expect(f, 0, "$-1");
	fixture_expect(f, 1, "");
	fixture_serve(f, EFFECT_ZK_DELETE, f->znode, ZK_OK);
	fixture_serve_made(f, "-__READ__", 6, 78, reader);
	fixture_answer_list(f, 1, 2, (const char *[]){ beta_reads, reader });
	fixture_expect(f, 1, ":79872");
}

/* Other hosts do not count a try: whoever waits gets a znode that they do count. */
TEST(whoever_waits_does_not_wait_with_a_trys_znode)
{
	char waits[128];

	tries_behind(f, beta, idle_data);
	fixture_ask(f, 1, "LOCK a");
	fixture_serve(f, EFFECT_ZK_DELETE, f->znode, ZK_OK);
	fixture_answer_made(f, 6, 78, waits, sizeof(waits));
	assert_false(is_try(waits));
	fixture_answer_list(f, 1, 2, (const char *[]){ waits, beta });
	fixture_refuse_own(f);
	reads(f, beta, idle_data);
	fixture_no_op(f);
	fixture_expect(f, 0, "");
	fixture_pass(f, 100);
	fixture_expect(f, 0, "$-1");
	fixture_no_op(f);
	/* Behind whoever waits here it is taken at once. */
	fixture_say(f, 2, "LOCK a WAIT 0", "$-1");
}

/* ---- the holder's side ---- */

static void lists_with_watch(struct fixture *f, size_t count, const char *const *children)
{
	assert_true(fixture_op(f, EFFECT_ZK_LIST, "/lb/a")->effect.watch);
	fixture_answer_list(f, 1, count, children);
}

/* Client 0 holds the lock for more than a second, nobody is behind it, and that is watched. */
static void held_and_watched(struct fixture *f)
{
	fixture_held(f, f->znode);
	fixture_pass(f, 1000);
	lists_with_watch(f, 1, (const char *[]){ f->znode });
	fixture_no_op(f);
}

static void sees(struct fixture *f, const char *other)
{
	fixture_watch(f, ZK_WATCH_CHILDREN, "/lb/a");
	lists_with_watch(f, 2, (const char *[]){ f->znode, other });
}

TEST(a_holder_says_so_to_a_try_once)
{
	held_and_watched(f);
	sees(f, beta_tries);
	assert_non_null(strstr(fixture_op(f, EFFECT_ZK_SET, f->znode)->data, "\nheld=1\n"));
	fixture_answer(f, ZK_OK);
	/* The try goes, others come and go: that is looked at once in a second. */
	fixture_watch(f, ZK_WATCH_CHILDREN, "/lb/a");
	fixture_no_op(f);
	fixture_pass(f, 999);
	fixture_answer_beats(f);
	fixture_no_op(f);
	fixture_pass(f, 1);
	lists_with_watch(f, 2, (const char *[]){ f->znode, beta_tries_again });
	fixture_no_op(f);
}

/* However often it changes what it wants to be known: that is for those who wait. */
TEST(what_a_holder_changes_is_not_written_for_a_try)
{
	held_and_watched(f);
	sees(f, beta_tries);
	fixture_serve(f, EFFECT_ZK_SET, f->znode, ZK_OK);
	for (int i = 0; i < 3; i++)
		fixture_say(f, 0, "LOCK a REENTER DATA x", ":78848");
	fixture_no_op(f);
}

/* On a new connection nobody knows whether it was written. */
TEST(a_holder_says_so_on_every_connection)
{
	held_and_watched(f);
	sees(f, beta_tries);
	fixture_op(f, EFFECT_ZK_SET, f->znode);
	fixture_reconnected(f);
	fixture_serve_get(f, f->znode, 77, SESSION, "");
	fixture_pass(f, 1000);
	fixture_answer_beats(f);
	fixture_serve_list(f, "/lb/a", 2, (const char *[]){ f->znode, beta_tries_again });
	assert_non_null(strstr(fixture_op(f, EFFECT_ZK_SET, f->znode)->data, "\nheld=1\n"));
}

TEST(what_was_said_to_be_held_does_not_linger)
{
	held_and_watched(f);
	sees(f, beta_tries);
	fixture_serve(f, EFFECT_ZK_SET, f->znode, ZK_OK);
	fixture_watch(f, ZK_WATCH_CHILDREN, "/lb/a");
	fixture_pass(f, 1000);
	fixture_answer_beats(f);
	fixture_answer_list(f, 1, 1, (const char *[]){ f->znode });
	fixture_no_op(f);
	fixture_say(f, 0, "UNLOCK a", ":0");
	is_deleted(f);
}

TEST(an_idle_claim_goes_when_a_try_is_seen_and_says_nothing)
{
	fixture_held(f, f->znode);
	fixture_say(f, 0, "UNLOCK a", ":0");
	lists_with_watch(f, 2, (const char *[]){ f->znode, beta_tries });
	is_deleted(f);
}

/* handoff_max = 0, and hand-offs go on; what waits ends them. */
TEST(a_try_does_not_end_the_hand_offs)
{
	f->conf.handoff_max = 0;
	held_and_watched(f);
	sees(f, beta_tries);
	fixture_serve(f, EFFECT_ZK_SET, f->znode, ZK_OK);
	fixture_ask(f, 1, "LOCK a");
	fixture_say(f, 0, "UNLOCK a", ":0");
	fixture_expect(f, 1, ":78849");
	fixture_no_op(f);
	fixture_ask(f, 2, "LOCK a");
	sees(f, beta_waits);
	fixture_serve_get(f, f->znode, 77, SESSION, "");
	fixture_say(f, 1, "UNLOCK a", ":0");
	fixture_expect(f, 2, "");
	fixture_op(f, EFFECT_ZK_CREATE, "-__WRIT__");
}

/* A nonce's bit is all that other hosts have to tell a try by. */
TEST_WITH(only_a_try_of_ours_is_one, NULL, NULL)
{
	static const char kazoo[] = "2000abcdef0123450080000000000001__lock__0000000003";
	static const char kazoo_waits[] = "2000abcdef0123450040000000000001__lock__0000000003";

	static const char uuid4[] = "4c61f3c27f3c4c119d3e1c6f0f3a9b11__lock__0000000003";
	static const char curators[] = "_c_4c61f3c2-7f3c-4c11-8d3e-fc6f0f3a9b11-__WRIT__0000000003";
	static const char go_zk[] = "_c_4c61f3c27f3c8c118d3e8c6f0f3a9b11-lock-0000000003";

	assert_true(is_try(beta_tries));
	assert_false(is_try(beta));
	assert_false(is_try(curators));
	assert_false(contender_tries(slice_of(go_zk), FLAVOUR_MUTEX));
	assert_false(is_try("x-0000000003"));
	assert_true(contender_tries(slice_of(kazoo), FLAVOUR_KAZOO));
	assert_false(contender_tries(slice_of(kazoo_waits), FLAVOUR_KAZOO));
	assert_false(contender_tries(slice_of(uuid4), FLAVOUR_KAZOO));
	assert_false(contender_tries(SLICE("x-0000000003"), FLAVOUR_KAZOO));
}
