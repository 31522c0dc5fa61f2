/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { UNIT_MAX = 128, LINE_MAX_BYTES = 256, FDS_MAX = 253 /* of one message, as the kernel has it */ };

static struct CMUnitTest tests[UNIT_MAX];
static size_t count;

void unit_add(const char *name, CMUnitTestFunction run, CMFixtureFunction begin, CMFixtureFunction end, void *value)
{
	assert(count < UNIT_MAX);
	tests[count++] = (struct CMUnitTest){ name, run, begin, end, value };
}

__attribute__((weak)) void unit_begin(int argc, char **argv)
{
}

static int captured, kept, file; /* a descriptor, what it was, and what it is now */

void unit_capture(int fd)
{
	fflush(NULL);
	captured = fd;
	kept = dup(fd);
	file = memfd_create("captured", MFD_CLOEXEC);
	dup2(file, fd);
}

const char *unit_captured(void)
{
	static char text[16384];
	ssize_t len;

	fflush(NULL);
	dup2(kept, captured);
	len = pread(file, text, sizeof(text) - 1, 0);
	text[len > 0 ? len : 0] = '\0';
	close(file);
	close(kept);
	return text;
}

bool unit_aborts(void (*act)(void))
{
	static const struct rlimit none = { 0, 0 };
	pid_t child = fork();
	int status;

	if (child == 0) {
		setrlimit(RLIMIT_CORE, &none);
		signal(SIGABRT, SIG_DFL); /* cmocka has a handler */
		close(STDERR_FILENO);
		act();
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

int unit_descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int count_open = 0;

	while (readdir(dir))
		count_open++;
	closedir(dir);
	return count_open;
}

ssize_t unit_send_fds(int to, const void *text, size_t len, const int *fds, size_t fd_count, int flags)
{
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(FDS_MAX * sizeof(int))];
	} control = { .header = { .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS } };
	struct iovec part = { (void *)(uintptr_t)text, len };
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control };

	assert(fd_count <= FDS_MAX);
	control.header.cmsg_len = CMSG_LEN(fd_count * sizeof(int));
	message.msg_controllen = CMSG_SPACE(fd_count * sizeof(int));
	memcpy(CMSG_DATA(&control.header), fds, fd_count * sizeof(int));
	return sendmsg(to, &message, flags);
}

static void leave_out(const char *name, const char *why)
{
	for (size_t i = 0; i < count; i++) {
		if (strcmp(tests[i].name, name) != 0)
			continue;
		memmove(&tests[i], &tests[i + 1], (--count - i) * sizeof(tests[i]));
		printf("skipped: %s: %s", name, why);
		return;
	}
	fprintf(stderr, "there is no test to be skipped of that name: %s\n", name);
	abort();
}

/* The tests of this program that the file $UNIT_SKIPS names, with the reason. */
static void leave_out_skips(void)
{
	const char *path = getenv("UNIT_SKIPS");
	FILE *f = path ? fopen(path, "re") : NULL;
	char line[LINE_MAX_BYTES];

	while (f && fgets(line, sizeof(line), f)) {
		char *name = strchr(line, ' '), *why = strstr(line, ": ");

		if (!name || !why || why < name)
			continue;
		*name++ = *why = '\0';
		if (strcmp(line, program_invocation_short_name) == 0)
			leave_out(name, why + 2);
	}
	if (f)
		fclose(f);
}

int main(int argc, char **argv)
{
	leave_out_skips();
	unit_begin(argc, argv);
	/* The macro of this name counts an array; here as many are run as there are. */
	return _cmocka_run_group_tests("tests", tests, count, NULL, NULL);
}
