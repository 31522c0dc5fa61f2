/* SPDX-License-Identifier: Apache-2.0 */
/* A ZooKeeper server may lag behind the others: when a client is told that nobody holds a lock (core/hosts/query.h). */
#include <stdio.h>
#include <string.h>

#include "core/hosts/hosts.h"
#include "revocation_fixture.h"

/* The release script of redis-py. */
#define RELEASE "EVALSHA c3f8721cbb97f72bc19e972846bd7aaf91901658 1 a v"
#define ASKED_IN_VAIN "ZooKeeper cannot be asked what other hosts hold: a"

static const char other[] = "_c_4c61f3c2-7f3c-4c11-9d3e-1c6f0f3a9b12-__WRIT__0000000004";

static int setup(void **state)
{
	struct fixture *f = fixture_new(false);

	f->conf.started_s = 100;
	f->conf.limits.memory_bytes = 1 << 24;
	f->conf.limits.session_path_bytes = 1 << 20;
	f->mail = f->plain = true;
	return fixture_setup(f, 4, state);
}

static void nobody_is_listed(struct fixture *f)
{
	fixture_op(f, EFFECT_ZK_LIST, "/lb/a");
	fixture_answer_list(f, 1, 0, NULL);
	fixture_pass(f, 0);
}

static void beta_is_listed(struct fixture *f)
{
	held_by_beta(f);
	fixture_pass(f, 0);
}

/* The id of the letter that was posted to `host`. */
static const char *letter_posted(struct fixture *f, const char *host)
{
	static char id[128];
	const struct fixture_op *op = fixture_op(f, EFFECT_ZK_CREATE, "");

	assert_int_equal(strncmp(op->path, "/lb/.mail/", 10), 0);
	assert_int_equal(strncmp(op->path + 10, host, strlen(host)), 0);
	snprintf(id, sizeof(id), "%s", path_end(op->path));
	fixture_answer(f, ZK_OK);
	return id;
}

static void answer_arrives(struct fixture *f, const char *id, const char *found)
{
	char data[256];

	snprintf(data, sizeof(data), "1\nkind=answer\nfrom=beta\nre=%s\nfound=%s\n", id, found);
	letter_arrives(f, letter, data, ZK_OK);
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
	struct fixture *f = *state;

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
	struct fixture *f = *state;

	fixture_ask(f, 0, "EXISTS a");
	nobody_is_listed(f);
	fixture_answer_write(f, ZK_BADVERSION);
	beta_is_listed(f);
	fixture_expect(f, 0, ":1");
	fixture_ask(f, 0, RELEASE);
	nobody_is_listed(f);
	fixture_answer_write(f, ZK_BADVERSION);
	beta_is_listed(f);
	answer_arrives(f, letter_posted(f, "beta/"), "ours");
	fixture_expect(f, 0, ":1");
	/* The fact is fresh: the answer of that host needs no further list. */
	fixture_ask(f, 0, RELEASE);
	nobody_is_listed(f);
	fixture_answer_write(f, ZK_BADVERSION);
	beta_is_listed(f);
	answer_arrives(f, letter_posted(f, "beta/"), "free");
	fixture_expect(f, 0, ":0");
	fixture_no_op(f);
}

/* A question about a held lock costs no write. */
TEST(a_holder_is_reported_without_a_write)
{
	struct fixture *f = *state;

	fixture_ask(f, 0, "EXISTS a");
	beta_is_listed(f);
	fixture_expect(f, 0, ":1");
	fixture_ask(f, 0, RELEASE);
	beta_is_listed(f);
	answer_arrives(f, letter_posted(f, "beta/"), "theirs");
	fixture_expect(f, 0, ":0");
	fixture_no_op(f);
}

/* Beta has released the lock, and gamma was granted it under the same value. */
TEST(a_former_holder_does_not_report_the_lock_as_free)
{
	struct fixture *f = *state;

	fixture_ask(f, 0, RELEASE);
	beta_is_listed(f);
	answer_arrives(f, letter_posted(f, "beta/"), "free");
	fixture_expect(f, 0, "");
	fixture_answer_write(f, ZK_BADVERSION);
	fixture_op(f, EFFECT_ZK_LIST, "/lb/a");
	fixture_answer_list(f, 1, 1, (const char *[]){ other });
	fixture_op(f, EFFECT_ZK_GET, other);
	fixture_answer_get(f, 71, BETA + 1, "1\nhost=gamma\n");
	fixture_pass(f, 0);
	answer_arrives(f, letter_posted(f, "gamma/"), "ours");
	fixture_expect(f, 0, ":1");
	fixture_no_op(f);
}

TEST(without_the_write_the_reply_is_unavailable)
{
	struct fixture *f = *state;

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
	struct fixture *f = *state;

	fixture_ask(f, 0, "DEL a");
	nobody_is_listed(f);
	fixture_answer_write(f, ZK_BADVERSION);
	fixture_event(f, &(struct event){ .type = EVENT_ZK_SUSPENDED, .zk_suspended = { .planned = true } });
	fixture_hand_over(f);
	fixture_reconnected(f);
	while (strcmp(fixture_oldest(f)->path, "/lb/a") != 0)
		fixture_answer(f, ZK_OK);
	nobody_is_listed(f);
	fixture_answer_write(f, ZK_BADVERSION);
	nobody_is_listed(f);
	fixture_expect(f, 0, ":0");
}
