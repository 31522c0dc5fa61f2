/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The end of granting: for good, when the daemon stops, or for as long as operators drain it.
 *
 *   state    | means                                               | event -> next state
 *   GRANTING | as usual                                            | DRAIN -> DRAINING; a stop -> STOPPING
 *   DRAINING | new requests are refused, waiting ones have failed, | DRAIN OFF -> GRANTING; a stop -> STOPPING;
 *            |   claims that nobody uses go back to other hosts,   |   DRAIN: holders are asked once more
 *            |   holders were asked to release                     |
 *   STOPPING | the same, and the daemon ends (drain.h)             |
 *
 * DRAINING goes over with a hand-over, and lasts after a kill. What is held stays, and can be renewed, entered again and
 * downgraded.
 */
#pragma once

#include "protocol/slice.h"

struct locks;

/* Requests fail with -DRAINING and env_halt_sentence(); holders are asked to release, for that reason. */
void halt(struct locks *locks, struct slice reason);
/* DRAINING, or DRAINING once more. */
void halt_drain(struct locks *locks);
/* No longer DRAINING. */
void halt_over(struct locks *locks);
