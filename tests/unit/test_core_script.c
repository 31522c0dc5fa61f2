/* SPDX-License-Identifier: Apache-2.0 */
/* EVAL, EVALSHA and SCRIPT (core/command/cmd_script.c): what scripts of lock libraries do to locks. */
#include <stdio.h>
#include <string.h>

#include "core/command/script.h"
#include "core/state.h"
#include "core_test.h"

#define GET "redis.call('get', KEYS[1])"
#define RELEASE "if " GET " == ARGV[1] then return redis.call('del', KEYS[1]) else return 0 end"
#define EXTEND "if " GET " == ARGV[1] then return redis.call('pexpire', KEYS[1], ARGV[2]) else return 0 end"
#define SET "redis.call('set', KEYS[1], ARGV[1], 'PX', ARGV[2])"
#define SET_NX "redis.call('set', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2])"
#define SET_EACH "for i, key in ipairs(KEYS) do redis.call('set', key, ARGV[1], 'PX', ARGV[2]) end return #KEYS"
#define ACQUIRE_ALL "for i, key in ipairs(KEYS) do if redis.call('exists', key) == 1 then return 0 end end " SET_EACH
#define EXTEND_ALL "for i, key in ipairs(KEYS) do if redis.call('get', key) ~= ARGV[1] then return 0 end end " SET_EACH
#define RELEASE_EACH \
	"local n = 0 for i, key in ipairs(KEYS) do if redis.call('get', key) == ARGV[1] then " \
	"redis.pcall('del', key) n = n + 1 end end return n"
/* redis-py's. */
#define EXTEND_BY_HASH "a4e8783852e6b949f9ef3a97212805108459a890"
#define RELEASE_HASH "c3f8721cbb97f72bc19e972846bd7aaf91901658"
/* redlock-rb's. */
#define PAIR_HASH "78d2ca48a6dc9ef6892059792a3a0c5237733d64"
/* redislock's: of 0.9, and since 0.10. */
#define OBTAIN_09_HASH "80a1b5f2cfccec3b7119ba7721d2127682b691a7"
#define OBTAIN_HASH "eb0c00d98f6f33b4262419a509002884540f30be"
#define REFRESH_ALL_HASH "5a22d7e8431313862816d4416b5e46dd70fc340d"
#define RELEASE_ALL_HASH "9470c810040e272ee6c579d8d4331aaf6332a7b1"
#define LEAST_HASH "66e1084c2d842a7e8c271925aae90219fac4e129"

#define FENCE_HASH "d1d9789e7d4b671cc4c2cf7db73923bbf08cd836"
/* node-redis-warlock's. */
#define TOUCH_HASH "78d3bb55c589f1b2edf66f3527f5017f8dfcd6bb"

static int setup(void **state)
{
	struct fixture *f = fixture_new(false);

	f->plain = true;
	return fixture_setup(f, 3, state);
}

static int setup_standalone(void **state)
{
	struct fixture *f = fixture_new(true);

	f->plain = true;
	return fixture_setup(f, 3, state);
}

enum { WORDS_MAX = 80 };

/* A command, a script or a hash, and the other words, which are split at spaces. */
static void ask(struct fixture *f, uint32_t conn, struct slice command, const char *script, const char *rest)
{
	struct slice words[WORDS_MAX] = { command, slice_of(script) };
	struct event e = { .type = EVENT_CLIENT_ASKED, .conn = conn, .asked = { .argc = 2, .argv = words } };

	for (rest += strspn(rest, " "); *rest; rest += strspn(rest, " ")) {
		assert_true(e.asked.argc < WORDS_MAX);
		words[e.asked.argc] = (struct slice){ rest, strcspn(rest, " ") };
		rest += words[e.asked.argc++].len;
	}
	fixture_event(f, &e);
}

static void eval(struct fixture *f, uint32_t conn, const char *script, const char *rest, const char *reply)
{
	ask(f, conn, SLICE("EVAL"), script, rest);
	fixture_expect(f, conn, reply);
}

static void evalsha(struct fixture *f, uint32_t conn, const char *hash, const char *rest, const char *reply)
{
	ask(f, conn, SLICE("EVALSHA"), hash, rest);
	fixture_expect(f, conn, reply);
}

static void refused(struct fixture *f, uint32_t conn, const char *script, const char *rest, const char *error)
{
	ask(f, conn, SLICE("EVAL"), script, rest);
	fixture_expect_begin(f, conn, error);
}

/* The answer takes more than one event. */
static void ask_later(struct fixture *f, uint32_t conn, struct slice command, const char *script, const char *rest,
		      const char *reply)
{
	ask(f, conn, command, script, rest);
	fixture_expect(f, conn, "");
	fixture_pass(f, 0);
	fixture_expect(f, conn, reply);
}

ALONE(a_release_compares_the_value)
{
	eval(f, 0, RELEASE, "1 a v", ":0");
	fixture_say(f, 0, "SET a v NX PX 1000", "+OK");
	eval(f, 1, RELEASE, "1 a w", ":0");
	fixture_ask(f, 2, "LOCK a");
	eval(f, 1, RELEASE, "1 a v", ":1");
	fixture_expect(f, 2, ":1025");
	eval(f, 1, RELEASE, "1 a v", ":0");
	fixture_say(f, 2, "UNLOCK a", ":0");
}

ALONE(what_is_answered_is_the_script_s)
{
	static const char told[] = "local v = " GET " if v == ARGV[1] then return redis.call('del', KEYS[1]) "
				   "elseif not v then return -1 else return 0 end";

	for (int version = 2; version <= 3; version++) {
		const char *nil = version == 2 ? "$-1" : "_";

		eval(f, 0, "if " GET " == ARGV[1] then redis.call('del', KEYS[1]) return true end return false",
		     "1 a v", nil);
		eval(f, 0, told, "1 a v", ":-1");
		fixture_say(f, 0, "SET a v NX PX 1000", "+OK");
		eval(f, 0, told, "1 a w", ":0");
		eval(f, 0, "if " GET " == ARGV[1] then redis.call('del', KEYS[1]) return 'OK' else return 7 end",
		     "1 a v", "$2 OK");
		eval(f, 0, "if " SET_NX " then return 'OK' else return nil end", "1 a v 1000", "$2 OK");
		eval(f, 0, "if " SET_NX " then return 'OK' else return nil end", "1 a v 1000", nil);
		eval(f, 0, "if " GET " == ARGV[1] then redis.call('del', KEYS[1]) end", "1 a v", nil);
		fixture_say(f, 0, "EXISTS a", ":0");
		fixture_resp3(f, 0);
	}
}

ALONE(an_extension_compares_the_value)
{
	eval(f, 0, EXTEND, "1 a v 3000", ":0");
	fixture_say(f, 0, "SET a v NX PX 1000", "+OK");
	eval(f, 1, EXTEND, "1 a w 3000", ":0");
	fixture_say(f, 0, "PTTL a", ":1000");
	eval(f, 1, EXTEND, "1 a v 3000", ":1");
	fixture_say(f, 0, "PTTL a", ":3000");
	eval(f, 1, "if " GET " == ARGV[1] then return redis.call('expire', KEYS[1], ARGV[2]) else return 0 end",
	     "1 a v 3", ":1");
	fixture_say(f, 0, "PTTL a", ":3000");
	refused(f, 1, EXTEND, "1 a v 0", "-ERR invalid expire time in 'eval' command");
	refused(f, 1, EXTEND, "1 a v", "-ERR this script needs 2 words behind its keys, and there are 1");
}

/* As redis-py does it. */
ALONE(a_lease_is_extended_by_some_time_or_replaced)
{
	fixture_say(f, 0, "SET a v NX PX 1000", "+OK");
	fixture_pass(f, 400);
	evalsha(f, 1, EXTEND_BY_HASH, "1 a v 2000 0", ":1");
	fixture_say(f, 0, "PTTL a", ":2600");
	evalsha(f, 1, EXTEND_BY_HASH, "1 a v 2000 1", ":1");
	fixture_say(f, 0, "PTTL a", ":2000");
	evalsha(f, 1, EXTEND_BY_HASH, "1 a w 2000 1", ":0");
	/* It ends in a year at the latest. */
	evalsha(f, 1, EXTEND_BY_HASH, "1 a v 31536000000 0", ":1");
	fixture_say(f, 0, "PTTL a", ":31536000000");
	refused(f, 1, EXTEND, "1 a v 31536000001", "-ERR invalid expire time");
}

ALONE(what_is_free_is_acquired_and_what_is_ours_extended)
{
	static const char spring[] =
		"local v = " GET " if v == ARGV[1] then redis.call('pexpire', KEYS[1], ARGV[2]) return true "
		"elseif not v then " SET " return true end return false";
	static const char zero[] = "if " GET " == ARGV[1] then " SET " return 'OK' else return " SET_NX " end";

	eval(f, 0, spring, "1 a v 1000", ":1");
	fixture_say(f, 0, "PTTL a", ":1000");
	eval(f, 1, spring, "1 a v 2000", ":1");
	fixture_say(f, 0, "PTTL a", ":2000");
	eval(f, 1, spring, "1 a w 3000", "$-1");
	eval(f, 1, zero, "1 a w 3000", "$-1");
	eval(f, 1, zero, "1 a v 4000", "$2 OK");
	eval(f, 1, zero, "1 b v 4000", "+OK");
	fixture_say(f, 0, "PTTL a", ":4000");
}

/* redlock-rb's: a lock that is not held is taken only if that is asked for. */
ALONE(it_is_acquired_if_the_third_word_says_so)
{
	static const char rb[] = "if (redis.call('exists', KEYS[1]) == 0 and ARGV[3] == \"yes\") or " GET
				 " == ARGV[1] then return " SET " end";

	eval(f, 0, rb, "1 a v 1000 no", "$-1");
	eval(f, 0, rb, "1 a v 1000 yes", "+OK");
	eval(f, 0, rb, "1 a w 2000 yes", "$-1");
	fixture_say(f, 0, "PTTL a", ":1000");
	eval(f, 0, rb, "1 a v 3000 no", "+OK");
	fixture_say(f, 0, "PTTL a", ":3000");
	refused(f, 0, rb, "1 a v 3000", "-ERR this script needs 3 words behind its keys, and there are 2");
}

/* As redlock of npm does it. */
ALONE(several_are_held_all_or_none)
{
	ask_later(f, 0, SLICE("EVAL"), ACQUIRE_ALL, "3 b a b v 1000", ":3");
	fixture_say(f, 0, "EXISTS a b", ":2");
	ask(f, 1, SLICE("EVAL"), ACQUIRE_ALL, "2 0 b w 1000"); /* the one before is free */
	fixture_pass(f, 0);
	fixture_expect(f, 1, ":0");
	fixture_say(f, 0, "EXISTS 0", ":0");
	eval(f, 1, ACQUIRE_ALL, "2 a b v 1000", ":0");
	eval(f, 1, EXTEND_ALL, "2 a b v 5000", ":2");
	fixture_say(f, 0, "PTTL a", ":5000");
	fixture_say(f, 0, "PTTL b", ":5000");
	eval(f, 1, EXTEND_ALL, "3 a b c v 9000", ":0");
	fixture_say(f, 0, "PTTL a", ":5000");
	eval(f, 1, RELEASE_EACH, "2 a b w", ":0");
	eval(f, 1, RELEASE_EACH, "4 a a b c v", ":2");
	eval(f, 1, RELEASE_EACH, "2 a b v", ":0");
}

static const char *many(size_t count, char *ret, size_t size)
{
	size_t len = (size_t)snprintf(ret, size, "%zu", count);

	for (size_t i = 0; i < count; i++)
		len += (size_t)snprintf(ret + len, size - len, " n%zu", i);
	snprintf(ret + len, size - len, " v 1000");
	return ret;
}

ALONE(at_most_64_keys)
{
	char words[1024];

	f->conf.limits.grants = fixture_total(1000);
	refused(f, 0, ACQUIRE_ALL, many(65, words, sizeof(words)), "-ERR a script needs its number of keys, 1..64");
	ask_later(f, 0, SLICE("EVAL"), ACQUIRE_ALL, many(64, words, sizeof(words)), ":64");
	refused(f, 0, RELEASE, "0 v", "-ERR a script needs its number of keys, 1..64");
	refused(f, 0, RELEASE, "2 a", "-ERR a script needs its number of keys, 1..64");
	refused(f, 0, RELEASE, "x a v", "-ERR a script needs its number of keys, 1..64");
	refused(f, 0, RELEASE, "-1 a v", "-ERR a script needs its number of keys, 1..64");
	refused(f, 0, RELEASE, "1 .. v", "-BADNAME ");
	refused(f, 0, RELEASE, "1 a", "-ERR this script needs 1 words behind its keys, and there are 0");
}

ALONE(a_lock_of_a_connection_is_theirs)
{
	fixture_say(f, 0, "LOCK a", ":1024");
	eval(f, 0, RELEASE, "1 a v", ":0");
	eval(f, 0, EXTEND, "1 a v 1000", ":0");
	eval(f, 0, ACQUIRE_ALL, "2 a b v 1000", ":0");
	fixture_say(f, 0, "EXISTS b", ":0");
}

ALONE(a_script_is_known_once_it_was_sent)
{
	static const char own[] = "if " GET " == ARGV[1] then return redis.call('unlink', KEYS[1]) else return -7 end";
	char hash[SHA1_HEX_CHARS + 1], bulk[64];

	sha1_hex(SLICE(own), hash);
	snprintf(bulk, sizeof(bulk), "$40 %s", hash);
	evalsha(f, 0, hash, "1 a v", "-NOSCRIPT no script of that hash is known: send it with EVAL or SCRIPT LOAD");
	ask(f, 0, SLICE("SCRIPT"), "EXISTS", hash);
	fixture_expect(f, 0, "*1 :0");
	ask(f, 0, SLICE("SCRIPT"), "LOAD", "x");
	fixture_expect_begin(f, 0, "-ERR this script is unknown, and lockbroker runs no Lua");
	{
		struct slice words[] = { SLICE("SCRIPT"), SLICE("load"), SLICE(own) };
		struct event e = { .type = EVENT_CLIENT_ASKED, .conn = 0, .asked = { .argc = 3, .argv = words } };

		fixture_event(f, &e);
		fixture_expect(f, 0, bulk);
	}
	/* Another connection of the user. */
	evalsha(f, 1, hash, "1 a v", ":-7");
	ask(f, 1, SLICE("SCRIPT"), "EXISTS", RELEASE_HASH " x");
	fixture_expect(f, 1, "*2 :1 :0");
	ask(f, 1, SLICE("SCRIPT"), "FLUSH", "");
	fixture_expect_begin(f, 1, "-ERR unknown");
}

ALONE(an_eval_is_remembered_for_its_user_alone)
{
	static const char own[] = "if " GET " == ARGV[1] then return redis.call('unlink', KEYS[1]) else return -7 end";
	char hash[SHA1_HEX_CHARS + 1];

	sha1_hex(SLICE(own), hash);
	fixture_connect_as(f, 5, 4711, SLICE(""), false);
	eval(f, 0, own, "1 a v", ":-7");
	evalsha(f, 1, hash, "1 a v", ":-7");
	evalsha(f, 5, hash, "1 a v", "-NOSCRIPT no script of that hash is known: send it with EVAL or SCRIPT LOAD");
}

/* Another user's script that is known to be of this one too. */
ALONE(a_value_of_another_user_is_theirs)
{
	fixture_connect_as(f, 5, 4711, SLICE(""), false);
	fixture_say(f, 0, "SET a v NX PX 1000", "+OK");
	eval(f, 5, RELEASE, "1 a v", ":0");
	eval(f, 5, EXTEND, "1 a v 5000", ":0");
	fixture_say(f, 0, "PTTL a", ":1000");
}

ALONE(what_is_not_covered_has_a_sentence)
{
	fixture_say(f, 0, "SUBSCRIBE a",
		    "-ERR nothing is published here: a client that waits for a lock asks again, or waits with LOCK");
	fixture_say(
		f, 0, "MULTI",
		"-ERR there are no transactions here: release or extend a lock by its value, with a script that compares it");
	fixture_say(
		f, 0, "hset a b c",
		"-ERR lockbroker keeps no hashes, so locks that are kept in one, as those of Redisson are, are not covered: use "
		"locks that are set with SET NX PX");
	refused(f, 0, "redis.call('zadd', KEYS[1], 1, 'x')", "1 a v", "-ERR lockbroker keeps no sorted sets");
	refused(f, 0, "redis.call('hset', KEYS[1], 1, 'x')", "1 a v", "-ERR lockbroker keeps no hashes");
	refused(f, 0, "return 1", "0", "-ERR this script is unknown, and lockbroker runs no Lua");
	fixture_say(f, 0, "LPUSH a b", "-ERR unknown command 'LPUSH'");
}

/* ---- with other hosts ---- */

static const char elsewhere[] = "_c_4c61f3c2-7f3c-4c11-9d3e-1c6f0f3a9b11-__WRIT__0000000003";
static const char by_beta[] = "1\nhost=beta\npid=42\nuid=7\ncommand=settle\nsince=99000\nwritten=99500\n";

/* The FenceKey is the last key, and no lock. Without one it does as before. */
ALONE(redislock_with_a_fence_key_is_told_the_token)
{
	evalsha(f, 0, FENCE_HASH, "2 a a:fence tx 1 1000 1", ":1024");
	fixture_say(f, 0, "TOKEN a tx", ":1024");
	fixture_say(f, 0, "EXISTS a a:fence", ":1");
	evalsha(f, 1, FENCE_HASH, "2 a a:fence tx 1 2000 1", ":1024");
	fixture_say(f, 0, "PTTL a", ":2000");
	evalsha(f, 1, FENCE_HASH, "2 a a:fence ux 1 3000 1", "$-1");
	evalsha(f, 1, FENCE_HASH, "2 a a:fence ty 1 3000 1",
		"-ERR a is held under that token with other metadata, and a lock keeps the value that it was taken with: "
		"release it first");
	eval(f, 0, RELEASE, "1 a tx", ":1");
	evalsha(f, 1, FENCE_HASH, "2 a a:fence vx 1 1000 1", ":2048");
	for (int i = 0; i < 2; i++)
		evalsha(f, 1, FENCE_HASH, i ? "1 a wx 1 1000 1" : "3 b c c:fence wx 1 1000 1",
			"-ERR with a FenceKey this script takes one lock, whose token it answers: MLOCK takes several, and "
			"answers the token of each");
	evalsha(f, 1, FENCE_HASH, "1 a wx 1 1000", "-ERR this script needs 4 words behind its keys, and there are 3");
	fixture_say(f, 0, "EXISTS b c c:fence", ":0");
	ask_later(f, 1, SLICE("EVALSHA"), FENCE_HASH, "2 b c wx 1 1000 0", "+OK");
	evalsha(f, 1, FENCE_HASH, "2 b c wx 1 2000 0", "+OK");
	fixture_say(f, 0, "PTTL c", ":2000");
}

/* Its lease and its value are keys. */
ALONE(warlock_touches_its_lock)
{
	evalsha(f, 0, TOUCH_HASH, "3 a 1000 v", ":0");
	fixture_say(f, 0, "SET a v PX 700 NX", "+OK");
	evalsha(f, 1, TOUCH_HASH, "3 a 1000 w", ":0");
	fixture_say(f, 0, "PTTL a", ":700");
	evalsha(f, 1, TOUCH_HASH, "3 a 1000 v", "+OK");
	fixture_say(f, 0, "PTTL a", ":1000");
	evalsha(f, 1, TOUCH_HASH, "4 a b 2000 v", "-ERR this script needs 3 keys, and there are 4");
	evalsha(f, 1, TOUCH_HASH, "1 a 1000 v", "-ERR this script needs 3 keys, and there are 1");
	ask(f, 1, SLICE("EVALSHA"), TOUCH_HASH, "3 a 0 v");
	fixture_expect_begin(f, 1, "-ERR invalid expire time in 'evalsha' command");
}

/* The open question who holds a lock is answered: another host does. */
static void answer_beta(struct fixture *f, const char *path)
{
	fixture_op(f, EFFECT_ZK_LIST, path);
	fixture_answer_list(f, 500, 1, (const char *const[]){ elsewhere });
	fixture_serve_get(f, elsewhere, 501, BETA, by_beta);
}

/* It is asked (test_core_forward.c); here it has no mailbox. */
TEST(a_lock_of_another_host_is_never_told_to_be_gone)
{
	static const char sentence[] = "-UNAVAILABLE a is held by host beta, which has no mailbox: "
		    "nothing was done there, so ask again";
	const char *const scripts[] = { RELEASE, EXTEND };

	for (int i = 0; i < 2; i++) {
		ask(f, 0, SLICE("EVAL"), scripts[i], "1 a v 1000");
		fixture_expect(f, 0, "");
		answer_beta(f, "/a");
		fixture_pass(f, 0);
		fixture_serve(f, EFFECT_ZK_CREATE, "", ZK_NONODE);
		fixture_expect(f, 0, sentence);
	}
}

ALONE(redislock_is_told_for_how_long_it_holds_yet)
{
	static const char left[] =
		"if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('pttl', KEYS[1]) else return -3 end";

	fixture_say(f, 0, "SET a v NX PX 1000", "+OK");
	fixture_pass(f, 100);
	eval(f, 1, left, "1 a v", ":900");
	eval(f, 1, left, "1 a w", ":-3");
	fixture_pass(f, 900);
	eval(f, 1, left, "1 a v", ":-3");
}

/* In one array: the value as GET tells it, and the rest of the lease as PTTL does. */
ALONE(redlock_rb_is_told_the_value_and_how_long_it_is_held_yet)
{
	evalsha(f, 0, PAIR_HASH, "1 a", "*2 $-1 :-2");
	fixture_say(f, 0, "SET a v NX PX 1000", "+OK");
	fixture_pass(f, 100);
	evalsha(f, 1, PAIR_HASH, "1 a", "*2 $1 v :900");
	evalsha(f, 1, PAIR_HASH, "1 a more words", "*2 $1 v :900");
	/* Another user's, and one of a connection. */
	fixture_connect_as(f, 5, 4711, SLICE(""), false);
	evalsha(f, 5, PAIR_HASH, "1 a", "*2 $10 held@alpha :900");
	fixture_ask(f, 0, "LOCK b");
	bytes_clear(&f->replies[0]);
	evalsha(f, 1, PAIR_HASH, "1 b", "*2 $10 held@alpha :-1");
	fixture_resp3(f, 1);
	evalsha(f, 1, PAIR_HASH, "1 c", "*2 _ :-2");
	refused(f, 0, "return { " GET ", redis.call('pttl', KEYS[1]) }", "0", "-ERR a script needs its number of keys");
}

TEST(redlock_rb_is_told_that_another_host_holds_it)
{
	ask(f, 0, SLICE("EVALSHA"), PAIR_HASH, "1 a");
	answer_beta(f, "/a");
	fixture_pass(f, 0);
	fixture_expect(f, 0, "*2 $9 held@beta :-1");
}

/* Its value is a token and what the program has written behind it; here a token of 1 byte. */
ALONE(redislock_extends_what_it_obtains_again)
{
	const char *const hashes[] = { OBTAIN_09_HASH, OBTAIN_HASH };

	for (int i = 0; i < 2; i++) {
		evalsha(f, 0, hashes[i], "1 a tx 1 1000", "+OK");
		fixture_say(f, 0, "PTTL a", ":1000");
		evalsha(f, 1, hashes[i], "1 a tx 1 2000", "+OK");
		fixture_say(f, 0, "PTTL a", ":2000");
		evalsha(f, 1, hashes[i], "1 a ux 1 3000", "$-1");
		/* Redis would change the value, which is the owner's name here. */
		evalsha(f, 1, hashes[i], "1 a ty 1 3000",
			"-ERR a is held under that token with other metadata, and a lock keeps the value that it was "
			"taken with: release it first");
		evalsha(f, 1, hashes[i], "1 a ty 2 3000", "$-1");
		fixture_say(f, 0, "PTTL a", ":2000");
		for (int wrong = 0; wrong < 3; wrong++)
			evalsha(f, 1, hashes[i],
				((const char *const[]){ "1 a tx 0 1", "1 a tx -1 1", "1 a tx x 1" })[wrong],
				"-ERR the token that the value begins with has at least 1 byte");
		evalsha(f, 1, hashes[i], "1 a tx 1",
			"-ERR this script needs 3 words behind its keys, and there are 2");
		ask(f, 1, SLICE("EVALSHA"), hashes[i], "1 a tx 1 0");
		fixture_expect_begin(f, 1, "-ERR invalid expire time in 'evalsha' command");
		eval(f, 0, RELEASE, "1 a tx", ":1");
	}
}

ALONE(redislock_holds_several_all_or_none)
{
	ask_later(f, 0, SLICE("EVALSHA"), OBTAIN_HASH, "3 b a b v 1 1000", "+OK");
	evalsha(f, 1, OBTAIN_HASH, "2 a b v 1 2000", "+OK");
	fixture_say(f, 0, "PTTL a", ":2000");
	fixture_say(f, 0, "PTTL b", ":2000");
	/* One of them is free. */
	ask_later(f, 1, SLICE("EVALSHA"), OBTAIN_HASH, "3 a b 0 v 1 3000", "$-1");
	fixture_say(f, 0, "EXISTS 0", ":0");
	evalsha(f, 1, REFRESH_ALL_HASH, "3 a b 0 v 5000", "$-1");
	evalsha(f, 1, REFRESH_ALL_HASH, "2 a b w 5000", "$-1");
	fixture_say(f, 0, "PTTL b", ":2000");
	evalsha(f, 1, REFRESH_ALL_HASH, "1 a v 5000", "+OK");
	evalsha(f, 1, LEAST_HASH, "2 a b v", ":2000");
	evalsha(f, 1, LEAST_HASH, "1 a v", ":5000");
	evalsha(f, 1, LEAST_HASH, "2 a b w", "$-1");
	evalsha(f, 1, LEAST_HASH, "2 a 0 v", "$-1");
	evalsha(f, 1, REFRESH_ALL_HASH, "2 a b v 3000", "+OK");
	evalsha(f, 1, LEAST_HASH, "2 b a v", ":3000");
	evalsha(f, 1, RELEASE_ALL_HASH, "2 a b w", "$-1");
	evalsha(f, 1, RELEASE_ALL_HASH, "3 a b 0 v", "$-1");
	fixture_say(f, 0, "EXISTS a b", ":2");
	evalsha(f, 1, RELEASE_ALL_HASH, "3 a b a v", "+OK");
	fixture_say(f, 0, "EXISTS a b", ":0");
	evalsha(f, 1, RELEASE_ALL_HASH, "2 a b v", "$-1");
}
