/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The processes of clients that told of one: CLIENT SETINFO CHILD. Whether the one that connected and the one that it told
 * of still live is looked at now and then, a few at a time, for nothing but showing it: EVENT_CLIENT_PROCESS tells each
 * change. What is told of a process of another user, or of one that cannot be looked at, is not believed, and nothing is
 * said of it.
 */
#pragma once

#include <stdint.h>
#include <sys/types.h>

struct kin;
struct feed;

struct kin *kin_new(struct feed *feed);
/* Takes NULL. */
void kin_free(struct kin *k);
/* The client of that number, connected by `fd`, told of a process. It is looked at later. */
void kin_said(struct kin *k, uint32_t conn, int fd, pid_t child);
/* The connection is closed: nothing is said of it any longer. */
void kin_gone(struct kin *k, uint32_t conn);
