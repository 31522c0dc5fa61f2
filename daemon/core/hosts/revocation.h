/* SPDX-License-Identifier: Apache-2.0 */
/*
 * REVOKE and FORCEUNLOCK, for a lock's holders on all hosts. A client has one revocation at most, and waits for it.
 * Holders here are served at once. A query (query.h) finds those elsewhere; each of them is a target (of a semaphore,
 * each host with all its permits):
 *
 *   target     | means                                       | REVOKE                | FORCEUNLOCK
 *   ASKED      | a letter is on its way, or in its host's    | posted -> DONE        | answered -> DONE; 2 s passed
 *              |   mailbox                                   |                       |   -> WITHDRAWN
 *   WITHDRAWN  | the letter is being deleted                 |                       | unread -> DELETING; it was read
 *              |                                             |                       |   -> TAKEN
 *   TAKEN      | read, and not answered yet                  |                       | answered -> DONE; 2 s more passed
 *              |                                             |                       |   -> DELETING
 *   DELETING   | no daemon will act: its znode is deleted    |                       | answered -> DONE
 *   DONE       | its holders are counted                     |                       |
 *
 * A znode is deleted only when its daemon cannot act any longer, or has not said that it did: nobody acts upon a letter
 * that was deleted unread. The one right behind it, if it is of the same host, is deleted, too: it may have taken over
 * (rollover.h). The daemon that owns the znode notices by its watch. Holders of other software have no mailbox: they
 * cannot be asked, and FORCEUNLOCK deletes their znode at once. A lost connection ends the revocation.
 */
#pragma once

#include <stdint.h>

#include "base/heap.h"
#include "base/queue.h"
#include "core/hosts/outbox.h"
#include "protocol/bytes.h"
#include "protocol/commands.h"

struct client;
struct query;

enum target_state { TARGET_ASKED, TARGET_WITHDRAWN, TARGET_TAKEN, TARGET_DELETING, TARGET_DONE };

struct target {
	enum target_state state;
	uint64_t letter; /* 0: none */
	struct bytes id, host;
	int64_t session;
	size_t child;        /* of the query, until the letter, which names it, is posted; of a semaphore the last */
	struct bytes *paths; /* the znodes; of a semaphore all that its host has */
	size_t path_count, deleting;
	bool deleted;
};

struct revocation {
	struct hosts *hosts;
	struct client *client;
	TAILQ_ENTRY(revocation) link; /* hosts->revocations */
	uint64_t number;
	enum command command; /* REVOKE or FORCEUNLOCK */
	struct bytes name, reason;
	struct target *targets;
	size_t count, open;
	int64_t holders;    /* that were asked (REVOKE), or lost the lock (FORCEUNLOCK) */
	size_t strangers;   /* held by other software, not asked */
	const char *failed; /* a sentence: something was not done */
	struct timer timer;
};

TAILQ_HEAD(revocation_list, revocation);

/* Answers now or later. */
void revocation_new(struct hosts *h, struct client *c, enum command command, struct slice name, struct slice reason);
/* Without an answer: its client is gone. A letter that takes a lock by force is withdrawn, one that asks for it stays. */
void revocation_free(struct revocation *d);
/* The query has found out who holds the lock. */
void revocation_found(const struct query *q);
/* What became of a letter. */
void revocation_letter(struct hosts *h, const struct letter_news *news);
/* The letter of that id was answered. */
void revocation_answered(struct hosts *h, struct slice id, int64_t holders);
/* revocation.timer is due. */
void revocation_due(struct revocation *d);
/* Answers of REVOCATION_DELETE. */
void revocation_operated(struct hosts *h, const struct operation *op, const struct event *event);
/* The connection is gone. */
void revocation_suspended(struct hosts *h);
