/* SPDX-License-Identifier: Apache-2.0 */
/* LOCKS ... ALL: the locks of all hosts, page by page (scan.h). */
#include <stdio.h>
#include <string.h>

#include "core/hosts/scan.h"
#include "core/hosts/query.h"
#include "core_test.h"

static const char writer[] = "_c_4c61f3c2-7f3c-4c11-9d3e-1c6f0f3a9b11-__WRIT__0000000003";
static const char reader[] = "_c_4c61f3c2-7f3c-4c11-9d3e-1c6f0f3a9b12-__READ__0000000002";
static const char later[] = "_c_4c61f3c2-7f3c-4c11-9d3e-1c6f0f3a9b13-__WRIT__0000000009";
static const char of_beta[] = "1\nhost=beta\npid=42\nuid=7\ncommand=settle\nname=w1\ntoken=71680\nsince=99000\n"
			      "written=99500\n";

static int setup(void **state)
{
	struct fixture *f = fixture_new(false);

	f->conf.started_s = 100;
	return fixture_setup(f, 4, state);
}

static int setup_pieces(void **state)
{
	struct fixture *f = fixture_new(false);

	f->conf.all_in_pieces = true;
	return fixture_setup(f, 4, state);
}

static int setup_standalone(void **state)
{
	struct fixture *f = fixture_new(true);

	f->conf.all_in_pieces = true;
	f->conf.limits.locks = f->conf.limits.grants = f->conf.limits.grants_per_client = 4096;
	f->conf.limits.memory_bytes = 10000000;
	return fixture_setup(f, 3, state);
}

/* The list of the root, then of one directory after the other: that writer of beta holds each. */
static void answer_names(struct fixture *f, size_t count, const char *const *names)
{
	fixture_serve_list(f, "/lb", count, names);
	fixture_pieces(f);
}

static void answer_held(struct fixture *f, const char *path)
{
	fixture_serve_list(f, path, 1, (const char *[]){ writer });
	fixture_serve_get(f, writer, 70, 9, "1\nhost=beta\n");
	fixture_pieces(f);
}

TEST(rows_have_holders_and_waiters_of_all_hosts)
{
	fixture_ask(f, 0, "LOCKS * ALL");
	assert_false(fixture_op(f, EFFECT_ZK_LIST, "/lb")->effect.watch);
	/* Neither the broker's own, nor what is no lock's, nor the lock that nobody has: that has no row. */
	fixture_answer_list(f, 1, 5, (const char *[]){ "b", ".mail", "a%2F1", "not%2a", "idle" });
	fixture_serve_list(f, "/lb/a%2F1", 3, (const char *[]){ later, reader, writer });
	fixture_serve_get(f, reader, 70, 9, of_beta);
	fixture_serve_list(f, "/lb/b", 1, (const char *[]){ writer });
	fixture_serve_get(f, writer, 71, 9, "1\nhost=gamma\nkind=election\n");
	fixture_serve_list(f, "/lb/idle", 0, NULL);
	fixture_no_op(f);
	fixture_expect(f, 0,
		       "*4 $4 next $-1 $5 locks *2 "
		       "*16 $4 name $3 a/1 $4 kind $4 lock $5 limit :0 $7 waiters :0 $13 hosts_waiting :2 $4 more :0 "
		       "$5 known :1 $7 holders *1 "
		       "*28 $4 host $4 beta $6 client :0 $4 name $2 w1 $3 pid :42 $3 uid :7 $7 command $6 settle "
		       "$4 mode $6 shared $5 depth :0 $5 token :71680 $7 held_ms :500 $6 age_ms :500 $5 znode $58 "
		       "_c_4c61f3c2-7f3c-4c11-9d3e-1c6f0f3a9b12-__READ__0000000002 $8 lease_ms $-1 $4 data $0  "
		       "*16 $4 name $1 b $4 kind $8 election $5 limit :0 $7 waiters :0 $13 hosts_waiting :0 $4 more :0 "
		       "$5 known :1 $7 holders *1 "
		       "*28 $4 host $5 gamma $6 client :0 $4 name $0  $3 pid :0 $3 uid :0 $7 command $0  "
		       "$4 mode $9 exclusive $5 depth :0 $5 token :0 $7 held_ms :-1 $6 age_ms :0 $5 znode $58 "
		       "_c_4c61f3c2-7f3c-4c11-9d3e-1c6f0f3a9b11-__WRIT__0000000003 $8 lease_ms $-1 $4 data $0");
}

TEST(what_this_host_has_is_shown_as_it_knows_it)
{
	fixture_held(f, f->znode);
	fixture_ask(f, 1, "LOCK a");
	fixture_ask(f, 2, "LOCKS * ALL");
	answer_names(f, 1, (const char *[]){ "a" });
	/* An old list: beta has gone, since this host holds it alone. Who waits elsewhere counts. */
	fixture_answer_list(f, 1, 3, (const char *[]){ reader, f->znode, later });
	fixture_answer_get(f, 70, 9, "1\nhost=beta\n");
	assert_true(fixture_has(f, 2, "\r\nlocks\r\n*1\r\n"));
	assert_true(fixture_has(f, 2, "waiters\r\n:1\r\n$13\r\nhosts_waiting\r\n:1\r\n"));
	fixture_expect_part(f, 2, "holders\r\n*1\r\n*28\r\n$4\r\nhost\r\n$5\r\nalpha\r\n$6\r\nclient\r\n:1\r\n");
}

TEST(the_permits_of_a_semaphore_are_read)
{
	static const char lease[] = "_c_4c61f3c2-7f3c-4c11-9d3e-1c6f0f3a9b11-lease-0000000003";
	static const char second[] = "_c_4c61f3c2-7f3c-4c11-9d3e-1c6f0f3a9b11-lease-0000000004";
	static const char mutex[] = "_c_4c61f3c2-7f3c-4c11-9d3e-1c6f0f3a9b11-lock-0000000005";
	static const char behind[] = "_c_4c61f3c2-7f3c-4c11-9d3e-1c6f0f3a9b11-lock-0000000006";

	fixture_ask(f, 0, "LOCKS * ALL");
	answer_names(f, 1, (const char *[]){ "s" });
	fixture_answer_list(f, 1, 2, (const char *[]){ "leases", "locks" });
	fixture_serve_get(f, "/lb/s", 1, 0, "1\nkind=semaphore\nlimit=2\n");
	fixture_serve_list(f, "/lb/s/leases", 2, (const char *[]){ second, lease });
	fixture_answer_get(f, 70, 9, "1\nhost=beta\nclient=5\nsince=5\n");
	fixture_answer_get(f, 70, 9, "1\nhost=beta\nclient=5\nsince=5\n");
	fixture_serve_list(f, "/lb/s/locks", 2, (const char *[]){ mutex, behind });
	fixture_no_op(f);
	assert_true(fixture_has(f, 0, "$1\r\ns\r\n$4\r\nkind\r\n$9\r\nsemaphore\r\n$5\r\nlimit\r\n:2\r\n"));
	assert_true(fixture_has(f, 0, "holders\r\n*1\r\n"));
	fixture_expect_part(f, 0, "depth\r\n:2\r\n");
}

static const struct broker_prefix prefixes[] = {
	{ "py/", FLAVOUR_KAZOO, "", 0 },
	{ "app/", FLAVOUR_MUTEX, "/app/locks", 0 },
	{ "k", FLAVOUR_KAZOO, "/kazoo", 0 },
	{ "k/", FLAVOUR_KAZOO, "/kazoo", 0 },
};

TEST(names_below_all_roots_are_in_one_order)
{
	static const char mutex[] = "_c_4c61f3c2-7f3c-4c11-9d3e-1c6f0f3a9b11-lock-0000000001";
	static const char kazoo[] = "4c61f3c27f3c4c119d3e1c6f0f3a9b11__lock__0000000001";

	f->conf.prefixes = prefixes;
	f->conf.prefix_count = 4;
	fixture_ask(f, 0, "LOCKS * ALL");
	answer_names(f, 4, (const char *[]){ "zebra", "app%2Fnot", "py%2Fx", "b" });
	fixture_serve_list(f, "/app/locks", 1, (const char *[]){ "orders" });
	fixture_serve_list(f, "/kazoo", 1, (const char *[]){ "1" });
	fixture_serve_list(f, "/kazoo", 1, (const char *[]){ "1" }); /* of the second prefix with that path */
	fixture_serve_list(f, "/app/locks/orders", 1, (const char *[]){ mutex });
	fixture_answer_get(f, 70, 9, "theirs");
	answer_held(f, "/lb/b");
	fixture_serve_list(f, "/kazoo/1", 1, (const char *[]){ kazoo });
	fixture_answer_get(f, 70, 9, "");
	fixture_serve(f, EFFECT_ZK_LIST, "/kazoo/1", ZK_NONODE);
	fixture_serve_list(f, "/lb/py%2Fx", 0, NULL);
	answer_held(f, "/lb/zebra");
	fixture_no_op(f);
	assert_true(fixture_has(f, 0, "\r\nlocks\r\n*4\r\n") && fixture_has(f, 0, "\r\napp/orders\r\n"));
	fixture_expect_part(f, 0, "\r\nk/1\r\n");
}

TEST(a_page_has_the_first_names_behind_the_given_one)
{
	static const char *const names[] = { "e", "c", "a", "d", "b", "bb" };

	fixture_ask(f, 0, "LOCKS * ALL COUNT 2 AFTER a");
	answer_names(f, 6, names);
	answer_held(f, "/lb/b");
	answer_held(f, "/lb/bb");
	fixture_expect_part(f, 0, "$4\r\nnext\r\n$2\r\nbb\r\n$5\r\nlocks\r\n*2\r\n");
	/* The last page, of exactly so many. */
	fixture_ask(f, 0, "LOCKS [a-c]* ALL AFTER b COUNT 2");
	answer_names(f, 6, names);
	answer_held(f, "/lb/bb");
	answer_held(f, "/lb/c");
	fixture_expect_part(f, 0, "$4\r\nnext\r\n$-1\r\n$5\r\nlocks\r\n*2\r\n");
	/* Names that nobody uses count for the page, so that it costs no more. */
	fixture_ask(f, 0, "LOCKS * ALL COUNT 1");
	answer_names(f, 6, names);
	fixture_answer(f, ZK_NONODE);
	fixture_pieces(f);
	fixture_expect(f, 0, "*4 $4 next $1 a $5 locks *0");
	fixture_ask(f, 0, "LOCKS * ALL AFTER e");
	answer_names(f, 6, names);
	fixture_expect(f, 0, "*4 $4 next $-1 $5 locks *0");
	fixture_no_op(f);
}

TEST_IN(a_page_in_pieces_has_the_first_names_behind_the_given_one, setup_pieces)
{
	a_page_has_the_first_names_behind_the_given_one_with(f);
}

TEST(no_page_has_more_than_a_thousand_names)
{
	static char texts[SCAN_COUNT_MAX + 1][8];
	static const char *names[SCAN_COUNT_MAX + 1];
	int lists = 0;

	for (int i = 0; i <= SCAN_COUNT_MAX; i++) {
		snprintf(texts[i], sizeof(texts[i]), "n%04d", (i * 5) % (SCAN_COUNT_MAX + 1));
		names[i] = texts[i];
	}
	fixture_ask(f, 0, "LOCKS * ALL COUNT 1000000");
	answer_names(f, SCAN_COUNT_MAX + 1, names);
	for (; fixture_is_open(f); lists++)
		fixture_answer(f, ZK_NONODE);
	assert_int_equal(lists, SCAN_COUNT_MAX);
	fixture_expect(f, 0, "*4 $4 next $5 n0999 $5 locks *0");
}

TEST(words_that_it_does_not_take)
{
	fixture_say(f, 0, "LOCKS * ALL COUNT 0", "-ERR COUNT takes a number, 1..1000000");
	fixture_say(f, 0, "LOCKS [a", "-ERR the pattern has a [ without its ]: a [ of a name is written as \\[");
	fixture_say(f, 0, "LOCKS [a ALL", "-ERR the pattern has a [ without its ]: a [ of a name is written as \\[");
	fixture_say(f, 0, "LOCKS * ALL AFTER .", "-ERR AFTER takes the name of a lock");
	fixture_say_begin(f, 0, "LOCKS * AFTER a", "-ERR syntax error in 'locks' command; ");
	fixture_no_op(f);
}

/* One more than that many reads, and one more than that many rows. */
TEST(the_holders_of_a_lock_have_a_bound)
{
	static const char begin[] = "_c_4c61f3c2-7f3c-4c11-9d3e-1c6f0f3a9b12-__READ__";

	for (int over = 0; over < 2; over++) {
		int count = SCAN_HOLDERS_MAX + over, gets = 0;

		fixture_ask(f, 0, "LOCKS * ALL");
		answer_names(f, 1, (const char *[]){ "a" });
		fixture_answer_list(f, 1, (size_t)count, fixture_numbered(begin, 10, count));
		for (; fixture_is_open(f); gets++)
			fixture_answer_get(f, 70, 9, "1\nhost=beta\n");
		assert_int_equal(gets, count);
		fixture_pieces(f);
		assert_true(fixture_has(f, 0, "holders\r\n*16\r\n"));
		fixture_expect_part(f, 0, over ? "more\r\n:1\r\n" : "more\r\n:0\r\n");
	}
}

TEST(no_more_znodes_of_a_lock_are_read_than_that)
{
	static const char begin[] = "_c_4c61f3c2-7f3c-4c11-9d3e-1c6f0f3a9b11-lease-";

	for (int over = 0; over < 2; over++) {
		int gets = 0, count = SCAN_READS_MAX + over;

		fixture_ask(f, 0, "LOCKS * ALL");
		answer_names(f, 1, (const char *[]){ "s" });
		fixture_answer_list(f, 1, 2, (const char *[]){ "leases", "locks" });
		fixture_answer_get(f, 1, 0, "1\nkind=semaphore\nlimit=100\n");
		fixture_answer_list(f, 1, (size_t)count, fixture_numbered(begin, 10, count));
		for (; fixture_oldest(f)->effect.type == EFFECT_ZK_GET; gets++)
			fixture_answer_get(f, 70, 9, "1\nhost=beta\nclient=5\nsince=5\n");
		assert_int_equal(gets, SCAN_READS_MAX);
		fixture_answer_list(f, 1, 0, NULL);
		fixture_pieces(f);
		assert_true(fixture_has(f, 0, "depth\r\n:64\r\n"));
		fixture_expect_part(f, 0, over ? "more\r\n:1\r\n" : "more\r\n:0\r\n");
	}
}

TEST(few_operations_are_open_and_others_have_their_turns)
{
	fixture_operators(f, false);
	for (uint32_t conn = 4; conn < 4 + QUERY_ACTIVE_MAX; conn++) {
		fixture_connect_as(f, conn, 1000, (struct slice){ 0 }, false);
		fixture_ask(f, conn, "LOCKS * ALL");
	}
	fixture_connect_as(f, 9, 2000, (struct slice){ 0 }, false);
	fixture_ask(f, 9, "HOLDERS x");
	assert_int_equal(f->end_op - f->first_op, 1);
	/* Its question comes before the second one of those. */
	fixture_answer_list(f, 1, 2, (const char *[]){ "a", "b" });
	assert_true(f->end_op - f->first_op <= QUERY_ACTIVE_MAX);
	while (f->replies[9].len == 0)
		fixture_answer_list(f, 1, 0, NULL);
	fixture_expect(f, 9, "*0");
	assert_true(f->replies[4].len == 0);
	while (fixture_is_open(f))
		fixture_answer_list(f, 1, 0, NULL);
	for (uint32_t conn = 4; conn < 4 + QUERY_ACTIVE_MAX; conn++)
		fixture_expect(f, conn, "*4 $4 next $-1 $5 locks *0");
}

TEST(no_connection_is_one_error)
{
	static const char told[] =
		"-UNAVAILABLE there is no connection to ZooKeeper, which knows the locks of all hosts";

	/* While a root is listed; while a lock is; between two pieces. */
	for (int when = 0; when < 3; when++) {
		fixture_ask(f, 0, "LOCKS * ALL");
		if (when == 1)
			answer_names(f, 1, (const char *[]){ "a" });
		else if (when == 2)
			fixture_answer_list(f, 1, 2, (const char *[]){ "a", "b" });
		fixture_simple(f, EVENT_ZK_SUSPENDED, 0);
		fixture_pieces(f);
		fixture_expect(f, 0, told);
		fixture_ask(f, 0, "LOCKS * ALL");
		fixture_pieces(f);
		fixture_expect(f, 0, told);
		fixture_reconnected(f);
		fixture_answer_session(f);
	}
}

TEST_IN(no_connection_is_one_error_in_pieces_too, setup_pieces)
{
	no_connection_is_one_error_with(f);
}

TEST(what_zookeeper_refuses_is_told)
{
	fixture_ask(f, 0, "LOCKS * ALL");
	fixture_answer(f, ZK_REFUSED);
	fixture_expect(f, 0, "-UNAVAILABLE ZooKeeper refuses to show the names of the locks");
	fixture_ask(f, 0, "LOCKS * ALL");
	answer_names(f, 1, (const char *[]){ "secret" });
	fixture_answer(f, ZK_REFUSED);
	assert_true(fixture_has(f, 0, "\r\nsecret\r\n"));
	fixture_expect_part(f, 0, "known\r\n:0\r\n$7\r\nholders\r\n*0\r\n");
}

TEST_IN(who_asked_goes, setup_pieces)
{
	/* While a root is listed, names are picked, a lock is listed, read, and shown. */
	for (int when = 0; when < 5; when++) {
		fixture_ask(f, 1, "LOCKS * ALL");
		if (when > 0)
			fixture_answer_list(f, 1, 2, (const char *[]){ "a", "b" });
		if (when > 1)
			fixture_pieces(f);
		if (when > 2)
			fixture_answer_list(f, 1, 1, (const char *[]){ writer });
		if (when > 3)
			fixture_answer_get(f, 70, 9, of_beta);
		assert_int_equal(broker_has_work(f->broker), when == 1 || when == 4);
		fixture_simple(f, EVENT_CLIENT_GONE, 1);
		assert_false(broker_has_work(f->broker));
		while (fixture_is_open(f))
			fixture_answer(f, ZK_OK);
		fixture_connect(f, 1);
	}
	fixture_say(f, 1, "PING", "+PONG");
}

/* In the next process, or in this one, if that one comes to nothing. */
TEST_IN(it_begins_anew_after_a_hand_over, setup_pieces)
{
	for (int way = 0; way < 8; way++) {
		int when = way % 4;

		fixture_ask(f, 0, "LOCKS ?? ALL AFTER aa COUNT 1");
		if (when > 0)
			fixture_answer_list(f, 1, 3, (const char *[]){ "aa", "bb", "cc" });
		if (when > 1)
			fixture_pieces(f);
		if (when > 2)
			fixture_answer_list(f, 1, 1, (const char *[]){ writer });
		fixture_event(f, &(struct event){ .type = EVENT_ZK_SUSPENDED, .zk_suspended = { .planned = true } });
		assert_false(broker_has_work(f->broker));
		if (way < 4)
			fixture_hand_over(f);
		f->first_op = f->end_op;
		fixture_reconnected(f);
		fixture_expect(f, 0, "");
		while (fixture_oldest(f)->effect.type != EFFECT_ZK_LIST || !strstr(fixture_oldest(f)->path, "/lb") ||
		       strlen(fixture_oldest(f)->path) != 3)
			fixture_answer(f, ZK_OK);
		answer_names(f, 4, (const char *[]){ "b", "aa", "bb", "cc" });
		answer_held(f, "/lb/bb");
		fixture_expect_part(f, 0, "$4\r\nnext\r\n$2\r\nbb\r\n$5\r\nlocks\r\n*1\r\n");
	}
}

/* 4096 bytes less 1024 have room for some rows: the page ends there, and the next one goes on with the lock without one. */
TEST(a_page_is_no_longer_than_an_answer_may_be)
{
	static const char *const names[] = { "a", "b", "c", "d", "e", "f", "g", "h", "i", "j" };
	char words[64] = "LOCKS * ALL", next[2] = "";
	int rows = 0, pages = 0;

	f->conf.limits.output_bytes = 4096;
	do {
		const char *at;

		fixture_ask(f, 0, words);
		answer_names(f, 10, names);
		while (fixture_is_open(f))
			answer_held(f, "");
		bytes_char(&f->replies[0], '\0');
		assert_true(f->replies[0].len < 4096);
		for (at = f->replies[0].data; (at = strstr(at, "$4\r\nkind\r\n")); at++)
			rows++;
		at = strstr(f->replies[0].data, "next\r\n$1\r\n");
		next[0] = at ? at[10] : '\0';
		snprintf(words, sizeof(words), "LOCKS * ALL AFTER %s", next);
		bytes_clear(&f->replies[0]);
		pages++;
	} while (*next);
	assert_true(pages > 1);
	assert_int_equal(rows, 10);
}

/* Names of 300 bytes; more than some 98,000 bytes besides what a small one needs are not to be had. */
TEST(the_memory_of_many_names_is_charged_and_has_a_limit)
{
	enum { MANY = 700 };
	const char *const *names = fixture_numbered("n", 299, MANY);

	fixture_ask(f, 0, "LOCKS n%0299d1 ALL");
	answer_names(f, 200, names);
	fixture_expect(f, 0, "*4 $4 next $-1 $5 locks *0");
	fixture_ask(f, 0, "LOCKS * ALL");
	answer_names(f, MANY, names);
	fixture_expect_begin(f, 0, "-LIMIT user ");
	fixture_no_op(f);
	fixture_say(f, 0, "PING", "+PONG");
}

TEST(no_pattern_is_too_much_work)
{
	enum { MANY = 600 };
	static char text[300];
	static const char *names[MANY];
	char words[200] = "LOCKS *";

	f->conf.limits.memory_bytes = 10000000;
	memset(text, 'a', sizeof(text) - 1);
	for (int i = 0; i < MANY; i++)
		names[i] = text;
	for (int i = 0; i < 150; i++)
		strcat(words, "a");
	strcat(words, "b ALL");
	fixture_ask(f, 0, words);
	answer_names(f, MANY, names);
	fixture_pieces(f);
	fixture_expect(f, 0, "*4 $4 next $-1 $5 locks *0");
}

/* ---- standalone ---- */

ALONE(standalone_it_is_this_hosts_own)
{
	for (int i = 0; i < 150; i++)
		fixture_ask(f, 0, fixture_words(f, "LOCK l%03d", i));
	bytes_clear(&f->replies[0]);
	fixture_say(f, 0, "ACQUIRE s LIMIT 3 COUNT 2", ":2");
	fixture_ask(f, 2, "LOCK l149");
	fixture_ask(f, 1, "LOCKS * ALL");
	fixture_expect(f, 1, "");
	fixture_pieces(f);
	fixture_expect_part(f, 1, "next\r\n$4\r\nl099\r\n$5\r\nlocks\r\n*100\r\n");
	fixture_ask(f, 1, "LOCKS * ALL AFTER l099");
	fixture_simple(f, EVENT_TIME, 0);
	fixture_hand_over(f);
	fixture_pieces(f);
	assert_true(fixture_has(f, 1, "next\r\n$-1\r\n$5\r\nlocks\r\n*51\r\n") && fixture_has(f, 1, "waiters\r\n:1\r\n"));
	fixture_expect_part(f, 1, "kind\r\n$9\r\nsemaphore\r\n$5\r\nlimit\r\n:3\r\n");
}
