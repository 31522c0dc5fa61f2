/* SPDX-License-Identifier: Apache-2.0 */
/* DELEGATE, LOCK ... SLOT, and what takes a delegated lock back (lock/delegated.h). The process's side is done by hand. */
#include "core_fixture.h"

#include <stdio.h>
#include <string.h>

#include "core/check.h"
#include "core/lock/delegated.h"
#include "core/state.h"
#include "protocol/delegation.h"

static struct delegation_page pages[2];
static uint64_t seen[2][DELEGATION_SLOTS + 1]; /* the latest generations */

static int begin(bool standalone, uint32_t conns, void **state)
{
	struct fixture *f = fixture_new(standalone);

	f->conf.delegation = true;
	f->conf.linger_ns = 2000 * MS;
	memset(pages, 0, sizeof(pages));
	memset(seen, 0, sizeof(seen));
	return fixture_setup(f, conns, state);
}

static int setup(void **state)
{
	return begin(true, 3, state);
}

static int setup_many(void **state)
{
	return begin(true, SHARED_DELEGATIONS_MAX + 2, state);
}

static int setup_zookeeper(void **state)
{
	return begin(false, 3, state);
}

static void give_page(struct fixture *f, uint32_t conn)
{
	struct event e = { .type = EVENT_CLIENT_PAGE, .conn = conn, .page.page = &pages[conn] };

	fixture_resp3(f, conn);
	fixture_ask(f, conn, "DELEGATE");
	fixture_expect(f, conn, "");
	assert_int_equal(f->page_asked, conn + 1);
	delegation_init(&pages[conn]);
	fixture_event(f, &e);
	fixture_expect(f, conn, ":63");
	assert_true(f->page_sent[conn]);
}

static struct delegation_slot *slot(uint32_t conn, int number)
{
	return &pages[conn].slots[number - 1];
}

/* True: it holds the lock, which it has just got, as a delegated one. */
static bool is_delegated(uint32_t conn, int number)
{
	struct delegation_terms terms;

	if (!delegation_read(slot(conn, number), seen[conn][number], &terms))
		return false;
	seen[conn][number] = terms.generation;
	return true;
}

static bool leave(uint32_t conn, int number)
{
	return delegation_leave(slot(conn, number), seen[conn][number]);
}

static bool take(uint32_t conn, int number)
{
	slot(conn, number)->uses++;
	return delegation_take(slot(conn, number), seen[conn][number]);
}

static void who_gets_a_page(void **state)
{
	struct fixture *f = *state;
	struct event none = { .type = EVENT_CLIENT_PAGE, .conn = 1, .page.sentence = SLICE("no descriptors") };

	fixture_say(f, 0, "DELEGATE", "-ERR DELEGATE needs RESP3: say HELLO 3 first");
	give_page(f, 0);
	fixture_say(f, 0, "DELEGATE", "-ERR this connection has its page already");
	fixture_resp3(f, 1);
	fixture_ask(f, 1, "DELEGATE");
	fixture_event(f, &none);
	fixture_expect(f, 1, "-UNAVAILABLE no page could be made: no descriptors");
	f->conf.delegation = false;
	fixture_say(f, 1, "DELEGATE", "-DENIED nothing is delegated: the configuration says locks.delegation = 0");
}

/* The limit is that of memory: a page more than fits is refused. */
static void pages_are_charged(void **state)
{
	struct fixture *f = *state;

	f->conf.limits.memory_bytes = fixture_total(delegated_memory());
	give_page(f, 0);
	fixture_resp3(f, 1);
	fixture_ask(f, 1, "DELEGATE");
	assert_int_equal(memcmp(f->replies[1].data, "-LIMIT ", 7), 0);
	fixture_simple(f, EVENT_CLIENT_GONE, 0);
	f->replies[1].len = 0;
	give_page(f, 1);
}

/* The adapter has a limit of its own. */
static void a_page_too_many_for_the_adapter(void **state)
{
	struct fixture *f = *state;
	struct event none = { .type = EVENT_CLIENT_PAGE, .page = { .sentence = SLICE("too many"), .limited = true } };

	fixture_resp3(f, 0);
	fixture_ask(f, 0, "DELEGATE");
	fixture_event(f, &none);
	fixture_expect(f, 0, "-LIMIT too many");
	give_page(f, 0);
}

static void a_free_one_holds_back_nobody(void **state)
{
	struct fixture *f = *state;

	give_page(f, 0);
	fixture_say(f, 0, "LOCK a SLOT 1", ":1024");
	assert_true(is_delegated(0, 1));
	assert_true(leave(0, 1));
	assert_true(take(0, 1) && leave(0, 1));
	fixture_say(f, 1, "LOCKS", "*1 *12 $4 name $1 a $5 state $5 local $7 holders :0 $7 waiters :0 $5 token :0 "
				"$9 delegated :1");
	fixture_say(f, 1, "LOCK a", ":1025");
	assert_true(delegation_none(slot(0, 1)));
	assert_false(take(0, 1));
}

/* A command that only reads leaves the lock delegated, and reports the word's value. */
static void looking_takes_nothing_back(void **state)
{
	static const struct {
		const char *words, *free, *held;
	} looks[] = {
		{ "VALID a", ":0", ":0" },
		{ "GET a", "$-1", "$10 held@alpha" },
		{ "EXISTS a", ":0", ":1" },
		{ "PTTL a", ":-2", ":-1" },
		{ "TOKEN a v", "-NOTHELD it is not held under that value: a", "-NOTHELD it is not held under that value: a" },
		{ "QUEUE a", "*0", "*0" },
		{ "UNLOCK a", "-NOTHELD this client does not hold a", "-NOTHELD this client does not hold a" },
		{ "CANCEL a", ":0", ":0" },
		{ "HOLDERS a", "*0", NULL },
	};
	struct fixture *f = *state;

	give_page(f, 0);
	fixture_say(f, 0, "LOCK a SLOT 1", ":1024");
	assert_true(is_delegated(0, 1));
	fixture_pass(f, 500);
	for (size_t i = 0; i < sizeof(looks) / sizeof(looks[0]); i++) {
		assert_true(leave(0, 1));
		fixture_say(f, 1, looks[i].words, looks[i].free);
		assert_true(take(0, 1));
		if (looks[i].held)
			fixture_say(f, 1, looks[i].words, looks[i].held);
	}
	assert_true(leave(0, 1));
	fixture_say(f, 0, "VALID a", ":0");
	assert_true(take(0, 1));
	fixture_say(f, 0, "VALID a", ":9223372036854");
	assert_true(leave(0, 1));
}

/* By another client. */
static void expect_told(struct fixture *f, const char *words, const char *text)
{
	fixture_ask(f, 1, words);
	assert_non_null(memmem(f->replies[1].data, f->replies[1].len, text, strlen(text)));
	f->replies[1].len = 0;
}

/* The holder says since when, in the page: an instant before the grant or after now does not count. */
static void since_when_it_is_held(void **state)
{
	struct fixture *f = *state;

	give_page(f, 0);
	fixture_say(f, 0, "LOCK a SLOT 1", ":1024");
	assert_true(is_delegated(0, 1));
	slot(0, 1)->held_since_ns = f->now_ns;
	fixture_pass(f, 5000);
	expect_told(f, "HOLDERS a", "held_ms\r\n:5000\r\n");
	assert_true(leave(0, 1) && take(0, 1));
	slot(0, 1)->held_since_ns = f->now_ns;
	fixture_pass(f, 700);
	expect_told(f, "HOLDERS a", "held_ms\r\n:700\r\n");
	expect_told(f, "WHY a", "held on this host, pid 100 (test), for 700 ms");
	slot(0, 1)->held_since_ns = 1;
	expect_told(f, "HOLDERS a", "held_ms\r\n:5700\r\n");
	slot(0, 1)->held_since_ns = INT64_MAX;
	expect_told(f, "HOLDERS a", "held_ms\r\n:0\r\n");
	slot(0, 1)->held_since_ns = f->now_ns - 700 * MS;
	fixture_say(f, 1, "LOCK a WAIT 0", "$-1"); /* it is wanted: an ordinary grant from now on */
	assert_false(leave(0, 1));
	expect_told(f, "HOLDERS a", "held_ms\r\n:700\r\n");
}

/* Nobody holds the lock, and WHY shows which client has it delegated. */
static void who_keeps_a_free_one_is_told(void **state)
{
	struct fixture *f = *state;

	give_page(f, 0);
	fixture_say(f, 0, "LOCK a SLOT 1", ":1024");
	assert_true(is_delegated(0, 1));
	expect_told(f, "LOCKS", "holders\r\n:1\r\n$7\r\nwaiters\r\n:0\r\n$5\r\ntoken\r\n:1024\r\n$9\r\ndelegated\r\n:1\r\n");
	expect_told(f, "WHY a", "delegated\r\n:0\r\n");
	expect_told(f, "CLIENT LIST", " held=1 ");
	assert_true(leave(0, 1));
	expect_told(f, "LOCKS", "holders\r\n:0\r\n$7\r\nwaiters\r\n:0\r\n$5\r\ntoken\r\n:0\r\n$9\r\ndelegated\r\n:1\r\n");
	expect_told(f, "WHY a", "nobody holds it: it is delegated to a client on this host, pid 100 (test), which gets it "
				"without asking until somebody else asks for it\r\n");
	expect_told(f, "WHY a", "delegated\r\n:1\r\n");
	assert_true(take(0, 1) && leave(0, 1));
}

static void a_held_one_comes_back_by_unlock(void **state)
{
	struct fixture *f = *state;

	give_page(f, 0);
	fixture_say(f, 0, "LOCK a SLOT 1", ":1024");
	assert_true(is_delegated(0, 1));
	fixture_ask(f, 1, "LOCK a");
	fixture_expect(f, 1, "");
	assert_false(leave(0, 1));
	assert_true(delegation_holds(slot(0, 1), seen[0][1]));
	fixture_say(f, 0, "UNLOCK a", ":0");
	fixture_expect(f, 1, ":1025");
	assert_true(delegation_none(slot(0, 1)));
}

/* Its own requests take it back as well, and may have it delegated again. */
static void its_own_client_asks_again(void **state)
{
	struct fixture *f = *state;

	give_page(f, 0);
	fixture_say(f, 0, "LOCK a SLOT 1", ":1024");
	assert_true(is_delegated(0, 1));
	fixture_say(f, 0, "LOCK a", "-HELD this connection holds it already; say REENTER to enter it again, or use one "
				    "connection for each thread: a");
	assert_false(leave(0, 1));
	fixture_say(f, 0, "LOCK a REENTER", ":1024");
	fixture_say(f, 0, "UNLOCK a", ":1");
	fixture_say(f, 0, "UNLOCK a", ":0");
	fixture_say(f, 0, "LOCK a SLOT 1", ":2048");
	assert_true(is_delegated(0, 1) && leave(0, 1));
	fixture_say(f, 0, "UNLOCK a", "-NOTHELD this client does not hold a");
	fixture_say(f, 0, "LOCK a SLOT 1", ":3072");
	assert_true(is_delegated(0, 1));
}

static void what_is_not_delegated(void **state)
{
	static const char *const words[] = {
		"LOCK a SHARED",
		"LOCK a SLOT 1 LEASE 1000",
		"LOCK a SLOT 1 DATA d",
		"LOCK a",
	};
	struct fixture *f = *state;

	fixture_say(f, 0, "LOCK a SLOT 1", ":1024"); /* it has no page */
	fixture_say(f, 0, "UNLOCK a", ":0");
	give_page(f, 0);
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		fixture_ask(f, 0, words[i]);
		assert_true(delegation_none(slot(0, 1)));
		fixture_ask(f, 0, "UNLOCK a");
	}
	f->replies[0].len = 0;
	fixture_say(f, 1, "LOCK b", ":6144");
	fixture_ask(f, 0, "LOCK b SLOT 1"); /* it is granted later */
	fixture_pass(f, 1);
	fixture_say(f, 1, "UNLOCK b", ":0");
	fixture_expect(f, 0, ":6145");
	assert_true(delegation_none(slot(0, 1)));
	fixture_say(f, 0, "LOCK c SLOT 1", ":7168");
	assert_true(is_delegated(0, 1));
	fixture_say(f, 0, "LOCK d SLOT 1", ":8192"); /* the slot is in use */
	assert_int_equal(slot(0, 1)->token, 7168);
	fixture_say(f, 0, "LOCK e SLOT 0", "-ERR SLOT takes the number of a slot, 1..63");
	fixture_say(f, 0, "LOCK e SLOT 64", "-ERR SLOT takes the number of a slot, 1..63");
	fixture_say(f, 0, "LOCK e SLOT 63", ":9216");
	assert_true(is_delegated(0, 63));
}

static void what_nobody_uses_goes_back(void **state)
{
	struct fixture *f = *state;

	give_page(f, 0);
	fixture_say(f, 0, "LOCK a SLOT 1", ":1024");
	assert_true(is_delegated(0, 1));
	fixture_pass(f, 5000);
	assert_true(leave(0, 1)); /* it was held */
	assert_true(take(0, 1) && leave(0, 1));
	fixture_pass(f, 1000); /* and used */
	assert_true(take(0, 1) && leave(0, 1));
	fixture_pass(f, 2001);
	assert_false(take(0, 1));
	assert_true(delegation_none(slot(0, 1)));
}

/* Three readers: those with a page keep the lock, until somebody writes. */
static void readers_keep_it_until_one_writes(void **state)
{
	struct fixture *f = *state;

	give_page(f, 0);
	give_page(f, 1);
	fixture_say(f, 0, "LOCK a SHARED SLOT 1", ":1024");
	assert_true(is_delegated(0, 1) && leave(0, 1));
	fixture_say(f, 1, "LOCK a SHARED SLOT 2", ":1024");
	assert_true(is_delegated(1, 2));
	fixture_say(f, 2, "LOCKS", "*1 *12 $4 name $1 a $5 state $5 local $7 holders :1 $7 waiters :0 $5 token :1024 "
			      "$9 delegated :2");
	fixture_say(f, 2, "LOCK a SHARED", ":1024");
	fixture_say(f, 2, "UNLOCK a", ":0");
	assert_true(take(0, 1) && leave(0, 1) && leave(1, 2) && take(1, 2));
	fixture_ask(f, 2, "LOCK a");
	assert_true(delegation_none(slot(0, 1)));
	assert_false(take(0, 1) || leave(1, 2));
	fixture_ask(f, 0, "LOCK a SHARED SLOT 1"); /* behind the writer */
	fixture_expect(f, 2, "");
	fixture_say(f, 1, "UNLOCK a", ":0");
	fixture_expect(f, 2, ":2048");
	fixture_expect(f, 0, "");
	fixture_say(f, 2, "UNLOCK a", ":0");
	fixture_expect(f, 0, ":2049");
	assert_false(is_delegated(0, 1)); /* it had to wait */
}

/* A command of one of the readers ends its own delegation, and not those of others. */
static void each_reader_keeps_its_own(void **state)
{
	struct fixture *f = *state;

	give_page(f, 0);
	give_page(f, 1);
	fixture_say(f, 0, "LOCK a SHARED SLOT 1", ":1024");
	assert_true(is_delegated(0, 1));
	fixture_say(f, 1, "LOCK a SHARED SLOT 1", ":1024");
	assert_true(is_delegated(1, 1) && leave(1, 1));
	fixture_say(f, 0, "LOCK a SHARED REENTER", ":1024");
	assert_false(leave(0, 1));
	assert_true(take(1, 1) && leave(1, 1));
	fixture_say(f, 0, "LOCK a REENTER", "-DEADLOCK this client holds a shared and would wait for itself: release it first");
	fixture_say(f, 0, "UNLOCK a", ":1");
	fixture_say(f, 0, "UNLOCK a", ":0");
	assert_true(take(1, 1) && leave(1, 1));
	fixture_say(f, 1, "LOCK a", ":2048"); /* its own, too, makes way for what it writes */
	assert_true(delegation_none(slot(1, 1)));
}

static void readers_who_are_disturbed_wait_longer(void **state)
{
	struct fixture *f = *state;

	give_page(f, 0);
	give_page(f, 1);
	fixture_ask(f, 0, "LOCK a SHARED SLOT 1");
	fixture_ask(f, 1, "LOCK a SHARED SLOT 1");
	assert_true(is_delegated(0, 1) && is_delegated(1, 1) && leave(0, 1) && leave(1, 1));
	fixture_ask(f, 2, "LOCK a"); /* one pass, which counts once */
	fixture_ask(f, 2, "UNLOCK a");
	fixture_ask(f, 0, "LOCK a SHARED SLOT 1");
	assert_false(is_delegated(0, 1));
	fixture_ask(f, 1, "LOCK a SHARED SLOT 1"); /* two in a row, whoever they are */
	assert_true(is_delegated(1, 1));
	f->replies[0].len = f->replies[1].len = f->replies[2].len = 0;
}

/* One pass takes all of them back, so their number is limited. */
static void so_many_readers_keep_a_lock(void **state)
{
	static struct delegation_page many[SHARED_DELEGATIONS_MAX + 1];
	struct fixture *f = *state;
	struct delegation_terms terms;

	f->conf.limits.memory_bytes = fixture_total(delegated_memory()) * (SHARED_DELEGATIONS_MAX + 1);
	f->conf.limits.grants = 10 * SHARED_DELEGATIONS_MAX;
	for (uint32_t i = 0; i <= SHARED_DELEGATIONS_MAX; i++) {
		struct event e = { .type = EVENT_CLIENT_PAGE, .conn = i, .page.page = &many[i] };

		fixture_resp3(f, i);
		fixture_ask(f, i, "DELEGATE");
		delegation_init(&many[i]);
		fixture_event(f, &e);
		fixture_ask(f, i, "LOCK a SHARED SLOT 1");
		assert_true(delegation_read(&many[i].slots[0], 0, &terms) == (i < SHARED_DELEGATIONS_MAX));
	}
	assert_true(delegation_leave(&many[7].slots[0], many[7].slots[0].word >> 16));
	fixture_say(f, SHARED_DELEGATIONS_MAX + 1, "LOCK a WAIT 0", "$-1");
	assert_true(delegation_none(&many[7].slots[0]));
	for (uint32_t i = 0; i <= SHARED_DELEGATIONS_MAX; i++) {
		fixture_ask(f, i, "UNLOCK a");
		f->replies[i].len = 0;
	}
	fixture_say(f, SHARED_DELEGATIONS_MAX + 1, "LOCK a WAIT 0", ":2048");
}

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

static void who_is_disturbed_waits_longer(void **state)
{
	static const int needs[] = { 1, 2, 4, 8, 16, 32, 64, 64 };
	struct fixture *f = *state;

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

/* ---- limits ---- */

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
	assert_int_equal(memcmp(f->replies[conn].data, "-LIMIT ", 7), 0);
	assert_non_null(memmem(f->replies[conn].data, f->replies[conn].len, limit, strlen(limit)));
	assert_true(leave(0, 3));
}

static void nobody_is_refused_for_what_a_user_does_not_hold(void **state)
{
	struct fixture *f = *state;

	f->conf.limits.grants = (uint32_t)fixture_total(3);
	fixture_simple(f, EVENT_TIME, 0);
	fill(f);
	expect_two_more(f, 1, "limits.grants");
}

static void nobody_is_refused_for_what_it_does_not_hold_itself(void **state)
{
	struct fixture *f = *state;

	f->conf.limits.grants_per_client = 3;
	fill(f);
	expect_two_more(f, 0, "limits.grants_per_client");
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

static void bursts_do_not_flap(void **state)
{
	static const int bursts[] = { 1, 2, 3, 63, 64, 65, 300 };
	struct fixture *f = *state;

	give_page(f, 0);
	give_page(f, 1);
	for (size_t i = 0; i < sizeof(bursts) / sizeof(bursts[0]); i++)
		expect_few(alternate(f, bursts[i], 200, 0), 0);
}

/* Short bursts end it: after a few of them nothing is delegated any longer. */
static void short_bursts_are_not_delegated(void **state)
{
	struct fixture *f = *state;

	give_page(f, 0);
	give_page(f, 1);
	alternate(f, 3, 10, 0);
	assert_int_equal(alternate(f, 3, 1000, 0).disturbances, 0);
}

/* One client asks each 100 ms, while another one uses the lock all the time. */
static void a_poller_does_not_flap(void **state)
{
	struct fixture *f = *state;
	struct tally t = { 0 };

	give_page(f, 0);
	give_page(f, 1);
	for (int i = 0; i < 600; i++) {
		for (int n = 0; n < 20; n++)
			pair(f, 0, &t);
		fixture_pass(f, 100);
		pair(f, 1, &t);
	}
	assert_in_range(t.disturbances, 0, 6);
}

/* Delegations that end for their own client's sake do not make up for those that end for others. */
static void its_own_requests_do_not_make_it_calm(void **state)
{
	struct fixture *f = *state;
	struct tally t = { 0 };

	give_page(f, 0);
	give_page(f, 1);
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
static void a_row_has_no_other_client_in_it(void **state)
{
	struct fixture *f = *state;

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

static void force_and_the_end_of_a_client(void **state)
{
	struct fixture *f = *state;

	give_page(f, 0);
	give_page(f, 1);
	fixture_say(f, 0, "LOCK a SLOT 1", ":1024");
	assert_true(is_delegated(0, 1));
	fixture_say(f, 2, "FORCEUNLOCK a", ":1");
	assert_false(delegation_holds(slot(0, 1), seen[0][1]) || leave(0, 1));
	fixture_say(f, 0, "UNLOCK a", "-LOST the grant was lost before it was released: a");
	assert_true(delegation_none(slot(0, 1)));
	fixture_say(f, 0, "LOCK b SLOT 1", ":2048");
	assert_true(is_delegated(0, 1) && leave(0, 1));
	fixture_say(f, 2, "FORCEUNLOCK b", ":0");
	assert_false(take(0, 1));
	fixture_say(f, 1, "LOCK c SLOT 5", ":3072");
	assert_true(is_delegated(1, 5));
	fixture_ask(f, 0, "LOCK c");
	f->replies[0].len = 0;
	fixture_simple(f, EVENT_CLIENT_GONE, 1);
	fixture_expect(f, 0, ":3073");
	assert_false(leave(1, 5));
}

static void a_daemon_that_stops_takes_all_back(void **state)
{
	struct fixture *f = *state;

	give_page(f, 0);
	fixture_say(f, 0, "LOCK a SLOT 1", ":1024");
	assert_true(is_delegated(0, 1) && leave(0, 1));
	fixture_say(f, 0, "LOCK b SLOT 2", ":2048");
	assert_true(is_delegated(0, 2));
	fixture_simple(f, EVENT_STOP, 0);
	assert_true(delegation_none(slot(0, 1)));
	assert_false(leave(0, 2));
	assert_int_equal(f->stopped, 0);
	fixture_say(f, 0, "UNLOCK b", ":0");
	assert_int_equal(f->stopped, 2);
}

/* The page is its client's, who may write anything into it: it only harms itself. */
static void a_page_of_nonsense(void **state)
{
	struct fixture *f = *state;
	char words[32];

	give_page(f, 0);
	for (int i = 1; i <= 5; i++) {
		snprintf(words, sizeof(words), "LOCK l%d SLOT %d", i, i);
		fixture_ask(f, 0, words);
	}
	memset(&pages[0], 0xa5, sizeof(pages[0]));
	fixture_ask(f, 1, "LOCK l1 WAIT 0");
	fixture_ask(f, 0, "UNLOCK l2");
	fixture_pass(f, 3000);
	memset(&pages[0], 0xff, sizeof(pages[0]));
	fixture_ask(f, 2, "FORCEUNLOCK l4");
	fixture_simple(f, EVENT_CLIENT_GONE, 0);
	fixture_ask(f, 1, "LOCK l5 WAIT 0");
	fixture_ask(f, 1, "LOCK l4 WAIT 0");
}

/* The next process takes all back, as the words tell. */
static void after_a_hand_over(void **state)
{
	struct fixture *f = *state;

	give_page(f, 0);
	fixture_say(f, 0, "LOCK a SLOT 1", ":1024");
	assert_true(is_delegated(0, 1) && leave(0, 1));
	fixture_say(f, 0, "LOCK b SLOT 2", ":2048");
	assert_true(is_delegated(0, 2));
	fixture_hand_over(f);
	assert_true(take(0, 1) && leave(0, 1)); /* nobody has looked yet */
	broker_give_page(f->broker, 0, &pages[0]);
	fixture_pass(f, 1);
	fixture_say(f, 1, "LOCK a", ":3072");
	assert_false(take(0, 1));
	assert_false(leave(0, 2));
	fixture_say(f, 1, "LOCK b WAIT 0", "$-1");
	fixture_say(f, 0, "UNLOCK b", ":0");
	fixture_say(f, 1, "LOCK b WAIT 0", ":4096");
	fixture_say(f, 0, "LOCK c SLOT 2", ":5120");
	assert_true(is_delegated(0, 2));
}

/* What the process before had lost is lost, whatever stands in the word: a kill may come before that is written. */
static void what_was_lost_before_is_lost_after_a_hand_over(void **state)
{
	struct fixture *f = *state;

	give_page(f, 0);
	fixture_say(f, 0, "LOCK a SLOT 1", ":1024");
	assert_true(is_delegated(0, 1));
	fixture_say(f, 2, "FORCEUNLOCK a", ":1");
	slot(0, 1)->word = seen[0][1] << 16 | DELEGATION_HELD;
	fixture_hand_over(f);
	broker_give_page(f->broker, 0, &pages[0]);
	fixture_pass(f, 1);
	assert_false(delegation_holds(slot(0, 1), seen[0][1]) || leave(0, 1));
	fixture_say(f, 1, "LOCK a", ":2048");
	fixture_say(f, 0, "UNLOCK a", "-LOST the grant was lost before it was released: a");
	assert_true(delegation_none(slot(0, 1)));
}

static void what_becomes_of_them_is_counted(void **state)
{
	struct fixture *f = *state;
	const struct stats *s = &f->broker->env.stats;
	const struct locks *locks = &f->broker->locks;

	give_page(f, 0);
	give_page(f, 1);
	assert_int_equal(locks->page_count, 2);
	fixture_say(f, 0, "LOCK a SLOT 1", ":1024");
	assert_true(is_delegated(0, 1) && leave(0, 1));
	assert_int_equal(locks->delegated_count, 1);
	fixture_say(f, 1, "LOCK a", ":1025");
	assert_int_equal(locks->delegated_count, 0);
	assert_int_equal(s->delegations_recalled_total, 1);
	fixture_say(f, 0, "LOCK b SLOT 2", ":2048");
	assert_true(is_delegated(0, 2) && leave(0, 2));
	fixture_pass(f, 3000);
	assert_int_equal(s->delegations_idle_total, 1);
	assert_int_equal(s->delegations_recalled_total, 1);
	assert_int_equal(s->delegations_total, 2);
	assert_int_equal(s->delegations_lost_total, 0);
	fixture_simple(f, EVENT_CLIENT_GONE, 1);
	assert_int_equal(locks->page_count, 1);
}

/* As in a broken snapshot or ledger. */
static void a_slot_that_two_grants_share_is_noticed(void **state)
{
	struct fixture *f = *state;
	struct grant *g;

	give_page(f, 0);
	fixture_say(f, 0, "LOCK a SLOT 1", ":1024");
	fixture_say(f, 0, "LOCK b SLOT 2", ":2048");
	assert_true(is_delegated(0, 1) && is_delegated(0, 2));
	g = TAILQ_LAST(&f->broker->locks.conns[0]->grants, grant_list);
	g->slot ^= 3;
	assert_string_equal(broker_wrong(f->broker), "!g->slot || !(taken >> (g->slot - 1) & 1)");
	g->slot ^= 3;
	assert_null(broker_wrong(f->broker));
}

/* With ZooKeeper: once it is known that nobody waits elsewhere, and until it is not any longer. */
static void between_hosts(void **state)
{
	struct fixture *f = *state;
	const char *children[1];
	char name[128];

	give_page(f, 0);
	fixture_held(f, name);
	children[0] = name;
	fixture_say(f, 0, "UNLOCK a", ":0");
	fixture_say(f, 0, "LOCK a SLOT 1", ":78849"); /* the list with watch is not answered yet */
	assert_false(is_delegated(0, 1));
	fixture_op(f, EFFECT_ZK_LIST, "/a");
	fixture_answer_list(f, 5, 1, children);
	fixture_say(f, 0, "UNLOCK a", ":0");
	fixture_say(f, 0, "LOCK a SLOT 1", ":78850");
	assert_true(is_delegated(0, 1) && leave(0, 1));
	assert_int_equal(f->broker->locks.delegated_count, 1);
	fixture_watch(f, ZK_WATCH_CHILDREN, "/lb/a");
	assert_false(take(0, 1));
	assert_true(delegation_none(slot(0, 1)));
}

/* A reader that has to wait, because another host waits, takes the other readers' delegations back. */
static void readers_between_hosts(void **state)
{
	struct fixture *f = *state;
	const char *children[1];
	char name[128];

	give_page(f, 0);
	give_page(f, 1);
	fixture_held(f, name);
	children[0] = name;
	fixture_say(f, 0, "UNLOCK a", ":0");
	fixture_op(f, EFFECT_ZK_LIST, "/a");
	fixture_answer_list(f, 5, 1, children);
	fixture_say(f, 0, "LOCK a SHARED SLOT 1", ":78849");
	assert_true(is_delegated(0, 1) && leave(0, 1));
	fixture_say(f, 1, "LOCK a SHARED SLOT 1", ":78849");
	assert_true(is_delegated(1, 1));
	fixture_watch(f, ZK_WATCH_CHILDREN, "/lb/a");
	assert_false(take(0, 1) || leave(1, 1));
	assert_true(delegation_none(slot(0, 1)));
	fixture_say(f, 1, "UNLOCK a", ":0");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(who_gets_a_page),
		TEST(pages_are_charged),
		TEST(a_page_too_many_for_the_adapter),
		TEST(a_free_one_holds_back_nobody),
		TEST(looking_takes_nothing_back),
		TEST(since_when_it_is_held),
		TEST(who_keeps_a_free_one_is_told),
		TEST(a_held_one_comes_back_by_unlock),
		TEST(its_own_client_asks_again),
		TEST(what_is_not_delegated),
		TEST(what_nobody_uses_goes_back),
		TEST(readers_keep_it_until_one_writes),
		TEST(each_reader_keeps_its_own),
		TEST(readers_who_are_disturbed_wait_longer),
		TEST_IN(so_many_readers_keep_a_lock, setup_many),
		TEST(who_is_disturbed_waits_longer),
		TEST(nobody_is_refused_for_what_a_user_does_not_hold),
		TEST(nobody_is_refused_for_what_it_does_not_hold_itself),
		TEST(bursts_do_not_flap),
		TEST(short_bursts_are_not_delegated),
		TEST(a_poller_does_not_flap),
		TEST(its_own_requests_do_not_make_it_calm),
		TEST(a_row_has_no_other_client_in_it),
		TEST(force_and_the_end_of_a_client),
		TEST(a_daemon_that_stops_takes_all_back),
		TEST(a_page_of_nonsense),
		TEST(after_a_hand_over),
		TEST(what_was_lost_before_is_lost_after_a_hand_over),
		TEST(what_becomes_of_them_is_counted),
		TEST(a_slot_that_two_grants_share_is_noticed),
		TEST_IN(between_hosts, setup_zookeeper),
		TEST_IN(readers_between_hosts, setup_zookeeper),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
