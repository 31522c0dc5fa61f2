/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The clock of the whole daemon: nanoseconds that go on during suspend, so that a host that slept learns at once that its
 * session may be over.
 */
#pragma once

#include <stdint.h>

#define CLOCK_NS_PER_MS INT64_C(1000000)
#define CLOCK_NS_PER_S INT64_C(1000000000)

int64_t clock_now_ns(void);
/* That instant in milliseconds since 1970, by the clock that people see, as it is set now. */
int64_t clock_wall_ms(int64_t at_ns);
