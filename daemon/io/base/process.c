/* SPDX-License-Identifier: Apache-2.0 */
#include "io/base/process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#include "io/base/file.h"
#include "protocol/number.h"

/* Fields are numbered as in proc(5). The second is the name, in parentheses, which may contain any character. */
enum { FIELD_STATE = 3, FIELD_THREADS = 20, FIELD_START = 22 };

bool process_parse(struct slice stat, struct process *ret)
{
	const char *open = stat.len ? memchr(stat.data, '(', stat.len) : NULL;
	const char *close = stat.len ? memrchr(stat.data, ')', stat.len) : NULL;
	int64_t threads = 0, start = 0;
	struct slice rest, state = { 0 };
	bool fine = true;

	if (!open || !close || close < open || close + 2 > stat.data + stat.len || close[1] != ' ')
		return false;
	rest = (struct slice){ close + 2, (size_t)(stat.data + stat.len - close - 2) };
	for (int number = FIELD_STATE; number <= FIELD_START; number++) {
		struct slice field = slice_cut(&rest, ' ');

		if (number == FIELD_STATE)
			state = field;
		else if (number == FIELD_THREADS)
			fine = fine && number_parse(field, &threads);
		else if (number == FIELD_START)
			fine = fine && number_parse(field, &start) && start > 0;
	}
	if (!fine || state.len != 1)
		return false;
	ret->comm = (struct slice){ open + 1, (size_t)(close - open - 1) };
	ret->start = (uint64_t)start;
	/* The first thread may have ended before the others. */
	ret->ended = (state.data[0] == 'Z' || state.data[0] == 'X') && threads <= 1;
	return true;
}

int process_read(pid_t pid, char text[PROCESS_STAT_MAX], struct process *ret)
{
	char path[32];
	ssize_t len;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	len = file_read(AT_FDCWD, path, 0, text, PROCESS_STAT_MAX);
	if (len < 0)
		return (int)len;
	return process_parse((struct slice){ text, (size_t)len }, ret) ? 0 : -EBADMSG;
}

bool process_lives(pid_t pid, uint64_t start)
{
	char text[PROCESS_STAT_MAX];
	struct process process = { 0 };

	if (pid <= 0)
		return true;
	if (process_read(pid, text, &process) == 0 && start)
		return process.start == start && !process.ended;
	/* The process cannot be read, or its start is unknown: as long as any process has that number, it may be that one. */
	return kill(pid, 0) == 0 || errno != ESRCH;
}

uint64_t process_namespace(void)
{
	struct stat st;

	return stat("/proc/self/ns/pid", &st) == 0 ? (uint64_t)st.st_ino : 0;
}

uint64_t process_clock(void)
{
	struct stat st;

	return stat("/proc/self/ns/time", &st) == 0 ? (uint64_t)st.st_ino : 0;
}

void process_dumpable(bool yes)
{
	prctl(PR_SET_DUMPABLE, yes, 0, 0, 0);
}
