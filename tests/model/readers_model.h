/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A model of one lock that is delegated to several processes, each by a word in a page of its own. The processes read, or
 * change the mode. D is the daemon, W is a writer on the same host without a page, and R is a writer on another host. Each
 * step on a word is the real one (protocol/delegation.h). D takes words back one after the other: between any two words a
 * process may take a step, or a process or D may die. delegation_model.h has the steps on one word in more detail.
 *
 * The processes are alike, so two states that differ only in their order count as one.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "protocol/delegation.h"
#include "tests/model/rules.h"

/* X(name, the scope in which breaking the rule shows, what the broken model does) */
#define MODEL_RULES(X) \
	X(ONE_OF_THEM, PAIR, "D takes one word back for a writer, and leaves the others") \
	X(ONE_HAS_LEFT, PAIR, "D grants a writer when the first reader has left") \
	X(INSIDE_COUNTS_AS_GONE, PAIR, "D treats a word that is held as returned") \
	X(LOOKS_THEN_STORES, PAIR, "D reads a word, and stores it in a second step") \
	X(TAKE_IGNORES_WANTED, PAIR, "a process takes a word that is wanted") \
	X(RETURN_LOST, PAIR, "a process says nothing when it cannot leave its word") \
	X(DEATH_UNSEEN, DEATHS, "D does not end what a dead process had") \
	X(NO_EPOCH, LOSS, "a process does not compare the epoch") \
	X(UNLOCK_SEES_NO_TIME, LOSS, "a process leaves without a look at the clock") \
	X(DELEGATES_UNARMED, LOSS, "D delegates, and does not look for other hosts") \
	X(LEDGER_FIRST, KEPT, "D writes down that all words are back before it takes the first") \
	X(NEXT_TAKES_NONE, KEPT, "the next D does not take the words back") \
	X(FREE_IS_NO_HOLDER, KILL, "the next D ignores delegations whose pages are lost") \
	X(ONLY_ITS_OWN, MODES, "D takes back only the word of the process that asks") \
	X(DOWNGRADE_BY_WORD, MODES, "a downgraded grant stays delegated") \
	X(UPGRADE_IN_PLACE, MODES, "D makes a reader's grant exclusive, whoever else reads") \
	X(MODE_NOT_COMPARED, MODES, "a process takes its word in a mode in which it was not delegated")

enum model_rule { MODEL_RULES(MODEL_RULE_NUMBER) MODEL_RULE_COUNT };

/* What may happen in this search; every state of all of it at once would be too many. */
struct model_scope {
	enum model_rule broken; /* MODEL_RULE_COUNT: none */
	uint8_t processes, generations;
	bool modes;  /* processes also write, downgrade, and upgrade */
	bool writer; /* W takes part */
	bool deaths, kept, kill; /* processes die; D dies: the next D has connections and pages (kept), or not */
	bool loss;   /* the session is lost; R takes part */
};

enum { PROCESSES = 3 };
enum model_pc {
	ABSENT, IDLE, TAKEN, SEEN, UNDOES, WAITS_UNDO, ASKS, WAITS_LOCK, INSIDE, LEAVING, WAITS_UNLOCK, WAITS_CHANGE, DEAD,
};
enum model_grant { NO_GRANT, ORDINARY, DELEGATED, RECALLED, UNWRITTEN };
enum model_back { NOT_BACK, TO_MARK, TO_STORE, TO_WRITE_DOWN, TO_LOSE, TO_CLEAR };
enum model_message { SILENCE, LOCK, UNLOCK, DOWNGRADE, UPGRADE };
enum model_reply { NO_REPLY, GRANTED, UPGRADED, REFUSED, IS_LOST, NOT_HELD };
enum model_waits { WAITS_NOT, WAITS_SHARED, WAITS_EXCLUSIVE };
enum model_writer { W_IDLE, W_WAITS, W_HOLDS };

struct model_process {
	/* Its page. */
	uint8_t state, marks, generation, terms_epoch;
	/* D: its grant, the word it takes back now, whether it knows the connection, and what its predecessor granted it. */
	uint8_t grant, grant_shared, last, lost, waits, back, connected, ghost, reply;
	/* The process; `overtakes`: it took its word when a writer had all of them back. */
	uint8_t pc, shared, mine, mine_epoch, mine_shared, delegated, granted_epoch, page, said, overtakes;
};

struct model {
	struct model_process p[PROCESSES];
	uint8_t alive, incarnation, epoch, expired, loses_page, page_over; /* page_over: what the dead D's page has promised */
	uint8_t claim, armed, r_waits, r_known, r_holds, w;
	uint8_t pass; /* since D began to take all words back for a writer, until a writer gets the lock */
};

struct model_walk {
	const struct model_scope *scope;
	/* Reports a step. `fair`: the step happens in the end, whatever others do. `bad`: what is wrong then, or NULL. */
	void (*to)(struct model_walk *walk, const struct model *next, const char *step, bool fair, const char *bad);
};

struct model readers_model_start(const struct model_scope *scope);
void readers_model_steps(struct model_walk *walk, const struct model *m);
const char *readers_model_bad(const struct model *m); /* a sentence, or NULL */
bool readers_model_waits(const struct model *m);      /* somebody waits for the lock */

/* ---- for the parts of the model ---- */

struct delegation_slot readers_model_slot(const struct model_process *p);
void readers_model_store(struct model_process *p, const struct delegation_slot *slot);
bool readers_model_is_busy(const struct model *m); /* D is taking words back */
bool readers_model_over(const struct model *m, const struct model_process *p); /* the session page promises nothing now */
void readers_model_process(struct model_walk *walk, const struct model *m, int i);
void readers_model_daemon(struct model_walk *walk, const struct model *m);
