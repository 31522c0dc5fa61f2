/* SPDX-License-Identifier: Apache-2.0 */
/* What is done in pieces, and what changes between two of them. */
#include "core_test.h"

#include "core/port/work.h"
#include "core/state.h"

enum { LOCKS = 3 * WORK_TURN_STEPS / 2, MANY = WORK_TURN_STEPS };

/* Connections 0 to 2; each piece is an event of its own. */
static int setup(void **state)
{
	struct fixture *f = fixture_new(true);

	f->conf.all_in_pieces = true;
	f->conf.limits.locks = f->conf.limits.grants = 4096;
	f->conf.limits.requests = f->conf.limits.grants_per_client = f->conf.limits.clients = 1024;
	return fixture_setup(f, 3, state);
}

static void lock_all(struct fixture *f, uint32_t conn, int first, int end)
{
	for (int i = first; i < end; i++)
		fixture_ask(f, conn, fixture_words(f, "LOCK l%03d", i));
	bytes_clear(&f->replies[conn]);
}

/* ---- lists ---- */

TEST(a_lock_that_goes_while_a_list_walks_is_stepped_over)
{
	lock_all(f, 0, 0, LOCKS);
	fixture_ask(f, 1, "LOCKS");
	fixture_piece(f);
	/* The next one to be looked at goes, and the one behind it; one that was looked at, too: its row would come later. */
	fixture_say(f, 0, "UNLOCK l064", ":0");
	fixture_say(f, 0, "UNLOCK l065", ":0");
	fixture_say(f, 0, "UNLOCK l003", ":0");
	lock_all(f, 2, LOCKS, LOCKS + 1);
	fixture_pieces(f);
	for (int i = 0; i < LOCKS; i++)
		assert_int_equal(fixture_has(f, 1, fixture_words(f, "\r\nl%03d\r\n", i)), i != 3 && i != 64 && i != 65);
}

TEST(a_lock_that_comes_again_while_a_list_walks_is_shown_once)
{
	lock_all(f, 0, 0, LOCKS);
	fixture_ask(f, 1, "LOCKS l00*");
	fixture_piece(f);
	fixture_say(f, 0, "UNLOCK l003", ":0");
	lock_all(f, 2, 3, 4);
	fixture_pieces(f);
	assert_true(fixture_has(f, 1, "\r\nl003\r\n"));
	fixture_expect_begin(f, 1, "*10\r\n");
}

/* Names of 400 bytes; more than 98,000 bytes besides what a short list needs are not to be had. */
TEST(the_memory_of_a_long_list_is_charged_and_has_a_limit)
{
	for (int i = 0; i < 200; i++) {
		fixture_ask(f, 0, fixture_words(f, "LOCK l%03d%0396d", i, 0));
		if (i != 89)
			continue;
		fixture_ask(f, 1, "LOCKS");
		fixture_pieces(f);
		fixture_expect_part(f, 1, "l089000");
	}
	fixture_ask(f, 1, "LOCKS");
	fixture_pieces(f);
	assert_true(fixture_has(f, 1, "and of lists"));
	fixture_expect_begin(f, 1, "-LIMIT user ");
}

TEST(the_client_that_a_list_would_look_at_next_goes)
{
	for (uint32_t conn = 3; conn < 3 + WORK_TURN_STEPS; conn++)
		fixture_connect(f, conn);
	fixture_ask(f, 1, "CLIENT LIST");
	fixture_piece(f);
	fixture_simple(f, EVENT_CLIENT_GONE, WORK_TURN_STEPS);
	fixture_pieces(f);
	assert_true(fixture_has(f, 1, fixture_words(f, "id=%d ", WORK_TURN_STEPS + 3)));
	assert_false(fixture_has(f, 1, fixture_words(f, "id=%d ", WORK_TURN_STEPS + 1)));
}

TEST(who_asked_for_a_list_goes)
{
	lock_all(f, 0, 0, LOCKS);
	fixture_ask(f, 1, "LOCKS");
	fixture_piece(f);
	fixture_simple(f, EVENT_CLIENT_GONE, 1);
	assert_false(broker_has_work(f->broker));
}

TEST(a_list_begins_anew_after_a_hand_over)
{
	lock_all(f, 0, 0, LOCKS);
	fixture_ask(f, 1, "LOCKS");
	fixture_piece(f);
	fixture_say(f, 0, "UNLOCK l003", ":0");
	fixture_hand_over(f);
	fixture_expect(f, 1, "");
	fixture_pieces(f);
	for (int i = 0; i < LOCKS; i++)
		assert_int_equal(fixture_has(f, 1, fixture_words(f, "\r\nl%03d\r\n", i)), i != 3);
	bytes_clear(&f->replies[1]);
	fixture_say(f, 1, "PING", "+PONG");
}

/* ---- who holds and who waits ---- */

static void readers(struct fixture *f, uint32_t first, uint32_t end)
{
	for (uint32_t conn = first; conn < end; conn++) {
		fixture_connect(f, conn);
		fixture_ask(f, conn, "LOCK a SHARED");
		bytes_clear(&f->replies[conn]);
	}
}

static bool shows_client(struct fixture *f, uint32_t conn, uint32_t client)
{
	return fixture_has(f, conn, fixture_words(f, "\r\nclient\r\n:%u\r\n", client + 1));
}

/* A row a piece: the holder that would be shown next goes, and one that was shown; another one comes. */
TEST(a_holder_that_goes_while_holders_are_shown_is_stepped_over)
{
	readers(f, 3, 8);
	fixture_ask(f, 1, "HOLDERS a");
	fixture_piece(f);
	fixture_piece(f);
	fixture_expect(f, 1, "");
	fixture_say(f, 3, "UNLOCK a", ":0");
	fixture_say(f, 5, "UNLOCK a", ":0");
	readers(f, 8, 9);
	fixture_pieces(f);
	assert_memory_equal(f->replies[1].data, "*5\r\n", 4);
	for (uint32_t conn = 3; conn < 9; conn++)
		assert_int_equal(shows_client(f, 1, conn), conn != 5);
}

TEST(a_waiter_that_goes_while_the_queue_is_shown_is_stepped_over)
{
	fixture_say(f, 0, "LOCK a", ":1024");
	readers(f, 3, 8);
	fixture_ask(f, 1, "QUEUE a");
	fixture_piece(f); /* nobody elsewhere stands before this host */
	fixture_piece(f);
	fixture_say(f, 0, "CLIENT UNBLOCK 5", ":1");
	fixture_simple(f, EVENT_CLIENT_GONE, 6);
	fixture_pieces(f);
	assert_memory_equal(f->replies[1].data, "*3\r\n", 4);
	for (uint32_t conn = 3; conn < 8; conn++)
		assert_int_equal(shows_client(f, 1, conn), conn != 4 && conn != 6);
}

/* The one that is asked about goes before it is reached. */
TEST(the_lock_goes_while_its_queue_is_shown)
{
	readers(f, 3, 5);
	fixture_ask(f, 1, "HOLDERS a");
	fixture_piece(f);
	fixture_say(f, 3, "UNLOCK a", ":0");
	fixture_say(f, 4, "UNLOCK a", ":0");
	fixture_say(f, 0, "LOCK b", ":2048");
	fixture_pieces(f);
	fixture_expect_begin(f, 1, "*1\r\n");
}

TEST(the_place_in_the_queue_is_counted_in_pieces)
{
	fixture_say(f, 0, "LOCK a", ":1024");
	readers(f, 3, 8);
	fixture_say(f, 1, "ENQUEUE a", "+QUEUED");
	fixture_ask(f, 1, "WHY a");
	fixture_piece(f);
	fixture_expect(f, 1, "");
	fixture_pieces(f);
	fixture_expect_part(f, 1, "position\r\n:6\r\n");
	/* It is granted what it asks about. */
	fixture_ask(f, 1, "WHY a");
	fixture_piece(f);
	for (uint32_t conn = 3; conn < 8; conn++)
		fixture_simple(f, EVENT_CLIENT_GONE, conn);
	fixture_say(f, 0, "UNLOCK a", ":0");
	fixture_pieces(f);
	fixture_expect_part(f, 1, "position\r\n:0\r\n");
}

TEST(who_asked_for_holders_goes)
{
	readers(f, 3, 8);
	fixture_ask(f, 1, "HOLDERS a");
	fixture_ask(f, 2, "WHY a");
	fixture_piece(f);
	fixture_simple(f, EVENT_CLIENT_GONE, 1);
	fixture_piece(f);
	fixture_simple(f, EVENT_CLIENT_LEAVES, 2);
	assert_false(broker_has_work(f->broker));
	fixture_expect(f, 2, "");
	fixture_simple(f, EVENT_CLIENT_GONE, 2);
}

TEST(holders_are_shown_anew_after_a_hand_over)
{
	readers(f, 3, 8);
	fixture_ask(f, 0, "HOLDERS a known");
	fixture_ask(f, 1, "HOLDERS a");
	fixture_ask(f, 2, "HOSTS");
	fixture_piece(f);
	fixture_piece(f);
	fixture_say(f, 3, "UNLOCK a", ":0");
	fixture_hand_over(f);
	fixture_expect(f, 0, "");
	fixture_pieces(f);
	for (uint32_t conn = 0; conn < 2; conn++) {
		for (uint32_t reader = 3; reader < 8; reader++)
			assert_int_equal(shows_client(f, conn, reader), reader != 3);
		bytes_clear(&f->replies[conn]);
		fixture_say(f, conn, "PING", "+PONG");
	}
	fixture_expect(f, 2, "*0");
}

/* No more of it is made than may be sent. */
TEST(holders_that_are_too_many_are_refused)
{
	int made = 0;

	f->conf.limits.output_bytes = 1024;
	readers(f, 3, 40);
	fixture_ask(f, 1, "HOLDERS a");
	for (; broker_has_work(f->broker); made++)
		fixture_piece(f);
	fixture_expect(f, 1, "-LIMIT the answer is longer than limits.output_bytes");
	assert_true(made < 8);
	fixture_say(f, 1, "PING", "+PONG");
}

/* ---- MLOCKs that are granted their first lock together ---- */

/* Connections 3 to 7 have a, and have not asked for b; that of 0 is held. */
static void granted_the_first(struct fixture *f)
{
	fixture_say(f, 0, "LOCK a", ":1024");
	fixture_say(f, 0, "LOCK b", ":2048");
	for (uint32_t conn = 3; conn < 8; conn++) {
		fixture_connect(f, conn);
		fixture_ask(f, conn, "MLOCK 2 b a SHARED");
	}
	fixture_say(f, 0, "UNLOCK a", ":0");
	for (uint32_t conn = 4; conn < 8; conn++)
		fixture_piece(f); /* readers get it one by one, before all else that is done for their user */
	fixture_say(f, 1, "LOCK a WAIT 0", "$-1");
}

TEST(an_mlock_goes_on_in_a_turn_of_its_own)
{
	granted_the_first(f);
	fixture_say(f, 0, "UNLOCK b", ":0");
	/* Each asks for b, and then each ends. */
	for (int i = 0; i < 10; i++) {
		fixture_piece(f);
		fixture_expect(f, 3, i == 5 ? "*2 :3072 :1025" : "");
		fixture_expect(f, 7, i == 9 ? "*2 :3072 :1025" : "");
	}
	assert_false(broker_has_work(f->broker));
}

TEST(an_mlock_goes_on_after_a_hand_over)
{
	granted_the_first(f);
	fixture_piece(f);
	fixture_hand_over(f);
	fixture_say(f, 0, "UNLOCK b", ":0");
	fixture_pieces(f);
	fixture_expect(f, 3, "*2 :2049 :1025");
	fixture_expect(f, 7, "*2 :2049 :1025");
}

TEST(an_mlock_that_is_to_go_on_is_unblocked)
{
	granted_the_first(f);
	fixture_say(f, 0, "CLIENT UNBLOCK 4", ":1");
	fixture_expect(f, 3, "*-1");
	fixture_simple(f, EVENT_CLIENT_LEAVES, 4);
	fixture_simple(f, EVENT_CLIENT_GONE, 5);
	fixture_simple(f, EVENT_CLIENT_HALF_CLOSED, 6);
	fixture_pieces(f);
	fixture_expect(f, 6, "*-1");
	fixture_expect(f, 7, "");
	fixture_say(f, 0, "UNLOCK b", ":0");
	fixture_pieces(f);
	fixture_expect(f, 7, "*2 :2049 :1025");
	fixture_say(f, 7, "MUNLOCK 2 a b", "*2 :0 :0");
	fixture_simple(f, EVENT_CLIENT_GONE, 4);
	fixture_say(f, 1, "LOCK a WAIT 0", ":3072");
}

/* It has lost what it was granted before it asked for the next one: it starts over. */
TEST(an_mlock_that_is_to_go_on_loses_its_lock)
{
	granted_the_first(f);
	fixture_connect_as(f, 8, 1001, SLICE(""), true);
	f->conf.all_in_pieces = false;
	fixture_say(f, 8, "FORCEUNLOCK a", ":5");
	f->conf.all_in_pieces = true;
	fixture_say(f, 0, "UNLOCK b", ":0");
	fixture_pieces(f);
	fixture_expect(f, 3, "*2 :2049 :3072");
	fixture_expect(f, 7, "*2 :2049 :3072");
}

/* ---- the end of a client that has much ---- */

TEST(what_a_client_had_is_released_in_pieces)
{
	int released = 0;

	lock_all(f, 0, 0, MANY);
	assert_true(broker_owns_much(f->broker, 0));
	while (broker_owns_much(f->broker, 0)) {
		fixture_simple(f, EVENT_CLIENT_LEAVES, 0);
		fixture_ask(f, 1, "LOCK l000 WAIT 0"); /* the first of its grants */
		released++;
	}
	assert_true(released >= MANY / 2);
	fixture_simple(f, EVENT_CLIENT_GONE, 0);
	assert_false(broker_has_client(f->broker, 0));
	bytes_clear(&f->replies[1]);
	fixture_say(f, 1, "UNLOCK l000", ":0");
}

TEST(what_is_quickly_released_is_released_at_once)
{
	lock_all(f, 0, 0, 10);
	assert_false(broker_owns_much(f->broker, 0));
}

TEST(a_reset_is_answered_when_all_is_released)
{
	lock_all(f, 0, 0, MANY);
	fixture_ask(f, 0, "RESET");
	fixture_expect(f, 0, "");
	fixture_ask(f, 1, "LOCK l063 WAIT 10000");
	fixture_piece(f);
	fixture_expect(f, 0, "");
	fixture_pieces(f);
	fixture_expect(f, 0, "+RESET");
	fixture_expect(f, 1, ":65537");
	fixture_say(f, 0, "LOCK l001", ":66560");
}

TEST(a_reset_goes_on_after_a_hand_over)
{
	lock_all(f, 0, 0, MANY);
	fixture_ask(f, 0, "RESET");
	fixture_piece(f);
	fixture_hand_over(f);
	fixture_expect(f, 0, "");
	fixture_pieces(f);
	fixture_expect(f, 0, "+RESET");
	fixture_say(f, 0, "PING", "+PONG");
}

/* It is closed before all that it had is released: the rest goes in pieces, or with the connection. */
TEST(a_client_that_is_closed_releases_the_rest_later)
{
	lock_all(f, 0, 0, MANY);
	lock_all(f, 1, MANY, 2 * MANY);
	fixture_say(f, 0, "QUIT", "+OK");
	fixture_say(f, 1, "QUIT", "+OK");
	assert_int_equal(f->closed[0], 1);
	fixture_piece(f);
	fixture_hand_over(f);
	fixture_simple(f, EVENT_CLIENT_GONE, 1);
	fixture_ask(f, 2, "LOCK l063 WAIT 10000");
	fixture_pieces(f);
	fixture_expect_begin(f, 2, ":");
	fixture_simple(f, EVENT_CLIENT_GONE, 0);
}

/* What it waits for ends first: it is granted nothing that others wait for, too. */
TEST(who_leaves_is_granted_nothing)
{
	fixture_say(f, 1, "LOCK a", ":1024");
	fixture_say(f, 0, "LOCK b", ":2048");
	fixture_say(f, 1, "LOCK c", ":3072");
	fixture_say(f, 0, "ENQUEUE c", "+QUEUED");
	fixture_say(f, 0, "ENQUEUE a", "+QUEUED");
	fixture_ask(f, 2, "LOCK a");
	fixture_simple(f, EVENT_CLIENT_LEAVES, 0);
	/* Its wait for c has ended, that for a has not. */
	fixture_say(f, 1, "UNLOCK a", ":0");
	fixture_expect(f, 2, ":1025");
	fixture_simple(f, EVENT_CLIENT_GONE, 0);
	fixture_say(f, 1, "LOCK b", ":4096");
}

TEST(who_leaves_is_in_nobodys_way_for_good)
{
	fixture_say(f, 0, "CLIENT SETINFO OWNER us", "+OK");
	fixture_say(f, 2, "CLIENT SETINFO OWNER us", "+OK");
	fixture_say(f, 1, "LOCK a", ":1024");
	fixture_say(f, 2, "LOCK b", ":2048");
	fixture_say(f, 1, "LOCK c", ":3072");
	fixture_say(f, 0, "ENQUEUE c", "+QUEUED");
	fixture_ask(f, 0, "LOCK a");
	fixture_simple(f, EVENT_CLIENT_LEAVES, 0);
	/* A wait of one's own owner, before one's own, would be a deadlock. */
	fixture_ask(f, 2, "LOCK a");
	fixture_say(f, 1, "UNLOCK a", ":0");
	fixture_expect(f, 2, ":1025");
	fixture_simple(f, EVENT_CLIENT_GONE, 0);
}

/* ---- a connection to ZooKeeper begins, or ends ---- */

static int setup_zookeeper(void **state)
{
	struct fixture *f = fixture_new(false);

	f->conf.limits.locks = f->conf.limits.grants = f->conf.limits.requests = 4096;
	f->conf.limits.requests_per_client = f->conf.limits.grants_per_client = f->conf.limits.events_per_client = 1024;
	f->conf.limits.session_path_bytes = 100000;
	return fixture_setup(f, 1, state);
}

static size_t left_for_later(const struct fixture *f)
{
	const struct directory *d;
	size_t count = 0;

	TAILQ_FOREACH(d, &f->broker->directories.later, later_link)
		count++;
	return count;
}

/* Sends one event for each piece. */
static void settle_the_rest(struct fixture *f)
{
	for (size_t left = left_for_later(f), next; left; left = next) {
		fixture_piece(f);
		next = left_for_later(f);
		assert_int_equal(left - next, left < WORK_TURN_STEPS ? left : WORK_TURN_STEPS);
	}
	assert_false(broker_has_work(f->broker));
}

static void wait_for_many(struct fixture *f)
{
	for (int i = 0; i < 3 * MANY; i++)
		fixture_ask(f, 0, fixture_words(f, "ENQUEUE l%03d", i));
}

TEST_IN(a_connection_has_locks_settled_in_pieces, setup_zookeeper)
{
	fixture_simple(f, EVENT_ZK_SUSPENDED, 0);
	wait_for_many(f);
	assert_int_equal(left_for_later(f), 0);
	fixture_zk_connected(f, SESSION);
	assert_int_equal(left_for_later(f), 2 * MANY);
	settle_the_rest(f);
}

/* The first event ends what the host knows of its znodes, for all locks. */
TEST_IN(the_end_of_a_connection_counts_at_once, setup_zookeeper)
{
	const struct lock *lock;

	wait_for_many(f);
	bytes_clear(&f->replies[0]);
	assert_true(f->broker->directories.claim_count > 0);
	fixture_simple(f, EVENT_ZK_SUSPENDED, 0);
	assert_false(f->broker->ensemble.session.connected);
	TAILQ_FOREACH(lock, &f->broker->locks.used, link) {
		assert_int_equal(lock->directory.operations, 0);
		assert_int_equal(lock->directory.watch, WATCH_NONE);
		assert_int_equal(lock->directory.remembered, lock->directory.claim_count > 0);
	}
	assert_int_equal(left_for_later(f), 2 * MANY);
	/* A waiter may leave in between, and the next connection may come before the rest is settled. */
	fixture_say(f, 0, "CANCEL l190", ":1");
	fixture_piece(f);
	fixture_zk_connected(f, SESSION);
	assert_in_range(left_for_later(f), MANY, 2 * MANY);
	settle_the_rest(f);
}

TEST_IN(locks_left_for_later_are_settled_after_a_hand_over, setup_zookeeper)
{
	wait_for_many(f);
	fixture_simple(f, EVENT_ZK_SUSPENDED, 0);
	fixture_hand_over(f);
	assert_int_equal(left_for_later(f), 2 * MANY);
	settle_the_rest(f);
}
