/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the bytes that clients send, and never receives a file descriptor beside them (SCM_RIGHTS). No client has a reason
 * to send one. A thread that reads the bytes beside a descriptor, or closes the socket in which they are unread, may drop
 * the last reference to the file. That takes as long as the sender likes: the close of a socket that lingers (SO_LINGER)
 * waits for its peer. So the loop's thread does neither.
 *
 *     state    meaning                                           a read
 *     closed   the kernel refuses to send descriptors to the     takes the bytes
 *              connection (SO_PASSRIGHTS, since Linux 6.16)
 *     open     the kernel does not know the option; or the       looks at the bytes (MSG_PEEK), and takes them if no
 *              connection began before the option was set: on    descriptor is beside them
 *              the service manager's socket, or an earlier daemon
 *
 * A look ends with the first message that has descriptors. A read takes no more bytes than the look has shown. Urgent bytes
 * (MSG_OOB) are delivered in line: otherwise the kernel would drop them, and their descriptors, at the next read.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/types.h>

/* Asks the kernel to refuse descriptors on the connections that will come through this listening socket. */
void intake_close(int listener);
/* True: `fd` is open, and is prepared for intake_read(). */
bool intake_is_open(int fd);
/* Descriptors are beside the bytes; nothing was taken. */
#define INTAKE_BRINGS ((ssize_t)-2)

/* The steps of intake_read() with an open socket. */
ssize_t intake_read_open(int fd, void *bytes, size_t size);
/* As recv() of a socket that never blocks, or INTAKE_BRINGS. `open`: the result of intake_is_open(). */
static inline ssize_t intake_read(int fd, bool open, void *bytes, size_t size)
{
	return open ? intake_read_open(fd, bytes, size) : recv(fd, bytes, size, 0);
}
/* Reads and drops all bytes of an open socket up to the first descriptor. False: there is a descriptor. */
bool intake_empty(int fd);
