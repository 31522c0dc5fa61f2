/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ledger: memory that outlives the process, from which another one can go on after a kill. Everything that a holder may
 * rely on stands there before any effect of its event is carried out. At whatever instruction the process is killed, a
 * record reads as before its change or as after it. The layout stands below.
 *
 *   a cell    | means                         | left by
 *   free      | its type is NONE              | ledger_take() -> being written
 *   taken     | the same; its owner fills it  | ledger_publish() -> record
 *   record    | it is read                    | ledger_store() -> record, with another value in one field;
 *             |                               |   ledger_drop() -> free
 *
 * To change more than one field, its owner publishes another record with the same number, and drops the first.
 *
 * Memory that no record is in is given back, so that the ledger becomes smaller:
 *
 *   chunk    | means                           | left by
 *   unused   | it is in a part of the ledger   | a record finds no free cell -> divided; ledger_shrink() -> given back
 *   divided  | it is in the list of its size   | ledger_shrink(), if all its cells are free -> given back
 *   given    | the caller of ledger_shrink()   | ledger_add() -> unused
 *   back     |   has it                        |
 *
 * A reader finds no record in a chunk whose word is 0: the word becomes 0 before the first of its cells is removed.
 *
 * A record that finds no room is in private memory; the head counts these. The caller of ledger_new() and ledger_add()
 * gives zeroed memory, aligned to 64 bytes, and owns it. A reader finds added memory right behind it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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
 *   of another type      | a record. Of two with one type and number only the higher generation counts: it
 *                        |   replaced the other, which was about to be taken out
 *
 * The content of a record is there before its word. A field that is marked "changes" is true at any instant. The text of a
 * record is fields of an entry (entry.h), without its word and without the values that are fields of the record itself;
 * entry_pairs() puts it into an entry.
 */

/* ---- the state of the whole process: in the first chunk ---- */

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
	uint64_t jeopardy; /* changes: it is in jeopardy, and holders were notified of that */
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

/* Not all that it has is written down; a push may not be carried out yet; it has not read the session's state (RESP2). */
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
	uint64_t kept;   /* changes: the value that the kind keeps there (lock/kind_rule.h); 0: none */
	uint32_t kind, length;
	char name[];
};

/* A claim that something rests on. WITHHELD: it is LEAVING, and another one has followed it (claim.h). */
enum ledger_role { LEDGER_ROLE_CLAIM, LEDGER_ROLE_SLOTS, LEDGER_ROLE_WITHHELD };
struct ledger_claim {
	struct ledger_record head; /* its number is the claim's */
	uint64_t lock;
	uint64_t role; /* changes */
	int64_t czxid;  /* the base of its tokens. Its latest token is the lock's latest, if that has the base */
	uint32_t pairs, length;
	char text[]; /* of a "claim" */
};

/* A token and the mode that it was given for. */
#define LEDGER_TOKEN(token, mode) ((uint64_t)(token) << 1 | (uint64_t)(mode))
#define LEDGER_NO_LEASE INT64_MAX
enum { LEDGER_LOST = 1, LEDGER_COUNTED = 2, LEDGER_LOSS = 4 /* enum loss, multiplied by this */ };
enum { LEDGER_SLOT = 256 /* the number of its slot, multiplied by this; the other flags are below it */ };
struct ledger_grant {
	struct ledger_record head;   /* its number is the ledger's own: the later grant has the higher one */
	uint64_t lock, client;       /* their numbers */
	uint64_t token, flags;       /* change; with the present mode */
	int64_t depth, lease_ns, granted_ns; /* change, but for the last; the end of the lease */
	uint64_t length;
	char data[]; /* the text that its holder gave */
};

/* The leader in the latest notification of an observer; 0: none yet. Its token is 0 if there was no leader. */
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

/* Unused chunks in a row. */
struct ledger_part {
	char *next, *end;
};

struct ledger_cells {
	void **list; /* the free cells: the last is taken first. Each has its index in this list as its number */
	size_t count, cap;
	char **chunks; /* the chunks that are divided into these cells */
	size_t chunk_count, look; /* the chunks from `look` on were looked at */
};

struct ledger {
	struct ledger_head *head;
	uint64_t generation, last_number; /* the number of the last record that had none of its own */
	struct ledger_cells cells[LEDGER_CLASSES];
	struct ledger_part *parts; /* unused chunks: the last part is used first */
	size_t part_count, room; /* bytes of those */
	struct ledger_private *private; /* records without room */
	void *arg;                      /* of ledger_stored */
};

/* The bytes are at least one chunk, and a multiple of it (LEDGER_CHUNK_BYTES). */
struct ledger *ledger_new(void *memory, size_t bytes);
void ledger_add(struct ledger *l, void *memory, size_t bytes);
/* These take NULL. The memory stays as it is. */
void ledger_free(struct ledger *l);
void ledger_session(struct ledger *l, int64_t session);
void ledger_state(struct ledger *l, uint64_t epoch, bool jeopardy);
void ledger_draining(struct ledger *l, bool draining);
void ledger_zxids(struct ledger *l, int64_t floor, int64_t seen, int64_t own);
void ledger_lasting(struct ledger *l, uint64_t count);
size_t ledger_records(const struct ledger *l);
size_t ledger_room(const struct ledger *l); /* bytes of unused chunks */
bool ledger_full(const struct ledger *l);   /* there are records without room */
void *ledger_move(struct ledger *l, void *record); /* such a one to where there is room now. Returns its place */

/* True: more than half of the memory is unused, and at least `bytes`. */
bool ledger_may_shrink(const struct ledger *l, size_t bytes);
/* Starts looking at all chunks. To be called between two events. */
void ledger_shrink_begin(struct ledger *l);
/*
 * Gives back some unused chunks, of which `keep` bytes stay, or looks at one divided chunk. False: nothing is left to look
 * at. Returns in *ret the memory that is given back, which is the caller's from now on, as long as the memory of the ledger
 * exists. *ret_bytes is a multiple of a chunk; 0: nothing was given back this time.
 */
bool ledger_shrink(struct ledger *l, size_t keep, void **ret, size_t *ret_bytes);

/* Tests: called after each store that a reader can notice. The daemon never sets it, so its linker leaves the calls out. */
extern void (*ledger_stored)(void *arg);
/* The seldom parts of the functions below. */
void *ledger_take_any(struct ledger *l, size_t bytes);
void ledger_drop_private(struct ledger *l, struct ledger_record *r);
void ledger_raise(struct ledger *l, enum ceiling which, uint64_t number);

/* Each store that a reader can notice; later stores stay behind it. */
static inline void ledger_store(struct ledger *l, uint64_t *at, uint64_t value)
{
	__atomic_store_n(at, value, __ATOMIC_RELEASE);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	if (ledger_stored)
		ledger_stored(l->arg);
}

/* A free cell of that size or more. The caller fills it, but for the word. Never NULL. */
static inline void *ledger_take(struct ledger *l, size_t bytes)
{
	if (bytes <= LEDGER_CELL_MIN && l->cells[0].count)
		return l->cells[0].list[--l->cells[0].count];
	return ledger_take_any(l, bytes);
}

static inline void ledger_publish(struct ledger *l, struct ledger_record *r, enum ledger_type type)
{
	ledger_store(l, &r->word, ++l->generation << 8 | (r->word & 0xf0) | type);
}

static inline void ledger_drop(struct ledger *l, struct ledger_record *r)
{
	struct ledger_cells *cells = &l->cells[LEDGER_CLASS(r->word)];

	if (r->word & LEDGER_PRIVATE) {
		ledger_drop_private(l, r);
		return;
	}
	ledger_store(l, &r->word, r->word & 0xf0);
	r->number = cells->count++;
	if (cells->list[r->number] != r) /* most often it is where it was taken from */
		cells->list[r->number] = r;
}

/* Before a number is used. Takes NULL. */
static inline void ledger_number(struct ledger *l, enum ceiling which, uint64_t number)
{
	if (l && number > l->head->ceilings[which])
		ledger_raise(l, which, number);
}
