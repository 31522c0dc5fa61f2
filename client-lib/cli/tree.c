/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "client-lib/cli/tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

/* The walk is repeated until it finds nothing new, but not for ever, in case the processes keep forking. */
enum { ROUNDS_MAX = 16 };
/*
 * A process that waits for a disk, or for what a stopped child was about to do, does not stop: we wait no longer than
 * this.
 */
enum { STOP_ROUNDS_MAX = 100, STOP_ROUND_NS = 1000000 };

static void add(struct cli_tree *t, pid_t pid)
{
	for (size_t i = 0; i < t->count; i++)
		if (t->pids[i] == pid)
			return;
	if (t->count < TREE_MAX)
		t->pids[t->count++] = pid;
}

/* Adds a list of numbers, each with a space after it. */
static void add_listed(struct cli_tree *t, int fd)
{
	char text[4096];
	pid_t pid = 0;
	ssize_t n;

	while ((n = read(fd, text, sizeof(text))) > 0) {
		for (ssize_t i = 0; i < n; i++) {
			if (text[i] >= '0' && text[i] <= '9') {
				pid = pid * 10 + (text[i] - '0');
			} else if (pid > 0) {
				add(t, pid);
				pid = 0;
			}
		}
	}
}

/* The threads of a process; NULL: there is no such process. */
static DIR *threads_of(pid_t pid)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	return opendir(path);
}

/* Opens a file of the next thread; -1 if there is none left. Threads that have ended meanwhile are skipped. */
static int next_thread(DIR *threads, const char *file)
{
	char path[NAME_MAX + 16];
	const struct dirent *entry;
	int fd;

	while ((entry = readdir(threads))) {
		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "%s/%s", entry->d_name, file);
		fd = openat(dirfd(threads), path, O_RDONLY | O_CLOEXEC);
		if (fd >= 0)
			return fd;
	}
	return -1;
}

/* A child is listed with the thread that forked it. */
static void add_children(struct cli_tree *t, pid_t pid)
{
	DIR *threads = threads_of(pid);
	int fd;

	if (!threads)
		return;
	while ((fd = next_thread(threads, "children")) >= 0) {
		add_listed(t, fd);
		close(fd);
	}
	closedir(threads);
}

/* The state follows the name, which is in parentheses and may contain some. */
static bool runs(int stat)
{
	char text[128];
	ssize_t n = read(stat, text, sizeof(text) - 1);
	const char *name_end;

	if (n <= 0)
		return false;
	text[n] = '\0';
	name_end = strrchr(text, ')');
	return name_end && name_end[1] == ' ' && !strchr("TtZX", name_end[2]);
}

/* Whether no thread of the process runs, so that it cannot fork until it is continued. */
static bool has_stopped(pid_t pid)
{
	DIR *threads = threads_of(pid);
	bool stopped = true;
	int fd;

	if (!threads)
		return true;
	while (stopped && (fd = next_thread(threads, "stat")) >= 0) {
		stopped = !runs(fd);
		close(fd);
	}
	closedir(threads);
	return stopped;
}

/* The /proc of another PID namespace has other numbers: we would signal unrelated processes. */
static bool proc_is_ours(void)
{
	char text[24];
	ssize_t n = readlink("/proc/self", text, sizeof(text) - 1);

	if (n <= 0)
		return false;
	text[n] = '\0';
	return strtol(text, NULL, 10) == getpid();
}

int cli_tree_begin(struct cli_tree *t)
{
	if (prctl(PR_SET_CHILD_SUBREAPER, 1L, 0L, 0L, 0L) < 0)
		return -errno;
	t->pids[0] = getpid();
	t->count = 1;
	if (proc_is_ours())
		add_children(t, t->pids[0]);
	t->spared = t->count;
	return 0;
}

void cli_tree_reaped(struct cli_tree *t, pid_t pid)
{
	for (size_t i = 1; i < t->spared; i++)
		if (t->pids[i] == pid)
			t->pids[i] = t->pids[0];
}

/*
 * Asks all known processes for their children, including those just found. A process that has meanwhile lost its parent
 * has become our child, where we have already looked: another round finds it.
 */
size_t cli_tree_find(struct cli_tree *t, pid_t command)
{
	size_t before;

	t->count = t->spared;
	if (command > 0)
		add(t, command);
	for (int round = 0; round < ROUNDS_MAX && proc_is_ours(); round++) {
		before = t->count;
		add_children(t, t->pids[0]);
		for (size_t i = t->spared; i < t->count; i++)
			add_children(t, t->pids[i]);
		if (t->count == before)
			break;
	}
	return t->count - t->spared;
}

static bool all_have_stopped(const struct cli_tree *t)
{
	for (size_t i = t->spared; i < t->count; i++)
		if (!has_stopped(t->pids[i]))
			return false;
	return true;
}

/*
 * A process that had not stopped yet may have forked while we looked: only a look at stopped processes can be the last.
 */
void cli_tree_stop(struct cli_tree *t, pid_t command)
{
	const struct timespec pause = { .tv_nsec = STOP_ROUND_NS };
	bool stopped = false;
	size_t before = 0;

	for (int round = 0; cli_tree_find(t, command) > 0 && round < STOP_ROUNDS_MAX && proc_is_ours(); round++) {
		if (stopped && t->count == before)
			return;
		before = t->count;
		cli_tree_signal(t, SIGSTOP);
		nanosleep(&pause, NULL);
		stopped = all_have_stopped(t);
	}
}

void cli_tree_signal(const struct cli_tree *t, int number)
{
	for (size_t i = t->spared; i < t->count; i++)
		kill(t->pids[i], number);
}
