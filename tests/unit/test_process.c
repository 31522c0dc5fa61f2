/* SPDX-License-Identifier: Apache-2.0 */
/* Which process is which, and whether it has ended. */
#include <signal.h>
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

	(void)state;
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

	(void)state;
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

	(void)state;
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

	(void)state;
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
