/* SPDX-License-Identifier: Apache-2.0 */
/* The unread notifications and the waiting MLOCK of a client, in a snapshot (snapshot.h): behind all locks. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct bytes;
struct client;
struct entry;
struct grant;
struct locks;
struct notification;
struct observer;

/* The grants and observers by their marks, of which the first is 1. */
struct client_marks {
	struct grant *const *grants;
	size_t grant_count;
	struct observer *const *observers;
	size_t observer_count;
};

/* A NOTIFICATION for each, and MLOCK. */
void client_snapshot(const struct client *c, struct bytes *out);
void notification_snapshot(const struct client *c, const struct notification *n, struct bytes *out);
/* One entry. False: it is refused. */
bool notification_restore(struct locks *locks, const struct client_marks *marks, const struct entry *e);
bool mlock_restore(struct locks *locks, const struct entry *e);
