/* SPDX-License-Identifier: Apache-2.0 */
/* The session and time: T = 12 s, so T/8 = 1.5 s, T/6 = 2 s, T/3 = 4 s, 2/3 T = 8 s; tick 2 s. */
#include "core_test.h"

SETUP(setup, false, 4)

/* The test starts it. */
static int setup_new(void **state)
{
	*state = fixture_new(false);
	return 0;
}

static int64_t safe_ms(const struct fixture *f)
{
	int64_t until = broker_safe_until(f->broker);

	return until == INT64_MIN ? -1 : (until - f->now_ns) / MS;
}

TEST_IN(the_first_answered_write_proves_the_session, setup_new)
{
	fixture_start(f);
	fixture_zk_connected(f, SESSION);
	assert_int_equal(safe_ms(f), -1);
	fixture_pass(f, 500);
	fixture_serve(f, EFFECT_ZK_CREATE, "/lb", ZK_NODEEXISTS);
	assert_int_equal(safe_ms(f), 7500); /* from the time of sending */
}

/* Pitfall 4. */
TEST(reads_prove_nothing)
{
	fixture_pass(f, 500);
	fixture_ask(f, 0, "LOCK a");
	fixture_serve_get(f, "/lb/a", 1, 0, "");
	assert_int_equal(safe_ms(f), 7500);
	fixture_answer(f, ZK_REFUSED); /* the create: not through the quorum */
	assert_int_equal(safe_ms(f), 7500);
}

TEST(the_heartbeat_goes_on_while_idle)
{
	for (int i = 0; i < 5; i++) {
		fixture_pass(f, 1499);
		fixture_no_op(f);
		fixture_pass(f, 1);
		fixture_serve(f, EFFECT_ZK_SET, "/lb/.hosts/alpha", ZK_OK);
		assert_int_equal(safe_ms(f), 8000);
	}
}

/* Its answer would come when holders have been told already that the session is in jeopardy. */
TEST(the_next_heartbeat_does_not_wait_for_one_that_takes_long)
{
	size_t sent;

	fixture_pass(f, 1500);
	sent = f->end_op;
	fixture_pass(f, 749);
	assert_int_equal(f->end_op, sent);
	fixture_pass(f, 1);
	assert_int_equal(f->end_op, sent + 1);
	fixture_answer_beats(f);
	fixture_no_op(f);
	assert_int_equal(safe_ms(f), 8000);
	fixture_pass(f, 1499);
	fixture_no_op(f);
}

TEST(lock_traffic_counts_as_heartbeat)
{
	fixture_pass(f, 1000);
	fixture_held(f, f->znode);
	assert_int_equal(safe_ms(f), 8000);
	fixture_pass(f, 1000);
	fixture_serve_list(f, "/lb/a", 0, NULL); /* the grant is a second old */
}

TEST(a_late_answer_proves_nothing)
{
	fixture_pass(f, 1500);
	fixture_pass(f, 2000); /* the heartbeat is T/6 old: dropped, in this very turn */
	assert_int_equal(f->drops, 1);
	assert_int_equal(safe_ms(f), 4500);
}

TEST(a_silent_server_is_dropped_after_a_sixth)
{
	fixture_pass(f, 1500 + 1999);
	assert_int_equal(f->drops, 0);
	fixture_pass(f, 1);
	assert_int_equal(f->drops, 1);
	fixture_no_op(f);
	fixture_pass(f, 3000);
	assert_int_equal(f->drops, 1);
}

/* A busy server is no silent one; what proves the session is another matter. */
TEST(a_server_that_answers_something_is_not_silent)
{
	fixture_pass(f, 500);
	fixture_ask(f, 0, "LOCK a");
	fixture_pass(f, 1900);
	fixture_answer(f, ZK_NONODE); /* the read of the directory */
	fixture_pass(f, 1900);
	assert_int_equal(f->drops, 0); /* the create is 3.8 s old, and the answer before it 1.9 s */
	assert_int_equal(safe_ms(f), 3700);
	fixture_answer(f, ZK_NODEEXISTS); /* late: it proves nothing */
	assert_int_equal(safe_ms(f), 3700);
	fixture_pass(f, 1999);
	assert_int_equal(f->drops, 0);
	fixture_pass(f, 1);
	assert_int_equal(f->drops, 1);
}

TEST(what_answers_no_operation_is_silence)
{
	fixture_pass(f, 1500);
	fixture_pass(f, 1900);
	fixture_watch(f, ZK_WATCH_CHILDREN, "/lb/a");
	fixture_watch(f, ZK_WATCH_DELETED, "/lb/a/b");
	fixture_pass(f, 100);
	assert_int_equal(f->drops, 1);
}

TEST(jeopardy_is_told_with_the_time_left_and_safe_after_it)
{
	fixture_resp3(f, 0);
	fixture_held(f, f->znode);
	fixture_simple(f, EVENT_ZK_SUSPENDED, 0);
	fixture_expect_push(f, 0, ">2 $8 jeopardy :8000");
	fixture_pass(f, 1000);
	fixture_zk_connected(f, SESSION);
	fixture_expect_push(f, 0, ">1 $4 safe"); /* what was proven is younger than T/3; connecting adds nothing */
	assert_int_equal(safe_ms(f), 7000);
}

TEST(jeopardy_ends_with_a_proof)
{
	fixture_held(f, f->znode);
	fixture_simple(f, EVENT_ZK_SUSPENDED, 0);
	fixture_pass(f, 4500);
	fixture_say(f, 0, "EVENTS", "*2 $8 jeopardy :3500");
	fixture_say(f, 0, "EVENTS", "");
	fixture_zk_connected(f, SESSION);
	fixture_expect(f, 0, "");
	fixture_serve(f, EFFECT_ZK_SET, "/lb/.hosts/alpha", ZK_OK);
	fixture_expect(f, 0, "*1 $4 safe");
	assert_int_equal(safe_ms(f), 8000);
}

TEST(a_shorter_timeout_after_a_reconnection_shortens_the_proof)
{
	fixture_held(f, f->znode);
	fixture_simple(f, EVENT_ZK_SUSPENDED, 0);
	f->conf.session_timeout_ns = 5000 * MS;
	fixture_zk_connected(f, SESSION);
	assert_int_equal(safe_ms(f), 4900);
}

TEST(loss_is_told_at_two_thirds_and_once)
{
	fixture_held(f, f->znode);
	fixture_simple(f, EVENT_ZK_SUSPENDED, 0);
	fixture_pass(f, 7999);
	fixture_say(f, 0, "VALID a", ":1");
	fixture_pass(f, 1);
	fixture_say(f, 0, "VALID a", ":0");
	fixture_say(f, 0, "EVENTS", "*4 $4 lost $1 a :78848 $7 session");
	fixture_say(f, 0, "UNLOCK a", "-NOTHELD this client does not hold a");
}

TEST(an_unread_loss_is_told_by_the_next_lock)
{
	fixture_held(f, f->znode);
	fixture_event(f, &(struct event){ .type = EVENT_ZK_EXPIRED });
	fixture_say(f, 0, "LOCK a", "-LOST an earlier grant of this lock was lost; ask again: a");
	fixture_say(f, 0, "EVENTS WAIT 0", "*-1");
	fixture_say(
		f, 0, "LOCK a WAIT 0",
		"-UNAVAILABLE there is no connection to ZooKeeper, so it is not known whether the lock is taken: a");
}

TEST(a_push_does_not_count_as_told)
{
	fixture_resp3(f, 0);
	fixture_held(f, f->znode);
	fixture_event(f, &(struct event){ .type = EVENT_ZK_EXPIRED });
	fixture_expect_push(f, 0, ">4 $4 lost $1 a :78848 $7 session");
	fixture_say(f, 0, "UNLOCK a TOKEN 78848", "-LOST the grant was lost before it was released: a");
	assert_int_equal(f->opens, 2);
}

TEST(a_session_that_lives_after_all_gives_its_void_znodes_away)
{
	fixture_held(f, f->znode);
	fixture_simple(f, EVENT_ZK_SUSPENDED, 0);
	fixture_pass(f, 8000);
	fixture_ask(f, 1, "LOCK a");
	fixture_reconnected(f);
	fixture_serve(f, EFFECT_ZK_DELETE, "-__WRIT__0000000005", ZK_OK);
	fixture_serve_list(f, "/lb/a", 0, NULL);
	fixture_op(f, EFFECT_ZK_CREATE, "-__WRIT__");
}

/* Pitfall 5. */
TEST(a_grant_must_be_proven_for_long_enough)
{
	fixture_held(f, f->znode);
	fixture_ask(f, 1, "LOCK a");
	fixture_simple(f, EVENT_ZK_SUSPENDED, 0);
	fixture_pass(f, 6900);
	fixture_say(f, 0, "UNLOCK a", ":0");
	fixture_expect(f, 1, ":78849"); /* 1.1 s left: more than grant_min */
	fixture_ask(f, 2, "LOCK a");
	fixture_pass(f, 200);
	fixture_say(f, 1, "UNLOCK a", ":0");
	fixture_expect(f, 2, "");
}

/* Pitfall 5. */
TEST(after_a_standstill_nothing_is_granted_until_a_later_write)
{
	fixture_held(f, f->znode);
	fixture_ask(f, 1, "LOCK a");
	f->now_ns += 4001 * MS;
	fixture_say(f, 0, "UNLOCK a", ":0");
	fixture_expect(f, 1, "");
	fixture_serve(f, EFFECT_ZK_SET, "/lb/.hosts/alpha", ZK_OK); /* overdue */
	assert_int_equal(safe_ms(f), 8000 - 4001); /* sent within a tick of waking: proves nothing */
	fixture_serve_list(f, "/lb/a", 1, (const char *[]){ f->znode });
	fixture_pass(f, 1999);
	fixture_serve(f, EFFECT_ZK_SET, "/lb/.hosts/alpha", ZK_OK); /* the ordinary heartbeat, too early as well */
	fixture_expect(f, 1, "");
	fixture_pass(f, 1);
	fixture_serve(f, EFFECT_ZK_SET, "/lb/.hosts/alpha", ZK_OK);
	fixture_expect(f, 1, ":78849");
}

/* Found by the simulator: the handshake's answer had waited in the socket while the daemon was stopped. */
TEST_IN(a_session_that_began_during_a_standstill_is_not_believed_at_once, setup_new)
{
	fixture_start(f);
	f->now_ns += 11000 * MS;
	fixture_zk_connected(f, SESSION);
	fixture_answer_session(f);
	assert_int_equal(safe_ms(f), -1);
	fixture_pass(f, 2000);
	fixture_answer_session(f);
	assert_int_equal(safe_ms(f), 8000);
}

/* Found by the simulator too: the leader may not have seen the session since the handshake was asked for. */
TEST_IN(a_slow_handshake_shortens_the_proof, setup_new)
{
	f->handshake_ns = 5000 * MS;
	fixture_start(f);
	fixture_zk_connected(f, SESSION);
	fixture_answer_session(f);
	assert_int_equal(safe_ms(f), 6760);
	/* The second proves that the first reached the leader, and nothing about itself: nor do two sent together. */
	fixture_pass(f, 760); /* jeopardy is near: it does not wait for T/8 */
	fixture_connect(f, 0);
	fixture_ask(f, 0, "LOCK a");
	fixture_answer(f, ZK_OK);     /* heartbeat */
	fixture_answer(f, ZK_NONODE); /* get */
	fixture_answer(f, ZK_REFUSED); /* create */
	bytes_clear(&f->replies[0]);
	fixture_answer(f, ZK_NONODE); /* list */
	assert_int_equal(safe_ms(f), 6000);
	fixture_pass(f, 750);
	fixture_answer_session(f);
	assert_int_equal(safe_ms(f), 5250);
	fixture_pass(f, 750);
	fixture_answer_session(f);
	assert_int_equal(safe_ms(f), 8000);
}

/* A lock's own refusals are no heartbeat: one bad ACL must not cost the host its session. */
TEST(refused_writes_do_not_stand_for_heartbeats)
{
	int beats = 0;

	fixture_held(f, f->znode);
	for (int i = 0; i < 20; i++) {
		fixture_ask(f, 1, fixture_words(f, "LOCK b%d", i));
		while (fixture_is_open(f)) {
			const struct fixture_op *op = fixture_oldest(f);

			beats += op->effect.type == EFFECT_ZK_SET;
			if (op->effect.type == EFFECT_ZK_LIST)
				fixture_answer_list(f, 1, op->path[4] == 'a', (const char *[]){ f->znode });
			else
				fixture_answer(f, op->effect.type == EFFECT_ZK_CREATE ? ZK_REFUSED : ZK_OK);
		}
		bytes_clear(&f->replies[1]);
		fixture_pass(f, 500);
	}
	assert_true(beats >= 6);
	assert_true(safe_ms(f) > 6000);
}

TEST(an_old_jeopardy_is_not_told_to_who_let_go)
{
	fixture_held(f, f->znode);
	fixture_simple(f, EVENT_ZK_SUSPENDED, 0);
	fixture_say(f, 0, "UNLOCK a", ":0");
	fixture_pass(f, 9000);
	fixture_say(f, 0, "EVENTS WAIT 0", "*-1");
}

TEST(losses_do_not_eat_the_limits)
{
	f->conf.limits.grants_per_client = 1;
	fixture_resp3(f, 0);
	fixture_held(f, f->znode);
	fixture_event(f, &(struct event){ .type = EVENT_ZK_EXPIRED });
	fixture_expect_push(f, 0, ">4 $4 lost $1 a :78848 $7 session");
	fixture_zk_connected(f, SESSION + 1);
	fixture_answer_session(f);
	fixture_pass(f, 200);
	fixture_lock_held(f, 0, "b", 5, 78, f->znode, sizeof(f->znode));
	fixture_expect(f, 0, ":79872");
	fixture_say(
		f, 0, "LOCK c",
		"-LIMIT this client already holds or waits for as many locks as one client may (limits.grants_per_client): c");
	/* One more that it is not told of is one too many to remember. */
	assert_int_equal(f->closed[0], 0);
	fixture_event(f, &(struct event){ .type = EVENT_ZK_EXPIRED });
	assert_int_equal(f->closed[0], 1);
}

TEST(waking_after_the_deadline_tells_the_loss_first)
{
	fixture_held(f, f->znode);
	fixture_ask(f, 1, "LOCK a");
	f->now_ns += 9000 * MS;
	fixture_say(f, 0, "UNLOCK a", "-LOST the grant was lost before it was released: a");
	fixture_expect(f, 1, "");
}

TEST(a_session_silent_for_too_long_is_given_up)
{
	fixture_simple(f, EVENT_ZK_SUSPENDED, 0);
	fixture_pass(f, 11999);
	assert_int_equal(f->opens, 1);
	fixture_pass(f, 1);
	assert_int_equal(f->opens, 2);
	fixture_pass(f, 60000);
	assert_int_equal(f->opens, 2);
}

TEST(connections_that_end_at_once_are_worth_a_warning)
{
	static const char text[] = "somebody else may be using this session";

	fixture_pass(f, 1000);
	for (int i = 0; i < 5; i++) {
		fixture_simple(f, EVENT_ZK_SUSPENDED, 0);
		assert_false(fixture_logged(f, text)); /* the first connection lasted */
		fixture_zk_connected(f, SESSION);
		fixture_pass(f, 200);
	}
	fixture_simple(f, EVENT_ZK_SUSPENDED, 0);
	assert_true(fixture_logged(f, text));
	fixture_zk_connected(f, SESSION);
	fixture_simple(f, EVENT_ZK_SUSPENDED, 0);
	assert_false(fixture_logged(f, text));
}

static void connected_with(struct fixture *f, int64_t session, int64_t timeout_ms)
{
	fixture_event(f, &(struct event){ .type = EVENT_ZK_CONNECTED,
					  .zk_connected = { .session = session, .timeout_ns = timeout_ms * MS,
							    .asked_ns = f->now_ns, .server = SLICE("server:1") } });
}

/* Once for each session, and again when a server that it moves to grants another. */
TEST(another_timeout_than_asked_for_is_told)
{
	static const char ten[] = "the servers grant a session timeout of 10000 ms, not 12000 ms as configured";

	assert_false(fixture_logged(f, "the servers grant"));
	connected_with(f, SESSION, 10000);
	assert_true(fixture_logged(f, ten));
	connected_with(f, SESSION, 10000);
	assert_false(fixture_logged(f, "the servers grant"));
	connected_with(f, SESSION + 1, 10000);
	assert_true(fixture_logged(f, ten));
	connected_with(f, SESSION + 1, 12000);
	assert_false(fixture_logged(f, "the servers grant"));
}

static void suspend(struct fixture *f, bool planned)
{
	fixture_event(f, &(struct event){ .type = EVENT_ZK_SUSPENDED, .zk_suspended = { .planned = planned } });
}

/* The connection ends with the hand-over, and the holders are safe for as long as the proof is young. */
TEST(a_hand_over_is_no_jeopardy_until_the_proof_is_old)
{
	fixture_resp3(f, 0);
	fixture_held(f, f->znode);
	suspend(f, true);
	fixture_expect_push(f, 0, "");
	fixture_pass(f, 3500);
	fixture_expect_push(f, 0, "");
	fixture_pass(f, 600);
	fixture_expect_push(f, 0, ">2 $8 jeopardy :3999");
	assert_true(fixture_logged(f, "session in jeopardy"));
}

TEST(a_connection_that_is_lost_after_a_hand_over_is_jeopardy_at_once)
{
	fixture_resp3(f, 0);
	fixture_held(f, f->znode);
	suspend(f, true);
	fixture_reconnected(f);
	fixture_expect_push(f, 0, "");
	suspend(f, false);
	assert_true(fixture_logged(f, "session in jeopardy"));
}

TEST(hand_overs_in_a_row_are_no_shared_session)
{
	for (int i = 0; i < 20; i++) {
		suspend(f, true);
		fixture_zk_connected(f, SESSION);
	}
	assert_false(fixture_logged(f, "somebody else may"));
}
