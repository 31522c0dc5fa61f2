/* SPDX-License-Identifier: Apache-2.0 */
/* The invariants of the state between two events. */
#pragma once

struct broker;

/* The invariant that is broken, as the source has it; NULL: none is. */
const char *broker_wrong(const struct broker *b);
