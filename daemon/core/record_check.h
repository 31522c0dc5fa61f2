/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

struct broker;

/* What the ledger that the broker keeps says wrongly between two events; NULL: nothing. */
const char *record_wrong(const struct broker *b);
