/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The processes that descend from this process, which are signalled when the lock is lost under which they work.
 *
 * This process must be a child subreaper: then a process that loses its parent becomes our child, and every process whose
 * parent is among our descendants is a descendant. Children that we had before cli_tree_begin() (a shell may have
 * started them and then become us by exec) do not count, nor do their children as long as they live.
 *
 * The list is a snapshot, made by walking /proc: processes that are forked at the same moment may be missing. To reach
 * all of them, stop them first, or look again until none is left. The list holds TREE_MAX processes; others are found
 * when those have ended. If /proc is not mounted, or belongs to another PID namespace, the list has the command only.
 * Nothing here allocates memory but opendir(), and if that fails the directory counts as empty.
 */
#pragma once

#include <stddef.h>
#include <sys/types.h>

enum { TREE_MAX = 4096 };

/* pids: ourselves, then the children that do not count, then the children that count. */
struct cli_tree {
	size_t spared, count; /* 1 <= spared <= count <= TREE_MAX: where the second and the third part end */
	pid_t pids[TREE_MAX];
};

/* Becomes the subreaper; to be called before the command is started. Returns 0 or -errno. */
int cli_tree_begin(struct cli_tree *t);
/* A child was reaped; its number may belong to another process from now on. */
void cli_tree_reaped(struct cli_tree *t, pid_t pid);
/* Takes the snapshot; `command` is a child that certainly exists, or 0. Returns the number of processes. */
size_t cli_tree_find(struct cli_tree *t, pid_t command);
/*
 * Takes the snapshot, and stops (SIGSTOP) the processes in it, until none is left that could fork. Blocks for a moment,
 * at most for 100 looks with a millisecond between them: a process that cannot be stopped in that time, or that forks
 * so fast, may have children that are missing.
 */
void cli_tree_stop(struct cli_tree *t, pid_t command);
/* Sends a signal to all processes of the snapshot. */
void cli_tree_signal(const struct cli_tree *t, int number);
