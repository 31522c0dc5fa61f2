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
 * DRAINING goes over with a hand-over, and lasts after a kill. Grants stay, and can be renewed, entered again and
 * downgraded.
 *
 * A pass visits all locks in pieces (core/port/work.h); the first piece is done at once. For each lock the pass ends
 * delegations and unused claims, and asks the holders to release. A lock that the pass has not visited yet is unchanged,
 * but no request for it is granted any longer.
 *
 *   pass  | means                                     | event -> next state
 *   NONE  | each lock in use was visited              | DRAIN, a stop -> UNDER WAY
 *   UNDER | locks before `walk` were visited, the     | the last lock -> NONE; DRAIN, a stop, a hand-over -> UNDER WAY, from
 *     WAY |   others are unchanged                    |   the first lock; DRAIN OFF -> NONE; stop_timeout is over: the
 *         |                                           |   rest is done in that event -> NONE
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
/* Does `steps` steps of the pass, and more only to finish one lock. Returns the number of steps. */
int64_t halt_continue(struct locks *locks, int64_t steps);
void halt_hurry(struct locks *locks); /* finishes the pass now */
void halt_resume(struct locks *locks); /* begins a pass that another process had under way again */
