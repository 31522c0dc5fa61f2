/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A model of the words of memory that processes share, on a machine that does not keep the order of loads and stores. In the
 * other models of this folder a step on a word happens at one instant for everybody. This one shows that the orders that the
 * code asks for (release, acquire, fences) are enough for that, and that none of them may be left out.
 *
 * The machine has one memory: a store is visible to all processors at the same instant. Armv8, RISC-V and x86 are such
 * machines (their stores are multi-copy atomic), POWER is not. A processor performs the accesses of its program one by one,
 * in any order that these rules allow:
 *
 *     what                 order
 *     two accesses of one  as in the program. But a load may get the value of an earlier store of its own processor before
 *     word                 that store is performed; a load with acquire does not get it from a read-modify-write.
 *     load with acquire    before everything that follows it (ldar, ldapr)
 *     store with release   after everything that precedes it (stlr)
 *     fence of acquire     the loads that precede it are before everything that follows it (dmb ishld)
 *     fence of release     what precedes it is before the stores that follow it (dmb ish)
 *     fence of a signal    what precedes it is before what follows it: for the compiler, which is all that counts where the
 *                          process is killed and another one reads what is left
 *     read-modify-write    a load, and a store that fails if another processor has stored between them (ldxr, stxr). The
 *                          load has the acquire, the store the release: what follows may be performed between them.
 *     condition            none: a load is speculated, and C knows no dependency of a store on a condition. A run in which
 *                          a store was performed too early, behind a condition that is then false, is dropped.
 *
 * So a store that is performed late is one that waits in the store buffer of its processor, from which stores to different
 * words drain in any order; and a load that is performed early is one that was reordered or speculated. What a compiler may
 * reorder is among the runs as well. Sequential consistency is not in the model: its operations are taken as acquire and
 * release only, and nothing goes wrong.
 *
 * What the kernel orders in addition (messages, the clock) is not relied on, except where weak_programs.c says so. A killed
 * process leaves what it has performed, so `bad` looks at every state.
 *
 * The functions of the code that have atomic operations, what the operations ask for, and what that is needed for: the rule
 * by which it is left out. Where a rule leaves out several, each of them alone is enough.
 *
 *     function, operation                          order    needed for
 *     delegation_grant()                           seq_cst  release: GRANT, GRANT_UNRECORDED
 *     delegation_read()                            seq_cst  acquire: READ
 *     swap(): delegation_take()                    seq_cst  acquire: PROOF_BEFORE_TAKE
 *     delegation_holds()                           seq_cst  acquire: PROOF_BEFORE_TAKE
 *     swap(): delegation_leave()                   seq_cst  release: LEAVE, LEAVE_OF_READER
 *     mark(): a recall, a loss                     seq_cst  acquire: RECALL
 *     delegation_end()                             seq_cst  nothing: relaxed here
 *     delegation_none()                            seq_cst  nothing: what follows is a message
 *     delegation_look(), word                      seq_cst  nothing: the times and uses beside it are hints
 *     delegation_look(), delegated_take(), hints   relaxed
 *     store() of the session page, odd sequence    relaxed
 *       a fence                                    release  PAGE_ODD
 *       the view                                   relaxed  (in any order; LOSS_SKIPPED shows why that is enough)
 *       even sequence                              release  PAGE_EVEN
 *     session_page_read(), sequence                acquire  PAGE_BEGIN
 *       the view                                   relaxed
 *       a fence                                    acquire  PAGE_END, PROOF_BEFORE_TAKE
 *       the sequence again                         relaxed
 *     ledger_store()                               release  PUBLISH, DROP, DROP_BEFORE_RECALL
 *       a fence                                    signal   REUSE
 *     saved_connected(), cookie                    release  COOKIE
 *     saved_keep(), busy                           release  nothing: the next one orders it
 *       kept                                       release  KEPT
 *     saved_session(), present                     release  PRESENT
 *       timeout                                    release  nothing: one word
 *     saved_add_former()                           release  as PRESENT
 *     saved_gone(), saved_holder(), saved_bearers(), saved_look(), saved_grow(), saved_finish(), saved_free_former(),
 *     saved_end_former(), saved_session_ended(), saved_safe_until()
 *                                                  release  nothing: one word, before the next system call
 *     conn_set_busy()                              release  nothing: the fence orders it
 *       a fence                                    signal   BUSY
 *     conn_clear_busy()                            release  NOT_BUSY
 *
 * Where nothing is needed, the order stays: a weaker one would be faster by a few instructions on x86, and by none on Armv8.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "tests/model/rules.h"

/* X(name, the scope that shows what it is for, what is broken) */
#define MODEL_RULES(X) \
	X(GRANT, TERMS, "the word of a grant is stored without release") \
	X(READ, TERMS, "the word of a grant is loaded without acquire") \
	X(PROOF_BEFORE_TAKE, PROOF, \
	  "neither the take, nor the look after it, nor the fence of the page orders the take first") \
	X(LEAVE, HANDED_ON, "a holder leaves the word without release") \
	X(RECALL, HANDED_ON, "the daemon takes a word back without acquire") \
	X(LEAVE_OF_READER, READERS, "a reader leaves the word without release") \
	X(PAGE_ODD, PAGE, "there is no fence between the odd sequence and the view") \
	X(PAGE_EVEN, PAGE, "the even sequence is stored without release") \
	X(PAGE_BEGIN, PAGE, "the first sequence is loaded without acquire") \
	X(PAGE_END, PAGE, "there is no fence between the view and the second sequence") \
	X(LOSS_SKIPPED, MOVED, "the view of a loss is not written before that of the next session") \
	X(GRANT_UNRECORDED, GRANTED, "the word of a grant is stored without release: before the ledger has the grant") \
	X(DROP_BEFORE_RECALL, RECALLED, "the ledger drops a grant without release: before its word is taken back") \
	X(PUBLISH, LEDGER, "a record of the ledger is published without release") \
	X(DROP, LEDGER, "a record of the ledger is dropped without release") \
	X(REUSE, LEDGER, "there is no fence after a record was dropped") \
	X(COOKIE, SAVED, "the cookie of a connection is stored without release") \
	X(KEPT, SAVED, "a connection is marked as kept without release") \
	X(PRESENT, SAVED, "the number of the present session is stored without release") \
	X(BUSY, SAVED, "there is no fence after a connection was marked as busy") \
	X(NOT_BUSY, SAVED, "a connection is marked as not busy without release")

enum model_rule { MODEL_RULES(MODEL_RULE_NUMBER) MODEL_RULE_COUNT };

enum { TERMS, PROOF, HANDED_ON, READERS, PAGE, MOVED, GRANTED, RECALLED, LEDGER, SAVED, SCOPES };

enum { PROCESSORS = 4, ACCESSES = 16, WORDS = 8, REGISTERS = 6, OTHERS = WORDS - 1 };

/* LINKED and STORED are the two halves of a read-modify-write. */
enum weak_kind { NO_ACCESS, LOAD, STORE, LINKED, STORED, FENCE_ACQUIRE, FENCE_RELEASE, FENCE_SIGNAL };
enum weak_order { RELAXED, ACQUIRE, RELEASE };
enum { ANY = 0xff };

/* An access of a program. */
struct weak_access {
	const char *text;
	enum weak_kind kind;
	enum weak_order order;
	uint8_t at;    /* the word */
	uint8_t value; /* what is stored */
	uint8_t to;    /* of a load: its register. LINKED: 0 */
	uint8_t wants; /* of a load: the program goes on only if the word, without the bits of `except`, is that (or ANY) */
	uint8_t except;
	bool sets; /* STORED: what was loaded, with the bits of `value` */
	uint8_t rule; /* 0, or 1 + that rule: if it is broken, the access is RELAXED, and a fence or `left_out` is not there */
	bool left_out;
};

/* Accesses; RULE() may follow. */
#define RULE(name) .rule = 1 + MODEL_##name
#define ACCESS(says, what, asks, word, ...) \
	{ \
		.text = says, .kind = what, .order = asks, .at = word, __VA_ARGS__ \
	}
#define LOADS(says, asks, word, into, value, ...) \
	ACCESS(says, LOAD, asks, word, .to = into, .wants = value, __VA_ARGS__)
#define LINKS(says, asks, word, value, ...) ACCESS(says, LINKED, asks, word, .wants = value, __VA_ARGS__)
#define STORES(says, asks, word, what, ...) ACCESS(says, STORE, asks, word, .value = what, __VA_ARGS__)
#define SWAPS(says, asks, word, what, ...) ACCESS(says, STORED, asks, word, .value = what, __VA_ARGS__)
#define FENCES(says, what, ...) ACCESS(says, what, RELAXED, 0, __VA_ARGS__)

/* A state: `done` has a bit for each access that was performed. */
struct model {
	uint8_t memory[WORDS];
	struct model_processor {
		uint16_t done;
		uint8_t stopped; /* a load had another value than the program wants */
		uint8_t linked;  /* no other processor has stored into the word of its LINKED since then */
		uint8_t others;  /* what was in the word OTHERS when its LINKED was performed */
		uint8_t loaded[REGISTERS];
	} p[PROCESSORS];
};

struct weak_scope {
	const char *name;
	uint8_t start[WORDS];
	struct weak_access programs[PROCESSORS][ACCESSES];
	const char *(*bad)(const struct weak_scope *scope, const struct model *m); /* a sentence, or NULL */
};

struct model_walk {
	const struct weak_scope *scope;
	int broken; /* the rule; MODEL_RULE_COUNT: none */
	void (*to)(struct model_walk *walk, const struct model *next, const char *step, const char *bad);
};

extern const struct weak_scope weak_scopes[SCOPES];

/* Tests of the machine itself: an outcome that `scope.bad` knows is allowed, or not. */
enum { LITMUS = 15 };
struct weak_litmus {
	bool allowed;
	struct weak_scope scope;
};
extern const struct weak_litmus weak_litmus[LITMUS];

struct model weak_model_start(const struct weak_scope *scope, int broken);
void weak_model_steps(struct model_walk *walk, const struct model *m);
/* The processor has performed all of its program. */
bool weak_model_ended(const struct weak_scope *scope, const struct model *m, int processor);
