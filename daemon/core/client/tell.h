/* SPDX-License-Identifier: Apache-2.0 */
/* Outcomes become replies, notifications and steps of an MLOCK here, and nowhere else. */
#pragma once

struct locks;

/* All that there are (outcome.h), in the order in which they were queued. */
void tell_outcomes(struct locks *locks);
