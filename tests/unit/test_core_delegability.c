/* SPDX-License-Identifier: Apache-2.0 */
/* When a lock is delegated, how often it is taken back for somebody else (lock/delegated.h), and limits of grants. */
#include "delegation_fixture.h"
#include "core_test.h"

/* Grants in a row until it is delegated again. */
static int grants_until_delegated(struct fixture *f)
{
	for (int i = 1;; i++) {
		fixture_ask(f, 0, "LOCK a SLOT 1");
		if (is_delegated(0, 1))
			return i;
		fixture_ask(f, 0, "UNLOCK a");
	}
}

TEST_IN(who_is_disturbed_waits_longer, delegation_setup)
{
	static const int needs[] = { 1, 2, 4, 8, 16, 32, 64, 64 };

	give_page(f, 0);
	for (size_t i = 0; i < sizeof(needs) / sizeof(needs[0]); i++) {
		assert_int_equal(grants_until_delegated(f), needs[i]);
		assert_true(leave(0, 1));
		fixture_ask(f, 1, "LOCK a");
		fixture_ask(f, 1, "UNLOCK a");
	}
	assert_int_equal(grants_until_delegated(f), 64);
	assert_true(leave(0, 1));
	fixture_pass(f, 3000); /* it went back, and nobody had asked for it */
	assert_int_equal(grants_until_delegated(f), 32);
}

TEST_IN(readers_who_are_disturbed_wait_longer, delegation_setup)
{
	give_pages(f);
	fixture_ask(f, 0, "LOCK a SHARED SLOT 1");
	fixture_ask(f, 1, "LOCK a SHARED SLOT 1");
	assert_true(is_delegated(0, 1) && is_delegated(1, 1) && leave(0, 1) && leave(1, 1));
	fixture_ask(f, 2, "LOCK a"); /* one pass, which counts once */
	fixture_ask(f, 2, "UNLOCK a");
	fixture_ask(f, 0, "LOCK a SHARED SLOT 1");
	assert_false(is_delegated(0, 1));
	fixture_ask(f, 1, "LOCK a SHARED SLOT 1"); /* the second grant to a reader in a row */
	assert_true(is_delegated(1, 1));
}

/* ---- how often one is taken back for somebody else ---- */

struct tally {
	int grants, disturbances; /* by message; delegations that another client's LOCK took back */
};

/* Client `conn` takes and releases the lock, by the word if it can. */
static void pair(struct fixture *f, uint32_t conn, struct tally *t)
{
	bool others = !delegation_none(slot(1 - conn, 1));

	if (seen[conn][1] && take(conn, 1)) {
		assert_true(leave(conn, 1));
		return;
	}
	fixture_ask(f, conn, "LOCK a SLOT 1");
	t->grants++;
	t->disturbances += others;
	assert_true(delegation_none(slot(1 - conn, 1)));
	if (is_delegated(conn, 1))
		assert_true(leave(conn, 1));
	else
		fixture_ask(f, conn, "UNLOCK a");
}

/* Two clients take turns, and both offer a slot each time. */
static struct tally alternate(struct fixture *f, int burst, int turns, int pause_ms)
{
	struct tally t = { 0 };

	for (int i = 0; i < turns; i++) {
		for (int n = 0; n < burst; n++)
			pair(f, (uint32_t)i % 2, &t);
		if (pause_ms)
			fixture_pass(f, pause_ms);
	}
	return t;
}

static void expect_few(struct tally t, int seconds)
{
	assert_in_range(t.disturbances, 0, 6 + t.grants / DELEGATED_NEED_MAX + seconds);
}

TEST_IN(bursts_do_not_flap, delegation_setup)
{
	static const int bursts[] = { 1, 2, 3, 63, 64, 65, 300 };

	give_pages(f);
	for (size_t i = 0; i < sizeof(bursts) / sizeof(bursts[0]); i++)
		expect_few(alternate(f, bursts[i], 200, 0), 0);
}

/* Short bursts end it: after a few of them nothing is delegated any longer. */
TEST_IN(short_bursts_are_not_delegated, delegation_setup)
{
	give_pages(f);
	alternate(f, 3, 10, 0);
	assert_int_equal(alternate(f, 3, 1000, 0).disturbances, 0);
}

/* One client asks each 100 ms, while another one uses the lock all the time. */
TEST_IN(a_poller_does_not_flap, delegation_setup)
{
	struct tally t = { 0 };

	give_pages(f);
	for (int i = 0; i < 600; i++) {
		for (int n = 0; n < 20; n++)
			pair(f, 0, &t);
		fixture_pass(f, 100);
		pair(f, 1, &t);
	}
	assert_in_range(t.disturbances, 0, 6);
}

/* Delegations that end for their own client's sake do not make up for those that end for others. */
TEST_IN(its_own_requests_do_not_make_it_calm, delegation_setup)
{
	struct tally t = { 0 };

	give_pages(f);
	for (int i = 0; i < 1000; i++) {
		pair(f, 0, &t);
		fixture_ask(f, 0, "LOCK a SLOT 1");
		fixture_ask(f, 0, "LOCK a REENTER");
		fixture_ask(f, 0, "UNLOCK a");
		fixture_ask(f, 0, "UNLOCK a");
		t.grants++;
		pair(f, 0, &t);
		pair(f, 1, &t);
	}
	expect_few(t, 0);
}

/* A grant to another client ends the row of a client, whether the other one offers a slot or not. */
TEST_IN(a_row_has_no_other_client_in_it, delegation_setup)
{
	give_page(f, 0);
	fixture_ask(f, 0, "LOCK a SLOT 1");
	assert_true(is_delegated(0, 1) && leave(0, 1));
	fixture_ask(f, 1, "LOCK a");
	for (int i = 0; i < 100; i++) {
		fixture_ask(f, 1, "UNLOCK a");
		fixture_ask(f, 0, "LOCK a SLOT 1");
		assert_false(is_delegated(0, 1));
		fixture_ask(f, 0, "UNLOCK a");
		fixture_ask(f, 1, "LOCK a");
	}
}

/* ---- free delegations make room at a limit ---- */

/* Client 0 has as many grants as are allowed: two are delegated and free, and one is held by its word. */
static void fill(struct fixture *f)
{
	give_page(f, 0);
	fixture_say(f, 0, "LOCK a SLOT 1", ":1024");
	fixture_say(f, 0, "LOCK b SLOT 2", ":2048");
	fixture_say(f, 0, "LOCK c SLOT 3", ":3072");
	assert_true(is_delegated(0, 1) && is_delegated(0, 2) && is_delegated(0, 3));
	assert_true(leave(0, 1) && leave(0, 2));
}

/* At the limit two more requests are granted; the one past it is refused, and the held grant stays as it is. */
static void expect_two_more(struct fixture *f, uint32_t conn, const char *limit)
{
	fixture_say(f, conn, "LOCK d", ":4096");
	assert_true(delegation_none(slot(0, 1)));
	assert_false(delegation_none(slot(0, 2))); /* as many as are needed */
	fixture_say(f, conn, "LOCK e", ":5120");
	assert_true(delegation_none(slot(0, 2)));
	fixture_ask(f, conn, "LOCK f");
	assert_memory_equal(f->replies[conn].data, "-LIMIT ", 7);
	fixture_expect_part(f, conn, limit);
	assert_true(leave(0, 3));
}

TEST_IN(nobody_is_refused_for_what_a_user_does_not_hold, delegation_setup)
{
	f->conf.limits.grants = (uint32_t)fixture_total(3);
	fixture_simple(f, EVENT_TIME, 0);
	fill(f);
	expect_two_more(f, 1, "limits.grants");
}

TEST_IN(nobody_is_refused_for_what_it_does_not_hold_itself, delegation_setup)
{
	f->conf.limits.grants_per_client = 3;
	fill(f);
	expect_two_more(f, 0, "limits.grants_per_client");
}

/* Delegations leave an eighth of the locks for locks that are not delegated. */
TEST_IN(delegated_locks_leave_room_for_others, delegation_setup)
{
	f->conf.limits.locks = (uint32_t)fixture_total(16);
	f->conf.limits.grants = f->conf.limits.grants_per_client = 100;
	fixture_simple(f, EVENT_TIME, 0);
	give_page(f, 0);
	for (int i = 1; i <= 16; i++) {
		fixture_say_begin(f, 0, fixture_words(f, "LOCK n%d SLOT %d", i, i), ":");
		assert_int_equal(is_delegated(0, i), i <= 14);
	}
	fixture_say_part(f, 0, "LOCK n17", "limits.locks");
}
