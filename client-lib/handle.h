/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Opening a connection with another patience than that of lb_open(). Not part of the public interface. */
#pragma once

#include "lockbroker.h"

/* lb_open() that waits at most so long for the connection and then for the first answer; calls have the usual patience. */
enum lb_result handle_open(const char *path, int64_t patience_ms, struct lb **ret);
/* The patience of lb_open(), and of a handle until lb_set_patience(). */
enum { HANDLE_PATIENCE_MS = 10000 };
