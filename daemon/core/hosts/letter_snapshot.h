/* SPDX-License-Identifier: Apache-2.0 */
/* Letters that stand, or are to be withdrawn, in a snapshot (snapshot.h). No revocation waits for any: it has ended. */
#pragma once

#include <stdbool.h>

struct bytes;
struct entry;
struct entry_pairs;
struct hosts;
struct letter;

/* An "audit" for each client that waits for one, a "query" for each question (query.h), then a "letter" for each. */
void letters_snapshot(const struct hosts *h, struct bytes *out);
void letter_snapshot(const struct letter *l, const struct entry_pairs *noted, struct bytes *out);
/* One entry. False: it is refused. */
bool letter_restore(struct hosts *h, const struct entry *e);
bool query_restore(struct hosts *h, const struct entry *e);
bool audit_restore(struct hosts *h, const struct entry *e);
