/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The processes that clients have named as their commands: CLIENT SETINFO CHILD. Now and then, a few at a time, the
 * daemon looks whether the process that connected and the process that it named are alive, only in order to show it:
 * EVENT_CLIENT_PROCESS reports each change. If the named process belongs to another user or cannot be looked at, it is
 * not believed, and nothing is reported.
 */
#pragma once

#include <stdint.h>
#include <sys/types.h>

struct kin;
struct feed;

struct kin *kin_new(struct feed *feed);
/* Takes NULL. */
void kin_free(struct kin *k);
/* The client of that number, connected by `fd`, named a process. It is looked at later. */
void kin_named(struct kin *k, uint32_t conn, int fd, pid_t child);
/* The connection is closed: nothing is reported about it any longer. */
void kin_gone(struct kin *k, uint32_t conn);
