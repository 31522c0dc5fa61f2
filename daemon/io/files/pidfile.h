/* SPDX-License-Identifier: Apache-2.0 */
/*
 * <rundir>/lockbrokerd.pid is locked (flock) for as long as the daemon runs, so that a second daemon in the same
 * directory is refused, whatever became of the first one's socket. The file of a dead daemon refuses nobody. Other
 * users may not open it, because they could then hold the lock.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

/*
 * Makes `rundir` if it is missing. Returns the locked descriptor, or -errno; -EBUSY: *ret_other is the other daemon (0:
 * unknown). `pid` is written into it.
 */
int pidfile_open(const char *rundir, pid_t pid, pid_t *ret_other);
/* `fd` is the descriptor of the earlier process, and belongs to the file that is there now. */
bool pidfile_is(const char *rundir, int fd);
/* Writes it into the file of that descriptor, which another process passed on with its lock. 0 or -errno. */
int pidfile_write(int fd, pid_t pid);
