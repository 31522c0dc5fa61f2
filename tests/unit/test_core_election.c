/* SPDX-License-Identifier: Apache-2.0 */
/* Elections: a leader is proclaimed before it is told (election.h). */
#include <string.h>

#include "core_test.h"

static const char fits[] = "1\nkind=election\nflavour=rw\n";
static const char other[] = "_c_4c61f3c2-7f3c-4c11-9d3e-1c6f0f3a9b11-__WRIT__0000000003";
static const char second[] = "_c_4c61f3c2-7f3c-4c11-9d3e-1c6f0f3a9b12-__WRIT__0000000004";
static const char of_beta[] = "1\nhost=beta\npid=42\nuid=7\ncommand=settle\nname=w1\nmode=exclusive\ntoken=71680\n"
			      "holders=1\nsince=1000100000\nwritten=1000100000\nleader=1\ndata=10.0.0.2:80\n";

static int setup(void **state)
{
	struct fixture *f = fixture_new(false);

	f->conf.started_s = 100;
	return fixture_setup(f, 5, state);
}

/* CAMPAIGN up to the proclamation, a write to f->znode: the oldest operation then. A list with watch stands behind it. */
static void campaign(struct fixture *f, uint32_t conn)
{
	fixture_ask(f, conn, "CAMPAIGN a DATA x");
	if (fixture_oldest(f)->effect.type == EFFECT_ZK_GET)
		fixture_answer_get(f, 1, 0, fits);
	fixture_serve_made(f, "-__WRIT__", 5, 70, f->znode);
	fixture_serve_list(f, "/lb/a", 1, (const char *[]){ f->znode });
}

/* The data of the oldest operation, the proclamation. */
static void expect_data(struct fixture *f, const char *line)
{
	assert_non_null(strstr(fixture_op(f, EFFECT_ZK_SET, f->znode)->data, line));
}

static void answer_watch_list(struct fixture *f)
{
	assert_true(fixture_op(f, EFFECT_ZK_LIST, "/lb/a")->effect.watch);
	fixture_answer_list(f, 1, 1, (const char *[]){ f->znode });
}

/* CAMPAIGN up to the reply; nothing is open. */
static void lead(struct fixture *f, uint32_t conn)
{
	campaign(f, conn);
	fixture_answer(f, ZK_OK);
	fixture_expect(f, conn, ":71680");
	answer_watch_list(f);
	fixture_no_op(f);
}

TEST(a_leader_is_told_when_its_data_are_acknowledged)
{
	campaign(f, 0);
	fixture_expect(f, 0, "");
	expect_data(f, "\nleader=1\ndata=x\n");
	expect_data(f, "1\nhost=alpha\nkind=election\npid=100\n");
	expect_data(f, "\ntoken=71680\n");
	fixture_answer(f, ZK_OK);
	fixture_expect(f, 0, ":71680");
	answer_watch_list(f);
	fixture_no_op(f);
	fixture_say(f, 0, "CAMPAIGN a DATA y", "-HELD this client already leads it, and has to RESIGN first: a");
	fixture_say(f, 0, "VALID a", ":8000");
}

TEST(the_next_of_the_host_leads_on_the_same_claim)
{
	lead(f, 0);
	fixture_ask(f, 1, "CAMPAIGN a DATA y");
	fixture_say(f, 0, "RESIGN a", ":1");
	fixture_expect(f, 1, "");
	expect_data(f, "\ntoken=71681\n");
	expect_data(f, "\ndata=y\n");
	fixture_answer(f, ZK_OK);
	fixture_expect(f, 1, ":71681");
	/* Nobody else wants it, and it does not linger. */
	fixture_say(f, 1, "RESIGN a", ":1");
	fixture_serve(f, EFFECT_ZK_DELETE, f->znode, ZK_OK);
	fixture_no_op(f);
}

/* It may have been seen as the leader: who comes after it has a larger token. */
TEST(who_gives_up_when_proclaimed_has_used_its_token)
{
	campaign(f, 0);
	fixture_ask(f, 1, "CAMPAIGN a DATA y");
	fixture_simple(f, EVENT_CLIENT_GONE, 0);
	fixture_answer(f, ZK_OK); /* of the first: it is no more */
	fixture_expect(f, 1, "");
	answer_watch_list(f);
	expect_data(f, "\ntoken=71681\n");
	fixture_answer(f, ZK_OK);
	fixture_expect(f, 1, ":71681");
}

TEST(a_proclamation_of_unknown_outcome_is_written_again)
{
	campaign(f, 0);
	fixture_op(f, EFFECT_ZK_SET, f->znode);
	fixture_simple(f, EVENT_ZK_SUSPENDED, 0);
	fixture_expect(f, 0, "");
	fixture_reconnected(f);
	fixture_expect(f, 0, "");
	fixture_serve_list(f, "/lb/a", 1, (const char *[]){ f->znode });
	expect_data(f, "\ntoken=71680\n");
	fixture_answer(f, ZK_OK);
	fixture_expect(f, 0, ":71680");
}

TEST(a_proclamation_on_a_deleted_znode_begins_anew)
{
	campaign(f, 0);
	fixture_serve(f, EFFECT_ZK_SET, f->znode, ZK_NONODE);
	fixture_expect(f, 0, "");
	fixture_answer_list(f, 1, 0, NULL); /* the watch: it is gone */
	fixture_answer_list(f, 1, 0, NULL);
	fixture_serve_alone(f, "-__WRIT__", 6, 80, f->znode);
	expect_data(f, "\ntoken=81920\n");
	fixture_answer(f, ZK_OK);
	fixture_expect(f, 0, ":81920");
}

TEST(a_refused_proclamation_fails)
{
	campaign(f, 0);
	fixture_answer(f, ZK_REFUSED);
	fixture_expect(f, 0, "-UNAVAILABLE ZooKeeper refuses to write the leader's data: a");
}

TEST(a_campaign_can_be_queued_and_taken_back)
{
	lead(f, 0);
	fixture_say(f, 1, "CAMPAIGN a ENQUEUE DATA y", "+QUEUED");
	fixture_say(f, 1, "CAMPAIGN a DATA y", "-ERR this client already campaigns for it, and RESIGN withdraws that: a");
	fixture_say(f, 1, "RESIGN a", ":0");
	fixture_say(f, 1, "RESIGN a", "-NOTHELD this client does not hold a");
	fixture_say(f, 2, "CAMPAIGN a ENQUEUE DATA z", "+QUEUED");
	fixture_say(f, 3, "CAMPAIGN a WAIT 0 DATA z", "$-1");
	fixture_say(f, 0, "RESIGN a", ":1");
	fixture_answer(f, ZK_OK);
	fixture_say(f, 2, "EVENTS", "*3 $7 granted $1 a :71681");
}

TEST(a_lock_is_no_election_and_the_other_way_round)
{
	lead(f, 0);
	fixture_say(f, 1, "LOCK a", "-MISMATCH this name is in use as an election, not as a lock: a");
	fixture_say(f, 0, "UNLOCK a", "-MISMATCH this name is in use as an election, not as a lock: a");
	fixture_say(f, 0, "DOWNGRADE a", "-MISMATCH this name is in use as an election, not as a lock: a");
	fixture_say(f, 0, "RENEW a 10", "-MISMATCH this name is in use as an election, not as a lock: a");
	fixture_say(f, 0, "MLOCK 1 a", "-MISMATCH this name is in use as an election, not as a lock: a");
	fixture_say(f, 0, "MUNLOCK 1 a", "-MISMATCH this name is in use as an election; nothing was released: a");
	fixture_lock_held(f, 2, "b", 5, 80, f->znode, sizeof(f->znode));
	fixture_expect(f, 2, ":81920");
	fixture_say(f, 1, "CAMPAIGN b DATA x", "-MISMATCH this name is in use as a lock, not as an election: b");
	fixture_say(f, 2, "RESIGN b", "-MISMATCH this name is in use as a lock, not as an election: b");
	fixture_say(f, 1, "LEADER b", "-MISMATCH this name is in use as a lock, not as an election: b");
	fixture_say(f, 1, "OBSERVE b", "-MISMATCH this name is in use as a lock, not as an election: b");
	fixture_say(f, 1, "CAMPAIGN c", "-ERR wrong number of arguments for 'campaign' command; Become the leader: CAMPAIGN "
					"name DATA text [WAIT ms] [ENQUEUE]");
	fixture_say(f, 1, "CAMPAIGN c WAIT 5", "-ERR syntax error in 'campaign' command; Become the leader: CAMPAIGN "
					       "name DATA text [WAIT ms] [ENQUEUE]");
}

TEST(leader_is_read_from_the_first_contender)
{
	fixture_ask(f, 0, "LEADER a");
	fixture_answer_list(f, 1, 2, (const char *[]){ second, other });
	fixture_serve_get(f, other, 70, 9, of_beta);
	fixture_expect(f, 0, "*20 $4 host $4 beta $4 data $11 10.0.0.2:80 $5 token :71680 $6 client :0 $4 name $2 w1 $3 pid :42 "
			     "$3 uid :7 $7 command $6 settle $7 held_ms :0 $5 znode $58 "
			     "_c_4c61f3c2-7f3c-4c11-9d3e-1c6f0f3a9b11-__WRIT__0000000003");
	fixture_no_op(f);
	/* The first goes meanwhile, the second is not proclaimed yet. */
	fixture_ask(f, 0, "LEADER a");
	fixture_answer_list(f, 1, 2, (const char *[]){ second, other });
	fixture_answer(f, ZK_NONODE);
	fixture_answer_list(f, 1, 1, (const char *[]){ second });
	fixture_answer_get(f, 71, 9, "1\nhost=gamma\n");
	fixture_expect(f, 0, "$-1");
	fixture_ask(f, 0, "LEADER a");
	fixture_answer(f, ZK_NONODE);
	fixture_expect(f, 0, "$-1");
	lead(f, 1);
	fixture_ask(f, 0, "LEADER a");
	fixture_no_op(f);
	fixture_expect_part(f, 0, "data\r\n$1\r\nx\r\n$5\r\ntoken\r\n:71680\r\n");
	fixture_simple(f, EVENT_ZK_SUSPENDED, 0);
	fixture_say(f, 3, "LEADER b", "-UNAVAILABLE ZooKeeper cannot be asked who leads");
}

/* When the answer to LEADER comes, the name may be that of a lock or a semaphore: their holders lead nothing. */
TEST(who_holds_a_lock_of_that_name_by_then_is_no_leader)
{
	fixture_ask(f, 0, "LEADER a");
	fixture_ask(f, 1, "LOCK a");
	fixture_answer_list(f, 1, 1, (const char *[]){ other });
	fixture_answer_get(f, 1, 0, "");
	fixture_serve_alone(f, "-__WRIT__", 5, 70, f->znode);
	fixture_expect(f, 1, ":71680");
	fixture_serve_get(f, other, 71, 9, "1\nhost=beta\n");
	fixture_expect(f, 0, "$-1");
}
