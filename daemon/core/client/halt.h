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
 *
 * No event goes over all locks: a pass does, in pieces (core/port/work.h), of which the first is done at once. It lets go of
 * what is delegated or lingers, and asks the holders. What it has not come to yet is as before, but for what is granted.
 *
 *   pass  | means                                     | event -> next state
 *   NONE  | each lock in use was gone over            | DRAIN, a stop -> UNDER WAY
 *   UNDER | locks before `walk` were gone over, the   | the last lock -> NONE; DRAIN, a stop, another process goes on with
 *     WAY |   others are as before                    |   the state -> UNDER WAY, from the first lock; DRAIN OFF -> NONE;
 *         |                                           |   stop_timeout is over -> NONE, the rest in that event
 */
#pragma once

#include <stdint.h>

struct locks;

/* Requests fail with -DRAINING and env_halt_sentence(); the pass begins. */
void halt(struct locks *locks);
/* DRAINING, or DRAINING once more. */
void halt_drain(struct locks *locks);
/* No longer DRAINING. */
void halt_over(struct locks *locks);
/* Some steps of the pass, at most as many as that or those of one lock more. Returns how many. */
int64_t halt_continue(struct locks *locks, int64_t steps);
void halt_hurry(struct locks *locks); /* the rest of it, if it is under way */
void halt_resume(struct locks *locks); /* it was under way in another process */
