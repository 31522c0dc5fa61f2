/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sentence of a deadlock: the cycle of waits, hop by hop, in the words of the client that is refused. Of a long cycle
 * the first three hops and the last are told, of a long name its beginning, of others only what the client may know.
 *
 *   this client waits for a held by web-1 (pid 4711), which waits for b held by this client: release one of them first
 */
#pragma once

#include "core/lock/search.h"
#include "protocol/bytes.h"

/* Appends it, for the cycle that the search has found. */
void deadlock_tell(const struct search *s, struct bytes *out);
