/* SPDX-License-Identifier: Apache-2.0 */
/* DELEGATE, LOCK ... SLOT, and what takes a delegated lock back (lock/delegated.h). */
#include "delegation_fixture.h"
#include "core_test.h"

#include <string.h>

#include "core/check.h"
#include "core/lock/delegated.h"
#include "core/state.h"

TEST_IN(who_gets_a_page, delegation_setup)
{
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
TEST_IN(pages_are_charged, delegation_setup)
{
	f->conf.limits.memory_bytes = fixture_total(delegated_memory());
	give_page(f, 0);
	fixture_resp3(f, 1);
	fixture_say_begin(f, 1, "DELEGATE", "-LIMIT ");
	fixture_simple(f, EVENT_CLIENT_GONE, 0);
	give_page(f, 1);
}

/* The adapter has a limit of its own. */
TEST_IN(a_page_too_many_for_the_adapter, delegation_setup)
{
	struct event none = { .type = EVENT_CLIENT_PAGE, .page = { .sentence = SLICE("too many"), .limited = true } };

	fixture_resp3(f, 0);
	fixture_ask(f, 0, "DELEGATE");
	fixture_event(f, &none);
	fixture_expect(f, 0, "-LIMIT too many");
	fixture_say_part(f, 0, "INFO stats", "limits_total:0\r\n");
	give_page(f, 0);
}

TEST_IN(a_free_one_holds_back_nobody, delegation_setup)
{
	delegated_a(f);
	assert_true(leave(0, 1));
	assert_true(take(0, 1) && leave(0, 1));
	fixture_say(f, 1, "LOCKS", "*1 *12 $4 name $1 a $5 state $5 local $7 holders :0 $7 waiters :0 $5 token :0 "
				"$9 delegated :1");
	fixture_say(f, 1, "LOCK a", ":1025");
	assert_true(delegation_none(slot(0, 1)));
	assert_false(take(0, 1));
}

/* A command that only reads leaves the lock delegated, and reports the word's value. */
TEST_IN(looking_takes_nothing_back, delegation_setup)
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

	delegated_a(f);
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

/* The holder says since when, in the page: an instant before the grant or after now does not count. */
TEST_IN(since_when_it_is_held, delegation_setup)
{
	delegated_a(f);
	slot(0, 1)->held_since_ns = f->now_ns;
	fixture_pass(f, 5000);
	fixture_say_part(f, 1, "HOLDERS a", "held_ms\r\n:5000\r\n");
	assert_true(leave(0, 1) && take(0, 1));
	slot(0, 1)->held_since_ns = f->now_ns;
	fixture_pass(f, 700);
	fixture_say_part(f, 1, "HOLDERS a", "held_ms\r\n:700\r\n");
	fixture_say_part(f, 1, "WHY a", "held on this host, pid 100 (test), for 700 ms");
	slot(0, 1)->held_since_ns = 1;
	fixture_say_part(f, 1, "HOLDERS a", "held_ms\r\n:5700\r\n");
	slot(0, 1)->held_since_ns = INT64_MAX;
	fixture_say_part(f, 1, "HOLDERS a", "held_ms\r\n:0\r\n");
	slot(0, 1)->held_since_ns = f->now_ns - 700 * MS;
	fixture_say(f, 1, "LOCK a WAIT 0", "$-1"); /* it is wanted: an ordinary grant from now on */
	assert_false(leave(0, 1));
	fixture_say_part(f, 1, "HOLDERS a", "held_ms\r\n:700\r\n");
}

/* Nobody holds the lock, and WHY shows which client has it delegated. */
TEST_IN(who_keeps_a_free_one_is_told, delegation_setup)
{
	delegated_a(f);
	fixture_say_part(f, 1, "LOCKS",
			 "holders\r\n:1\r\n$7\r\nwaiters\r\n:0\r\n$5\r\ntoken\r\n:1024\r\n$9\r\ndelegated\r\n:1\r\n");
	fixture_say_part(f, 1, "WHY a", "delegated\r\n:0\r\n");
	fixture_say_part(f, 1, "CLIENT LIST", " held=1 ");
	assert_true(leave(0, 1));
	fixture_say_part(f, 1, "LOCKS",
			 "holders\r\n:0\r\n$7\r\nwaiters\r\n:0\r\n$5\r\ntoken\r\n:0\r\n$9\r\ndelegated\r\n:1\r\n");
	fixture_say_part(f, 1, "WHY a",
			 "nobody holds it: it is delegated to a client on this host, pid 100 (test), which gets it "
			 "without asking until it is taken back for others\r\n");
	fixture_say_part(f, 1, "WHY a", "delegated\r\n:1\r\n");
	assert_true(take(0, 1) && leave(0, 1));
}

TEST_IN(a_held_one_comes_back_by_unlock, delegation_setup)
{
	delegated_a(f);
	fixture_ask(f, 1, "LOCK a");
	fixture_expect(f, 1, "");
	assert_false(leave(0, 1));
	assert_true(delegation_holds(slot(0, 1), seen[0][1]));
	fixture_say(f, 0, "UNLOCK a", ":0");
	fixture_expect(f, 1, ":1025");
	assert_true(delegation_none(slot(0, 1)));
}

/* Its own requests take it back as well, and may have it delegated again. */
TEST_IN(its_own_client_asks_again, delegation_setup)
{
	delegated_a(f);
	fixture_say(f, 0, "LOCK a", "-HELD this connection holds it already; say REENTER to enter it again, or use one "
				    "connection for each thread: a");
	assert_false(leave(0, 1));
	fixture_say(f, 0, "LOCK a REENTER", ":1024");
	fixture_say(f, 0, "UNLOCK a", ":1");
	fixture_say(f, 0, "UNLOCK a", ":0");
	fixture_say(f, 0, "LOCK a SLOT 1", ":2048");
	assert_true(is_delegated(0, 1) && leave(0, 1));
	fixture_say(f, 0, "UNLOCK a", "-NOTHELD this client does not hold a");
	delegated(f, 0, 1, "LOCK a SLOT 1", ":3072");
}

TEST_IN(what_is_not_delegated, delegation_setup)
{
	static const char *const words[] = {
		"LOCK a SHARED",
		"LOCK a SLOT 1 LEASE 1000",
		"LOCK a SLOT 1 DATA d",
		"LOCK a",
	};

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
	delegated(f, 0, 1, "LOCK c SLOT 1", ":7168");
	fixture_say(f, 0, "LOCK d SLOT 1", ":8192"); /* the slot is in use */
	assert_int_equal(slot(0, 1)->token, 7168);
	fixture_say(f, 0, "LOCK e SLOT 0", "-ERR SLOT takes the number of a slot, 1..63");
	fixture_say(f, 0, "LOCK e SLOT 64", "-ERR SLOT takes the number of a slot, 1..63");
	delegated(f, 0, 63, "LOCK e SLOT 63", ":9216");
}

TEST_IN(what_nobody_uses_goes_back, delegation_setup)
{
	delegated_a(f);
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
TEST_IN(readers_keep_it_until_one_writes, delegation_setup)
{
	give_pages(f);
	fixture_say(f, 0, "LOCK a SHARED SLOT 1", ":1024");
	assert_true(is_delegated(0, 1) && leave(0, 1));
	delegated(f, 1, 2, "LOCK a SHARED SLOT 2", ":1024");
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
TEST_IN(each_reader_keeps_its_own, delegation_setup)
{
	give_pages(f);
	delegated(f, 0, 1, "LOCK a SHARED SLOT 1", ":1024");
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

/* One pass takes all of them back, so their number is limited. */
TEST_IN(so_many_readers_keep_a_lock, delegation_setup_many)
{
	static struct delegation_page many[SHARED_DELEGATIONS_MAX + 1];
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

/* Neither a denied request nor a request for another kind takes a delegation back: the name is in use as a lock. */
TEST_IN(who_is_denied_takes_nothing_back, delegation_setup)
{
	struct broker_conf denying = f->conf;
	char error[RULE_ERROR_MAX];
	struct rule rule;
	static const struct {
		uint32_t conn;
		const char *words, *refused;
	} asked[] = {
		{ 1, "LOCK a", "-DENIED " },
		{ 1, "LOCK a SHARED", "-DENIED " },
		{ 1, "MLOCK 2 a b", "-DENIED " },
		{ 1, "ACQUIRE a LIMIT 1", "-MISMATCH " },
		{ 2, "ACQUIRE a LIMIT 1", "-MISMATCH " },
		{ 2, "CAMPAIGN a DATA x", "-MISMATCH " },
		{ 2, "OBSERVE a", "-MISMATCH " },
	};

	assert_int_equal(rule_parse(&rule, "deny 1001 a lock,shared,acquire,campaign,observe", "conf:7", error), 0);
	fixture_simple(f, EVENT_CLIENT_GONE, 1);
	fixture_connect_as(f, 1, 1001, SLICE(""), false);
	denying.access = (struct access_rules){ .list = &rule, .count = 1, .verbs = rule.verbs };
	fixture_event(f, &(struct event){ .type = EVENT_CONF, .conf = { .now = &denying } });
	delegated_a(f);
	assert_true(leave(0, 1));
	for (size_t i = 0; i < sizeof(asked) / sizeof(asked[0]); i++) {
		fixture_say_begin(f, asked[i].conn, asked[i].words, asked[i].refused);
		assert_true(take(0, 1) && leave(0, 1));
	}
	fixture_event(f, &(struct event){ .type = EVENT_CONF, .conf = { .now = &f->conf } });
	rule_free(&rule);
}

TEST_IN(force_and_the_end_of_a_client, delegation_setup)
{
	delegated_a(f);
	give_page(f, 1);
	fixture_say(f, 2, "FORCEUNLOCK a", ":1");
	assert_false(delegation_holds(slot(0, 1), seen[0][1]) || leave(0, 1));
	fixture_say(f, 0, "UNLOCK a", "-LOST the grant was lost before it was released: a");
	assert_true(delegation_none(slot(0, 1)));
	fixture_say(f, 0, "LOCK b SLOT 1", ":2048");
	assert_true(is_delegated(0, 1) && leave(0, 1));
	fixture_say(f, 2, "FORCEUNLOCK b", ":0");
	assert_false(take(0, 1));
	delegated(f, 1, 5, "LOCK c SLOT 5", ":3072");
	fixture_say(f, 0, "LOCK c", "");
	fixture_simple(f, EVENT_CLIENT_GONE, 1);
	fixture_expect(f, 0, ":3073");
	assert_false(leave(1, 5));
}

TEST_IN(a_daemon_that_stops_takes_all_back, delegation_setup)
{
	delegated_a(f);
	assert_true(leave(0, 1));
	delegated(f, 0, 2, "LOCK b SLOT 2", ":2048");
	fixture_simple(f, EVENT_STOP, 0);
	assert_true(delegation_none(slot(0, 1)));
	assert_false(leave(0, 2));
	assert_int_equal(f->stopped, 0);
	fixture_say(f, 0, "UNLOCK b", ":0");
	assert_int_equal(f->stopped, 2);
}

/* The page is its client's, who may write anything into it: it only harms itself. */
TEST_IN(a_page_of_nonsense, delegation_setup)
{
	give_page(f, 0);
	for (int i = 1; i <= 5; i++) {
		fixture_ask(f, 0, fixture_words(f, "LOCK l%d SLOT %d", i, i));
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
TEST_IN(after_a_hand_over, delegation_setup)
{
	delegated_a(f);
	assert_true(leave(0, 1));
	delegated(f, 0, 2, "LOCK b SLOT 2", ":2048");
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
	delegated(f, 0, 2, "LOCK c SLOT 2", ":5120");
}

/* What the process before had lost is lost, whatever stands in the word: a kill may come before that is written. */
TEST_IN(what_was_lost_before_is_lost_after_a_hand_over, delegation_setup)
{
	delegated_a(f);
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

TEST_IN(what_becomes_of_them_is_counted, delegation_setup)
{
	const struct stats *s = &f->broker->env.stats;
	const struct locks *locks = &f->broker->locks;

	delegated_a(f);
	give_page(f, 1);
	assert_int_equal(locks->page_count, 2);
	assert_true(leave(0, 1));
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
TEST_IN(a_slot_that_two_grants_share_is_noticed, delegation_setup)
{
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
TEST_IN(between_hosts, delegation_setup_zookeeper)
{
	give_page(f, 0);
	fixture_held(f, f->znode);
	fixture_say(f, 0, "UNLOCK a", ":0");
	fixture_say(f, 0, "LOCK a SLOT 1", ":78849"); /* the list with watch is not answered yet */
	assert_false(is_delegated(0, 1));
	fixture_serve_list(f, "/lb/a", 1, (const char *[]){ f->znode });
	fixture_say(f, 0, "UNLOCK a", ":0");
	fixture_say(f, 0, "LOCK a SLOT 1", ":78850");
	assert_true(is_delegated(0, 1) && leave(0, 1));
	assert_int_equal(f->broker->locks.delegated_count, 1);
	fixture_watch(f, ZK_WATCH_CHILDREN, "/lb/a");
	assert_false(take(0, 1));
	assert_true(delegation_none(slot(0, 1)));
}

/* A reader that has to wait, because another host waits, takes the other readers' delegations back. */
TEST_IN(readers_between_hosts, delegation_setup_zookeeper)
{
	give_pages(f);
	idle_a(f);
	fixture_say(f, 0, "LOCK a SHARED SLOT 1", ":78849");
	assert_true(is_delegated(0, 1) && leave(0, 1));
	delegated(f, 1, 1, "LOCK a SHARED SLOT 1", ":78849");
	fixture_watch(f, ZK_WATCH_CHILDREN, "/lb/a");
	assert_false(take(0, 1) || leave(1, 1));
	assert_true(delegation_none(slot(0, 1)));
	fixture_say(f, 1, "UNLOCK a", ":0");
}
