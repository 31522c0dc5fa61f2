/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A *next* follows a held claim that has no tokens left, without a gap: the held claim keeps other hosts out until it
 * is deleted, and *next* does so from then on, because nothing but the held claim is before it.
 *
 *   held     | means                                       | event -> next state
 *   HELD     | grants are made on it                       | no tokens left, nobody else waits, a list showed next right
 *            |                                             |   behind it -> withheld; next is HELD
 *   withheld | LEAVING, and exists: its delete waits for  | the next but one joins, so that delete, create and list go in
 *            |   another request to be sent                |   one breath; a list shows that somebody waits; what followed
 *            |                                             |   it goes back, or is gone -> on its way
 *   (on its  | LEAVING as any other                        | answered -> gone; refused: it counts to the two again
 *   way)     |                                             |
 *
 * A change of the directory or a lost connection is no reason to let the withheld claim go: somebody may have deleted
 * the claim that followed it, and other hosts must be kept out until its holders are told.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "protocol/slice.h"

struct directory;

/* From now on the lock's *next* is held in place of its claim. */
void rollover_follow(struct directory *d);
/* The number of claims that are gone when what is sent now arrives, or after claim_release(). */
size_t rollover_count(const struct directory *d);
/*
 * This host's grants rest on the znode of that name: it is the held claim's, or that of the claim it followed, which
 * other hosts may have seen just before it went.
 */
bool rollover_keeps_out(const struct directory *d, struct slice name);
