/* SPDX-License-Identifier: Apache-2.0 */
/* RELOAD and EVENT_CONF: who may ask, who is told, and what another configuration changes (broker.h). */
#include "core_test.h"

static struct broker_conf next;

static int setup(void **state)
{
	struct fixture *f = fixture_new(true);
	int rc = fixture_setup(f, 3, state);

	next = f->conf;
	return rc;
}

static void changed(struct fixture *f, const char *text)
{
	fixture_event(f, &(struct event){ .type = EVENT_CONF, .conf = { .now = &next, .text = slice_of(text) } });
}

static void refused(struct fixture *f, const char *sentence)
{
	fixture_event(f, &(struct event){ .type = EVENT_CONF, .conf = { .text = slice_of(sentence) } });
}

TEST(all_who_asked_are_told_what_has_changed)
{
	fixture_ask(f, 0, "RELOAD");
	fixture_ask(f, 2, "RELOAD");
	assert_int_equal(f->reloads, 2);
	fixture_expect(f, 0, "");
	changed(f, "locks.linger_ms = 5, before 100");
	fixture_expect(f, 0, "$31 locks.linger_ms = 5, before 100");
	fixture_expect(f, 1, "");
	fixture_expect(f, 2, "$31 locks.linger_ms = 5, before 100");
	fixture_say(f, 0, "PING", "+PONG");
}

TEST(an_error_is_told_and_nothing_changes)
{
	next.limits.locks = 0;
	fixture_ask(f, 0, "RELOAD");
	refused(f, "conf:2: locks.x: unknown key");
	fixture_expect(f, 0, "-ERR conf:2: locks.x: unknown key");
	fixture_say(f, 0, "LOCK a", ":1024");
}

TEST(nobody_else_is_told)
{
	changed(f, "");
	refused(f, "an error");
	fixture_ask(f, 0, "RELOAD");
	fixture_simple(f, EVENT_CLIENT_GONE, 0);
	fixture_connect(f, 0);
	changed(f, "");
	fixture_expect(f, 0, "");
	fixture_say(f, 0, "PING", "+PONG");
}

TEST(other_users_may_not_ask)
{
	fixture_operators(f, false);
	fixture_say(f, 0, "RELOAD", "-DENIED only operators may have the configuration read again" DENIED_HOW);
	assert_int_equal(f->reloads, 0);
}

TEST(when_it_stops_it_is_too_late)
{
	fixture_say(f, 0, "LOCK a", ":1024");
	fixture_ask(f, 1, "RELOAD");
	fixture_simple(f, EVENT_STOP, 0);
	fixture_say(f, 2, "RELOAD", "-DRAINING the daemon is stopping");
	changed(f, "");
	fixture_expect(f, 1, "$0");
}

TEST(what_exists_beyond_a_lower_limit_stays)
{
	fixture_say(f, 0, "LOCK a", ":1024");
	fixture_say(f, 0, "LOCK b", ":2048");
	fixture_ask(f, 1, "LOCK a");
	next.limits.locks = 1;
	next.limits.requests_per_lock = 1;
	changed(f, "");
	fixture_say(
		f, 2, "LOCK c",
		"-LIMIT user 1000 uses 2 of 1 allowed names of locks in use (limits.locks, limits.user_share): "
		"release some before you ask for more: c");
	fixture_say(f, 2, "LOCK a",
		    "-LIMIT as many clients as one lock may have already wait for it (limits.requests_per_lock): a");
	fixture_say(f, 0, "UNLOCK a", ":0");
	fixture_expect(f, 1, ":1025");
	fixture_say(f, 0, "UNLOCK b", ":0");
	next.limits.locks = 100;
	changed(f, "");
	fixture_say(f, 2, "LOCK c", ":3072");
}

/* Who is connected stays in the account that it is in. */
TEST(who_comes_then_is_counted_by_unit)
{
	static const uint32_t uids[] = { 1000 };

	next.limits.locks = 2;
	next.limits.user_share = 50;
	next.limits.by_unit = uids;
	next.limits.by_unit_count = 1;
	fixture_connect_as(f, 3, 1000, SLICE("web.service"), false);
	changed(f, "");
	fixture_connect_as(f, 4, 1000, SLICE("web.service"), false);
	fixture_connect_as(f, 5, 1000, SLICE("other.service"), false);
	fixture_say(f, 3, "LOCK a", ":1024");
	fixture_say(f, 3, "LOCK b",
		    "-LIMIT user 1000 uses 1 of 1 allowed names of locks in use (limits.locks, limits.user_share): "
		"release some before you ask for more: b");
	next.limits.locks = 6;
	changed(f, "");
	fixture_say(f, 4, "LOCK c", ":2048");
	fixture_say(f, 4, "LOCK d", ":3072");
	fixture_say(f, 4, "LOCK e",
		    "-LIMIT user 1000 (unit web.service) uses 2 of 2 allowed names of locks in use (limits.locks, "
		    "limits.user_share): release some before you ask for more: e");
	fixture_say(f, 5, "LOCK e", ":4096");
	for (uint32_t conn = 3; conn <= 5; conn++)
		fixture_simple(f, EVENT_CLIENT_GONE, conn);
}

TEST(grants_are_logged_from_then_on)
{
	fixture_say(f, 0, "LOCK a", ":1024");
	fixture_say(f, 0, "UNLOCK a", ":0");
	assert_false(fixture_logged(f, "released: lock"));
	next.log_level = EFFECT_LEVEL_INFO;
	next.log_grants = true;
	changed(f, "");
	fixture_say(f, 1, "LOCK b", ":2048");
	fixture_say(f, 1, "UNLOCK b", ":0");
	assert_true(fixture_logged(f, "released: lock \"b\""));
}
