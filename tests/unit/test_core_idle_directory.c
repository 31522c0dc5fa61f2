/* SPDX-License-Identifier: Apache-2.0 */
/* Idle directories that are removed (lock.h), and directories that stay for good (lasting.h). */
#include <stdio.h>
#include <string.h>

#include "core/state.h"
#include "names_fixture.h"
#include "core_test.h"

TEST_IN(an_idle_directory_is_removed_and_made_again, names_setup_kazoo)
{
	use(f, "k/a");
	pass_s(f, 50);
	use(f, "k/a");
	pass_s(f, 59);
	assert_int_equal(made, 1);
	assert_int_equal(removed, 0);
	assert_int_equal(f->broker->directories.left_count, 1);
	pass_s(f, 2);
	assert_int_equal(removed, 1);
	assert_int_equal(f->broker->env.stats.directories_removed_total, 1);
	assert_int_equal(f->broker->directories.left_count, 0);
	pass_s(f, 200);
	assert_int_equal(removed, 1);
	use(f, "k/a");
	assert_int_equal(made, 2);
	pass_s(f, 61);
	assert_int_equal(removed, 2);
	assert_int_equal(f->broker->env.stats.directories_left_total, 0);
}

TEST_IN(other_directories_stay, names_setup_kazoo)
{
	use(f, "old/a");
	use(f, "container");
	pass_s(f, 300);
	assert_int_equal(removed, 0);
	assert_int_equal(f->broker->directories.left_count, 1);
}

TEST_IN(one_that_is_in_use_elsewhere_is_tried_again, names_setup_kazoo)
{
	size_t dir;

	use(f, "k/a");
	dir = dir_of("/lb/k%2Fa", false);
	assert_true(dir < DIRS);
	snprintf(dirs[dir].child, sizeof(dirs[dir].child), "somebody");
	pass_s(f, 70);
	assert_int_equal(removed, 0);
	assert_int_equal(f->broker->directories.left_count, 1);
	dirs[dir].child[0] = '\0';
	pass_s(f, 60);
	assert_int_equal(removed, 1);
}

static bool deletes(const struct fixture *f)
{
	for (size_t i = f->first_op; i < f->end_op; i++)
		if (f->ops[i % FIXTURE_OPS].effect.type == EFFECT_ZK_DELETE)
			return true;
	return false;
}

TEST_IN(who_asks_while_it_is_removed_makes_it_again, names_setup_kazoo)
{
	use(f, "k/a");
	for (int i = 0; !deletes(f); i++) {
		assert_true(i < 700);
		answer_all(f);
		fixture_pass(f, 100);
	}
	ask(f, 1, "LOCK k/a");
	assert_true(got(f, 1, ":"));
	assert_int_equal(removed, 1);
	assert_int_equal(made, 2);
}

TEST_IN(a_hand_over_removes_it_at_the_same_time, names_setup_kazoo)
{
	use(f, "k/a");
	pass_s(f, 30);
	hand_over(f);
	assert_int_equal(f->broker->directories.left_count, 1);
	pass_s(f, 25);
	assert_int_equal(removed, 0);
	pass_s(f, 10);
	assert_int_equal(removed, 1);
}

/* However many names there are: those that are used longest ago go earlier. */
TEST_IN(no_more_stay_than_are_remembered, names_setup_kazoo)
{
	for (int i = 0; i < 1024 + 10; i++) {
		use(f, fixture_words(f, "k/%d", i));
		assert_int_equal(removed, i < 1024 ? 0 : i - 1023);
	}
	assert_int_equal(f->broker->directories.left_count, 1024);
	assert_int_equal(f->broker->env.stats.directories_left_total, 0);
}

/* Not one after the other, for ever. */
TEST_IN(those_that_cannot_be_removed_are_forgotten_when_there_are_more, names_setup_kazoo)
{
	for (int i = 0; i < 1024 + 10; i++) {
		use(f, fixture_words(f, "k/%d", i));
		snprintf(dirs[i].child, sizeof(dirs[i].child), "somebody");
	}
	assert_int_equal(removed, 0);
	assert_int_equal(f->broker->directories.left_count, 1024);
	assert_int_equal(f->broker->env.stats.directories_left_total, 10);
}

/* ---- lasting directories ---- */

#define LASTING_REFUSED \
	"-LIMIT user 1000 uses 6 of 6 allowed directories that stay in ZooKeeper for good (limits.lasting_directories, " \
	"limits.user_share): use names that exist there, or, at a server that has containers, a prefix of another flavour " \
	"than kazoo: "

/* One user may make 6 lasting directories. */
static int setup_lasting(void **state)
{
	int rc = names_setup_kazoo(state);
	struct fixture *f = *state;

	f->conf.limits.lasting_directories = 8;
	pools_configure(&f->broker->env);
	return rc;
}

static uint64_t lasting(const struct fixture *f)
{
	return lasting_count(&f->broker->directories);
}

/* Only k/3 may be removed later. */
static void make_six(struct fixture *f)
{
	for (int i = 0; i < 6; i++)
		use(f, (const char *[]){ "old/1", "old/2", "k/3", "old/4", "old/5", "old/6" }[i]);
	assert_int_equal(lasting(f), 6);
}

TEST_IN(a_lasting_directory_beyond_the_limit_is_refused, setup_lasting)
{
	make_six(f);
	ask(f, 0, "LOCK old/d WAIT 60000");
	fixture_expect(f, 0, LASTING_REFUSED "old/d");
	assert_int_equal(made, 6);
	/* old/1 exists, another flavour makes no lasting directory, and user 1001 has a share of their own. */
	ask(f, 0, "LOCK old/1");
	assert_true(got(f, 0, ":"));
	ask(f, 0, "LOCK b");
	assert_true(got(f, 0, ":"));
	ask(f, 1, "LOCK old/d");
	assert_true(got(f, 1, ":"));
	assert_int_equal(lasting(f), 7);
	ask(f, 2, "LOCK old/e");
	assert_true(got(f, 2, "-LIMIT user 1002 uses 0 of 0 "));
	assert_int_equal(lasting(f), 7);
}

TEST_IN(an_observer_of_a_directory_that_may_not_be_made_is_told, setup_lasting)
{
	make_six(f);
	ask(f, 0, "OBSERVE old/d");
	ask(f, 0, "EVENTS");
	assert_true(memmem(f->replies[0].data, f->replies[0].len, "directories that stay", 21) != NULL);
	pass(f, 5000);
	assert_int_equal(made, 6);
}

TEST_IN(a_removed_directory_no_longer_counts, setup_lasting)
{
	make_six(f);
	pass_s(f, 65);
	assert_int_equal(removed, 1);
	assert_int_equal(lasting(f), 5);
	use(f, "old/d");
	assert_int_equal(lasting(f), 6);
}

/* Somebody else makes the directory first. */
TEST_IN(a_directory_made_by_somebody_else_does_not_count, setup_lasting)
{
	fixture_ask(f, 0, "LOCK old/a");
	fixture_answer(f, ZK_NONODE);
	while (fixture_is_open(f) && !strstr(fixture_oldest(f)->path, "old"))
		fixture_answer(f, ZK_OK);
	while (fixture_is_open(f)) {
		const struct fixture_op *op = fixture_oldest(f);

		if (op->effect.type == EFFECT_ZK_CREATE && op->effect.create == ZK_PERSISTENT)
			break;
		fixture_answer(f, ZK_NONODE);
	}
	assert_int_equal(lasting(f), 1);
	dir_of(fixture_oldest(f)->path, true);
	fixture_answer(f, ZK_NODEEXISTS);
	assert_int_equal(lasting(f), 0);
	answer_all(f);
	assert_true(got(f, 0, ":"));
	assert_int_equal(lasting(f), 0);
}

TEST_IN(a_hand_over_keeps_the_count_of_lasting_directories, setup_lasting)
{
	make_six(f);
	hand_over(f);
	assert_int_equal(lasting(f), 6);
	ask(f, 0, "LOCK old/d");
	fixture_expect(f, 0, LASTING_REFUSED "old/d");
	pass_s(f, 65);
	assert_int_equal(lasting(f), 5);
	ask(f, 0, "LOCK old/d");
	assert_true(got(f, 0, ":"));
}

/* The directory of user 1000 is not given back to user 1001, who comes first in the list. */
TEST_IN(a_hand_over_keeps_the_makers_of_directories, setup_lasting)
{
	ask(f, 1, "LOCK old/a");
	use(f, "k/b");
	hand_over(f);
	assert_int_equal(lasting(f), 2);
	pass_s(f, 65);
	assert_int_equal(removed, 1);
	assert_int_equal(f->broker->locks.conns[0]->account->used[POOL_LASTING], 0);
	assert_int_equal(f->broker->locks.conns[1]->account->used[POOL_LASTING], 1);
}
