/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A model of the delegation: one process P with one slot, its daemon D, a local client Q and another host R that want
 * the same locks. Each step on the word is the real one (protocol/delegation.h); everything else is a state of bytes, of
 * which the search (search.h) tries every order of steps: D may die at each step and be followed by another, with or
 * without P's connection and page, be handed over, lose its session more than once, be ordered to take the lock by force;
 * P may die.
 *
 * A rule is broken by name, so that a test can show that the search notices, and so what the rule is for.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "protocol/delegation.h"
#include "tests/model/rules.h"

/* X(name, the scope that shows what it is for, what is done instead) */
#define MODEL_RULES(X) \
	X(CHECK_BEFORE, LOSS, "P looks at the proof before it takes the word, not after") \
	X(NO_EPOCH, LOSS, "P does not compare the epoch") \
	X(WORD_NOT_READ_AGAIN, LOSS, "P does not read the word after it took it") \
	X(TAKE_IGNORES_WANTED, LOSS, "P takes a word that is wanted") \
	X(RETURN_LOST, LOSS, "P says nothing when it cannot leave the word") \
	X(UNLOCK_LOOKS_NOT, LOSS, "P leaves without a look at the session page") \
	X(UNLOCK_SEES_NO_TIME, LOSS, "P leaves without a look at the clock") \
	X(SLOT_USED_TWICE, NAMES, "P asks with a slot that is in use, and D delegates in it") \
	X(TWO_STEPS, LOSS, "D looks at the word, then stores") \
	X(HELD_TAKEN_AS_RETURNED, LEASE, "D takes a held word for returned when P asks again") \
	X(NO_LOST_BIT, LOSS, "D takes a lock by force and leaves the word as it is") \
	X(DELEGATES_UNARMED, LOSS, "D delegates, and does not look for other hosts") \
	X(RECALL_NOT_FOR_WRITERS, READERS, "D does not take a reader's word back for a writer") \
	X(LEDGER_FIRST, KILL, "D writes down that the lock is free before it takes the word back") \
	X(FREE_IS_NO_HOLDER, KILL, "the next D ignores a delegation whose page it has not") \
	X(SNAPSHOT_BELIEVED, HAND_OVER, "the next D believes what the word was at the hand-over") \
	X(HANDED_OVER_FORGOTTEN, HAND_OVER, "the next D does not know of the delegation") \
	X(OLD_EPOCH_INHERITED, REVIVAL, "the next D recalls what was delegated in a session that is lost, as if it were not") \
	X(LEASE_KEEPS_DELEGATION, LEASE, "a lease is given to what stays delegated") \
	X(EPOCH_BY_PARITY, LOSSES, "D leaves the words as they are at a loss, and P compares one bit of the epoch") \
	X(LOSS_KEEPS_WORD, LOSS, "D leaves the words as they are at a loss, and P does not compare the epoch")

enum model_rule { MODEL_RULES(MODEL_RULE_NUMBER) MODEL_RULE_COUNT };

/* What may happen in this search; every state of all of it at once would be too many. */
struct model_scope {
	enum model_rule broken; /* MODEL_RULE_COUNT: none */
	bool q_shared, p_shared, p_exclusive, two_names, force, lease, hand_over, dies, page_inherited, p_dies;
	uint8_t losses, generations;
};

enum model_name { NOWHERE, A, B }; /* R wants A only */
enum model_pc {
	IDLE, TAKEN, SEEN, TIMED, UNDOES, WAITS_UNDO, ASKS, WAITS_LOCK, INSIDE, LEAVING, LEAVING_SEEN, LEAVING_TIMED,
	WAITS_UNLOCK, WAITS_AGAIN, DEAD,
};
enum model_alive { D_DEAD, D_WELL, D_BETWEEN };
enum model_slot { SLOT_NONE, SLOT_DELEGATED, SLOT_RECALLED, SLOT_LOST };
enum model_pending { NOTHING, TO_STORE, TO_WRITE_DOWN, TO_TAKE, TO_LOSE_WORD, TO_LOSE_PAGE };
enum model_message { NO_MESSAGE, LOCK, UNLOCK, LAZY, LOCK_AGAIN };
enum model_reply { NO_REPLY, GRANTED, ENOUGH, IS_LOST, NOT_HELD };
enum model_q { Q_IDLE, Q_WAITS, Q_HOLDS };

struct model_said {
	uint8_t message, name, shared, with_slot;
};

struct model {
	/* the page */
	uint8_t state, marks, generation, terms_epoch, terms_page;
	/* D: itself and its session */
	uint8_t alive, incarnation, epoch, expired, pending, handed_over, snapshot, forced;
	/* D: the slot, and P's grants by message (depths), for each name */
	uint8_t slot, slot_name, slot_shared, last, grant[3], grant_shared[3], lost[3], lease, ghost[3], kept;
	/* Q, R, and the host's claim on A */
	uint8_t q, q_name, claim, armed, r_waits, r_known, r_holds;
	/* P */
	uint8_t pc, name, shared, depth, delegated, bound, bound_shared, mine, mine_epoch, mine_page, seen_epoch, seen_moved;
	uint8_t granted_epoch, connected, reply;
	struct model_said said[2];
	/* the session page that P has mapped: the one of D, or one that is not written any longer */
	uint8_t page_is_ds, page, page_epoch, page_moved, page_over;
	/* What is true: P's grant was taken by force; was void when P looked before its unlock; others had the lock since
	 * it was delegated */
	uint8_t void_now, void_seen, others_since;
};

/* A step that was made: `fair` if it is made some day without anybody's will. */
struct model_walk {
	const struct model_scope *scope;
	void (*to)(struct model_walk *walk, const struct model *next, const char *step, bool fair, const char *bad);
};

struct model model_start(void);
void model_process_steps(struct model_walk *walk, const struct model *m);
void model_daemon_steps(struct model_walk *walk, const struct model *m);
void model_other_steps(struct model_walk *walk, const struct model *m);
/* A sentence, or NULL: two holders at once. */
const char *model_bad(const struct model_scope *scope, const struct model *m);

/* ---- for the parts of the model ---- */

struct delegation_slot model_slot(const struct model *m);
void model_store(struct model *m, const struct delegation_slot *slot);
/* What the page that P has mapped promised in that epoch has ended. */
bool model_over(const struct model *m, uint8_t epoch);
uint8_t model_page_epoch(const struct model *m);
/* P's grant is void, whoever knows. */
bool model_void(const struct model *m);
bool model_conflicts(const struct model_scope *s, const struct model *m, enum model_name name, bool p_shared);
void model_others_had(struct model *m, enum model_name name);
