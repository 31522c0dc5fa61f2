/* SPDX-License-Identifier: Apache-2.0 */
/* A ZooKeeper server may lag behind the others: when a client is told that nobody holds a lock (core/hosts/query.h). */
#include <string.h>

#include "core/hosts/hosts.h"
#include "revocation_fixture.h"
#include "core_test.h"

/* The release script of redis-py. */
#define RELEASE "EVALSHA c3f8721cbb97f72bc19e972846bd7aaf91901658 1 a v"
#define ASKED_IN_VAIN "ZooKeeper cannot be asked what other hosts hold: a"

static const char other[] = "_c_4c61f3c2-7f3c-4c11-9d3e-1c6f0f3a9b12-__WRIT__0000000004";

static int setup(void **state)
{
	return fixture_setup(letters_new(), 4, state);
}

static void nobody_is_listed(struct fixture *f)
{
	fixture_serve_list(f, "/lb/a", 0, NULL);
	fixture_pass(f, 0);
}

/* Only by the list behind a write. */
static void beta_is_listed_late(struct fixture *f)
{
	nobody_is_listed(f);
	fixture_answer_write(f, ZK_BADVERSION);
	beta_is_listed(f);
}

/* The letter to that host is answered. */
static void answers(struct fixture *f, const char *host, const char *line)
{
	letter_posted(f, host);
	answer_arrives(f, posted, line);
	fixture_pass(f, 0);
}

static const struct {
	const char *words, *nobody;
} commands[] = {
	{ "EXISTS a", ":0" },  { "DEL a", ":0" },     { "UNLINK a", ":0" },     { "EXPIRE a 3", ":0" },
	{ "PTTL a", ":-2" },   { RELEASE, ":0" },     { "SET a v XX PX 7", "$-1" }, { "GET a", "$-1" },
	{ "TOKEN a v", "-NOTHELD it is not held under that value: a" },
};

TEST(a_lock_is_reported_free_only_after_a_write)
{
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		fixture_ask(f, 0, commands[i].words);
		nobody_is_listed(f);
		fixture_expect(f, 0, "");
		/* The write and the list were sent together. */
		fixture_answer_write(f, i % 2 ? ZK_BADVERSION : ZK_NONODE);
		nobody_is_listed(f);
		fixture_expect(f, 0, commands[i].nobody);
		fixture_no_op(f);
	}
}

TEST(a_holder_that_only_the_second_list_shows_is_asked)
{
	fixture_ask(f, 0, "EXISTS a");
	beta_is_listed_late(f);
	fixture_expect(f, 0, ":1");
	fixture_ask(f, 0, RELEASE);
	beta_is_listed_late(f);
	answers(f, "beta", "found=ours");
	fixture_expect(f, 0, ":1");
	/* The fact is fresh: the answer of that host needs no further list. */
	fixture_ask(f, 0, RELEASE);
	beta_is_listed_late(f);
	answers(f, "beta", "found=free");
	fixture_expect(f, 0, ":0");
	fixture_no_op(f);
}

/* A question about a held lock costs no write. */
TEST(a_holder_is_reported_without_a_write)
{
	fixture_ask(f, 0, "EXISTS a");
	beta_is_listed(f);
	fixture_expect(f, 0, ":1");
	fixture_ask(f, 0, RELEASE);
	beta_is_listed(f);
	answers(f, "beta", "found=theirs");
	fixture_expect(f, 0, ":0");
	fixture_no_op(f);
}

/* Beta has released the lock, and gamma was granted it under the same value. */
TEST(a_former_holder_does_not_report_the_lock_as_free)
{
	fixture_ask(f, 0, RELEASE);
	beta_is_listed(f);
	answers(f, "beta", "found=free");
	fixture_expect(f, 0, "");
	fixture_answer_write(f, ZK_BADVERSION);
	fixture_serve_list(f, "/lb/a", 1, (const char *[]){ other });
	fixture_serve_get(f, other, 71, BETA + 1, "1\nhost=gamma\n");
	fixture_pass(f, 0);
	answers(f, "gamma", "found=ours");
	fixture_expect(f, 0, ":1");
	fixture_no_op(f);
}

TEST(without_the_write_the_reply_is_unavailable)
{
	for (enum zk_code code = ZK_REFUSED; code <= ZK_BUSY; code++) {
		fixture_ask(f, 0, "DEL a");
		nobody_is_listed(f);
		fixture_answer_write(f, code);
		nobody_is_listed(f);
		fixture_expect(f, 0, "-UNAVAILABLE " ASKED_IN_VAIN);
	}
	fixture_ask(f, 0, "DEL a");
	nobody_is_listed(f);
	fixture_simple(f, EVENT_ZK_SUSPENDED, 0);
	fixture_pass(f, 0);
	fixture_expect(f, 0, "-UNAVAILABLE " ASKED_IN_VAIN);
}

/* A write on the previous connection proves nothing about reads on this one. */
TEST(a_hand_over_repeats_the_write_and_the_list)
{
	fixture_ask(f, 0, "DEL a");
	nobody_is_listed(f);
	fixture_answer_write(f, ZK_BADVERSION);
	fixture_next_process(f);
	fixture_reconnected(f);
	while (strcmp(fixture_oldest(f)->path, "/lb/a") != 0)
		fixture_answer(f, ZK_OK);
	nobody_is_listed(f);
	fixture_answer_write(f, ZK_BADVERSION);
	nobody_is_listed(f);
	fixture_expect(f, 0, ":0");
}
