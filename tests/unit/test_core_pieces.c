/* SPDX-License-Identifier: Apache-2.0 */
/* What is done in pieces, and what changes between two of them. */
#include "core_fixture.h"

#include <stdio.h>
#include <string.h>

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
	char words[32];

	for (int i = first; i < end; i++) {
		snprintf(words, sizeof(words), "LOCK l%03d", i);
		fixture_ask(f, conn, words);
	}
	bytes_clear(&f->replies[conn]);
}

static void piece(struct fixture *f)
{
	assert_true(broker_has_work(f->broker));
	fixture_simple(f, EVENT_TIME, 0);
}

static void pieces(struct fixture *f)
{
	while (broker_has_work(f->broker))
		fixture_simple(f, EVENT_TIME, 0);
}

static bool shows(struct fixture *f, uint32_t conn, int number)
{
	char name[24];

	snprintf(name, sizeof(name), "\r\nl%03d\r\n", number);
	return memmem(f->replies[conn].data, f->replies[conn].len, name, strlen(name));
}

/* ---- lists ---- */

TEST(a_lock_that_goes_while_a_list_walks_is_stepped_over)
{
	struct fixture *f = *state;

	lock_all(f, 0, 0, LOCKS);
	fixture_ask(f, 1, "LOCKS");
	piece(f);
	/* The next one to be looked at goes, and the one behind it; one that was looked at, too: its row would come later. */
	fixture_say(f, 0, "UNLOCK l064", ":0");
	fixture_say(f, 0, "UNLOCK l065", ":0");
	fixture_say(f, 0, "UNLOCK l003", ":0");
	lock_all(f, 2, LOCKS, LOCKS + 1);
	pieces(f);
	for (int i = 0; i < LOCKS; i++)
		assert_int_equal(shows(f, 1, i), i != 3 && i != 64 && i != 65);
	bytes_clear(&f->replies[1]);
}

TEST(a_lock_that_comes_again_while_a_list_walks_is_shown_once)
{
	struct fixture *f = *state;

	lock_all(f, 0, 0, LOCKS);
	fixture_ask(f, 1, "LOCKS l00*");
	piece(f);
	fixture_say(f, 0, "UNLOCK l003", ":0");
	lock_all(f, 2, 3, 4);
	pieces(f);
	assert_true(shows(f, 1, 3));
	assert_memory_equal(f->replies[1].data, "*10\r\n", 5);
	bytes_clear(&f->replies[1]);
}

/* Names of 400 bytes; more than 98,000 bytes besides what a short list needs are not to be had. */
TEST(the_memory_of_a_long_list_is_charged_and_has_a_limit)
{
	struct fixture *f = *state;
	char words[512];

	for (int i = 0; i < 200; i++) {
		snprintf(words, sizeof(words), "LOCK l%03d%0396d", i, 0);
		fixture_ask(f, 0, words);
		if (i != 89)
			continue;
		fixture_ask(f, 1, "LOCKS");
		pieces(f);
		assert_non_null(memmem(f->replies[1].data, f->replies[1].len, "l089000", 7));
		bytes_clear(&f->replies[1]);
	}
	fixture_ask(f, 1, "LOCKS");
	pieces(f);
	assert_memory_equal(f->replies[1].data, "-LIMIT user ", 12);
	assert_non_null(memmem(f->replies[1].data, f->replies[1].len, "and of lists", 12));
	bytes_clear(&f->replies[1]);
	bytes_clear(&f->replies[0]);
}

TEST(the_client_that_a_list_would_look_at_next_goes)
{
	struct fixture *f = *state;
	char id[16];

	for (uint32_t conn = 3; conn < 3 + WORK_TURN_STEPS; conn++)
		fixture_connect(f, conn);
	fixture_ask(f, 1, "CLIENT LIST");
	piece(f);
	fixture_simple(f, EVENT_CLIENT_GONE, WORK_TURN_STEPS);
	pieces(f);
	snprintf(id, sizeof(id), "id=%d ", WORK_TURN_STEPS + 3);
	assert_non_null(memmem(f->replies[1].data, f->replies[1].len, id, strlen(id)));
	snprintf(id, sizeof(id), "id=%d ", WORK_TURN_STEPS + 1);
	assert_null(memmem(f->replies[1].data, f->replies[1].len, id, strlen(id)));
	bytes_clear(&f->replies[1]);
}

TEST(who_asked_for_a_list_goes)
{
	struct fixture *f = *state;

	lock_all(f, 0, 0, LOCKS);
	fixture_ask(f, 1, "LOCKS");
	piece(f);
	fixture_simple(f, EVENT_CLIENT_GONE, 1);
	assert_false(broker_has_work(f->broker));
}

TEST(a_list_begins_anew_after_a_hand_over)
{
	struct fixture *f = *state;

	lock_all(f, 0, 0, LOCKS);
	fixture_ask(f, 1, "LOCKS");
	piece(f);
	fixture_say(f, 0, "UNLOCK l003", ":0");
	fixture_hand_over(f);
	fixture_expect(f, 1, "");
	pieces(f);
	for (int i = 0; i < LOCKS; i++)
		assert_int_equal(shows(f, 1, i), i != 3);
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
	char row[64];

	snprintf(row, sizeof(row), "\r\nclient\r\n:%u\r\n", client + 1);
	return memmem(f->replies[conn].data, f->replies[conn].len, row, strlen(row));
}

/* A row a piece: the holder that would be shown next goes, and one that was shown; another one comes. */
TEST(a_holder_that_goes_while_holders_are_shown_is_stepped_over)
{
	struct fixture *f = *state;

	readers(f, 3, 8);
	fixture_ask(f, 1, "HOLDERS a");
	piece(f);
	piece(f);
	fixture_expect(f, 1, "");
	fixture_say(f, 3, "UNLOCK a", ":0");
	fixture_say(f, 5, "UNLOCK a", ":0");
	readers(f, 8, 9);
	pieces(f);
	assert_memory_equal(f->replies[1].data, "*5\r\n", 4);
	for (uint32_t conn = 3; conn < 9; conn++)
		assert_int_equal(shows_client(f, 1, conn), conn != 5);
	bytes_clear(&f->replies[1]);
}

TEST(a_waiter_that_goes_while_the_queue_is_shown_is_stepped_over)
{
	struct fixture *f = *state;

	fixture_say(f, 0, "LOCK a", ":1024");
	readers(f, 3, 8);
	fixture_ask(f, 1, "QUEUE a");
	piece(f); /* nobody elsewhere stands before this host */
	piece(f);
	fixture_say(f, 0, "CLIENT UNBLOCK 5", ":1");
	fixture_simple(f, EVENT_CLIENT_GONE, 6);
	pieces(f);
	assert_memory_equal(f->replies[1].data, "*3\r\n", 4);
	for (uint32_t conn = 3; conn < 8; conn++)
		assert_int_equal(shows_client(f, 1, conn), conn != 4 && conn != 6);
	bytes_clear(&f->replies[1]);
	bytes_clear(&f->replies[4]);
}

/* The one that is asked about goes before it is reached. */
TEST(the_lock_goes_while_its_queue_is_shown)
{
	struct fixture *f = *state;

	readers(f, 3, 5);
	fixture_ask(f, 1, "HOLDERS a");
	piece(f);
	fixture_say(f, 3, "UNLOCK a", ":0");
	fixture_say(f, 4, "UNLOCK a", ":0");
	fixture_say(f, 0, "LOCK b", ":2048");
	pieces(f);
	assert_memory_equal(f->replies[1].data, "*1\r\n", 4);
	bytes_clear(&f->replies[1]);
}

TEST(the_place_in_the_queue_is_counted_in_pieces)
{
	struct fixture *f = *state;

	fixture_say(f, 0, "LOCK a", ":1024");
	readers(f, 3, 8);
	fixture_say(f, 1, "ENQUEUE a", "+QUEUED");
	fixture_ask(f, 1, "WHY a");
	piece(f);
	fixture_expect(f, 1, "");
	pieces(f);
	assert_non_null(memmem(f->replies[1].data, f->replies[1].len, "position\r\n:6\r\n", 14));
	bytes_clear(&f->replies[1]);
	/* It is granted what it asks about. */
	fixture_ask(f, 1, "WHY a");
	piece(f);
	for (uint32_t conn = 3; conn < 8; conn++)
		fixture_simple(f, EVENT_CLIENT_GONE, conn);
	fixture_say(f, 0, "UNLOCK a", ":0");
	pieces(f);
	assert_non_null(memmem(f->replies[1].data, f->replies[1].len, "position\r\n:0\r\n", 14));
	bytes_clear(&f->replies[1]);
}

TEST(who_asked_for_holders_goes)
{
	struct fixture *f = *state;

	readers(f, 3, 8);
	fixture_ask(f, 1, "HOLDERS a");
	fixture_ask(f, 2, "WHY a");
	piece(f);
	fixture_simple(f, EVENT_CLIENT_GONE, 1);
	piece(f);
	fixture_simple(f, EVENT_CLIENT_LEAVES, 2);
	assert_false(broker_has_work(f->broker));
	fixture_expect(f, 2, "");
	fixture_simple(f, EVENT_CLIENT_GONE, 2);
}

TEST(holders_are_shown_anew_after_a_hand_over)
{
	struct fixture *f = *state;

	readers(f, 3, 8);
	fixture_ask(f, 0, "HOLDERS a known");
	fixture_ask(f, 1, "HOLDERS a");
	fixture_ask(f, 2, "HOSTS");
	piece(f);
	piece(f);
	fixture_say(f, 3, "UNLOCK a", ":0");
	fixture_hand_over(f);
	fixture_expect(f, 0, "");
	pieces(f);
	for (uint32_t conn = 0; conn < 2; conn++) {
		for (uint32_t reader = 3; reader < 8; reader++)
			assert_int_equal(shows_client(f, conn, reader), reader != 3);
		bytes_clear(&f->replies[conn]);
		fixture_say(f, conn, "PING", "+PONG");
	}
	fixture_expect(f, 2, "*0");
}

static int setup_short(void **state)
{
	struct fixture *f = fixture_new(true);

	f->conf.all_in_pieces = true;
	f->conf.limits.output_bytes = 1024;
	f->conf.limits.clients = 64;
	return fixture_setup(f, 3, state);
}

/* No more of it is made than may be sent. */
TEST_IN(holders_that_are_too_many_are_refused, setup_short)
{
	struct fixture *f = *state;
	int made = 0;

	readers(f, 3, 40);
	fixture_ask(f, 1, "HOLDERS a");
	for (; broker_has_work(f->broker); made++)
		piece(f);
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
		piece(f); /* readers get it one by one, before all else that is done for their user */
	fixture_say(f, 1, "LOCK a WAIT 0", "$-1");
}

TEST(an_mlock_goes_on_in_a_turn_of_its_own)
{
	struct fixture *f = *state;

	granted_the_first(f);
	fixture_say(f, 0, "UNLOCK b", ":0");
	/* Each asks for b, and then each ends. */
	for (int i = 0; i < 10; i++) {
		piece(f);
		fixture_expect(f, 3, i == 5 ? "*2 :3072 :1025" : "");
		fixture_expect(f, 7, i == 9 ? "*2 :3072 :1025" : "");
	}
	assert_false(broker_has_work(f->broker));
}

TEST(an_mlock_goes_on_after_a_hand_over)
{
	struct fixture *f = *state;

	granted_the_first(f);
	piece(f);
	fixture_hand_over(f);
	fixture_say(f, 0, "UNLOCK b", ":0");
	pieces(f);
	fixture_expect(f, 3, "*2 :2049 :1025");
	fixture_expect(f, 7, "*2 :2049 :1025");
}

TEST(an_mlock_that_is_to_go_on_is_unblocked)
{
	struct fixture *f = *state;

	granted_the_first(f);
	fixture_say(f, 0, "CLIENT UNBLOCK 4", ":1");
	fixture_expect(f, 3, "*-1");
	fixture_simple(f, EVENT_CLIENT_LEAVES, 4);
	fixture_simple(f, EVENT_CLIENT_GONE, 5);
	fixture_simple(f, EVENT_CLIENT_HALF_CLOSED, 6);
	pieces(f);
	fixture_expect(f, 6, "*-1");
	fixture_expect(f, 7, "");
	fixture_say(f, 0, "UNLOCK b", ":0");
	pieces(f);
	fixture_expect(f, 7, "*2 :2049 :1025");
	fixture_say(f, 7, "MUNLOCK 2 a b", "*2 :0 :0");
	fixture_simple(f, EVENT_CLIENT_GONE, 4);
	fixture_say(f, 1, "LOCK a WAIT 0", ":3072");
}

/* It has lost what it was granted before it asked for the next one: it starts over. */
TEST(an_mlock_that_is_to_go_on_loses_its_lock)
{
	struct fixture *f = *state;

	granted_the_first(f);
	fixture_connect_as(f, 8, 1001, SLICE(""), true);
	f->conf.all_in_pieces = false;
	fixture_say(f, 8, "FORCEUNLOCK a", ":5");
	f->conf.all_in_pieces = true;
	fixture_say(f, 0, "UNLOCK b", ":0");
	pieces(f);
	fixture_expect(f, 3, "*2 :2049 :3072");
	fixture_expect(f, 7, "*2 :2049 :3072");
}

/* ---- the end of a client that has much ---- */

TEST(what_a_client_had_is_released_in_pieces)
{
	struct fixture *f = *state;
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
	struct fixture *f = *state;

	lock_all(f, 0, 0, 10);
	assert_false(broker_owns_much(f->broker, 0));
}

TEST(a_reset_is_answered_when_all_is_released)
{
	struct fixture *f = *state;

	lock_all(f, 0, 0, MANY);
	fixture_ask(f, 0, "RESET");
	fixture_expect(f, 0, "");
	fixture_ask(f, 1, "LOCK l063 WAIT 10000");
	piece(f);
	fixture_expect(f, 0, "");
	pieces(f);
	fixture_expect(f, 0, "+RESET");
	fixture_expect(f, 1, ":65537");
	fixture_say(f, 0, "LOCK l001", ":66560");
}

TEST(a_reset_goes_on_after_a_hand_over)
{
	struct fixture *f = *state;

	lock_all(f, 0, 0, MANY);
	fixture_ask(f, 0, "RESET");
	piece(f);
	fixture_hand_over(f);
	fixture_expect(f, 0, "");
	pieces(f);
	fixture_expect(f, 0, "+RESET");
	fixture_say(f, 0, "PING", "+PONG");
}

/* It is closed before all that it had is released: the rest goes in pieces, or with the connection. */
TEST(a_client_that_is_closed_releases_the_rest_later)
{
	struct fixture *f = *state;

	lock_all(f, 0, 0, MANY);
	lock_all(f, 1, MANY, 2 * MANY);
	fixture_say(f, 0, "QUIT", "+OK");
	fixture_say(f, 1, "QUIT", "+OK");
	assert_int_equal(f->closed[0], 1);
	piece(f);
	fixture_hand_over(f);
	fixture_simple(f, EVENT_CLIENT_GONE, 1);
	fixture_ask(f, 2, "LOCK l063 WAIT 10000");
	pieces(f);
	assert_memory_equal(f->replies[2].data, ":", 1);
	bytes_clear(&f->replies[2]);
	fixture_simple(f, EVENT_CLIENT_GONE, 0);
}

/* What it waits for ends first: it is granted nothing that others wait for, too. */
TEST(who_leaves_is_granted_nothing)
{
	struct fixture *f = *state;

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
	struct fixture *f = *state;

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
		piece(f);
		next = left_for_later(f);
		assert_int_equal(left - next, left < WORK_TURN_STEPS ? left : WORK_TURN_STEPS);
	}
	assert_false(broker_has_work(f->broker));
}

static void wait_for_many(struct fixture *f)
{
	char words[32];

	for (int i = 0; i < 3 * MANY; i++) {
		snprintf(words, sizeof(words), "ENQUEUE l%03d", i);
		fixture_ask(f, 0, words);
	}
}

TEST_IN(a_connection_has_locks_settled_in_pieces, setup_zookeeper)
{
	struct fixture *f = *state;

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
	struct fixture *f = *state;
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
	piece(f);
	fixture_zk_connected(f, SESSION);
	assert_in_range(left_for_later(f), MANY, 2 * MANY);
	settle_the_rest(f);
}

TEST_IN(locks_left_for_later_are_settled_after_a_hand_over, setup_zookeeper)
{
	struct fixture *f = *state;

	wait_for_many(f);
	fixture_simple(f, EVENT_ZK_SUSPENDED, 0);
	fixture_hand_over(f);
	assert_int_equal(left_for_later(f), 2 * MANY);
	settle_the_rest(f);
}
