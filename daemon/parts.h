/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of the daemon that work on its loop. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct conf_source;
struct daemon;

/*
 * Makes all that works on d->feed, and with the files and the socket, which are there before. Nothing is received or sent
 * before the loop runs. 0 or -errno.
 */
int parts_make(struct daemon *d, const struct conf_source *source);
/* All tokens below are this daemon's to give out. `arg` is the daemon. */
void parts_tokens(void *arg, int64_t limit);
/* The keeper is to hold the descriptors that the next process must not have to make again, and the configuration. */
void parts_keep_roles(struct daemon *d);
/*
 * Says that the daemon serves, and runs the loop until it stops, or another process serves. Frees everything. The exit
 * status.
 */
int parts_serve(struct daemon *d);
/* Frees all parts that were made, in reverse order. If the worker hangs, the process exits with `status`. */
void parts_free(struct daemon *d, bool close_session, int status);
