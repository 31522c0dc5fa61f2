/* SPDX-License-Identifier: Apache-2.0 */
/* Who watches an election, and what each is told of its leader (observe.h). */
#include "core_test.h"

static const char fits[] = "1\nkind=election\nflavour=rw\n";
static const char other[] = "_c_4c61f3c2-7f3c-4c11-9d3e-1c6f0f3a9b11-__WRIT__0000000003";
static const char second[] = "_c_4c61f3c2-7f3c-4c11-9d3e-1c6f0f3a9b12-__WRIT__0000000004";
static const char of_beta[] = "1\nhost=beta\ntoken=71680\nleader=1\ndata=10.0.0.2:80\n";

SETUP(setup, false, 4)
SETUP(setup_standalone, true, 4)

/* OBSERVE by conn 0, which speaks RESP3, up to the read of the first. */
static void observe(struct fixture *f, const char *first)
{
	fixture_resp3(f, 0);
	fixture_say(f, 0, "OBSERVE a", "+OK");
	fixture_serve_get(f, "/lb/a", 1, 0, fits);
	assert_true(fixture_op(f, EFFECT_ZK_LIST, "/lb/a")->effect.watch);
	fixture_answer_list(f, 1, first ? 1 : 0, (const char *[]){ first });
}

/* The znodes of the election change. */
static void change(struct fixture *f, size_t count, const char *const *children)
{
	fixture_watch(f, ZK_WATCH_CHILDREN, "/lb/a");
	fixture_answer_list(f, 1, count, children);
}

TEST(an_observer_is_told_the_present_leader_and_each_change)
{
	observe(f, other);
	assert_true(fixture_op(f, EFFECT_ZK_GET, other)->effect.watch);
	fixture_answer_get(f, 70, 9, of_beta);
	fixture_expect_push(f, 0, ">5 $6 leader $1 a :71680 $4 beta $11 10.0.0.2:80");
	fixture_say(f, 0, "OBSERVE a", "+OK");
	fixture_no_op(f);
	/* Somebody joins behind it: looked at, and nothing to tell. */
	change(f, 2, (const char *[]){ other, second });
	fixture_answer_get(f, 70, 9, of_beta);
	fixture_expect_push(f, 0, "");
	fixture_no_op(f);
	/* It goes. The next stands, and is proclaimed a moment later. */
	fixture_watch(f, ZK_WATCH_CHILDREN, "/lb/a");
	fixture_watch_contender(f, ZK_WATCH_DELETED, other);
	fixture_answer_list(f, 1, 1, (const char *[]){ second });
	fixture_answer_get(f, 71, 9, "1\nhost=gamma\n");
	fixture_expect_push(f, 0, ">5 $6 leader $1 a :0 $0  $0");
	fixture_watch_contender(f, ZK_WATCH_CHANGED, second);
	fixture_answer_list(f, 1, 1, (const char *[]){ second });
	fixture_answer_get(f, 71, 9, "1\nhost=gamma\ntoken=72704\nleader=1\ndata=g\n");
	fixture_expect_push(f, 0, ">5 $6 leader $1 a :72704 $5 gamma $1 g");
	fixture_say(f, 0, "UNOBSERVE a", ":1");
	fixture_say(f, 0, "UNOBSERVE a", ":0");
	fixture_watch(f, ZK_WATCH_CHILDREN, "/lb/a");
	fixture_no_op(f);
}

TEST(what_changes_while_the_first_is_read_is_looked_at)
{
	observe(f, other);
	fixture_watch(f, ZK_WATCH_CHILDREN, "/lb/a");
	fixture_answer_get(f, 70, 9, of_beta);
	fixture_expect_push(f, 0, ">5 $6 leader $1 a :71680 $4 beta $11 10.0.0.2:80");
	fixture_answer_list(f, 1, 1, (const char *[]){ second });
	fixture_answer(f, ZK_NONODE);
	fixture_answer_list(f, 1, 0, NULL);
	fixture_expect_push(f, 0, ">5 $6 leader $1 a :0 $0  $0");
	fixture_no_op(f);
}

TEST(an_observer_makes_the_directory_it_watches)
{
	fixture_resp3(f, 0);
	fixture_say(f, 0, "OBSERVE a", "+OK");
	fixture_answer(f, ZK_NONODE);
	fixture_answer(f, ZK_NONODE);
	assert_string_equal(fixture_op(f, EFFECT_ZK_CREATE, "/lb/a")->data, fits);
	assert_int_equal(fixture_op(f, EFFECT_ZK_CREATE, "/lb/a")->effect.create, ZK_CONTAINER);
	fixture_answer(f, ZK_OK);
	fixture_answer_get(f, 1, 0, fits);
	fixture_answer_list(f, 1, 0, NULL);
	fixture_expect_push(f, 0, ">5 $6 leader $1 a :0 $0  $0");
	fixture_no_op(f);
}

TEST(a_directory_of_another_kind_ends_observing)
{
	fixture_say(f, 0, "OBSERVE a", "+OK");
	fixture_answer_get(f, 1, 0, LOCK_DATA);
	fixture_say(f, 0, "EVENTS",
		    "*4 $10 unobserved $1 a $8 MISMATCH $133 that name's directory in ZooKeeper is of kind \"lock\" "
		    "and flavour \"rw\", not \"election\" and \"rw\", until some minutes after its last use");
	fixture_say(f, 0, "UNOBSERVE a", ":0");
}

TEST(who_observes_again_is_not_told_that_an_earlier_time_is_over)
{
	fixture_say(f, 0, "OBSERVE a", "+OK");
	fixture_answer_get(f, 1, 0, LOCK_DATA);
	fixture_answer_list(f, 1, 0, NULL);
	fixture_say(f, 0, "OBSERVE ab", "+OK");
	fixture_serve_get(f, "/lb/ab", 1, 0, LOCK_DATA);
	/* As long as it is unread: another one's stays. */
	fixture_say(f, 0, "OBSERVE a", "+OK");
	fixture_say(f, 0, "EVENTS",
		    "*4 $10 unobserved $2 ab $8 MISMATCH $133 that name's directory in ZooKeeper is of kind \"lock\" "
		    "and flavour \"rw\", not \"election\" and \"rw\", until some minutes after its last use");
	fixture_say(f, 0, "EVENTS WAIT 0", "*-1");
	fixture_say(f, 0, "UNOBSERVE a", ":1");
}

TEST(a_reconnection_is_followed_by_a_look)
{
	observe(f, other);
	fixture_answer_get(f, 70, 9, of_beta);
	fixture_expect_push(f, 0, ">5 $6 leader $1 a :71680 $4 beta $11 10.0.0.2:80");
	fixture_simple(f, EVENT_ZK_SUSPENDED, 0);
	fixture_zk_connected(f, SESSION);
	/* Not before a write was answered: an isolated server would show what is no more. */
	fixture_op(f, EFFECT_ZK_SET, "/.hosts/alpha");
	assert_int_equal(f->end_op - f->first_op, 1);
	fixture_answer(f, ZK_OK);
	fixture_answer_list(f, 1, 1, (const char *[]){ other });
	fixture_answer_get(f, 70, 9, of_beta);
	fixture_expect_push(f, 0, "");
	fixture_no_op(f);
}

TEST(a_slow_reader_is_told_the_latest)
{
	observe(f, other);
	fixture_answer_get(f, 70, 9, of_beta);
	fixture_say(f, 1, "OBSERVE a", "+OK");
	change(f, 0, NULL);
	fixture_say(f, 1, "EVENTS", "*5 $6 leader $1 a :0 $0  $0");
	fixture_say(f, 1, "EVENTS WAIT 0", "*-1");
	/* One that came and went while nobody read is not told at all. */
	change(f, 1, (const char *[]){ second });
	fixture_answer_get(f, 71, 9, "1\nhost=gamma\ntoken=72704\nleader=1\ndata=g\n");
	change(f, 0, NULL);
	fixture_say(f, 1, "EVENTS WAIT 0", "*-1");
	/* What is kept goes with the change to pushes. */
	change(f, 1, (const char *[]){ second });
	fixture_answer_get(f, 71, 9, "1\nhost=gamma\ntoken=72704\nleader=1\ndata=g\n");
	fixture_resp3(f, 1);
	fixture_expect_push(f, 1, ">5 $6 leader $1 a :72704 $5 gamma $1 g");
	/* RESET observes no more. */
	fixture_say(f, 1, "RESET", "+RESET");
	fixture_say(f, 1, "UNOBSERVE a", ":0");
}

/* What one has not read is its own: who has read is not told the same again, however often it is looked. */
TEST(who_has_read_is_told_nothing_because_another_has_not)
{
	observe(f, other);
	fixture_say(f, 1, "OBSERVE a", "+OK");
	fixture_say(f, 2, "OBSERVE a", "+OK");
	fixture_answer_get(f, 70, 9, of_beta);
	fixture_expect_push(f, 0, ">5 $6 leader $1 a :71680 $4 beta $11 10.0.0.2:80");
	fixture_say(f, 1, "EVENTS", "*5 $6 leader $1 a :71680 $4 beta $11 10.0.0.2:80");
	for (int look = 0; look < 2; look++) {
		change(f, 2, (const char *[]){ other, second });
		fixture_answer_get(f, 70, 9, of_beta);
		fixture_expect_push(f, 0, "");
		fixture_say(f, 1, "EVENTS WAIT 0", "*-1");
	}
	/* Nor one that goes and comes back while nobody reads; who has read nothing is told it once. */
	change(f, 0, NULL);
	fixture_expect_push(f, 0, ">5 $6 leader $1 a :0 $0  $0");
	change(f, 1, (const char *[]){ other });
	fixture_answer_get(f, 70, 9, of_beta);
	fixture_expect_push(f, 0, ">5 $6 leader $1 a :71680 $4 beta $11 10.0.0.2:80");
	fixture_say(f, 1, "EVENTS WAIT 0", "*-1");
	fixture_say(f, 2, "EVENTS WAIT 0", "*5 $6 leader $1 a :71680 $4 beta $11 10.0.0.2:80");
	fixture_say(f, 2, "EVENTS WAIT 0", "*-1");
}

TEST(observers_are_limited)
{
	fixture_operators(f, false);
	f->conf.limits.requests_per_client = 2;
	fixture_say(f, 0, "OBSERVE a", "+OK");
	fixture_say(f, 0, "OBSERVE b", "+OK");
	fixture_say(f, 0, "OBSERVE c", "-LIMIT this client already observes as many elections as one client may "
				       "(limits.requests_per_client)");
	f->conf.limits.session_path_bytes = 200;
	fixture_say(f, 1, "OBSERVE a", "+OK"); /* the same watches */
	fixture_say(f, 1, "OBSERVE c",
		    "-LIMIT user 1000 uses 164 of 196 allowed bytes of watched znode paths (limits.session_path_bytes, "
		    "limits.user_share): release some locks before you ask for more");
}

ALONE(standalone_elections_tell_their_observers)
{
	fixture_resp3(f, 0);
	fixture_say(f, 0, "OBSERVE a", "+OK");
	fixture_expect_push(f, 0, ">5 $6 leader $1 a :0 $0  $0");
	fixture_say(f, 1, "CAMPAIGN a DATA x", ":1024");
	fixture_expect_push(f, 0, ">5 $6 leader $1 a :1024 $5 alpha $1 x");
	fixture_ask(f, 2, "CAMPAIGN a DATA y");
	fixture_simple(f, EVENT_CLIENT_GONE, 1);
	fixture_expect(f, 2, ":1025");
	fixture_expect_push(f, 0, ">5 $6 leader $1 a :1025 $5 alpha $1 y");
	fixture_say(f, 3, "LEADER a",
		    "*20 $4 host $5 alpha $4 data $1 y $5 token :1025 $6 client :3 $4 name $0  $3 pid :102 $3 uid :1000 "
		    "$7 command $4 test $7 held_ms :0 $5 znode $0");
	fixture_say(f, 2, "RESIGN a", ":1");
	fixture_expect_push(f, 0, ">5 $6 leader $1 a :0 $0  $0");
	fixture_say(f, 3, "LEADER a", "$-1");
}
