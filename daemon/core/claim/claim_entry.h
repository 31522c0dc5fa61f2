/* SPDX-License-Identifier: Apache-2.0 */
/* A claim as fields of an entry "claim", but for its place: in a snapshot (snapshot.h) and in a ledger (claim_ledger.h). */
#pragma once

#include <stdbool.h>

struct claim;
struct entry;
struct entry_writer;

void claim_entry_write(const struct claim *c, struct entry_writer *w);
/* False: the entry is refused. */
bool claim_entry_read(struct claim *c, const struct entry *e);
