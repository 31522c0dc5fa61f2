/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What clients send, without the descriptors that may come with it. No client has a reason to send one (SCM_RIGHTS). The
 * last reference to a file is dropped by the thread that reads the bytes beside its descriptor, or that closes the socket in
 * which they are unread. That may take as long as the sender likes: the close of a socket that lingers (SO_LINGER) waits for
 * a peer. So the loop's thread never does either.
 *
 *     state    meaning                                           a read
 *     closed   the kernel refuses to send descriptors there      takes what has come
 *              (SO_PASSRIGHTS, since Linux 6.16)
 *     open     it cannot, or the connection began before it was  looks at what has come (MSG_PEEK), and takes it if no
 *              asked to: in a socket that the service manager    descriptor is beside it
 *              made, or with an earlier daemon
 *
 * A look shows no more than one message that has descriptors, the last of what it shows, and a read takes no more than the
 * look has shown. Urgent bytes (MSG_OOB) are in their place among the others, because the kernel would drop them, and
 * their descriptors, at the next read.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Asks the kernel to refuse descriptors on the connections that will come through this listening socket. */
void intake_close(int listener);
/* Whether it is open; then it is made ready for looks. */
bool intake_is_open(int fd);
/*
 * As recv() of a socket that never blocks. `open`: as intake_is_open() has said. *brings: descriptors are beside the bytes,
 * nothing was taken, and the number of bytes says nothing.
 */
ssize_t intake_read(int fd, bool open, void *bytes, size_t size, bool *ret_brings);
/* Takes all that is unread in an open one, up to the first descriptor. False: there is one. */
bool intake_empty(int fd);
