/* SPDX-License-Identifier: Apache-2.0 */
/* The line to the service manager (sd_notify(3)). Without one (NOTIFY_SOCKET unset) everything is a no-op. */
#pragma once

struct notify {
	int fd; /* -1: nobody listens */
};

/* Takes NOTIFY_SOCKET out of the environment. 0, or -errno when it is set and cannot be used. */
int notify_open(struct notify *n);
void notify_close(struct notify *n);
/* `state` is one or more lines of KEY=VALUE. What the manager does not take is lost. */
void notify_send(const struct notify *n, const char *state);
/* STATUS= with control characters left out. */
void notify_status(const struct notify *n, const char *text, int len);
