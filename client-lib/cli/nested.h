/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The locks that the commands around this one hold, so that a command that asks for one of them gets an error instead of
 * waiting for itself. $LOCKBROKER_HELD has a line for each lock: its token, a space, its name. Environments outlive
 * locks, so the broker is asked whether the grant still stands.
 */
#pragma once

#include <stdbool.h>

#include "client-lib/lockbroker.h"

/* A command around this one holds that lock, so that waiting for it would never end. */
bool cli_nested(struct lb *lb, const char *name, bool shared);
/* Adds these locks to the locks of the commands around us, for the command that we run. 0, or -1 and errno. */
int cli_nested_export(size_t count, char *const *names, const int64_t *tokens);
