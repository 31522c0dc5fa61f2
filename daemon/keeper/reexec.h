/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state that a keeper leaves to the program that it runs in its own place (execve): numbers of descriptors, which
 * that program inherits, in memory that it inherits as well.
 */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "keeper/crashes.h"

struct descriptors;

struct reexec {
	int log_level, log_form;
	int channel;
	pid_t group, worker;
	int stop;          /* the signal to stop that was passed on; 0: none */
	int keep;          /* SIGUSR1 was passed on, and holds */
	uint64_t signals;  /* to be passed on: bits */
	int64_t within_us; /* of ALIVE */
	int64_t core;      /* PR_SET_DUMPABLE: running a program undoes it */
	struct crashes crashes;
};

/* The descriptor of that memory, or -errno. */
int reexec_make(const struct reexec *r, const struct descriptors *d);
/* Closes it. 0 or -errno: also -EBADMSG: that is no such memory. Descriptors that are not open are left out. */
int reexec_read(int fd, struct reexec *ret, struct descriptors *d);
