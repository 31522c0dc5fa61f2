/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Many locks are delegated when all of them, or all unused ones, are taken back. The work of one event is bounded, requests
 * in between are served, and no delegation is forgotten (lock/take_back.h, client/halt.h).
 */
#include "core_test.h"

#include <stdio.h>
#include <string.h>

#include "core/state.h"
#include "protocol/delegation.h"

enum {
	PAGES = 6,  /* the clients 0 to 5 have one each */
	EACH = 60,  /* delegations of each client */
	MANY = PAGES * EACH,
	ANOTHER = PAGES, /* a client without a page */
	IN_A_PIECE = WORK_TURN_STEPS / 8, /* delegations that one piece takes back */
};

static struct delegation_page pages[PAGES];
static uint64_t generations[PAGES][EACH];
static struct broker_conf next;

static struct delegation_slot *slot(int i)
{
	return &pages[i / EACH].slots[i % EACH];
}

static const char *words(const char *before, int i, const char *after)
{
	static char text[64];

	snprintf(text, sizeof(text), "%sl%d%s", before, i, after);
	return text;
}

static void forget(struct fixture *f, uint32_t conn)
{
	bytes_clear(&f->replies[conn]);
	bytes_clear(&f->pushes[conn]);
}

/* Each of the locks l0 to l359 is delegated; every tenth is held. */
static void delegate(struct fixture *f)
{
	for (uint32_t conn = 0; conn < PAGES; conn++) {
		struct event e = { .type = EVENT_CLIENT_PAGE, .conn = conn, .page.page = &pages[conn] };

		fixture_resp3(f, conn);
		fixture_ask(f, conn, "DELEGATE");
		delegation_init(&pages[conn]);
		fixture_event(f, &e);
		for (int i = 0; i < EACH; i++) {
			struct delegation_terms terms;
			char slot_words[16];

			snprintf(slot_words, sizeof(slot_words), " SLOT %d", i + 1);
			fixture_ask(f, conn, words("LOCK ", (int)conn * EACH + i, slot_words));
			assert_true(delegation_read(&pages[conn].slots[i], 0, &terms));
			generations[conn][i] = terms.generation;
			if (i % 10)
				assert_true(delegation_leave(&pages[conn].slots[i], terms.generation));
		}
		forget(f, conn);
	}
}

static int setup(void **state)
{
	struct fixture *f = fixture_new(true);

	f->conf.delegation = true;
	f->conf.limits.locks = f->conf.limits.grants = f->conf.limits.grants_per_client = 4096;
	memset(pages, 0, sizeof(pages));
	fixture_setup(f, PAGES + 2, state);
	delegate(f);
	return 0;
}

/* The number of locks that processes can still take and release by the word. */
static int delegated(void)
{
	int count = 0;

	for (int i = 0; i < MANY; i++) {
		struct delegation_view view = delegation_look(slot(i));

		count += slot(i)->word == (generations[i / EACH][i % EACH] << 16 | (uint64_t)view.state) && slot(i)->word;
	}
	return count;
}

/* A lock whose delegation is free; -1: there is none. */
static int one_delegated(void)
{
	for (int i = MANY - 1; i >= 0; i--)
		if (delegation_look(slot(i)).state == DELEGATION_FREE && slot(i)->word)
			return i;
	return -1;
}

/* Returns the number of delegations left: `before`, or less by at most `most`. */
static int expect_fewer(int before, int most)
{
	int left = delegated();

	assert_true(left <= before && left + most >= before);
	return left;
}

/* Does all pieces, until no work is left. */
static void expect_pieces(struct fixture *f)
{
	int left = delegated();

	while (broker_has_work(f->broker)) {
		fixture_piece(f);
		left = expect_fewer(left, IN_A_PIECE + 1);
	}
}

static void reload_with_other_limits(struct fixture *f)
{
	next = f->conf;
	next.limits.requests_per_client++;
	fixture_event(f, &(struct event){ .type = EVENT_CONF, .conf = { .now = &next, .text = SLICE("") } });
}

TEST(a_reload_takes_all_back_in_pieces)
{
	int i;

	assert_int_equal(delegated(), MANY);
	reload_with_other_limits(f);
	expect_fewer(MANY, 0);
	fixture_piece(f);
	expect_fewer(MANY, IN_A_PIECE + 1);
	/* A request in between is served at once. */
	i = one_delegated();
	fixture_say_begin(f, ANOTHER, words("LOCK ", i, ""), ":");
	assert_true(delegation_none(slot(i)));
	expect_pieces(f);
	assert_int_equal(delegated(), 0);
	assert_int_equal(f->broker->locks.delegated_count, 0);
	/* The held ones are ordinary grants now, and come back by UNLOCK. */
	for (i = 0; i < MANY; i += 10) {
		fixture_say(f, ANOTHER, words("LOCK ", i, " WAIT 0"), "$-1");
		fixture_say(f, (uint32_t)(i / EACH), words("UNLOCK ", i, ""), ":0");
	}
}

/* The timer fires while all are being taken back: used delegations are taken back nevertheless. */
TEST(a_reload_takes_back_used_delegations_too)
{
	fixture_pass(f, 999);
	for (int i = 0; i < MANY; i++)
		slot(i)->uses++;
	reload_with_other_limits(f);
	f->now_ns += 2 * MS; /* the timers are due */
	fixture_simple(f, EVENT_TIME, 0);
	expect_pieces(f);
	assert_int_equal(f->broker->locks.delegated_count, 0);
}

TEST(unused_ones_go_back_in_pieces)
{
	int left;

	f->now_ns += 1001 * MS;
	for (int i = 0; i < MANY; i += 7)
		slot(i)->uses++;
	fixture_simple(f, EVENT_TIME, 0);
	expect_fewer(MANY, IN_A_PIECE + 1);
	expect_pieces(f);
	for (int i = 0; i < MANY; i++)
		assert_int_equal(slot(i)->word != 0, i % 7 == 0 || i % 10 == 0);
	left = delegated();
	f->now_ns += 1001 * MS;
	fixture_simple(f, EVENT_TIME, 0);
	expect_fewer(left, IN_A_PIECE + 1);
	expect_pieces(f);
	assert_int_equal(delegated(), MANY / 10);
}

TEST(a_client_that_ends_meanwhile)
{
	reload_with_other_limits(f);
	fixture_piece(f);
	fixture_simple(f, EVENT_CLIENT_LEAVES, 1);
	fixture_simple(f, EVENT_CLIENT_GONE, 2);
	expect_pieces(f);
	fixture_simple(f, EVENT_CLIENT_GONE, 1);
	assert_int_equal(f->broker->locks.delegated_count, 0);
	fixture_say(f, ANOTHER, words("LOCK ", EACH, " WAIT 0"), ":369664");
}

/* ---- a drain, and a stop ---- */

/* The number of events that ask a client to release a lock, for `reason`. */
static int asked(struct fixture *f, const char *reason)
{
	int count = 0;

	for (uint32_t conn = 0; conn < PAGES; conn++) {
		struct slice rest = bytes_view(&f->pushes[conn]);
		const char *at;

		while (rest.len && (at = memmem(rest.data, rest.len, reason, strlen(reason)))) {
			at += strlen(reason);
			rest = (struct slice){ at, (size_t)(rest.data + rest.len - at) };
			count++;
		}
		forget(f, conn);
	}
	return count;
}

TEST(a_drain_takes_all_back_in_pieces)
{
	int left;

	fixture_say_begin(f, ANOTHER, "DRAIN", "*8\r\n");
	left = expect_fewer(MANY, IN_A_PIECE);
	while (broker_has_work(f->broker)) {
		/* It is l-1, if none is left. */
		fixture_say_begin(f, ANOTHER, words("LOCK ", one_delegated(), ""), "-DRAINING");
		fixture_piece(f);
		left = expect_fewer(left, IN_A_PIECE);
	}
	assert_int_equal(left, 0);
	assert_int_equal(asked(f, "draining"), MANY / 10);
	assert_int_equal(f->broker->locks.grant_count, MANY / 10);
}

TEST(a_drain_that_ends_leaves_the_rest)
{
	int left;

	fixture_say_begin(f, ANOTHER, "DRAIN", "*8\r\n");
	fixture_piece(f);
	left = delegated();
	fixture_say_begin(f, ANOTHER, "DRAIN OFF", "*8\r\n");
	assert_false(broker_has_work(f->broker));
	assert_int_equal(delegated(), left);
	assert_true(left > MANY / 2);
	fixture_say_begin(f, ANOTHER, words("LOCK ", one_delegated(), ""), ":");
}

/* The next process goes on with the drain, and takes delegations back by their words. */
TEST(a_drain_goes_on_after_a_hand_over)
{
	fixture_say_begin(f, ANOTHER, "DRAIN", "*8\r\n");
	fixture_piece(f);
	asked(f, "draining");
	fixture_hand_over(f);
	for (uint32_t conn = 0; conn < PAGES; conn++)
		broker_give_page(f->broker, conn, &pages[conn]);
	fixture_simple(f, EVENT_TIME, 0);
	fixture_pieces(f);
	assert_int_equal(f->broker->locks.grant_count, MANY / 10);
	assert_in_range(asked(f, "draining"), MANY / 10 - 2, MANY / 10); /* the first were asked before */
	fixture_say(f, ANOTHER, "DRAIN OFF", "*8 $8 draining :0 $4 held :36 $7 waiting :0 $6 claims :36");
}

static void release_held_ones(struct fixture *f)
{
	for (int i = 0; i < MANY; i += 10)
		fixture_say(f, (uint32_t)(i / EACH), words("UNLOCK ", i, ""), ":0");
}

TEST(a_stop_takes_all_back_in_pieces)
{
	fixture_simple(f, EVENT_STOP, 0);
	expect_fewer(MANY, IN_A_PIECE);
	expect_pieces(f);
	assert_int_equal(delegated(), 0);
	assert_int_equal(asked(f, "stopping"), MANY / 10);
	assert_int_equal(f->stopped, 0);
	release_held_ones(f);
	assert_int_equal(f->stopped, 2);
}

/* A stop during a drain begins with the first lock again. */
TEST(a_stop_in_a_drain)
{
	fixture_ask(f, ANOTHER, "DRAIN");
	fixture_piece(f);
	asked(f, "draining");
	fixture_simple(f, EVENT_STOP, 0);
	expect_pieces(f);
	assert_int_equal(asked(f, "stopping"), MANY / 10);
	assert_int_equal(f->broker->locks.delegated_count, 0);
}

/* The stop's time is over before all pieces are done: the rest is done at once, so it ends with no lock held. */
TEST(a_stop_ends_within_its_time)
{
	release_held_ones(f);
	f->conf.stop_timeout_ns = 0;
	fixture_simple(f, EVENT_STOP, 0);
	assert_int_equal(f->stopped, 0);
	fixture_piece(f);
	assert_int_equal(f->stopped, 2);
	assert_int_equal(delegated(), 0);
}

TEST(a_stop_that_times_out_leaves_held_locks)
{
	f->conf.stop_timeout_ns = 0;
	fixture_simple(f, EVENT_STOP, 0);
	fixture_piece(f);
	assert_int_equal(f->stopped, 1);
	assert_int_equal(delegated(), 0);
}
