/* SPDX-License-Identifier: Apache-2.0 */
/* sys/queue.h, and one macro of the BSDs that glibc lacks. */
#pragma once

#include <sys/queue.h>

#ifndef TAILQ_FOREACH_SAFE
#define TAILQ_FOREACH_SAFE(var, head, field, after) \
	for ((var) = TAILQ_FIRST(head); (var) && ((after) = TAILQ_NEXT((var), field), 1); (var) = (after))
#endif
