/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Letters to other daemons. A letter is an ephemeral znode of ours in the mailbox of its host (inbox.h), under a name
 * that nobody else makes and that is its id. The host that reads it deletes it; if none does, we do. The end of our
 * session is the end of every letter, so none reaches a later life of ours.
 *
 *   state       | means                            | left by
 *   POSTING     | its create is under way          | OK -> POSTED; refused, no box -> gone; connection lost -> WITHDRAWING
 *   POSTED      | it stands, as far as we know     | answered -> gone; a session timeout later, or asked -> WITHDRAWING
 *   WITHDRAWING | it is deleted, now or as soon as | OK, NONODE (it was read) -> gone
 *               | there is a connection            |
 *
 * Data (record.h): kind, from, to (the session it is for, which holds `znode` for the lock `name`), reason, and the
 * client that asks: uid, pid, command, client. An answer has kind, from, re (the id), holders. About values: forward.h.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/charge.h"
#include "base/heap.h"
#include "base/queue.h"
#include "core/port/event.h"
#include "protocol/bytes.h"

struct client;
struct forward;
struct hosts;
struct operation;
struct target;

enum {
	LETTER_REVOKES_MAX = 176, /* letters of ours under way: past it none is posted for REVOKE or a value, */
	LETTER_FORCES_MAX = 240,  /* no FORCEUNLOCK, */
	LETTERS_MAX = 304,        /* nor an answer */
	LETTER_HOST_MAX = 100,
};

enum letter_kind { LETTER_REVOKE, LETTER_FORCE, LETTER_VALUE, LETTER_ANSWER };
enum letter_state { LETTER_POSTING, LETTER_POSTED, LETTER_WITHDRAWING };

/* The fate of a letter. */
enum letter_fate {
	LETTER_STANDS,    /* it was posted */
	LETTER_NO_BOX,    /* its host has no mailbox */
	LETTER_FAILED,    /* refused, or nobody knows */
	LETTER_WITHDRAWN, /* nobody had read it, and nobody will */
	LETTER_TAKEN,     /* it was read before it could be withdrawn */
};

/* The fate of a letter, for the target (revocation.h) or the forward (forward.h) that waits for it; both NULL: none does. */
struct letter_news {
	struct target *target;
	struct forward *forward;
	enum letter_fate fate;
};

struct letter {
	struct hosts *hosts;
	TAILQ_ENTRY(letter) link; /* hosts->letters, the oldest first */
	uint64_t number;          /* never used twice */
	struct target *target;    /* it learns the letter's fate, and has this letter; NULL: none */
	struct forward *forward;  /* likewise */
	enum letter_state state;
	struct account *payer; /* NULL: nobody, and so the daemon */
	struct charge room, path_charge;
	bool deleting; /* the delete is under way */
	struct bytes path;
	size_t id_at; /* where the id begins in it */
	struct timer timer;
	struct ledger_letter *record; /* in the ledger; NULL: none */
};

TAILQ_HEAD(letter_list, letter);

/* Appends the path of a host's mailbox. */
void outbox_path(const struct hosts *h, struct slice host, struct bytes *out);
/* A host's name as the configuration allows it: nothing else may become part of a path. */
bool letter_host_valid(struct slice host);
const char *letter_kind_word(enum letter_kind kind);
/* There is room for that many of the kind; of REVOKEs, within the client's share. `who` NULL: the daemon posts them. */
bool outbox_room(const struct hosts *h, enum letter_kind kind, const struct client *who, size_t count);
/* Posts one, whose data were written to operation_data(). Only while connected and while there is room. */
struct letter *outbox_post(struct hosts *h, struct slice host, struct account *payer);
/* Puts one that has its path behind the others. */
void letter_add(struct letter *l);
/* Into the ledger (port/ledger.h): after a kill the next process withdraws letters that may stand. */
void letter_ledger_add(struct letter *l);
struct slice letter_id(const struct letter *l);
/* Nobody waits for its fate any longer. */
void letter_abandon(struct letter *l);
/* Withdraws it before it is read, if it can, and reports its fate. Its timer is due, or nobody wants it any longer. */
void letter_withdraw(struct letter *l);
/* It was answered, so it was read. */
void outbox_was_read(struct hosts *h, struct slice id);
/* Answers of LETTER_POST and LETTER_WITHDRAW. Returns the news for the target or forward that waits for it. */
struct letter_news outbox_answered(struct hosts *h, const struct operation *op, const struct event *event);
/* A new connection of the same session: letters that are WITHDRAWING are deleted now. */
void outbox_connected(struct hosts *h);
/* The session is over, and every letter with it. */
void outbox_forget_all(struct hosts *h);
