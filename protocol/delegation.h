/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The delegation page: memory that one connection shares with the daemon, in which a lock that the connection took last
 * stays with its process after the unlock. So the process takes it again by one atomic instruction, and the daemon takes
 * a free one back by one, without asking.
 *
 * The page is a head and slots of 64 bytes, in the byte order of the host. A slot is one delegation of one lock; its
 * terms are written by the daemon before its word, and stay as they are until the word is NONE again. The word, of 64
 * bits, has a state in bits 0 and 1, the marks WANTED (bit 2) and LOST (bit 3), and a generation in bits 16 to 63, which
 * is larger than every earlier one of this page. All zero is NONE: a page without content delegates nothing.
 *
 *     state     who          step                             to
 *     NONE      daemon       delegation_grant()               FREE or HELD
 *     FREE      process      delegation_take()                HELD
 *     HELD      process      delegation_leave()               FREE
 *     FREE      daemon       delegation_recall()              NONE
 *     FREE      daemon       delegation_lose()                NONE
 *     HELD      daemon       delegation_recall()              HELD, WANTED: the process cannot leave, and says UNLOCK
 *     HELD      daemon       delegation_lose()                HELD, LOST: the same
 *     any       daemon       delegation_end()                 NONE: UNLOCK came, or the grant ended otherwise
 *
 * A process may enter only if, AFTER delegation_take(), the word still holds (delegation_holds()), and then the session
 * page and the clock, read in this order, say that the session of the terms is proven for longer than they want
 * (delegation_stands()). Otherwise it leaves again, or, where that fails, says UNLOCK before any other request about that
 * lock. Before it leaves in the end, it asks for a proof of any length, and says UNLOCK if there is none.
 *
 * The page belongs to the client, which may write anything at any time. The daemon reads each word once for each step,
 * believes nothing else in the page than free or held, and finds every other state FREE.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "session_page.h"

enum { DELEGATION_PAGE_BYTES = 4096, DELEGATION_SLOT_BYTES = 64, DELEGATION_SLOTS = 63 };
enum { DELEGATION_MAGIC = 0x4c42444c, DELEGATION_VERSION = 1 };
enum delegation_state { DELEGATION_NONE, DELEGATION_FREE, DELEGATION_HELD };

struct delegation_terms {
	uint64_t generation;  /* from 1 to 2^48 - 1 */
	int64_t token;        /* of every grant within this delegation */
	uint64_t epoch;       /* the session page's */
	int64_t grant_min_ns; /* the session has to be proven for longer than this at each take */
	uint8_t page_id[SESSION_PAGE_ID_BYTES]; /* of the session page: a killed daemon's says nothing of the next one's */
};

struct delegation_slot {
	uint64_t word;
	int64_t token;
	uint64_t epoch;
	int64_t grant_min_ns;
	uint8_t page_id[SESSION_PAGE_ID_BYTES];
	int64_t held_since_ns; /* CLOCK_BOOTTIME, by the process after each take */
	uint64_t uses;         /* one more with each take, by the process: the daemon sees who is idle */
};

/* Slots are numbered from 1. */
struct delegation_page {
	uint32_t magic, version;
	uint8_t reserved[DELEGATION_SLOT_BYTES - 8];
	struct delegation_slot slots[DELEGATION_SLOTS];
};

/* The daemon's view of a slot; the process may have written anything into the last two fields. */
struct delegation_view {
	enum delegation_state state;
	int64_t held_since_ns;
	uint64_t uses;
};

/* ---- the daemon's side ---- */
void delegation_init(struct delegation_page *page);
/* `state` is FREE or HELD. The slot has to be NONE as far as the daemon knows, whatever stands there. */
void delegation_grant(struct delegation_slot *slot, const struct delegation_terms *terms, enum delegation_state state);
/* FREE: the daemon has the lock back. HELD: it is an ordinary grant from now on, until UNLOCK or the connection's end. */
enum delegation_state delegation_recall(struct delegation_slot *slot);
/* The grant is void although the session is not. FREE: nobody noticed. HELD: a holder has lost it. */
enum delegation_state delegation_lose(struct delegation_slot *slot);
void delegation_end(struct delegation_slot *slot);
/* The state is FREE or HELD for whatever stands there. */
struct delegation_view delegation_look(const struct delegation_slot *slot);

/* ---- the process's side ---- */
bool delegation_is_page(const struct delegation_page *page);
/* After the answer to a LOCK: true if it is held as delegated, with a generation larger than `after`. */
bool delegation_read(const struct delegation_slot *slot, uint64_t after, struct delegation_terms *ret);
bool delegation_none(const struct delegation_slot *slot); /* it may be used for another lock */
/* FREE -> HELD, if nobody wants it and it is that generation. */
bool delegation_take(struct delegation_slot *slot, uint64_t generation);
/* Still held, and not lost; it may be wanted. */
bool delegation_holds(const struct delegation_slot *slot, uint64_t generation);
/*
 * Whether the session of the terms was proven for longer than `min_ns` at `now_ns`: `view` was read from the session page
 * after the take, and the clock after that.
 */
bool delegation_stands(const struct delegation_terms *terms, const struct session_page *page,
		       const struct session_view *view, int64_t now_ns, int64_t min_ns);
/* HELD -> FREE, if nobody wants it and it is not lost. */
bool delegation_leave(struct delegation_slot *slot, uint64_t generation);
