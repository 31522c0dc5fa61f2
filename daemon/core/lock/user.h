/* SPDX-License-Identifier: Apache-2.0 */
/* A user of the host: the counters that all clients of one user id share, for the limits. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/map.h"

struct locks;

struct user {
	struct map_node node;
	uint32_t uid;
	size_t clients, requests, grants; /* grants: without lost ones */
};

/* Adds a client. The struct lives as long as it has clients. */
struct user *user_enter(struct locks *locks, uint32_t uid);
/* Removes a client, which neither waits nor holds. */
void user_leave(struct locks *locks, struct user *user);
