/* SPDX-License-Identifier: Apache-2.0 */
/* Requests of clients: words in, one reply each, now or later. */
#pragma once

#include "core/port/event.h"
#include "protocol/commands.h"

#include "protocol/slice.h"

struct bytes;
struct client;

void command_handle(struct client *c, size_t argc, const struct slice *argv);
/* A lock's name: false when that was answered with an error. */
bool command_valid_name(struct client *c, struct slice name);
/* Redis shows the names of commands in lower case. */
void command_word(struct bytes *out, enum command command);
