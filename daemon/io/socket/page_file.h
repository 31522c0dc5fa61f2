/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file of a page of delegations (conn_page.h): memory of the kernel that nobody can resize. This process opens it
 * through /proc/self/fd: once for itself, and once for the client, to which that open file is sent. So this process can
 * find out whether the client, or anybody to whom the client has given it, still has it: a write lease (fcntl(2),
 * F_SETLEASE) is granted to the only open file of a file. An open file counts wherever it is: in a process, mapped there,
 * or under way between two. A descriptor of O_PATH does not count, nor does memory to which a pipe refers (remains.h).
 *
 * The mode is 0600, so no other user can open the file anew, or watch it. A page that an earlier version has made has
 * another mode, and one open file for both: nothing can be found out about it.
 *
 * A lease that is asked for while somebody opens the file would send SIGIO to this process, which ignores it
 * (io/signals.c).
 */
#pragma once

#include <stdbool.h>

/* A new one, and at `*ret` its memory, zeroed; -errno: without /proc, or without leases, there is none. */
int page_file_new(void **ret);
/* The file is a page, as far as the descriptor shows. */
bool page_file_is(int fd);
/* Its memory. -errno on failure; 0. */
int page_file_map(int fd, void **ret);
/* Another open file of it, for the client. -errno on failure. */
int page_file_for_client(int fd);
/* Nobody else has it open. False as well if that cannot be found out. */
bool page_file_is_alone(int fd);
/* page_file_is_alone() is false for ever, because an earlier daemon has made it. */
bool page_file_is_shared(int fd);
