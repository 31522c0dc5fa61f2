/* SPDX-License-Identifier: Apache-2.0 */
/* How a client begins and ends, whether it has a connection (connection.h) or is a bearer (bearer.h). */
#pragma once

#include <stdint.h>

#include "protocol/slice.h"

struct client;
struct locks;

/* One of that user and unit more, the youngest of all. It has nothing yet, and is of no account. */
struct client *client_new(struct locks *locks, uint32_t uid, struct slice unit);
/* From now on it is known by that id, and belongs to its account. */
void client_enter(struct client *c, uint64_t id);
/* The same, with an id that nobody ever had. */
void client_enter_new(struct client *c);
/* It has nothing any longer. */
void client_free(struct client *c);
