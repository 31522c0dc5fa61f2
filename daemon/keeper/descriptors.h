/* SPDX-License-Identifier: Apache-2.0 */
/* The descriptors that the keeper has, each under an id. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct descriptors;

/* At most `max` of them: the process needs some for itself. */
struct descriptors *descriptors_new(size_t max);
/* Closes them all. Takes NULL. */
void descriptors_free(struct descriptors *d);
/* Takes the descriptor over; another one with that id is closed. False: there is no room, and it was closed. */
bool descriptors_put(struct descriptors *d, uint64_t id, int fd);
/* Closes it; nothing happens if there is none. */
void descriptors_drop(struct descriptors *d, uint64_t id);
size_t descriptors_count(const struct descriptors *d);
/* Numbered from 0; a drop changes the numbers. It stays theirs. */
int descriptors_at(const struct descriptors *d, size_t at, uint64_t *ret_id);
/* Shuts down and closes all descriptors without a role (KEEPER_ROLE). Returns their number. */
size_t descriptors_end_connections(struct descriptors *d);
/* Whether another program that this process runs in its place inherits them. */
void descriptors_inherit(const struct descriptors *d, bool inherit);
