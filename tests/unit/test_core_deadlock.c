/* SPDX-License-Identifier: Apache-2.0 */
/* Deadlock detection inside the host: the LOCK that would close a cycle of waits is refused, and no other is. */
#include "core_test.h"

#include "core/client/deadlock.h"
#include "core/port/entry.h"
#include "core/snapshot.h"
#include "core/state.h"

#include <stdio.h>
#include <string.h>

enum { CLIENTS = 8 };

static int start(void **state, bool detection)
{
	struct fixture *f = fixture_new(true);

	f->conf.deadlock_detection = detection;
	f->conf.limits.requests_per_lock = FIXTURE_CONNS;
	f->conf.limits.requests = f->conf.limits.grants = 3 * FIXTURE_CONNS;
	fixture_setup(f, CLIENTS, state);
	for (uint32_t conn = 0; conn < CLIENTS; conn++) {
		fixture_say(f, conn, fixture_words(f, "CLIENT SETNAME c%u", conn), "+OK");
	}
	return 0;
}

static int setup(void **state)
{
	return start(state, true);
}

static int setup_off(void **state)
{
	return start(state, false);
}

/* It is granted, with whatever token. */
static void held(struct fixture *f, uint32_t conn, const char *words)
{
	fixture_say_begin(f, conn, words, ":");
}

static void waits(struct fixture *f, uint32_t conn, const char *words)
{
	fixture_say(f, conn, words, "");
}

static void deadlock(struct fixture *f, uint32_t conn, const char *words)
{
	fixture_say_begin(f, conn, words, "-DEADLOCK ");
}

static void expect_stat(struct fixture *f, const char *line)
{
	fixture_say_part(f, CLIENTS - 1, "INFO stats", line);
}

/* c0 and c1 hold a lock each, and c0 waits for that of c1. */
static void half_a_circle(struct fixture *f)
{
	held(f, 0, "LOCK a");
	held(f, 1, "LOCK b");
	waits(f, 0, "LOCK b");
}

static void one_owner(struct fixture *f, uint32_t one, uint32_t other)
{
	fixture_say(f, one, "CLIENT SETINFO OWNER x", "+OK");
	fixture_say(f, other, "CLIENT SETINFO OWNER x", "+OK");
}

TEST(two_that_cross_are_told_apart)
{
	half_a_circle(f);
	fixture_say(f, 1, "LOCK a",
		    "-DEADLOCK this client waits for \"a\" held by c0 (pid 100), which waits for \"b\" held by this client: "
		    "release one of them first");
	expect_stat(f, "deadlocks_total:1\r\n");
	held(f, 1, "UNLOCK b");
	fixture_expect(f, 0, ":2049");
}

TEST(the_refused_one_leaves_nothing_behind)
{
	half_a_circle(f);
	deadlock(f, 1, "LOCK a");
	fixture_say(f, 1, "QUEUE a", "*0");
	fixture_say(f, 1, "PING", "+PONG");
	deadlock(f, 1, "LOCK a");
}

TEST(who_holds_nothing_waits)
{
	held(f, 0, "LOCK a");
	waits(f, 1, "LOCK a");
	waits(f, 2, "LOCK a");
	held(f, 0, "LOCK b");
	waits(f, 3, "LOCK b");
}

TEST(a_circle_of_many_is_told_in_part)
{
	for (uint32_t i = 0; i < 6; i++) {
		held(f, i, fixture_words(f, "LOCK k%u", i));
	}
	for (uint32_t i = 0; i < 5; i++) {
		waits(f, i, fixture_words(f, "LOCK k%u", i + 1));
	}
	fixture_say(f, 5, "LOCK k0",
		    "-DEADLOCK this client waits for \"k0\" held by c0 (pid 100), which waits for \"k1\" held by c1 (pid 101), "
		    "which waits for \"k2\" held by c2 (pid 102), which waits for 2 more in turn, the last of which "
		    "waits for \"k5\" held by this client: release one of them first");
}

TEST(the_circle_goes_through_who_waits_before)
{
	/* c1 is behind c0 for a, and c0 wants what c1 holds. */
	held(f, 2, "LOCK a");
	held(f, 1, "LOCK b");
	held(f, 0, "LOCK c");
	waits(f, 1, "LOCK a");
	held(f, 3, "LOCK d SHARED");
	fixture_say(f, 0, "LOCK b WAIT 1000", "");
	waits(f, 3, "LOCK b");
	fixture_say(
		f, 2, "LOCK d",
		"-DEADLOCK this client waits for \"d\" held by c3 (pid 103), which waits for \"b\" behind c0 (pid 100), which "
		"waits for \"b\" held by c1 (pid 101), which waits for \"a\" held by this client: release one of them first");
}

TEST(readers_do_not_wait_for_readers)
{
	held(f, 0, "LOCK a SHARED");
	held(f, 1, "LOCK b");
	waits(f, 0, "LOCK b");
	held(f, 1, "LOCK a SHARED");
	held(f, 2, "LOCK c");
	waits(f, 2, "LOCK a");
	/* A reader behind a writer behind a reader. */
	held(f, 3, "LOCK d SHARED");
	waits(f, 4, "LOCK c");
	deadlock(f, 1, "LOCK c");
}

TEST(a_time_limit_does_not_make_it_wait)
{
	held(f, 0, "LOCK a LEASE 1000");
	held(f, 1, "LOCK b LEASE 1000");
	waits(f, 0, "LOCK b WAIT 500");
	deadlock(f, 1, "LOCK a WAIT 500");
	/* A try does not wait at all. */
	fixture_say(f, 1, "LOCK a WAIT 0", "$-1");
	fixture_pass(f, 600);
	fixture_expect(f, 0, "$-1");
	fixture_say(f, 1, "LOCK a WAIT 100", "");
}

TEST(an_enqueue_blocks_nobody)
{
	held(f, 0, "LOCK a");
	held(f, 1, "LOCK b");
	fixture_say(f, 0, "ENQUEUE b", "+QUEUED");
	fixture_say(f, 1, "ENQUEUE a", "+QUEUED");
	fixture_say(f, 1, "CANCEL a", ":1");
	waits(f, 1, "LOCK a");
	/* Still free to let go, and to come back. */
	fixture_say(f, 0, "UNLOCK a", ":0");
	fixture_expect(f, 1, ":1025");
}

/* c0 queued for a and is blocked elsewhere: it can neither take that back nor let it go again. */
TEST(who_waits_behind_an_enqueue_waits_for_its_owner)
{
	held(f, 2, "LOCK a");
	held(f, 1, "LOCK b");
	fixture_say(f, 0, "ENQUEUE a", "+QUEUED");
	waits(f, 0, "LOCK b");
	fixture_say(f, 1, "LOCK a",
		    "-DEADLOCK this client waits for \"a\" behind c0 (pid 100), which waits for \"b\" held by this client: "
		    "release one of them first");
}

/* The first to ask held nothing: nobody waited for it then. What it queued for makes a holder of it later. */
TEST(a_grant_while_it_waits_makes_a_holder)
{
	held(f, 2, "LOCK a");
	held(f, 1, "LOCK b");
	fixture_say(f, 0, "ENQUEUE a", "+QUEUED");
	waits(f, 0, "LOCK b");
	fixture_say(f, 2, "UNLOCK a", ":0");
	deadlock(f, 1, "LOCK a");
}

TEST(clients_of_one_owner_belong_together)
{
	one_owner(f, 0, 1);
	held(f, 0, "LOCK a");
	fixture_say(f, 1, "LOCK a",
		    "-DEADLOCK this client waits for \"a\" held by c0 (pid 100), which is one owner with this client: "
		    "release one of them first");
	/* What REENTER enters again is the connection's own. */
	fixture_say(f, 1, "LOCK a REENTER",
		    "-DEADLOCK this client waits for \"a\" held by c0 (pid 100), which is one owner with this client: "
		    "release one of them first");
	fixture_say(f, 1, "LOCK a REENTER WAIT 0", "$-1");
	held(f, 2, "LOCK b");
	waits(f, 1, "LOCK b");
	fixture_say(
		f, 2, "LOCK a",
		"-DEADLOCK this client waits for \"a\" held by c0 (pid 100), which is one owner with c1 (pid 101), which "
		"waits for \"b\" held by this client: release one of them first");
}

TEST(an_owner_is_said_before_anything_is_held)
{
	static const char late[] = "-ERR set OWNER before acquiring or waiting for a lock";

	held(f, 0, "LOCK a");
	fixture_say(f, 0, "CLIENT SETINFO OWNER x", late);
	fixture_say(f, 1, "ENQUEUE a", "+QUEUED");
	fixture_say(f, 1, "CLIENT SETINFO OWNER x", late);
	fixture_say(f, 2, "CLIENT SETINFO OWNER x", "+OK");
	fixture_say(f, 2, "CLIENT SETINFO OWNER y", "+OK");
	fixture_say(f, 3, "CLIENT SETINFO OWNER y", "+OK");
	fixture_say(f, 3, "CLIENT SETINFO OWNER not\tprintable",
		    "-ERR a name or an owner has at most 64 printable ASCII characters and no spaces");
	held(f, 2, "LOCK b");
	deadlock(f, 3, "LOCK b");
	/* RESET forgets it. */
	fixture_say(f, 3, "RESET", "+RESET");
	waits(f, 3, "LOCK b");
}

/* The pid alone says nothing, and neither does the name another user gave. */
TEST(owners_of_two_users_are_two)
{
	fixture_connect_process(f, 20, 4242, 100, 0);
	one_owner(f, 0, 20);
	held(f, 0, "LOCK a");
	waits(f, 20, "LOCK a");
}

TEST_IN(it_can_be_turned_off, setup_off)
{
	half_a_circle(f);
	waits(f, 1, "LOCK a WAIT 100");
	fixture_pass(f, 200);
	fixture_expect(f, 1, "$-1");
	expect_stat(f, "deadlocks_total:0\r\n");
}

TEST(long_names_are_cut_between_characters)
{
	static const char lock[] = "LOCK 0123456789012345678901234567890\xc3\xa4rest";

	held(f, 0, lock);
	held(f, 1, "LOCK b");
	waits(f, 0, "LOCK b");
	fixture_say(
		f, 1, lock,
		"-DEADLOCK this client waits for \"0123456789012345678901234567890...\" held by c0 (pid 100), which waits for \"b\" "
		"held by this client: release one of them first");
}

/* c1 holds b, c0 holds a and waits for b, and so many wait for a. */
static void crowd(struct fixture *f, uint32_t count, const char *setinfo, const char *words)
{
	held(f, 0, "LOCK a");
	held(f, 1, "LOCK b");
	for (uint32_t conn = CLIENTS; conn < CLIENTS + count; conn++) {
		fixture_connect(f, conn);
		if (setinfo)
			fixture_say(f, conn, setinfo, "+OK");
		waits(f, conn, words);
	}
	waits(f, 0, "LOCK b");
}

/* With the request that is asked for, and that of c0. */
TEST(as_many_as_may_are_followed)
{
	crowd(f, DEADLOCK_REQUESTS_MAX - 2, NULL, "LOCK a");
	deadlock(f, 1, "LOCK a");
	expect_stat(f, "deadlock_cuts_total:0\r\n");
}

TEST(beyond_that_it_waits_and_is_counted)
{
	crowd(f, DEADLOCK_REQUESTS_MAX - 1, NULL, "LOCK a");
	waits(f, 1, "LOCK a");
	expect_stat(f, "deadlock_cuts_total:1\r\n");
	expect_stat(f, "deadlocks_total:0\r\n");
}

enum { CROWD = 600 };

/* Each of them is looked at once, not once for every other. */
TEST(a_crowd_of_readers_is_searched)
{
	crowd(f, CROWD, NULL, "LOCK a SHARED");
	deadlock(f, 1, "LOCK a");
	expect_stat(f, "deadlock_cuts_total:0\r\n");
}

/* When one of an owner's clients is met, all of them are looked at: once, not whenever another one is met. */
TEST(a_crowd_of_one_owner_is_searched)
{
	crowd(f, CROWD, "CLIENT SETINFO OWNER x", "LOCK a SHARED");
	deadlock(f, 1, "LOCK a");
	expect_stat(f, "deadlock_cuts_total:0\r\n");
}

/* c1 asks for m, which so many share; each of them waits for a lock that so many others share. */
static void shared_by_many(struct fixture *f, uint32_t count)
{
	f->conf.limits.grants = 3 * count * count;
	f->conf.limits.grants_per_client = f->conf.limits.locks = 2 * count;
	for (uint32_t conn = CLIENTS; conn < CLIENTS + 2 * count; conn++)
		fixture_connect(f, conn);
	for (uint32_t i = 0; i < count; i++) {
		held(f, CLIENTS + i, "LOCK m SHARED");
		for (uint32_t j = 0; j < count; j++) {
			held(f, CLIENTS + count + j, fixture_words(f, "LOCK l%u SHARED", i));
		}
		waits(f, CLIENTS + i, fixture_words(f, "LOCK l%u", i));
	}
	held(f, 1, "LOCK b");
	waits(f, 1, "LOCK m");
}

/* Of each grant the client is looked at, too; and of m as many as of any other. */
enum { SHARERS = 32 };
_Static_assert(2 * SHARERS * (SHARERS + 1) > DEADLOCK_EDGES_MAX && 2 * (SHARERS - 1) * SHARERS < DEADLOCK_EDGES_MAX,
	       "one more is too much");

TEST(what_is_looked_at_is_bounded)
{
	shared_by_many(f, SHARERS);
	expect_stat(f, "deadlock_cuts_total:1\r\n");
}

TEST(as_much_as_may_be_is_looked_at)
{
	shared_by_many(f, SHARERS - 1);
	expect_stat(f, "deadlock_cuts_total:0\r\n");
}

/* ---- in one event, which is bounded ---- */

static void cut_after(struct fixture *f, size_t looks)
{
	assert_int_equal(f->broker->locks.searched, looks);
	expect_stat(f, "deadlock_cuts_total:1\r\n");
}

TEST(the_search_that_is_done_in_one_event_is_bounded)
{
	shared_by_many(f, SHARERS);
	cut_after(f, DEADLOCK_EDGES_MAX);
}

/* Each of 150 has a permit and waits for another one: each looks at those before it, and at all permits. */
TEST(a_search_among_permits_that_is_done_in_one_event_is_bounded)
{
	for (uint32_t conn = CLIENTS; conn < CLIENTS + 150; conn++) {
		fixture_connect(f, conn);
		held(f, conn, "ACQUIRE p LIMIT 150");
	}
	for (uint32_t conn = CLIENTS; conn < CLIENTS + 149; conn++)
		waits(f, conn, "ACQUIRE p LIMIT 150");
	f->broker->env.stats.deadlock_cuts_total = 0;
	held(f, 1, "LOCK b");
	waits(f, 1, "ACQUIRE p LIMIT 150");
	cut_after(f, DEADLOCK_EDGES_GATHERED_MAX);
}

/* It gets no piece of work: whoever comes next finds nothing left to be done. */
TEST(a_search_leaves_nothing_for_later_events)
{
	crowd(f, 600, NULL, "LOCK a");
	fixture_ask(f, 1, "LOCK a");
	assert_false(broker_has_work(f->broker));
	assert_true(f->broker->locks.searched > 2 * 600);
	fixture_expect_begin(f, 1, "-DEADLOCK ");
	expect_stat(f, "deadlocks_total:1\r\n");
	/* It waits for nothing any longer, and keeps what it holds. */
	fixture_say(f, 1, "UNLOCK b", ":0");
}

/* Writes of these clients, as the version before did, that a search for them is under way. */
static void add_searching(struct bytes *text, const uint32_t *conns, size_t count)
{
	static const char searching[] = "+searching\r\n:1\r\n";
	char client[48];

	for (size_t i = 0; i < count; i++) {
		struct bytes rest = { 0 };
		char *at;

		snprintf(client, sizeof(client), "\r\n+client\r\n+conn\r\n:%u\r\n", conns[i]);
		at = memmem(text->data, text->len, client, strlen(client));
		assert_non_null(at);
		at[-1] = (char)(at[-1] + 2); /* the number of values, whose last digit is below 8 */
		assert_in_range(at[-1], '2', '9');
		at += strlen(client);
		bytes_append(&rest, at, (size_t)(text->data + text->len - at));
		text->len = (size_t)(at - text->data);
		bytes_append(text, searching, sizeof(searching) - 1);
		bytes_append(text, rest.data, rest.len);
		bytes_free(&rest);
	}
}

static void hand_over_from_the_version_before(struct fixture *f, const uint32_t *conns, size_t count)
{
	struct bytes text = { 0 };

	broker_snapshot(f->broker, &text);
	add_searching(&text, conns, count);
	seal_end(&text, 0);
	fixture_restore(f, bytes_view(&text));
	bytes_free(&text);
}

/* The wait that closes the cycle was not refused, as if detection had been off when it began. */
TEST(a_search_goes_on_after_a_hand_over)
{
	half_a_circle(f);
	f->conf.deadlock_detection = false;
	waits(f, 1, "LOCK a");
	f->conf.deadlock_detection = true;
	hand_over_from_the_version_before(f, (const uint32_t[]){ 1 }, 1);
	fixture_simple(f, EVENT_TIME, 0);
	fixture_expect_begin(f, 1, "-DEADLOCK ");
	fixture_simple(f, EVENT_TIME, 0);
	expect_stat(f, "deadlocks_total:1\r\n");
}

/* Each would look at 2,000: the fifth is given up on its way, and the sixth at once. */
TEST(an_event_gives_up_further_searches_when_it_has_looked_at_as_many_as_one_may)
{
	crowd(f, 1000, NULL, "LOCK a");
	hand_over_from_the_version_before(f, (const uint32_t[]){ 1002, 1003, 1004, 1005, 1006, 1007 }, 6);
	fixture_simple(f, EVENT_TIME, 0);
	assert_int_equal(f->broker->locks.searched, DEADLOCK_EDGES_IN_ALL);
	expect_stat(f, "deadlock_cuts_total:2\r\n");
}

/* ---- permits ---- */

enum { PERMITS = 400 };

/* So many have one permit each of as many, and wait for b; c1, which holds that, asks for one, too. */
TEST(a_knot_of_permits_is_found)
{
	const char *words = fixture_words(f, "ACQUIRE p LIMIT %d", PERMITS);

	held(f, 1, "LOCK b");
	for (uint32_t conn = CLIENTS; conn < CLIENTS + PERMITS; conn++) {
		fixture_connect(f, conn);
		held(f, conn, words);
	}
	for (uint32_t conn = CLIENTS; conn < CLIENTS + PERMITS - 1; conn++)
		waits(f, conn, "LOCK b");
	/* One of them can go on yet. */
	waits(f, 1, words);
	fixture_say(f, CLIENTS + PERMITS - 1, "RELEASE p", ":0");
	fixture_expect_begin(f, 1, ":");
	/* Then none can. */
	deadlock(f, 1, words);
	expect_stat(f, "deadlock_cuts_total:0\r\n");
}

/*
 * c1 has one of two permits and waits for a, which c2 holds; c2 waits for a permit. The other one is c3's, which is one
 * owner with c4: that can go on, and then c3 can.
 */
TEST(a_wait_that_ends_ties_its_owner_no_longer)
{
	one_owner(f, 3, 4);
	held(f, 2, "LOCK a");
	held(f, 5, "LOCK z");
	held(f, 1, "ACQUIRE p LIMIT 2");
	held(f, 3, "ACQUIRE p LIMIT 2");
	waits(f, 4, "LOCK z");
	waits(f, 2, "ACQUIRE p LIMIT 2");
	waits(f, 1, "LOCK a");
	held(f, 5, "UNLOCK z");
	fixture_expect(f, 1, "");
	expect_stat(f, "deadlocks_total:0\r\n");
}

/*
 * Of three permits c0 has two. c3 waits for all of them, then c4, one owner with c3, for one: c3 gets all of them, and as
 * long as c4 waits their owner keeps them. Another one that waits between the two changes nothing, and leaves or stays.
 */
TEST_WITH(who_stands_between_two_of_an_owner_and_leaves_hides_no_deadlock, NULL, NULL)
{
	for (int leaves = 0; leaves <= 1; leaves++) {
		struct fixture *f;

		setup(state);
		f = *state;
		one_owner(f, 3, 4);
		held(f, 0, "ACQUIRE p LIMIT 3 COUNT 2");
		waits(f, 2, "ACQUIRE p LIMIT 3 COUNT 2");
		waits(f, 3, "ACQUIRE p LIMIT 3 COUNT 3");
		if (leaves)
			fixture_simple(f, EVENT_CLIENT_GONE, 2);
		deadlock(f, 4, "ACQUIRE p LIMIT 3");
		fixture_teardown(state);
	}
}

/* ---- others that begin to wait in the same event ---- */

/* c4 releases l and m, each of which an MLOCK takes; then both wait for z, for which many wait before. */
TEST(after_a_long_search_an_mlock_goes_on_in_a_later_event)
{
	held(f, 4, "LOCK l");
	held(f, 4, "LOCK m");
	held(f, 5, "LOCK z");
	for (uint32_t conn = CLIENTS; conn < CLIENTS + 100; conn++) {
		fixture_connect(f, conn);
		waits(f, conn, "LOCK z");
	}
	waits(f, 2, "MLOCK 2 l z");
	waits(f, 3, "MLOCK 2 m z");
	fixture_say(f, 4, "MUNLOCK 2 l m", "*2 :0 :0");
	assert_true(f->broker->locks.searched > DEADLOCK_EDGES_AT_ONCE);
	assert_true(f->broker->locks.searched < 4 * 100);
	assert_true(broker_has_work(f->broker));
	fixture_simple(f, EVENT_TIME, 0);
	assert_true(f->broker->locks.searched > 2 * 100);
	assert_false(broker_has_work(f->broker));
	assert_non_null(f->broker->locks.conns[2]->request);
	assert_non_null(f->broker->locks.conns[3]->request);
}
