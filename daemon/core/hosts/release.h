/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ends everything that a client holds, waits for, observes and has asked. That may be much: it is ended in pieces, between
 * which others are served, when the client is closed, resets its connection, or has gone.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct client;
struct hosts;

enum { RELEASE_STEPS = 4 }; /* the steps that the end of one thing counts for, with all that follows (core/port/work.h) */

/* Ends some of it, and adds its steps to *steps, until that is `most`. True: nothing is left. */
bool release_some(struct hosts *h, struct client *c, int64_t most, int64_t *steps);
/* The first piece now; the rest is work of its user (WORK_RELEASE). True: nothing is left. */
bool release_begin(struct hosts *h, struct client *c);
/* All at once. */
void release_client(struct hosts *h, struct client *c);
