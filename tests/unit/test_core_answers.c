/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each error that a command or an event may carry by the table (protocol/answers.h) is really answered: asked for here,
 * one by one. That nothing else is answered is looked at by the simulator's mix "anything", with whatever is asked.
 */
#include "core_test.h"

#include <stdio.h>
#include <string.h>

#include "protocol/answers.h"

static bool seen[SOURCE_COUNT][ERROR_COUNT];

/* The source of what was just answered. */
static void note(struct fixture *f, int source, uint32_t conn, enum error_code code)
{
	struct bytes *text = f->replies[conn].len ? &f->replies[conn] : &f->pushes[conn];
	bool found = memmem(text->data, text->len, error_word(code), strlen(error_word(code)));

	if (!found)
		fail_msg("source %d: no %s, but: %.*s", source, error_word(code), (int)text->len, text->data);
	seen[source][code] = true;
	bytes_clear(&f->replies[conn]);
	bytes_clear(&f->pushes[conn]);
}

/* "number words" for each step, ended by NULL; the answer to the last one has that code. */
static void expect(struct fixture *f, enum error_code code, const char *const *steps)
{
	for (; *steps; steps++) {
		uint32_t conn = (uint32_t)(**steps - '0');
		size_t len = strcspn(*steps + 2, " ");

		bytes_clear(&f->replies[conn]);
		fixture_ask(f, conn, *steps + 2);
		if (!steps[1])
			note(f, (int)command_find((struct slice){ *steps + 2, len }), conn, code);
	}
}

/* SETNX, of a process that is watched, has that code. */
static void expect_setnx(struct fixture *f, enum error_code code, const char *words)
{
	fixture_connect_process(f, 6, 1000, 106, 7);
	fixture_ask(f, 6, words);
	if (f->lifeline_count) {
		const struct effect *asked = &f->lifelines[--f->lifeline_count];

		fixture_event(f, &(struct event){ .type = EVENT_LIFELINE,
						  .lifeline = { .number = asked->lifeline.number,
								.pid = 106,
								.is = PROCESS_WATCHED } });
		fixture_pass(f, 0);
	}
	note(f, COMMAND_SETNX, 6, code);
	fixture_simple(f, EVENT_CLIENT_GONE, 6);
}

/* redlock's of npm, as words without blanks. */
#define SET_HASH "862f31bf38e9b63ce28d6e9e5143551bb34ef981"
#define SET_SCRIPT "return--[[]]redis.call('set',KEYS[1],ARGV[1],'NX','PX',ARGV[2])"

#define EXPECT(code, ...) expect(f, ERROR_##code, (const char *const[]){ __VA_ARGS__, NULL })

static int start(struct fixture *f, void **state)
{
	f->conf.limits.grants_per_client = f->conf.limits.grants = 150;
	return fixture_setup(f, 6, state);
}

static int setup_standalone(void **state)
{
	return start(fixture_new(true), state);
}

static int setup(void **state)
{
	return start(fixture_new(false), state);
}

ALONE(names)
{
	static const char *const words[] = {
		"LOCK .",
		"ENQUEUE .",
		"MLOCK 1 .",
		"UNLOCK .",
		"MUNLOCK 1 .",
		"DOWNGRADE .",
		"RENEW . 5",
		"CANCEL .",
		"ACQUIRE . LIMIT 1",
		"RELEASE .",
		"LIMIT .",
		"VALID .",
		"CAMPAIGN . DATA x",
		"RESIGN .",
		"LEADER .",
		"OBSERVE .",
		"UNOBSERVE .",
		"HOLDERS .",
		"QUEUE .",
		"WHY .",
		"REVOKE .",
		"FORCEUNLOCK .",
		"SET . v NX PX 1",
		"SETNX . v",
		"GET .",
		"EXISTS a .",
		"TTL .",
		"PTTL .",
		"TOKEN . v",
		"DEL .",
		"UNLINK .",
		"DELIFEQ . v",
		"DELEX . IFEQ v",
		"EXPIRE . 1",
		"PEXPIRE . 1",
		"EVAL " SET_SCRIPT " 1 . v 1",
		"EVALSHA " SET_HASH " 1 . v 1",
	};
	char step[128];

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		snprintf(step, sizeof(step), "0 %s", words[i]);
		EXPECT(BADNAME, step);
	}
	EXPECT(NOPROTO, "0 HELLO 4");
	EXPECT(NOSCRIPT, "0 EVALSHA x 1 a v");
	EXPECT(BADNAME, "0 ACCESS 1000 ..");
}

ALONE(what_is_held_or_not)
{
	EXPECT(HELD, "0 LOCK a", "0 LOCK a");
	EXPECT(HELD, "0 ENQUEUE a");
	EXPECT(HELD, "0 MLOCK 1 a");
	EXPECT(HELD, "0 CAMPAIGN e DATA x", "0 CAMPAIGN e DATA x");
	EXPECT(NOTHELD, "1 UNLOCK a");
	EXPECT(NOTHELD, "1 MUNLOCK 1 a");
	EXPECT(NOTHELD, "1 DOWNGRADE a");
	EXPECT(NOTHELD, "1 RENEW a 5");
	EXPECT(NOTHELD, "1 RESIGN e");
	EXPECT(NOTHELD, "1 RELEASE s");
	EXPECT(NOTHELD, "1 TOKEN a v");
}

ALONE(what_was_lost)
{
	static const char *const locks[] = { "LOCK a",	"ENQUEUE a",   "MLOCK 1 a", "UNLOCK a",
					     "MUNLOCK 1 a", "DOWNGRADE a", "RENEW a 5" };
	char step[32];

	for (size_t i = 0; i < sizeof(locks) / sizeof(locks[0]); i++) {
		fixture_ask(f, 0, "LOCK a LEASE 1");
		fixture_pass(f, 1);
		snprintf(step, sizeof(step), "0 %s", locks[i]);
		EXPECT(LOST, step);
	}
	EXPECT(LOST, "0 CAMPAIGN e DATA x", "1 FORCEUNLOCK e", "0 CAMPAIGN e DATA x");
	EXPECT(LOST, "0 CAMPAIGN e DATA x", "1 FORCEUNLOCK e", "0 RESIGN e");
	EXPECT(LOST, "0 ACQUIRE s LIMIT 2", "1 FORCEUNLOCK s", "0 ACQUIRE s LIMIT 2");
	EXPECT(LOST, "0 ACQUIRE s LIMIT 2", "1 FORCEUNLOCK s", "0 RELEASE s");
}

ALONE(circles)
{
	EXPECT(DEADLOCK, "0 LOCK a SHARED", "0 LOCK a REENTER");
	EXPECT(DEADLOCK, "0 ENQUEUE a REENTER");
	EXPECT(DEADLOCK, "0 MLOCK 1 a REENTER");
	EXPECT(DEADLOCK, "0 ACQUIRE s LIMIT 1", "0 ACQUIRE s LIMIT 1");
	EXPECT(DEADLOCK, "1 CAMPAIGN e DATA x", "2 LOCK b", "1 LOCK b", "2 CAMPAIGN e DATA x");
}

ALONE(users)
{
	static const struct rule deny = { .pattern = { "*", 1 }, .verbs = UINT32_MAX, .text = (char *)"deny",
					  .where = (char *)"x" };

	fixture_operators(f, false);
	EXPECT(DENIED, "0 FORCEUNLOCK a");
	EXPECT(DENIED, "0 LIMIT s 5");
	EXPECT(DENIED, "0 RESTART");
	EXPECT(DENIED, "0 RELOAD");
	EXPECT(DENIED, "0 DELEGATE");
	EXPECT(DENIED, "0 CONFIG GET a");
	EXPECT(DENIED, "0 ACCESS 1000 a");
	EXPECT(DENIED, "0 LOG");
	EXPECT(DENIED, "0 ACCOUNTS");
	EXPECT(DENIED, "0 DRAIN");
	EXPECT(DENIED, "0 REVOKE a");
	EXPECT(DENIED, "0 SET a v NX PX 1000", "1 DEL a");
	EXPECT(DENIED, "1 UNLINK a");
	EXPECT(DENIED, "1 EXPIRE a 1");
	EXPECT(DENIED, "1 PEXPIRE a 1");
	f->conf.access = (struct access_rules){ &deny, 1, deny.verbs };
	fixture_event(f, &(struct event){ .type = EVENT_CONF, .conf = { .now = &f->conf } });
	EXPECT(DENIED, "0 AUDIT");
	EXPECT(DENIED, "0 LOCK a");
	EXPECT(DENIED, "0 SET b v NX PX 1");
	expect_setnx(f, ERROR_DENIED, "SETNX b v");
	EXPECT(DENIED, "0 EVAL " SET_SCRIPT " 1 b v 1");
	EXPECT(DENIED, "0 EVALSHA " SET_HASH " 1 b v 1");
	EXPECT(DENIED, "0 MLOCK 1 a");
	EXPECT(DENIED, "0 ENQUEUE a");
	EXPECT(DENIED, "0 ACQUIRE s LIMIT 1");
	EXPECT(DENIED, "0 CAMPAIGN e DATA x");
	EXPECT(DENIED, "0 OBSERVE e");
	EXPECT(DENIED, "0 LEADER e");
	fixture_simple(f, EVENT_CLIENT_GONE, 5);
	fixture_connect_as(f, 5, 1001, SLICE(""), false);
	EXPECT(DENIED, "0 CLIENT UNBLOCK 9");
}

ALONE(kinds)
{
	EXPECT(MISMATCH, "0 CAMPAIGN e DATA x", "0 LOCK e");
	EXPECT(MISMATCH, "0 ENQUEUE e");
	EXPECT(MISMATCH, "0 SET e v NX PX 1");
	expect_setnx(f, ERROR_MISMATCH, "SETNX e v");
	EXPECT(MISMATCH, "0 EVAL " SET_SCRIPT " 1 e v 1");
	EXPECT(MISMATCH, "0 EVALSHA " SET_HASH " 1 e v 1");
	EXPECT(MISMATCH, "0 MLOCK 1 e");
	EXPECT(MISMATCH, "0 UNLOCK e");
	EXPECT(MISMATCH, "0 MUNLOCK 1 e");
	EXPECT(MISMATCH, "0 DOWNGRADE e");
	EXPECT(MISMATCH, "0 RENEW e 5");
	EXPECT(MISMATCH, "0 LOCK a", "0 CAMPAIGN a DATA x");
	EXPECT(MISMATCH, "0 RESIGN a");
	EXPECT(MISMATCH, "0 ACQUIRE a LIMIT 1");
	EXPECT(MISMATCH, "0 LIMIT a");
	EXPECT(MISMATCH, "0 LEADER a");
	EXPECT(MISMATCH, "0 OBSERVE a");
}

ALONE(the_end)
{
	fixture_say(f, 0, "LOCK a", ":1024");
	fixture_say(f, 1, "ENQUEUE a", "+QUEUED");
	fixture_simple(f, EVENT_STOP, 0);
	fixture_ask(f, 1, "EVENTS");
	note(f, SOURCE_FAILED, 1, ERROR_DRAINING);
	EXPECT(DRAINING, "1 LOCK a");
	EXPECT(DRAINING, "1 ENQUEUE a");
	EXPECT(DRAINING, "1 SET b v NX PX 1");
	expect_setnx(f, ERROR_DRAINING, "SETNX b v");
	EXPECT(DRAINING, "1 EVAL " SET_SCRIPT " 1 b v 1");
	EXPECT(DRAINING, "1 EVALSHA " SET_HASH " 1 b v 1");
	EXPECT(DRAINING, "1 MLOCK 1 a");
	EXPECT(DRAINING, "1 CAMPAIGN e DATA x");
	EXPECT(DRAINING, "1 ACQUIRE s LIMIT 1");
	EXPECT(DRAINING, "1 OBSERVE e");
	EXPECT(DRAINING, "1 RESTART");
	EXPECT(DRAINING, "1 RELOAD");
	EXPECT(DRAINING, "1 DRAIN");
}

TEST(the_end_of_audits)
{
	fixture_simple(f, EVENT_STOP, 0);
	EXPECT(DRAINING, "1 AUDIT");
}

TEST(without_zookeeper)
{
	static const char *const asking[] = {
		"GET a",    "EXISTS a",   "TTL a",       "PTTL a",      "TOKEN a v",      "DEL a",
		"UNLINK a", "EXPIRE a 1", "PEXPIRE a 1", "DELIFEQ a v", "DELEX a IFEQ v",
	};

	fixture_simple(f, EVENT_ZK_SUSPENDED, 0);
	EXPECT(UNAVAILABLE, "0 LOCK a WAIT 0");
	EXPECT(UNAVAILABLE, "0 MLOCK 1 a WAIT 0");
	EXPECT(UNAVAILABLE, "0 CAMPAIGN e DATA x WAIT 0");
	EXPECT(UNAVAILABLE, "0 ACQUIRE s LIMIT 1 WAIT 0");
	EXPECT(UNAVAILABLE, "0 LIMIT s");
	EXPECT(UNAVAILABLE, "0 LEADER e");
	EXPECT(UNAVAILABLE, "0 ENQUEUE o", "0 OBSERVE o");
	EXPECT(UNAVAILABLE, "0 HOLDERS a");
	EXPECT(UNAVAILABLE, "0 LOCKS * ALL");
	EXPECT(UNAVAILABLE, "0 QUEUE a");
	EXPECT(UNAVAILABLE, "0 HOSTS");
	EXPECT(UNAVAILABLE, "0 AUDIT");
	EXPECT(UNAVAILABLE, "0 REVOKE a");
	EXPECT(UNAVAILABLE, "0 FORCEUNLOCK a");
	EXPECT(UNAVAILABLE, "0 SET a v NX PX 1");
	expect_setnx(f, ERROR_UNAVAILABLE, "SETNX a v");
	EXPECT(UNAVAILABLE, "0 EVAL " SET_SCRIPT " 1 a v 1");
	EXPECT(UNAVAILABLE, "0 EVALSHA " SET_HASH " 1 a v 1");
	for (size_t i = 0; i < sizeof(asking) / sizeof(asking[0]); i++) {
		fixture_ask(f, 0, asking[i]);
		fixture_pass(f, 0); /* other hosts were asked first */
		note(f, (int)command_find((struct slice){ asking[i], strcspn(asking[i], " ") }), 0, ERROR_UNAVAILABLE);
	}
	f->conf.delegation = true;
	fixture_resp3(f, 1);
	fixture_ask(f, 1, "DELEGATE");
	fixture_event(f, &(struct event){ .type = EVENT_CLIENT_PAGE, .conn = 1, .page.sentence = SLICE("x") });
	note(f, COMMAND_DELEGATE, 1, ERROR_UNAVAILABLE);
	fixture_say(f, 0, "ENQUEUE a WAIT 0", "+QUEUED");
	fixture_ask(f, 0, "EVENTS");
	note(f, SOURCE_FAILED, 0, ERROR_UNAVAILABLE);
}

TEST(what_zookeeper_says)
{
	fixture_say(f, 0, "ENQUEUE a", "+QUEUED");
	fixture_answer_get(f, 1, 0, "1\nkind=election\nflavour=rw\n");
	fixture_ask(f, 0, "EVENTS");
	note(f, SOURCE_FAILED, 0, ERROR_MISMATCH);
}

TEST(what_zookeeper_says_to_observers)
{
	fixture_say(f, 0, "OBSERVE a", "+OK");
	fixture_answer_get(f, 1, 0, LOCK_DATA);
	fixture_ask(f, 0, "EVENTS");
	note(f, SOURCE_UNOBSERVED, 0, ERROR_MISMATCH);
}

TEST(what_zookeeper_refuses_to_observers)
{
	fixture_say(f, 0, "OBSERVE b", "+OK");
	fixture_answer(f, ZK_REFUSED);
	fixture_ask(f, 0, "EVENTS");
	note(f, SOURCE_UNOBSERVED, 0, ERROR_UNAVAILABLE);
}

/* The last one: all that the table has was seen. */
TEST_WITH(nothing_stands_in_the_table_that_is_never_answered, NULL, NULL)
{
	(void)state;
	for (int code = 0; code < ERROR_COUNT; code++)
		for (int source = 0; source < SOURCE_COUNT && !answers_any((enum error_code)code); source++)
			if (seen[source][code] != answers_error(source, (enum error_code)code))
				fail_msg("source %d and %s", source, error_word((enum error_code)code));
}
