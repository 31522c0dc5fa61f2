/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The program that this process runs, as it was started: its path, its words and its environment. Started again by that
 * path, it is the one that is installed by then: an upgrade replaces the file, and leaves this process the old one.
 */
#pragma once

#include <sys/types.h>

enum { PROGRAM_ERROR_MAX = 512 };

/* A new process finds the number of the descriptor here that the process before it has passed. */
#define PROGRAM_VARIABLE "LOCKBROKERD_HANDOVER"

struct program;

/* To be called before anything changes the words, the environment or the working directory. */
struct program *program_new(int argc, char **argv);
/* Takes NULL. */
void program_free(struct program *p);
/*
 * Starts it with that descriptor, and without the variables that name this process or descriptors which it was passed.
 * 0, or -errno and a sentence.
 */
int program_start(const struct program *p, int fd, pid_t *ret_pid, char error[PROGRAM_ERROR_MAX]);
