/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Closes the sockets of clients, whatever is unread in them (intake.h). One that has descriptors unread would keep the
 * thread that closes it for as long as its client likes: so a thread receives these descriptors, and ends.
 *
 *     state     meaning                                         left by
 *     unread    it is shut down, so that nothing more comes;    no thread receives or ends -> received
 *               it waits for its turn
 *     received  a thread receives one message with descriptors  it has them: more are unread -> unread; none: closed
 *     closed    nothing is unread
 *
 * The thread has a table of descriptors of its own, in which there is room whatever this process has open, and the end of
 * the thread closes what it has received. The kernel does not wait for a socket that lingers if the thread that closes it
 * ends. There are other files of which the close takes long, as of a file system that the client itself serves: these keep
 * the thread, and no other one starts meanwhile. A socket that waits is charged to its client's account as a connection, as
 * it was before.
 *
 * The end of the process closes what still waits, and does not wait for what lingers either.
 */
#pragma once

struct account;
struct disposer;
struct watch_base;

struct disposer *disposer_new(struct watch_base *base);
/* At the end of the process: what still waits stays open until then. Takes NULL. */
void disposer_free(struct disposer *d);
/* Owns the socket of a client of that account from now on, which no watch has any longer. */
void disposer_take(struct disposer *d, int fd, struct account *account);
