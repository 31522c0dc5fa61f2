/* SPDX-License-Identifier: Apache-2.0 */
/* Leases and the words that ask for them, in standalone mode and under a session. */
#include "core_test.h"

#include <stdlib.h>

static int setup(void **state)
{
	struct fixture *f = fixture_new(true);

	fixture_setup(f, 4, state);
	fixture_resp3(f, 3);
	return 0;
}

TEST(a_lease_ends_by_itself_and_the_next_token_is_larger)
{
	fixture_say(f, 3, "LOCK a LEASE 100", ":1024");
	fixture_say(f, 1, "LOCK a", "");
	fixture_pass(f, 99);
	fixture_say(f, 3, "VALID a", ":1");
	fixture_expect(f, 1, "");
	fixture_pass(f, 1);
	fixture_expect_push(f, 3, ">4 $4 lost $1 a :1024 $5 lease");
	fixture_expect(f, 1, ":1025");
	fixture_say(f, 3, "VALID a", ":0");
	fixture_say(f, 3, "UNLOCK a", "-LOST the lease of the grant ran out: a");
	fixture_say(f, 3, "UNLOCK a", "-NOTHELD this client does not hold a");
}

TEST(the_end_of_a_lease_is_told_by_lock_renew_and_events)
{
	fixture_say(f, 0, "LOCK a LEASE 10", ":1024");
	fixture_say(f, 0, "LOCK b LEASE 10", ":2048");
	fixture_say(f, 0, "LOCK c LEASE 10", ":3072");
	fixture_pass(f, 10);
	fixture_say(f, 0, "LOCK a", "-LOST the lease of the grant ran out: a");
	fixture_say(f, 0, "LOCK a", ":4096");
	fixture_say(f, 0, "RENEW b 10", "-LOST the lease of the grant ran out: b");
	fixture_say(f, 0, "RENEW b 10", "-NOTHELD this client does not hold b");
	fixture_say(f, 0, "EVENTS WAIT 0", "*4 $4 lost $1 c :3072 $5 lease");
	fixture_say(f, 0, "EVENTS WAIT 0", "*-1");
	fixture_say(f, 0, "UNLOCK c", "-NOTHELD this client does not hold c");
}

TEST(re_entry_takes_the_later_end)
{
	fixture_say(f, 0, "LOCK a LEASE 100", ":1024");
	fixture_say(f, 0, "LOCK a LEASE 10 REENTER", ":1024");
	fixture_say(f, 0, "VALID a", ":100");
	fixture_say(f, 0, "LOCK a REENTER LEASE 200", ":1024");
	fixture_say(f, 0, "VALID a", ":200");
	fixture_pass(f, 150);
	fixture_say(f, 0, "UNLOCK a", ":2");
	fixture_say(f, 0, "VALID a", ":50");
	fixture_pass(f, 50);
	fixture_say(f, 0, "EVENTS WAIT 0", "*4 $4 lost $1 a :1024 $5 lease");
}

TEST(no_lease_is_later_than_any)
{
	fixture_say(f, 0, "LOCK a LEASE 100", ":1024");
	fixture_say(f, 0, "LOCK a REENTER", ":1024");
	fixture_say(f, 0, "VALID a", ":9223372036854");
	fixture_say(f, 0, "LOCK a LEASE 100 REENTER", ":1024");
	fixture_pass(f, 1000);
	fixture_say(f, 0, "VALID a", ":9223372036854");
}

TEST(renew_sets_the_end_anew_earlier_or_later)
{
	fixture_say(f, 0, "LOCK a LEASE 100", ":1024");
	fixture_pass(f, 60);
	fixture_say(f, 0, "RENEW a 100", ":1");
	fixture_pass(f, 60);
	fixture_say(f, 0, "VALID a", ":40");
	fixture_say(f, 0, "RENEW a 5 TOKEN 1024", ":1");
	fixture_say(f, 0, "VALID a", ":5");
	fixture_say(f, 0, "RENEW a 50 TOKEN 7", "-LOST that token belongs to another grant; nothing was renewed: a");
	fixture_pass(f, 5);
	fixture_say(f, 0, "VALID a", ":0");
	fixture_say(f, 1, "LOCK b", ":2048");
	fixture_say(f, 1, "RENEW b 30", ":1");
	fixture_pass(f, 30);
	fixture_say(f, 1, "UNLOCK b", "-LOST the lease of the grant ran out: b");
}

TEST(a_lease_counts_from_the_grant)
{
	fixture_say(f, 0, "LOCK a", ":1024");
	fixture_say(f, 1, "LOCK a LEASE 100", "");
	fixture_pass(f, 500);
	fixture_say(f, 0, "UNLOCK a", ":0");
	fixture_expect(f, 1, ":1025");
	fixture_say(f, 1, "VALID a", ":100");
	fixture_say(f, 1, "UNLOCK a", ":0");
	fixture_pass(f, 200);
	fixture_say(f, 1, "EVENTS WAIT 0", "*-1");
}

/* A daemon that was stopped learns first that it is too late: the UNLOCK finds the lock lost, and passed on. */
TEST(deadlines_come_before_the_event)
{
	fixture_say(f, 0, "LOCK a LEASE 100", ":1024");
	fixture_say(f, 1, "LOCK a", "");
	f->now_ns += 5000 * MS;
	fixture_say(f, 0, "UNLOCK a", "-LOST the lease of the grant ran out: a");
	fixture_expect(f, 1, ":1025");
}

TEST(words_stand_in_any_order_and_once)
{
	static const char syntax[] = "-ERR syntax error in 'lock' command; Take a lock: "
				     "LOCK name [SHARED] [WAIT ms] [LEASE ms] [DATA text] [REENTER] [SLOT n] [FRESH]";

	fixture_say(f, 0, "LOCK a DATA x LEASE 100 WAIT 0", ":1024");
	fixture_say(f, 0, "lock a lease 100 reenter data y", ":1024");
	fixture_say(f, 0, "LOCK a WAIT 1 WAIT 1", syntax);
	fixture_say(f, 0, "LOCK a LEASE", syntax);
	fixture_say(f, 0, "LOCK a REENTER REENTER", syntax);
	fixture_say(f, 0, "LOCK a TOKEN 5", syntax);
	fixture_say(f, 0, "LOCK a LEASE 0", "-ERR LEASE takes milliseconds, 1..31536000000");
	fixture_say(f, 0, "LOCK a LEASE 31536000001", "-ERR LEASE takes milliseconds, 1..31536000000");
	fixture_say(f, 0, "RENEW a 0", "-ERR RENEW takes milliseconds, 1..31536000000");
	fixture_say(f, 0, "RENEW a 31536000001", "-ERR RENEW takes milliseconds, 1..31536000000");
	fixture_say(f, 0, "RENEW a 31536000000", ":1");
	fixture_say(f, 0, "VALID a", ":31536000000");
}

TEST(data_are_shown_and_bounded)
{
	char words[600] = "LOCK b DATA ";

	fixture_say(f, 0, "LOCK a LEASE 100 DATA 10.0.0.1:80", ":1024");
	fixture_pass(f, 40);
	fixture_say(f, 1, "HOLDERS a", "*1 *28 $4 host $5 alpha $6 client :1 $4 name $0  $3 pid :100 $3 uid :1000 "
		    "$7 command $4 test $4 mode $9 exclusive $5 depth :1 $5 token :1024 $7 held_ms :40 "
		    "$6 age_ms :0 $5 znode $0  $8 lease_ms :60 $4 data $11 10.0.0.1:80");
	fixture_say(f, 0, "LOCK a DATA new REENTER", ":1024");
	fixture_say(f, 0, "LOCK a REENTER", ":1024");
	fixture_say_part(f, 1, "HOLDERS a", "$3\r\nnew\r\n");
	memset(words + 12, 'x', 513);
	fixture_say(f, 0, words, "-ERR DATA takes 1..512 bytes of UTF-8 without control characters");
	words[12 + 512] = '\0';
	fixture_say(f, 0, words, ":2048");
	fixture_say(f, 0, "LOCK c DATA \x01", "-ERR DATA takes 1..512 bytes of UTF-8 without control characters");
	fixture_say(f, 0, "LOCK c DATA \xff", "-ERR DATA takes 1..512 bytes of UTF-8 without control characters");
}

/* What ends a grant ends its lease: nothing of it fires later. */
TEST(a_lease_ends_with_its_grant)
{
	fixture_say(f, 0, "LOCK a LEASE 100", ":1024");
	fixture_say(f, 0, "UNLOCK a", ":0");
	fixture_say(f, 0, "LOCK b LEASE 100", ":2048");
	fixture_say(f, 0, "RESET", "+RESET");
	fixture_say(f, 1, "LOCK c LEASE 100", ":3072");
	fixture_simple(f, EVENT_CLIENT_GONE, 1);
	fixture_say(f, 0, "LOCK a", ":4096");
	fixture_pass(f, 1000);
	fixture_say(f, 0, "UNLOCK a", ":0");
}

SETUP(setup_session, false, 2)

/* What is overdue when the server says that the session has expired lets nobody in any more. */
TEST_IN(nobody_is_granted_what_ended_with_the_session, setup_session)
{
	fixture_held(f, f->znode);
	fixture_say(f, 0, "RENEW a 20", ":1");
	fixture_say(f, 1, "LOCK a", "");
	f->now_ns += 21 * MS;
	fixture_simple(f, EVENT_ZK_EXPIRED, 0);
	fixture_expect(f, 1, "");
	fixture_say(f, 0, "VALID a", ":0");
}

/* Between hosts: the claim stays, the next grant on it counts as a hand-off, and has a larger token. */
TEST_IN(a_lease_under_a_session, setup_session)
{
	fixture_held(f, f->znode);
	fixture_say(f, 0, "RENEW a 900", ":1");
	fixture_say(f, 1, "LOCK a LEASE 100000", "");
	fixture_pass(f, 900);
	fixture_say(f, 0, "EVENTS", "*4 $4 lost $1 a :78848 $5 lease");
	fixture_expect(f, 1, ":78849");
	/* The proof ends before the lease: the smaller counts. */
	fixture_ask(f, 1, "VALID a");
	assert_true(strtoll(f->replies[1].data + 1, NULL, 10) <= 8000);
	bytes_clear(&f->replies[1]);
	fixture_simple(f, EVENT_ZK_SUSPENDED, 0);
	fixture_pass(f, 12000);
	fixture_say(f, 1, "EVENTS", "*4 $4 lost $1 a :78849 $7 session");
}

/* What is lost and not told yet keeps its lock in use, and so counts to who had it. */
TEST(ended_leases_count_until_they_are_told)
{
	for (size_t i = 0; i < f->conf.limits.grants_per_client; i++) {
		fixture_ask(f, 0, fixture_words(f, "LOCK n%zu LEASE 1", i));
		bytes_clear(&f->replies[0]);
		fixture_pass(f, 2);
	}
	fixture_say(
		f, 0, "LOCK more",
		"-LIMIT this client already holds or waits for as many locks as one client may (limits.grants_per_client): more");
	fixture_ask(f, 0, "UNLOCK n0");
	bytes_clear(&f->replies[0]);
	fixture_say_begin(f, 0, "LOCK more", ":");
}
