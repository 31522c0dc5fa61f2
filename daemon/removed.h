/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Somebody removes files under the living daemon: a cleaner of old files, or a command in the wrong directory. The
 * daemon looks at its files every few seconds, by device and inode, and makes the files again that are gone:
 *
 *   file                     | made again                                           | not if
 *   lockbrokerd.pid          | locked before anything else in daemon.rundir is made | another daemon has it locked
 *   saved                    | with the same contents, at the same place in memory  | the pid file is not ours
 *   session                  | with the same id; the page before it has moved       | the pid file is not ours
 *   a socket's lock file     | locked before the socket is made                     | another daemon has it locked
 *   a socket                 | as at a start; the queue of the one before is served | somebody listens there; systemd
 *                            |                                                      | made it; the lock file is not ours
 *   tokens.lock, tokens      | in daemon.statedir                                   | another daemon has it locked
 *   life                     | in daemon.statedir                                   |
 *
 * Each file is reported once, and INFO has the number of files that cannot be made again (files_lost). So that
 * systemd-tmpfiles does not remove files because they are old, daemon.rundir is locked shared (flock(2)), as
 * tmpfiles.d(5) says. A directory with the sticky bit, which is not the daemon's alone, is not.
 */
#pragma once

struct daemon;
struct removed;

/* The daemon serves from now on; looks at once. */
struct removed *removed_new(struct daemon *d);
/* Looks now. Takes NULL. */
void removed_look(struct removed *r);
/* Takes NULL. */
void removed_free(struct removed *r);
