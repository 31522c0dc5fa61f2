/* SPDX-License-Identifier: Apache-2.0 */
/* Locks that are held under a value (core/lock/bearer.h), as programs of Redis take them. */
#include <stdio.h>
#include <string.h>

#include "core/lock/bearer.h"
#include "core/state.h"
#include "revocation_fixture.h"
#include "core_test.h"

static const char by_beta[] = "1\nhost=beta\npid=42\nuid=7\ncommand=settle\nsince=99000\nwritten=99500\n";

/* What is said of a lock of the first process, and of one that is held as by_beta says. */
#define HELD_HERE "-DENIED a is held on this host, pid 50 (worker), for 0 ms"
#define HELD_BY_BETA "a is held by host beta, pid 42 (settle), for 500 ms, as of 500 ms ago: "
#define WITHOUT_VALUE "without its value only the process that has set it may release or extend it"
#define NOT_SEEN "could not be seen when it connected: show the value"

static int start(struct fixture *f, void **state)
{
	f->conf.started_s = 100;
	fixture_setup(f, 0, state);
	fixture_connect_processes(f);
	return 0;
}

static int setup(void **state)
{
	return start(fixture_new(false), state);
}

static int setup_standalone(void **state)
{
	return start(fixture_new(true), state);
}

ALONE(one_value_has_it_and_any_other_is_told_nil)
{
	fixture_say(f, 0, "SET a v1 NX PX 1000", "+OK");
	fixture_say(f, 1, "SET a v2 NX PX 1000", "$-1");
	fixture_say(f, 0, "SET a v1 NX PX 1000", "$-1");
	fixture_say(f, 3, "SET a v3 PX 1000 nx", "$-1");
	fixture_say(f, 0, "LOCK a WAIT 0", "$-1");
	fixture_say(f, 0, "GET a", "$2 v1");
	fixture_say(f, 2, "TOKEN a v1", ":1024");
	fixture_say(f, 2, "TOKEN a v2", "-NOTHELD it is not held under that value: a");
	fixture_say(f, 3, "TOKEN a v1", "-NOTHELD it is not held under that value: a");
}

ALONE(a_lease_that_ends_frees_it_and_the_next_token_is_larger)
{
	fixture_say(f, 0, "SET a v1 NX PX 1000", "+OK");
	fixture_ask(f, 3, "LOCK a");
	fixture_pass(f, 999);
	fixture_say(f, 0, "PTTL a", ":1");
	fixture_expect(f, 3, "");
	fixture_pass(f, 1);
	fixture_expect(f, 3, ":1025");
	assert_int_equal(f->broker->locks.bearer_count, 0);
	fixture_say(f, 0, "GET a", "$10 held@alpha");
	fixture_say(f, 3, "UNLOCK a", ":0");
	fixture_say(f, 0, "GET a", "$-1");
}

ALONE(it_outlives_the_connection_that_set_it)
{
	fixture_say(f, 0, "SET a v1 NX EX 2", "+OK");
	fixture_simple(f, EVENT_CLIENT_GONE, 0);
	fixture_say(f, 1, "GET a", "$2 v1");
	fixture_say(f, 1, "SET a v1 XX PX 5000", "+OK");
	fixture_say(f, 1, "RESET", "+RESET");
	fixture_say(f, 1, "PTTL a", ":5000");
	fixture_say(f, 1, "DEL a", ":1");
}

ALONE(more_names_than_a_command_takes_are_refused_with_their_number)
{
	char line[512] = "EXISTS";

	for (int i = 0; i < 64; i++)
		strcat(line, " none");
	fixture_say(f, 0, line, ":0");
	strcat(line, " one");
	fixture_say(f, 0, line,
		    "-ERR wrong number of arguments for 'exists' command; How many of these locks are held, on any host: "
		    "EXISTS name ..., 1..64 names");
}

ALONE(the_words_of_set_in_any_order_and_case)
{
	static const char expire[] = "-ERR invalid expire time in 'set' command: a lease ends 1 ms to 365 days from now";
	static const char syntax[] = "-ERR syntax error in 'set' command; Take a lock as in Redis, or extend it: "
				     "SET name value NX|XX|IFEQ value [PX ms|EX s|PXAT ms|EXAT s]";

	fixture_say(f, 0, "SET a v px 700 nx", "+OK");
	fixture_say(f, 0, "set b v nx ex 7", "+OK");
	fixture_say(f, 0, "PTTL b", ":7000");
	fixture_say(f, 0, "TTL a", ":1");
	fixture_say(f, 0, "TTL none", ":-2");
	fixture_say(f, 0, "SET c v NX pxat 105000", "+OK");
	fixture_say(f, 0, "PTTL c", ":5000");
	fixture_say(f, 0, "SET d v NX EXAT 103", "+OK");
	fixture_say(f, 0, "PTTL d", ":3000");
	fixture_say(f, 0, "SET e v NX EXAT 100", expire);
	fixture_say(f, 0, "SET e v NX PX 0", expire);
	fixture_say(f, 0, "SET e v NX PX -5", expire);
	fixture_say(f, 0, "SET e v NX PX x", expire);
	fixture_say(f, 0, "SET e v NX EX 31536001", expire);
	fixture_say(f, 0, "SET e v NX EX 31536000", "+OK");
	fixture_say(f, 0, "SET g v NX PX", syntax);
	fixture_say(f, 0, "SET g v NX PX 1 EX 1", syntax);
	fixture_say(f, 0, "SET g v NX XX PX 1", syntax);
	fixture_say(f, 0, "SET g v NX PX 1 secret", syntax);
	fixture_say(
		f, 0, "SET g v PX 1",
		"-ERR lockbroker keeps locks and no other data: say NX to take the lock, XX or IFEQ to extend it: g");
	for (int i = 0; i < 8; i++)
		fixture_say(
			f, 0,
			((const char *const[]){ "SET g v NX PX 1 GET", "SET g v KEEPTTL", "SET g v IFNE w PX 1",
						"SET g v IFDEQ 00 PX 1", "SET g v IFDNE 00 PX 1", "SET g v IFEQ w PX 1",
						"SET g v IFEQ", "SET g v NX IFEQ v PX 1" })[i],
			"-ERR a lock keeps the value that it was taken with: SET takes neither GET nor KEEPTTL, IFNE, "
			"IFDEQ and IFDNE here, and IFEQ, which extends a lock, only with that value and without NX");
	fixture_say(f, 0, "SET g v IFEQ v NX PX 1", syntax);
	fixture_say(f, 0, "EXISTS a b c d e g", ":5");
}

/* Redis since 8.4 and Valkey since 8.1; DELIFEQ is Valkey's. */
ALONE(conditions_on_the_value_release_and_extend)
{
	static const char else_del[] =
		"-ERR DELEX releases a lock with IFEQ and its value; a lock that this process has set is released by "
		"DEL: a";
	const char *const releases[] = { "DELIFEQ a v", "DELEX a IFEQ v", "delex a ifeq v" };

	for (int i = 0; i < 3; i++) {
		fixture_say(f, 0, "SET a v IFEQ v PX 700", "$-1");
		fixture_say(f, 0, releases[i], ":0");
		fixture_say(f, 0, "SET a v NX PX 700", "+OK");
		fixture_say(f, 1, "SET a w IFEQ w PX 900", "$-1");
		fixture_say(f, 1, "SET a v PX 900 ifeq v", "+OK");
		fixture_say(f, 0, "PTTL a", ":900");
		fixture_say(f, 0, "SET a v EX 7 IFEQ v", "+OK");
		fixture_say(f, 0, "PTTL a", ":7000");
		fixture_say(
			f, 0, "SET a v IFEQ v",
			"-ERR XX and IFEQ extend a lock: say how long it is to be held from now on, with PX, EX, PXAT or "
			"EXAT: a");
		fixture_say(f, 1, "DELIFEQ a w", ":0");
		fixture_say(f, 1, "DELEX a IFEQ w", ":0");
		fixture_say(f, 1, "DELEX a", else_del);
		fixture_say(f, 1, "DELEX a IFEQ", else_del);
		fixture_say(f, 1, "DELEX a IFNE v", else_del);
		fixture_say(f, 1, "DELEX a IFDEQ 00", else_del);
		fixture_connect_as(f, 5, 4711, SLICE(""), false);
		fixture_say(f, 5, "DELIFEQ a v", ":0");
		fixture_say(f, 5, "SET a v IFEQ v PX 5", "$-1");
		fixture_say(f, 0, "PTTL a", ":7000");
		fixture_ask(f, 2, "LOCK a");
		fixture_say(f, 1, releases[i], ":1");
		fixture_expect_begin(f, 2, ":");
		fixture_say(f, 1, releases[i], ":0");
		fixture_say(f, 2, "UNLOCK a", ":0");
		fixture_simple(f, EVENT_CLIENT_GONE, 5);
	}
}

ALONE(a_value_has_1_to_512_bytes_and_any)
{
	char value[BEARER_VALUE_MAX + 1], reply[BEARER_VALUE_MAX + 16];
	struct slice words[] = { SLICE("SET"), SLICE("a"), { value, 0 }, SLICE("NX"), SLICE("PX"), SLICE("9") };
	struct event e = { .type = EVENT_CLIENT_ASKED, .conn = 0, .asked = { .argc = 6, .argv = words } };

	memset(value, 'x', sizeof(value));
	fixture_event(f, &e);
	fixture_expect(f, 0, "-ERR the value of a lock is 1..512 bytes: 0");
	words[2].len = BEARER_VALUE_MAX + 1;
	fixture_event(f, &e);
	fixture_expect(f, 0, "-ERR the value of a lock is 1..512 bytes: 513");
	words[2].len = BEARER_VALUE_MAX;
	value[0] = '\0';
	value[1] = (char)0xff;
	value[2] = ' ';
	fixture_event(f, &e);
	fixture_expect(f, 0, "+OK");
	fixture_ask(f, 0, "GET a");
	snprintf(reply, sizeof(reply), "$512\r\n");
	assert_memory_equal(f->replies[0].data, reply, 6);
	assert_memory_equal(f->replies[0].data + 6, value, BEARER_VALUE_MAX);
}

ALONE(what_names_no_value_acts_for_the_process_that_set_it)
{
	fixture_say(f, 0, "SET a v1 NX PX 1000", "+OK");
	fixture_say(f, 2, "DEL a", HELD_HERE ": " WITHOUT_VALUE);
	fixture_say(f, 3, "UNLINK a", HELD_HERE ": " WITHOUT_VALUE);
	fixture_say(f, 4, "EXPIRE a 9",
		    HELD_HERE ": " WITHOUT_VALUE "; which process asks " NOT_SEEN ", or connect again");
	fixture_say(f, 1, "PEXPIRE a 4000", ":1");
	fixture_say(f, 1, "PTTL a", ":4000");
	fixture_say(f, 1, "EXPIRE a 9", ":1");
	fixture_say(f, 1, "TTL a", ":9");
	fixture_say(f, 1, "EXPIRE a 0",
		    "-ERR invalid expire time in 'expire' command: a lease ends 1 ms to 365 days from now");
	fixture_say(f, 1, "DEL a b a", ":1");
	fixture_say(f, 1, "DEL a", ":0");
	fixture_say(f, 1, "EXPIRE a 9", ":0");
}

/* Nobody is that process: its number and its start are not known. */
ALONE(who_is_not_known_has_set_nothing)
{
	fixture_say(f, 4, "SET a v1 NX PX 1000", "+OK");
	fixture_say_begin(f, 4, "DEL a", "-DENIED ");
	fixture_say(f, 4, "SET a v1 XX PX 2000", "+OK");
	fixture_say(f, 4, "PTTL a", ":2000");
}

ALONE(of_several_none_is_released_if_one_is_not_its_own)
{
	fixture_say(f, 0, "SET a v1 NX PX 1000", "+OK");
	fixture_say(f, 2, "SET b v1 NX PX 1000", "+OK");
	fixture_say_begin(f, 0, "DEL a b", "-DENIED b is held");
	fixture_say(f, 0, "EXISTS a b", ":2");
}

/* As when there was no descriptor left to look at it. */
ALONE(who_could_not_be_seen_when_it_set_it_is_told_so)
{
	fixture_connect_process(f, 5, 1000, 50, 0);
	fixture_say(f, 5, "SET a v1 NX PX 1000", "+OK");
	fixture_say(f, 0, "DEL a", HELD_HERE ": " WITHOUT_VALUE "; which process that is " NOT_SEEN);
	fixture_say(f, 0, "SET a v1 XX PX 9000", "+OK");
}

ALONE(a_lock_of_a_connection_is_no_value_s)
{
	fixture_say(f, 0, "LOCK a", ":1024");
	fixture_say(f, 1, "DEL a", HELD_HERE ", not by SET: " WITHOUT_VALUE);
	fixture_say(f, 1, "GET a", "$10 held@alpha");
	fixture_say(f, 1, "TTL a", ":-1");
	fixture_say(f, 1, "EXISTS a a b", ":2");
	fixture_say(f, 1, "SET a v XX PX 9", "$-1");
	fixture_say(f, 0, "UNLOCK a", ":0");
	fixture_say(f, 0, "ACQUIRE s LIMIT 2", ":1");
	fixture_say(f, 1, "EXISTS s", ":1");
	fixture_say(f, 1, "SET s v NX PX 9", "-MISMATCH this name is in use as a semaphore, not as a lock: s");
}

ALONE(a_value_of_another_user_is_not_shown_and_not_taken)
{
	fixture_say(f, 0, "SET a v1 NX PX 1000", "+OK");
	fixture_say(f, 3, "GET a", "$10 held@alpha");
	fixture_say(f, 3, "SET a v1 XX PX 9000", "$-1");
	fixture_say(f, 3, "PTTL a", ":1000");
}

ALONE(the_value_is_in_no_list_and_no_log)
{
	f->conf.log_level = EFFECT_LEVEL_INFO;
	f->conf.log_grants = true;
	fixture_say(f, 0, "SET a sesame NX PX 1000", "+OK");
	for (const char *const *ask =
		     (const char *const[]){ "HOLDERS a", "QUEUE a", "WHY a", "LOCKS", "CLIENT LIST", NULL };
	     *ask; ask++) {
		fixture_ask(f, 2, *ask);
		fixture_pass(f, 0);
		assert_true(f->replies[2].len > 0);
		assert_null(memmem(f->replies[2].data, f->replies[2].len, "sesame", 6));
		bytes_clear(&f->replies[2]);
	}
	fixture_say(f, 0, "DEL a", ":1");
	assert_null(memmem(f->log.data, f->log.len, "sesame", 6));
	assert_true(fixture_logged(f, "released: lock \"a\""));
}

ALONE(nothing_of_it_is_in_the_ledger_s_memory_afterwards)
{
	fixture_record(f);
	fixture_say(f, 0, "SET a sesame NX PX 1000", "+OK");
	assert_non_null(memmem(f->memory, FIXTURE_MEMORY_BYTES, "sesame", 6));
	fixture_say(f, 0, "DEL a", ":1");
	assert_null(memmem(f->memory, FIXTURE_MEMORY_BYTES, "sesame", 6));
}

ALONE(it_is_no_client_in_lists_and_counts)
{
	fixture_say(f, 0, "SET a v NX PX 1000", "+OK");
	assert_int_equal(broker_clients(f->broker), 5);
	fixture_ask(f, 0, "CLIENT LIST");
	assert_null(memmem(f->replies[0].data, f->replies[0].len, "id=6", 4));
	bytes_clear(&f->replies[0]);
}

ALONE(each_counts_as_a_grant_of_its_user)
{
	f->conf.limits.locks = fixture_total(1000);
	for (size_t i = 0; i < 50; i++) {
		fixture_say(f, 0, fixture_words(f, "SET n%zu v NX PX 1000", i), "+OK");
	}
	fixture_say_begin(f, 0, "SET more v NX PX 1000", "-LIMIT ");
	assert_int_equal(f->broker->locks.bearer_count, 50);
	fixture_say(f, 0, "DEL n7", ":1");
	fixture_say(f, 0, "SET more v NX PX 1000", "+OK");
}

ALONE(its_memory_is_charged)
{
	f->conf.limits.memory_bytes = fixture_total(bearer_memory(SLICE("v")) + 1000);
	fixture_say(f, 0, "SET a v NX PX 1000", "+OK");
	fixture_say_begin(f, 0, "SET b v NX PX 1000", "-LIMIT ");
	fixture_say(f, 0, "DEL a", ":1");
	fixture_say(f, 0, "SET b v NX PX 1000", "+OK");
}

ALONE(force_and_drain_treat_it_as_any_holder)
{
	fixture_connect(f, 5);
	fixture_say(f, 0, "SET a v NX PX 1000", "+OK");
	fixture_say(f, 5, "REVOKE a", ":1");
	fixture_say(f, 5, "FORCEUNLOCK a", ":1");
	fixture_say(f, 0, "GET a", "$-1");
	fixture_say(f, 0, "SET a v NX PX 1000", "+OK");
	fixture_ask(f, 5, "DRAIN");
	fixture_say_begin(f, 0, "SET b v NX PX 1000", "-DRAINING ");
	fixture_say(f, 0, "DEL a", ":1");
}

ALONE(a_hand_over_keeps_value_lease_and_process)
{
	fixture_say(f, 0, "SET a v1 NX PX 5000", "+OK");
	fixture_say(f, 3, "SET b v2 NX PX 5000", "+OK");
	fixture_pass(f, 1000);
	fixture_hand_over(f);
	fixture_say(f, 1, "GET a", "$2 v1");
	fixture_say(f, 1, "PTTL a", ":4000");
	fixture_say(f, 1, "TOKEN a v1", ":1024");
	fixture_say(f, 3, "GET b", "$2 v2");
	fixture_say(f, 1, "DEL a", ":1");
	fixture_pass(f, 4000);
	fixture_say(f, 3, "GET b", "$-1");
}

/* ---- with ZooKeeper ---- */

/* While a bid is under way, a client that shows its value finds none of its locks: the bid's client was told nothing yet. */
TEST(grants_of_an_unfinished_bid_are_not_found_by_value)
{
	char names[2][128];

	fixture_ask(f, 0, "EVALSHA e5a322e2634ef59a516e8ea150cb085afafee684 2 a b v 60000");
	for (uint32_t i = 0; i < 2; i++) {
		if (fixture_oldest(f)->effect.type == EFFECT_ZK_GET)
			fixture_answer_get(f, 1, 0, LOCK_DATA);
		fixture_op(f, EFFECT_ZK_CREATE, "-__WRIT__");
		if (i == 1) {
			fixture_say(f, 1, "EVALSHA c3f8721cbb97f72bc19e972846bd7aaf91901658 1 a v", ":0");
			fixture_say(f, 1, "SET a v XX PX 5", "$-1");
			fixture_say(f, 1, "EXISTS a", ":1");
			fixture_say(f, 1, "DEL a", ":0");
		}
		fixture_serve_alone(f, "-__WRIT__", 5 + i, 77 + i, names[i]);
		fixture_pass(f, 0);
	}
	fixture_expect(f, 0, ":2");
	fixture_say(f, 1, "EVALSHA c3f8721cbb97f72bc19e972846bd7aaf91901658 1 a v", ":1");
}

TEST(the_adapter_knows_whether_anybody_holds_without_a_connection)
{
	fixture_set_held(f, "SET a v NX PX 1000");
	assert_true(f->bearers && broker_has_bearers(f->broker));
	fixture_next_process(f);
	assert_true(broker_has_bearers(f->broker));
	fixture_say(f, 0, "DEL a", ":1");
	assert_false(f->bearers || broker_has_bearers(f->broker));
}

TEST(the_end_of_the_session_is_its_end)
{
	fixture_set_held(f, "SET a v NX PX 100000");
	fixture_simple(f, EVENT_ZK_SUSPENDED, 0);
	fixture_pass(f, 8001);
	assert_int_equal(f->broker->locks.bearer_count, 0);
	assert_false(f->bearers);
}

/* Nobody can ask it to release. Its znode keeps others out until the session ends. */
TEST(a_stop_does_not_wait_for_it)
{
	fixture_set_held(f, "SET a v NX PX 100000");
	fixture_simple(f, EVENT_STOP, 0);
	assert_int_equal(f->stopped, 1);
}

TEST(a_stop_waits_for_what_others_hold_and_for_its_znodes)
{
	fixture_set_held(f, "SET a v NX PX 100000");
	fixture_lock_held(f, 3, "b", 6, 78, f->znode, sizeof(f->znode));
	fixture_simple(f, EVENT_STOP, 0);
	assert_int_equal(f->stopped, 0);
	fixture_ask(f, 3, "UNLOCK b");
	assert_int_equal(f->stopped, 0);
	fixture_serve(f, EFFECT_ZK_DELETE, f->znode, ZK_OK);
	assert_int_equal(f->stopped, 1);
}

ALONE(a_stop_alone_does_not_wait_for_it)
{
	fixture_say(f, 0, "SET a v NX PX 100000", "+OK");
	fixture_ask(f, 3, "LOCK b");
	fixture_simple(f, EVENT_STOP, 0);
	assert_int_equal(f->stopped, 0);
	fixture_simple(f, EVENT_CLIENT_GONE, 3);
	assert_int_equal(f->stopped, 1);
}

/* Beta holds a, as the data of its znode say. */
static void say_of_beta(struct fixture *f, const char *words, const char *data, const char *reply)
{
	fixture_ask(f, 0, words);
	held_by(f, elsewhere, data);
	fixture_pass(f, 0);
	fixture_expect(f, 0, reply);
}

TEST(of_another_host_a_process_is_named_once_it_is_written)
{
	say_of_beta(f, "DEL a", "1\nhost=beta\n", "-DENIED a is held by host beta: " WITHOUT_VALUE);
	say_of_beta(f, "EXPIRE a 10", by_beta, "-DENIED " HELD_BY_BETA WITHOUT_VALUE);
}

TEST(what_another_host_holds_is_asked_for)
{
	say_of_beta(f, "GET a", by_beta, "$9 held@beta");
	say_of_beta(f, "DEL a b", by_beta, "-DENIED " HELD_BY_BETA WITHOUT_VALUE);
	say_of_beta(f, "TOKEN a v", by_beta, "-UNAVAILABLE " HELD_BY_BETA "ask for its token there, with the value");
}

TEST(several_names_are_asked_for_one_after_the_other)
{
	fixture_set_held(f, "SET b v NX PX 1000");
	fixture_ask(f, 0, "DEL a b c");
	fixture_serve_list(f, "/lb/a", 0, NULL);
	fixture_answer_write(f, ZK_BADVERSION);
	fixture_serve_list(f, "/lb/a", 0, NULL);
	fixture_pass(f, 0);
	fixture_op(f, EFFECT_ZK_LIST, "/lb/c");
	fixture_expect(f, 0, "");
	fixture_next_process(f);
	fixture_pass(f, 0);
	fixture_expect(f, 0, "");
	fixture_simple(f, EVENT_ZK_SUSPENDED, 0);
	fixture_pass(f, 0);
	assert_int_equal(f->broker->locks.bearer_count, 1);
}

TEST(what_cannot_be_known_is_not_said_to_be_free)
{
	fixture_simple(f, EVENT_ZK_SUSPENDED, 0);
	for (const char *const *ask =
		     (const char *const[]){ "GET a", "DEL a", "EXISTS a", "TTL a", "SET a v XX PX 1", NULL };
	     *ask; ask++) {
		fixture_ask(f, 0, *ask);
		fixture_pass(f, 0);
		fixture_expect(f, 0, "-UNAVAILABLE ZooKeeper cannot be asked what other hosts hold: a");
	}
}

TEST(who_leaves_takes_what_is_not_answered_along)
{
	fixture_ask(f, 0, "SET a v NX PX 1000");
	assert_int_equal(f->broker->locks.bearer_count, 1);
	fixture_simple(f, EVENT_CLIENT_GONE, 0);
	assert_int_equal(f->broker->locks.bearer_count, 0);
	fixture_ask(f, 1, "DEL b");
	fixture_simple(f, EVENT_CLIENT_GONE, 1);
	fixture_ask(f, 2, "SET c v NX PX 1000");
	fixture_next_process(f);
	fixture_simple(f, EVENT_CLIENT_GONE, 2);
	assert_int_equal(f->broker->locks.bearer_count, 0);
}
