/* SPDX-License-Identifier: Apache-2.0 */
/* What a ledger (ledger_record.h) says of the whole process: it is in the first chunk. */
#pragma once

#include <stdint.h>

#define LEDGER_MAGIC UINT64_C(0x6c65646765720002) /* with the version */

/* A number that was ever used is not above its ceiling. TOKENS: standalone, the number that tokens are based on. */
enum ceiling { CEILING_CLIENT, CEILING_CLAIM, CEILING_NONCE, CEILING_LETTER, CEILING_QUERY, CEILING_SWEEP, CEILING_TOKENS,
	       CEILINGS };
struct ledger_head {
	uint64_t magic;   /* 0: it is not written yet, and nothing can be relied on */
	uint64_t place;   /* snapshot_place() (snapshot.h): with another configuration locks are elsewhere */
	uint64_t missing; /* changes: records that no room was found for. Unless it is 0, nobody can go on from here */
	uint64_t session; /* changes: that claims and directories belong to; 0: none. It ends before they go */
	uint64_t epoch;   /* changes: of the session */
	uint64_t jeopardy; /* changes: it is in jeopardy, and holders were told so */
	uint64_t ceilings[CEILINGS]; /* change */
	uint64_t zxid; /* changes: the highest transaction of the ensemble that was seen */
	uint64_t draining; /* changes: operators want nothing to be granted */
	uint64_t lasting; /* changes: the number of lasting directories (core/claim/lasting.h) */
	uint64_t floor; /* changes: no transaction that is not above it makes a token (core/session/past.h) */
	uint64_t own; /* changes: the latest transaction that wrote the host's own znode */
};
