/* SPDX-License-Identifier: Apache-2.0 */
/* REVOKE: asking the holders of a lock to let go, on whichever hosts (revocation.h, revoke.h). */
#include <stdio.h>
#include <string.h>

#include "core/hosts/outbox.h"
#include "core/state.h"
#include "revocation_fixture.h"
#include "core_test.h"

static const char reader[] = "_c_4c61f3c2-7f3c-4c11-9d3e-1c6f0f3a9b13-__READ__0000000001";
static const char other_reader[] = "_c_4c61f3c2-7f3c-4c11-9d3e-1c6f0f3a9b14-__READ__0000000002";

static const CMFixtureFunction setup = demand_setup;

TEST(a_holder_here_is_asked)
{
	fixture_held(f, f->znode);
	fixture_say(f, 1, "REVOKE a maintenance", ":1");
	fixture_no_op(f);
	fixture_say(f, 0, "EVENTS", "*4 $6 revoke $1 a :78848 $11 maintenance");
	/* Whoever asks again and again fills nobody's buffers. */
	fixture_say(f, 1, "REVOKE a", ":1");
	fixture_say(f, 0, "EVENTS WAIT 0", "*-1");
	fixture_pass(f, 1000);
	fixture_serve_list(f, "/lb/a", 1, (const char *[]){ f->znode });
	fixture_say(f, 1, "REVOKE a", ":1");
	fixture_pass(f, 1000);
	fixture_say(f, 1, "REVOKE a again", ":1");
	fixture_say(f, 0, "EVENTS", "*4 $6 revoke $1 a :78848 $5 again");
	fixture_say(f, 0, "EVENTS WAIT 0", "*-1");
}

TEST(a_revocation_nobody_has_read_ends_with_its_grant)
{
	fixture_held(f, f->znode);
	fixture_say(f, 1, "REVOKE a", ":1");
	fixture_say(f, 0, "UNLOCK a", ":0");
	fixture_say(f, 0, "EVENTS WAIT 0", "*-1");
}

TEST(a_client_may_be_asked_for_all_it_holds)
{
	f->conf.limits.events_per_client = 1;
	for (int i = 0; i < 3; i++)
		fixture_lock_held(f, 0, fixture_words(f, "l%d", i), 5, 77, f->znode, sizeof(f->znode));
	for (int i = 0; i < 3; i++)
		fixture_say(f, 1, fixture_words(f, "REVOKE l%d", i), ":0"); /* it has no room for that */
	assert_int_equal(f->closed[0], 0);
}

TEST(reasons_are_short_and_printable)
{
	char words[160] = "REVOKE a ";

	memset(words + 9, 'x', 128);
	fixture_ask(f, 0, words);
	fixture_serve_list(f, "/lb/a", 0, NULL);
	fixture_expect(f, 0, ":0");
	words[9 + 128] = 'x';
	fixture_say(f, 0, words, "-ERR a reason is 1..128 bytes of UTF-8 without control characters");
	fixture_say(f, 0, "REVOKE a x\ty", "-ERR a reason is 1..128 bytes of UTF-8 without control characters");
	fixture_say(f, 0, "REVOKE a \xff", "-ERR a reason is 1..128 bytes of UTF-8 without control characters");
	fixture_say(f, 0, "REVOKE ..",
		    "-BADNAME a lock name is 1..512 bytes of UTF-8 without control characters, not . or ..: \"..\"");
}

TEST(a_holder_elsewhere_is_asked_by_letter)
{
	const struct fixture_op *op;
	char id[128];

	fixture_ask(f, 0, "REVOKE a maintenance");
	held_by_beta(f);
	op = fixture_op(f, EFFECT_ZK_CREATE, "");
	assert_int_equal(op->effect.create, ZK_EPHEMERAL);
	assert_true(strncmp(op->path, "/lb/.mail/beta/0000000100000-1000abcdef012345-", 46) == 0);
	assert_string_equal(op->data, "1\nkind=revoke\nfrom=alpha\nto=2000abcdef012345\nname=a\nznode="
				      "_c_4c61f3c2-7f3c-4c11-9d3e-1c6f0f3a9b11-__WRIT__0000000003\nreason=maintenance\n"
				      "uid=1000\npid=100\ncommand=test\nclient=\n");
	snprintf(id, sizeof(id), "%s", path_end(op->path));
	fixture_expect(f, 0, "");
	fixture_answer(f, ZK_OK);
	fixture_expect(f, 0, ":1");
	/* A host that has not read it by now has lost its session. */
	for (int i = 0; i < 11; i++) {
		fixture_pass(f, 1000);
		fixture_answer_beats(f);
		fixture_no_op(f);
	}
	fixture_pass(f, 1000);
	fixture_serve(f, EFFECT_ZK_DELETE, id, ZK_NONODE);
	fixture_simple(f, EVENT_CLIENT_GONE, 0);
}

TEST(all_readers_are_asked)
{
	fixture_ask(f, 0, "REVOKE a");
	fixture_serve_list(f, "/lb/a", 3, (const char *[]){ elsewhere, reader, other_reader });
	fixture_answer_get(f, 70, BETA, "1\nhost=beta\n");
	fixture_answer_get(f, 71, BETA + 1, "1\nhost=gamma\n");
	fixture_serve(f, EFFECT_ZK_CREATE, "", ZK_OK); /* the writer that waits is not read at all */
	fixture_expect(f, 0, "");
	fixture_answer(f, ZK_OK);
	fixture_expect(f, 0, ":2");
}

TEST(nobody_holds_it)
{
	fixture_ask(f, 0, "REVOKE a");
	fixture_answer(f, ZK_NONODE);
	fixture_expect(f, 0, ":0");
	fixture_ask(f, 0, "FORCEUNLOCK a");
	fixture_answer_list(f, 1, 0, NULL);
	fixture_expect(f, 0, ":0");
	fixture_ask(f, 0, "FORCEUNLOCK a");
	fixture_answer_list(f, 1, 1, (const char *[]){ elsewhere });
	fixture_answer(f, ZK_NONODE); /* it left meanwhile */
	fixture_expect(f, 0, ":0");
	fixture_no_op(f);
}

TEST(other_software_cannot_be_asked)
{
	fixture_ask(f, 0, "REVOKE a");
	held_by(f, elsewhere, "10.0.0.1");
	fixture_expect(f, 0, "-ERR it is held by software other than lockbroker, which cannot be asked to release it");
	fixture_ask(f, 0, "REVOKE a");
	held_by(f, elsewhere, "1\nhost=../x\n");
	fixture_expect(f, 0, "-ERR it is held by software other than lockbroker, which cannot be asked to release it");
	fixture_no_op(f);
}

/*
 * Pushes that nobody reads fill the connection's buffer, and a full one closes it: whoever revokes must not do that. So
 * they fill a part of it, until they were written.
 */
TEST_IN(a_holder_is_asked_as_long_as_it_reads, demand_setup_standalone)
{
	f->conf.limits.output_bytes = 4 * 2 * sizeof(">4\r\n$6\r\nrevoke\r\n$1\r\na\r\n:1024\r\n$1\r\n?\r\n") - 4;
	f->conf.limits.events_per_client = 2;
	fixture_resp3(f, 0);
	fixture_say(f, 0, "LOCK a", ":1024");
	for (int round = 0; round < 3; round++) {
		fixture_say(f, 1, "REVOKE a x", ":1");
		fixture_expect_push(f, 0, ">4 $6 revoke $1 a :1024 $1 x");
		assert_false(f->report[0]);
		fixture_say(f, 1, "REVOKE a y", ":1"); /* it was asked less than a second ago */
		fixture_expect_push(f, 0, "");
		fixture_pass(f, 1000);
		fixture_say(f, 1, "REVOKE a z", ":1");
		fixture_expect_push(f, 0, ">4 $6 revoke $1 a :1024 $1 z");
		assert_false(f->report[0]);
		fixture_pass(f, 1000);
		fixture_say(f, 1, "REVOKE a x", ":1");
		fixture_expect_push(f, 0, ">4 $6 revoke $1 a :1024 $1 x");
		assert_true(f->report[0]);
		fixture_pass(f, 1000);
		/* That it asks for something does not show that it reads. Who is not asked does not count as asked. */
		fixture_say(f, 0, "PING", "+PONG");
		fixture_say(f, 1, "REVOKE a x", ":0");
		fixture_expect_push(f, 0, "");
		fixture_simple(f, EVENT_CLIENT_WRITTEN, 0);
	}
}

TEST(what_cannot_be_asked_now_is_unavailable)
{
	fixture_ask(f, 0, "REVOKE a");
	held_by_beta(f);
	fixture_answer(f, ZK_NONODE);
	fixture_expect(f, 0, "-UNAVAILABLE the holder's host has no mailbox, so it cannot be asked");
	fixture_ask(f, 0, "REVOKE a");
	fixture_ask(f, 1, "FORCEUNLOCK a");
	fixture_op(f, EFFECT_ZK_LIST, "/lb/a");
	fixture_simple(f, EVENT_ZK_SUSPENDED, 0);
	fixture_expect(f, 0, "-UNAVAILABLE ZooKeeper cannot be asked who holds it");
	fixture_expect(f, 1, "-UNAVAILABLE ZooKeeper cannot be asked who holds it");
	fixture_say(f, 0, "REVOKE a", "-UNAVAILABLE ZooKeeper cannot be asked who holds it");
}

static void letters_are_sent(struct fixture *f, uint32_t conn, int count)
{
	for (int i = 0; i < count; i++) {
		fixture_ask(f, conn, "REVOKE a");
		held_by_beta(f);
		fixture_answer(f, ZK_OK);
		fixture_expect(f, conn, ":1");
	}
}

TEST(letters_under_way_are_bounded)
{
	static struct rule rule;
	char error[RULE_ERROR_MAX];

	assert_int_equal(rule_parse(&rule, "allow * * revoke", "file:1", error), 0);
	f->conf.access = (struct access_rules){ &rule, 1, rule.verbs };
	f->conf.limits.session_path_bytes = 1000000;
	fixture_connect_as(f, 4, 1001, SLICE(""), false);
	letters_are_sent(f, 4, LETTER_REVOKES_MAX - LETTER_REVOKES_MAX / ACCOUNT_RESERVE_PART);
	fixture_ask(f, 4, "REVOKE a");
	held_by_beta(f);
	fixture_expect(f, 4,
		       "-LIMIT user 1001 uses 173 of 173 allowed letters to other hosts (176 at a time, "
		       "limits.user_share): try again in a few seconds");
	/* Operators have a reserve. */
	letters_are_sent(f, 0, LETTER_REVOKES_MAX / ACCOUNT_RESERVE_PART);
	fixture_ask(f, 0, "REVOKE a");
	held_by_beta(f);
	fixture_expect(f, 0,
		       "-LIMIT user 1000 uses 3 of 3 allowed letters to other hosts (176 at a time, "
		       "limits.user_share): try again in a few seconds");
	/* What takes a lock by force goes out all the same. */
	fixture_ask(f, 0, "FORCEUNLOCK a");
	held_by_beta(f);
	fixture_op(f, EFFECT_ZK_CREATE, "");
	f->conf.limits.session_path_bytes = 10;
	fixture_ask(f, 1, "FORCEUNLOCK a");
	fixture_answer(f, ZK_OK);
	held_by_beta(f);
	fixture_expect(f, 1,
		       "-LIMIT no room for another letter: 176 (REVOKE) or 240 (FORCEUNLOCK) are under way, or "
		       "limits.session_path_bytes is reached; try again in a few seconds");
	rule_free(&rule);
}

/* The bytes of their paths are those of claims. */
TEST(an_operator_has_room_for_the_path_of_a_letter)
{
	const struct hosts *h = &f->broker->hosts;
	size_t path = strlen("/lb/.mail/") + LETTER_HOST_MAX + 49;

	fixture_connect_as(f, 4, 1001, SLICE(""), false);
	accounts_set_total(&f->broker->env.accounts, POOL_PATHS, path + 1);
	assert_false(outbox_room(h, LETTER_REVOKE, f->broker->locks.conns[4], 1));
	assert_true(outbox_room(h, LETTER_REVOKE, f->broker->locks.conns[0], 1));
	assert_false(outbox_room(h, LETTER_REVOKE, f->broker->locks.conns[0], 2));
	assert_true(outbox_room(h, LETTER_ANSWER, NULL, 1));
}
