/* SPDX-License-Identifier: Apache-2.0 */
/* An older state of the ensemble is restored: its transactions begin again behind what this host has seen (past.h). */
#include <string.h>

#include "core_fixture.h"

#define ANOTHER (SESSION + 1)
#define REFUSED \
	"-UNAVAILABLE tokens would repeat, because an older state of ZooKeeper was restored; the daemon's log says what to do: a"

static int setup(void **state)
{
	return fixture_setup(fixture_new(false), 3, state);
}

static void another_session(struct fixture *f)
{
	fixture_event(f, &(struct event){ .type = EVENT_ZK_EXPIRED });
	fixture_zk_connected(f, ANOTHER);
	fixture_answer_session(f);
	fixture_pass(f, 200);
}

/* Lock a, whose znode gets that number. */
static void ask(struct fixture *f, uint32_t seq, int64_t czxid, char name[128])
{
	fixture_ask(f, 1, "LOCK a");
	while (fixture_oldest(f)->effect.type != EFFECT_ZK_CREATE)
		fixture_answer_get(f, 1, 0, LOCK_DATA);
	fixture_answer_made(f, seq, czxid, name, 128);
}

static void is_granted(struct fixture *f, char name[128], const char *token)
{
	while (fixture_oldest(f)->effect.type != EFFECT_ZK_LIST)
		fixture_answer(f, ZK_OK);
	fixture_answer_list(f, 1, 1, (const char *[]){ name });
	fixture_expect(f, 1, token);
}

/* The znode goes again. */
static void is_refused(struct fixture *f, const char *name)
{
	fixture_expect(f, 1, REFUSED);
	while (fixture_oldest(f)->effect.type == EFFECT_ZK_LIST)
		fixture_answer_list(f, 1, 1, (const char *[]){ name });
	fixture_op(f, EFFECT_ZK_DELETE, name);
	fixture_answer(f, ZK_OK);
}

/* Lock a was held under token 78848, of a znode with number 77. */
static void held_before(struct fixture *f)
{
	char name[128];

	fixture_held(f, name);
	another_session(f);
	fixture_logged(f, "");
}

TEST(a_token_that_would_repeat_is_refused)
{
	struct fixture *f = *state;
	char name[128];

	held_before(f);
	ask(f, 1, 77, name);
	assert_true(fixture_logged(f,
				   "ZooKeeper has gone back to transaction 0x000000000000004d, and this host has seen "
				   "0x000000000000004d"));
	is_refused(f, name);
}

TEST(what_is_above_all_that_was_seen_is_granted)
{
	struct fixture *f = *state;
	char name[128];

	held_before(f);
	ask(f, 1, 78, name);
	is_granted(f, name, ":79872");
	assert_false(fixture_logged(f, "gone back"));
}

TEST(once_the_numbers_are_higher_again_it_goes_on)
{
	struct fixture *f = *state;
	char name[128];

	held_before(f);
	ask(f, 1, 40, name);
	is_refused(f, name);
	fixture_pass(f, 2000);
	while (fixture_is_open(f))
		fixture_answer(f, ZK_OK);
	ask(f, 2, INT64_C(1) << 32, name);
	is_granted(f, name, ":4398046511104");
}

TEST(it_is_said_once_in_a_while)
{
	struct fixture *f = *state;
	char name[128];

	held_before(f);
	ask(f, 1, 40, name);
	assert_true(fixture_logged(f, "raise acceptedEpoch and currentEpoch of its servers to 1 or more"));
	is_refused(f, name);
	fixture_pass(f, 2000);
	while (fixture_is_open(f))
		fixture_answer(f, ZK_OK);
	ask(f, 2, 41, name);
	assert_false(fixture_logged(f, "gone back"));
}

/* The session was a part of what was restored. */
TEST(a_heartbeat_tells_it_too)
{
	struct fixture *f = *state;
	char name[128];

	fixture_pass(f, 1500);
	fixture_answer_beat(f, 5000);
	fixture_pass(f, 1500);
	fixture_answer_beat(f, 4000);
	assert_true(fixture_logged(
		f, "gone back to transaction 0x0000000000000fa0, and this host has seen 0x0000000000001388"));
	ask(f, 1, 4001, name);
	is_refused(f, name);
}

TEST(a_znode_that_is_found_late_is_as_old_as_it_was_made)
{
	struct fixture *f = *state;
	char name[128];

	fixture_ask(f, 1, "LOCK a");
	fixture_answer_get(f, 1, 0, LOCK_DATA);
	fixture_op(f, EFFECT_ZK_CREATE, "-__WRIT__");
	strcpy(name, strrchr(fixture_oldest(f)->path, '/') + 1);
	strcat(name, "0000000001");
	fixture_event(f, &(struct event){ .type = EVENT_ZK_SUSPENDED });
	fixture_zk_connected(f, SESSION);
	fixture_answer_beat(f, 90);
	fixture_op(f, EFFECT_ZK_LIST, "/lb/a");
	fixture_answer_list(f, 1, 1, (const char *[]){ name });
	fixture_op(f, EFFECT_ZK_GET, name);
	fixture_answer_get(f, 77, SESSION, "");
	is_granted(f, name, ":78848");
}
