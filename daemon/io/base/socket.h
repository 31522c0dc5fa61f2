/* SPDX-License-Identifier: Apache-2.0 */
/* Sockets that pass descriptors, or are passed by a number in the environment. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <sys/uio.h>

/* As many descriptors as the kernel takes with one message (SCM_MAX_FD). */
enum { SOCKET_FDS_MAX = 253 };

/* As sendmsg(2) of these parts: no signal comes of a closed end. These descriptors, perhaps none, go along (unix(7)). */
ssize_t socket_send(int fd, const struct iovec *parts, size_t part_count, const int *fds, size_t fd_count);
/* The descriptor is a stream socket of the Unix domain that listens; or, if `listens` is false, one that does not. */
bool socket_is_stream(int fd, bool listens);
/*
 * Takes the variable out of the environment. The SOCK_SEQPACKET socket of which it has the number, which no other program
 * inherits from now on; -1: there is none.
 */
int socket_inherited(const char *variable);
