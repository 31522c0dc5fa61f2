/* SPDX-License-Identifier: Apache-2.0 */
/* A hand-over while a client waits for what only ZooKeeper knows: it is asked again, and answered once. */
#include "revocation_fixture.h"
#include "core_test.h"

static const char by_hosts[] = "1\nhost=beta\npid=42\nuid=7\ncommand=settle\nname=w1\ntoken=71680\nsince=99000\n"
			       "written=99500\n";

/* Connected: the heartbeat, the mailbox. */
static void connected(struct fixture *f)
{
	fixture_reconnected(f);
	fixture_serve_list(f, "/lb/.mail/alpha", 0, NULL);
}

TEST_IN(a_question_is_asked_again, demand_setup)
{
	fixture_ask(f, 0, "HOLDERS a");
	fixture_op(f, EFFECT_ZK_LIST, "/lb/a");
	fixture_next_process(f);
	fixture_next_process(f);
	fixture_expect(f, 0, "");
	connected(f);
	held_by(f, elsewhere, by_hosts);
	fixture_expect(f, 0,
		       "*1 *28 $4 host $4 beta $6 client :0 $4 name $2 w1 $3 pid :42 $3 uid :7 $7 command $6 settle "
		       "$4 mode $9 exclusive $5 depth :0 $5 token :71680 $7 held_ms :500 $6 age_ms :500 $5 znode $58 "
		       "_c_4c61f3c2-7f3c-4c11-9d3e-1c6f0f3a9b11-__WRIT__0000000003 $8 lease_ms $-1 $4 data $0");
	fixture_no_op(f);
}

/* Some of it had been read. */
TEST_IN(a_limit_is_set_once_although_it_is_asked_for_twice, demand_setup)
{
	fixture_ask(f, 0, "LIMIT s 3");
	fixture_serve_get(f, "/lb/s", 1, 0, "1\nkind=semaphore\nlimit=2\n");
	fixture_op(f, EFFECT_ZK_SET, "/lb/s");
	fixture_next_process(f);
	connected(f);
	fixture_serve_get(f, "/lb/s", 1, 0, "1\nkind=semaphore\nlimit=3\n");
	fixture_expect(f, 0, ":3");
	fixture_no_op(f);
}

TEST_IN(a_question_does_not_wait_for_a_proof_that_runs_out, demand_setup)
{
	fixture_ask(f, 0, "HOLDERS a");
	fixture_next_process(f);
	fixture_pass(f, 3500);
	fixture_expect(f, 0, "");
	fixture_pass(f, 600);
	fixture_expect(f, 0, "-UNAVAILABLE ZooKeeper cannot be asked what other hosts do");
}

TEST_IN(a_search_for_holders_begins_again, demand_setup)
{
	fixture_ask(f, 0, "REVOKE a maintenance");
	fixture_serve_list(f, "/lb/a", 1, (const char *[]){ elsewhere });
	fixture_op(f, EFFECT_ZK_GET, elsewhere);
	fixture_next_process(f);
	fixture_expect(f, 0, "");
	connected(f);
	held_by_beta(f);
	letter_is_sent(f, "beta", "reason=maintenance\n");
	fixture_expect(f, 0, ":1");
}

TEST_IN(a_lock_is_taken_by_force_from_those_that_hold_it_then, demand_setup)
{
	fixture_ask(f, 0, "FORCEUNLOCK a");
	fixture_next_process(f);
	fixture_say(f, 1, "PING", "+PONG");
	fixture_expect(f, 0, "");
	connected(f);
	held_by(f, elsewhere, "10.0.0.1");
	fixture_serve(f, EFFECT_ZK_DELETE, elsewhere, ZK_OK);
	fixture_expect(f, 0, ":1");
}

TEST_IN(what_is_asked_right_after_it_waits_too, demand_setup)
{
	fixture_next_process(f);
	fixture_ask(f, 0, "REVOKE a maintenance");
	fixture_ask(f, 1, "AUDIT");
	fixture_expect(f, 0, "");
	fixture_expect(f, 1, "");
	fixture_pass(f, 4100);
	fixture_expect(f, 0, "-UNAVAILABLE ZooKeeper cannot be asked who holds it");
	fixture_expect(f, 1, "-UNAVAILABLE the connection to ZooKeeper was lost before the audit began");
}

/* Holders were asked, and may have answered. */
TEST_IN(a_revocation_that_has_asked_ends, demand_setup)
{
	fixture_ask(f, 0, "FORCEUNLOCK a");
	held_by_beta(f);
	fixture_serve(f, EFFECT_ZK_CREATE, "", ZK_OK);
	fixture_next_process(f);
	fixture_expect(
		f, 0,
		"-UNAVAILABLE the connection to ZooKeeper was lost: the request may have been carried out or not");
}

TEST_IN(an_audit_begins_again_and_answers_all_that_wait, demand_setup)
{
	fixture_ask(f, 1, "AUDIT");
	fixture_serve_list(f, "/lb", 1, (const char *[]){ "a" });
	fixture_ask(f, 0, "AUDIT");
	fixture_ask(f, 2, "AUDIT");
	fixture_simple(f, EVENT_CLIENT_GONE, 2);
	fixture_next_process(f);
	fixture_expect(f, 0, "");
	fixture_expect(f, 1, "");
	connected(f);
	fixture_serve_list(f, "/lb", 1, (const char *[]){ "a" });
	fixture_serve_get(f, "/lb/a", 1, 0, LOCK_DATA);
	fixture_serve_list(f, "/lb/a", 0, NULL);
	for (uint32_t conn = 0; conn < 2; conn++)
		fixture_expect(
			f, conn,
			"*22 $11 directories :1 $10 contenders :0 $4 ours :0 $6 strays :0 $9 undeleted :0 $12 odd_children "
			":0 $9 odd_names :0 $10 mismatched :0 $7 refused :0 $10 elapsed_ms :0 $8 examples *0");
	fixture_no_op(f);
}

static void taken_by_beta(struct fixture *f)
{
	fixture_serve_list(f, "/lb/a", 2, (const char *[]){ f->znode, elsewhere });
}

/* What ZooKeeper said of the lock before is not relied on, but it will say so again. */
TEST_IN(a_try_is_answered_when_it_is_known, demand_setup)
{
	fixture_join(f, 0, "LOCK a WAIT 0");
	fixture_next_process(f);
	fixture_expect(f, 0, "");
	connected(f);
	taken_by_beta(f);
	fixture_expect(f, 0, "$-1");
}

TEST_IN(a_wait_that_runs_out_meanwhile_is_answered_when_it_is_known, demand_setup)
{
	fixture_join(f, 0, "LOCK a WAIT 100");
	fixture_answer_list(f, 1, 2, (const char *[]){ f->znode, elsewhere });
	fixture_next_process(f);
	fixture_pass(f, 200);
	fixture_expect(f, 0, "");
	connected(f);
	taken_by_beta(f);
	fixture_expect(f, 0, "$-1");
}

TEST_IN(a_try_does_not_wait_for_long, demand_setup)
{
	fixture_ask(f, 0, "LOCK a WAIT 0");
	fixture_next_process(f);
	fixture_pass(f, 4100);
	fixture_expect(f, 0,
		       "-UNAVAILABLE there is no connection to ZooKeeper, so it is not known whether the lock is taken: a");
}
