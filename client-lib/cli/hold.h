/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* `lockbroker hold`: holds locks for somebody else, who reads our standard output. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "client-lib/cli/order.h"

/*
 * Prints the tokens in a line, with --any also the name behind the token, and holds until a signal ends us, or until nobody
 * has the reading end of our standard output open any longer: CLI_OK. On a loss it prints "lost": CLI_LOST.
 */
int cli_hold(const struct cli_order *o, struct lb *lb, const int64_t *tokens);
/* It is a `hold`, and nobody has the reading end of our standard output open: there is nobody to wait for the lock for. */
bool cli_hold_is_unread(const struct cli_order *o);
