/* SPDX-License-Identifier: Apache-2.0 */
/* MLOCK and MUNLOCK: several locks, all or none. */
#include "core_test.h"

#include <stdio.h>

#include "protocol/limits.h"

enum { CLIENTS = 5, PEER = CLIENTS - 1 };

/* The last connection looks on; it speaks RESP2 as 0 and 1 do, 2 and 3 speak RESP3. */
static int setup(void **state)
{
	struct fixture *f = fixture_new(true);

	f->conf.limits.requests_per_lock = 20;
	fixture_setup(f, CLIENTS, state);
	for (uint32_t conn = 2; conn < 4; conn++)
		fixture_resp3(f, conn);
	return 0;
}

/* Whatever a test did, nothing of it is left when its clients are gone. */
static int teardown(void **state)
{
	struct fixture *f = *state;

	for (uint32_t conn = 0; conn < CLIENTS; conn++)
		if (!f->closed[conn])
			fixture_simple(f, EVENT_CLIENT_GONE, conn);
	assert_true(broker_quiet(f->broker));
	return fixture_teardown(state);
}

#undef TEST
#define TEST(name) TEST_OF(name, setup, teardown)

/* Nobody holds or waits for the locks, of which each has one letter. */
static void expect_free(struct fixture *f, const char *names)
{
	for (; *names; names++) {
		fixture_say(f, PEER, fixture_words(f, "HOLDERS %c", *names), "*0");
		fixture_say(f, PEER, fixture_words(f, "QUEUE %c", *names), "*0");
	}
}

static void expect_held(struct fixture *f, const char *names)
{
	for (; *names; names++)
		fixture_say(f, PEER, fixture_words(f, "LOCK %c WAIT 0", *names), "$-1");
}

TEST(all_that_are_free_are_granted_at_once)
{
	fixture_say(f, 0, "MLOCK 3 c a b", "*3 :3072 :1024 :2048");
	expect_held(f, "abc");
	fixture_say(f, 0, "MUNLOCK 3 a c b", "*3 :0 :0 :0");
	expect_free(f, "abc");
}

TEST(it_waits_for_one_and_holds_those_before_in_byte_order)
{
	fixture_say(f, 0, "LOCK b", ":1024");
	fixture_say(f, 1, "MLOCK 3 c b a", "");
	expect_held(f, "a");
	expect_free(f, "c");
	fixture_say_part(f, PEER, "CLIENT LIST", "cmd=mlock comm=test resp=2 held=1 waiting=b ");
	fixture_say(f, 0, "UNLOCK b", ":0");
	fixture_expect(f, 1, "*3 :3072 :1025 :2048");
}

TEST(opposite_orders_do_not_meet)
{
	fixture_say(f, 0, "LOCK a", ":1024");
	fixture_say(f, 1, "MLOCK 2 a b", "");
	fixture_say(f, 2, "MLOCK 2 b a", "");
	fixture_say(f, 0, "UNLOCK a", ":0");
	fixture_expect(f, 1, "*2 :1025 :2048");
	fixture_say(f, 1, "MUNLOCK 2 a b", "*2 :0 :0");
	fixture_expect(f, 2, "*2 :3072 :1026");
}

TEST(the_time_is_one_for_all)
{
	fixture_say(f, 0, "LOCK a", ":1024");
	fixture_say(f, 0, "LOCK b", ":2048");
	fixture_say(f, 1, "MLOCK 2 a b WAIT 1000", "");
	fixture_pass(f, 600);
	fixture_say(f, 0, "UNLOCK a", ":0");
	fixture_pass(f, 300);
	fixture_expect(f, 1, "");
	fixture_pass(f, 200);
	fixture_expect(f, 1, "*-1");
	expect_free(f, "a");
	fixture_say(f, 1, "MLOCK 2 a b WAIT 0", "*-1");
	expect_free(f, "a");
	fixture_say(f, 2, "MLOCK 2 a b WAIT 0", "_");
	fixture_say(f, 0, "UNLOCK b", ":0");
	fixture_say_begin(f, 2, "MLOCK 2 b a WAIT 0", "*2\r\n");
}

TEST(what_is_held_before_gets_one_level_more)
{
	fixture_say(f, 0, "LOCK b", ":1024");
	fixture_say(f, 0, "MLOCK 2 a b REENTER", "*2 :2048 :1024");
	fixture_say(f, 0, "MUNLOCK 2 a b", "*2 :0 :1");
	fixture_say(f, 1, "LOCK c", ":3072");
	fixture_say(f, 0, "MLOCK 2 b c WAIT 10 REENTER", "");
	fixture_pass(f, 20);
	fixture_expect(f, 0, "*-1");
	fixture_say(f, 0, "UNLOCK b", ":0");
}

/* At once, before anything is taken or waited for. */
TEST(what_is_held_before_forbids_all_unless_it_may_be_entered_again)
{
	static const char held[] = "-HELD this connection holds it already; say REENTER to enter it again, or use one "
				   "connection for each thread: b";

	fixture_say(f, 0, "LOCK b LEASE 100", ":1024");
	fixture_say(f, 0, "LOCK e LEASE 100", ":2048");
	fixture_say(f, 1, "LOCK c", ":3072");
	fixture_say(f, 0, "MLOCK 3 a b c", held);
	fixture_say(f, 0, "MLOCK 3 c b a WAIT 1000 SHARED", held);
	expect_free(f, "a");
	fixture_say(f, 1, "UNLOCK c", ":0");
	fixture_say(f, 0, "MLOCK 2 b c", held);
	expect_free(f, "c");
	fixture_say(f, 0, "UNLOCK b", ":0");
	/* A loss that was not told is told first, whatever the order of the names. */
	fixture_say(f, 0, "LOCK b", ":4096");
	fixture_pass(f, 100);
	fixture_say(f, 0, "MLOCK 3 a b e", "-LOST the lease of the grant ran out: e");
	fixture_say(f, 0, "MLOCK 3 a b e", held);
	expect_free(f, "a");
	fixture_say(f, 0, "MLOCK 3 a b e REENTER", "*3 :5120 :4096 :6144");
}

TEST(readers)
{
	fixture_say(f, 0, "MLOCK 2 a b SHARED", "*2 :1024 :2048");
	fixture_say(f, 1, "MLOCK 2 b a SHARED", "*2 :2048 :1024");
	fixture_say(f, 1, "MLOCK 2 b c REENTER",
		    "-DEADLOCK this client holds b shared and would wait for itself: release it first");
	expect_free(f, "c");
	/* What was held before stays, whichever it is that is refused. */
	fixture_say(f, 1, "LOCK d", ":3072");
	fixture_say(f, 1, "MLOCK 3 a c d REENTER",
		    "-DEADLOCK this client holds a shared and would wait for itself: release it first");
	fixture_say(f, 1, "UNLOCK d", ":0");
	fixture_say(f, 1, "MUNLOCK 2 a b", "*2 :0 :0");
}

TEST(the_leases_begin_when_all_is_there)
{
	fixture_say(f, 0, "LOCK b", ":1024");
	fixture_say(f, 2, "MLOCK 2 a b LEASE 100", "");
	fixture_pass(f, 300);
	expect_held(f, "a");
	fixture_say(f, 0, "UNLOCK b", ":0");
	fixture_expect(f, 2, "*2 :2048 :1025");
	fixture_say(f, 2, "VALID a", ":100");
	fixture_pass(f, 101);
	fixture_expect_push(f, 2, ">4 $4 lost $1 a :2048 $5 lease >4 $4 lost $1 b :1025 $5 lease");
	fixture_say(f, 2, "MUNLOCK 2 a b", "-LOST the grant was lost; nothing was released: a");
	fixture_say(f, 2, "UNLOCK a", "-NOTHELD this client does not hold a");
	fixture_say(f, 2, "UNLOCK b", "-LOST the lease of the grant ran out: b");
}

TEST(a_lease_of_before_that_ends_on_the_way_is_a_loss)
{
	fixture_say(f, 0, "LOCK c", ":1024");
	fixture_say(f, 2, "LOCK b LEASE 100", ":2048");
	fixture_say(f, 2, "MLOCK 3 a b c REENTER", "");
	fixture_pass(f, 150);
	fixture_expect_push(f, 2, ">4 $4 lost $1 b :2048 $5 lease");
	fixture_expect(f, 2, "-LOST the lease of the grant ran out: b");
	expect_free(f, "ab");
	fixture_say(f, 2, "MLOCK 2 a b", "*2 :4096 :5120");
}

/* By force, here: it takes the one it had, and the client is told nothing of it. */
TEST(a_loss_on_the_way_begins_again)
{
	fixture_say(f, 0, "LOCK c", ":1024");
	fixture_say(f, 2, "MLOCK 3 a b c WAIT 1000", "");
	fixture_say(f, 3, "ENQUEUE a", "+QUEUED");
	fixture_pass(f, 300);
	fixture_say(f, PEER, "FORCEUNLOCK a", ":1");
	/* It is behind the other now, and holds nothing. */
	fixture_expect_push(f, 3, ">3 $7 granted $1 a :2049");
	fixture_expect_push(f, 2, "");
	expect_free(f, "b");
	fixture_say(f, 3, "UNLOCK a", ":0");
	fixture_say(f, 0, "UNLOCK c", ":0");
	fixture_expect(f, 2, "*3 :2050 :4096 :1025");
}

TEST(a_loss_on_the_way_does_not_move_the_deadline)
{
	fixture_say(f, 0, "LOCK c", ":1024");
	fixture_say(f, 2, "MLOCK 2 a c WAIT 1000", "");
	fixture_pass(f, 900);
	fixture_say(f, PEER, "FORCEUNLOCK a", ":1");
	fixture_pass(f, 90);
	fixture_expect(f, 2, "");
	fixture_pass(f, 20);
	fixture_expect(f, 2, "_");
	expect_free(f, "a");
}

/* The last one is granted in the event in which another is lost. */
TEST(a_loss_and_the_last_grant_at_once)
{
	fixture_say(f, 0, "LOCK c LEASE 500", ":1024");
	fixture_say(f, 2, "LOCK b LEASE 500", ":2048");
	fixture_say(f, 2, "MLOCK 3 a b c REENTER", "");
	fixture_pass(f, 500);
	fixture_expect(f, 2, "-LOST the lease of the grant ran out: b");
	expect_free(f, "ac");
}

TEST(an_error_lets_go_of_what_was_taken)
{
	fixture_say(f, 0, "LOCK f", ":1024");
	fixture_say(f, 1, "LOCK c", ":2048");
	fixture_say(f, 1, "LOCK d", ":3072");
	fixture_say(f, 1, "LOCK e", ":4096");
	/* Five for each client, here. */
	fixture_say(f, 1, "MLOCK 3 a b f",
		    "-LIMIT this client already holds or waits for as many locks as one client may (limits.grants_per_client): f");
	expect_free(f, "ab");
	fixture_say(f, 0, "LOCK d", "");
	fixture_say(f, 1, "MLOCK 2 a f",
		    "-DEADLOCK this client waits for \"f\" held by test (pid 100), which waits for \"d\" held by this client: "
		    "release one of them first");
	expect_free(f, "a");
	fixture_say(f, 1, "UNLOCK d", ":0");
	fixture_expect(f, 0, ":3073");
	fixture_say(f, 1, "MLOCK 2 a f", "");
	fixture_simple(f, EVENT_STOP, 0);
	fixture_expect(f, 1, "-DRAINING the daemon is stopping");
	expect_free(f, "a");
}

TEST(whoever_ends_it_leaves_nothing)
{
	fixture_say(f, 0, "LOCK c", ":1024");
	fixture_say(f, 1, "MLOCK 3 a b c", "");
	fixture_say(f, PEER, "CLIENT UNBLOCK 2", ":1");
	fixture_expect(f, 1, "*-1");
	expect_free(f, "a");
	fixture_say(f, 1, "MLOCK 3 a b c", "");
	fixture_simple(f, EVENT_CLIENT_HALF_CLOSED, 1);
	fixture_expect(f, 1, "*-1");
	expect_free(f, "b");
	fixture_say(f, 2, "MLOCK 3 a b c", "");
	fixture_simple(f, EVENT_CLIENT_GONE, 2);
	f->closed[2] = 1;
	expect_free(f, "ab");
	fixture_say(f, 0, "RESET", "+RESET");
	fixture_say(f, 0, "MLOCK 2 a b", "*2 :8192 :9216");
	fixture_say(f, 0, "RESET", "+RESET");
	expect_free(f, "a");
}

TEST(what_it_queued_for_is_no_part)
{
	fixture_say(f, 0, "LOCK b", ":1024");
	fixture_say(f, 2, "ENQUEUE b", "+QUEUED");
	fixture_say(f, 2, "MLOCK 2 a b",
		    "-ERR this client already waits for it, and CANCEL withdraws its ENQUEUE: b");
	expect_free(f, "a");
}

/* At once, and not when it comes to that one. */
TEST(a_semaphore_is_no_part)
{
	fixture_say(f, 0, "LOCK a", ":1024");
	fixture_say(f, 1, "ACQUIRE s LIMIT 1", ":1");
	fixture_say(f, 1, "MLOCK 2 a s", "-MISMATCH this name is in use as a semaphore, not as a lock: s");
	fixture_say(f, 1, "RELEASE s", ":0");
}

TEST(words)
{
	static const char number[] = "-ERR wrong number of names in 'mlock' command; Take several locks, all or none: "
				     "MLOCK n name ... [SHARED] [WAIT ms] [LEASE ms] [REENTER]";
	static const char order[] = "-ERR syntax error in 'mlock' command; Take several locks, all or none: "
				    "MLOCK n name ... [SHARED] [WAIT ms] [LEASE ms] [REENTER]";

	fixture_say(f, 0, "MLOCK 0 a", number);
	fixture_say(f, 0, "MLOCK x a", number);
	fixture_say(f, 0, "MLOCK 2 a", number);
	fixture_say(f, 0, "MLOCK 1 a b", order);
	fixture_say(f, 0, "MLOCK 1 a DATA x", order);
	fixture_say(f, 0, "MLOCK 2 a a", "-ERR a name is given twice: a");
	fixture_say(f, 0, "MLOCK 2 a ..",
		    "-BADNAME a lock name is 1..512 bytes of UTF-8 without control characters, not . or ..: \"..\"");
	fixture_say(f, 0, "MUNLOCK 2 a b", "-NOTHELD this client does not hold it; nothing was released: a");
	fixture_say(f, 0, "LOCK a", ":1024");
	fixture_say(f, 0, "MUNLOCK 2 a b", "-NOTHELD this client does not hold it; nothing was released: b");
	fixture_say(f, 0, "MUNLOCK 1 a", "*1 :0");
}

TEST(as_many_names_as_may_be)
{
	char all[512], *at;

	f->conf.limits.grants_per_client = f->conf.limits.grants = 150;
	for (int count = LIMIT_NAMES_MAX; count <= LIMIT_NAMES_MAX + 1; count++) {
		at = all + sprintf(all, "MLOCK %d", count);
		for (int i = 0; i < count; i++)
			at += sprintf(at, " n%d", i);
		fixture_say_begin(f, 0, all, count > LIMIT_NAMES_MAX ? "-ERR" : "*64\r");
	}
}
