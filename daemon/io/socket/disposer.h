/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Closes the sockets of clients. The close of a socket with unread descriptors (intake.h) would block the closing thread
 * for as long as the client likes. So a thread of its own first receives the descriptors, and ends.
 *
 *     state     meaning                                         left by
 *     unread    the socket is shut down, so that nothing more   its turn comes, and no other thread is left -> received
 *               arrives; it waits for its turn
 *     received  a thread receives one message with descriptors  the thread is done: more are unread -> unread; none are
 *                                                               -> closed; it got no table of its own -> unread
 *     closed    nothing is unread
 *
 * The thread has a table of descriptors of its own, so it has room for them whatever this process has open. The end of
 * the thread closes them. The kernel does not wait for a lingering socket that is closed by the end of a thread. The
 * close of other files can still block the thread, for example of files of a FUSE file system that the client serves.
 * During that time no other thread starts. A socket that waits stays charged to its client's account as a connection.
 *
 * The end of the process closes the sockets that still wait. It does not wait for lingering sockets either.
 */
#pragma once

struct account;
struct disposer;
struct watch_base;

struct disposer *disposer_new(struct watch_base *base);
/* To be called at the end of the process, which closes the sockets that still wait. Takes NULL. */
void disposer_free(struct disposer *d);
/* Owns `fd` from now on, the socket of a client of that account. No watch may have it any longer. */
void disposer_take(struct disposer *d, int fd, struct account *account);
