/* SPDX-License-Identifier: Apache-2.0 */
/* What may be open at ZooKeeper, and who sends next: T = 12 s, so T/24 = 500 ms, T/12 = 1 s. */
#include <stdlib.h>
#include <string.h>

#include "core/lock/lock.h"
#include "core/session/operation.h"
#include "core/state.h"
#include "core_test.h"

enum { MANY = 200 };

static int setup(void **state)
{
	struct fixture *f = fixture_new(false);

	f->conf.limits.requests_per_client = f->conf.limits.requests = 1100;
	f->conf.limits.grants_per_client = f->conf.limits.grants = f->conf.limits.locks = 1100;
	f->conf.limits.session_path_bytes = f->conf.limits.memory_bytes = 1 << 20;
	return fixture_setup(f, 4, state);
}

static size_t open_count(const struct fixture *f)
{
	return f->end_op - f->first_op;
}

static void ask_many(struct fixture *f, uint32_t conn, const char *prefix, int count)
{
	fixture_resp3(f, conn);
	for (int i = 0; i < count; i++)
		fixture_ask(f, conn, fixture_words(f, "ENQUEUE %s%03d", prefix, i));
	bytes_clear(&f->replies[conn]);
}

static bool is_open(const struct fixture *f, enum effect_type type, const char *part)
{
	for (size_t i = f->first_op; i < f->end_op; i++)
		if (f->ops[i % FIXTURE_OPS].effect.type == type && strstr(f->ops[i % FIXTURE_OPS].path, part))
			return true;
	return false;
}

TEST(what_does_not_fit_waits_and_comes_in_order)
{
	size_t most;

	ask_many(f, 0, "x", MANY);
	most = open_count(f);
	assert_in_range(most, 9, 3 * WINDOW_FIRST_COUNT);
	assert_true(is_open(f, EFFECT_ZK_CREATE, "/lb/x000/"));
	assert_false(is_open(f, EFFECT_ZK_CREATE, "/lb/x199/"));
	while (!is_open(f, EFFECT_ZK_CREATE, "/lb/x199/"))
		fixture_answer(f, ZK_REFUSED);
	while (fixture_is_open(f))
		fixture_answer(f, ZK_REFUSED);
}

TEST(a_delete_goes_before_what_waits)
{
	int answers = 0;

	fixture_held(f, f->znode);
	ask_many(f, 1, "x", MANY);
	fixture_say(f, 0, "UNLOCK a", ":0");
	assert_false(is_open(f, EFFECT_ZK_DELETE, f->znode));
	while (!is_open(f, EFFECT_ZK_DELETE, f->znode)) {
		fixture_answer(f, ZK_REFUSED);
		answers++;
	}
	assert_in_range(answers, 1, 4); /* as soon as there was room */
	assert_false(is_open(f, EFFECT_ZK_CREATE, "/lb/x199/"));
}

/* What follows a delete happens at its sending: the lock never has more of its own than it may. */
TEST(a_lock_whose_delete_waits_sends_nothing_before_it)
{
	fixture_held(f, f->znode);
	ask_many(f, 1, "x", MANY);
	fixture_say(f, 0, "UNLOCK a", ":0");
	fixture_ask(f, 0, "LOCK a");
	while (!is_open(f, EFFECT_ZK_DELETE, f->znode)) {
		assert_false(is_open(f, EFFECT_ZK_CREATE, "/lb/a/"));
		assert_false(is_open(f, EFFECT_ZK_LIST, "/lb/a"));
		fixture_answer(f, ZK_REFUSED);
	}
	while (!is_open(f, EFFECT_ZK_CREATE, "/lb/a/"))
		fixture_answer(f, ZK_REFUSED);
}

/* Not before, when it would still show the znode, and not only when the delete is answered. */
TEST(what_follows_a_delete_that_had_to_wait_is_listed_behind_it)
{
	char next[128];

	fixture_ask(f, 0, "LOCK a SHARED");
	fixture_answer_get(f, 1, 0, LOCK_DATA);
	fixture_serve_alone(f, "-__READ__", 5, 77, f->znode);
	fixture_expect(f, 0, ":78848");
	fixture_ask(f, 1, "LOCK a");
	fixture_answer_made(f, 6, 78, next, sizeof(next));
	fixture_answer_list(f, 1, 2, (const char *[]){ f->znode, next });
	fixture_no_op(f);
	ask_many(f, 2, "x", MANY);
	fixture_say(f, 0, "UNLOCK a", ":0");
	while (!is_open(f, EFFECT_ZK_DELETE, f->znode)) {
		assert_false(is_open(f, EFFECT_ZK_LIST, "/lb/a"));
		fixture_answer(f, ZK_REFUSED);
	}
	while (fixture_oldest(f)->effect.type != EFFECT_ZK_DELETE)
		fixture_answer(f, ZK_REFUSED);
	assert_true(is_open(f, EFFECT_ZK_LIST, "/lb/a"));
	fixture_answer(f, ZK_OK);
	while (!strstr(fixture_oldest(f)->path, "/lb/a"))
		fixture_answer(f, ZK_REFUSED);
	fixture_answer_list(f, 1, 1, (const char *[]){ next });
	fixture_expect(f, 1, ":79872");
}

TEST(behind_an_old_operation_nothing_is_read)
{
	fixture_held(f, f->znode);
	fixture_pass(f, 500);
	fixture_ask(f, 1, "LOCK b");
	assert_int_equal(open_count(f), 3);
	fixture_pass(f, 999);
	fixture_ask(f, 2, "LOCK c");
	assert_true(is_open(f, EFFECT_ZK_CREATE, "/lb/c/"));
	fixture_pass(f, 1);
	fixture_ask(f, 3, "LOCK d");
	assert_false(is_open(f, EFFECT_ZK_CREATE, "/lb/d/"));
	fixture_say(f, 0, "UNLOCK a", ":0");
	assert_true(is_open(f, EFFECT_ZK_DELETE, f->znode)); /* is no read */
	fixture_answer(f, ZK_NONODE);
	assert_false(is_open(f, EFFECT_ZK_CREATE, "/lb/d/")); /* what is the oldest now is as old */
	fixture_answer(f, ZK_REFUSED);
	fixture_answer(f, ZK_NONODE);
	assert_true(is_open(f, EFFECT_ZK_CREATE, "/lb/d/"));
}

TEST(the_heartbeat_waits_for_nobody)
{
	ask_many(f, 1, "x", MANY);
	fixture_pass(f, 1400);
	assert_false(is_open(f, EFFECT_ZK_SET, "/lb/.hosts/alpha"));
	fixture_pass(f, 100);
	assert_true(is_open(f, EFFECT_ZK_SET, "/lb/.hosts/alpha"));
}

/* Deletes and joins that never end keep nobody else from sending for ever. */
TEST(questions_get_their_turn)
{
	ask_many(f, 1, "x", MANY);
	fixture_ask(f, 2, "HOSTS");
	assert_false(is_open(f, EFFECT_ZK_LIST, "/lb/.hosts"));
	while (!is_open(f, EFFECT_ZK_LIST, "/lb/.hosts"))
		fixture_answer(f, ZK_REFUSED);
	assert_false(is_open(f, EFFECT_ZK_CREATE, "/lb/x199/"));
}

static bool is_audited(const struct fixture *f)
{
	for (size_t i = f->first_op; i < f->end_op; i++)
		if (strcmp(f->ops[i % FIXTURE_OPS].path, "/lb") == 0)
			return true;
	return false;
}

/* Letters, which may be the word to let go of a lock, and the audit are no different. */
TEST(the_mail_and_the_audit_get_their_turn)
{
	static const char letter[] = "0000000100000-2000abcdef012345-00000000000000aa";

	f->mail = true;
	fixture_watch(f, ZK_WATCH_CHILDREN, "/lb/.mail/alpha");
	ask_many(f, 1, "x", MANY);
	fixture_serve_list(f, "/lb/.mail/alpha", 1, (const char *[]){ letter });
	fixture_ask(f, 2, "AUDIT");
	while (!is_open(f, EFFECT_ZK_GET, letter) || !is_audited(f)) {
		assert_false(is_open(f, EFFECT_ZK_CREATE, "/lb/x199/"));
		fixture_answer(f, ZK_REFUSED);
	}
}

/* Deletes that wait concern it as long as one of them is of a stray. */
TEST(an_audit_ends_while_deletes_wait)
{
	for (int i = 0; i < 2 * MANY; i++)
		fixture_lock_held(f, 1, fixture_words(f, "x%03d", i), 5, 77, f->znode, sizeof(f->znode));
	bytes_clear(&f->replies[1]);
	fixture_simple(f, EVENT_CLIENT_GONE, 1);
	fixture_pass(f, 400); /* or the window would be larger each time */
	fixture_ask(f, 2, "AUDIT");
	while (!is_audited(f))
		fixture_answer(f, ZK_OK);
	while (strcmp(fixture_oldest(f)->path, "/lb") != 0)
		fixture_answer(f, ZK_OK);
	fixture_pass(f, 400);
	fixture_answer_list(f, 1, 0, NULL);
	assert_int_equal(f->replies[2].len, 0);
	while (f->replies[2].len == 0) {
		assert_true(f->broker->directories.turns.waiting > 0);
		fixture_answer(f, ZK_OK);
	}
}

/* Joins and looks that never end do not either. */
TEST(a_recovery_gets_its_turn)
{
	struct slice name;

	fixture_held(f, f->znode);
	fixture_simple(f, EVENT_ZK_SUSPENDED, 0);
	ask_many(f, 1, "x", MANY);
	ask_many(f, 2, "y", MANY);
	fixture_zk_connected(f, SESSION);
	for (int i = 0; i < MANY; i++) {
		name = slice_of(fixture_words(f, "y%03d", i));
		turn_wait(&lock_find(&f->broker->locks, name)->directory, TURN_LOOK);
	}
	fixture_answer(f, ZK_OK); /* the heartbeat */
	while (!is_open(f, EFFECT_ZK_GET, f->znode)) {
		assert_false(is_open(f, EFFECT_ZK_CREATE, "/lb/x199/"));
		fixture_answer(f, ZK_REFUSED);
	}
}

static void expect_number(struct fixture *f, const char *line, int64_t least, int64_t most)
{
	const char *at;

	fixture_ask(f, 3, "INFO zookeeper");
	bytes_char(&f->replies[3], '\0');
	at = strstr(f->replies[3].data, line);
	assert_non_null(at);
	assert_in_range(strtoll(at + strlen(line), NULL, 10), least, most);
	bytes_clear(&f->replies[3]);
}

TEST(info_tells_how_full_it_is)
{
	expect_number(f, "\nopen_bytes:", 0, 0);
	expect_number(f, "\nwindow_bytes:", WINDOW_FIRST_BYTES, WINDOW_FIRST_BYTES);
	expect_number(f, "\nwindow_reads:", WINDOW_FIRST_COUNT, WINDOW_FIRST_COUNT);
	expect_number(f, "\nwindow_writes:", WINDOW_FIRST_COUNT, WINDOW_FIRST_COUNT);
	expect_number(f, "\nrate_bytes_per_second:", WINDOW_FIRST_BYTES * 2, WINDOW_FIRST_BYTES * 2);
	expect_number(f, "\nlocks_waiting_to_send:", 0, 0);
	ask_many(f, 1, "x", MANY);
	expect_number(f, "\nopen_bytes:", WINDOW_FIRST_BYTES, WINDOW_FIRST_BYTES + 2000);
	expect_number(f, "\nlocks_waiting_to_send:", MANY / 2, MANY);
}
