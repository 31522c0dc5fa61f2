/* SPDX-License-Identifier: Apache-2.0 */
/* What a process says when it crashes by its own fault (io/crash.h); tests/system/test_logs.py sends signals. */
#include "io/crash.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/unit.h"

enum { SAID_MAX = 64 << 10, PATIENCE_S = 60, FUNCTION_MAX = 256 /* bytes of write_nowhere(), at most */ };

/* Nobody can know what they are. */
static void (*volatile nothing)(void);
static volatile int *volatile nowhere = (volatile int *)0x10;

static void call_nothing(void)
{
	nothing();
}

__attribute__((noinline)) static void write_nowhere(void)
{
	*nowhere = 1;
}

/* A sanitizer's handler reports in its own way. cmocka has a handler, too, so this looks before main(). */
static bool a_sanitizer_has_a_handler;

__attribute__((constructor)) static void look(void)
{
	struct sigaction now;

	a_sanitizer_has_a_handler = sigaction(SIGSEGV, NULL, &now) != 0 || now.sa_handler != SIG_DFL;
}

/* What a process says that does that. It ends by the signal. */
static void hear(void (*fault)(void), char *said)
{
	size_t len = 0;
	ssize_t count;
	int fds[2], status;
	pid_t child;

	if (a_sanitizer_has_a_handler) {
		puts("skipped: the sanitizer reports a crash in its own way");
		skip();
	}
	assert_int_equal(pipe(fds), 0);
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		signal(SIGSEGV, SIG_DFL); /* cmocka has a handler */
		alarm(PATIENCE_S);
		dup2(fds[1], STDERR_FILENO);
		crash_begin(NULL);
		fault();
		_exit(EXIT_SUCCESS);
	}
	close(fds[1]);
	while (len < SAID_MAX - 1 && (count = read(fds[0], said + len, SAID_MAX - 1 - len)) > 0)
		len += (size_t)count;
	said[len] = '\0';
	close(fds[0]);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
}

/* The last of the frames, whatever their number, or the one of that number. */
static const char *line_of(const char *said, const char *words)
{
	const char *found = NULL;

	for (const char *at = said; (at = strstr(at, words)); at++)
		found = at;
	assert_non_null(found);
	return found;
}

TEST(a_call_of_nothing_is_told_with_who_called_it)
{
	static char said[SAID_MAX];

	hear(call_nothing, said);
	assert_non_null(strstr(said, "event=crash signal=11 address=0x0\n"));
	assert_non_null(strstr(said, "event=frame number=0 address=0x0\n"));
#if defined(__x86_64__) || defined(__aarch64__)
	assert_non_null(strstr(line_of(said, "event=frame"), "object=test_crash_said"));
#endif
}

TEST(an_address_that_cannot_be_written_is_told)
{
	static char said[SAID_MAX];

	hear(write_nowhere, said);
	assert_non_null(strstr(said, "this process crashes by signal 11; "));
	assert_non_null(strstr(said, "event=crash signal=11 address=0x10\n"));
#if defined(__x86_64__) || defined(__aarch64__)
	const char *frame = line_of(said, "event=frame number=0 address=0x") + strlen("event=frame number=0 address=0x");
	char *rest;
	uintptr_t address = (uintptr_t)strtoull(frame, &rest, 16);

	assert_memory_equal(rest, " object=test_crash_said", 23);
	assert_true(address >= (uintptr_t)write_nowhere && address < (uintptr_t)write_nowhere + FUNCTION_MAX);
#endif
}

static void lack_memory(void)
{
	crash_most("user 0 (unit \"a\\b\xc3\xa9\n\")");
	errno = ENOMEM;
	write_nowhere();
}

static void lack_memory_early(void)
{
	errno = ENOMEM;
	write_nowhere();
}

TEST(who_has_most_is_told_if_memory_is_lacking)
{
	static char said[SAID_MAX];

	hear(lack_memory, said);
	assert_non_null(strstr(said, "  event=out_of_memory most=\"user 0 (unit ab)\"\n"));
	hear(lack_memory_early, said);
	assert_non_null(strstr(said, "  event=out_of_memory most=\"nobody that is known\"\n"));
}
