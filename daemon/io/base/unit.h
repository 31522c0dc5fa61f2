/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The systemd unit that a process belongs to, as sd_pid_get_unit(3) has it: the first component of its control group's
 * path that is no slice. What stands behind it was delegated, and is whatever its owner called it: a user's own units are
 * there (below user@1000.service), and the groups of containers. So the last component says nothing.
 */
#pragma once

#include <sys/types.h>

#include "protocol/slice.h"

enum { UNIT_NAME_MAX = 255, UNIT_CGROUP_MAX = 8192 };

/*
 * The path below which the service manager of this host works: in a container it may see the paths of the host. Points
 * into `text`. Empty: all paths are its own.
 */
struct slice unit_root(char text[UNIT_CGROUP_MAX]);
/* From what stands in /proc/<pid>/cgroup; points into it. Empty: the process belongs to none. */
struct slice unit_of(struct slice cgroup, struct slice root);
/* Reads that file; points into `text`. UNIT_UNKNOWN: it cannot be read, or `pid` is 0. Empty: it belongs to none. */
struct slice unit_read(pid_t pid, struct slice root, char text[UNIT_CGROUP_MAX]);
