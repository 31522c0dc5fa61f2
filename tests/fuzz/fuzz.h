/* SPDX-License-Identifier: Apache-2.0 */
/* What a libFuzzer target defines, and what the driver that stands in for libFuzzer calls. Returns 0. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* How many inputs of the others cost the time of one; only a target that is slow defines it, and the driver makes fewer. */
extern const long fuzz_cost __attribute__((weak));

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
