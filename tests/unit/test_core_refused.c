/* SPDX-License-Identifier: Apache-2.0 */
/* What ZooKeeper refuses, by an access list say: it is tried again, and nothing is stuck or left behind because of it. */
#include <string.h>

#include "core/state.h"
#include "core_test.h"

SETUP(setup, false, 2)

static const char refused[] = "-UNAVAILABLE ZooKeeper refuses to list the lock's directory: a";

/* Held, and near the end of its tokens; the next one is made, and the list that came with it refused. */
TEST(next_whose_list_was_refused_is_listed_again)
{
	char next[128];
	uint32_t holder = 0;

	fixture_lock_held(f, 0, "a", 5, 77, f->znode, sizeof(f->znode));
	for (int n = 0; n < 768; n++, holder = !holder) {
		fixture_ask(f, !holder, "LOCK a");
		fixture_ask(f, holder, "UNLOCK a");
		if (n == 0)
			fixture_answer_list(f, 1, 1, (const char *[]){ f->znode });
	}
	bytes_clear(&f->replies[0]);
	bytes_clear(&f->replies[1]);
	fixture_op(f, EFFECT_ZK_CREATE, "-__WRIT__");
	fixture_ask(f, 1, "LOCK a");
	fixture_answer_made(f, 9, 99, next, sizeof(next));
	fixture_serve(f, EFFECT_ZK_LIST, "/lb/a", ZK_REFUSED);
	fixture_expect(f, 1, refused);
	f->conf.handoff_max = 0;
	fixture_ask(f, 1, "LOCK a WAIT 5000");
	fixture_simple(f, EVENT_CLIENT_GONE, 0);
	/* Nobody knows whether somebody else waits, and the limit is 0. */
	fixture_serve(f, EFFECT_ZK_DELETE, f->znode, ZK_OK);
	fixture_no_op(f);
	fixture_pass(f, 1000);
	fixture_serve_list(f, "/lb/a", 1, (const char *[]){ next });
	fixture_expect(f, 1, ":101376"); /* 99 << 10 */
}

/* The connection is lost before the answer to a create, which has made f->znode, if it was carried out. */
static void create_is_unknown(struct fixture *f)
{
	fixture_ask_to_create(f, 0);
	fixture_reconnect(f);
}

/* It may stand, and then it keeps everybody waiting. */
TEST(what_an_unknown_create_left_is_looked_for_until_a_list_tells)
{
	create_is_unknown(f);
	fixture_serve(f, EFFECT_ZK_LIST, "/lb/a", ZK_REFUSED);
	fixture_expect(f, 0, refused);
	fixture_no_op(f);
	fixture_pass(f, 1000);
	fixture_serve_list(f, "/lb/a", 1, (const char *[]){ f->znode });
	fixture_serve(f, EFFECT_ZK_DELETE, f->znode, ZK_OK);
	fixture_no_op(f);
}

/* It may be ours: who owns it is not known yet. */
TEST(whose_a_found_znode_is_is_asked_until_it_is_told)
{
	create_is_unknown(f);
	fixture_answer_list(f, 1, 1, (const char *[]){ f->znode });
	fixture_serve(f, EFFECT_ZK_GET, f->znode, ZK_REFUSED);
	fixture_serve_list(f, "/lb/a", 1, (const char *[]){ f->znode });
	fixture_no_op(f);
	fixture_pass(f, 1000);
	fixture_serve_list(f, "/lb/a", 1, (const char *[]){ f->znode });
	fixture_serve_get(f, f->znode, 77, SESSION, "");
	fixture_answer_list(f, 1, 1, (const char *[]){ f->znode });
	fixture_expect(f, 0, ":78848");
	fixture_no_op(f);
}

static const char elsewhere[] = "_c_00000000-0000-8000-8091-00000000b0b0-__WRIT__0000000003";

/* Nobody's znode is deleted, and nobody is said to hold nothing, because nobody may look. */
TEST(who_cannot_be_seen_is_not_taken_from)
{
	static const char *const commands[] = { "REVOKE a", "FORCEUNLOCK a" };

	for (size_t i = 0; i < 2; i++) {
		fixture_ask(f, 0, commands[i]);
		fixture_serve(f, EFFECT_ZK_LIST, "/lb/a", ZK_REFUSED);
		fixture_expect(f, 0, "-UNAVAILABLE ZooKeeper refuses to show who holds it");
		fixture_ask(f, 0, commands[i]);
		fixture_answer_list(f, 1, 1, (const char *[]){ elsewhere });
		fixture_serve(f, EFFECT_ZK_GET, elsewhere, ZK_REFUSED);
		fixture_expect(f, 0, "-UNAVAILABLE ZooKeeper refuses to show who holds it");
		fixture_no_op(f);
	}
}

/* ---- what it is too busy for ---- */

/* Each operation of a LOCK in its turn; the one that is told `busy` is asked again, and the others as they need. */
static void get_through(struct fixture *f, const char *path, int busy)
{
	char name[128] = "";
	int asked = 0;

	while (!f->replies[0].len) {
		const struct fixture_op *op;

		if (!fixture_is_open(f)) {
			fixture_pass(f, 10);
			continue;
		}
		op = fixture_oldest(f);
		if (strcmp(op->path, "/lb/.hosts/alpha") == 0)
			fixture_answer(f, ZK_OK);
		else if (asked++ == busy)
			fixture_answer(f, ZK_BUSY);
		else if (op->effect.type == EFFECT_ZK_GET && strcmp(op->path, path) == 0)
			fixture_answer_get(f, 1, 0, LOCK_DATA);
		else if (op->effect.type == EFFECT_ZK_CREATE)
			fixture_answer_made(f, 5, 77, name, sizeof(name));
		else
			fixture_answer_list(f, 1, name[0] != '\0', (const char *[]){ name });
	}
}

TEST(a_wait_goes_on_whichever_operation_is_throttled)
{
	for (int busy = 0; busy < 3; busy++) {
		static const char *const paths[] = { "/lb/a", "/lb/b", "/lb/c" };
		int64_t began_ns = f->now_ns;

		fixture_ask(f, 0, fixture_words(f, "LOCK %s WAIT 20000", paths[busy] + 4));
		get_through(f, paths[busy], busy);
		fixture_expect(f, 0, ":78848");
		assert_true(f->now_ns - began_ns >= 60000000 && f->now_ns - began_ns <= 1000000000);
		while (fixture_is_open(f))
			fixture_answer(f, ZK_OK);
	}
}

/* However many wait, and however long the server is busy: one try at a time, and more and more seldom. */
TEST(a_busy_server_is_asked_by_one_breath_at_a_time)
{
	int64_t last_ns = 0, least_ns = 60000000, began_ns = f->now_ns;
	int creates = 0;

	fixture_ask(f, 0, "LOCK a WAIT 20000");
	fixture_ask(f, 1, "LOCK a WAIT 20000");
	while (f->now_ns - began_ns < 19000000000) {
		if (!fixture_is_open(f)) {
			fixture_pass(f, 10);
			continue;
		}
		if (strcmp(fixture_oldest(f)->path, "/lb/.hosts/alpha") == 0) {
			fixture_answer(f, ZK_OK);
			continue;
		}
		if (fixture_oldest(f)->effect.type == EFFECT_ZK_CREATE) {
			assert_true(!last_ns || f->now_ns - last_ns >= least_ns);
			least_ns = creates && least_ns < 1900000000 ? 2 * least_ns : least_ns;
			last_ns = f->now_ns;
			creates++;
		}
		fixture_answer(f, ZK_BUSY);
	}
	assert_true(creates >= 7 && creates <= 13);
	fixture_expect(f, 0, "");
	fixture_pass(f, 6000);
	while (fixture_is_open(f))
		fixture_answer(f, ZK_BUSY);
	assert_true(f->broker->env.stats.refused_other_total > 20);
}

/* The directory may be missing, too: its create is one of the things that are refused. */
TEST(a_directory_that_could_not_be_made_is_made_later)
{
	fixture_ask(f, 0, "LOCK a");
	for (int tries = 0; tries < 12; tries++) { /* more often than it is tried in a row */
		fixture_answer(f, ZK_NONODE); /* get */
		fixture_answer(f, ZK_NONODE); /* create */
		fixture_answer(f, ZK_NONODE); /* list */
		fixture_answer_beats(f);
		fixture_serve(f, EFFECT_ZK_CREATE, "/lb/a", ZK_BUSY);
		while (fixture_is_open(f))
			fixture_answer(f, ZK_NONODE);
		while (!fixture_is_open(f) || strcmp(fixture_oldest(f)->path, "/lb/.hosts/alpha") == 0) {
			fixture_answer_beats(f);
			if (!fixture_is_open(f))
				fixture_pass(f, 10);
		}
	}
	fixture_expect(f, 0, "");
	fixture_answer_get(f, 1, 0, LOCK_DATA);
	fixture_serve_alone(f, "-__WRIT__", 5, 77, f->znode);
	fixture_expect(f, 0, ":78848");
}

/* The contender before it is gone: no watch would ever show that again. */
TEST(who_is_first_is_asked_until_a_list_tells)
{
	fixture_join(f, 0, "LOCK a");
	fixture_answer_list(f, 1, 2, (const char *[]){ elsewhere, f->znode });
	fixture_serve(f, EFFECT_ZK_GET, f->znode, ZK_BUSY);
	fixture_serve(f, EFFECT_ZK_GET, elsewhere, ZK_NONODE);
	for (int tries = 0; tries < 2; tries++) {
		fixture_serve(f, EFFECT_ZK_LIST, "/lb/a", ZK_BUSY);
		for (int ms = 0; !fixture_is_open(f) && ms < 1000; ms += 10)
			fixture_pass(f, 10);
	}
	fixture_serve_list(f, "/lb/a", 1, (const char *[]){ f->znode });
	fixture_expect(f, 0, ":78848");
}

/* Somebody deleted it: its own watch is used up, and nobody sets it again. */
TEST(whether_a_held_znode_exists_is_asked_until_a_list_tells)
{
	static const char behind[] = "_c_00000000-0000-8000-8011-00000000b0b0-__WRIT__0000000009";
	int64_t until_ns = f->now_ns + 30000000000;
	int lists = 0, busy = 0;

	fixture_lock_held(f, 0, "a", 5, 77, f->znode, sizeof(f->znode));
	while (!fixture_logged(f, "somebody deleted our znode") && f->now_ns < until_ns) {
		if (!fixture_is_open(f))
			fixture_pass(f, 10);
		else if (strcmp(fixture_oldest(f)->path, "/lb/.hosts/alpha") == 0)
			fixture_answer(f, ZK_OK);
		else if (fixture_oldest(f)->effect.type != EFFECT_ZK_LIST)
			fixture_answer(f, ZK_NONODE);
		else if (lists++ == 0)
			fixture_answer_list(f, 1, 2, (const char *[]){ f->znode, behind });
		else if (busy++ < 2)
			fixture_answer(f, ZK_BUSY);
		else
			fixture_answer_list(f, 1, 1, (const char *[]){ behind });
	}
	assert_true(busy == 3);
}

TEST(a_throttled_heartbeat_proves_nothing)
{
	int64_t until_ns = f->broker->ensemble.session.proof.safe_until_ns;

	fixture_pass(f, 1500);
	fixture_serve(f, EFFECT_ZK_SET, "/lb/.hosts/alpha", ZK_BUSY);
	assert_true(f->broker->ensemble.session.proof.safe_until_ns == until_ns);
}
