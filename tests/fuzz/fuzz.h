/* SPDX-License-Identifier: Apache-2.0 */
/* What a libFuzzer target defines, and what the driver that stands in for libFuzzer calls. Returns 0. */
#pragma once

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
