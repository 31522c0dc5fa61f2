/* SPDX-License-Identifier: Apache-2.0 */
/* Notifications of one client: pushed or kept, read in order, bounded. */
#include "core/client/notify.h"

#include "tests/unit/unit.h"

#include "core/lock/locks.h"

static struct broker_conf conf;
static struct effects effects;
static struct env env;
static struct ensemble ensemble;
static struct locks locks;
static struct client c;

static int setup(void **state)
{
	conf = (struct broker_conf){ .standalone = true, .limits = { .events_per_client = 3, .output_bytes = 4000 } };
	env = (struct env){ .conf = &conf, .out = &effects };
	ensemble = (struct ensemble){ .env = &env };
	locks = (struct locks){ .env = &env, .ensemble = &ensemble };
	accounts_init(&env.accounts, POOLS, 1, 2);
	c = (struct client){ .locks = &locks, .version = 2, .account = account_enter(&env.accounts, 1000, "", 0) };
	TAILQ_INIT(&locks.closing);
	TAILQ_INIT(&c.notifications);
	return 0;
}

static int teardown(void **state)
{
	notification_drop_all(&c);
	assert_int_equal(c.notification_count, 0);
	effects_free(&effects);
	effects = (struct effects){ 0 };
	heap_deinit(&env.timers);
	account_leave(c.account);
	accounts_deinit(&env.accounts);
	return 0;
}

#undef TEST
#define TEST(name) TEST_WITH(name, setup, teardown)

/* The only effect since the last time is of that type and has that text. */
static void said(enum effect_type type, const char *text)
{
	struct slice s;

	assert_int_equal(effects.count, 1);
	assert_int_equal(effects.list[0].type, type);
	s = effects_slice(&effects, effects.list[0].text);
	assert_int_equal(s.len, strlen(text));
	assert_memory_equal(s.data, text, s.len);
	effects_clear(&effects);
}

static void asks(int64_t wait_ns)
{
	c.asking = true;
	notify_wait(&c, wait_ns);
}

TEST(kept_until_it_is_read_in_order)
{
	notify(&c, "granted", SLICE("a"), 7);
	notify(&c, "timeout", SLICE("b"));
	assert_int_equal(effects.count, 0);
	asks(0);
	said(EFFECT_REPLY, "*3\r\n$7\r\ngranted\r\n$1\r\na\r\n:7\r\n");
	asks(0);
	said(EFFECT_REPLY, "*2\r\n$7\r\ntimeout\r\n$1\r\nb\r\n");
	asks(0);
	said(EFFECT_REPLY, "*-1\r\n");
}

TEST(events_that_waits_is_answered_at_once)
{
	asks(-1);
	assert_true(c.events_waiting);
	notify(&c, "timeout", SLICE("b"));
	said(EFFECT_REPLY, "*2\r\n$7\r\ntimeout\r\n$1\r\nb\r\n");
	assert_false(c.events_waiting || c.asking);
	assert_true(TAILQ_EMPTY(&c.notifications));
}

TEST(pushed_in_resp3)
{
	c.version = 3;
	notify(&c, "failed", SLICE("a"), "LIMIT", SLICE("why"));
	said(EFFECT_PUSH, ">4\r\n$6\r\nfailed\r\n$1\r\na\r\n$5\r\nLIMIT\r\n$3\r\nwhy\r\n");
}

TEST(what_was_kept_is_pushed_when_it_turns_to_resp3)
{
	notify(&c, "timeout", SLICE("b"));
	notify_speak(&c, 3);
	said(EFFECT_PUSH, ">2\r\n$7\r\ntimeout\r\n$1\r\nb\r\n");
	assert_true(TAILQ_EMPTY(&c.notifications));
}

TEST(only_the_latest_word_of_the_session_is_kept)
{
	c.is_holder = true;
	ensemble.session.state = SESSION_JEOPARDY;
	notify_session(&c);
	notify_session(&c);
	ensemble.session.state = SESSION_SAFE;
	notify_session(&c);
	assert_int_equal(c.notification_count, 1);
	asks(0);
	said(EFFECT_REPLY, "*1\r\n$4\r\nsafe\r\n");
	assert_null(c.session_notification);
}

TEST(a_client_that_holds_nothing_is_in_no_jeopardy)
{
	ensemble.session.state = SESSION_JEOPARDY;
	notify_session(&c);
	assert_true(TAILQ_EMPTY(&c.notifications));
}

TEST(a_client_that_reads_none_is_closed)
{
	for (int i = 0; i < 3; i++)
		notify(&c, "timeout", SLICE("b"));
	assert_false(c.closing);
	assert_true(notify_full(&c));
	notify(&c, "timeout", SLICE("b"));
	assert_true(c.closing);
	assert_ptr_equal(TAILQ_FIRST(&locks.closing), &c);
}

TEST(an_election_that_is_observed_again_forgets_what_was_said_before)
{
	notify(&c, "unobserved", SLICE("a"), "UNAVAILABLE", SLICE("why"));
	notify(&c, "unobserved", SLICE("ab"), "UNAVAILABLE", SLICE("why"));
	notify_forget_unobserved(&c, SLICE("a"));
	assert_int_equal(c.notification_count, 1);
	asks(0);
	said(EFFECT_REPLY, "*4\r\n$10\r\nunobserved\r\n$2\r\nab\r\n$11\r\nUNAVAILABLE\r\n$3\r\nwhy\r\n");
}

TEST(a_revocation_is_kept_once_for_each_grant)
{
	struct lock lock = { .locks = &locks };
	struct grant g = { .client = &c, .lock = &lock, .token = 5 };

	bytes_text(&lock.name, "a");
	notify_revoke(&c, &g, SLICE("first"));
	notify_revoke(&c, &g, SLICE("second"));
	assert_int_equal(c.notification_count, 1);
	asks(0);
	said(EFFECT_REPLY, "*4\r\n$6\r\nrevoke\r\n$1\r\na\r\n:5\r\n$6\r\nsecond\r\n");
	assert_null(g.notification);
	bytes_free(&lock.name);
}
