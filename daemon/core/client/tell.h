/* SPDX-License-Identifier: Apache-2.0 */
/* Outcomes (notification.h) become replies, notifications and steps of an MLOCK here, and nowhere else. */
#pragma once

#include "core/lock/locks.h"

/* Tells all outcomes, in the order in which they were queued. */
void tell_all(struct locks *locks);

/* The same, inline: most often there are none. */
static inline void tell_outcomes(struct locks *locks)
{
	if (!TAILQ_EMPTY(&locks->outcomes))
		tell_all(locks);
}
