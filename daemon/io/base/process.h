/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which process that is, for as long as the host runs: its number and the time it started. From /proc/<pid>/stat.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "protocol/slice.h"

enum { PROCESS_STAT_MAX = 1024 };

struct process {
	struct slice comm; /* lies in the text it was read from */
	uint64_t start;    /* ticks since the host started; 0: unknown */
	bool ended;        /* a zombie: it does nothing any more, none of its threads lives */
};

/* False: that is no such line. */
bool process_parse(struct slice stat, struct process *ret);
/* 0 or -errno: it is gone, or may not be looked at. */
int process_read(pid_t pid, char text[PROCESS_STAT_MAX], struct process *ret);
/* False only when it is sure that the process which had that number and start has ended. `pid` 0: cannot be told. */
bool process_lives(pid_t pid, uint64_t start);
/* The namespace that the numbers are of; 0: unknown. */
uint64_t process_namespace(void);
/* The namespace that instants are of; 0: unknown, or there is only one. */
uint64_t process_clock(void);
