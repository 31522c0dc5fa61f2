/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The program that this process runs, as it was started: its path, its words and its environment. Started again by that
 * path, it is the program that is then installed: an upgrade replaces the file, and leaves this process the old one.
 * That can be started again as well (`same`).
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

enum { PROGRAM_ERROR_MAX = 512 };

/* A new process finds the number of the descriptor here that the process before it has passed. */
#define PROGRAM_VARIABLE "LOCKBROKERD_HANDOVER"
/* ... and a keeper that runs in the place of another one here. */
#define PROGRAM_KEEPING_VARIABLE "LOCKBROKERD_KEEPING"
/* ... and one that was started from a file which is no longer at its path finds that path here. */
#define PROGRAM_PATH_VARIABLE "LOCKBROKERD_PATH"

struct program;

/*
 * To be called before anything changes the words, the environment or the working directory. `argv` has copies of the words
 * after that, which the program owns.
 */
struct program *program_new(int argc, char **argv);
/* The title in ps(1) and `systemctl status` instead of the path: "lockbrokerd: ROLE", and the words. Its name stays. */
void program_title(const struct program *p, const char *role);
/* Takes NULL. */
void program_free(struct program *p);
/* The state with which a process of it begins, besides the words and the environment. */
struct program_gift {
	const char *variable; /* in the environment: the number of ... */
	int fd;               /* ... a descriptor */
	bool passed;          /* the service manager's descriptors, which are at the same numbers there (LISTEN_FDS) */
	bool session;         /* a session of its own, and no signal blocked */
	bool same;            /* the file that this process runs, also if another one or none is at the path by now */
};

/*
 * Starts it, without the variables that name this process or descriptors which it was passed. 0, or -errno and a sentence.
 */
int program_start(const struct program *p, const struct program_gift *gift, pid_t *ret_pid,
		  char error[PROGRAM_ERROR_MAX]);
/* Runs it in the place of this process: returns only if that fails, -errno and a sentence. */
int program_replace(const struct program *p, const struct program_gift *gift, char error[PROGRAM_ERROR_MAX]);
/* How many descriptors the service manager has passed to this process, from number 3 on. */
int program_passed(const struct program *p);
/* Whether this process runs the file that is at the path now. */
bool program_is_installed(const struct program *p);
