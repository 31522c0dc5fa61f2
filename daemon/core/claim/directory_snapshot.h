/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A directory and its claims in a snapshot (snapshot.h), after the end of a connection: a create that was not answered is
 * UNSURE, and the results of lists and watches are forgotten.
 */
#pragma once

#include <stdbool.h>

struct bytes;

/* Where the directory keeps a claim. */
enum claim_role { ROLE_CLAIM, ROLE_NEXT, ROLE_SLOTS, ROLE_LEAVING };

struct claim;
struct directory;
struct entry;
struct entry_pairs;
struct entry_writer;

/* Adds its fields to an entry. Then an entry CLAIM for each of its claims. */
void directory_snapshot(const struct directory *d, struct entry_writer *w);
void claims_snapshot(const struct directory *d, struct bytes *out);
void claim_snapshot(const struct claim *c, enum claim_role role, const struct entry_pairs *noted, struct bytes *out);
/* From such entries. False: it is refused. */
bool directory_restore(struct directory *d, const struct entry *e);
bool claim_restore(struct directory *d, const struct entry *e);
