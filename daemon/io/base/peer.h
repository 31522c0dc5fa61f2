/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The other end of a connected Unix socket, as the kernel reports it (sock_diag(7)): which socket it is, and whether
 * any process still has it open. It stays open as long as any process has it, the process that connected or a child
 * that inherited it, even after our end is closed. Sockets are identified by inode; an inode may later be another
 * socket's, which then looks open. For each question the kernel looks at all sockets of the network namespace: 0.2 ms
 * with 5000 of them, and 3 ms with 18000 while other processes want the processor.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "protocol/slice.h"

enum { PEER_GROUPS_MAX = 1024, PEER_PROCESS_UNKNOWN = -2 };

/* The groups that a process had when it connected. */
struct peer_groups {
	uint32_t list[PEER_GROUPS_MAX];
	size_t count;
	bool all; /* false: there are more of them, or they are unknown */
};

/* A descriptor for the questions, to be closed; it is not inherited. -1: the kernel answers none. */
int peer_open(void);
/* A number that no other socket of this boot has had or will have; 0: it is no socket. */
uint64_t peer_cookie(int fd);
/* The inode of one of our sockets; 0: unknown. */
uint32_t peer_self(int fd);
/* The inode of the other end of `self`; 0: unknown, as in another network namespace. */
uint32_t peer_of(int diag, uint32_t self);
/* False only if it is certain that no process has it open. */
bool peer_is_open(int diag, uint32_t peer);
/* The network namespace that this process sees; 0: unknown. */
uint64_t peer_namespace(void);
/* `gid` is the first of them. */
void peer_groups(int fd, gid_t gid, struct peer_groups *ret);
/*
 * A descriptor of the process that connected, to be closed. -1: it has ended. PEER_PROCESS_UNKNOWN: the kernel has none to
 * give (before Linux 6.5), and whether the number is another process' by now has to be found out otherwise.
 */
int peer_process(int fd);
/* That it has not ended, so that its number is not another process'. Closes the descriptor; -1 is one that has ended. */
bool peer_process_lives(int process);

/*
 * The systemd unit that a process belongs to, as sd_pid_get_unit(3) has it: the first component of its control group's
 * path that is no slice. The components behind it were delegated, and have the names that their owner chose: a user's
 * own units are there (below user@1000.service), and the groups of containers. So the last component says nothing.
 *
 * A container engine that does not have systemd make scopes (cgroupfs is its manager or driver) makes control groups outside
 * of any unit: there the first component that ends in the 64 digits of a container stands for a unit, as in
 * /kubepods/burstable/pod<uid>/<digits> and /libpod_parent/libpod-<digits>. Only root makes groups there.
 */
enum { UNIT_NAME_MAX = 255, UNIT_CGROUP_MAX = 8192 };

/*
 * The path below which the service manager of this host works: in a container it may see the paths of the host. Points
 * into `text`. Empty: all paths are its own.
 */
struct slice unit_root(char text[UNIT_CGROUP_MAX]);
/*
 * From the text of /proc/<pid>/cgroup; points into it. Empty: the process belongs to none. That file may be written as
 * seen from a namespace of control groups.
 */
struct slice unit_of(struct slice cgroup, struct slice root);
/* Reads that file; points into `text`. UNIT_UNKNOWN: it cannot be read, or `pid` is 0. Empty: it belongs to none. */
struct slice unit_read(pid_t pid, struct slice root, char text[UNIT_CGROUP_MAX]);
