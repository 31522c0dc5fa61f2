/* SPDX-License-Identifier: Apache-2.0 */
/* The accesses of the code to words that processes share, in the order of the code, and what must not come of them. */
#include "tests/model/weak_model.h"

#include <stddef.h>

/* The word of a slot. */
enum { NONE, FREE, HELD, NEXT_HELD, WANTED = 8 };

static uint8_t loaded(const struct model *m, int processor, int reg)
{
	return m->p[processor].loaded[reg];
}

/*
 * The daemon grants, the process reads the terms. The answer to the LOCK orders that as well, but is not relied on here: the
 * word alone is enough.
 */
enum { WORD, TERMS_OF_WORD };
static const char *bad_terms(const struct weak_scope *s, const struct model *m)
{
	return weak_model_ended(s, m, 1) && loaded(m, 1, 1) != 2 ? "P believes the terms of an earlier delegation"
								 : NULL;
}

/* The session page: from epoch 1, which is proven until 2, to epoch 2, until 9. */
enum { SEQUENCE = 1, EPOCH, STATE, UNTIL, CLOCK };
enum { LOST_STATE, SAFE_STATE };
enum { IN_WORD, IN_BEFORE, IN_EPOCH, IN_UNTIL, IN_AFTER, IN_CLOCK };

static bool has_view(const struct model_processor *p)
{
	return p->loaded[IN_BEFORE] == p->loaded[IN_AFTER] && !(p->loaded[IN_BEFORE] & 1);
}

static const char *bad_view(const struct weak_scope *s, const struct model *m)
{
	const struct model_processor *p = &m->p[1];

	if (!weak_model_ended(s, m, 1) || !has_view(p))
		return NULL;
	return p->loaded[IN_UNTIL] != (p->loaded[IN_EPOCH] == 1 ? 2 : 9) ? "P has parts of two views" : NULL;
}

/*
 * The process takes the word, looks at it once more, and then reads the session page and the clock, an ordinary word here.
 * When the proof ends, others have the lock. There has to be an instant at which the word is taken and the proof stands.
 */
static const char *bad_proof(const struct weak_scope *s, const struct model *m)
{
	const struct model_processor *p = &m->p[1];
	bool stands = p->loaded[IN_UNTIL] > p->loaded[IN_CLOCK];

	return weak_model_ended(s, m, 1) && stands && p->others ? "P enters what others had" : NULL;
}

/*
 * A holder writes what the lock protects, and leaves the word. The daemon takes the word back, and says so to Q. Of this
 * message only the receipt is relied on.
 */
enum { PROTECTED = 1, MESSAGE };
static const char *bad_handed_on(const struct weak_scope *s, const struct model *m)
{
	return weak_model_ended(s, m, 2) && loaded(m, 2, 1) != 1
		       ? "Q does not see what the holder before it has written"
		       : NULL;
}

/* A reader reads what the lock protects, and leaves the word. A writer gets the lock next. */
static const char *bad_reader(const struct weak_scope *s, const struct model *m)
{
	return weak_model_ended(s, m, 0) && loaded(m, 0, 1) == 2 ? "a reader sees what the next writer has written"
								 : NULL;
}

/* The daemon is killed somewhere, and session_page_move() follows. Nobody has a grant of epoch 2 yet. */
static const char *bad_moved(const struct weak_scope *s, const struct model *m)
{
	bool proven = m->memory[STATE] == SAFE_STATE;

	return proven && m->memory[EPOCH] == 1 && m->memory[UNTIL] > 2 ? "the page proves a session that was lost"
								       : NULL;
}

/* The daemon is killed somewhere. The next one knows of the delegations that the ledger has. */
enum { RECORDED = 1 };
static const char *bad_recorded(const struct weak_scope *s, const struct model *m)
{
	uint8_t word = m->memory[WORD];

	return !m->memory[RECORDED] && (word == FREE || word == HELD || word == (HELD | WANTED))
		       ? "P has a lock that the next daemon does not know of"
		       : NULL;
}

/* The daemon is killed while it puts a record into a cell, drops the one in another cell, and uses that cell once more. */
enum { WORD_1, CONTENT_1, WORD_2, CONTENT_2 };
static const char *bad_ledger(const struct weak_scope *s, const struct model *m)
{
	const uint8_t *at = m->memory;

	if ((at[WORD_1] && at[CONTENT_1] != at[WORD_1]) || (at[WORD_2] && at[CONTENT_2] != at[WORD_2]))
		return "the content of a record is that of another one";
	return !at[WORD_1] && !at[WORD_2] ? "there is no record" : NULL;
}

/* The daemon is killed at any access to the file `saved`. */
enum { WHO, HAS_COOKIE, IS_BUSY, IS_KEPT, SESSION, IS_PRESENT, REQUEST };
enum { NOT_READ, READ_IT, ANSWERED };
static const char *bad_saved(const struct weak_scope *s, const struct model *m)
{
	const uint8_t *at = m->memory;

	if (at[HAS_COOKIE] && !at[WHO])
		return "a connection has a cookie, and nobody to whom it belongs";
	if (at[IS_KEPT] && !at[IS_BUSY] && at[REQUEST] == READ_IT)
		return "a request is lost with a connection that goes on";
	return at[IS_PRESENT] && !at[SESSION] ? "the present session is unknown" : NULL;
}

const struct weak_scope weak_scopes[SCOPES] = {
	[TERMS] = {
		"a grant and its terms", { [WORD] = NONE, [TERMS_OF_WORD] = 1 },
		{ {
			STORES("D: the terms", RELAXED, TERMS_OF_WORD, 2),
			STORES("D: delegation_grant()", RELEASE, WORD, NEXT_HELD, RULE(GRANT)),
		}, {
			LOADS("P: delegation_read()", ACQUIRE, WORD, 0, NEXT_HELD, RULE(READ)),
			LOADS("P: the terms", RELAXED, TERMS_OF_WORD, 1, ANY),
		} },
		bad_terms,
	},
	[PROOF] = {
		"a take and the proof after it", { [WORD] = FREE, [SEQUENCE] = 2, [EPOCH] = 1, [UNTIL] = 2, [CLOCK] = 1 },
		{ {
			STORES("the proof ends", RELAXED, CLOCK, 2),
			STORES("others have the lock", RELEASE, OTHERS, 1),
		}, {
			LINKS("P: delegation_take() loads", ACQUIRE, WORD, FREE, RULE(PROOF_BEFORE_TAKE)),
			SWAPS("P: delegation_take() stores", RELAXED, WORD, HELD),
			LOADS("P: delegation_holds()", ACQUIRE, WORD, IN_WORD, HELD, .except = WANTED, RULE(PROOF_BEFORE_TAKE)),
			LOADS("P: the sequence", ACQUIRE, SEQUENCE, IN_BEFORE, ANY),
			LOADS("P: the epoch", RELAXED, EPOCH, IN_EPOCH, ANY),
			LOADS("P: the end of the proof", RELAXED, UNTIL, IN_UNTIL, ANY),
			FENCES("P: a fence", FENCE_ACQUIRE, RULE(PROOF_BEFORE_TAKE)),
			LOADS("P: the sequence again", RELAXED, SEQUENCE, IN_AFTER, ANY),
			LOADS("P: the clock", RELAXED, CLOCK, IN_CLOCK, ANY),
		} },
		bad_proof,
	},
	[HANDED_ON] = {
		"a lock that is handed on", { [WORD] = HELD },
		{ {
			STORES("P: writes", RELAXED, PROTECTED, 1),
			LINKS("P: delegation_leave() loads", RELAXED, WORD, HELD),
			SWAPS("P: delegation_leave() stores", RELEASE, WORD, FREE, RULE(LEAVE)),
		}, {
			LINKS("D: delegation_recall() loads", ACQUIRE, WORD, FREE, RULE(RECALL)),
			SWAPS("D: delegation_recall() stores", RELAXED, WORD, WANTED, .sets = true),
			STORES("D: delegation_end()", RELAXED, WORD, NONE),
			STORES("D: grants Q the lock", RELAXED, MESSAGE, 1),
		}, {
			LOADS("Q: has the lock", ACQUIRE, MESSAGE, 0, 1),
			LOADS("Q: reads", RELAXED, PROTECTED, 1, ANY),
		} },
		bad_handed_on,
	},
	[READERS] = {
		"a reader and the next writer", { [WORD] = HELD },
		{ {
			LOADS("P: reads", RELAXED, PROTECTED, 1, ANY),
			LINKS("P: delegation_leave() loads", RELAXED, WORD, HELD),
			SWAPS("P: delegation_leave() stores", RELEASE, WORD, FREE, RULE(LEAVE_OF_READER)),
		}, {
			LINKS("D: delegation_recall() loads", ACQUIRE, WORD, FREE),
			SWAPS("D: delegation_recall() stores", RELAXED, WORD, WANTED, .sets = true),
			STORES("D: delegation_end()", RELAXED, WORD, NONE),
			STORES("D: grants Q the lock", RELAXED, MESSAGE, 1),
		}, {
			LOADS("Q: has the lock", ACQUIRE, MESSAGE, 0, 1),
			STORES("Q: writes", RELAXED, PROTECTED, 2),
		} },
		bad_reader,
	},
	[PAGE] = {
		"the session page", { [SEQUENCE] = 2, [EPOCH] = 1, [UNTIL] = 2 },
		{ {
			STORES("D: the odd sequence", RELAXED, SEQUENCE, 3),
			FENCES("D: a fence", FENCE_RELEASE, RULE(PAGE_ODD)),
			STORES("D: the epoch", RELAXED, EPOCH, 2),
			STORES("D: the end of the proof", RELAXED, UNTIL, 9),
			STORES("D: the even sequence", RELEASE, SEQUENCE, 4, RULE(PAGE_EVEN)),
		}, {
			LOADS("P: the sequence", ACQUIRE, SEQUENCE, IN_BEFORE, ANY, RULE(PAGE_BEGIN)),
			LOADS("P: the epoch", RELAXED, EPOCH, IN_EPOCH, ANY),
			LOADS("P: the end of the proof", RELAXED, UNTIL, IN_UNTIL, ANY),
			FENCES("P: a fence", FENCE_ACQUIRE, RULE(PAGE_END)),
			LOADS("P: the sequence again", RELAXED, SEQUENCE, IN_AFTER, ANY),
		} },
		bad_view,
	},
	[MOVED] = {
		"a session page that was half written", { [SEQUENCE] = 2, [EPOCH] = 1, [STATE] = SAFE_STATE, [UNTIL] = 2 },
		{ {
			STORES("D: the odd sequence", RELAXED, SEQUENCE, 3, RULE(LOSS_SKIPPED), .left_out = true),
			FENCES("D: a fence", FENCE_RELEASE, RULE(LOSS_SKIPPED)),
			STORES("D: the epoch after a loss", RELAXED, EPOCH, 2, RULE(LOSS_SKIPPED), .left_out = true),
			STORES("D: the state lost", RELAXED, STATE, LOST_STATE, RULE(LOSS_SKIPPED), .left_out = true),
			STORES("D: no proof", RELAXED, UNTIL, 0, RULE(LOSS_SKIPPED), .left_out = true),
			STORES("D: the even sequence", RELEASE, SEQUENCE, 4, RULE(LOSS_SKIPPED), .left_out = true),
			STORES("D: the next odd sequence", RELAXED, SEQUENCE, 5),
			FENCES("D: the next fence", FENCE_RELEASE),
			STORES("D: the epoch of the next session", RELAXED, EPOCH, 2),
			STORES("D: the state safe", RELAXED, STATE, SAFE_STATE),
			STORES("D: the end of the next proof", RELAXED, UNTIL, 9),
			STORES("D: the next even sequence", RELEASE, SEQUENCE, 6),
		} },
		bad_moved,
	},
	[GRANTED] = {
		"a kill at a grant", { [WORD] = NONE },
		{ {
			STORES("D: the ledger has the grant", RELAXED, RECORDED, 1),
			STORES("D: delegation_grant()", RELEASE, WORD, HELD, RULE(GRANT_UNRECORDED)),
		} },
		bad_recorded,
	},
	[RECALLED] = {
		"a kill at a recall", { [WORD] = FREE, [RECORDED] = 1 },
		{ {
			LINKS("D: delegation_recall() loads", RELAXED, WORD, FREE),
			SWAPS("D: delegation_recall() stores", RELAXED, WORD, WANTED, .sets = true),
			STORES("D: delegation_end()", RELAXED, WORD, NONE),
			STORES("D: the ledger drops the grant", RELEASE, RECORDED, 0, RULE(DROP_BEFORE_RECALL)),
		}, {
			LINKS("P: delegation_take() loads", ACQUIRE, WORD, FREE),
			SWAPS("P: delegation_take() stores", RELAXED, WORD, HELD),
		} },
		bad_recorded,
	},
	[LEDGER] = {
		"a kill at the ledger", { [WORD_1] = 1, [CONTENT_1] = 1 },
		{ {
			STORES("D: the content of a record", RELAXED, CONTENT_2, 2),
			STORES("D: ledger_publish()", RELEASE, WORD_2, 2, RULE(PUBLISH)),
			STORES("D: ledger_drop() of the one before", RELEASE, WORD_1, 0, RULE(DROP)),
			FENCES("D: a fence for the compiler", FENCE_SIGNAL, RULE(REUSE)),
			STORES("D: the content of a third one", RELAXED, CONTENT_1, 3),
			STORES("D: ledger_publish() of that", RELEASE, WORD_1, 3),
		} },
		bad_ledger,
	},
	[SAVED] = {
		"a kill at the file of connections", { 0 },
		{ {
			STORES("D: whose connection it is", RELAXED, WHO, 1),
			STORES("D: its cookie", RELEASE, HAS_COOKIE, 1, RULE(COOKIE)),
			STORES("D: a session", RELAXED, SESSION, 1),
			STORES("D: the present session", RELEASE, IS_PRESENT, 1, RULE(PRESENT)),
			STORES("D: reads a request", RELAXED, REQUEST, READ_IT),
			STORES("D: saved_keep(): busy", RELAXED, IS_BUSY, 1),
			STORES("D: saved_keep(): kept", RELEASE, IS_KEPT, 1, RULE(KEPT)),
			STORES("D: answers the request", RELAXED, REQUEST, ANSWERED),
			STORES("D: conn_clear_busy()", RELEASE, IS_BUSY, 0, RULE(NOT_BUSY)),
			STORES("D: conn_set_busy()", RELAXED, IS_BUSY, 1),
			FENCES("D: a fence for the compiler", FENCE_SIGNAL, RULE(BUSY)),
			STORES("D: reads the next request", RELAXED, REQUEST, READ_IT),
		} },
		bad_saved,
	},
};
