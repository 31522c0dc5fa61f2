/* SPDX-License-Identifier: Apache-2.0 */
/* LOCKS ... ORDER: which locks it shows, how each stands, and what changes while the list is made. */
#include <stdio.h>
#include <string.h>

#include "core/command/list.h"
#include "core/port/work.h"
#include "core/state.h"
#include "delegation_fixture.h"
#include "core_test.h"

enum { LOCKS = 3 * WORK_TURN_STEPS, MANY = LIST_MOST + 100 };

static int setup(void **state)
{
	struct fixture *f = fixture_new(true);

	f->conf.limits.locks = f->conf.limits.grants = f->conf.limits.grants_per_client = 4096;
	f->conf.limits.output_bytes = f->conf.limits.memory_bytes = 8 << 20;
	return fixture_setup(f, 4, state);
}

static void lock_all(struct fixture *f, int first, int end)
{
	for (int i = first; i < end; i++)
		fixture_ask(f, 0, fixture_words(f, "LOCK l%04d", i));
	bytes_clear(&f->replies[0]);
}

/* The names in the answer to the client, in their order, each followed by a space. */
static void expect_names(struct fixture *f, uint32_t conn, const char *names)
{
	struct bytes found = { 0 };
	const char *at = f->replies[conn].data, *end = at + f->replies[conn].len;

	while ((at = memmem(at, end - at, "\r\n$4\r\nname\r\n$", 13))) {
		int len, skip;

		assert_int_equal(sscanf(at + 13, "%d\r\n%n", &len, &skip), 1);
		at += 13 + skip;
		/* The name of a holder follows the id of its client. */
		if (memcmp(at + len, "\r\n$5\r\nstate", 11) == 0) {
			bytes_append(&found, at, len);
			bytes_char(&found, ' ');
		}
	}
	bytes_char(&found, '\0');
	assert_string_equal(found.data, names);
	bytes_free(&found);
	bytes_clear(&f->replies[conn]);
}

static void expect_order(struct fixture *f, const char *words, const char *names)
{
	fixture_ask(f, 3, words);
	expect_names(f, 3, names);
}

/* b has waited for longest, c is waited for by most, d was granted most often. */
static void four_locks(struct fixture *f)
{
	for (int i = 0; i < 3; i++) {
		fixture_ask(f, 0, "LOCK d");
		fixture_ask(f, 0, "UNLOCK d");
	}
	fixture_ask(f, 0, "LOCK d");
	fixture_ask(f, 0, "LOCK c");
	fixture_ask(f, 0, "LOCK b DATA job");
	fixture_ask(f, 0, "LOCK a");
	fixture_ask(f, 1, "ENQUEUE b");
	fixture_pass(f, 1500);
	fixture_ask(f, 1, "ENQUEUE c");
	fixture_ask(f, 2, "ENQUEUE c");
	fixture_pass(f, 500);
	bytes_clear(&f->replies[0]);
	bytes_clear(&f->replies[1]);
	bytes_clear(&f->replies[2]);
}

TEST(each_order_begins_with_another_lock)
{
	four_locks(f);
	expect_order(f, "LOCKS * ORDER wait", "b c a d ");
	expect_order(f, "LOCKS * ORDER waiters", "c b a d ");
	expect_order(f, "LOCKS * COUNT 100 ORDER GRANTS", "d a b c ");
	expect_order(f, "LOCKS * ORDER name", "a b c d ");
	expect_order(f, "LOCKS [bd] ORDER wait COUNT 9", "b d ");
	expect_order(f, "LOCKS x ORDER wait", "");
}

TEST(only_the_first_ones_are_shown)
{
	four_locks(f);
	expect_order(f, "LOCKS * ORDER wait COUNT 1", "b ");
	expect_order(f, "LOCKS * ORDER wait COUNT 3", "b c a ");
	expect_order(f, "LOCKS * ORDER waiters COUNT 2", "c b ");
	expect_order(f, "LOCKS * ORDER grants COUNT 1", "d ");
	expect_order(f, "LOCKS * ORDER name COUNT 2", "a b ");
}

TEST(a_row_has_the_wait_the_grants_and_the_first_holder)
{
	four_locks(f);
	fixture_say(f, 3, "LOCKS * ORDER wait COUNT 1",
		    "*1 *18 $4 name $1 b $5 state $5 local $7 holders :1 $7 waiters :1 $5 token :6144 $9 delegated :0 "
		    "$9 waited_ms :2000 $6 grants :1 $5 first *28 $4 host $5 alpha $6 client :1 $4 name $0  $3 pid :100 "
		    "$3 uid :1000 $7 command $4 test $4 mode $9 exclusive $5 depth :1 $5 token :6144 $7 held_ms :2000 "
		    "$6 age_ms :0 $5 znode $0  $8 lease_ms $-1 $4 data $3 job");
	fixture_say(f, 0, "UNLOCK b", ":0");
	fixture_say_part(f, 3, "LOCKS b ORDER wait", "waited_ms\r\n:0\r\n$6\r\ngrants\r\n:2\r\n");
}

TEST_IN(a_delegated_lock_that_is_free_has_no_first_holder, delegation_setup)
{
	give_page(f, 0);
	fixture_say(f, 0, "LOCK a SLOT 1", ":1024");
	assert_true(is_delegated(0, 1));
	fixture_ask(f, 1, "LOCKS * ORDER wait");
	assert_true(fixture_has(f, 1, "holders\r\n:1\r\n"));
	fixture_expect_part(f, 1, "$5\r\nfirst\r\n*28\r\n");
	assert_true(leave(0, 1));
	fixture_ask(f, 1, "LOCKS * ORDER wait");
	assert_true(fixture_has(f, 1, "holders\r\n:0\r\n"));
	fixture_expect_part(f, 1, "$5\r\nfirst\r\n$-1\r\n");
}

static size_t rows(struct fixture *f, const char *words)
{
	int count = -1;

	fixture_ask(f, 1, words);
	fixture_pieces(f);
	sscanf(f->replies[1].data, "*%d", &count);
	bytes_clear(&f->replies[1]);
	return count;
}

TEST(a_page_has_a_hundred_rows_unless_asked_and_a_thousand_at_most)
{
	lock_all(f, 0, MANY);
	assert_int_equal(rows(f, "LOCKS * ORDER name"), 100);
	assert_int_equal(rows(f, "LOCKS * ORDER name COUNT 999"), 999);
	assert_int_equal(rows(f, "LOCKS * ORDER name COUNT 1000"), 1000);
	assert_int_equal(rows(f, "LOCKS * ORDER name COUNT 1001"), 1000);
	assert_int_equal(rows(f, "LOCKS * ORDER name COUNT 1000000"), 1000);
	assert_int_equal(rows(f, "LOCKS"), MANY);
}

/* The later of two rows with a long name takes the place of one with a short name. */
TEST(names_of_any_length_take_places)
{
	char names[1100] = "";

	for (int i = 0; i < 3; i++)
		fixture_ask(f, 0, fixture_words(f, "LOCK %d%0*d", 9 - i, i ? 511 : 1, 0));
	bytes_clear(&f->replies[0]);
	snprintf(names, sizeof(names), "7%0511d 8%0511d ", 0, 0);
	expect_order(f, "LOCKS * ORDER name COUNT 2", names);
}

/* ---- in pieces ---- */

/* Where it has most grants. */
TEST(a_lock_that_comes_again_is_shown_once)
{
	f->conf.all_in_pieces = true;
	lock_all(f, 0, LOCKS);
	fixture_ask(f, 1, "LOCKS l000* ORDER grants");
	fixture_simple(f, EVENT_TIME, 0);
	fixture_say(f, 0, "UNLOCK l0003", ":0");
	fixture_say(f, 0, "UNLOCK l0100", ":0");
	lock_all(f, 3, 4);
	fixture_pieces(f);
	expect_names(f, 1, "l0003 l0000 l0001 l0002 l0004 l0005 l0006 l0007 l0008 l0009 ");
}

TEST(a_lock_that_has_gone_is_not_shown)
{
	f->conf.all_in_pieces = true;
	lock_all(f, 0, LOCKS);
	fixture_ask(f, 1, "LOCKS * ORDER name COUNT 4");
	for (int i = 0; i < LOCKS / WORK_TURN_STEPS; i++)
		fixture_simple(f, EVENT_TIME, 0);
	fixture_say(f, 0, "UNLOCK l0002", ":0");
	fixture_pieces(f);
	expect_names(f, 1, "l0000 l0001 l0003 ");
}

TEST(it_begins_anew_after_a_hand_over)
{
	f->conf.all_in_pieces = true;
	lock_all(f, 0, LOCKS);
	fixture_ask(f, 1, "LOCKS * ORDER name COUNT 3");
	fixture_simple(f, EVENT_TIME, 0);
	fixture_say(f, 0, "UNLOCK l0001", ":0");
	fixture_hand_over(f);
	fixture_expect(f, 1, "");
	fixture_pieces(f);
	expect_names(f, 1, "l0000 l0002 l0003 ");
}

/* ---- what it does not take ---- */

TEST(words_that_it_does_not_take)
{
	static const char *const wrong[] = { "LOCKS * ORDER",          "LOCKS * ORDER wait ALL", "LOCKS * ALL ORDER wait",
					     "LOCKS * ORDER wait ORDER name", "LOCKS * ORDER wait AFTER a", "LOCKS * COUNT 5" };

	fixture_say(f, 0, "LOCKS * ORDER age", "-ERR ORDER takes wait, waiters, grants or name");
	fixture_say(f, 0, "LOCKS * ORDER wait COUNT 0", "-ERR COUNT takes a number, 1..1000000");
	fixture_say(f, 0, "LOCKS [a ORDER wait", "-ERR the pattern has a [ without its ]: a [ of a name is written as \\[");
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		fixture_say_begin(f, 0, wrong[i], "-ERR syntax error in 'locks' command; ");
}
