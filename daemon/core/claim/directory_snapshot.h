/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A directory and its claims in a snapshot (snapshot.h), after the end of a connection: a create that was not answered is
 * UNSURE, and what lists and watches have shown is forgotten.
 */
#pragma once

#include <stdbool.h>

struct bytes;
struct directory;
struct entry;

/* It and its claims: the entry `word`, and a CLAIM for each. */
void directory_snapshot(const struct directory *d, const char *word, struct bytes *out);
/* One entry. False: it is refused. */
bool directory_restore(struct directory *d, const struct entry *e);
bool claim_restore(struct directory *d, const struct entry *e);
