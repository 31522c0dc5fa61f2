/* SPDX-License-Identifier: Apache-2.0 */
/* Requests of clients: words in, one reply each, now or later. */
#pragma once

#include <stddef.h>

#include "protocol/slice.h"

struct client;
struct hosts;

void command_handle(struct hosts *h, struct client *c, size_t argc, const struct slice *argv);
