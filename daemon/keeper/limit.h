/* SPDX-License-Identifier: Apache-2.0 */
/* The limit of memory of the control group that this process belongs to, so of the service: MemoryMax= of its unit. */
#pragma once

#include <stdint.h>

/* How many processes the kernel has ended there because the limit was reached. 0: none, or it cannot be known. */
int64_t limit_kills(void);
