/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the requests of clients: each is a list of words and gets one reply, now or later. */
#pragma once

#include <stddef.h>

#include "protocol/slice.h"

struct client;
struct hosts;
struct inquiry;

/* All that a client had is released, and its RESET is answered. */
void command_reset_over(struct client *c);
void command_handle(struct hosts *h, struct client *c, size_t argc, const struct slice *argv);
/* What other hosts have is known: its request is carried out, or more is asked. */
void command_again(struct hosts *h, struct inquiry *i);
