/* SPDX-License-Identifier: Apache-2.0 */
/* Questions about other hosts (query.h), and what a holder writes about itself for them (holder.h). */
#include <stdio.h>
#include <string.h>

#include "core/hosts/query.h"
#include "core_test.h"

static const char first[] = "_c_4c61f3c2-7f3c-4c11-9d3e-1c6f0f3a9b11-__WRIT__0000000003";
static const char second[] = "_c_4c61f3c2-7f3c-4c11-9d3e-1c6f0f3a9b12-__READ__0000000004";
static const char third[] = "_c_4c61f3c2-7f3c-4c11-9d3e-1c6f0f3a9b13-__WRIT__0000000009";
static const char of_beta[] = "1\nhost=beta\npid=42\nuid=7\ncommand=settle\nname=w1\ntoken=71680\nsince=99000\n"
			      "written=99500\n";

static int setup(void **state)
{
	struct fixture *f = fixture_new(false);

	f->conf.started_s = 100;
	return fixture_setup(f, 4, state);
}

SETUP(setup_standalone, true, 1)

/* The fixture's session starts a moment after the broker: `written` is about a second old. */
TEST(a_holder_elsewhere_is_read_from_its_znode)
{
	fixture_ask(f, 0, "HOLDERS a");
	assert_false(fixture_op(f, EFFECT_ZK_LIST, "/lb/a")->effect.watch);
	fixture_answer_list(f, 1, 3, (const char *[]){ third, first, second });
	assert_false(fixture_op(f, EFFECT_ZK_GET, first)->effect.watch);
	fixture_answer_get(f, 70, 9, of_beta);
	fixture_answer_get(f, 71, 9, "1\nhost=gamma\n");
	fixture_expect(f, 0, "");
	fixture_answer_get(f, 72, 9, "1\nhost=delta\n");
	fixture_expect(f, 0, "*1 *28 $4 host $4 beta $6 client :0 $4 name $2 w1 $3 pid :42 $3 uid :7 $7 command $6 settle "
		    "$4 mode $9 exclusive $5 depth :0 $5 token :71680 $7 held_ms :500 $6 age_ms :500 $5 znode $58 "
		    "_c_4c61f3c2-7f3c-4c11-9d3e-1c6f0f3a9b11-__WRIT__0000000003 $8 lease_ms $-1 $4 data $0");
	fixture_no_op(f);
}

TEST(readers_before_the_first_writer_hold_together)
{
	static const char reader[] = "_c_4c61f3c2-7f3c-4c11-9d3e-1c6f0f3a9b12-__READ__0000000002";

	fixture_ask(f, 0, "HOLDERS a");
	fixture_answer_list(f, 1, 3, (const char *[]){ third, reader, second });
	fixture_answer_get(f, 70, 9, "1\nhost=beta\n");
	fixture_answer(f, ZK_NONODE); /* it left meanwhile */
	fixture_answer_get(f, 72, 9, "1\nhost=delta\n");
	fixture_expect(f, 0, "*1 *28 $4 host $4 beta $6 client :0 $4 name $0  $3 pid :0 $3 uid :0 $7 command $0  "
		    "$4 mode $6 shared $5 depth :0 $5 token :0 $7 held_ms :-1 $6 age_ms :0 $5 znode $58 "
		    "_c_4c61f3c2-7f3c-4c11-9d3e-1c6f0f3a9b12-__READ__0000000002 $8 lease_ms $-1 $4 data $0");
}

TEST(accounts_ask_other_hosts_in_turn_and_operators_first)
{
	static const char *const order[] = { "/lb/l4", "/lb/l5", "/lb/l6", "/lb/l7", "/lb/l11", "/lb/l8", "/lb/l10", "/lb/l9" };

	for (uint32_t conn = 4; conn <= 11; conn++) {
		fixture_connect_as(f, conn, conn < 10 ? 1000 : 2000, (struct slice){ 0 }, conn == 11);
		fixture_ask(f, conn, fixture_words(f, "HOLDERS l%u", conn));
	}
	for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++)
		fixture_serve_list(f, order[i], 0, NULL);
	fixture_no_op(f);
}

TEST(the_queue_is_that_of_all_hosts)
{
	char queue[1024];

	fixture_join(f, 0, "LOCK a");
	fixture_answer_list(f, 1, 2, (const char *[]){ f->znode, first });
	fixture_refuse_own(f);
	fixture_answer_get(f, 70, 9, of_beta); /* the watch */
	fixture_ask(f, 1, "QUEUE a");
	fixture_answer_list(f, 1, 4, (const char *[]){ f->znode, first, second, third });
	fixture_answer_get(f, 70, 9, of_beta);
	fixture_answer_get(f, 71, 9, "1\nhost=gamma\n");
	fixture_answer_get(f, 72, 9, "1\nhost=delta\n");
	snprintf(queue, sizeof(queue),
		       "*3 *20 $4 host $5 gamma $6 client :0 $4 name $0  $3 pid :0 $3 uid :0 $7 command $0  "
		       "$4 mode $6 shared $9 waited_ms :-1 $8 position :1 $5 znode $58 "
		       "_c_4c61f3c2-7f3c-4c11-9d3e-1c6f0f3a9b12-__READ__0000000004 "
		       "*20 $4 host $5 alpha $6 client :1 $4 name $0  $3 pid :100 $3 uid :1000 $7 command $4 test "
		       "$4 mode $9 exclusive $9 waited_ms :0 $8 position :2 $5 znode $58 "
		       "%s "
		       "*20 $4 host $5 delta $6 client :0 $4 name $0  $3 pid :0 $3 uid :0 $7 command $0  "
		       "$4 mode $9 exclusive $9 waited_ms :-1 $8 position :3 $5 znode $58 "
		       "_c_4c61f3c2-7f3c-4c11-9d3e-1c6f0f3a9b13-__WRIT__0000000009",
		 f->znode);
	fixture_expect(f, 1, queue);
	fixture_ask(f, 1, "WHY a");
	fixture_answer_list(f, 1, 2, (const char *[]){ f->znode, first });
	fixture_answer_get(f, 70, 9, of_beta);
	fixture_expect(f, 1,
		       "*16 $3 why $60 held by host beta, pid 42 (w1), for 500 ms, as of 500 ms ago $5 state $7 waiting "
		       "$8 position :0 $7 waiters :1 $12 hosts_before :1 $13 hosts_waiting :0 $9 delegated :0 $7 holders *1 "
		       "*28 $4 host $4 beta $6 client :0 $4 name $2 w1 $3 pid :42 $3 uid :7 $7 command $6 settle "
		       "$4 mode $9 exclusive $5 depth :0 $5 token :71680 $7 held_ms :500 $6 age_ms :500 $5 znode $58 "
		       "_c_4c61f3c2-7f3c-4c11-9d3e-1c6f0f3a9b11-__WRIT__0000000003 $8 lease_ms $-1 $4 data $0");
}

TEST(an_exclusive_holder_here_is_told_without_asking)
{
	fixture_held(f, f->znode);
	fixture_ask(f, 1, "HOLDERS a");
	fixture_no_op(f);
	fixture_ask(f, 2, "WHY a");
	fixture_answer_list(f, 1, 1, (const char *[]){ f->znode });
	fixture_no_op(f);
}

TEST(without_a_connection_the_answer_tells_what_is_known_here)
{
	fixture_ask(f, 0, "HOLDERS a");
	fixture_ask(f, 1, "HOSTS");
	fixture_simple(f, EVENT_ZK_SUSPENDED, 0);
	fixture_expect(f, 0, "-UNAVAILABLE ZooKeeper cannot be asked what other hosts do");
	fixture_expect(f, 1, "-UNAVAILABLE there is no connection to ZooKeeper, which knows the hosts");
	fixture_say(f, 0, "QUEUE a", "-UNAVAILABLE ZooKeeper cannot be asked what other hosts do");
	fixture_say(f, 0, "HOSTS", "-UNAVAILABLE there is no connection to ZooKeeper, which knows the hosts");
	fixture_say(f, 0, "WHY a",
		    "*16 $3 why $74 there is no connection to ZooKeeper: the state of other hosts is not known $5 state $4 none "
		    "$8 position :0 $7 waiters :0 $12 hosts_before :0 $13 hosts_waiting :0 $9 delegated :0 $7 holders *0");
}

static void expect_why(struct fixture *f, uint32_t conn, const char *why)
{
	char part[256];

	snprintf(part, sizeof(part), "\r\nwhy\r\n$%zu\r\n%s\r\n", strlen(why), why);
	fixture_expect_part(f, conn, part);
}

/* Either would be half of the answer: waiting for the holder to let go would not be enough. */
TEST(who_holds_it_and_what_else_keeps_it_are_both_told)
{
	fixture_held(f, f->znode);
	fixture_pass(f, 20);
	fixture_ask(f, 2, "WHY a");
	fixture_simple(f, EVENT_ZK_SUSPENDED, 0);
	expect_why(f, 2, "held on this host, pid 100 (test), for 20 ms; there is no connection to ZooKeeper: the state "
			 "of other hosts is not known");
	fixture_ask(f, 2, "WHY nobodys");
	expect_why(f, 2, "there is no connection to ZooKeeper: the state of other hosts is not known");
	/* Elsewhere: its data are read, and then the daemon is told to stop. */
	fixture_reconnected(f);
	fixture_answer_session(f);
	fixture_ask(f, 2, "WHY c");
	fixture_answer_list(f, 1, 1, (const char *[]){ first });
	fixture_simple(f, EVENT_STOP, 0);
	fixture_answer_get(f, 70, 9, "1\nhost=beta\npid=42\ncommand=settle\n");
	expect_why(f, 2, "held by host beta, pid 42 (settle); this daemon is stopping and grants nothing");
}

/* An obstacle is told once, whoever's znode is the first. */
TEST(what_keeps_our_own_znode_is_told_once)
{
	fixture_join(f, 0, "LOCK a");
	fixture_ask(f, 1, "WHY a");
	fixture_op(f, EFFECT_ZK_LIST, "/lb/a");
	f->first_op++; /* the claim's own list stays open */
	fixture_simple(f, EVENT_STOP, 0);
	fixture_answer_list(f, 1, 1, (const char *[]){ f->znode });
	expect_why(f, 1, "this daemon is stopping and grants nothing");
}

TEST(what_zookeeper_refuses_is_said)
{
	/* One contender that may not be read is a contender all the same. */
	fixture_ask(f, 0, "HOLDERS a");
	fixture_answer_list(f, 1, 1, (const char *[]){ first });
	fixture_answer(f, ZK_REFUSED);
	fixture_expect(f, 0, "*1 *28 $4 host $0  $6 client :0 $4 name $0  $3 pid :0 $3 uid :0 $7 command $0  "
		    "$4 mode $9 exclusive $5 depth :0 $5 token :0 $7 held_ms :-1 $6 age_ms :0 "
		    "$5 znode $58 _c_4c61f3c2-7f3c-4c11-9d3e-1c6f0f3a9b11-__WRIT__0000000003 $8 lease_ms $-1 $4 data $0");
	fixture_ask(f, 0, "HOLDERS a");
	fixture_answer(f, ZK_REFUSED);
	fixture_expect(f, 0, "-UNAVAILABLE ZooKeeper refuses to show the lock's directory");
}

/* 2^63 is no time of any clock. */
TEST(numbers_of_others_are_not_believed)
{
	fixture_ask(f, 0, "WHY a");
	fixture_answer_list(f, 1, 1, (const char *[]){ first });
	fixture_answer_get(f, 70, 9, "1\nhost=beta\npid=42\nsince=-9223372036854775808\nwritten=9223372036854775807\n");
	fixture_expect_part(f, 0, "held by host beta, pid 42 ()\r\n");
}

TEST(few_ask_at_a_time_and_data_are_cut)
{
	static char data[100000];

	memset(data, 'x', sizeof(data) - 1);
	memcpy(data, "1\nhost=beta\n", 12);
	for (uint32_t conn = 4; conn < 4 + QUERY_ACTIVE_MAX + 1; conn++) {
		fixture_connect(f, conn);
		fixture_ask(f, conn, "HOLDERS a");
	}
	assert_int_equal(f->end_op - f->first_op, QUERY_ACTIVE_MAX);
	fixture_answer_list(f, 1, 0, NULL);
	fixture_expect(f, 4, "*0");
	assert_int_equal(f->end_op - f->first_op, QUERY_ACTIVE_MAX);
	fixture_answer_list(f, 1, 1, (const char *[]){ first });
	for (int i = 0; i < QUERY_ACTIVE_MAX - 1; i++)
		fixture_answer_list(f, 1, 0, NULL);
	fixture_serve_get(f, first, 70, 9, data);
	assert_true(f->replies[5].len < 1000);
	fixture_no_op(f);
}

TEST(a_client_may_go_while_it_asks)
{
	fixture_ask(f, 0, "HOLDERS a");
	fixture_ask(f, 1, "HOLDERS a");
	fixture_answer_list(f, 1, 1, (const char *[]){ first });
	fixture_simple(f, EVENT_CLIENT_GONE, 0);
	fixture_answer_list(f, 1, 1, (const char *[]){ first });
	fixture_answer_get(f, 70, 9, of_beta);
	fixture_simple(f, EVENT_CLIENT_GONE, 1);
	fixture_answer_get(f, 70, 9, of_beta);
	fixture_no_op(f);
	fixture_connect(f, 0);
	fixture_say(f, 0, "PING", "+PONG");
}

/* The adapter tells what has become of the one that connected, and of the one that it told of. */
static void processes(struct fixture *f, uint32_t pid, bool peer_ended, bool child_ended)
{
	fixture_event(f, &(struct event){ .type = EVENT_CLIENT_PROCESS,
					  .process = { pid, SLICE("two words"), peer_ended, child_ended } });
}

static void expect_shown(struct fixture *f, const char *holder)
{
	char sentence[64];

	snprintf(sentence, sizeof(sentence), "held on this host, %s, for 0 ms", holder);
	fixture_say_part(f, 0, "WHY a", sentence);
}

ALONE(who_inherited_is_shown_when_who_connected_has_ended)
{
	fixture_say(f, 0, "LOCK a", ":1024");
	fixture_say(f, 0, "CLIENT SETINFO CHILD x", "-ERR CHILD takes the pid of a process, or 0");
	fixture_say(f, 0, "CLIENT SETINFO CHILD 2147483648", "-ERR CHILD takes the pid of a process, or 0");
	fixture_say(f, 0, "CLIENT SETINFO CHILD 77", "+OK");
	expect_shown(f, "pid 100 (test)");
	processes(f, 77, false, false);
	expect_shown(f, "pid 100 (test)");
	processes(f, 78, true, false);
	expect_shown(f, "pid 100 (test)");
	processes(f, 77, true, false);
	expect_shown(f, "pid 77 (two?words)");
	processes(f, 77, true, true);
	expect_shown(f, "inherited");
	fixture_say(f, 0, "CLIENT SETINFO CHILD 0", "+OK");
	expect_shown(f, "pid 100 (test)");
	fixture_say(f, 0, "CLIENT SETINFO CHILD 79", "+OK");
	processes(f, 77, true, true);
	expect_shown(f, "pid 100 (test)");
}

TEST(hosts_are_listed_with_what_they_announce)
{
	fixture_ask(f, 0, "HOSTS");
	fixture_serve_list(f, "/lb/.hosts", 2, (const char *[]){ "beta", "alpha" });
	fixture_serve_get(f, "/lb/.hosts/alpha", 70, SESSION,
			  "1\nhost=alpha\npid=7\nboot_id=b\nstarted=100\nversion=test\ntick_ms=2000\n");
	fixture_answer_get(f, 71, 9, "");
	fixture_expect(f, 0,
		       "*2 *16 $4 host $5 alpha $3 pid :7 $7 version $4 test $7 started :100 $7 tick_ms :2000 $7 boot_id $1 b "
		       "$7 session $18 0x1000abcdef012345 $4 self :1 "
		       "*16 $4 host $4 beta $3 pid :0 $7 version $0  $7 started :0 $7 tick_ms :0 $7 boot_id $0  "
		       "$7 session $18 0x0000000000000009 $4 self :0");
}

TEST(at_most_so_many_are_read_and_few_at_a_time)
{
	static const char begin[] = "_c_4c61f3c2-7f3c-4c11-9d3e-1c6f0f3a9b11-__WRIT__";
	int gets = 0;

	fixture_ask(f, 0, "HOLDERS a");
	fixture_answer_list(f, 1, QUERY_CHILDREN_MAX + 1, fixture_numbered(begin, 10, QUERY_CHILDREN_MAX + 1));
	while (fixture_is_open(f)) {
		assert_true(f->end_op - f->first_op <= QUERY_READS_MAX);
		fixture_answer_get(f, 70, 9, "1\nhost=beta\n");
		gets++;
	}
	assert_int_equal(gets, QUERY_CHILDREN_MAX);
	assert_true(f->replies[0].len > 0);
}

ALONE(standalone_asks_nobody)
{
	fixture_say(f, 0, "HOSTS", "*0");
	fixture_say(f, 0, "HOLDERS a", "*0");
	fixture_say(f, 0, "WHY a",
		    "*16 $3 why $52 nobody holds it and nobody on this host waits for it $5 state $4 none $8 position :0 "
		    "$7 waiters :0 $12 hosts_before :0 $13 hosts_waiting :0 $9 delegated :0 $7 holders *0");
	/* HOSTS has no name that could be one of the semaphores'. */
	fixture_say(f, 0, "ACQUIRE s LIMIT 1", ":1");
	fixture_say(f, 0, "HOSTS", "*0");
}

/* Somebody waits elsewhere, as the children watch tells after a second. */
static void held_and_wanted(struct fixture *f)
{
	fixture_held(f, f->znode);
	fixture_pass(f, 1000);
	fixture_serve_list(f, "/lb/a", 2, (const char *[]){ f->znode, third });
	fixture_serve_get(f, f->znode, 77, SESSION, "");
}

TEST(a_holder_writes_about_itself_once_somebody_elsewhere_waits)
{
	const struct fixture_op *op;

	held_and_wanted(f);
	op = fixture_op(f, EFFECT_ZK_SET, f->znode);
	assert_string_equal(op->data, "1\nhost=alpha\npid=100\nuid=1000\ncommand=test\nname=\nmode=exclusive\ntoken=78848\n"
				      "holders=1\nsince=100000\nwritten=101000\n");
	fixture_answer(f, ZK_OK);
	/* That fires its own watch, which is set again; nothing is written twice. */
	fixture_watch_contender(f, ZK_WATCH_CHANGED, f->znode);
	fixture_serve_get(f, f->znode, 77, SESSION, "");
	fixture_pass(f, 400);
	fixture_no_op(f);
}

TEST(a_claim_is_written_at_most_once_a_second)
{
	held_and_wanted(f);
	fixture_serve(f, EFFECT_ZK_SET, f->znode, ZK_OK);
	fixture_ask(f, 1, "LOCK a");
	fixture_say(f, 0, "UNLOCK a", ":0");
	fixture_pass(f, 50);
	fixture_no_op(f); /* too young, and too soon after the last */
	fixture_pass(f, 949);
	fixture_no_op(f);
	fixture_pass(f, 1);
	fixture_op(f, EFFECT_ZK_SET, f->znode);
}
