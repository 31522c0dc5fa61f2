/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A model of the claim that is second in line (core/claim/claim.h): one host with one connection to the server, which
 * answers its requests and tells its watches in order; and others, who make and delete znodes at any time: other hosts,
 * whatever rule they follow, and an operator who deletes and writes any znode. A state is a few bytes, and the search tries
 * every order of steps. The host's claims leave and join again, so that watches of earlier ones still stand; it has a claim
 * behind its own held one; it makes a new connection.
 *
 * A test breaks a rule by its name, and shows that the search notices: that is what the rule is for.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "tests/model/rules.h"

/* X(name, the scope that shows what it is for, what is done instead) */
#define MODEL_RULES(X) \
	X(MORE_BEFORE, PLAIN, "it counts as second although more are before it") \
	X(NO_OWN_WATCH, PLAIN, "it does not watch its own znode") \
	X(OWN_UNANSWERED, PLAIN, "its own watch need not be answered") \
	X(OWN_AFTER_WRITTEN, PLAIN, "its own watch counts although its znode was written") \
	X(OWN_AFTER_DELETED, PLAIN, "its own watch counts although its znode was deleted") \
	X(OLD_CONNECTION, CONNECTIONS, "what was shown on an earlier connection counts") \
	X(OWN_LEAVING, NEXT, "what its own host has before it need not be gone") \
	X(OWN_HELD, NEXT, "the claim behind its host's held one is second, too") \
	X(FORMER_PREDECESSOR, BY_HAND, "the end of a znode that was its predecessor counts") \
	X(AHEAD_GONE, PLAIN, "it counts as second when the one before its predecessor goes") \
	X(READER_UNCOUNTED, MODES, "readers before a writer do not count") \
	X(ANY_WATCHED, MODES, "the end of any znode that was watched is its predecessor's")

enum model_rule { MODEL_RULES(MODEL_RULE_NUMBER) MODEL_RULE_COUNT };

enum { NUMBERS = 5, QUEUE = 6, LAG = 2, NOBODY = 0xff };

/* What may happen in this search; every state of all of it at once would be too many. */
struct model_scope {
	enum model_rule broken; /* MODEL_RULE_COUNT: none */
	uint8_t numbers, joins, writes, connections; /* znodes at most; the host's claims, writes, new connections of it */
	uint8_t by_hand; /* znodes that have gone and are made again by hand */
	uint8_t lag;     /* so many changes by others its server may not know yet; before a write it learns all */
	bool next;       /* a claim behind a held one */
	bool modes;      /* readers and writers; otherwise all write */
};

enum model_claim { NO_CLAIM, JOINING, WAITING, HELD, LEAVING };
enum model_own { UNSET, ASKED, STANDS };

/*
 * A message: the kind in the high byte. The low byte: a znode's number; bits for the znodes that a list shows; or, for
 * CREATE, whether the znode is a reader's.
 */
enum model_message { CREATE = 1, LIST, GET, DELETE, CREATED, LISTED, GOT, GOT_NONODE, GONE, DELETED, CHANGED };

struct model_queue {
	uint16_t at[QUEUE];
	uint8_t count;
};

struct model {
	/*
	 * Bits for znodes. truth: those that exist. exists: those that exist as far as the host's server knows. was_first: no
	 * conflicting znode was before them while they existed. shown: a list has shown them to the host. readers: of readers.
	 */
	uint8_t made, truth, exists, ours, watched, was_first, shown, readers;
	uint8_t behind, late[LAG]; /* numbers of znodes that were made or deleted, which the server does not know yet */
	uint8_t joins, writes, connections, by_hand; /* left */
	/* The host's claims: the older one, HELD or LEAVING; and the one that waits. */
	uint8_t old, old_number, state, number;
	uint8_t pred, pred_watch, own;
	uint8_t before; /* conflicting znodes of other hosts before it; 0: not known */
	uint8_t writers; /* all of `before` are writers */
	uint8_t ahead, ahead_watch;
	struct model_queue requests, answers;
};

struct model_walk {
	const struct model_scope *scope;
	/* A step that was made; `bad`: a sentence, if it did what must not be. */
	void (*to)(struct model_walk *walk, const struct model *next, const char *step, const char *bad);
};

struct model second_model_start(const struct model_scope *scope);
void second_model_steps(struct model_walk *walk, const struct model *m);
/* NULL, or what is wrong with a state that is reached. */
const char *second_model_bad(const struct model *m);
