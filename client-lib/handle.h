/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Opening a connection with a patience other than lb_open()'s. Not part of the public interface. */
#pragma once

#include "lockbroker.h"

/*
 * lb_open() that waits at most that long for the connection, and then for the first answers; calls have the usual
 * patience. In the same breath as the greeting, the connection gets a name, which the daemon may refuse, and an owner,
 * which it may not. NULL: none.
 */
enum lb_result handle_open(const char *path, int64_t patience_ms, const char *label, const char *owner, struct lb **ret);
/* lb_open() that does not wait for a broker that is being started again. */
enum lb_result handle_open_now(const char *path, struct lb **ret);
/* While a call waits for an answer, `waiting` is called every `every_ms`. It must not use the handle. */
void handle_while_waiting(struct lb *lb, int every_ms, void (*waiting)(void *context), void *context);
/* The patience of lb_open(), and of a handle before lb_set_patience(). */
enum { HANDLE_PATIENCE_MS = 10000 };
