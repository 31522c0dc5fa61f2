/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A request that acts on a lock which another host has granted under a value (lock/bearer.h) is done there: a forward asks
 * for it by a letter, which has the SHA-256 of the value and not the value. A request has one at a time, as part of its
 * lookup (lookup.h): when it is answered, the command runs again, and finds the answer among the facts.
 *
 *   state    | means                                     | event -> next state
 *   ASKED    | a letter is on its way, or in the mailbox | answered -> ANSWERED; no mailbox, refused, or 2 s passed and it
 *            |                                           |   was not read: UNAVAILABLE, nothing was done; read -> TAKEN
 *   TAKEN    | read, and not answered yet                | answered -> ANSWERED; 2 s more passed: UNAVAILABLE, it may have
 *            |                                           |   been done
 *   ANSWERED | the command runs again                    | it asks for something else -> ASKED; else freed
 *
 * The host that gets the letter acts at once, and only if it has room to answer. It does the act if the lock is held there
 * under that value for the same uid. It acts upon a letter once (inbox.h). If it is killed before it has answered, or
 * either connection is lost, nobody knows whether it has acted: the client gets an error that says so, and asks again. It
 * may extend twice, unless each time adds to the rest of the lease; the second of two releases finds that the lock is gone.
 *
 * A letter that may be late (inbox.h) changes nothing: its client has got the error that nobody knows the outcome, and may
 * have decided otherwise since. It is answered as if the session that it is for were over, and with late=1.
 *
 * Data (record.h): kind, from, to (the session it is for), name, act, uid, salt, sha256 (of the salt, ":" and the value);
 * and to extend ms, add, leased. The answer has kind, from, re (the id) and found, perhaps late. Each letter has another
 * salt, so nobody who can read letters learns which of them are about the same value.
 *
 * A letter whose client has gone stays for the rest of the 2 s. So a program that releases a lock and exits has
 * released it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/heap.h"
#include "base/queue.h"
#include "core/hosts/lookup.h"
#include "core/hosts/outbox.h"
#include "protocol/bytes.h"

struct forward_terms {
	enum forward_act act;
	struct slice value;
	int64_t lease_ns; /* EXTEND: the lease ends that long from then, */
	bool add;         /* ... and the rest of the present lease is added */
	bool leased;      /* ... if there is one */
};

enum forward_state { FORWARD_ASKED, FORWARD_TAKEN, FORWARD_ANSWERED };

struct forward {
	TAILQ_ENTRY(forward) link; /* hosts->forwards */
	struct hosts *hosts;
	struct lookup *lookup;
	enum forward_state state;
	struct lookup_fact *fact; /* which it is about */
	enum forward_act act;
	struct letter *letter; /* NULL: none, or it is gone */
	struct bytes id;       /* of the letter */
	struct timer timer;
};

TAILQ_HEAD(forward_list, forward);

/* The result of that act. UNASKED: it is being asked for, or it was refused and answered; the command returns. */
enum forward_found forward_look(struct call *call, struct slice name, const struct forward_terms *terms);
/* Frees a lookup, which has been answered or will not be, with its forward, if it has one. */
void forward_end(struct lookup *i);
/* The fate of its letter. */
void forward_letter(struct forward *f, enum letter_fate fate);
void forward_due(struct forward *f);
/* The connection is gone: open forwards are answered. */
void forward_suspended(struct hosts *h);
/* An answer came, for the letter of that id. False: it is none. */
bool forward_answered(struct hosts *h, struct slice id, struct slice data);
/* Acts upon a letter of another host, and answers the letter. `late`: the letter may be late. */
void forward_received(struct hosts *h, struct slice id, struct slice data, bool late);
