/* SPDX-License-Identifier: Apache-2.0 */
/* The orders that the daemon gets while it runs: by signals, by a configuration that is read again, by a hand-over. */
#pragma once

#include <sys/types.h>

struct conf;
struct daemon;

/* For reload_new(); `arg` is the daemon. `error`: why it was not read, a line for each error. */
int orders_look(void *arg, const struct conf *read, char *error);
void orders_reloaded(void *arg, struct conf *read, const char *error);
/*
 * For takeover_watch(); `arg` is the daemon. The process that handed over has exited, and has told the service manager who
 * is the daemon now.
 */
void orders_alone(void *arg);
/* For signals_new(): somebody has sent a signal to this process; and for keeper_attach(): to the service. */
void orders_heard(void *arg, int number, pid_t sender);
void orders_signalled(void *arg, int number, pid_t sender);
/* The process that handed over has passed on a signal of that sender. */
void orders_passed(void *arg, int number, pid_t sender);
