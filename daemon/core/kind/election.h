/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An election: a lock whose holder's data everybody may read. It is exclusive and its claims never linger. The first
 * request on a held claim is proclaimed before it is granted: its data are written to the claim's znode (holder.h).
 *
 *   proclamation | means                                     | event -> next
 *   (none)       | its token is of no claim, or of another   | it may be granted on a held claim -> SENT
 *   SENT         | the data are being written                | answered OK -> DONE; outcome unknown -> AGAIN;
 *                |                                           |   NONODE: list, the znode is gone; refused: it fails
 *   AGAIN        | it has its token; the data may be written | connected and proving -> SENT, the same once more
 *   DONE         | the data are written                      | the session proven for long enough -> granted
 *
 * A proclamation is the hand-off: it takes the number of the token and is counted, whatever becomes of it. So two
 * proclaimed requests have two tokens, and an observer can tell them apart, even if the first gave up before it was
 * granted. In standalone mode nothing is proclaimed.
 */
#pragma once

#include "core/lock/kind_rule.h"

extern const struct kind_rule election_rule;
