/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A ledger as another process left it (ledger.h), to be read. The memory may be anybody's: every size and number in
 * it is checked before it is used, and nothing in a record lies outside of its cell. Whether the records fit each other is
 * not checked here: salvage.h does that.
 *
 * A process that is killed leaves two records of one number at most, and the older one is left out. It never leaves more
 * of them, nor a size that does not fit: then all is refused.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/port/ledger.h"
#include "protocol/bytes.h"

struct ledger_list {
	const struct ledger_record **list;
	size_t count;
};

struct ledger_view {
	const struct ledger_head *head;
	struct ledger_list of[LEDGER_TYPES]; /* by their numbers; the records are in the memory */
};

/*
 * The memory is aligned to 8 bytes, and stays as it is until ledger_view_free(). NULL, and a sentence in *why, if it is no
 * ledger, if it is one of another version, or if it contradicts itself.
 */
struct ledger_view *ledger_view_new(const void *memory, size_t bytes, struct bytes *why);
void ledger_view_free(struct ledger_view *v); /* takes NULL */
/* Where the record of that number is in its list. False: there is none. */
bool ledger_view_find(const struct ledger_view *v, enum ledger_type type, uint64_t number, size_t *ret);

/* ledger_view_client(), ledger_view_lock(), ...: a record of that type. */
#define LEDGER_VIEW(noun) \
	static inline const struct ledger_##noun *ledger_view_##noun(const struct ledger_record *r) \
	{ \
		return (const struct ledger_##noun *)(const void *)r; \
	}

LEDGER_VIEW(client)
LEDGER_VIEW(lock)
LEDGER_VIEW(claim)
LEDGER_VIEW(grant)
LEDGER_VIEW(observer)
LEDGER_VIEW(letter)
#undef LEDGER_VIEW

/* The token of LEDGER_TOKEN or LEDGER_LEADER. */
static inline int64_t ledger_token(uint64_t word)
{
	return (int64_t)(word >> 1);
}

/* The number that a grant's token is based on: its claim's. */
static inline int64_t ledger_base(const struct ledger_grant *g)
{
	return ledger_token(g->token) >> 10;
}
