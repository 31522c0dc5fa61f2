/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory of the broker's ledger (core/record.h), in the file `saved`: there is always more than one turn needs, so that
 * making more is not a part of any request. If the file cannot grow, the broker serves all the same, and a process that goes
 * on after a kill begins without the ledger. A spare file for that process is left as long as this one (files/spare.h).
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct feed;
struct recorder;
struct saved;

/* How much there is at first, how much more at least, and below how much room there is more. */
enum { RECORDER_FIRST = 1 << 20, RECORDER_MORE = 1 << 20, RECORDER_LOW = 512 << 10 };

/* The broker has written all that it has into it. NULL: see errno; the file system has no room. */
struct recorder *recorder_new(struct feed *feed, struct saved *saved);
/* The broker keeps no ledger any longer; what is in the file stays. Takes NULL. */
void recorder_free(struct recorder *r);
/* To be called in each turn, when everybody was answered. Takes NULL. */
void recorder_settle(struct recorder *r);
