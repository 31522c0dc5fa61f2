/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the requests of clients: each is a list of words and gets one reply, now or later. */
#pragma once

#include <stddef.h>

#include "protocol/slice.h"

struct client;
struct event;
struct hosts;
struct lookup;
struct locks;

/* All that a client had is released, and its RESET is answered. */
void command_reset_over(struct client *c);
void command_handle(struct hosts *h, struct client *c, size_t argc, const struct slice *argv);
/* Other hosts have answered its lookup: its request is carried out, or more is asked. */
void command_again(struct hosts *h, struct lookup *i);
/* EVENT_CLIENT_PAGE: the adapter has made the page that DELEGATE asked for, or could not. */
void command_page(struct client *c, const struct event *event);
/*
 * EVENT_RESTART_OVER. An operator who asks for a hand-over (RESTART) waits for its outcome, one client at a time; a
 * hand-over can also come unasked (SIGUSR2). The client that asked is part of the broker's state: the reply of the new
 * process goes over the connection of the old one.
 */
void command_restart_over(struct locks *locks, const struct event *event);
