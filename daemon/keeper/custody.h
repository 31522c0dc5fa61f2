/* SPDX-License-Identifier: Apache-2.0 */
/* The descriptors that the keeper has, each under an id. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct custody;

/* At most `max` of them: the process needs some for itself. */
struct custody *custody_new(size_t max);
/* Closes them all. Takes NULL. */
void custody_free(struct custody *c);
/* Takes the descriptor over; another one with that id is closed. False: there is no room, and it was closed. */
bool custody_put(struct custody *c, uint64_t id, int fd);
/* Closes it; nothing happens if there is none. */
void custody_drop(struct custody *c, uint64_t id);
size_t custody_count(const struct custody *c);
/* Numbered from 0; a drop changes the numbers. It stays the custody's. */
int custody_at(const struct custody *c, size_t at, uint64_t *ret_id);
/* Shuts down and closes all that has no role (KEEPER_ROLE). How many they were. */
size_t custody_end_connections(struct custody *c);
/* Whether another program that this process runs in its place inherits them. */
void custody_inherit(const struct custody *c, bool inherit);
