/* SPDX-License-Identifier: Apache-2.0 */
/* Who has permits, asked across hosts (query.h, semaphore.h), and asking for them back (revocation.h). */
#include <stdio.h>
#include <string.h>

#include "core/hosts/query.h"
#include "revocation_fixture.h"
#include "semaphore_fixture.h"
#include "core_test.h"

#define GAMMA INT64_C(0x3000abcdef012345)

static const char one[] = "_c_4c61f3c2-7f3c-4c11-9d3e-1c6f0f3a9b11-lease-0000000001";
static const char two[] = "_c_4c61f3c2-7f3c-4c11-9d3e-1c6f0f3a9b12-lease-0000000002";
static const char other[] = "_c_4c61f3c2-7f3c-4c11-9d3e-1c6f0f3a9b13-lease-0000000003";
static const char last[] = "_c_4c61f3c2-7f3c-4c11-9d3e-1c6f0f3a9b14-lease-0000000004";
static const char later[] = "_c_4c61f3c2-7f3c-4c11-9d3e-1c6f0f3a9b16-lease-0000000006";
static const char turn[] = "_c_4c61f3c2-7f3c-4c11-9d3e-1c6f0f3a9b15-lock-0000000001";
static const char of_beta[] = "1\nhost=beta\npid=42\nuid=7\ncommand=settle\nname=w1\nmode=shared\ntoken=0\nholders=1\n"
			      "since=99000\nwritten=99500\nclient=4\n";
static const char of_gamma[] = "1\nhost=gamma\n";

static const CMFixtureFunction setup = demand_setup;

static void pass(struct fixture *f, struct there *t, int ms)
{
	for (int i = 0; i < ms; i += 50) {
		fixture_pass(f, 50);
		there_answer(f, t);
	}
}

/* ---- who has them ---- */

/* The client asks that, and is to be told of these leases. */
static void ask_of_leases(struct fixture *f, uint32_t conn, const char *words, const char *data, size_t count,
			  const char *const *leases)
{
	fixture_ask(f, conn, words);
	fixture_serve_list(f, "/lb/s", 2, (const char *[]){ "locks", "leases" }); /* so it is a semaphore */
	fixture_serve_get(f, "/lb/s", 1, 0, data);
	fixture_op(f, EFFECT_ZK_LIST, "/lb/s/leases");
	fixture_answer_list(f, 2, count, leases);
}

TEST(permits_of_other_hosts_are_told_by_client)
{
	ask_of_leases(f, 0, "HOLDERS s", SEMAPHORE_DATA(3), 4, (const char *[]){ other, last, two, one });
	fixture_answer_get(f, 80, BETA, of_beta);
	fixture_answer_get(f, 81, BETA, of_beta);
	fixture_answer_get(f, 82, GAMMA, of_gamma);
	fixture_answer_get(f, 83, GAMMA, of_gamma); /* one more than the limit: it waits for room */
	fixture_expect(f, 0, "*2 *28 $4 host $4 beta $6 client :0 $4 name $2 w1 $3 pid :42 $3 uid :7 $7 command $6 settle "
		    "$4 mode $6 shared $5 depth :2 $5 token :0 $7 held_ms :500 $6 age_ms :500 $5 znode $56 "
		    "_c_4c61f3c2-7f3c-4c11-9d3e-1c6f0f3a9b11-lease-0000000001 $8 lease_ms $-1 $4 data $0  "
		    "*28 $4 host $5 gamma $6 client :0 $4 name $0  $3 pid :0 $3 uid :0 $7 command $0  "
		    "$4 mode $6 shared $5 depth :1 $5 token :0 $7 held_ms :-1 $6 age_ms :0 $5 znode $56 "
		    "_c_4c61f3c2-7f3c-4c11-9d3e-1c6f0f3a9b13-lease-0000000003 $8 lease_ms $-1 $4 data $0");
	fixture_no_op(f);
}

TEST_IN(who_waits_is_told_why_and_where, demand_setup_standalone)
{
	fixture_say(f, 0, "ACQUIRE s LIMIT 2 COUNT 2", ":2");
	fixture_say(f, 1, "ACQUIRE s LIMIT 2", "");
	fixture_pass(f, 7);
	fixture_say(f, 2, "QUEUE s", "*1 *22 $4 host $5 alpha $6 client :2 $4 name $0  $3 pid :101 $3 uid :1000 "
		    "$7 command $4 test $4 mode $9 exclusive $9 waited_ms :7 $8 position :1 $5 znode $0  $5 count :1");
	fixture_ask(f, 2, "WHY s");
	assert_true(fixture_has(f, 2, "of 2 permits 2 held: 2 on this host, pid 100 (test), for 7 ms\r\n"));
	assert_true(fixture_has(f, 2, "$8\r\nposition\r\n:0\r\n$7\r\nwaiters\r\n:1\r\n"));
}

/* WHY of one that waits behind another host, on the host that it waits on. */
TEST(why_goes_on_to_the_queue)
{
	fixture_ask(f, 0, "LIMIT s");
	fixture_answer_get(f, 1, 0, SEMAPHORE_DATA(3));
	fixture_expect(f, 0, ":3");
	fixture_ask(f, 1, "ACQUIRE s LIMIT 3 COUNT 2");
	fixture_answer_get(f, 1, 0, SEMAPHORE_DATA(3));
	fixture_answer_made(f, 5, 70, f->znode, sizeof(f->znode));
	fixture_answer_list(f, 1, 2, (const char *[]){ turn, f->znode });
	fixture_answer(f, ZK_OK); /* the one before is watched */
	fixture_ask(f, 2, "WHY s");
	fixture_serve_get(f, "/lb/s", 1, 0, SEMAPHORE_DATA(3));
	fixture_op(f, EFFECT_ZK_LIST, "/lb/s/leases");
	fixture_answer_list(f, 2, 4, (const char *[]){ one, two, other, last });
	fixture_answer_get(f, 80, BETA, of_beta);
	fixture_answer_get(f, 81, BETA, of_beta);
	fixture_answer_get(f, 82, GAMMA, of_gamma);
	fixture_answer_get(f, 83, BETA, of_gamma);
	fixture_serve_list(f, "/lb/s/locks", 2, (const char *[]){ turn, f->znode });
	assert_true(fixture_has(f, 2, "of 3 permits 3 held: 2 by host beta, pid 42 (w1), for 500 ms, as of 500 ms ago; "
				      "1 by host gamma\r\n"));
	assert_true(fixture_has(f, 2, "$12\r\nhosts_before\r\n:1\r\n$13\r\nhosts_waiting\r\n:1\r\n"));
	fixture_no_op(f);
}

/* Of three that is the third: who is the first in the queue has made its lease, and is served. */
TEST(who_is_served_waits_for_nothing)
{
	const char *const leases[] = { one, two, other };

	for (size_t held = 2; held <= 3; held++) {
		ask_of_leases(f, 2, "WHY s", SEMAPHORE_DATA(3), held, leases);
		for (size_t i = 0; i < held; i++)
			fixture_answer_get(f, 80, GAMMA, of_gamma);
		fixture_serve_list(f, "/lb/s/locks", 1, (const char *[]){ turn });
		fixture_expect_part(f, 2, "$12\r\nhosts_before\r\n:0\r\n$13\r\nhosts_waiting\r\n:0\r\n");
	}
	fixture_no_op(f);
}

TEST(why_of_a_semaphore_that_this_host_does_not_use)
{
	ask_of_leases(f, 2, "WHY s", SEMAPHORE_DATA(3), 0, NULL);
	fixture_serve_list(f, "/lb/s/locks", 0, NULL);
	fixture_expect(f, 2, "*16 $3 why $27 of 3 permits nobody has any $5 state $4 none $8 position :0 $7 waiters :0 "
			     "$12 hosts_before :0 $13 hosts_waiting :0 $9 delegated :0 $7 holders *0");
	fixture_no_op(f);
}

/* The limit was larger: who is told of still has them. */
TEST(permits_beyond_a_limit_that_was_lowered_are_held)
{
	ask_of_leases(f, 0, "REVOKE s", SEMAPHORE_DATA(1), 2, (const char *[]){ one, two });
	fixture_answer_get(f, 80, GAMMA, of_gamma);
	fixture_answer_get(f, 81, BETA, of_beta);
	letter_is_sent(f, "gamma", "kind=revoke\n");
	letter_is_sent(f, "beta", "kind=revoke\n");
	fixture_expect(f, 0, ":2");
}

/* ---- telling it ---- */

TEST(nothing_is_written_before_somebody_elsewhere_waits)
{
	struct there t = { .others = { one, two }, .other_count = 1 };

	there_say(f, &t, 0, "ACQUIRE s LIMIT 3 COUNT 2", ":2");
	pass(f, &t, 3000);
	assert_string_equal(t.told, "");
	/* One more comes in: more than the limit, and not ours. */
	t.other_count = 2;
	fixture_watch(f, ZK_WATCH_CHILDREN, "/lb/s/leases");
	pass(f, &t, 2000);
	assert_non_null(strstr(t.told, "1\nhost=alpha\npid=100\nuid=1000\ncommand=test\nname=\nmode=shared\ntoken=0\nholders=1\n"
				       "since=100000\nwritten="));
	assert_non_null(strstr(t.told, "\nclient=1\n"));
	t.told[0] = '\0';
	pass(f, &t, 3000);
	assert_string_equal(t.told, ""); /* once is enough */
	fixture_say(f, 0, "RELEASE s", ":1");
	pass(f, &t, 3000);
	assert_string_equal(t.told, "");
}

TEST(another_holder_is_told_of_in_what_the_first_one_left)
{
	struct there t = { .others = { one, two, other }, .other_count = 2 };

	there_say(f, &t, 0, "ACQUIRE s LIMIT 3", ":1");
	t.other_count = 3;
	pass(f, &t, 2500);
	assert_non_null(strstr(t.told, "\nclient=1\n"));
	t.other_count = 1;
	fixture_watch(f, ZK_WATCH_CHILDREN, "/lb/s/leases");
	pass(f, &t, 2000);
	there_say(f, &t, 1, "ACQUIRE s LIMIT 3", ":1");
	fixture_say(f, 0, "RELEASE s", ":0");
	t.told[0] = '\0';
	t.own_count = 1;
	snprintf(t.own[0], sizeof(t.own[0]), "%s", t.own[1]);
	t.other_count = 3;
	fixture_watch(f, ZK_WATCH_CHILDREN, "/lb/s/leases");
	pass(f, &t, 4000);
	assert_non_null(strstr(t.told, "\nclient=2\n"));
}

/* ---- asking for them back ---- */

TEST(each_host_gets_one_letter)
{
	ask_of_leases(f, 0, "REVOKE s maintenance", SEMAPHORE_DATA(3), 3, (const char *[]){ one, two, other });
	fixture_answer_get(f, 80, BETA, "1\nhost=beta\n");
	fixture_answer_get(f, 81, BETA, of_beta);
	fixture_answer_get(f, 82, GAMMA, "10.0.0.7"); /* of other software */
	/* Its last lease is named. */
	letter_is_sent(f, "beta",
		       "to=2000abcdef012345\nname=s\nznode=_c_4c61f3c2-7f3c-4c11-9d3e-1c6f0f3a9b12-lease-0000000002\n");
	fixture_expect(f, 0, ":1");
	fixture_no_op(f);
}

/* More than are told of (query.h): none of them may be left out. */
TEST(hosts_behind_the_permits_of_another_get_theirs)
{
	enum { LEASES = QUERY_CHILDREN_MAX + 1 };
	static const char begin[] = "_c_4c61f3c2-7f3c-4c11-9d3e-1c6f0f3a9b11-lease-";
	int answered = 0;

	ask_of_leases(f, 0, "REVOKE s maintenance", SEMAPHORE_DATA(2000), LEASES, fixture_numbered(begin, 10, LEASES));
	while (fixture_is_open(f) && fixture_oldest(f)->effect.type == EFFECT_ZK_GET) {
		bool is_last = ++answered == LEASES;

		fixture_answer_get(f, 80, is_last ? GAMMA : BETA, is_last ? of_gamma : of_beta);
	}
	letter_is_sent(f, "beta", "kind=revoke\n");
	letter_is_sent(f, "gamma", "kind=revoke\n");
	fixture_expect(f, 0, ":2");
}

TEST_IN(holders_here_are_asked_and_bereft, demand_setup_standalone)
{
	fixture_say(f, 0, "ACQUIRE s LIMIT 3 COUNT 2", ":2");
	fixture_say(f, 1, "ACQUIRE s LIMIT 3", ":1");
	fixture_say(f, 2, "ACQUIRE s LIMIT 3 COUNT 3", "");
	fixture_say(f, 3, "REVOKE s please", ":2");
	fixture_say(f, 0, "EVENTS", "*4 $6 revoke $1 s :0 $6 please");
	fixture_say(f, 3, "FORCEUNLOCK s", ":2");
	assert_true(fixture_logged(f, "lock \"s\" taken by force from 2 holders"));
	fixture_expect(f, 2, ":3");
	fixture_say(f, 0, "EVENTS", "*4 $4 lost $1 s :0 $6 forced");
	fixture_say(f, 1, "RELEASE s", "-LOST the permits were lost before they were released: s");
	fixture_operators(f, false);
	fixture_say(f, 3, "FORCEUNLOCK s", "-DENIED only operators may take a lock by force" DENIED_HOW);
}

TEST(all_permits_of_a_silent_host_are_deleted)
{
	ask_of_leases(f, 0, "FORCEUNLOCK s", SEMAPHORE_DATA(3), 2, (const char *[]){ one, two });
	fixture_answer_get(f, 80, BETA, of_beta);
	fixture_answer_get(f, 81, BETA, of_beta);
	fixture_serve(f, EFFECT_ZK_CREATE, "", ZK_OK);
	fixture_expect(f, 0, "");
	for (int i = 0; i < 21 && !(fixture_is_open(f) && fixture_oldest(f)->effect.type == EFFECT_ZK_DELETE); i++) {
		while (fixture_is_open(f))
			fixture_answer(f, ZK_OK);
		fixture_pass(f, 100);
	}
	assert_non_null(strstr(fixture_op(f, EFFECT_ZK_DELETE, "")->path, "/lb/.mail/beta/"));
	fixture_answer(f, ZK_OK);
	fixture_serve(f, EFFECT_ZK_DELETE, one, ZK_OK);
	fixture_expect(f, 0, "");
	fixture_serve(f, EFFECT_ZK_DELETE, two, ZK_NONODE);
	fixture_expect(f, 0, ":1");
}

static void receive_about(struct fixture *f, const char *kind, const char *session, const char *lease)
{
	char text[512];

	snprintf(text, sizeof(text), "1\nkind=%s\nfrom=beta\nto=%s\nname=s\nznode=%s\nreason=please\nuid=0\npid=1\n"
		 "command=a\nclient=\n", kind, session, lease);
	letter_arrives(f, letter, text, ZK_OK);
}

/* It names the last lease that was seen: permits are alike. */
TEST(another_host_asks_for_permits_and_takes_them)
{
	struct there t = { 0 };

	there_say(f, &t, 0, "ACQUIRE s LIMIT 3 COUNT 2", ":2");
	receive_about(f, "revoke", "1000abcdef012345", later);
	fixture_say(f, 0, "EVENTS", "*4 $6 revoke $1 s :0 $6 please");
	receive_about(f, "force", "2000abcdef012345", later);
	letter_is_sent(f, "beta", "\nholders=-1\n"); /* of an earlier session */
	receive_about(f, "force", "1000abcdef012345", later);
	letter_is_sent(f, "beta", "\nholders=1\n");
	fixture_serve(f, EFFECT_ZK_DELETE, t.own[0], ZK_OK);
	fixture_op(f, EFFECT_ZK_DELETE, t.own[1]);
	fixture_say(f, 0, "EVENTS", "*4 $4 lost $1 s :0 $6 forced");
}

/* Those that were seen have gone back by now; who has some since is not meant. */
TEST(a_late_letter_takes_no_permits_of_others)
{
	struct there t = { 0 };

	there_say(f, &t, 0, "ACQUIRE s LIMIT 3 COUNT 2", ":2");
	receive_about(f, "revoke", "1000abcdef012345", last);
	fixture_say(f, 0, "EVENTS WAIT 0", "*-1");
	receive_about(f, "force", "1000abcdef012345", last);
	letter_is_sent(f, "beta", "\nholders=0\n");
	receive_about(f, "force", "1000abcdef012345", "nonsense");
	letter_is_sent(f, "beta", "\nholders=0\n");
	fixture_say(f, 0, "RELEASE s", ":1");
}
