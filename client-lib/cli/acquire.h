/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Gets the locks that an order asks for, and says what is in the way. */
#pragma once

#include <stdint.h>

#include "client-lib/cli/order.h"

/*
 * Connects and acquires. -1: *ret_lb holds it, and tokens[i] is the token of names[i] (not of permits). Otherwise it said
 * why that failed, and returns the exit status, which may be any (-E). The caller closes *ret_lb in any case; it may be
 * NULL.
 */
int cli_acquire(struct cli_order *o, const char *socket, struct lb **ret_lb, int64_t tokens[LIMIT_NAMES_MAX]);
