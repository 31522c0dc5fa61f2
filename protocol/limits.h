/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Bounds of what a request may say, the same on both sides. What the daemon's configuration bounds is not here. */
#pragma once

#include <stdint.h>

/* A year, of WAIT, LEASE and RENEW: beyond it is a mistake, and the arithmetic of instants stays far from its ends. */
#define LIMIT_MS_MAX (INT64_C(365) * 86400 * 1000)

/* LIMIT and COUNT of a semaphore. */
enum { LIMIT_PERMITS_MAX = 1000000 };
enum { LIMIT_DATA_BYTES_MAX = 512, LIMIT_NAMES_MAX = 64 /* of one MLOCK */ };
