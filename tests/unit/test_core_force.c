/* SPDX-License-Identifier: Apache-2.0 */
/* FORCEUNLOCK: taking locks from their holders, on whichever hosts (revocation.h, revoke.h). */
#include <stdio.h>

#include "revocation_fixture.h"
#include "core_test.h"

static const char behind[] = "_c_4c61f3c2-7f3c-4c11-9d3e-1c6f0f3a9b11-__WRIT__0000000200";

TEST_IN(only_operators_take_by_force, demand_setup)
{
	fixture_operators(f, false);
	fixture_say(f, 0, "FORCEUNLOCK a", "-DENIED only operators may take a lock by force" DENIED_HOW);
	fixture_no_op(f);
}

TEST_IN(a_holder_here_is_told_before_the_next_is_granted, demand_setup)
{
	fixture_resp3(f, 1);
	fixture_held(f, f->znode);
	fixture_ask(f, 1, "LOCK a");
	fixture_ask(f, 2, "LOCK a");
	fixture_say(f, 3, "FORCEUNLOCK a", ":1");
	fixture_expect(f, 1, ":78849");
	fixture_say(f, 0, "EVENTS", "*4 $4 lost $1 a :78848 $6 forced");
	fixture_say(f, 0, "UNLOCK a", "-NOTHELD this client does not hold a");
	fixture_say(f, 3, "FORCEUNLOCK a", ":1");
	fixture_expect_push(f, 1, ">4 $4 lost $1 a :78849 $6 forced");
	fixture_expect(f, 2, ":78850");
	fixture_say(f, 1, "UNLOCK a", "-LOST the grant was lost before it was released: a");
	fixture_say(f, 2, "UNLOCK a", ":0");
}

TEST_IN(a_standalone_daemon_has_holders_here_only, demand_setup_standalone)
{
	fixture_say(f, 0, "REVOKE a", ":0");
	fixture_say(f, 0, "FORCEUNLOCK a", ":0");
	fixture_say(f, 0, "LOCK a", ":1024");
	fixture_say(f, 1, "REVOKE a", ":1");
	fixture_say(f, 1, "FORCEUNLOCK a", ":1");
	fixture_say(f, 1, "LOCK a", ":2048");
	fixture_say(f, 0, "LOCK a", "-LOST an earlier grant of this lock was lost; ask again: a");
}

/* A line of the log ends where it would without it, and what it says of the lock is within quotes. */
TEST_IN(no_name_forges_what_the_log_says, demand_setup_standalone)
{
	static const char name[] = "a\" taken by force from 0 holders, for uid 0\xe2\x80\xa8lock \\b";
	static const char shown[] =
		"lock \"a\\\" taken by force from 0 holders, for uid 0\\xe2\\x80\\xa8lock \\\\b\" taken by "
		"force from 1 holders, for uid ";
	const struct slice take[] = { SLICE("LOCK"), SLICE(name) }, force[] = { SLICE("FORCEUNLOCK"), SLICE(name) };

	fixture_event(f, &(struct event){ .type = EVENT_CLIENT_ASKED, .asked = { .argc = 2, .argv = take } });
	fixture_expect(f, 0, ":1024");
	fixture_event(f,
		      &(struct event){ .type = EVENT_CLIENT_ASKED, .conn = 1, .asked = { .argc = 2, .argv = force } });
	fixture_expect(f, 1, ":1");
	assert_true(fixture_logged(f, shown));
}

/* Takes a from beta, up to the letter. */
static void force_beta(struct fixture *f)
{
	fixture_ask(f, 0, "FORCEUNLOCK a");
	held_by_beta(f);
	letter_is_sent(f, "beta", "kind=force\n");
	fixture_expect(f, 0, "");
}

TEST_IN(the_host_that_holds_it_answers, demand_setup)
{
	force_beta(f);
	answer_arrives(f, "0000000100000-1000abcdef012345-0000000000000000", "holders=4");
	fixture_expect(f, 0, "");
	answer_arrives(f, posted, "holders=2");
	fixture_expect(f, 0, ":2");
	/* Nothing is left to be withdrawn, and the znode is nobody's business. */
	fixture_pass(f, 1400);
	fixture_no_op(f);
	answer_arrives(f, posted, "holders=2");
	fixture_expect(f, 0, "");
}

static void two_seconds(struct fixture *f)
{
	fixture_pass(f, 1400);
	fixture_no_op(f);
	fixture_pass(f, 600);
	fixture_answer_beats(f);
}

/* Its grant rests on the second, which took over from the first; of other software they may be two strangers'. */
TEST_IN(what_took_over_on_a_host_that_is_silent_is_deleted_too, demand_setup)
{
	static const char second[] = "_c_00000000-0000-8000-8091-00000000b0b1-__WRIT__0000000004";
	const char *const *hosts = (const char *const[]){ "1\nhost=beta\n", "10.0.0.1" };

	for (int i = 0; i < 2; i++) {
		fixture_ask(f, 0, "FORCEUNLOCK a");
		fixture_answer_list(f, 1, 3, (const char *[]){ elsewhere, behind, second });
		fixture_serve_get(f, elsewhere, 70, BETA, hosts[i]);
		fixture_serve_get(f, second, 71, BETA, hosts[i]);
		if (i == 0) {
			fixture_answer(f, ZK_OK);
			two_seconds(f);
			fixture_answer(f, ZK_OK);
		}
		fixture_serve(f, EFFECT_ZK_DELETE, elsewhere, ZK_OK);
		if (i == 0)
			fixture_serve(f, EFFECT_ZK_DELETE, second, ZK_OK);
		fixture_expect(f, 0, ":1");
		fixture_no_op(f);
	}
}

TEST_IN(a_waiter_of_another_host_keeps_its_place, demand_setup)
{
	fixture_ask(f, 0, "FORCEUNLOCK a");
	fixture_answer_list(f, 1, 2, (const char *[]){ elsewhere, behind });
	fixture_answer_get(f, 70, BETA, "1\nhost=beta\n");
	fixture_op(f, EFFECT_ZK_GET, behind);
	fixture_answer(f, ZK_REFUSED); /* and who it is does not matter */
	fixture_answer(f, ZK_OK);
	two_seconds(f);
	fixture_answer(f, ZK_OK);
	fixture_serve(f, EFFECT_ZK_DELETE, elsewhere, ZK_OK);
	fixture_expect(f, 0, ":1");
	fixture_no_op(f);
}

TEST_IN(the_znode_of_a_host_that_is_silent_is_deleted, demand_setup)
{
	force_beta(f);
	two_seconds(f);
	fixture_serve(f, EFFECT_ZK_DELETE, posted, ZK_OK);
	fixture_serve(f, EFFECT_ZK_DELETE, elsewhere, ZK_OK);
	fixture_expect(f, 0, ":1");
}

TEST_IN(a_host_that_has_read_the_letter_gets_more_time, demand_setup)
{
	force_beta(f);
	two_seconds(f);
	fixture_serve(f, EFFECT_ZK_DELETE, posted, ZK_NONODE);
	fixture_no_op(f);
	answer_arrives(f, posted, "holders=1");
	fixture_expect(f, 0, ":1");
	force_beta(f);
	two_seconds(f);
	fixture_answer(f, ZK_NONODE);
	two_seconds(f);
	fixture_serve(f, EFFECT_ZK_DELETE, elsewhere, ZK_NONODE);
	fixture_expect(f, 0, ":0");
}

TEST_IN(a_host_with_a_new_session_has_nothing_to_say, demand_setup)
{
	force_beta(f);
	answer_arrives(f, posted, "holders=-1");
	fixture_serve(f, EFFECT_ZK_DELETE, elsewhere, ZK_OK);
	fixture_expect(f, 0, ":1");
}

TEST_IN(the_znode_of_other_software_is_deleted_at_once, demand_setup)
{
	fixture_ask(f, 0, "FORCEUNLOCK a");
	held_by(f, elsewhere, "10.0.0.1");
	fixture_serve(f, EFFECT_ZK_DELETE, elsewhere, ZK_REFUSED);
	fixture_expect(f, 0, "-UNAVAILABLE ZooKeeper refuses to delete the holder's znode");
}

TEST_IN(who_hangs_up_takes_nothing_by_force, demand_setup)
{
	force_beta(f);
	fixture_simple(f, EVENT_CLIENT_GONE, 0);
	fixture_serve(f, EFFECT_ZK_DELETE, posted, ZK_OK);
	fixture_no_op(f);
}

TEST_IN(a_letter_of_unknown_outcome_is_deleted, demand_setup)
{
	fixture_ask(f, 0, "REVOKE a");
	held_by_beta(f);
	fixture_ask(f, 1, "FORCEUNLOCK b");
	letter_posted(f, "beta");
	fixture_expect(f, 0, ":1");
	fixture_serve_list(f, "/lb/b", 1, (const char *[]){ elsewhere });
	fixture_answer_get(f, 70, BETA, "1\nhost=beta\n");
	snprintf(posted, sizeof(posted), "%s", path_end(fixture_op(f, EFFECT_ZK_CREATE, "")->path));
	fixture_simple(f, EVENT_ZK_SUSPENDED, 0);
	fixture_expect(f, 1, "-UNAVAILABLE the holder's host could not be asked");
	fixture_reconnected(f);
	fixture_serve_list(f, "/.mail/alpha", 0, NULL);
	fixture_serve(f, EFFECT_ZK_DELETE, posted, ZK_REFUSED);
	fixture_no_op(f);
	fixture_pass(f, 1000);
	fixture_op(f, EFFECT_ZK_DELETE, posted);
	fixture_simple(f, EVENT_ZK_EXPIRED, 0);
	fixture_zk_connected(f, SESSION + 1);
	fixture_answer_session(f);
	fixture_no_op(f); /* it went with its session */
}

TEST_IN(a_connection_lost_ends_a_demand, demand_setup)
{
	force_beta(f);
	fixture_simple(f, EVENT_ZK_SUSPENDED, 0);
	fixture_expect(f, 0,
		       "-UNAVAILABLE the connection to ZooKeeper was lost: the request may have been carried out or not");
	fixture_reconnected(f);
	fixture_serve_list(f, "/.mail/alpha", 0, NULL);
	fixture_op(f, EFFECT_ZK_DELETE, posted);
}
