/* SPDX-License-Identifier: Apache-2.0 */
/* What is done to a grant under a value (bearer.h), for who shows the value or has set it. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct grant;

/* Ends it, and its bearer with it. */
void borne_release(struct grant *g);
/* The lease ends that long from now, above 0; `add`: what is left of it, if there is one, is added. */
void borne_extend(struct grant *g, int64_t lease_ns, bool add);
