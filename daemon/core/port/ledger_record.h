/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The layout of a ledger (ledger.h), which another process reads after a kill: memory of this machine, in chunks.
 * The first one is the head; each other one is cells of one size.
 *
 *   word of a chunk      | means
 *   0                    | no record is in it, whatever else is
 *   LEDGER_CHUNK + class | from LEDGER_CELLS_AT on it consists of cells of LEDGER_CELL_MIN << class bytes
 *
 *   word of a cell       | means
 *   of type NONE         | nothing, whatever else is in it
 *   of another type      | a record. Of those of one type and number only that with the highest generation counts: it
 *                        |   replaced the other, which was about to be taken out
 *
 * What a record says is there before its word is. A field that is marked "changes" is true at any instant. The text of a
 * record is fields of an entry (entry.h), without its word and without what the record has in fields of its own;
 * entry_pairs() puts it into an entry.
 */
#pragma once

#include <stdint.h>

/* ---- what it says of the whole process: in the first chunk ---- */

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

/* ---- chunks and records ---- */

#define LEDGER_CHUNK UINT64_C(0x6c65646765724300)

enum { LEDGER_CHUNK_BYTES = 16384, LEDGER_CELLS_AT = 64, LEDGER_CELL_MIN = 128, LEDGER_CLASSES = 6 };
enum ledger_type { LEDGER_NONE, LEDGER_CLIENT, LEDGER_LOCK, LEDGER_CLAIM, LEDGER_GRANT, LEDGER_OBSERVER, LEDGER_LETTER,
		   LEDGER_TYPES };

struct ledger_record {
	uint64_t word;
	uint64_t number; /* no other of its type has it */
};

#define LEDGER_TYPE(word) ((enum ledger_type)((word) & 15))
#define LEDGER_CLASS(word) ((unsigned int)((word) >> 4 & 7))
#define LEDGER_PRIVATE UINT64_C(128) /* in a word: it is not in the shared memory, which has no room for it */
#define LEDGER_GENERATION(word) ((word) >> 8)

/* What is not written down concerns it; a push may not be carried out yet; it has not read the session's state (RESP2). */
enum { LEDGER_BUSY = 1, LEDGER_TOLD = 2, LEDGER_UNREAD = 4 };
struct ledger_client {
	struct ledger_record head; /* its number is the client's id */
	uint64_t flags;            /* changes. Any other than UNREAD: nobody can continue its connection */
	uint32_t conn, uid, pairs, length;
	char text[]; /* of a "client" */
};

/* A znode of ours may exist: in the directory of the lock; of the permits. */
enum { LEDGER_NOTED_OWN = 1, LEDGER_NOTED_SLOTS = 2 };
struct ledger_lock {
	struct ledger_record head; /* its number is the ledger's own */
	uint64_t latest; /* changes: LEDGER_TOKEN of the latest one that was given in this session; 0: none. Semaphores: 0 */
	uint64_t noted;  /* changes */
	uint64_t kept;   /* changes: what the kind keeps there (lock/kind_rule.h); 0: nothing */
	uint32_t kind, length;
	char name[];
};

/* A claim that something rests on. WITHHELD: it is LEAVING, and another one has followed it (rollover.h). */
enum ledger_place { LEDGER_PLACE_CLAIM, LEDGER_PLACE_SLOTS, LEDGER_PLACE_WITHHELD };
struct ledger_claim {
	struct ledger_record head; /* its number is the claim's */
	uint64_t lock;
	uint64_t place; /* changes */
	int64_t czxid;  /* the base of its tokens. What it has given is the lock's latest, if that has the base */
	uint32_t pairs, length;
	char text[]; /* of a "claim" */
};

/* A token and the mode that it was given for. */
#define LEDGER_TOKEN(token, mode) ((uint64_t)(token) << 1 | (uint64_t)(mode))
#define LEDGER_NO_LEASE INT64_MAX
enum { LEDGER_LOST = 1, LEDGER_COUNTED = 2, LEDGER_LOSS = 4 /* enum loss, multiplied by this */ };
enum { LEDGER_SLOT = 256 /* the number of its slot, multiplied by this; what is below is the rest */ };
struct ledger_grant {
	struct ledger_record head;   /* its number is the ledger's own: the later grant has the higher one */
	uint64_t lock, client;       /* their numbers */
	uint64_t token, flags;       /* change; with the present mode */
	int64_t depth, lease_ns, granted_ns; /* change, but for the last; the end of the lease */
	uint64_t length;
	char data[]; /* the text that its holder gave */
};

/* The leader that an observer was told last; 0: none yet. Its token is 0 if there was no leader. */
#define LEDGER_LEADER(token) ((uint64_t)(token) << 1 | 1)
struct ledger_observer {
	struct ledger_record head; /* its number is the ledger's own: the later observer has the higher one */
	uint64_t lock, client;     /* their numbers; perhaps of a client that has no record, since it held nothing */
	uint64_t told;             /* changes: LEDGER_LEADER */
};

struct ledger_letter {
	struct ledger_record head; /* its number is the letter's */
	uint32_t pairs, length;
	char text[]; /* of a "letter", which may stand */
};
