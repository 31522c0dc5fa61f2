/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory of the broker's ledger (core/record.h), in the file `saved`: there is always more than one turn needs, so that
 * making more is not a part of any request. If the file cannot grow, the broker serves all the same, and a process that goes
 * on after a kill begins without the ledger. A spare file for that process is left as long as this one (files/spare.h).
 *
 * When more than half of the ledger is unused, memory that no record is in is given back to the file system
 * (core/port/ledger.h), and the spare file is shortened by as much.
 *
 *   state    | means                                   | event -> next state
 *   REST     | nothing is given back                   | recorder_ask(), if it is worth it -> LOOKING
 *   LOOKING  | chunk after chunk of the ledger is      | a piece: some of it; the last one was looked at -> CUTTING
 *            |   looked at                             |
 *   CUTTING  | the spare is too long                   | a piece: it is shorter; it is as long as it should be -> REST
 */
#pragma once

#include <stdbool.h>

struct feed;
struct recorder;
struct saved;

/* The least size at first; its unit; and the room below which memory is added. */
enum { RECORDER_FIRST = 1 << 20, RECORDER_MORE = 1 << 20, RECORDER_LOW = 512 << 10 };
/* How much must be unused before any memory is given back, and how much of the unused memory stays. */
enum { RECORDER_FELL = 4 << 20, RECORDER_KEEP = RECORDER_LOW + RECORDER_MORE };

/* The broker has written all that it has into it. NULL: see errno; the file system has no room. */
struct recorder *recorder_new(struct feed *feed, struct saved *saved);
/* The broker keeps no ledger any longer; what is in the file stays. Takes NULL. */
void recorder_free(struct recorder *r);
/* To be called in each turn, when everybody was answered. Takes NULL. */
void recorder_settle(struct recorder *r);

/* These take NULL. True: it has so much memory that recorder_ask() may be worth a call later. */
bool recorder_may_be_due(const struct recorder *r);
/* REST -> LOOKING, if it is worth it; at most once in some seconds. */
void recorder_ask(struct recorder *r);
/* It is LOOKING or CUTTING. */
bool recorder_shrinks(const struct recorder *r);
/* Then: a piece, of some 50 us. */
void recorder_piece(struct recorder *r);
