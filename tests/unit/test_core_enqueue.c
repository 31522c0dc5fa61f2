/* SPDX-License-Identifier: Apache-2.0 */
/* Waits that do not block their connection: ENQUEUE, CANCEL and the events that end them. */
#include "core_test.h"

#include <string.h>

#include "core/state.h"

/* Connections 0 and 1 speak RESP2, 2 and 3 RESP3. */
static int setup(void **state)
{
	struct fixture *f = fixture_new(true);

	fixture_setup(f, 4, state);
	for (uint32_t conn = 2; conn < 4; conn++)
		fixture_resp3(f, conn);
	return 0;
}

TEST(a_grant_comes_as_a_push)
{
	fixture_say(f, 0, "LOCK a", ":1024");
	fixture_say(f, 2, "ENQUEUE a", "+QUEUED");
	fixture_say(f, 2, "PING", "+PONG");
	fixture_expect_push(f, 2, "");
	fixture_say(f, 0, "UNLOCK a", ":0");
	fixture_expect_push(f, 2, ">3 $7 granted $1 a :1025");
	fixture_say(f, 2, "UNLOCK a TOKEN 1025", ":0");
}

TEST(a_grant_comes_as_an_event_under_resp2)
{
	fixture_say(f, 1, "ENQUEUE b", "+QUEUED");
	fixture_say(f, 1, "EVENTS WAIT 0", "*3 $7 granted $1 b :1024");
	fixture_say(f, 0, "LOCK a", ":2048");
	fixture_say(f, 1, "ENQUEUE a", "+QUEUED");
	fixture_say(f, 1, "EVENTS", "");
	fixture_say(f, 0, "UNLOCK a", ":0");
	fixture_expect(f, 1, "*3 $7 granted $1 a :2049");
	fixture_say(f, 1, "EVENTS WAIT 0", "*-1");
}

/* It would be lost: the answer that tells it is not refused for its length. */
TEST(an_event_is_told_whatever_its_length)
{
	f->conf.limits.output_bytes = 16;
	fixture_say(f, 1, "ENQUEUE b", "+QUEUED");
	fixture_say(f, 1, "EVENTS WAIT 0", "*3 $7 granted $1 b :1024");
}

/* What is written to connections, in order, and to whom. */
static void expect_written(struct fixture *f, size_t count, const struct effect *expected)
{
	size_t at = 0;

	for (size_t i = 0; i < f->effects.count; i++) {
		const struct effect *e = &f->effects.list[i];

		if (e->type != EFFECT_REPLY && e->type != EFFECT_PUSH)
			continue;
		assert_true(at < count);
		assert_int_equal(e->type, expected[at].type);
		assert_int_equal(e->conn, expected[at].conn);
		at++;
	}
	assert_int_equal(at, count);
	effects_clear(&f->effects);
}

/* The order on the wire: QUEUED, the grant, then the reply to what caused it. */
TEST(the_reply_comes_before_the_grant_and_the_grant_before_the_unlocks)
{
	struct slice words[] = { SLICE("ENQUEUE"), SLICE("a") }, unlock[] = { SLICE("UNLOCK"), SLICE("a") };

	broker_handle(f->broker, f->now_ns, &(struct event){ .type = EVENT_CLIENT_ASKED, .conn = 2,
			.asked = { 2, words } }, &f->effects);
	expect_written(f, 2, (struct effect[]){ { EFFECT_REPLY, .conn = 2 }, { EFFECT_PUSH, .conn = 2 } });
	fixture_say(f, 3, "ENQUEUE a", "+QUEUED");
	broker_handle(f->broker, f->now_ns, &(struct event){ .type = EVENT_CLIENT_ASKED, .conn = 2,
			.asked = { 2, unlock } }, &f->effects);
	expect_written(f, 2, (struct effect[]){ { EFFECT_PUSH, .conn = 3 }, { EFFECT_REPLY, .conn = 2 } });
}

TEST(a_wait_that_runs_out_is_told)
{
	fixture_say(f, 0, "LOCK a", ":1024");
	fixture_say(f, 2, "ENQUEUE a WAIT 100", "+QUEUED");
	fixture_say(f, 1, "ENQUEUE a WAIT 0", "+QUEUED");
	fixture_say(f, 1, "EVENTS WAIT 0", "*2 $7 timeout $1 a");
	fixture_pass(f, 99);
	fixture_expect_push(f, 2, "");
	fixture_pass(f, 1);
	fixture_expect_push(f, 2, ">2 $7 timeout $1 a");
	fixture_say(f, 2, "CANCEL a", ":0");
	fixture_say(f, 0, "UNLOCK a", ":0");
	fixture_expect_push(f, 2, "");
	fixture_say(f, 0, "LOCKS", "*0");
}

TEST(cancel_takes_it_back_for_good)
{
	fixture_say(f, 0, "LOCK a", ":1024");
	fixture_say(f, 2, "CANCEL a", ":0");
	fixture_say(f, 2, "ENQUEUE a WAIT 100", "+QUEUED");
	fixture_say(f, 2, "CANCEL a", ":1");
	fixture_say(f, 2, "CANCEL a", ":0");
	fixture_say(f, 0, "UNLOCK a", ":0");
	fixture_pass(f, 1000);
	fixture_expect_push(f, 2, "");
	fixture_say(f, 2, "ENQUEUE a", "+QUEUED");
	fixture_expect_push(f, 2, ">3 $7 granted $1 a :2048");
	fixture_say(f, 2, "CANCEL a", ":0");
	fixture_say(f, 0, "CANCEL .",
		    "-BADNAME a lock name is 1..512 bytes of UTF-8 without control characters, not . or ..: \".\"");
}

TEST(one_wait_for_each_client_and_name)
{
	static const char twice[] = "-ERR this client already waits for it, and CANCEL withdraws its ENQUEUE: a";

	fixture_say(f, 0, "LOCK a", ":1024");
	fixture_say(f, 2, "ENQUEUE a", "+QUEUED");
	fixture_say(f, 2, "ENQUEUE a", twice);
	fixture_say(f, 2, "LOCK a WAIT 0", twice);
	fixture_say(f, 2, "LOCK b", ":2048");
	fixture_say(f, 3, "ENQUEUE a", "+QUEUED");
	fixture_say(f, 0, "UNLOCK a", ":0");
	fixture_expect_push(f, 2, ">3 $7 granted $1 a :1025");
	fixture_expect_push(f, 3, "");
}

TEST(what_one_holds_is_granted_again_at_once)
{
	fixture_say(f, 2, "LOCK a LEASE 100", ":1024");
	fixture_say(f, 2, "ENQUEUE a LEASE 200 REENTER", "+QUEUED");
	fixture_expect_push(f, 2, ">3 $7 granted $1 a :1024");
	fixture_say(f, 2, "VALID a", ":200");
	fixture_say(f, 2, "UNLOCK a", ":1");
	fixture_pass(f, 200);
	fixture_expect_push(f, 2, ">4 $4 lost $1 a :1024 $5 lease");
	fixture_say(f, 2, "ENQUEUE a", "-LOST the lease of the grant ran out: a");
	fixture_say(f, 2, "ENQUEUE a LEASE 50", "+QUEUED");
	fixture_expect_push(f, 2, ">3 $7 granted $1 a :2048");
	fixture_pass(f, 50);
	fixture_expect_push(f, 2, ">4 $4 lost $1 a :2048 $5 lease");
}

/* What LOCK says at once ENQUEUE says at once: an upgrade would wait for itself. */
TEST(modes_are_those_of_lock)
{
	fixture_say(f, 2, "ENQUEUE a SHARED", "+QUEUED");
	fixture_expect_push(f, 2, ">3 $7 granted $1 a :1024");
	fixture_say(f, 3, "ENQUEUE a WAIT 100 SHARED", "+QUEUED");
	fixture_expect_push(f, 3, ">3 $7 granted $1 a :1024");
	fixture_say(f, 2, "ENQUEUE a REENTER",
		    "-DEADLOCK this client holds a shared and would wait for itself: release it first");
	fixture_say(f, 0, "LOCK a", "");
	fixture_say(f, 1, "ENQUEUE a SHARED", "+QUEUED");
	fixture_say(f, 1, "EVENTS WAIT 0", "*-1");
	fixture_say(f, 2, "UNLOCK a", ":0");
	fixture_say(f, 3, "UNLOCK a", ":0");
	fixture_expect(f, 0, ":2048");
	fixture_say(f, 0, "DOWNGRADE a", ":2048");
	fixture_say(f, 1, "EVENTS WAIT 0", "*3 $7 granted $1 a :2049");
}

TEST(only_a_blocked_lock_is_unblocked)
{
	fixture_say(f, 0, "LOCK a", ":1024");
	fixture_say(f, 2, "ENQUEUE a", "+QUEUED");
	fixture_say(f, 0, "CLIENT UNBLOCK 3", ":0");
	fixture_say(f, 0, "LOCK b", ":2048");
	fixture_say(f, 2, "LOCK b", "");
	fixture_say(f, 0, "CLIENT UNBLOCK 3", ":1");
	fixture_expect(f, 2, "_");
	fixture_say(f, 0, "UNLOCK a", ":0");
	fixture_expect_push(f, 2, ">3 $7 granted $1 a :1025");
}

TEST(the_end_of_a_client_ends_all_its_waits)
{
	fixture_say(f, 0, "LOCK a", ":1024");
	fixture_say(f, 0, "LOCK b", ":2048");
	fixture_say(f, 2, "ENQUEUE a", "+QUEUED");
	fixture_say(f, 2, "ENQUEUE b", "+QUEUED");
	fixture_say(f, 2, "RESET", "+RESET");
	fixture_say(f, 3, "ENQUEUE a", "+QUEUED");
	fixture_say(f, 3, "LOCK b", "");
	fixture_simple(f, EVENT_CLIENT_GONE, 3);
	fixture_say(f, 1, "ENQUEUE b", "+QUEUED");
	fixture_say(f, 1, "QUIT", "+OK");
	fixture_say(f, 0, "QUEUE a", "*0");
	fixture_say(f, 0, "QUEUE b", "*0");
	fixture_say(f, 0, "UNLOCK a", ":0");
	fixture_say(f, 0, "UNLOCK b", ":0");
	fixture_say(f, 0, "LOCKS", "*0");
	fixture_expect_push(f, 2, "");
	fixture_connect(f, 3);
}

TEST(a_half_closed_client_waits_no_longer)
{
	fixture_say(f, 0, "LOCK a", ":1024");
	fixture_say(f, 1, "ENQUEUE a", "+QUEUED");
	fixture_say(f, 1, "EVENTS", "");
	fixture_simple(f, EVENT_CLIENT_HALF_CLOSED, 1);
	fixture_expect(f, 1, "*2 $7 timeout $1 a");
	fixture_say(f, 1, "ENQUEUE a", "+QUEUED");
	fixture_say(f, 1, "EVENTS", "*2 $7 timeout $1 a");
	fixture_say(f, 1, "EVENTS", "*-1");
}

TEST(a_stop_fails_the_waits)
{
	fixture_say(f, 0, "LOCK a", ":1024");
	fixture_say(f, 0, "LOCK b", ":2048");
	fixture_say(f, 2, "ENQUEUE a", "+QUEUED");
	fixture_say(f, 2, "LOCK b", "");
	fixture_say(f, 1, "ENQUEUE b", "+QUEUED");
	fixture_simple(f, EVENT_STOP, 0);
	fixture_expect(f, 2, "-DRAINING the daemon is stopping");
	fixture_expect_push(f, 2, ">4 $6 failed $1 a $8 DRAINING $22 the daemon is stopping");
	fixture_say(f, 1, "EVENTS", "*4 $6 failed $1 b $8 DRAINING $22 the daemon is stopping");
	fixture_say(f, 2, "ENQUEUE c", "-DRAINING the daemon is stopping");
}

/* Each leaves an event that may not be read. */
TEST(who_enters_again_has_no_more_bytes_than_others)
{
	const struct account *a = f->broker->locks.conns[1]->account;
	bool refused = false;

	f->conf.limits.memory_bytes = 2000;
	f->conf.limits.events_per_client = 100;
	pools_configure(&f->broker->env);
	fixture_say(f, 1, "LOCK a", ":1024");
	for (int i = 0; i < 50 && !refused; i++) {
		bytes_clear(&f->replies[1]);
		fixture_ask(f, 1, "ENQUEUE a REENTER");
		refused = memmem(f->replies[1].data, f->replies[1].len, "-LIMIT user ", strlen("-LIMIT user "));
		assert_true(a->used[POOL_MEMORY] <= 2000);
	}
	assert_true(refused);
	bytes_clear(&f->replies[1]);
	fixture_say(f, 1, "LOCK a REENTER", ":1024");
}

TEST(one_connection_waits_for_many_up_to_its_limit)
{
	f->conf.limits.requests_per_client = 4;
	f->conf.limits.grants_per_client = 5;
	fixture_say(f, 0, "LOCK n0", ":1024");
	for (int i = 0; i < 4; i++) {
		fixture_say_begin(f, 0, fixture_words(f, "LOCK n%d", i + 1), ":");
		fixture_say(f, 2, fixture_words(f, "ENQUEUE n%d", i), "+QUEUED");
	}
	fixture_say(f, 2, "ENQUEUE n4",
		    "-LIMIT this client already waits for as many locks as one client may (limits.requests_per_client): n4");
	fixture_say(
		f, 2, "LOCK n4",
		"-LIMIT this client already waits for as many locks as one client may (limits.requests_per_client): n4");
	fixture_say(f, 0, "UNLOCK n0", ":0");
	fixture_expect_push(f, 2, ">3 $7 granted $2 n0 :1025");
	fixture_say(f, 2, "ENQUEUE n4", "+QUEUED");
	f->conf.limits.requests_per_client = 5;
	fixture_say(f, 2, "ENQUEUE n5",
		    "-LIMIT this client already holds or waits for as many locks as one client may (limits.grants_per_client): n5");
}

TEST(a_full_event_buffer_closes_the_connection)
{
	f->conf.limits.grants_per_client = 20;
	for (int i = 0; i < 8; i++) {
		fixture_say(f, 1, fixture_words(f, "ENQUEUE n%d", i), "+QUEUED");
	}
	assert_int_equal(f->closed[1], 0);
	fixture_say(f, 1, "ENQUEUE n8", "+QUEUED");
	assert_int_equal(f->closed[1], 1);
	fixture_say(f, 0, "LOCK n0 WAIT 0", ":10240");
}

/* What one lets go of is one event too many for the next: nobody waits for a further event to see that. */
TEST(closing_one_may_close_the_next)
{
	f->conf.limits.events_per_client = 1;
	fixture_say_begin(f, 3, "HELLO 2", "*");
	fixture_say(f, 2, "LOCK x", ":1024");
	for (uint32_t conn = 0; conn < 4; conn += conn == 1 ? 2 : 1) {
		fixture_say_begin(f, conn, fixture_words(f, "LOCK n%u", conn), ":");
		fixture_say(f, conn, "ENQUEUE x WAIT 10", "+QUEUED");
	}
	fixture_say(f, 0, "ENQUEUE y", "+QUEUED"); /* granted: one event, and the end of the other wait is one too many */
	fixture_say(f, 1, "ENQUEUE n0", "+QUEUED");
	fixture_say(f, 3, "ENQUEUE n1", "+QUEUED");
	f->now_ns += 20 * MS;
	fixture_event(f, &(struct event){ .type = EVENT_TIME });
	assert_int_equal(f->closed[0], 1);
	assert_int_equal(f->closed[1], 1);
	assert_int_equal(f->closed[3], 1);
	fixture_say_begin(f, 2, "LOCK n3 WAIT 0", ":");
}

/* To be closed for what it does not read, and gone before that was done. */
TEST(one_that_is_to_be_closed_may_be_gone_first)
{
	f->conf.limits.events_per_client = 1;
	fixture_say(f, 2, "LOCK a", ":1024");
	fixture_say(f, 2, "LOCK b", ":2048");
	fixture_say(f, 0, "ENQUEUE a WAIT 10", "+QUEUED");
	fixture_say(f, 0, "ENQUEUE b WAIT 10", "+QUEUED");
	f->now_ns += 20 * MS; /* both run out, and the second is one event too many */
	fixture_simple(f, EVENT_CLIENT_GONE, 0);
	assert_int_equal(f->closed[0], 0);
	fixture_connect(f, 0);
	fixture_say(f, 0, "PING", "+PONG");
	assert_int_equal(f->closed[0], 0);
}

/* Losses need no room of their own: they are bounded by the grants. */
TEST(events_keep_their_order)
{
	fixture_say(f, 0, "LOCK b", ":1024");
	fixture_say(f, 1, "ENQUEUE a LEASE 10", "+QUEUED");
	fixture_say(f, 1, "ENQUEUE b WAIT 20", "+QUEUED");
	fixture_pass(f, 20);
	fixture_say(f, 1, "EVENTS", "*3 $7 granted $1 a :2048");
	fixture_say(f, 1, "EVENTS", "*4 $4 lost $1 a :2048 $5 lease");
	fixture_say(f, 1, "EVENTS", "*2 $7 timeout $1 b");
	fixture_say(f, 1, "ENQUEUE b", "+QUEUED");
	fixture_say(f, 0, "UNLOCK b", ":0");
	fixture_resp3(f, 1);
	fixture_expect_push(f, 1, ">3 $7 granted $1 b :1025");
}

static int setup_zookeeper(void **state)
{
	fixture_setup(fixture_new(false), 1, state);
	fixture_resp3(*state, 0);
	return 0;
}

/* Cancelled between the create and its answer: the znode, made meanwhile, is deleted. */
TEST_IN(a_cancelled_wait_takes_its_claim_back, setup_zookeeper)
{
	fixture_say(f, 0, "ENQUEUE a", "+QUEUED");
	fixture_answer_get(f, 1, 0, LOCK_DATA);
	fixture_say(f, 0, "CANCEL a", ":1");
	fixture_serve_alone(f, "-__WRIT__", 0, 77, f->znode);
	fixture_serve(f, EFFECT_ZK_DELETE, f->znode, ZK_OK);
	fixture_no_op(f);
	fixture_expect_push(f, 0, "");
	fixture_say(f, 0, "LOCKS", "*0");
}

TEST_IN(errors_reach_a_queued_wait, setup_zookeeper)
{
	fixture_say(f, 0, "ENQUEUE a WAIT 0", "+QUEUED");
	fixture_answer_get(f, 1, 0, "1\nkind=semaphore\n");
	fixture_expect_push(f, 0, ">4 $6 failed $1 a $8 MISMATCH $132 that name's directory in ZooKeeper is of kind "
		    "\"semaphore\" and flavour \"\", not \"lock\" and \"rw\", until some minutes after its last use");
	fixture_simple(f, EVENT_ZK_SUSPENDED, 0);
	fixture_say(f, 0, "ENQUEUE b WAIT 0", "+QUEUED");
	fixture_expect_push(f, 0, ">4 $6 failed $1 b $11 UNAVAILABLE "
			    "$81 there is no connection to ZooKeeper, so it is not known whether the lock is taken");
}
