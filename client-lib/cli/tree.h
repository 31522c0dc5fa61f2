/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The processes that descend from this one, to be signalled when the lock they work under is lost.
 *
 * This process must be a child subreaper: then what loses its parent becomes our child instead of getting lost, and
 * whoever has a parent among our descendants is one. What was our child before cli_tree_begin() (a shell may have
 * started it and then become us by exec) does not count, nor do its children as long as it lives.
 *
 * The list is a snapshot, made by walking /proc: what is forked at the same moment may be missing, so who wants to
 * reach all of them stops them first, or looks again until none is left. It holds TREE_MAX of them; the others are found
 * when those have ended. Where /proc does not tell, or is that of another PID name space, there are none but the command
 * itself. Nothing here allocates but opendir(), and where that fails the directory counts as empty.
 */
#pragma once

#include <stddef.h>
#include <sys/types.h>

enum { TREE_MAX = 4096 };

/* pids: ourselves, then the children that do not count, then those that do. */
struct cli_tree {
	size_t spared, count; /* 1 <= spared <= count <= TREE_MAX: where the second and the third part end */
	pid_t pids[TREE_MAX];
};

/* Becomes the subreaper; to be called before the command is started. Returns 0 or -errno. */
int cli_tree_begin(struct cli_tree *t);
/* A child was reaped, and its number may be somebody else's from now on. */
void cli_tree_reaped(struct cli_tree *t, pid_t pid);
/* Takes the snapshot; `command` is a child that is certainly there, or 0. Returns how many there are. */
size_t cli_tree_find(struct cli_tree *t, pid_t command);
/*
 * Takes the snapshot, and stops (SIGSTOP) who is in it, until nobody is left who could fork. Blocks for a
 * moment, 100 looks at most with a millisecond between them: who cannot be stopped by then, or forks that fast, may have
 * children that are missing.
 */
void cli_tree_stop(struct cli_tree *t, pid_t command);
/* Sends a signal to all of the snapshot. */
void cli_tree_signal(const struct cli_tree *t, int number);
