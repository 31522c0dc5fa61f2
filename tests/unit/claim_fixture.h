/* SPDX-License-Identifier: Apache-2.0 */
/* A claim for lock a and contenders of another host: what the tests of claims have in common. */
#pragma once

#include "core_fixture.h"

/* Of another host: before the claims that the tests make first (number 5), and behind them. */
extern const char foreign_low[], foreign_high[];

/* Four connections and no linger; strict: the distributed order goes before the local one; linger: for 100 ms. */
int claim_setup_strict(void **state);
int claim_setup_linger(void **state);

/* Connection 0 asks, and the host's claim `name` waits behind foreign_low; nothing is open. */
void claim_waits(struct fixture *f, char name[128]);
