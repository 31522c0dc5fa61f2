/* SPDX-License-Identifier: Apache-2.0 */
/*
 * REVOKE and FORCEUNLOCK, for a lock's holders on all hosts: a query (query.h) that does not only find the holders. Those
 * here are served in pieces, in turns of the client's user (revoke.h). Each of those elsewhere is a target (of a
 * semaphore, each host with all its permits):
 *
 *   target     | means                                       | REVOKE                | FORCEUNLOCK
 *   ASKED      | a letter is on its way, or in its host's    | posted -> DONE        | answered -> DONE; 2 s passed:
 *              |   mailbox                                   |                       |   it is withdrawn: unread
 *              |                                             |                       |   -> DELETING; read -> TAKEN
 *   TAKEN      | read, and not answered yet                  |                       | answered -> DONE; 2 s more passed
 *              |                                             |                       |   -> DELETING
 *   DELETING   | no daemon will act: its znode is deleted    |                       | answered -> DONE
 *   DONE       | its holders are counted                     |                       |
 *
 * A znode is deleted only when its daemon cannot act any longer, or has not said that it did: nobody acts upon a letter
 * that was deleted unread. The one right behind it, if it is of the same host, is deleted, too: it may have taken over
 * (claim.h). The daemon that owns the znode notices by its watch. Holders of other software have no mailbox: they
 * cannot be asked, and FORCEUNLOCK deletes their znode at once. A lost connection ends the revocation, unless it is lost
 * to a hand-over while the holders are being searched for; or there are no targets: then it goes on with those here, over a
 * hand-over, too.
 */
#pragma once

#include <stdint.h>

#include "base/heap.h"
#include "core/hosts/outbox.h"
#include "core/hosts/query.h"
#include "core/hosts/revoke.h"
#include "core/port/work.h"
#include "protocol/bytes.h"
#include "protocol/commands.h"

enum target_state { TARGET_ASKED, TARGET_TAKEN, TARGET_DELETING, TARGET_DONE };

struct target {
	struct revocation *revocation;
	enum target_state state;
	struct letter *letter; /* NULL: none, or it is gone */
	struct bytes id;       /* of the letter */
	struct slice host;     /* empty: it is of no host that could be asked */
	const struct query_child *child; /* the child that the letter names; of a semaphore the last of its host */
	size_t deleting;
	bool deleted;
};

struct revocation {
	struct query *query;
	struct bytes reason;
	struct target *targets;
	size_t count, open; /* open: and one for those here, as long as some are left */
	struct revoke here;
	struct work_item work; /* REVOKE: some are left here */
	int64_t holders;       /* that were asked (REVOKE), or lost the lock (FORCEUNLOCK) */
	size_t strangers;      /* held by other software, not asked */
	const char *failed;    /* a sentence: something was not done */
	struct timer timer;
};

/* Answers now or later. */
void revocation_new(struct hosts *h, struct client *c, enum command command, struct slice name, struct slice reason);
/* One that has found nobody yet, from a snapshot. */
struct revocation *revocation_restore(struct hosts *h, struct client *c, enum command command, struct slice name,
				      struct slice reason);
/* The same of one that has no target: it goes on with those here, of whom so many have lost the lock. */
void revocation_resume(struct hosts *h, struct client *c, enum command command, struct slice name, struct slice reason,
		       int64_t taken);
/* It waits for nothing but those here. */
bool revocation_is_here(const struct revocation *d);
/* Its turn has come (WORK_REVOKE): some steps, at most as many as that or a few more. Returns how many. */
int64_t revocation_continue(struct revocation *d, int64_t steps);
/* The query stays. A letter that takes a lock by force and is not answered is withdrawn, one that asks for it stays. */
void revocation_free(struct revocation *d);
/* The query has found out who holds the lock. */
void revocation_found(struct revocation *d);
/* The fate of a target's letter. */
void revocation_letter(const struct letter_news *news);
/* The letter of that id was answered. */
void revocation_answered(struct hosts *h, struct slice id, int64_t holders);
void revocation_due(struct revocation *d);
void revocation_operated(struct hosts *h, const struct operation *op, const struct event *event);
void revocation_suspended(struct hosts *h);
