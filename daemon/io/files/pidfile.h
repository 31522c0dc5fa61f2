/* SPDX-License-Identifier: Apache-2.0 */
/*
 * <rundir>/lockbrokerd.pid: locked (flock) for as long as the daemon runs, so that a second one in the same
 * directory is refused, whatever became of the first one's socket. What a dead daemon left refuses nobody. Nobody else
 * may open it: whoever can could hold the lock.
 */
#pragma once

#include <sys/types.h>

/* Makes `rundir` if it is missing. The locked descriptor, or -errno; -EBUSY: *ret_pid is the other's (0: unknown). */
int pidfile_open(const char *rundir, pid_t *ret_pid);
