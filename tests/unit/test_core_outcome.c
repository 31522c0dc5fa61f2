/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A claim whose operation was refused, or is of unknown outcome: what it left is looked for, adopted or deleted
 * (claim.h), and nothing is asked for again and again.
 */
#include <stdio.h>
#include <string.h>

#include "claim_fixture.h"
#include "core_test.h"

SETUP(setup, false, 4)

/* Pitfall 14. */
TEST(a_create_whose_reply_was_lost_is_found_and_adopted)
{
	fixture_ask_to_create(f, 0);
	fixture_reconnect(f);
	fixture_serve_list(f, "/lb/a", 1, (const char *[]){ f->znode });
	fixture_serve_get(f, f->znode, 77, SESSION, "");
	fixture_serve_list(f, "/lb/a", 1, (const char *[]){ f->znode });
	fixture_expect(f, 0, ":78848");
}

/* Pitfall 1. */
TEST(a_znode_of_another_session_is_never_adopted)
{
	fixture_ask_to_create(f, 0);
	fixture_reconnect(f);
	fixture_answer_list(f, 1, 1, (const char *[]){ f->znode });
	fixture_answer_get(f, 77, SESSION + 1, "");
	fixture_expect(f, 0, "");
	fixture_op(f, EFFECT_ZK_LIST, "/lb/a");
}

/*
 * Somebody forges a znode with the name that a create of unknown outcome would have made, and with a lower number; the list
 * shows it first. The daemon does not hold the lock by it, and neither znode stays behind.
 */
TEST(a_forged_znode_of_its_name_is_not_adopted_and_neither_stays)
{
	char forged[128], again[128];

	fixture_ask_to_create(f, 0);
	snprintf(forged, sizeof(forged), "%s", f->znode);
	forged[strlen(forged) - 1] = '1';
	fixture_reconnect(f);
	fixture_answer_list(f, 1, 2, (const char *[]){ forged, f->znode });
	fixture_serve_get(f, forged, 78, SESSION + 1, "");
	fixture_serve_list(f, "/lb/a", 2, (const char *[]){ forged, f->znode });
	fixture_answer_made(f, 6, 79, again, sizeof(again));
	fixture_answer_list(f, 1, 3, (const char *[]){ forged, f->znode, again });
	fixture_serve(f, EFFECT_ZK_DELETE, forged, ZK_OK);
	fixture_op(f, EFFECT_ZK_DELETE, f->znode);
	fixture_expect(f, 0, "");
	fixture_answer(f, ZK_OK);
	fixture_serve_list(f, "/lb/a", 1, (const char *[]){ again });
	fixture_expect(f, 0, ":80896");
	fixture_no_op(f);
}

/* The same, cancelled: both are deleted. */
TEST(a_forged_znode_of_a_cancelled_ones_name_does_not_hide_it)
{
	char forged[128];

	fixture_ask_to_create(f, 0);
	snprintf(forged, sizeof(forged), "%s", f->znode);
	forged[strlen(forged) - 1] = '1';
	fixture_simple(f, EVENT_CLIENT_GONE, 0);
	fixture_reconnect(f);
	fixture_answer_list(f, 1, 2, (const char *[]){ forged, f->znode });
	fixture_serve(f, EFFECT_ZK_DELETE, forged, ZK_OK);
	fixture_serve(f, EFFECT_ZK_DELETE, f->znode, ZK_OK);
	fixture_no_op(f);
}

/* Pitfall 14. */
TEST(a_cancelled_create_of_unknown_outcome_is_deleted_not_adopted)
{
	fixture_ask_to_create(f, 0);
	fixture_simple(f, EVENT_CLIENT_GONE, 0);
	fixture_reconnect(f);
	fixture_serve_list(f, "/lb/a", 1, (const char *[]){ f->znode });
	fixture_serve(f, EFFECT_ZK_DELETE, f->znode, ZK_OK);
	fixture_no_op(f);
}

/* Pitfall 1. */
TEST(a_copy_of_our_name_is_not_taken_for_ours)
{
	char prefix[128], name[160], copy[200], copy2[200];

	fixture_ask(f, 0, "LOCK a");
	fixture_answer_get(f, 1, 0, LOCK_DATA);
	snprintf(prefix, sizeof(prefix), "%s", strrchr(fixture_op(f, EFFECT_ZK_CREATE, "")->path, '/') + 1);
	snprintf(name, sizeof(name), "%s0000000005", prefix);
	snprintf(copy, sizeof(copy), "%s0000000005-saved-by-an-operator-0000000001", prefix);
	snprintf(copy2, sizeof(copy2), "%s", prefix);
	fixture_simple(f, EVENT_CLIENT_GONE, 0);
	fixture_reconnect(f);
	fixture_serve_list(f, "/lb/a", 3, (const char *[]){ copy, copy2, name });
	fixture_op(f, EFFECT_ZK_DELETE, name);
}

/* Pitfall 13. */
TEST(a_delete_of_unknown_outcome_is_sent_again)
{
	fixture_held(f, f->znode);
	fixture_say(f, 0, "UNLOCK a", ":0");
	fixture_op(f, EFFECT_ZK_DELETE, f->znode);
	fixture_reconnect(f);
	fixture_serve(f, EFFECT_ZK_DELETE, f->znode, ZK_NONODE);
	fixture_answer_list(f, 1, 0, NULL);
	fixture_no_op(f);
}

/* Pitfall 13. */
TEST(a_stray_of_our_session_is_deleted_where_a_list_shows_it)
{
	char stray[128];

	fixture_join(f, 0, "LOCK a");
	snprintf(stray, sizeof(stray), "%.24sffffffffffff-__WRIT__0000000001", f->znode);
	stray[26] = '-';
	fixture_answer_list(f, 1, 2, (const char *[]){ stray, f->znode });
	fixture_serve(f, EFFECT_ZK_DELETE, stray, ZK_OK);
	/* No watch on a znode of ours: that it is gone is known. */
	fixture_serve_list(f, "/lb/a", 1, (const char *[]){ f->znode });
	fixture_expect(f, 0, ":78848");
}

TEST(an_unknown_answer_on_a_living_connection_is_not_asked_for_at_once_again)
{
	fixture_ask(f, 0, "LOCK a");
	fixture_answer_get(f, 1, 0, LOCK_DATA);
	fixture_answer(f, ZK_UNKNOWN);
	assert_int_equal(f->drops, 1);
	fixture_reconnected(f);
	fixture_answer_list(f, 1, 0, NULL);
	fixture_no_op(f);
	fixture_pass(f, 1000);
	fixture_op(f, EFFECT_ZK_CREATE, "-__WRIT__");
}

TEST(a_predecessor_that_cannot_be_read_is_looked_for_again)
{
	fixture_join(f, 0, "LOCK a");
	fixture_answer_list(f, 1, 2, (const char *[]){ f->znode, foreign_low });
	fixture_refuse_own(f);
	fixture_answer(f, ZK_REFUSED);
	fixture_no_op(f);
	fixture_pass(f, 999);
	fixture_no_op(f);
	fixture_pass(f, 1);
	fixture_serve_list(f, "/lb/a", 1, (const char *[]){ f->znode });
	fixture_expect(f, 0, ":78848");
}

/* Because something was refused, the host tries whether a znode can be made at all (health.h). */
static void answer_try(struct fixture *f)
{
	fixture_serve(f, EFFECT_ZK_CREATE, "/lb/.try_alpha", ZK_OK);
	fixture_serve(f, EFFECT_ZK_DELETE, "/lb/.try_alpha", ZK_OK);
}

TEST(a_refused_watch_list_is_not_asked_for_at_once_again)
{
	fixture_held(f, f->znode);
	fixture_pass(f, 1000);
	fixture_serve(f, EFFECT_ZK_LIST, "/lb/a", ZK_REFUSED);
	fixture_no_op(f);
	fixture_pass(f, 1000);
	fixture_answer_beats(f);
	answer_try(f);
	fixture_op(f, EFFECT_ZK_LIST, "/lb/a");
}

TEST(nothing_is_listed_while_the_heartbeat_is_refused)
{
	fixture_held(f, f->znode);
	fixture_simple(f, EVENT_ZK_SUSPENDED, 0);
	fixture_zk_connected(f, SESSION);
	fixture_serve(f, EFFECT_ZK_SET, "/lb/.hosts/alpha", ZK_REFUSED);
	fixture_no_op(f);
	fixture_pass(f, 1500);
	fixture_serve(f, EFFECT_ZK_SET, "/lb/.hosts/alpha", ZK_OK);
	answer_try(f);
	fixture_op(f, EFFECT_ZK_GET, f->znode);
}

TEST(a_cancelled_create_that_is_refused_fails_nobody_else)
{
	fixture_ask(f, 0, "LOCK a");
	fixture_answer_get(f, 1, 0, LOCK_DATA);
	fixture_simple(f, EVENT_CLIENT_GONE, 0);
	fixture_ask(f, 1, "LOCK a");
	fixture_answer(f, ZK_REFUSED);
	fixture_expect(f, 1, "");
	fixture_answer_list(f, 1, 0, NULL);
	fixture_serve_alone(f, "-__WRIT__", 6, 77, f->znode);
	fixture_expect(f, 1, ":78848");
}
