/* SPDX-License-Identifier: Apache-2.0 */
/*
 * RESTART: an operator asks for a hand-over to a new process, and waits for its outcome. One client at a time can wait;
 * a hand-over can also come unasked (SIGUSR2). Who it was that asked is part of the broker's state: the reply of the new
 * process goes over the connection of the old one.
 */
#pragma once

struct client;
struct event;
struct locks;

/* Asks for it, or answers why not. */
void restart_ask(struct client *c);
/* EVENT_RESTART_OVER. */
void restart_over(struct locks *locks, const struct event *event);
