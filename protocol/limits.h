/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Bounds of a request's values, the same on both sides. The bounds of the daemon's configuration are not here. */
#pragma once

#include <stdint.h>

/* A year, for WAIT, LEASE and RENEW: more is a mistake, and instants stay far from the limits of their type. */
#define LIMIT_MS_MAX (INT64_C(365) * 86400 * 1000)

/* LIMIT and COUNT of a semaphore. */
enum { LIMIT_PERMITS_MAX = 1000000 };
enum { LIMIT_DATA_BYTES_MAX = 512, LIMIT_NAMES_MAX = 64 /* of one MLOCK */ };
