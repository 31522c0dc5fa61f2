/* SPDX-License-Identifier: Apache-2.0 */
/* This host's mailbox (inbox.h), and what it does at another host's word (revoke.h). */
#include <stdio.h>
#include <string.h>

#include "core/hosts/inbox.h"
#include "revocation_fixture.h"
#include "core_test.h"

static const char younger[] = "0000000100001-2000abcdef012345-00000000000000ab";

static const char behind[] = "_c_00000000-0000-8000-8011-00000000b0b0-__WRIT__0000000200";

static const CMFixtureFunction setup = demand_setup;

static const char *revoke_letter(const char *znode, const char *to)
{
	static char data[512];

	snprintf(data, sizeof(data),
		 "1\nkind=revoke\nfrom=beta\nfuture=x\nto=%s\nname=a\nznode=%s\nreason=please go\nuid=0\n"
		 "pid=7\ncommand=sh\nclient=\n",
		 to, znode);
	return data;
}

static const char *force_letter(const char *znode, const char *to)
{
	static char data[512];

	snprintf(data, sizeof(data),
		 "1\nkind=force\nfrom=beta\nto=%s\nname=a\nznode=%s\nuid=0\npid=7\ncommand=sh\nclient=\n", to, znode);
	return data;
}

TEST(a_letter_is_acted_upon_by_who_deleted_it)
{
	fixture_held(f, f->znode);
	letter_arrives(f, letter, revoke_letter(f->znode, "1000abcdef012345"), ZK_NONODE);
	letter_arrives(f, letter, revoke_letter(f->znode, "1000abcdef012345"), ZK_REFUSED);
	fixture_say(f, 0, "EVENTS WAIT 0", "*-1");
	letter_arrives(f, letter, revoke_letter(f->znode, "1000abcdef012345"), ZK_OK);
	fixture_say(f, 0, "EVENTS WAIT 0", "*4 $6 revoke $1 a :78848 $9 please go");
	fixture_no_op(f); /* nobody is told */
}

TEST(letters_that_mean_nothing_here_are_dropped)
{
	char big[INBOX_BYTES_MAX + 64];
	const char *const garbage[] = {
		"",
		"x",
		"1\n",
		"1\nkind=\n",
		"1\nkind=dance\n",
		"1\nkind=revoke\n",
		"2\nkind=force\n",
		"1\nkind=answer\n",
		"1\nkind=answer\nholders=1\n",
		"1\nkind=answer\nre=\nholders=9223372036854775808\n",
		"1\nkind=force\nfrom=../../x\nto=1000abcdef012345\n",
		"1\nkind=force\nfrom=\n",
		"1\nkind=revoke\nfrom=beta\nto=1000abcdef012345\nname=..\nreason=x\n",
		"1\nkind=revoke\nfrom=beta\nto=1000abcdef012345\nname=a\nreason=\n",
		big,
	};

	fixture_held(f, f->znode);
	memset(big, 'x', sizeof(big) - 1);
	memcpy(big, "1\nkind=revoke\nto=1000abcdef012345\nname=a\nreason=x\nznode=", 56);
	big[sizeof(big) - 1] = '\0';
	for (size_t i = 0; i < sizeof(garbage) / sizeof(garbage[0]); i++) {
		letter_arrives(f, letter, garbage[i], ZK_OK);
		fixture_no_op(f);
	}
	letter_arrives(f, letter, revoke_letter(f->znode, "1000abcdef012346"), ZK_OK);
	letter_arrives(f, letter, revoke_letter(elsewhere, "1000abcdef012345"), ZK_OK);
	fixture_no_op(f);
	fixture_say(f, 0, "EVENTS WAIT 0", "*-1");
}

TEST(a_lock_is_taken_for_another_host)
{
	const struct fixture_op *op;

	fixture_held(f, f->znode);
	fixture_ask(f, 1, "LOCK a");
	letter_arrives(f, letter, force_letter(f->znode, "1000abcdef012345"), ZK_OK);
	fixture_expect(f, 1, ":78849");
	op = fixture_op(f, EFFECT_ZK_CREATE, "");
	assert_true(strncmp(op->path, "/lb/.mail/beta/", 15) == 0);
	assert_string_equal(op->data, "1\nkind=answer\nfrom=alpha\nre=0000000100000-2000abcdef012345-00000000000000aa\n"
				      "holders=1\n");
	fixture_answer(f, ZK_NONODE); /* who asked has gone */
	fixture_say(f, 0, "EVENTS WAIT 0", "*4 $4 lost $1 a :78848 $6 forced");
}

/* Held by 0 on `next`, which has taken over from `name` without a gap. */
static void take_over(struct fixture *f, char name[128], char next[128])
{
	fixture_held(f, name);
	for (int i = 0; i < 1024; i++) {
		fixture_ask(f, !(i & 1), "LOCK a");
		fixture_ask(f, i & 1, "UNLOCK a");
		if (i == 0)
			fixture_answer_list(f, 1, 1, (const char *[]){ name });
		if (i != 767)
			continue;
		fixture_answer_made(f, 9, 99, next, 128);
		fixture_answer_list(f, 1, 2, (const char *[]){ name, next });
	}
	fixture_no_op(f);
	bytes_clear(&f->replies[0]);
}

/* What others see of it is the znode that it took over from: the same lock. */
TEST(a_lock_is_taken_by_the_znode_that_keeps_others_out)
{
	char next[128];

	take_over(f, f->znode, next);
	letter_arrives(f, letter, force_letter(f->znode, "1000abcdef012345"), ZK_OK);
	letter_is_sent(f, "beta", "\nholders=1\n");
	fixture_say(f, 0, "VALID a", ":0");
}

/* Whoever wants it comes, which is what lets that znode go; what he has seen is still what is meant. */
TEST(a_lock_is_taken_by_the_znode_that_kept_others_out)
{
	char next[128];

	take_over(f, f->znode, next);
	fixture_watch(f, ZK_WATCH_CHILDREN, "/lb/a");
	fixture_pass(f, 1000);
	fixture_answer_list(f, 1, 3, (const char *[]){ f->znode, next, behind });
	fixture_serve(f, EFFECT_ZK_DELETE, f->znode, ZK_OK);
	fixture_serve_get(f, next, 99, SESSION, "");
	fixture_answer_session(f);
	letter_arrives(f, letter, force_letter(f->znode, "1000abcdef012345"), ZK_OK);
	letter_is_sent(f, "beta", "\nholders=1\n");
	fixture_say(f, 0, "VALID a", ":0");
}

TEST(what_is_not_held_here_is_not_taken)
{
	fixture_held(f, f->znode);
	letter_arrives(f, letter, force_letter(elsewhere, "1000abcdef012345"), ZK_OK);
	letter_is_sent(f, "beta", "\nholders=0\n");
	letter_arrives(f, letter, force_letter(f->znode, "1000abcdef012346"), ZK_OK);
	letter_is_sent(f, "beta", "\nholders=-1\n");
	fixture_say(f, 0, "EVENTS WAIT 0", "*-1");
}

TEST(many_letters_are_read_a_few_at_a_time_the_oldest_first)
{
	static char names[1000][64];
	static const char *children[1000];
	int seen = 0;

	for (int i = 0; i < 1000; i++) {
		snprintf(names[i], sizeof(names[i]), "%013d-x", 999 - i);
		children[i] = names[i];
	}
	fixture_watch(f, ZK_WATCH_CHILDREN, "/lb/.mail/alpha");
	fixture_answer_list(f, 1, 1000, children);
	fixture_watch(f, ZK_WATCH_CHILDREN, "/lb/.mail/alpha");
	for (; seen < 1000; seen++) {
		assert_true(f->end_op - f->first_op <= 2 * INBOX_READS_MAX);
		fixture_serve_get(f, names[999 - seen], 80, BETA, "x");
		fixture_serve(f, EFFECT_ZK_DELETE, names[999 - seen], seen % 2 ? ZK_OK : ZK_NOTEMPTY);
	}
	/* The watch fired meanwhile. What cannot be deleted is not looked at again before it fires again. */
	fixture_serve_list(f, "/lb/.mail/alpha", 1, (const char *[]){ younger });
	fixture_answer_get(f, 80, BETA, "x");
	fixture_answer(f, ZK_NOTEMPTY);
	fixture_no_op(f);
}

TEST(the_box_is_made_when_it_is_missing)
{
	fixture_watch(f, ZK_WATCH_DELETED, "/lb/.mail/alpha");
	for (int i = 0; i < 3; i++) {
		fixture_serve(f, EFFECT_ZK_LIST, "/lb/.mail/alpha", ZK_NONODE);
		fixture_serve(f, EFFECT_ZK_CREATE, "/lb", ZK_NODEEXISTS);
		fixture_serve(f, EFFECT_ZK_CREATE, "/lb/.mail", ZK_OK);
		assert_int_equal(fixture_op(f, EFFECT_ZK_CREATE, "/lb/.mail/alpha")->effect.create, ZK_PERSISTENT);
		fixture_answer(f, ZK_OK);
	}
	/* Something deletes it as fast as it is made. */
	assert_true(fixture_op(f, EFFECT_ZK_LIST, "/lb/.mail/alpha")->effect.watch);
	fixture_answer(f, ZK_NONODE);
	fixture_pass(f, 1000);
	fixture_no_op(f);
	for (int i = 0; i < 29; i++) {
		fixture_pass(f, 1000);
		fixture_answer_beats(f);
	}
	fixture_serve_list(f, "/lb/.mail/alpha", 0, NULL);
}

TEST(a_lost_connection_starts_the_box_anew)
{
	fixture_held(f, f->znode);
	fixture_watch(f, ZK_WATCH_CHILDREN, "/lb/.mail/alpha");
	fixture_answer_list(f, 1, 2, (const char *[]){ younger, letter });
	fixture_answer_get(f, 80, BETA, revoke_letter(f->znode, "1000abcdef012345"));
	fixture_simple(f, EVENT_ZK_SUSPENDED, 0);
	fixture_watch(f, ZK_WATCH_CHILDREN, "/lb/.mail/alpha");
	fixture_say(f, 0, "EVENTS WAIT 0", "*2 $8 jeopardy :8000");
	fixture_say(f, 0, "EVENTS WAIT 0", "*-1");
	fixture_zk_connected(f, SESSION);
	fixture_answer(f, ZK_OK);
	fixture_serve_list(f, "/.mail/alpha", 1, (const char *[]){ letter });
	fixture_serve_get(f, f->znode, 77, SESSION, ""); /* recovery's */
	fixture_answer_get(f, 80, BETA, revoke_letter(f->znode, "1000abcdef012345"));
	fixture_answer(f, ZK_OK);
	fixture_say(f, 0, "EVENTS WAIT 0", "*1 $4 safe");
	fixture_say(f, 0, "EVENTS WAIT 0", "*4 $6 revoke $1 a :78848 $9 please go");
}
