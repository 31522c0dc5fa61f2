/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a build with STEPS=1 counts: an edge of the control flow that the pure parts take is a step, and so are 16 bytes that
 * they copy, compare, fill or search by a function of libc. Steps are about as many on each machine, and however busy it is.
 */
#pragma once

#include <stdint.h>

/* Steps of this thread so far. */
uint64_t steps_count(void);
