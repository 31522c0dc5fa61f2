/* SPDX-License-Identifier: Apache-2.0 */
/* Tier 1, in standalone mode: requests, grants, waits, losses of clients, limits. */
#include "core_test.h"

#include <stdio.h>
#include <string.h>

SETUP(setup, true, 4)

/* Standalone claims are numbered from 1; the token is number << 10 | hand-offs. */
TEST(grants_are_fifo_with_growing_tokens)
{
	fixture_say(f, 0, "LOCK a", ":1024");
	fixture_say(f, 1, "LOCK a", "");
	fixture_say(f, 2, "LOCK a", "");
	fixture_say(f, 0, "UNLOCK a", ":0");
	fixture_expect(f, 1, ":1025");
	fixture_expect(f, 2, "");
	fixture_say(f, 1, "UNLOCK a TOKEN 1025", ":0");
	fixture_expect(f, 2, ":1026");
	fixture_say(f, 2, "UNLOCK a", ":0");
	fixture_say(f, 3, "LOCK a", ":2048");
}

TEST(reentry_keeps_the_token_and_counts_levels)
{
	fixture_say(f, 0, "LOCK a", ":1024");
	fixture_say(f, 0, "LOCK a WAIT 0 REENTER", ":1024");
	fixture_say(f, 0, "UNLOCK a", ":1");
	fixture_say(f, 1, "LOCK a WAIT 0", "$-1");
	fixture_say(f, 0, "UNLOCK a", ":0");
	fixture_say(f, 0, "UNLOCK a", "-NOTHELD this client does not hold a");
}

/* Clients of Redis share a connection among threads: nothing is granted because it is the same connection. */
TEST(what_the_connection_holds_is_not_granted_unasked)
{
	static const char held[] = "-HELD this connection holds it already; say REENTER to enter it again, or use one "
				   "connection for each thread: a";

	fixture_say(f, 0, "LOCK a LEASE 100", ":1024");
	fixture_say(f, 0, "LOCK a", held);
	fixture_say(f, 0, "LOCK a WAIT 0", held);
	fixture_say(f, 0, "LOCK a SHARED WAIT 10 LEASE 900 DATA x", held);
	fixture_say(f, 0, "ENQUEUE a", held);
	/* Nothing was changed by that. */
	fixture_say(f, 0, "VALID a", ":100");
	fixture_say(f, 0, "CANCEL a", ":0");
	fixture_say(f, 1, "LOCK a REENTER WAIT 0", "$-1");
	fixture_say(f, 0, "UNLOCK a", ":0");
	fixture_say(f, 1, "LOCK a", ":2048");
	/* Two threads that share a connection, one after the other: what comes back to the second is no grant. */
	fixture_say(f, 2, "LOCK a", "");
	fixture_say(f, 1, "UNLOCK a", ":0");
	fixture_expect(f, 2, ":2049");
	fixture_say(f, 2, "LOCK a", held);
}

TEST(a_loss_is_told_before_that_it_is_held)
{
	fixture_say(f, 0, "LOCK a LEASE 100", ":1024");
	fixture_say(f, 0, "LOCK b LEASE 100", ":2048");
	fixture_say(f, 0, "LOCK c LEASE 100", ":3072");
	fixture_pass(f, 100);
	fixture_say(f, 0, "LOCK a", "-LOST the lease of the grant ran out: a");
	fixture_say(f, 0, "LOCK b REENTER", "-LOST the lease of the grant ran out: b");
	fixture_say(f, 0, "ENQUEUE c", "-LOST the lease of the grant ran out: c");
	fixture_say(f, 0, "LOCK a REENTER", ":4096");
	fixture_say(f, 0, "LOCK a", "-HELD this connection holds it already; say REENTER to enter it again, or use one "
		    "connection for each thread: a");
}

TEST(a_wrong_token_releases_nothing)
{
	fixture_say(f, 0, "LOCK a", ":1024");
	fixture_say(f, 0, "UNLOCK a TOKEN 5", "-LOST that token belongs to another grant; nothing was released: a");
	fixture_say(f, 0, "VALID a TOKEN 5", ":0");
	fixture_say(f, 0, "VALID a TOKEN 1024", ":9223372036854");
	fixture_say(f, 1, "VALID a", ":0");
	fixture_say(f, 0, "UNLOCK a TOKEN 1024", ":0");
}

TEST(a_lazy_answer_may_wait_and_no_other)
{
	fixture_say(f, 0, "LOCK a", ":1024");
	fixture_say(f, 1, "LOCK a", "");
	assert_false(f->lazy[0]);
	fixture_say(f, 0, "UNLOCK a LAZY", ":0");
	assert_true(f->lazy[0]);
	fixture_expect(f, 1, ":1025");
	assert_false(f->lazy[1]);
	fixture_say(f, 0, "UNLOCK a LAZY TOKEN 7", "-NOTHELD this client does not hold a");
	assert_true(f->lazy[0]);
	fixture_say(f, 0, "UNLOCK a LAZY LAZY",
		    "-ERR syntax error in 'unlock' command; Release one level of a lock: UNLOCK name [TOKEN t] [LAZY]");
	assert_false(f->lazy[0]);
	fixture_say(f, 1, "UNLOCK a", ":0");
	assert_false(f->lazy[1]);
}

TEST(a_wait_ends_with_nil_and_leaves_nothing)
{
	fixture_say(f, 0, "LOCK a", ":1024");
	fixture_say(f, 1, "LOCK a WAIT 100", "");
	fixture_pass(f, 99);
	fixture_expect(f, 1, "");
	fixture_pass(f, 1);
	fixture_expect(f, 1, "$-1");
	fixture_say(f, 0, "UNLOCK a", ":0");
	fixture_expect(f, 1, "");
	fixture_say(f, 2, "LOCK a", ":2048");
}

TEST(a_lost_client_releases_what_it_held_and_waited_for)
{
	fixture_say(f, 0, "LOCK a", ":1024");
	fixture_say(f, 0, "LOCK b", ":2048");
	fixture_say(f, 1, "LOCK a", "");
	fixture_say(f, 2, "LOCK a", "");
	fixture_say(f, 3, "LOCK b", "");
	fixture_simple(f, EVENT_CLIENT_GONE, 1);
	fixture_simple(f, EVENT_CLIENT_GONE, 0);
	fixture_expect(f, 2, ":1025");
	fixture_expect(f, 3, ":2049");
	fixture_connect(f, 0);
	fixture_say(f, 0, "LOCK a WAIT 0", "$-1");
}

TEST(a_half_closed_client_does_not_wait)
{
	fixture_say(f, 0, "LOCK a", ":1024");
	fixture_say(f, 1, "LOCK a", "");
	fixture_simple(f, EVENT_CLIENT_HALF_CLOSED, 1);
	fixture_expect(f, 1, "$-1");
	fixture_say(f, 1, "LOCK a", "$-1");
	fixture_say(f, 1, "LOCK b", ":2048");
}

TEST(reset_releases_and_forgets)
{
	fixture_say(f, 0, "HELLO 3 SETNAME worker",
		    "%10 $6 server $10 lockbroker $7 version $4 test $5 proto :3 $2 id :1 $4 mode $10 standalone $4 role $6 master "
		    "$7 modules *0 $10 delegation :0 $12 session_page $9 /run/page $15 session_page_id $4 0123");
	fixture_say(f, 0, "CLIENT GETNAME", "$6 worker");
	/* 64 bytes, and one more. */
	fixture_say(f, 0, "CLIENT SETNAME 0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef", "+OK");
	fixture_say(f, 0, "CLIENT SETNAME 0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdefX",
		    "-ERR a name or an owner has at most 64 printable ASCII characters and no spaces");
	fixture_say(f, 0, "CLIENT GETNAME", "$64 0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef");
	fixture_say(f, 0, "LOCK a", ":1024");
	fixture_say(f, 1, "LOCK a", "");
	fixture_say(f, 0, "RESET", "+RESET");
	fixture_expect(f, 1, ":1025");
	fixture_say(f, 0, "CLIENT GETNAME", "$-1");
	fixture_say(f, 0, "LOCK a WAIT 0", "$-1");
}

TEST(unblock_ends_a_wait)
{
	fixture_say(f, 0, "LOCK a", ":1024");
	fixture_say(f, 1, "LOCK a", "");
	fixture_say(f, 2, "EVENTS", "");
	fixture_say(f, 0, "CLIENT UNBLOCK 2", ":1");
	fixture_expect(f, 1, "$-1");
	fixture_say(f, 0, "CLIENT UNBLOCK 3", ":1");
	fixture_expect(f, 2, "*-1");
	fixture_say(f, 0, "CLIENT UNBLOCK 3", ":0");
	fixture_say(f, 0, "CLIENT UNBLOCK 99", ":0");
}

/* Root is not, unless it comes through their socket; whoever does is one. */
TEST(waits_of_others_are_ended_by_operators_only)
{
	fixture_operators(f, false);
	fixture_connect_as(f, 4, 1002, (struct slice){ 0 }, false);
	fixture_connect_as(f, 5, 0, (struct slice){ 0 }, false);
	fixture_connect_as(f, 6, 1002, (struct slice){ 0 }, true);
	fixture_say(f, 0, "LOCK a", ":1024");
	fixture_say(f, 1, "LOCK a", "");
	fixture_say(f, 4, "CLIENT UNBLOCK 2", "-DENIED only operators may end a wait of another user" DENIED_HOW);
	fixture_say(f, 5, "CLIENT UNBLOCK 2", "-DENIED only operators may end a wait of another user" DENIED_HOW);
	fixture_expect(f, 1, "");
	fixture_say(f, 6, "CLIENT UNBLOCK 2", ":1");
	fixture_expect(f, 1, "$-1");
}

TEST(names_and_words_are_checked)
{
	fixture_say(f, 0, "LOCK .",
		    "-BADNAME a lock name is 1..512 bytes of UTF-8 without control characters, not . or ..: \".\"");
	fixture_say(f, 0, "LOCK a WAIT -1", "-ERR WAIT takes milliseconds, 0..31536000000");
	fixture_say(f, 0, "LOCK a WAIT 31536000001", "-ERR WAIT takes milliseconds, 0..31536000000");
	fixture_say(f, 0, "LOCK a WAIT", "-ERR syntax error in 'lock' command; Take a lock: "
		    "LOCK name [SHARED] [WAIT ms] [LEASE ms] [DATA text] [REENTER] [SLOT n] [FRESH]");
	fixture_say(f, 0, "LOCK", "-ERR wrong number of arguments for 'lock' command; Take a lock: "
		    "LOCK name [SHARED] [WAIT ms] [LEASE ms] [DATA text] [REENTER] [SLOT n] [FRESH]");
	fixture_say(f, 0, "NOPE", "-ERR unknown command 'NOPE'");
	fixture_say(f, 0, "SELECT 1", "-ERR there is only database 0: take the number of another one from the URL");
	fixture_say(f, 0, "HELLO 4", "-NOPROTO unsupported protocol version: this server speaks 2 and 3");
	fixture_say(f, 0, "lock a wait 31536000000", ":1024");
}

TEST(what_is_not_understood_is_an_error)
{
	static const char section[] = "-ERR unknown section 'nope' in 'info' command; INFO alone shows all there are";
	static const char *const stray[] = {
		"CLIENT LIST x", "CLIENT ID x", "CLIENT GETNAME x", "CLIENT UNBLOCK 1 x", "CLIENT SETNAME a b",
		"CLIENT NO-EVICT ON x",
		"CLIENT SETINFO LIB-NAME a b", "COMMAND COUNT x", "COMMAND x", "HELLO 3 x", "HELLO 3 SETNAME", "LOCK a x", "RESET x",
		"QUIT x", "HOSTS x", "AUDIT x", "EVENTS x", "UNLOCK a x", "MUNLOCK 1 a x", "RELEASE a x", "LIMIT a 1 x", "SELECT 1",
	};

	fixture_say(f, 0, "INFO nope", section);
	fixture_say(f, 0, "INFO server nope stats", section);
	for (size_t i = 0; i < sizeof(stray) / sizeof(stray[0]); i++)
		fixture_say_begin(f, 0, stray[i], "-ERR ");
	fixture_say_begin(f, 0, "info SERVER all everything default", "$");
}

/* Under a sanitizer this also shows that nothing behind the table is read. */
TEST(a_command_that_there_is_not_is_told_to_be_none)
{
	fixture_say(f, 0, "COMMAND INFO nope nope", "*2 *-1 *-1");
	fixture_say(f, 0, "COMMAND DOCS nope", "*0");
}

/* The first bytes of what is no name, whatever they are. */
TEST(a_refusal_names_what_it_refuses)
{
	char words[700] = "LOCK ", reply[256];

	fixture_say(f, 0, "LOCK a\x01\"",
		    "-BADNAME a lock name is 1..512 bytes of UTF-8 without control characters, not . or ..: \"a\\x01\\\"\"");
	memset(words + 5, 'x', 513);
	snprintf(reply, sizeof(reply), "-BADNAME a lock name is 1..512 bytes of UTF-8 without control characters, not . or ..: "
		 "\"%.64s\"...", words + 5);
	fixture_say(f, 0, words, reply);
	fixture_say(f, 0, "MUNLOCK 2 b a", "-NOTHELD this client does not hold it; nothing was released: b");
	fixture_say(f, 0, "DOWNGRADE b", "-NOTHELD this client does not hold b");
}

TEST(limits_hold_at_and_one_past)
{
	char words[32] = "LOCK 0";

	for (int i = 0; i < 5; i++, words[5]++)
		fixture_say_begin(f, 0, words, ":");
	fixture_say(
		f, 0, words,
		"-LIMIT this client already holds or waits for as many locks as one client may (limits.grants_per_client): 5");
	fixture_say(f, 0, "UNLOCK 0", ":0");
	fixture_say_begin(f, 0, words, ":");
	for (uint32_t conn = 10; conn < 20; conn++) {
		fixture_connect(f, conn);
		fixture_say(f, conn, "LOCK 1", "");
	}
	fixture_connect(f, 20);
	fixture_say(f, 20, "LOCK 1",
		    "-LIMIT as many clients as one lock may have already wait for it (limits.requests_per_lock): 1");
	fixture_say(f, 20, "LOCK z WAIT 0", ":7168");
}

TEST(waiting_counts_against_what_a_user_may_hold)
{
	f->conf.limits.grants = 2;
	fixture_say(f, 0, "LOCK a", ":1024");
	fixture_say(f, 1, "LOCK a", "");
	fixture_say(f, 2, "LOCK b",
		    "-LIMIT user 1000 uses 2 of 2 allowed locks held or waited for (limits.grants, limits.user_share): "
		    "release some before you ask for more: b");
	fixture_simple(f, EVENT_CLIENT_GONE, 1);
	fixture_say(f, 2, "LOCK b", ":2048");
}

TEST(a_connection_that_is_being_closed_holds_nothing)
{
	fixture_say(f, 0, "LOCK a", ":1024");
	fixture_say(f, 1, "LOCK a", "");
	fixture_say(f, 0, "QUIT", "+OK");
	fixture_expect(f, 1, ":1025");
	assert_int_equal(f->closed[0], 1);
}

TEST(a_stop_ends_waits_and_asks_holders)
{
	fixture_resp3(f, 0);
	fixture_say(f, 0, "LOCK a", ":1024");
	fixture_say(f, 1, "LOCK b", ":2048");
	fixture_say(f, 2, "LOCK a", "");
	fixture_simple(f, EVENT_STOP, 0);
	fixture_expect(f, 2, "-DRAINING the daemon is stopping");
	fixture_expect_push(f, 0, ">4 $6 revoke $1 a :1024 $8 stopping");
	fixture_say(f, 1, "EVENTS", "*4 $6 revoke $1 b :2048 $8 stopping");
	fixture_say(f, 3, "LOCK c", "-DRAINING the daemon is stopping");
	assert_int_equal(f->stopped, 0);
	fixture_say(f, 0, "UNLOCK a", ":0");
	assert_int_equal(f->stopped, 0);
	fixture_say(f, 1, "UNLOCK b", ":0");
	assert_int_equal(f->stopped, 2);
}

/* One that holds more than it may have events is told of some, and keeps what it holds. */
TEST(a_stop_closes_no_holder_that_does_not_read)
{
	f->conf.limits.events_per_client = 3;
	fixture_say(f, 0, "MLOCK 4 a b c d", "*4 :1024 :2048 :3072 :4096");
	fixture_simple(f, EVENT_STOP, 0);
	assert_int_equal(f->closed[0], 0);
	fixture_say(f, 0, "EVENTS", "*4 $6 revoke $1 a :1024 $8 stopping");
	fixture_say(f, 0, "MUNLOCK 4 a b c d", "*4 :0 :0 :0 :0");
	assert_int_equal(f->stopped, 2);
}

TEST(a_stop_does_not_wait_for_ever)
{
	fixture_say(f, 0, "LOCK a", ":1024");
	fixture_simple(f, EVENT_STOP, 0);
	fixture_pass(f, 4999);
	assert_int_equal(f->stopped, 0);
	fixture_pass(f, 1);
	assert_int_equal(f->stopped, 1);
}

TEST(holders_and_queue_are_shown)
{
	fixture_say(f, 0, "LOCK a", ":1024");
	fixture_say(f, 1, "LOCK a", "");
	fixture_pass(f, 20);
	fixture_say(f, 2, "HOLDERS a", "*1 *28 $4 host $5 alpha $6 client :1 $4 name $0  $3 pid :100 $3 uid :1000 "
		    "$7 command $4 test $4 mode $9 exclusive $5 depth :1 $5 token :1024 $7 held_ms :20 $6 age_ms :0 "
		    "$5 znode $0  $8 lease_ms $-1 $4 data $0");
	fixture_say(f, 2, "QUEUE a", "*1 *20 $4 host $5 alpha $6 client :2 $4 name $0  $3 pid :101 $3 uid :1000 "
		    "$7 command $4 test $4 mode $9 exclusive $9 waited_ms :20 $8 position :1 $5 znode $0");
	fixture_say(f, 2, "LOCKS a*",
		    "*1 *12 $4 name $1 a $5 state $5 local $7 holders :1 $7 waiters :1 $5 token :1024 $9 delegated :0");
	fixture_say(f, 2, "LOCKS b*", "*0");
	fixture_say(f, 2, "HOLDERS b", "*0");
}

TEST_WITH(tokens_are_used_only_once_reserved, NULL, NULL)
{
	struct fixture *f = fixture_new(true);

	f->broker = broker_new(&f->conf, 1, f->now_ns);
	fixture_event(f, &(struct event){ .type = EVENT_TOKENS, .tokens.limit = 5000 });
	fixture_simple(f, EVENT_TIME, 0);
	assert_true(f->tokens > 5000);
	fixture_connect(f, 0);
	fixture_say(f, 0, "LOCK a", "");
	fixture_event(f, &(struct event){ .type = EVENT_TOKENS, .tokens.limit = f->tokens });
	fixture_expect(f, 0, ":5120000");
	fixture_free(f);
}
