/* SPDX-License-Identifier: Apache-2.0 */
/* The identity of a process for as long as the host runs: its number and the time it started, from /proc/<pid>/stat. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "protocol/slice.h"

enum { PROCESS_STAT_MAX = 1024 };

struct process {
	struct slice comm; /* points into the text from which it was read */
	uint64_t start;    /* ticks since the host started; 0: unknown */
	bool ended;        /* a zombie: none of its threads runs any longer */
};

/* False: the text is no such line. */
bool process_parse(struct slice stat, struct process *ret);
/* 0 or -errno: the process is gone, or may not be read. */
int process_read(pid_t pid, char text[PROCESS_STAT_MAX], struct process *ret);
/* False only if it is certain that the process which had that number and start has ended. `pid` 0: unknown, so true. */
bool process_lives(pid_t pid, uint64_t start);
/*
 * Whether this process may leave a core dump, and be looked into by others of its user; until it runs another program. Its
 * files in /proc are root's if not, but it can use them itself.
 */
void process_dumpable(bool yes);
/* The namespace of process numbers; 0: unknown. */
uint64_t process_namespace(void);
/* The namespace of instants; 0: unknown, or there is only one. */
uint64_t process_clock(void);
