/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The events that a handle keeps for lb_event(). Not part of the public interface. */
#pragma once

#include <stddef.h>

#include "lockbroker.h"

/*
 * Reads the event that begins at that byte of lb->events; its texts are valid until the next one is read. Returns its
 * bytes; 0: none begins there.
 */
size_t event_read(struct lb *lb, size_t at, struct lb_event *ret);
/* Removes the event of so many bytes that begins there. */
void event_remove(struct lb *lb, size_t at, size_t bytes);
