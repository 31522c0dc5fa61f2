/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a keeper leaves to the program that it runs in its own place (execve): numbers of descriptors, which that one
 * inherits, in memory that it inherits as well.
 */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "keeper/crashes.h"

struct custody;

struct legacy {
	int log_level, log_form;
	int channel;
	pid_t group, worker;
	int stop;          /* the signal to stop that was passed on; 0: none */
	uint64_t signals;  /* to be passed on: bits */
	int64_t within_us; /* of ALIVE */
	struct crashes crashes;
};

/* The descriptor of that memory, or -errno. */
int legacy_make(const struct legacy *l, const struct custody *c);
/* Closes it. 0 or -errno: also -EBADMSG: that is no legacy. Descriptors that are not open are left out. */
int legacy_read(int fd, struct legacy *ret, struct custody *c);
