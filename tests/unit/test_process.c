/* SPDX-License-Identifier: Apache-2.0 */
/* Which process is which, and whether it has ended. */
#include <errno.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/unit.h"

#include "io/base/process.h"

static bool parse(const char *text, struct process *ret)
{
	return process_parse(slice_of(text), ret);
}

#define REST " 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16"

TEST(a_name_may_hold_anything)
{
	struct process p;

	assert_true(parse("12 (a) Z (b c)) S" REST " 1 0 4711 0\n", &p));
	assert_int_equal(p.comm.len, 10);
	assert_memory_equal(p.comm.data, "a) Z (b c)", 10);
	assert_int_equal(p.start, 4711);
	assert_false(p.ended);
	assert_true(parse("12 () R" REST " 1 0 4711", &p));
	assert_int_equal(p.comm.len, 0);
}

TEST(a_zombie_has_ended_unless_a_thread_lives)
{
	struct process p;

	assert_true(parse("12 (a) Z" REST " 1 0 4711 0", &p));
	assert_true(p.ended);
	assert_true(parse("12 (a) Z" REST " 2 0 4711 0", &p));
	assert_false(p.ended);
}

TEST(what_is_no_stat_is_refused)
{
	static const char whole[] = "12 (a) S" REST " 1 0 4711 0";
	struct process p;
	size_t len;

	for (len = 0; len < sizeof(whole) - 7; len++)
		assert_false(process_parse((struct slice){ whole, len }, &p));
	assert_false(parse("12 (a) S" REST " 1 0 x 0", &p));
	assert_false(parse("12 )a( S" REST " 1 0 1 0", &p));
	assert_false(parse("12 (a) SS" REST " 1 0 1 0", &p));
	assert_false(parse("", &p));
}

TEST(only_who_surely_ended_is_dead)
{
	char text[PROCESS_STAT_MAX];
	struct process p;
	pid_t child = fork();

	if (child == 0) {
		pause();
		_exit(0);
	}
	assert_int_equal(process_read(child, text, &p), 0);
	assert_true(process_lives(child, p.start));
	assert_true(process_lives(child, 0));
	assert_false(process_lives(child, p.start + 1));
	assert_true(process_lives(0, 0));
	kill(child, SIGKILL);
	assert_int_equal(waitid(P_PID, (id_t)child, NULL, WEXITED | WNOWAIT), 0);
	assert_false(process_lives(child, p.start)); /* a zombie */
	waitpid(child, NULL, 0);
	assert_false(process_lives(child, p.start));
	assert_false(process_lives(child, 0));
}

TEST(a_dead_one_has_ended_and_one_that_sleeps_has_not)
{
	static const char alive[] = "RSDTtIKP";
	char text[] = "12 (a) ?" REST " 1 0 4711 0";
	struct process p;

	text[7] = 'X';
	assert_true(parse(text, &p));
	assert_true(p.ended);
	for (size_t i = 0; alive[i]; i++) {
		text[7] = alive[i];
		assert_true(parse(text, &p));
		assert_false(p.ended);
	}
	assert_true(parse("12 (a) Z" REST " 0 0 4711 0", &p));
	assert_true(p.ended);
}

TEST(a_stat_whose_numbers_are_none_is_refused)
{
	struct process p;

	assert_false(parse("12 (a) S" REST " x 0 4711 0", &p));
	assert_false(parse("12 (a) S" REST " 1 0 0 0", &p));
	assert_false(parse("12 (a) S" REST " 1 0 -1 0", &p));
	assert_true(parse("12 (a) S" REST " 1 0 1 0", &p));
	assert_int_equal(p.start, 1);
	assert_false(parse("12 (a)-S" REST " 1 0 4711 0", &p));
	assert_false(parse("12 (a)", &p));
	assert_false(parse("12 a) S" REST " 1 0 4711 0", &p));
	assert_false(parse("12 (a S" REST " 1 0 4711 0", &p));
}

TEST(numbers_of_others_are_theirs)
{
	char text[PROCESS_STAT_MAX];
	struct process p;
	struct stat st;
	pid_t child = fork();

	if (child == 0)
		_exit(0);
	waitpid(child, NULL, 0);
	assert_int_equal(process_read(child, text, &p), -ENOENT);
	assert_int_equal(process_read(1, text, &p), 0);
	assert_true(process_lives(1, p.start));
	assert_false(process_lives(1, p.start + 1));
	assert_true(process_lives(-1, 1));
	assert_int_equal(stat("/proc/self/ns/pid", &st), 0);
	assert_int_equal(process_namespace(), st.st_ino);
	if (stat("/proc/self/ns/time", &st) == 0)
		assert_int_equal(process_clock(), st.st_ino);
	process_dumpable(false);
	assert_int_equal(prctl(PR_GET_DUMPABLE), 0);
	process_dumpable(true);
	assert_int_equal(prctl(PR_GET_DUMPABLE), 1);
}
