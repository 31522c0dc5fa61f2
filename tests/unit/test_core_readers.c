/* SPDX-License-Identifier: Apache-2.0 */
/* Readers who join others of their host, and contenders of other hosts whom they do not pass. */
#include "core_test.h"

static const char reader_low[] = "_c_4c61f3c2-7f3c-4c11-9d3e-1c6f0f3a9b11-__READ__0000000001";
static const char writer_high[] = "_c_4c61f3c2-7f3c-4c11-9d3e-1c6f0f3a9b15-__WRIT__0000000009";
static const char reader_high[] = "_c_4c61f3c2-7f3c-4c11-9d3e-1c6f0f3a9b16-__READ__0000000010";

SETUP(setup_standalone, true, 6)

/* Which claims without a grant may be handed off, and how often, says nothing about who joins. */
static int setup(void **state)
{
	struct fixture *f = fixture_new(false);

	f->conf.handoff_max = 1000000;
	f->conf.handoff_ns = 1000000 * MS;
	return fixture_setup(f, 6, state);
}

static void make_claim(struct fixture *f, const char *tag, uint32_t seq, char name[128])
{
	fixture_serve_made(f, tag, seq, 70 + seq, name);
	fixture_op(f, EFFECT_ZK_LIST, "/lb/a");
}

/* By 0, on number 5: token 75 << 10. */
static void read_held(struct fixture *f)
{
	fixture_ask(f, 0, "LOCK a SHARED");
	fixture_answer_get(f, 1, 0, LOCK_DATA);
	make_claim(f, "-__READ__", 5, f->znode);
	fixture_answer_list(f, 1, 2, (const char *[]){ reader_low, f->znode });
	fixture_expect(f, 0, ":76800");
	fixture_no_op(f);
}

/* The oldest that is open, and the only one. */
static void expect_list_with_watch(struct fixture *f)
{
	assert_int_equal(f->end_op - f->first_op, 1);
	assert_true(fixture_op(f, EFFECT_ZK_LIST, "/lb/a")->effect.watch);
}

static void answer_list_with_watch(struct fixture *f, size_t count, const char *const *children)
{
	expect_list_with_watch(f);
	fixture_answer_list(f, 1, count, children);
}

/* By 0 and 1, and nobody else wants it but readers. */
static void read_quietly(struct fixture *f)
{
	read_held(f);
	fixture_say(f, 1, "LOCK a SHARED", "");
	answer_list_with_watch(f, 3, (const char *[]){ reader_low, f->znode, reader_high });
	fixture_expect(f, 1, ":76800");
	fixture_no_op(f);
}

static void something_changes(struct fixture *f)
{
	fixture_watch(f, ZK_WATCH_CHILDREN, "/lb/a");
}

/* 1 has asked; the answer shows a writer; `next` is queued behind him, and 1 waits. */
static void held_back(struct fixture *f, char next[128])
{
	answer_list_with_watch(f, 3, (const char *[]){ f->znode, writer_high, reader_high });
	make_claim(f, "-__READ__", 11, next);
	something_changes(f);
	answer_list_with_watch(f, 4, (const char *[]){ f->znode, writer_high, reader_high, next });
	fixture_refuse_own(f);
	fixture_serve_get(f, writer_high, 80, 9, "");
	fixture_no_op(f);
	fixture_expect(f, 1, "");
}

TEST(where_nobody_else_waits_readers_join_without_a_word_to_zookeeper)
{
	read_quietly(f);
	for (uint32_t conn = 2; conn < 6; conn++)
		fixture_say(f, conn, "LOCK a SHARED WAIT 0", ":76800");
	fixture_no_op(f);
}

/* Also when something changes right after: that is about who asks from then on. */
TEST(one_list_decides_for_all_who_wait_when_it_comes)
{
	read_held(f);
	fixture_say(f, 1, "LOCK a SHARED", "");
	fixture_say(f, 2, "LOCK a SHARED WAIT 0", "");
	fixture_say(f, 3, "LOCK a SHARED", "");
	answer_list_with_watch(f, 2, (const char *[]){ reader_low, f->znode });
	something_changes(f);
	for (uint32_t conn = 1; conn < 4; conn++)
		fixture_expect(f, conn, ":76800");
	fixture_no_op(f);
	fixture_say(f, 4, "LOCK a SHARED", "");
	expect_list_with_watch(f);
}

/* Readers of other hosts come and go all the time: each list lets in who has asked until it was answered. */
TEST(changes_without_end_keep_no_reader_waiting)
{
	read_quietly(f);
	for (uint32_t conn = 2; conn < 6; conn++) {
		something_changes(f);
		fixture_say(f, conn, "LOCK a SHARED", "");
		expect_list_with_watch(f);
		something_changes(f); /* told by a watch of before */
		fixture_answer_list(f, 1, 2, (const char *[]){ f->znode, reader_high });
		fixture_expect(f, conn, ":76800");
	}
}

TEST(nobody_joins_past_a_writer_of_another_host)
{
	char next[128];

	read_held(f);
	fixture_say(f, 1, "LOCK a SHARED", "");
	held_back(f, next);
	fixture_say(f, 2, "LOCK a SHARED WAIT 0", "$-1");
	fixture_say(f, 2, "LOCK a SHARED", "");
	/* Who has it already does not join. */
	fixture_say(f, 0, "LOCK a SHARED REENTER", ":76800");
	fixture_say(f, 0, "UNLOCK a", ":1");
	/* Nor after those who read: it would be as late as before. */
	fixture_say(f, 0, "UNLOCK a", ":0");
	fixture_serve(f, EFFECT_ZK_DELETE, f->znode, ZK_OK);
	fixture_no_op(f);
	fixture_expect(f, 1, "");
	fixture_watch_contender(f, ZK_WATCH_DELETED, writer_high);
	fixture_serve_list(f, "/lb/a", 2, (const char *[]){ reader_high, next });
	fixture_expect(f, 1, ":82944");
	fixture_expect(f, 2, ":82944");
}

TEST(a_reader_held_back_joins_when_the_writer_elsewhere_has_gone)
{
	char next[128];

	read_held(f);
	fixture_say(f, 1, "LOCK a SHARED", "");
	held_back(f, next);
	something_changes(f);
	answer_list_with_watch(f, 3, (const char *[]){ f->znode, reader_high, next });
	fixture_expect(f, 1, ":76800");
	fixture_op(f, EFFECT_ZK_DELETE, next);
}

/* Its place among the hosts is that of next: who came after that is not before it. */
TEST(a_reader_held_back_joins_when_all_who_were_before_it_have_gone)
{
	static const char writer_late[] = "_c_4c61f3c2-7f3c-4c11-9d3e-1c6f0f3a9b17-__WRIT__0000000012";
	char next[128];

	read_held(f);
	fixture_say(f, 1, "LOCK a SHARED", "");
	held_back(f, next);
	something_changes(f);
	answer_list_with_watch(f, 5, (const char *[]){ f->znode, writer_high, reader_high, next, writer_late });
	fixture_expect(f, 1, "");
	fixture_watch_contender(f, ZK_WATCH_DELETED, writer_high);
	fixture_serve_list(f, "/lb/a", 4, (const char *[]){ f->znode, reader_high, next, writer_late });
	fixture_expect(f, 1, ":76800");
	fixture_op(f, EFFECT_ZK_DELETE, next);
	fixture_say(f, 2, "LOCK a SHARED WAIT 0", "$-1");
}

TEST(what_changes_is_looked_at_before_the_next_one_joins)
{
	char next[128];

	read_quietly(f);
	fixture_say(f, 1, "UNLOCK a", ":0");
	something_changes(f);
	fixture_no_op(f);
	fixture_say(f, 2, "LOCK a SHARED WAIT 0", "");
	fixture_say(f, 1, "LOCK a SHARED", "");
	held_back(f, next);
	fixture_expect(f, 2, "$-1");
}

/* It is as exclusive as before: whoever waits elsewhere waits for this host. */
TEST(who_reads_elsewhere_is_not_passed_by_those_who_join_a_downgraded_grant)
{
	fixture_lock_held(f, 0, "a", 5, 75, f->znode, sizeof(f->znode));
	fixture_expect(f, 0, ":76800");
	fixture_say(f, 1, "LOCK a SHARED", "");
	fixture_say(f, 0, "DOWNGRADE a", ":76800");
	answer_list_with_watch(f, 1, (const char *[]){ f->znode });
	fixture_expect(f, 1, ":76801");
	something_changes(f);
	fixture_say(f, 2, "LOCK a SHARED", "");
	answer_list_with_watch(f, 2, (const char *[]){ f->znode, reader_high });
	fixture_expect(f, 2, "");
	fixture_op(f, EFFECT_ZK_CREATE, "-__READ__");
}

/* What is handed off is a claim that nobody holds: the bounds for that are those of the configuration. */
TEST(a_claim_that_nobody_holds_is_handed_to_readers_within_the_bounds)
{
	fixture_ask(f, 0, "LOCK a");
	fixture_answer_get(f, 1, 0, LOCK_DATA);
	make_claim(f, "-__WRIT__", 5, f->znode);
	fixture_answer_list(f, 1, 2, (const char *[]){ f->znode, writer_high });
	fixture_expect(f, 0, ":76800");
	fixture_say(f, 1, "LOCK a SHARED", "");
	fixture_say(f, 2, "LOCK a SHARED", "");
	fixture_say(f, 0, "UNLOCK a", ":0");
	fixture_expect(f, 1, ":76801");
	fixture_expect(f, 2, ":76801");
	fixture_say(f, 3, "LOCK a SHARED", "");
	answer_list_with_watch(f, 2, (const char *[]){ f->znode, writer_high });
	fixture_expect(f, 3, "");
	fixture_op(f, EFFECT_ZK_CREATE, "-__READ__");
}

/* By 0; the others wait to read, and what a writer elsewhere does is not known. A batch is granted one by one. */
static void many_wait_to_read(struct fixture *f)
{
	f->conf.all_in_pieces = true;
	f->conf.handoff_max = 1;
	fixture_lock_held(f, 0, "a", 5, 75, f->znode, sizeof(f->znode));
	fixture_expect(f, 0, ":76800");
	for (uint32_t conn = 1; conn < 5; conn++)
		fixture_say(f, conn, "LOCK a SHARED", "");
	f->now_ns += MS;
	fixture_say(f, 0, "UNLOCK a", ":0");
	fixture_expect(f, 1, ":76801");
}

static void a_turn(struct fixture *f)
{
	fixture_simple(f, EVENT_TIME, 0);
}

TEST(a_batch_is_one_hand_off_whoever_is_seen_to_wait_meanwhile)
{
	many_wait_to_read(f);
	f->now_ns += MS;
	fixture_say(f, 5, "LOCK a SHARED", "");
	answer_list_with_watch(f, 2, (const char *[]){ f->znode, writer_high });
	fixture_no_op(f);
	for (uint32_t conn = 2; conn < 5; conn++) {
		fixture_expect(f, conn, "");
		a_turn(f);
		fixture_expect(f, conn, ":76801");
	}
	assert_false(broker_has_work(f->broker));
	fixture_expect(f, 5, "");
	fixture_op(f, EFFECT_ZK_CREATE, "-__READ__");
}

/* They would have got it with those before them, so they do not count as kept waiting. */
TEST(the_time_of_one_runs_out_before_its_turn_and_it_gets_the_lock)
{
	f->conf.all_in_pieces = true;
	fixture_lock_held(f, 0, "a", 5, 75, f->znode, sizeof(f->znode));
	fixture_expect(f, 0, ":76800");
	for (uint32_t conn = 1; conn < 5; conn++)
		fixture_say(f, conn, "LOCK a SHARED WAIT 2", "");
	f->now_ns += MS;
	fixture_say(f, 0, "UNLOCK a", ":0");
	answer_list_with_watch(f, 2, (const char *[]){ f->znode, writer_high });
	f->now_ns += 5 * MS;
	for (uint32_t conn = 2; conn < 5; conn++)
		a_turn(f);
	for (uint32_t conn = 1; conn < 5; conn++)
		fixture_expect(f, conn, ":76801");
}

/* It is as it was for those of them who got it while it was long enough. */
TEST(a_batch_stops_while_the_proof_is_short_and_goes_on_after_that)
{
	many_wait_to_read(f);
	fixture_simple(f, EVENT_ZK_SUSPENDED, 0);
	for (int i = 0; i < 2; i++) {
		f->now_ns += 3600 * MS;
		fixture_say(f, 5, "PING", "+PONG");
	}
	a_turn(f);
	a_turn(f);
	assert_false(broker_has_work(f->broker));
	fixture_expect(f, 2, "");
	fixture_reconnected(f);
	fixture_expect(f, 2, ":76801");
	fixture_pieces(f);
	fixture_expect(f, 4, ":76801");
}

TEST(without_a_connection_readers_join_where_nobody_else_waited)
{
	read_quietly(f);
	fixture_simple(f, EVENT_ZK_SUSPENDED, 0);
	fixture_say(f, 2, "LOCK a SHARED", ":76800");
	fixture_say(f, 3, "LOCK a SHARED WAIT 0", ":76800");
	/* What was known is of the connection before. */
	fixture_reconnected(f);
	fixture_say(f, 4, "LOCK a SHARED", "");
	fixture_simple(f, EVENT_ZK_SUSPENDED, 0);
	fixture_say(f, 5, "LOCK a SHARED WAIT 0",
		    "-UNAVAILABLE there is no connection to ZooKeeper, so it is not known whether the lock is taken: a");
	fixture_expect(f, 4, "");
}

TEST(without_a_connection_nobody_joins_where_somebody_may_wait)
{
	read_quietly(f);
	something_changes(f);
	fixture_simple(f, EVENT_ZK_SUSPENDED, 0);
	fixture_say(f, 2, "LOCK a SHARED WAIT 0",
		    "-UNAVAILABLE there is no connection to ZooKeeper, so it is not known whether the lock is taken: a");
	fixture_say(f, 2, "LOCK a SHARED", "");
	fixture_reconnected(f);
	fixture_serve_list(f, "/lb/a", 2, (const char *[]){ reader_low, f->znode }); /* recovery's */
	answer_list_with_watch(f, 2, (const char *[]){ reader_low, f->znode });
	fixture_expect(f, 2, ":76800");
}

ALONE(alone_on_their_host_readers_ask_nobody)
{
	fixture_say(f, 0, "LOCK a SHARED", ":1024");
	for (uint32_t conn = 1; conn < 6; conn++)
		fixture_say(f, conn, "LOCK a SHARED WAIT 0", ":1024");
}
