/* SPDX-License-Identifier: Apache-2.0 */
/* Deadlock detection inside the host: the LOCK that would close a cycle of waits is refused, and no other is. */
#include "core_fixture.h"

#include "core/client/deadlock.h"
#include "core/state.h"

#include <stdio.h>
#include <string.h>

enum { CLIENTS = 8 };

static int start(void **state, bool detection)
{
	struct fixture *f = fixture_new(true);
	char words[32];

	f->conf.deadlock_detection = detection;
	f->conf.limits.requests_per_lock = FIXTURE_CONNS;
	f->conf.limits.requests = f->conf.limits.grants = 3 * FIXTURE_CONNS;
	fixture_setup(f, CLIENTS, state);
	for (uint32_t conn = 0; conn < CLIENTS; conn++) {
		snprintf(words, sizeof(words), "CLIENT SETNAME c%u", conn);
		fixture_say(f, conn, words, "+OK");
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
	fixture_ask(f, conn, words);
	if (!f->replies[conn].len || f->replies[conn].data[0] != ':')
		fail_msg("%s: %.*s", words, (int)f->replies[conn].len, f->replies[conn].data);
	bytes_clear(&f->replies[conn]);
}

static void waits(struct fixture *f, uint32_t conn, const char *words)
{
	fixture_say(f, conn, words, "");
}

static void piece(struct fixture *f)
{
	assert_true(broker_has_work(f->broker));
	fixture_simple(f, EVENT_TIME, 0);
}

/* The rest of a search that takes more than one event. */
static void pieces(struct fixture *f)
{
	while (broker_has_work(f->broker))
		piece(f);
}

/* Anew, so that everything is done in pieces. */
static struct fixture *start_in_pieces(void **state)
{
	struct fixture *f;

	fixture_teardown(state);
	assert_int_equal(start(state, true), 0);
	f = *state;
	f->conf.all_in_pieces = true;
	return f;
}

/* True: there is more. */
static bool pieces_up_to(struct fixture *f, int count)
{
	for (int i = 0; i < count && broker_has_work(f->broker); i++)
		piece(f);
	return broker_has_work(f->broker);
}

static void in_deadlock(struct fixture *f, uint32_t conn)
{
	assert_true(f->replies[conn].len > 10 && memcmp(f->replies[conn].data, "-DEADLOCK ", 10) == 0);
	bytes_clear(&f->replies[conn]);
}

static void deadlock(struct fixture *f, uint32_t conn, const char *words)
{
	fixture_ask(f, conn, words);
	pieces(f);
	in_deadlock(f, conn);
}

static void expect_stat(struct fixture *f, const char *line)
{
	fixture_ask(f, CLIENTS - 1, "INFO stats");
	bytes_char(&f->replies[CLIENTS - 1], '\0');
	if (!strstr(f->replies[CLIENTS - 1].data, line))
		fail_msg("%s: %s", line, f->replies[CLIENTS - 1].data);
	bytes_clear(&f->replies[CLIENTS - 1]);
}

TEST(two_that_cross_are_told_apart)
{
	struct fixture *f = *state;

	held(f, 0, "LOCK a");
	held(f, 1, "LOCK b");
	waits(f, 0, "LOCK b");
	fixture_say(f, 1, "LOCK a",
		    "-DEADLOCK this client waits for \"a\" held by c0 (pid 100), which waits for \"b\" held by this client: "
		    "release one of them first");
	expect_stat(f, "deadlocks_total:1\r\n");
	held(f, 1, "UNLOCK b");
	fixture_expect(f, 0, ":2049");
}

TEST(the_refused_one_leaves_nothing_behind)
{
	struct fixture *f = *state;

	held(f, 0, "LOCK a");
	held(f, 1, "LOCK b");
	waits(f, 0, "LOCK b");
	deadlock(f, 1, "LOCK a");
	fixture_say(f, 1, "QUEUE a", "*0");
	fixture_say(f, 1, "PING", "+PONG");
	deadlock(f, 1, "LOCK a");
}

TEST(who_holds_nothing_waits)
{
	struct fixture *f = *state;

	held(f, 0, "LOCK a");
	waits(f, 1, "LOCK a");
	waits(f, 2, "LOCK a");
	held(f, 0, "LOCK b");
	waits(f, 3, "LOCK b");
}

TEST(a_circle_of_many_is_told_in_part)
{
	struct fixture *f = *state;
	char words[16];

	for (uint32_t i = 0; i < 6; i++) {
		snprintf(words, sizeof(words), "LOCK k%u", i);
		held(f, i, words);
	}
	for (uint32_t i = 0; i < 5; i++) {
		snprintf(words, sizeof(words), "LOCK k%u", i + 1);
		waits(f, i, words);
	}
	fixture_say(f, 5, "LOCK k0",
		    "-DEADLOCK this client waits for \"k0\" held by c0 (pid 100), which waits for \"k1\" held by c1 (pid 101), "
		    "which waits for \"k2\" held by c2 (pid 102), which waits for 2 more in turn, the last of which "
		    "waits for \"k5\" held by this client: release one of them first");
}

TEST(the_circle_goes_through_who_waits_before)
{
	struct fixture *f = *state;

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
	struct fixture *f = *state;

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
	struct fixture *f = *state;

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
	struct fixture *f = *state;

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
	struct fixture *f = *state;

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
	struct fixture *f = *state;

	held(f, 2, "LOCK a");
	held(f, 1, "LOCK b");
	fixture_say(f, 0, "ENQUEUE a", "+QUEUED");
	waits(f, 0, "LOCK b");
	fixture_say(f, 2, "UNLOCK a", ":0");
	deadlock(f, 1, "LOCK a");
}

TEST(clients_of_one_owner_belong_together)
{
	struct fixture *f = *state;

	fixture_say(f, 0, "CLIENT SETINFO OWNER job-7", "+OK");
	fixture_say(f, 1, "CLIENT SETINFO OWNER job-7", "+OK");
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
	struct fixture *f = *state;
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
	struct fixture *f = *state;
	struct event connected = { .type = EVENT_CLIENT_CONNECTED, .conn = 20 };

	connected.connected.pid = 100;
	connected.connected.uid = 4242;
	connected.connected.comm = SLICE("other");
	fixture_event(f, &connected);
	fixture_say(f, 0, "CLIENT SETINFO OWNER x", "+OK");
	fixture_say(f, 20, "CLIENT SETINFO OWNER x", "+OK");
	held(f, 0, "LOCK a");
	waits(f, 20, "LOCK a");
}

TEST_IN(it_can_be_turned_off, setup_off)
{
	struct fixture *f = *state;

	held(f, 0, "LOCK a");
	held(f, 1, "LOCK b");
	waits(f, 0, "LOCK b");
	waits(f, 1, "LOCK a WAIT 100");
	fixture_pass(f, 200);
	fixture_expect(f, 1, "$-1");
	expect_stat(f, "deadlocks_total:0\r\n");
}

TEST(long_names_are_cut_between_characters)
{
	struct fixture *f = *state;
	static const char name[] = "0123456789012345678901234567890\xc3\xa4rest";
	char words[64], expected[256];

	snprintf(words, sizeof(words), "LOCK %s", name);
	held(f, 0, words);
	held(f, 1, "LOCK b");
	waits(f, 0, "LOCK b");
	snprintf(
		expected, sizeof(expected),
		"-DEADLOCK this client waits for \"0123456789012345678901234567890...\" held by c0 (pid 100), which waits for \"b\" "
		"held by this client: release one of them first");
	fixture_say(f, 1, words, expected);
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
	crowd(*state, SEARCH_REQUESTS_MAX - 2, NULL, "LOCK a");
	deadlock(*state, 1, "LOCK a");
	expect_stat(*state, "deadlock_cuts_total:0\r\n");
}

TEST(beyond_that_it_waits_and_is_counted)
{
	crowd(*state, SEARCH_REQUESTS_MAX - 1, NULL, "LOCK a");
	waits(*state, 1, "LOCK a");
	pieces(*state);
	fixture_expect(*state, 1, "");
	expect_stat(*state, "deadlock_cuts_total:1\r\n");
	expect_stat(*state, "deadlocks_total:0\r\n");
}

/* Each of them is looked at once, not once for every other. */
TEST(a_crowd_of_readers_is_searched)
{
	crowd(*state, 1000, NULL, "LOCK a SHARED");
	deadlock(*state, 1, "LOCK a");
	expect_stat(*state, "deadlock_cuts_total:0\r\n");
}

/* When one of an owner's clients is met, all of them are looked at: once, not whenever another one is met. */
TEST(a_crowd_of_one_owner_is_searched)
{
	crowd(*state, 1000, "CLIENT SETINFO OWNER x", "LOCK a SHARED");
	deadlock(*state, 1, "LOCK a");
	expect_stat(*state, "deadlock_cuts_total:0\r\n");
}

/* c1 asks for m, which so many share; each of them waits for a lock that so many others share. */
static void shared_by_many(struct fixture *f, uint32_t count)
{
	char words[32];

	f->conf.limits.grants = 3 * count * count;
	f->conf.limits.grants_per_client = f->conf.limits.locks = 2 * count;
	for (uint32_t conn = CLIENTS; conn < CLIENTS + 2 * count; conn++)
		fixture_connect(f, conn);
	for (uint32_t i = 0; i < count; i++) {
		held(f, CLIENTS + i, "LOCK m SHARED");
		for (uint32_t j = 0; j < count; j++) {
			snprintf(words, sizeof(words), "LOCK l%u SHARED", i);
			held(f, CLIENTS + count + j, words);
		}
		snprintf(words, sizeof(words), "LOCK l%u", i);
		waits(f, CLIENTS + i, words);
	}
	held(f, 1, "LOCK b");
	waits(f, 1, "LOCK m");
	pieces(f);
	fixture_expect(f, 1, "");
}

/* Of each grant the client is looked at, too; and of m as many as of any other. */
enum { SHARERS = 45 };
_Static_assert(2 * SHARERS * (SHARERS + 1) > DEADLOCK_EDGES_MAX && 2 * (SHARERS - 1) * SHARERS < DEADLOCK_EDGES_MAX,
	       "one more is too much");

TEST(what_is_looked_at_is_bounded)
{
	shared_by_many(*state, SHARERS);
	expect_stat(*state, "deadlock_cuts_total:1\r\n");
}

TEST(as_much_as_may_be_is_looked_at)
{
	shared_by_many(*state, SHARERS - 1);
	expect_stat(*state, "deadlock_cuts_total:0\r\n");
}

/* ---- in pieces: what one event does of a search is bounded, and the rest goes on while waits come and go ---- */

/* Two for each of a crowd, and for c0; three more until c1 is met. */
enum { PIECE_CROWD = (DEADLOCK_EDGES_A_PIECE - 3) / 2 };

TEST(what_fits_into_one_event_is_answered_at_once)
{
	crowd(*state, PIECE_CROWD, NULL, "LOCK a");
	fixture_ask(*state, 1, "LOCK a");
	assert_false(broker_has_work(((struct fixture *)*state)->broker));
	assert_true(((struct fixture *)*state)->replies[1].len);
}

TEST(what_does_not_fit_goes_on_in_later_events)
{
	struct fixture *f = *state;

	crowd(f, PIECE_CROWD + 1, NULL, "LOCK a");
	waits(f, 1, "LOCK a");
	piece(f);
	fixture_expect(f, 1, "");
	piece(f);
	assert_true(f->replies[1].len > 10 &&
		    memcmp(f->replies[1].data, "-DEADLOCK this client waits for \"a\" behind", 40) == 0);
	assert_false(broker_has_work(f->broker));
	bytes_clear(&f->replies[1]);
	expect_stat(f, "deadlocks_total:1\r\n");
	/* It waits for nothing any longer, and keeps what it holds. */
	fixture_say(f, 1, "UNLOCK b", ":0");
}

TEST(no_event_does_more_than_a_piece)
{
	struct fixture *f = *state;
	int events = 0;

	crowd(f, 1000, NULL, "LOCK a");
	waits(f, 1, "LOCK a");
	for (; broker_has_work(f->broker); events++)
		piece(f);
	assert_int_equal(events, (2 * 1000 + 3) / DEADLOCK_EDGES_A_PIECE + 1);
	assert_true(f->replies[1].len);
	bytes_clear(&f->replies[1]);
}

/* The way led through c2 when it was looked at. */
TEST(what_is_over_by_then_is_not_reported)
{
	struct fixture *f = *state;

	held(f, 2, "LOCK x");
	crowd(f, 600, NULL, "LOCK a");
	waits(f, 2, "LOCK a");
	pieces(f);
	waits(f, 1, "LOCK x");
	piece(f);
	fixture_say(f, CLIENTS - 1, "CLIENT UNBLOCK 3", ":1");
	fixture_expect(f, 2, "$-1");
	pieces(f);
	fixture_expect(f, 1, "");
	expect_stat(f, "deadlocks_total:0\r\n");
	deadlock(f, 2, "LOCK a");
}

/* c3 waits for c2 and c4, who share x. The way led through c2, whose lease then ends. */
TEST(what_was_held_by_then_is_not_reported)
{
	struct fixture *f = *state;

	held(f, 2, "LOCK x SHARED LEASE 1000");
	held(f, 4, "LOCK x SHARED");
	held(f, 3, "LOCK y");
	crowd(f, 600, NULL, "LOCK a");
	waits(f, 2, "LOCK a");
	pieces(f);
	waits(f, 3, "LOCK x");
	pieces(f);
	waits(f, 1, "LOCK y");
	piece(f);
	f->now_ns += 1000 * MS;
	pieces(f);
	fixture_expect(f, 1, "");
	expect_stat(f, "deadlocks_total:0\r\n");
}

/* They share s and stand in line for a in the other order: each counts on the one before it, and all on the first. */
TEST(who_counted_on_a_wait_that_ended_is_looked_at_again)
{
	enum { COUNT = 6 };
	bool over = false;
	char words[32];

	for (int at = 0; !over; at++) {
		struct fixture *f = start_in_pieces(state);

		held(f, 0, "LOCK a");
		held(f, 1, "LOCK b");
		waits(f, 0, "LOCK b");
		for (uint32_t conn = CLIENTS; conn < CLIENTS + COUNT; conn++) {
			fixture_connect(f, conn);
			held(f, conn, "LOCK s SHARED");
		}
		for (uint32_t conn = CLIENTS + COUNT; conn-- > CLIENTS;)
			waits(f, conn, "LOCK a");
		pieces(f);
		waits(f, 1, "LOCK s");
		over = !pieces_up_to(f, at);
		snprintf(words, sizeof(words), "CLIENT UNBLOCK %d", CLIENTS + COUNT);
		fixture_say(f, CLIENTS - 1, words, ":1");
		fixture_expect(f, CLIENTS + COUNT - 1, "$-1");
		pieces(f);
		in_deadlock(f, 1);
	}
}

TEST(whose_wait_ends_is_not_searched_for_any_longer)
{
	struct fixture *f = *state;

	crowd(f, 600, NULL, "LOCK a");
	waits(f, 1, "LOCK a WAIT 100");
	piece(f);
	fixture_say(f, CLIENTS - 1, "CLIENT UNBLOCK 2", ":1");
	fixture_expect(f, 1, "$-1");
	pieces(f);
	expect_stat(f, "deadlocks_total:0\r\n");
	waits(f, 1, "LOCK a");
	piece(f);
	fixture_simple(f, EVENT_CLIENT_GONE, 1);
	pieces(f);
	expect_stat(f, "deadlocks_total:0\r\n");
}

/* In the midst of the search for its earlier wait. */
TEST(the_next_wait_of_a_client_has_a_search_of_its_own)
{
	struct fixture *f = *state;

	crowd(f, 600, NULL, "LOCK a");
	held(f, 2, "LOCK x");
	waits(f, 2, "LOCK a");
	pieces(f);
	waits(f, 1, "LOCK a");
	piece(f);
	fixture_say(f, CLIENTS - 1, "CLIENT UNBLOCK 2", ":1");
	fixture_expect(f, 1, "$-1");
	deadlock(f, 1, "LOCK x");
}

TEST(a_search_goes_on_after_a_hand_over)
{
	struct fixture *f = *state;

	crowd(f, 600, NULL, "LOCK a");
	waits(f, 1, "LOCK a");
	piece(f);
	fixture_hand_over(f);
	pieces(f);
	in_deadlock(f, 1);
}

/* 600 have one permit each of 600, and wait for b; c1, which holds that, asks for one, too. */
TEST(a_knot_of_permits_is_found_in_pieces)
{
	struct fixture *f = *state;

	held(f, 1, "LOCK b");
	for (uint32_t conn = CLIENTS; conn < CLIENTS + 600; conn++) {
		fixture_connect(f, conn);
		held(f, conn, "ACQUIRE p LIMIT 600");
	}
	for (uint32_t conn = CLIENTS; conn < CLIENTS + 599; conn++)
		waits(f, conn, "LOCK b");
	pieces(f);
	expect_stat(f, "deadlock_cuts_total:0\r\n");
	/* One of them can go on yet. */
	waits(f, 1, "ACQUIRE p LIMIT 600");
	pieces(f);
	expect_stat(f, "deadlock_cuts_total:0\r\n");
	fixture_say(f, CLIENTS + 599, "RELEASE p", ":0");
	assert_true(f->replies[1].len && f->replies[1].data[0] == ':');
	bytes_clear(&f->replies[1]);
	/* Then none can. */
	waits(f, 1, "ACQUIRE p LIMIT 600");
	pieces(f);
	in_deadlock(f, 1);
	expect_stat(f, "deadlock_cuts_total:0\r\n");
}

/* Of 600 with a permit 20 can go on, and are not in the set any longer when one of them goes. */
TEST(who_has_left_the_knot_may_go)
{
	struct fixture *f = *state;

	held(f, 1, "LOCK b");
	held(f, 2, "LOCK z");
	for (uint32_t conn = CLIENTS; conn < CLIENTS + 600; conn++) {
		fixture_connect(f, conn);
		held(f, conn, "ACQUIRE p LIMIT 600");
		waits(f, conn, conn < CLIENTS + 20 ? "LOCK z" : "LOCK b");
	}
	pieces(f);
	waits(f, 1, "ACQUIRE p LIMIT 600 COUNT 30");
	/* The second pass, whose first wait has looked at all the permits. */
	for (int edges = 0; edges < 5000; edges += DEADLOCK_EDGES_A_PIECE)
		piece(f);
	for (uint32_t conn = CLIENTS; conn < CLIENTS + 20; conn++)
		fixture_simple(f, EVENT_CLIENT_GONE, conn);
	fixture_expect(f, 1, "");
	pieces(f);
	in_deadlock(f, 1);
}

/* ---- whatever happens in the midst of it ---- */

/*
 * c1 has one of two permits and waits for a, which c2 holds; c2 waits for a permit. The other one is c3's, which is one
 * owner with c4: that can go on, and then c3 can.
 */
static void permits_of_an_owner(struct fixture *f)
{
	fixture_say(f, 3, "CLIENT SETINFO OWNER x", "+OK");
	fixture_say(f, 4, "CLIENT SETINFO OWNER x", "+OK");
	held(f, 2, "LOCK a");
	held(f, 5, "LOCK z");
	held(f, 1, "ACQUIRE p LIMIT 2");
	held(f, 3, "ACQUIRE p LIMIT 2");
	waits(f, 4, "LOCK z");
	waits(f, 2, "ACQUIRE p LIMIT 2");
	pieces(f);
	waits(f, 1, "LOCK a");
}

TEST(a_wait_that_ends_ties_its_owner_no_longer)
{
	int at = 0;

	for (bool over = false; !over; at++) {
		struct fixture *f = start_in_pieces(state);

		permits_of_an_owner(f);
		over = !pieces_up_to(f, at);
		held(f, 5, "UNLOCK z");
		pieces(f);
		fixture_expect(f, 1, "");
		expect_stat(f, "deadlocks_total:0\r\n");
		bytes_clear(&f->replies[4]);
	}
	assert_true(at > 10);
}

/*
 * Of three permits c0 has two. c2 waits for two, then c3 for all, then c4, one owner with c3, for one: c3 gets all of
 * them, and as long as c4 waits their owner keeps them. In the midst of the search c2 leaves, which c3 waits for as well.
 */
TEST(who_stands_between_two_of_an_owner_and_leaves_hides_no_deadlock)
{
	int at = 0;

	for (bool over = false; !over; at++) {
		struct fixture *f = start_in_pieces(state);

		fixture_say(f, 3, "CLIENT SETINFO OWNER x", "+OK");
		fixture_say(f, 4, "CLIENT SETINFO OWNER x", "+OK");
		held(f, 0, "ACQUIRE p LIMIT 3 COUNT 2");
		waits(f, 2, "ACQUIRE p LIMIT 3 COUNT 2");
		waits(f, 3, "ACQUIRE p LIMIT 3 COUNT 3");
		pieces(f);
		waits(f, 4, "ACQUIRE p LIMIT 3");
		over = !pieces_up_to(f, at);
		fixture_simple(f, EVENT_CLIENT_GONE, 2);
		pieces(f);
		in_deadlock(f, 4);
	}
	assert_true(at > 5);
}

/* c2, in the crowd, is one owner with c3, which takes and releases something all the time. */
TEST(an_owner_that_changes_all_the_time_hides_no_deadlock)
{
	struct fixture *f = *state;
	size_t searched = 0;
	int events = 0;

	fixture_say(f, 2, "CLIENT SETINFO OWNER x", "+OK");
	fixture_say(f, 3, "CLIENT SETINFO OWNER x", "+OK");
	crowd(f, 600, NULL, "LOCK a");
	waits(f, 2, "LOCK a");
	pieces(f);
	waits(f, 1, "LOCK a");
	for (; broker_has_work(f->broker); events++) {
		assert_true(searched <= DEADLOCK_EDGES_A_PIECE + 1); /* all but the last */
		held(f, 3, "LOCK z");
		piece(f);
		searched = f->broker->locks.searched;
		held(f, 3, "UNLOCK z");
	}
	assert_true(searched > DEADLOCK_EDGES_A_PIECE && searched <= DEADLOCK_EDGES_IN_ALL);
	in_deadlock(f, 1);
	assert_int_equal(events, DEADLOCK_SEARCHES_IN_PIECES * (2 * 601 / DEADLOCK_EDGES_A_PIECE + 1) + 1);
}

/* The search that is the ninth for its wait is done in one event, and is cut where any other is. */
static void ninth(struct fixture *f, uint32_t conn, const char *words, size_t least)
{
	waits(f, conn, words);
	assert_true(broker_has_work(f->broker));
	f->broker->locks.conns[conn]->request->searches = DEADLOCK_SEARCHES_IN_PIECES;
	piece(f);
	assert_false(broker_has_work(f->broker));
	assert_true(f->broker->locks.searched > least && f->broker->locks.searched <= DEADLOCK_EDGES_IN_ALL);
	expect_stat(f, "deadlock_cuts_total:1\r\n");
	fixture_expect(f, conn, "");
}

TEST(the_search_that_is_done_in_one_event_is_bounded)
{
	struct fixture *f = *state;

	shared_by_many(f, SHARERS);
	expect_stat(f, "deadlock_cuts_total:1\r\n");
	f->broker->env.stats.deadlock_cuts_total = 0;
	held(f, 2, "LOCK c");
	ninth(f, 2, "LOCK m", DEADLOCK_EDGES_MAX - 1);
}

/* Each of 150 has a permit and waits for another one: each looks at those before it, and at all permits. */
TEST(a_search_among_permits_that_is_done_in_one_event_is_bounded)
{
	struct fixture *f = *state;

	for (uint32_t conn = CLIENTS; conn < CLIENTS + 150; conn++) {
		fixture_connect(f, conn);
		held(f, conn, "ACQUIRE p LIMIT 150");
	}
	for (uint32_t conn = CLIENTS; conn < CLIENTS + 149; conn++)
		waits(f, conn, "ACQUIRE p LIMIT 150");
	pieces(f);
	f->broker->env.stats.deadlock_cuts_total = 0;
	held(f, 1, "LOCK b");
	ninth(f, 1, "ACQUIRE p LIMIT 150", DEADLOCK_EDGES_GATHERED_MAX - 1);
}

enum { OTHER_USERS = 2 };

/* They have ten waits each that are searched for in some pieces each; after some of those another user begins to wait. */
static int events_of_a_third(struct fixture *f, uint32_t crowded, int after)
{
	enum { COUNT = 10 };
	uint32_t first = CLIENTS + crowded;
	char words[32];
	int events = 0;

	f->conf.limits.locks = f->conf.limits.grants;
	crowd(f, crowded, NULL, "LOCK a");
	for (uint32_t i = 0; i < OTHER_USERS * COUNT; i++) {
		fixture_connect_as(f, first + i, 4242 + i % OTHER_USERS, (struct slice){ 0 }, false);
		snprintf(words, sizeof(words), "LOCK own%u", i);
		held(f, first + i, words);
	}
	for (uint32_t i = 0; i < OTHER_USERS * COUNT; i++)
		waits(f, first + i, "LOCK a");
	for (int i = 0; i < after; i++)
		piece(f);
	waits(f, 1, "LOCK a");
	for (; !f->replies[1].len; events++)
		piece(f);
	in_deadlock(f, 1);
	return events;
}

TEST(each_user_is_searched_for_in_its_turn)
{
	for (int each = 2; each <= 4; each++)
		for (int after = 0; after < 3 * each; after++) {
			fixture_teardown(state);
			assert_int_equal(start(state, true), 0);
			/* 20 of those who wait are not of the crowd. */
			assert_in_range(events_of_a_third(*state, DEADLOCK_EDGES_A_PIECE / 2 * (uint32_t)each - 30, after),
					each, (OTHER_USERS + 1) * each + OTHER_USERS);
		}
}
