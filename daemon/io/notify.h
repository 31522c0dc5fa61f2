/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The connection to the service manager (sd_notify(3)). Without one (NOTIFY_SOCKET unset) all functions do nothing. It need
 * only believe the main process (NotifyAccess=main): a worker tells its keeper, which passes that on.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct keeper;

struct notify {
	int fd;                /* -1: nobody listens */
	struct keeper *keeper; /* NULL: this is the main process */
	bool lost;             /* a change of the store, since the last barrier */
};

/* Removes NOTIFY_SOCKET from the environment. 0, or -errno if it is set and cannot be used. */
int notify_open(struct notify *n);
void notify_close(struct notify *n);
/*
 * Passes on a message of a worker (io/base/keeper_message.h); the descriptors stay the caller's. A message that changes
 * the manager's store of descriptors, and a barrier, wait up to a second for room. If it is lost all the same, the
 * (next) barrier fails.
 */
void notify_pass_on(struct notify *n, const char *text, size_t len, const int *fds, size_t fd_count);
/* `state` is one or more lines of KEY=VALUE. A message that the manager does not accept is lost. */
void notify_send(const struct notify *n, const char *state);
/* The service stops, and the manager is to leave it so much time from now on, also if the unit says less. */
void notify_stopping(const struct notify *n, int64_t within_ms);
/* That process is the daemon from now on. */
void notify_main_pid(const struct notify *n, pid_t pid);
/* The manager keeps a copy, for the next start of the service, under that name. 0 or -errno. */
int notify_store(const struct notify *n, const char *name, int fd);
/* ... and drops it. */
void notify_unstore(const struct notify *n, const char *name);
/* Waits until the manager has seen all that was sent. 0 or -errno: -ENOBUFS if some of it was lost on the way. */
int notify_barrier(const struct notify *n, int timeout_ms);
/* Sends STATUS= with control characters replaced. */
void notify_status(const struct notify *n, const char *text, int len);
