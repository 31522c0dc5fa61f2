/* SPDX-License-Identifier: Apache-2.0 */
/* A hand-over while a client waits for what only ZooKeeper knows: it is asked again, and answered once. */
#include <string.h>

#include "revocation_fixture.h"

static const char by_hosts[] = "1\nhost=beta\npid=42\nuid=7\ncommand=settle\nname=w1\ntoken=71680\nsince=99000\n"
			       "written=99500\n";

/* The next process has the state, and no connection yet. */
static void hand_over(struct fixture *f)
{
	fixture_event(f, &(struct event){ .type = EVENT_ZK_SUSPENDED, .zk_suspended = { .planned = true } });
	fixture_hand_over(f);
	fixture_simple(f, EVENT_TIME, 0);
}

/* Connected: the heartbeat, the mailbox. */
static void connected(struct fixture *f)
{
	fixture_reconnected(f);
	if (f->mail) {
		fixture_op(f, EFFECT_ZK_LIST, "/lb/.mail/alpha");
		fixture_answer_list(f, 1, 0, NULL);
	}
}

TEST_IN(a_question_is_asked_again, demand_setup)
{
	struct fixture *f = *state;

	fixture_ask(f, 0, "HOLDERS a");
	fixture_op(f, EFFECT_ZK_LIST, "/lb/a");
	hand_over(f);
	hand_over(f);
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
	struct fixture *f = *state;

	fixture_ask(f, 0, "LIMIT s 3");
	fixture_op(f, EFFECT_ZK_GET, "/lb/s");
	fixture_answer_get(f, 1, 0, "1\nkind=semaphore\nlimit=2\n");
	fixture_op(f, EFFECT_ZK_SET, "/lb/s");
	hand_over(f);
	connected(f);
	fixture_op(f, EFFECT_ZK_GET, "/lb/s");
	fixture_answer_get(f, 1, 0, "1\nkind=semaphore\nlimit=3\n");
	fixture_expect(f, 0, ":3");
	fixture_no_op(f);
}

TEST_IN(a_question_does_not_wait_for_a_proof_that_runs_out, demand_setup)
{
	struct fixture *f = *state;

	fixture_ask(f, 0, "HOLDERS a");
	hand_over(f);
	fixture_pass(f, 3500);
	fixture_expect(f, 0, "");
	fixture_pass(f, 600);
	fixture_expect(f, 0, "-UNAVAILABLE ZooKeeper cannot be asked what other hosts do");
}

TEST_IN(a_search_for_holders_begins_again, demand_setup)
{
	struct fixture *f = *state;

	fixture_ask(f, 0, "REVOKE a maintenance");
	fixture_op(f, EFFECT_ZK_LIST, "/lb/a");
	fixture_answer_list(f, 1, 1, (const char *[]){ elsewhere });
	fixture_op(f, EFFECT_ZK_GET, elsewhere);
	hand_over(f);
	fixture_expect(f, 0, "");
	connected(f);
	held_by_beta(f);
	fixture_op(f, EFFECT_ZK_CREATE, "");
	assert_non_null(strstr(fixture_oldest(f)->data, "reason=maintenance\n"));
	fixture_answer(f, ZK_OK);
	fixture_expect(f, 0, ":1");
}

TEST_IN(a_lock_is_taken_by_force_from_those_that_hold_it_then, demand_setup)
{
	struct fixture *f = *state;

	fixture_ask(f, 0, "FORCEUNLOCK a");
	hand_over(f);
	fixture_say(f, 1, "PING", "+PONG");
	fixture_expect(f, 0, "");
	connected(f);
	held_by(f, elsewhere, "10.0.0.1");
	fixture_op(f, EFFECT_ZK_DELETE, elsewhere);
	fixture_answer(f, ZK_OK);
	fixture_expect(f, 0, ":1");
}

TEST_IN(what_is_asked_right_after_it_waits_too, demand_setup)
{
	struct fixture *f = *state;

	hand_over(f);
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
	struct fixture *f = *state;

	fixture_ask(f, 0, "FORCEUNLOCK a");
	held_by_beta(f);
	fixture_op(f, EFFECT_ZK_CREATE, "");
	fixture_answer(f, ZK_OK);
	hand_over(f);
	fixture_expect(
		f, 0,
		"-UNAVAILABLE the connection to ZooKeeper was lost: the request may have been carried out or not");
}

TEST_IN(an_audit_begins_again_and_answers_all_that_wait, demand_setup)
{
	struct fixture *f = *state;

	fixture_ask(f, 1, "AUDIT");
	fixture_op(f, EFFECT_ZK_LIST, "/lb");
	fixture_answer_list(f, 1, 1, (const char *[]){ "a" });
	fixture_ask(f, 0, "AUDIT");
	fixture_ask(f, 2, "AUDIT");
	fixture_simple(f, EVENT_CLIENT_GONE, 2);
	hand_over(f);
	fixture_expect(f, 0, "");
	fixture_expect(f, 1, "");
	connected(f);
	fixture_op(f, EFFECT_ZK_LIST, "/lb");
	fixture_answer_list(f, 1, 1, (const char *[]){ "a" });
	fixture_op(f, EFFECT_ZK_GET, "/lb/a");
	fixture_answer_get(f, 1, 0, LOCK_DATA);
	fixture_op(f, EFFECT_ZK_LIST, "/lb/a");
	fixture_answer_list(f, 1, 0, NULL);
	for (uint32_t conn = 0; conn < 2; conn++)
		fixture_expect(
			f, conn,
			"*22 $11 directories :1 $10 contenders :0 $4 ours :0 $6 strays :0 $9 undeleted :0 $12 odd_children "
			":0 $9 odd_names :0 $10 mismatched :0 $7 refused :0 $10 elapsed_ms :0 $8 examples *0");
	fixture_no_op(f);
}

static void taken_by_beta(struct fixture *f, const char *name)
{
	fixture_op(f, EFFECT_ZK_LIST, "/lb/a");
	fixture_answer_list(f, 1, 2, (const char *[]){ name, elsewhere });
}

/* What ZooKeeper said of the lock before is not relied on, but it will say so again. */
TEST_IN(a_try_is_answered_when_it_is_known, demand_setup)
{
	struct fixture *f = *state;
	char name[128];

	fixture_ask(f, 0, "LOCK a WAIT 0");
	fixture_answer_get(f, 1, 0, LOCK_DATA);
	fixture_answer_made(f, 5, 77, name, sizeof(name));
	hand_over(f);
	fixture_expect(f, 0, "");
	connected(f);
	taken_by_beta(f, name);
	fixture_expect(f, 0, "$-1");
}

TEST_IN(a_wait_that_runs_out_meanwhile_is_answered_when_it_is_known, demand_setup)
{
	struct fixture *f = *state;
	char name[128];

	fixture_ask(f, 0, "LOCK a WAIT 100");
	fixture_answer_get(f, 1, 0, LOCK_DATA);
	fixture_answer_made(f, 5, 77, name, sizeof(name));
	fixture_answer_list(f, 1, 2, (const char *[]){ name, elsewhere });
	hand_over(f);
	fixture_pass(f, 200);
	fixture_expect(f, 0, "");
	connected(f);
	taken_by_beta(f, name);
	fixture_expect(f, 0, "$-1");
}

TEST_IN(a_try_does_not_wait_for_long, demand_setup)
{
	struct fixture *f = *state;

	fixture_ask(f, 0, "LOCK a WAIT 0");
	hand_over(f);
	fixture_pass(f, 4100);
	fixture_expect(f, 0,
		       "-UNAVAILABLE there is no connection to ZooKeeper, so it is not known whether the lock is taken: a");
}
