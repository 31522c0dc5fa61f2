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
 *   REST     | nothing is given back                   | ledger_file_ask(), if it is worth it -> LOOKING
 *   LOOKING  | chunk after chunk of the ledger is      | a piece: some of it; the last one was looked at -> CUTTING
 *            |   looked at                             |
 *   CUTTING  | the spare is too long                   | a piece: it is shorter; it is as long as it should be -> REST
 */
#pragma once

#include <stdbool.h>

struct feed;
struct ledger_file;
struct saved;

/* The least size at first; its unit; and the room below which memory is added. */
enum { LEDGER_FILE_FIRST = 1 << 20, LEDGER_FILE_MORE = 1 << 20, LEDGER_FILE_LOW = 512 << 10 };
/* How much must be unused before any memory is given back, and how much of the unused memory stays. */
enum { LEDGER_FILE_FELL = 4 << 20, LEDGER_FILE_KEEP = LEDGER_FILE_LOW + LEDGER_FILE_MORE };

/* The broker has written all that it has into it. NULL: see errno; the file system has no room. */
struct ledger_file *ledger_file_new(struct feed *feed, struct saved *saved);
/* The broker keeps no ledger any longer; the entries in the file stay. Takes NULL. */
void ledger_file_free(struct ledger_file *r);
/* To be called in each turn, when everybody was answered. Takes NULL. */
void ledger_file_settle(struct ledger_file *r);

/* These take NULL. True: it has so much memory that ledger_file_ask() may be worth a call later. */
bool ledger_file_may_be_due(const struct ledger_file *r);
/* REST -> LOOKING, if it is worth it; at most once in some seconds. */
void ledger_file_ask(struct ledger_file *r);
/* It is LOOKING or CUTTING. */
bool ledger_file_shrinks(const struct ledger_file *r);
/* Then: a piece, of some 50 us. */
void ledger_file_piece(struct ledger_file *r);
