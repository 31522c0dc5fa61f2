/* SPDX-License-Identifier: Apache-2.0 */
/* What is done to a lock under a value on the host that has granted it (core/hosts/forward.h), seen from both hosts. */
#include <stdio.h>
#include <string.h>

#include "base/sha256.h"
#include "core/hosts/hosts.h"
#include "core/state.h"
#include "delegation_fixture.h"
#include "revocation_fixture.h"
#include "core_test.h"

/* Scripts of redis-py and of redlock of npm, which are known by their hashes. */
#define RELEASE "EVALSHA c3f8721cbb97f72bc19e972846bd7aaf91901658 1 a v"
#define EXTEND_BY "EVALSHA a4e8783852e6b949f9ef3a97212805108459a890 1 a v 3000 "
#define LEFT "EVALSHA 6484da7d58920897fdc22b7f9afd1a3d47524ea8 1 a v"
#define TOUCH "EVALSHA 78d3bb55c589f1b2edf66f3527f5017f8dfcd6bb 3 a 70 v"
#define RELEASE_EACH "EVALSHA 0f0f23b9048b36752b5be114f357ba083449f908 "
#define EXTEND_ALL "EVALSHA ce46f80993d5dac20dd066eb301a4e37994bdbed "
/* Of the salt and the value: "s:v", "s:w", and in the first letter of this host. */
#define HASH_OF_V "6c030255aa090d4abd9d6f95e73f73258a9ca19204aeee8558d540a74100c9b3"
#define HASH_OF_W "dab041928641bd0d1b57cdcdce7e89a5fd2f7264735a21f52b14069949fbc435"
#define HASH_OF_FIRST "c91f4fdf743af1263d4828b3fb524a8bb6a50b36be94789862244201fdd7daf7"
#define HELD "-UNAVAILABLE a is held by host beta, "
#define NOTHING ": nothing was done there, so ask again"

/* Letters are the first thing of which there is not enough. */
static int setup(void **state)
{
	return fixture_setup(letters_new(), 4, state);
}

static int setup_shared(void **state)
{
	struct fixture *f = letters_new();

	f->conf.limits.user_share = 75;
	return fixture_setup(f, 4, state);
}

/* ---- who asks ---- */

/* It asks who holds the lock, and beta does. */
static void ask(struct fixture *f, uint32_t conn, const char *words)
{
	fixture_ask(f, conn, words);
	beta_is_listed(f);
}

/* The same for connection 0, and the letter to beta has that in it. */
static void asks_beta(struct fixture *f, const char *words, const char *part)
{
	ask(f, 0, words);
	letter_is_sent(f, "beta", part);
}

/* Beta's answer to that letter, and the client's reply; nothing yet: "". */
static void answers(struct fixture *f, const char *found, const char *reply)
{
	answer_arrives(f, posted, fixture_words(f, "found=%s", found));
	fixture_pass(f, 0);
	fixture_expect(f, 0, reply);
}

/* After `free` this host lists once more, after a write: the same host is named again. */
static void found(struct fixture *f, const char *words, const char *there, const char *reply)
{
	asks_beta(f, words, "kind=bearer\n");
	fixture_expect(f, 0, "");
	if (strcmp(there, "free") == 0) {
		answers(f, there, "");
		fixture_answer_write(f, ZK_BADVERSION);
		held_by_beta(f);
		fixture_expect(f, 0, "");
		fixture_pass(f, 0);
		fixture_expect(f, 0, reply);
	} else {
		answers(f, there, reply);
	}
	fixture_no_op(f);
	assert_true(TAILQ_EMPTY(&f->broker->hosts.forwards) && f->broker->hosts.outbox_count == 0);
}

TEST(a_release_goes_to_the_host_that_granted_it)
{
	ask(f, 0, RELEASE);
	assert_string_equal(letter_posted(f, "beta"),
			    "1\nkind=bearer\nfrom=alpha\nto=2000abcdef012345\nname=a\nact=release\n"
			    "uid=1000\nsalt=1000abcdef012345-0000000000000001\nsha256=" HASH_OF_FIRST "\n");
	answer_arrives(f, "another", "found=ours");
	fixture_pass(f, 0);
	fixture_expect(f, 0, "");
	answers(f, "ours", ":1");
	answers(f, "ours", ""); /* of nothing that is under way */
	fixture_no_op(f);
}

static const char *line_of(const char *data, const char *key, char ret[128])
{
	const char *at = strstr(data, key);

	assert_non_null(at);
	snprintf(ret, 128, "%.*s", (int)strcspn(at, "\n"), at);
	return ret;
}

/* Not even that it is the same value. */
TEST(two_letters_about_one_value_have_nothing_in_common)
{
	char salts[2][128], hashes[2][128], text[160], hash[SHA256_HEX_CHARS + 1];
	const char *data;

	for (int i = 0; i < 2; i++) {
		ask(f, 0, RELEASE);
		data = letter_posted(f, "beta");
		line_of(data, "salt=", salts[i]);
		line_of(data, "sha256=", hashes[i]);
		answers(f, "ours", ":1");
		snprintf(text, sizeof(text), "%s:v", salts[i] + strlen("salt="));
		sha256_hex(slice_of(text), hash);
		assert_string_equal(hashes[i] + strlen("sha256="), hash);
	}
	assert_string_not_equal(salts[0], salts[1]);
	assert_string_not_equal(hashes[0], hashes[1]);
}

TEST(an_extension_says_how_long)
{
	for (int add = 0; add < 2; add++) {
		asks_beta(f, add ? EXTEND_BY "0" : EXTEND_BY "1",
			  add ? "ms=3000\nadd=1\nleased=1\n" : "ms=3000\nadd=0\nleased=1\n");
		answers(f, "ours", ":1");
	}
	asks_beta(f, "SET a v XX PX 70", "\nms=70\nadd=0\nleased=0\n");
	answers(f, "ours", "+OK");
}

TEST(what_is_found_there_is_answered_as_redis_does)
{
	found(f, RELEASE, "free", ":0");
	found(f, RELEASE, "theirs", ":0");
	found(f, EXTEND_BY "0", "theirs", ":0");
	found(f, "DELIFEQ a v", "ours", ":1");
	found(f, "DELEX a IFEQ v", "free", ":0");
	found(f, "SET a v IFEQ v PX 70", "ours", "+OK");
	found(f, TOUCH, "ours", "+OK");
	found(f, TOUCH, "theirs", ":0");
	found(f, LEFT, "ours", ":-1"); /* how long is not told */
	found(f, "SET a v XX PX 70", "free", "$-1");
	found(f, "SET a v XX PX 70", "theirs", "$-1");
	found(f, RELEASE, "moved", HELD "whose session is over" NOTHING);
	found(f, RELEASE, "moved\nlate=1", HELD "which had lost its connection to ZooKeeper" NOTHING);
}

/* The clock of the wall shows 100 s at the start. What another host has done until then was done. */
TEST(an_instant_may_pass_while_another_host_is_asked)
{
	asks_beta(f, "SET a v XX PXAT 101000", "ms=1000\n");
	fixture_pass(f, 1500);
	fixture_answer_beats(f);
	answers(f, "ours", "+OK");
	fixture_ask(f, 0, "SET a v XX PXAT 101000");
	assert_memory_equal(f->replies[0].data, "-ERR invalid expire time", 24);
}

static void pass_and_beat(struct fixture *f, int64_t ms)
{
	for (; ms > 0; ms -= 500) {
		fixture_pass(f, 500);
		fixture_answer_beats(f);
	}
}

/* Never 0, which would mean that the lock is gone. */
TEST(a_host_that_does_not_answer_is_unavailable)
{
	asks_beta(f, RELEASE, "act=release\n");
	pass_and_beat(f, 2000);
	fixture_op(f, EFFECT_ZK_DELETE, posted);
	fixture_expect(f, 0, "");
	fixture_answer(f, ZK_OK); /* it had not been read */
	fixture_expect(f, 0, HELD "which does not answer" NOTHING);

	asks_beta(f, RELEASE, "act=release\n");
	pass_and_beat(f, 2000);
	fixture_op(f, EFFECT_ZK_DELETE, posted);
	fixture_answer(f, ZK_NONODE); /* it has */
	pass_and_beat(f, 1500);
	fixture_expect(f, 0, "");
	pass_and_beat(f, 500);
	fixture_expect(f, 0, HELD "which does not answer: it may have been released or not, so ask again");
	answers(f, "ours", "");
}

/* The answer comes while the letter is being withdrawn. */
TEST(a_late_answer_counts)
{
	asks_beta(f, RELEASE, "act=release\n");
	pass_and_beat(f, 2000);
	fixture_serve(f, EFFECT_ZK_DELETE, posted, ZK_NONODE);
	pass_and_beat(f, 1500);
	answers(f, "ours", ":1");
	pass_and_beat(f, 1000);
	fixture_expect(f, 0, "");
}

TEST(a_host_that_cannot_be_asked_is_unavailable)
{
	ask(f, 0, RELEASE);
	fixture_answer(f, ZK_NONODE);
	fixture_expect(f, 0, HELD "which has no mailbox" NOTHING);
	ask(f, 0, "SET a v XX PX 70");
	fixture_answer(f, ZK_REFUSED);
	fixture_expect(f, 0, HELD "which could not be asked: it may have been extended or not, so ask again");
	fixture_ask(f, 0, RELEASE);
	held_by(f, elsewhere, "10.0.0.1"); /* other software, of which nothing is known */
	fixture_pass(f, 0);
	fixture_expect(f, 0,
		       "-UNAVAILABLE a is held by other software, as znode "
		       "_c_4c61f3c2-7f3c-4c11-9d3e-1c6f0f3a9b11-__WRIT__0000000003, and has to be released or extended there");
}

TEST(a_lost_connection_leaves_it_unknown)
{
	asks_beta(f, RELEASE, "act=release\n");
	ask(f, 1, RELEASE); /* posted, and not answered */
	fixture_simple(f, EVENT_ZK_SUSPENDED, 0);
	fixture_expect(f, 0, HELD "and the connection to ZooKeeper was lost: it may have been released or not, so ask again");
	fixture_expect(f, 1, HELD "which could not be asked: it may have been released or not, so ask again");
	assert_true(TAILQ_EMPTY(&f->broker->hosts.forwards));
}

/* A program that releases its lock and ends has released it. */
TEST(who_has_gone_is_done_for)
{
	asks_beta(f, RELEASE, "act=release\n");
	fixture_simple(f, EVENT_CLIENT_GONE, 0);
	pass_and_beat(f, 1500);
	fixture_no_op(f);
	pass_and_beat(f, 500);
	fixture_serve(f, EFFECT_ZK_DELETE, posted, ZK_OK);
	assert_int_equal(f->broker->hosts.outbox_count, 0);
}

enum { OPEN = LETTER_REVOKES_MAX - LETTER_REVOKES_MAX / ACCOUNT_RESERVE_PART };

TEST(letters_under_way_are_bounded)
{
	for (int i = 0; i < OPEN; i++) {
		fixture_connect(f, (uint32_t)(8 + i));
		ask(f, (uint32_t)(8 + i), RELEASE);
		letter_posted(f, "beta");
	}
	ask(f, 0, RELEASE);
	fixture_expect(f, 0,
		       "-LIMIT user 1000 uses 173 of 173 allowed letters to other hosts (176 at a time, "
		       "limits.user_share): try again in a few seconds");
	answers(f, "ours", "");
	fixture_expect(f, 8 + OPEN - 1, ":1");
	asks_beta(f, RELEASE, "act=release\n");
	/* Another user's share is its own. */
	fixture_connect_as(f, 4, 1001, SLICE(""), true);
	ask(f, 4, RELEASE);
	letter_posted(f, "beta");
}

/* ---- several ---- */

/* As ask(), of one lock after the other; beta has all of them. */
static void held_by_beta_too(struct fixture *f, const char *path)
{
	fixture_serve_list(f, path, 1, (const char *const[]){ elsewhere });
	fixture_answer_get(f, 70, BETA, "1\nhost=beta\n");
	fixture_pass(f, 0);
}

TEST(several_are_looked_at_before_one_is_extended)
{
	fixture_ask(f, 0, EXTEND_ALL "2 a b v 3000");
	for (int round = 0; round < 2; round++) {
		held_by_beta_too(f, "/lb/a");
		letter_is_sent(f, "beta", "name=a\nact=look\n");
		answers(f, "ours", "");
		held_by_beta_too(f, "/lb/b");
		letter_is_sent(f, "beta", "name=b\nact=look\n");
		answers(f, round ? "theirs" : "ours", round ? ":0" : "");
		if (round)
			break;
		letter_is_sent(f, "beta", "name=a\nact=extend\n");
		answers(f, "ours", "");
		letter_is_sent(f, "beta", "name=b\nact=extend\n");
		answers(f, "ours", ":2");
		fixture_ask(f, 0, EXTEND_ALL "2 a b v 3000");
	}
	fixture_no_op(f);
}

TEST(each_is_released_where_it_is)
{
	fixture_ask(f, 0, RELEASE_EACH "3 a b a v");
	held_by_beta_too(f, "/lb/a");
	held_by_beta_too(f, "/lb/b");
	letter_is_sent(f, "beta", "name=a\nact=release\n");
	answers(f, "ours", "");
	letter_is_sent(f, "beta", "name=b\nact=release\n");
	answers(f, "free", "");
	fixture_answer_write(f, ZK_BADVERSION);
	held_by_beta_too(f, "/lb/b");
	fixture_expect(f, 0, ":1");
}

/* The other host's answer is here, and the client's is not sent yet: it would find that the lock is gone. */
TEST(what_was_done_is_remembered_over_a_hand_over)
{
	char data[256];

	f->conf.all_in_pieces = true;
	asks_beta(f, RELEASE, "act=release\n");
	/* Somebody here has it by now. */
	snprintf(data, sizeof(data), "1\nkind=answer\nfrom=beta\nre=%s\nfound=ours\n", posted);
	letter_arrives(f, letter, data, ZK_OK);
	fixture_simple(f, EVENT_ZK_SUSPENDED, 0);
	fixture_expect(f, 0, "");
	fixture_hand_over(f);
	fixture_pass(f, 0);
	fixture_expect(f, 0, ":1");
}

/* ---- who is asked ---- */

static const char *request(const char *act, const char *more)
{
	static char data[512];

	snprintf(data, sizeof(data), "1\nkind=bearer\nfrom=beta\nto=1000abcdef012345\nname=a\nact=%s\n%s", act, more);
	return data;
}

#define OF_V "uid=1000\nsalt=s\nsha256=" HASH_OF_V "\n"

static void answered(struct fixture *f, const char *with)
{
	char data[256];

	snprintf(data, sizeof(data), "1\nkind=answer\nfrom=alpha\nre=%s\nfound=%s\n", letter, with);
	assert_true(strncmp(fixture_oldest(f)->path, "/lb/.mail/beta/", 15) == 0);
	assert_string_equal(fixture_op(f, EFFECT_ZK_CREATE, "")->data, data);
	fixture_answer(f, ZK_NONODE); /* who asked has gone */
}

static void requested(struct fixture *f, const char *data, const char *answer)
{
	letter_arrives(f, letter, data, ZK_OK);
	answered(f, answer);
}

TEST(it_is_released_for_who_shows_the_hash)
{
	fixture_set_held(f, "SET a v NX PX 60000");
	fixture_ask(f, 1, "LOCK a");
	requested(f, request("release", "uid=1000\nsalt=s\nsha256=" HASH_OF_W "\n"), "theirs");
	requested(f, request("release", "uid=1001\nsalt=s\nsha256=" HASH_OF_V "\n"), "theirs");
	requested(f, request("release", "salt=s\nsha256=" HASH_OF_V "\n"), "theirs");
	requested(f, request("release", "uid=1000\n"), "theirs");
	requested(f, request("look", OF_V), "ours");
	fixture_expect(f, 1, "");
	requested(f, request("release", OF_V), "ours");
	fixture_expect(f, 1, ":78849");
	fixture_answer_list(f, 1, 1, (const char *[]){ f->znode }); /* whether others want it */
	assert_int_equal(f->broker->locks.bearer_count, 0);
	/* It is held in another way now. */
	requested(f, request("release", OF_V), "theirs");
	fixture_say(f, 1, "VALID a", ":8000");
}

TEST(what_is_not_held_here_is_free)
{
	requested(f, request("release", OF_V), "free");
	fixture_set_held(f, "SET a v NX PX 1000");
	fixture_pass(f, 1000);
	fixture_serve(f, EFFECT_ZK_DELETE, "", ZK_OK);
	requested(f, request("extend", OF_V "ms=5\n"), "free");
}

/* The lock is delegated to several readers: it is free only if all their words say so. */
TEST(what_any_reader_holds_is_not_free)
{
	f->conf.delegation = true;
	f->conf.linger_ns = 60000 * MS;
	fixture_set_held(f, "SET a v NX PX 60000");
	fixture_say(f, 0, RELEASE, ":1");
	fixture_answer_list(f, 1, 1, (const char *[]){ f->znode }); /* nobody else wants it */
	for (uint32_t i = 0; i < 2; i++) {
		give_page(f, i);
		delegated(f, i, 1, "LOCK a SHARED SLOT 1", ":78849");
	}
	assert_true(leave(0, 1));
	requested(f, request("look", OF_V), "theirs");
	assert_true(leave(1, 1));
	requested(f, request("look", OF_V), "free");
}

TEST(it_is_extended_for_who_shows_the_hash)
{
	fixture_set_held(f, "SET a v NX PX 1000");
	requested(f, request("extend", OF_V "ms=3000\nadd=0\nleased=1\n"), "ours");
	fixture_say(f, 1, "PTTL a", ":3000");
	requested(f, request("extend", OF_V "ms=3000\nadd=1\nleased=1\n"), "ours");
	fixture_say(f, 1, "PTTL a", ":6000");
	requested(f, request("extend", OF_V "ms=500\n"), "ours");
	fixture_say(f, 1, "PTTL a", ":500");
	requested(f, request("extend", "uid=1000\nsalt=s\nsha256=" HASH_OF_W "\nms=3000\n"), "theirs");
	requested(f, request("look", OF_V), "ours");
	fixture_say(f, 1, "PTTL a", ":500");
	/* A year is the most, and 500 ms are added to it. */
	requested(f, request("extend", OF_V "ms=31536000000\nadd=1\n"), "ours");
	fixture_say(f, 1, "PTTL a", ":31536000000");
}

/* Answers the other requests of a new connection, in their order: the lock is held under f->znode. */
static void until_mail(struct fixture *f)
{
	while (!strstr(fixture_oldest(f)->path, ".mail"))
		if (fixture_oldest(f)->effect.type == EFFECT_ZK_LIST)
			fixture_answer_list(f, 1, 1, (const char *[]){ f->znode });
		else if (fixture_oldest(f)->effect.type == EFFECT_ZK_GET)
			fixture_answer_get(f, 77, SESSION, "");
		else
			fixture_answer(f, ZK_OK);
}

/* The letter is in the list that a new connection asks for, and it is answered like this. */
static void reads(struct fixture *f, const char *data, const char *found)
{
	until_mail(f);
	fixture_serve_list(f, "/lb/.mail/alpha", 1, (const char *[]){ letter });
	until_mail(f);
	fixture_serve_get(f, letter, 80, BETA, data);
	fixture_serve(f, EFFECT_ZK_DELETE, letter, ZK_OK);
	until_mail(f);
	answered(f, found);
}

/* Whoever sent it was told long ago that nobody knows; since then somebody has extended the lock here, by hand. */
TEST(a_letter_that_stood_while_there_was_no_connection_changes_nothing)
{
	for (int extends = 0; extends < 2; extends++) {
		if (!extends)
			fixture_set_held(f, "SET a v NX PX 60000");
		fixture_simple(f, EVENT_ZK_SUSPENDED, 0);
		fixture_pass(f, 6000);
		fixture_say(f, 1, "SET a v XX PX 90000", "+OK");
		fixture_zk_connected(f, SESSION);
		reads(f, request(extends ? "extend" : "release", extends ? OF_V "ms=500\n" : OF_V), "moved\nlate=1");
		fixture_say(f, 1, "PTTL a", ":90000");
		fixture_pass(f, 1500);
		fixture_answer_beats(f);
	}
	/* One that comes now is none. */
	requested(f, request("look", OF_V), "ours");
	requested(f, request("release", OF_V), "ours");
}

TEST(a_short_loss_of_the_connection_makes_no_letter_late)
{
	fixture_set_held(f, "SET a v NX PX 60000");
	fixture_simple(f, EVENT_ZK_SUSPENDED, 0);
	fixture_pass(f, 1000);
	fixture_zk_connected(f, SESSION);
	reads(f, request("extend", OF_V "ms=500\n"), "ours");
	fixture_say(f, 1, "PTTL a", ":500");
}

TEST(what_is_no_request_is_dropped)
{
	const char *const garbage[] = {
		"1\nkind=bearer\n",
		"1\nkind=bearer\nfrom=beta\nto=1000abcdef012345\nname=a\nact=dance\nuid=1000\nsalt=s\nsha256=" HASH_OF_V "\n",
		"1\nkind=bearer\nfrom=../x\nto=1000abcdef012345\nname=a\nact=release\nuid=1000\nsalt=s\nsha256=" HASH_OF_V "\n",
		"1\nkind=bearer\nfrom=beta\nto=1000abcdef012345\nname=..\nact=release\nuid=1000\nsalt=s\nsha256=" HASH_OF_V "\n",
		"1\nkind=bearer\nfrom=beta\nto=1000abcdef012345\nname=a\nact=extend\nms=0\n" OF_V,
		"1\nkind=bearer\nfrom=beta\nto=1000abcdef012345\nname=a\nact=extend\nms=31536000001\n" OF_V,
		"1\nkind=answer\nre=x\nfound=lost\n",
	};

	fixture_set_held(f, "SET a v NX PX 60000");
	for (size_t i = 0; i < sizeof(garbage) / sizeof(garbage[0]); i++) {
		int64_t ignored = f->broker->env.stats.mail_ignored_total;

		letter_arrives(f, letter, garbage[i], ZK_OK);
		fixture_no_op(f);
		assert_int_equal(f->broker->env.stats.mail_ignored_total, ignored + 1);
	}
	/* A former life of this host was meant. */
	requested(f, "1\nkind=bearer\nfrom=beta\nto=1000abcdef012346\nname=a\nact=release\n" OF_V, "moved");
	/* Another daemon, or nobody, has the letter. */
	letter_arrives(f, letter, request("release", OF_V), ZK_NONODE);
	letter_arrives(f, letter, request("release", OF_V), ZK_REFUSED);
	fixture_no_op(f);
	fixture_say(f, 0, "PTTL a", ":60000");
}

/* Answers that stand, until there is room for no more. */
static int answers_that_fit(struct fixture *f)
{
	for (int count = 0;; count++) {
		letter_arrives(f, letter, request("look", OF_V), ZK_OK);
		if (!fixture_is_open(f))
			return count;
		fixture_serve(f, EFFECT_ZK_CREATE, "", ZK_OK);
	}
}

/* A user who has much done here uses up its own share of the letters, and only for as long as anybody waits. */
TEST_IN(what_cannot_be_answered_is_not_done, setup_shared)
{
	const struct hosts *h = &f->broker->hosts;
	struct client other = { .account = &f->broker->env.accounts.nobody };
	int count;

	fixture_set_held(f, "SET a v NX PX 60000");
	count = answers_that_fit(f);
	assert_in_range(count, LETTER_REVOKES_MAX / 2, LETTER_REVOKES_MAX - 20);
	assert_true(outbox_room(h, LETTER_REVOKE, &other, 10));
	assert_true(outbox_room(h, LETTER_FORCE, NULL, LETTER_FORCES_MAX - LETTER_REVOKES_MAX));
	letter_arrives(f, letter, request("release", OF_V), ZK_OK);
	fixture_no_op(f);
	fixture_say(f, 0, "EXISTS a", ":1");
	/* They were read long ago. */
	pass_and_beat(f, 2000);
	fixture_op(f, EFFECT_ZK_LIST, "a"); /* whether others want it */
	fixture_answer_list(f, 1, 1, (const char *[]){ f->znode });
	for (int i = 0; i < count; i++) {
		fixture_answer_beats(f);
		fixture_serve(f, EFFECT_ZK_DELETE, "", ZK_NONODE);
	}
	assert_int_equal(h->outbox_count, 0);
	requested(f, request("release", OF_V), "ours");
}
