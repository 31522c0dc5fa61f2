/* SPDX-License-Identifier: Apache-2.0 */
/* Many hold one lock, wait for it or observe it: what one event does with them is bounded, and the rest is not forgotten. */
#include "revocation_fixture.h"
#include "core_test.h"

#include <stdio.h>
#include <string.h>

#include "core/hosts/revoke.h"
#include "core/state.h"

enum { CROWD = 100, FIRST = 4, IN_A_TURN = WORK_TURN_STEPS / WORK_PUSH_STEPS };

static int setup(void **state)
{
	struct fixture *f = fixture_new(true);

	f->conf.limits.locks = f->conf.limits.grants = f->conf.limits.observers = 4096;
	f->conf.limits.requests = f->conf.limits.requests_per_lock = f->conf.limits.clients = 1024;
	return fixture_setup(f, FIRST, state);
}

static int setup_letters(void **state)
{
	demand_setup(state);
	((struct fixture *)*state)->conf.all_in_pieces = true;
	return 0;
}

/* Connections from FIRST on, which get pushes, send that. */
static void crowd(struct fixture *f, uint32_t count, const char *words)
{
	for (uint32_t conn = FIRST; conn < FIRST + count; conn++) {
		fixture_connect(f, conn);
		fixture_resp3(f, conn);
		fixture_ask(f, conn, words);
		bytes_clear(&f->replies[conn]);
		bytes_clear(&f->pushes[conn]);
	}
}

static bool is_told(struct fixture *f, uint32_t conn, const char *what)
{
	return f->pushes[conn].len && memmem(f->pushes[conn].data, f->pushes[conn].len, what, strlen(what));
}

/* How many of them were told that; none is told anything twice. */
static uint32_t told(struct fixture *f, const char *what)
{
	uint32_t count = 0;

	for (uint32_t conn = FIRST; conn < FIRST + CROWD; conn++) {
		const char *first = f->pushes[conn].len ? memchr(f->pushes[conn].data, '>', f->pushes[conn].len) : NULL;

		count += is_told(f, conn, what);
		assert_false(first &&
			     memchr(first + 1, '>', (size_t)(f->pushes[conn].data + f->pushes[conn].len - first - 1)));
	}
	return count;
}

static void forget(struct fixture *f)
{
	for (uint32_t conn = 0; conn < FIXTURE_CONNS; conn++) {
		bytes_clear(&f->replies[conn]);
		bytes_clear(&f->pushes[conn]);
	}
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

/* So many at first, and so many in each turn, until all are told. */
static void told_in_pieces(struct fixture *f, const char *what)
{
	assert_int_equal(told(f, what), REVOKE_AT_ONCE);
	for (uint32_t done = REVOKE_AT_ONCE; done < CROWD;) {
		fixture_expect(f, 1, "");
		piece(f);
		done = done + IN_A_TURN < CROWD ? done + IN_A_TURN : CROWD;
		assert_int_equal(told(f, what), done);
	}
	assert_false(broker_has_work(f->broker));
}

/* ---- many readers wait for one lock ---- */

/* How many of them have got it, with the token of the second grant. */
static uint32_t reading(struct fixture *f)
{
	uint32_t count = 0;

	for (uint32_t conn = FIRST; conn < FIRST + CROWD; conn++)
		count += f->replies[conn].len && memcmp(f->replies[conn].data, ":1025", 5) == 0;
	return count;
}

static void readers_wait(struct fixture *f, uint32_t count)
{
	fixture_say(f, 0, "LOCK a", ":1024");
	crowd(f, count, "LOCK a SHARED");
	f->now_ns += MS;
}

static void readers_are_let_in(struct fixture *f, uint32_t count)
{
	readers_wait(f, count);
	fixture_say(f, 0, "UNLOCK a", ":0");
}

TEST(many_readers_get_it_in_pieces)
{
	readers_are_let_in(f, CROWD);
	assert_int_equal(reading(f), READERS_AT_ONCE);
	for (uint32_t done = READERS_AT_ONCE; done < CROWD;) {
		piece(f);
		done = done + IN_A_TURN < CROWD ? done + IN_A_TURN : CROWD;
		assert_int_equal(reading(f), done);
	}
	assert_false(broker_has_work(f->broker));
}

TEST(few_readers_get_it_at_once)
{
	readers_are_let_in(f, READERS_AT_ONCE);
	assert_false(broker_has_work(f->broker));
	assert_int_equal(reading(f), READERS_AT_ONCE);
}

TEST(who_comes_meanwhile_waits_for_those_who_waited)
{
	readers_are_let_in(f, CROWD);
	f->now_ns += MS;
	fixture_ask(f, 1, "LOCK a");
	fixture_ask(f, 2, "LOCK a SHARED");
	assert_int_equal(reading(f), READERS_AT_ONCE);
	pieces(f);
	assert_int_equal(reading(f), CROWD);
	fixture_expect(f, 1, "");
	fixture_expect(f, 2, "");
	for (uint32_t conn = FIRST; conn < FIRST + CROWD; conn++)
		fixture_ask(f, conn, "UNLOCK a");
	fixture_expect(f, 1, ":1026");
	fixture_say(f, 1, "UNLOCK a", ":0");
	fixture_expect(f, 2, ":1027");
}

/* A lock that others wait for is not left free until their turn comes. */
TEST(the_rest_need_no_turn_when_nobody_holds_it)
{
	readers_are_let_in(f, CROWD);
	for (uint32_t conn = FIRST; conn < FIRST + READERS_AT_ONCE - 1; conn++)
		fixture_ask(f, conn, "UNLOCK a");
	forget(f);
	fixture_ask(f, FIRST + READERS_AT_ONCE - 1, "UNLOCK a");
	assert_int_equal(reading(f), IN_A_TURN);
	pieces(f);
	assert_int_equal(reading(f), CROWD - READERS_AT_ONCE);
}

/* The turns were of a user who has left. */
TEST(the_rest_have_turns_when_the_user_of_the_next_one_goes)
{
	fixture_say(f, 0, "LOCK a", ":1024");
	crowd(f, READERS_AT_ONCE, "LOCK a SHARED");
	fixture_connect_as(f, 300, 1001, SLICE(""), false);
	fixture_ask(f, 300, "LOCK a SHARED");
	for (uint32_t conn = FIRST + READERS_AT_ONCE; conn < FIRST + CROWD; conn++) {
		fixture_connect(f, conn);
		fixture_ask(f, conn, "LOCK a SHARED");
	}
	f->now_ns += MS;
	fixture_say(f, 0, "UNLOCK a", ":0");
	fixture_simple(f, EVENT_CLIENT_GONE, 300);
	assert_true(broker_has_work(f->broker));
	pieces(f);
	assert_int_equal(reading(f), CROWD);
}

TEST(the_rest_get_it_after_a_hand_over)
{
	readers_are_let_in(f, CROWD);
	fixture_hand_over(f);
	pieces(f);
	assert_int_equal(reading(f), CROWD);
}

TEST(the_rest_go_before_all_else_that_is_done_for_their_user)
{
	readers_wait(f, CROWD);
	f->conf.all_in_pieces = true;
	fixture_ask(f, 1, "LOCKS");
	f->conf.all_in_pieces = false;
	fixture_say(f, 0, "UNLOCK a", ":0");
	piece(f);
	assert_int_equal(reading(f), READERS_AT_ONCE + IN_A_TURN);
	fixture_expect(f, 1, "");
	pieces(f);
}

/* ---- a lock that many hold is asked for, or taken ---- */

TEST(many_holders_are_asked_in_pieces)
{
	crowd(f, CROWD, "LOCK a SHARED");
	fixture_ask(f, 1, "REVOKE a");
	told_in_pieces(f, "revoke");
	fixture_expect(f, 1, ":100");
}

TEST(few_holders_are_asked_at_once)
{
	crowd(f, REVOKE_AT_ONCE, "LOCK a SHARED");
	fixture_say(f, 1, "REVOKE a", ":32");
	fixture_say(f, 1, "FORCEUNLOCK a", ":32");
	assert_false(broker_has_work(f->broker));
}

/* Who waits alone gets it when the last one has lost it, and was told so. */
TEST(a_lock_is_taken_from_many_in_pieces)
{
	crowd(f, CROWD, "LOCK a SHARED");
	fixture_ask(f, 2, "LOCK a");
	fixture_ask(f, 1, "FORCEUNLOCK a");
	fixture_expect(f, 2, "");
	assert_false(fixture_logged(f, "taken by force"));
	told_in_pieces(f, "forced");
	fixture_expect(f, 1, ":100");
	assert_true(fixture_logged(f, "lock \"a\" taken by force from 100 holders"));
	fixture_expect(f, 2, ":2048");
}

/* One that would be next lets go, one asks again, and one comes: those are not meant. */
TEST(who_comes_while_it_is_taken_keeps_it)
{
	crowd(f, CROWD, "LOCK a SHARED");
	fixture_ask(f, 1, "FORCEUNLOCK a");
	f->now_ns += MS;
	fixture_say(f, FIRST + REVOKE_AT_ONCE, "UNLOCK a", ":0");
	fixture_say(f, FIRST + CROWD - 1, "UNLOCK a", ":0");
	fixture_say(f, FIRST + CROWD - 1, "LOCK a SHARED", ":1024");
	fixture_say(f, 2, "LOCK a SHARED", ":1024");
	pieces(f);
	fixture_expect(f, 1, ":98");
	assert_int_equal(told(f, "forced"), CROWD - 2);
	forget(f);
	fixture_say(f, FIRST + CROWD - 1, "UNLOCK a", ":0");
	fixture_say(f, 2, "UNLOCK a", ":0");
}

TEST(the_rest_is_taken_after_a_hand_over)
{
	crowd(f, CROWD, "LOCK a SHARED");
	fixture_ask(f, 1, "FORCEUNLOCK a");
	piece(f);
	fixture_hand_over(f);
	fixture_expect(f, 1, "");
	pieces(f);
	fixture_expect(f, 1, ":100");
	assert_int_equal(told(f, "forced"), CROWD);
	forget(f);
	fixture_say(f, 2, "LOCK a", ":2048");
}

TEST(the_rest_is_asked_after_a_hand_over)
{
	crowd(f, CROWD, "LOCK a SHARED");
	fixture_ask(f, 1, "REVOKE a please");
	piece(f);
	fixture_hand_over(f);
	pieces(f);
	fixture_expect(f, 1, ":100");
	assert_int_equal(told(f, "please"), CROWD);
}

TEST(who_asks_for_it_goes_and_the_rest_keep_it)
{
	crowd(f, CROWD, "LOCK a SHARED");
	fixture_ask(f, 1, "FORCEUNLOCK a");
	fixture_simple(f, EVENT_CLIENT_GONE, 1);
	assert_false(broker_has_work(f->broker));
	assert_int_equal(told(f, "forced"), REVOKE_AT_ONCE);
	forget(f);
	fixture_say(f, FIRST + CROWD - 1, "UNLOCK a", ":0");
}

/* Others who ask for little have a turn after each piece of that. */
TEST(another_user_is_served_between_two_pieces)
{
	crowd(f, CROWD, "LOCK a SHARED");
	fixture_connect_as(f, 300, 1001, SLICE(""), false);
	fixture_ask(f, 1, "REVOKE a");
	f->conf.all_in_pieces = true;
	fixture_ask(f, 300, "LOCKS");
	f->conf.all_in_pieces = false;
	piece(f);
	piece(f);
	assert_memory_equal(f->replies[300].data, "*1", 2);
	fixture_expect(f, 1, "");
	pieces(f);
}

/* ---- an election that many observe ---- */

/* The crowd observes e, and knows that nobody leads. */
static void observed(struct fixture *f)
{
	crowd(f, CROWD, "OBSERVE e");
	pieces(f);
	forget(f);
}

/* Those whom the change concerns are looked for before anybody is told. */
static uint32_t rounds(uint32_t count)
{
	return (count + WORK_TURN_STEPS - 1) / WORK_TURN_STEPS;
}

TEST(many_observers_are_looked_at_and_told_in_pieces)
{
	observed(f);
	fixture_say(f, 1, "CAMPAIGN e DATA x", ":1024");
	assert_int_equal(told(f, "leader"), 0);
	for (uint32_t i = 0; i < rounds(CROWD) - 1; i++) {
		piece(f);
		assert_int_equal(told(f, "leader"), 0);
	}
	piece(f); /* the rest, and what is left of a turn */
	assert_true(told(f, "leader") <= IN_A_TURN);
	pieces(f);
	assert_int_equal(told(f, ":1024"), CROWD);
}

TEST(few_observers_are_told_at_once)
{
	crowd(f, 32, "OBSERVE e");
	fixture_say(f, 1, "CAMPAIGN e DATA x", ":1024");
	assert_false(broker_has_work(f->broker));
	assert_int_equal(told(f, ":1024"), 32);
}

/* Each change begins another round, but where the one before is: those at the end have their turn. */
TEST(changes_that_never_stop_leave_no_observer_out)
{
	uint32_t looked = 0;

	observed(f);
	for (; looked < 2 * CROWD; looked += WORK_TURN_STEPS) {
		fixture_ask(f, 1, "CAMPAIGN e DATA x");
		piece(f);
		fixture_ask(f, 1, "RESIGN e");
		piece(f);
	}
	forget(f);
	fixture_ask(f, 1, "CAMPAIGN e DATA x");
	pieces(f);
	for (uint32_t conn = FIRST; conn < FIRST + CROWD; conn++)
		assert_true(is_told(f, conn, "leader"));
}

TEST(observers_come_and_go_while_they_are_looked_at)
{
	observed(f);
	fixture_ask(f, 1, "CAMPAIGN e DATA x");
	for (uint32_t conn = FIRST; conn < FIRST + CROWD - 2; conn++)
		fixture_simple(f, EVENT_CLIENT_GONE, conn);
	fixture_resp3(f, 2);
	fixture_say(f, 2, "OBSERVE e", "+OK");
	pieces(f);
	assert_true(is_told(f, FIRST + CROWD - 2, ":1024") && is_told(f, FIRST + CROWD - 1, ":1024"));
	fixture_expect_push(f, 2, ">5 $6 leader $1 e :1024 $5 alpha $1 x");
}

TEST(who_is_not_looked_at_yet_is_told_after_a_hand_over)
{
	observed(f);
	fixture_ask(f, 1, "CAMPAIGN e DATA x");
	fixture_hand_over(f);
	assert_true(broker_has_work(f->broker));
	pieces(f);
	assert_int_equal(told(f, ":1024"), CROWD);
}

TEST(who_is_looked_at_and_not_told_is_told_after_a_hand_over)
{
	observed(f);
	fixture_ask(f, 1, "CAMPAIGN e DATA x");
	for (uint32_t i = 0; i < rounds(CROWD); i++)
		piece(f);
	fixture_hand_over(f);
	pieces(f);
	assert_int_equal(told(f, ":1024"), CROWD);
}

/* ---- at another host's word ---- */

/* A letter of beta about f->znode. */
static void demanded(struct fixture *f, const char *kind)
{
	char data[512];

	snprintf(
		data, sizeof(data),
		"1\nkind=%s\nfrom=beta\nto=1000abcdef012345\nname=a\nznode=%s\nreason=please\nuid=0\npid=7\ncommand=sh\nclient=\n",
		kind, f->znode);
	letter_arrives(f, letter, data, ZK_OK);
}

TEST_IN(a_letter_is_acted_upon_in_turns_and_answered_then, setup_letters)
{
	fixture_held(f, f->znode);
	demanded(f, "force");
	fixture_no_op(f);
	fixture_say(f, 0, "EVENTS WAIT 0", "*-1");
	pieces(f);
	assert_non_null(strstr(fixture_op(f, EFFECT_ZK_CREATE, "")->data, "holders=1\n"));
	fixture_answer(f, ZK_OK);
	fixture_say(f, 0, "EVENTS WAIT 0", "*4 $4 lost $1 a :78848 $6 forced");
}

/* Its znode may be deleted by who waits for the answer, which cannot be sent. */
TEST_IN(what_a_letter_asks_for_is_done_before_the_connection_ends, setup_letters)
{
	fixture_held(f, f->znode);
	demanded(f, "force");
	demanded(f, "revoke");
	fixture_simple(f, EVENT_ZK_SUSPENDED, 0);
	assert_true(TAILQ_EMPTY(&f->broker->hosts.letter_tasks.worker.items));
	fixture_hand_over(f);
	fixture_say(f, 0, "EVENTS WAIT 0", "*4 $4 lost $1 a :78848 $6 forced");
	fixture_say(f, 0, "EVENTS WAIT 0", "*-1");
}

TEST_IN(letters_that_are_too_many_are_acted_upon_at_once, setup_letters)
{
	fixture_held(f, f->znode);
	for (int i = 0; i < LETTER_TASKS_MAX; i++)
		demanded(f, "revoke");
	fixture_say(f, 0, "EVENTS WAIT 0", "*-1");
	demanded(f, "revoke");
	fixture_say(f, 0, "EVENTS WAIT 0", "*4 $6 revoke $1 a :78848 $6 please");
	pieces(f);
	fixture_say(f, 0, "EVENTS WAIT 0", "*-1");
}
