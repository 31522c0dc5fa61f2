/* SPDX-License-Identifier: Apache-2.0 */
/* The file by which a standalone daemon knows that one of this boot was killed whose clients may believe in their pages. */
#include "io/files/life.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/unit/unit.h"

#define NOW (1000 * INT64_C(1000000000))

static char dir[64], path[96];

static int make_dir(void **state)
{
	snprintf(dir, sizeof(dir), "/tmp/test_life.XXXXXX");
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/life", dir);
	return 0;
}

static int remove_dir(void **state)
{
	unlink(path);
	assert_int_equal(rmdir(dir), 0);
	return 0;
}

#undef TEST
#define TEST(name) TEST_WITH(name, make_dir, remove_dir)

static struct life *opened(const char *boot, const char *page, const char *ended, bool goes_on)
{
	const struct life_conf conf = { dir, boot, page, ended, goes_on };
	struct life *l = NULL;

	assert_int_equal(life_open(&l, &conf, NOW), 0);
	return l;
}

/* A life that has given out pages, and is killed. */
static void is_killed(const char *boot, const char *page)
{
	struct life *l = opened(boot, page, "", false);

	assert_true(life_begins(l, NOW));
	assert_int_equal(access(path, F_OK), 0);
	life_free(l);
}

static void waits(const char *boot, const char *ended, bool wanted)
{
	struct life *l = opened(boot, "new", ended, false);

	assert_int_equal(life_wait_ns(l), wanted ? NOW + LIFE_BELIEF_NS : INT64_MIN);
	assert_int_equal(life_begins(l, NOW + LIFE_BELIEF_NS - 1), !wanted);
	life_over(l, NOW + LIFE_BELIEF_NS - 1);
	assert_int_equal(access(path, F_OK), wanted ? 0 : -1);
	life_over(l, NOW + LIFE_BELIEF_NS);
	assert_int_equal(access(path, F_OK), -1);
	life_free(l);
}

TEST(who_gives_no_page_leaves_nothing)
{
	life_free(opened("boot", "one", "", false));
	assert_int_equal(access(path, F_OK), -1);
	waits("boot", "", false);
}

TEST(after_a_kill_whose_page_is_gone_it_waits)
{
	is_killed("boot", "one");
	waits("boot", "", true);
	waits("boot", "", false); /* that one has ended in order */
}

TEST(after_a_kill_whose_page_has_ended_it_does_not_wait)
{
	is_killed("boot", "one");
	waits("boot", "one", false);
	is_killed("boot", "one");
	life_free(opened("boot", "two", "one", false));
	assert_int_equal(access(path, F_OK), -1);
}

TEST(after_another_boot_it_does_not_wait)
{
	is_killed("boot", "one");
	waits("boot 2", "", false);
	is_killed("boot", "one");
	waits("boo", "", false);
	is_killed("boot", "one");
	life_free(opened("boot 2", "two", "", false));
	assert_int_equal(access(path, F_OK), -1);
}

/* The page that the second one finds is that of the first, which has waited and given out nothing. */
TEST(a_kill_during_the_wait_is_waited_for)
{
	struct life *l;

	is_killed("boot", "one");
	l = opened("boot", "two", "", false);
	assert_false(life_begins(l, NOW));
	life_free(l);
	waits("boot", "two", true);
}

/* Clients of the process before it go on with their pages. */
TEST(who_goes_on_says_so_at_once)
{
	is_killed("boot", "one");
	life_free(opened("boot", "two", "one", true));
	waits("boot", "two", false);
	is_killed("boot", "one");
	life_free(opened("boot", "two", "one", true));
	waits("boot", "", true);
}

TEST(a_file_that_was_removed_is_missed_and_made_again)
{
	struct life *l = opened("boot", "one", "", false);

	assert_false(life_is_missing(l));
	assert_true(life_begins(l, NOW));
	assert_false(life_is_missing(l));
	unlink(path);
	assert_true(life_is_missing(l));
	assert_int_equal(life_again(l), 0);
	assert_false(life_is_missing(l));
	life_over(l, NOW);
	assert_int_equal(access(path, F_OK), -1);
	life_free(l);
}
