/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A held claim without tokens, and the *next* that follows it without a gap: other hosts are kept out by the one until
 * it is deleted, and by the other from then on, because nothing but the one stands before it.
 *
 *   held     | means                                       | event -> next state
 *   HELD     | grants are made on it                       | no tokens left, nobody else waits, a list showed next right
 *            |                                             |   behind it -> withheld; next is HELD
 *   withheld | LEAVING, and stands: its delete waits for   | the next but one joins, so that delete, create and list go in
 *            |   company                                   |   one breath; a list shows that somebody waits; what followed
 *            |                                             |   it goes back, or is gone -> on its way
 *   (on its  | LEAVING as any other                        | answered -> gone; refused: it counts to the two again
 *   way)     |                                             |
 *
 * That something has changed is no reason to let go of it, and a lost connection is none: perhaps what followed it is
 * what was deleted, by hand, and others are to be kept out until its holders are told.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "protocol/slice.h"

struct directory;

/* The lock's next is held from now on, in the place of its claim. */
void rollover_follow(struct directory *d);
/* So many are not there any more when what is sent now arrives, or after claim_release(). */
size_t rollover_count(const struct directory *d);
/*
 * The znode of that name is what this host's grants rest on: the held one, or what that has followed. Others may have
 * seen it just before it went.
 */
bool rollover_keeps_out(const struct directory *d, struct slice name);
