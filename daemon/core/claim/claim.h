/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A claim: one znode of this host in a lock's directory, or the wish for one, and its state.
 *
 *   state    | means                                         | event -> next state
 *   (NONE)   | no struct                                     | wanted -> JOINING
 *   JOINING  | create and list sent in one breath            | create answered -> WAITING; NONODE: make the directory,
 *            |                                               |   both again; refused -> NONE; connection lost -> UNSURE
 *   WAITING  | the znode stands, a list says who is before   | list: nobody conflicting -> HELD; list: znode gone -> NONE
 *            |   (`listed`: it did, on this connection)      |   (join again); predecessor DELETED or NONODE: list again
 *   HELD     | entitled: grants are made on it               | list: znode gone -> NONE, its grants are lost
 *   UNSURE   | the create's outcome is unknown               | list: not there -> NONE; there: get -> ours -> WAITING
 *   LEAVING  | nobody wants it; it is deleted                | delete answered OK or NONODE -> NONE
 *
 * LEAVING is for good: a claim that was let go is never adopted again, whatever its znode's fate. A connection lost
 * keeps WAITING, HELD and LEAVING as they are; on the new connection a list says what became of the first two, or for
 * one that is held, and nobody here waits behind it, its own znode does; the delete is sent again. The first list shows
 * all that the create of this claim preceded: answers come in order.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/queue.h"
#include "core/znode/contender.h"
#include "core/port/event.h"
#include "core/session/operation.h"

struct directory;
enum claim_state { CLAIM_JOINING, CLAIM_WAITING, CLAIM_HELD, CLAIM_UNSURE, CLAIM_LEAVING };

enum { CLAIM_HANDOFFS_MAX = 1023, CLAIM_NEXT_FROM = 768 }; /* the token has ten bits; then next is queued early */

struct claim {
	struct directory *directory;
	TAILQ_ENTRY(claim) link; /* directory->leaving or ->slots */
	enum claim_state state;
	enum mode mode;
	uint64_t number, nonce; /* never used twice; of its uuid */
	uint64_t join_op,
		leave_op; /* the create: lists sent after it must show the znode; the delete under way, or 0 */
	char name[CONTENDER_NAME_MAX]; /* with the number once it is known */
	size_t name_len, path_bytes;   /* of the name without the number; charged against the session */
	bool named, orphan;            /* the number is known; LEAVING: a list showed it, and no claim knew it */
	bool spent, withheld;          /* LEAVING: does not count to the lock's two; waits. See rollover.h */
	bool listed, readers_ahead;    /* WAITING: seen taken on this connection; by readers only */
	bool tries, watches;           /* its name says that only tries want it (try.h); claim_join() */
	bool contested, in_use; /* WAITING and listed: the one before waits, too; its data say that it does not */
	bool tried, says_held;  /* HELD: a list showed a try behind it; its data say so (or may, or its forerunner's) */
	bool adopting, counted; /* UNSURE: found, its owner is being asked for; SLOTS: the list showed it (facts.h) */
	bool rivals, own_watch; /* HELD, on this connection: a list showed that others wait; its znode is watched */
	bool pred_watch, other_kind; /* WAITING: the predecessor is watched; its host takes the name for another kind */
	uint8_t join_tries, looks;   /* looks, WAITING: reads since the last list (look.h) */
	uint32_t seq, followed;
	int64_t czxid, idle_ns; /* idle: without grant since then */
	int64_t look_ns,
		looked_ns; /* WAITING, listed: to be looked at again; HELD: listed last with who is behind it */
	int64_t taken_ns;  /* WAITING: from then on another host's before it counts as a holder's; 0: not listed so */
	struct bytes pred; /* WAITING and listed: the predecessor's name */
	uint64_t pred_op;  /* the latest that read its data */
	/* HELD: what was granted on it. */
	bool granted, follows;  /* or, of an election, proclaimed; it took over (rollover.h) from number `followed` */
	enum mode granted_mode; /* of the last grant, whatever a downgrade made of it: its token fences that, too */
	int64_t held_ns, granted_ns;     /* since when; when the first of the present grants was made */
	int32_t handoffs;                /* n of the token */
	int64_t contended, contended_ns; /* hand-offs made while somebody waited, or might; since when */
	/* Of the grant that its data tell of (holder.h), and when that was written; 0: none on this connection. */
	int64_t holder_token, holder_ns;
	uint64_t holder_client;
};

const char *claim_state_word(enum claim_state state);
/* Its create sent; NULL: a limit forbids it. `tries`: only tries want it; `watches`: its list is to set the watch. */
struct claim *claim_join(struct directory *d, enum mode mode, bool tries, bool watches);
void claim_release(struct directory *d); /* deletes what was withheld (rollover.h) */
void claim_leave(struct claim *c);       /* nobody wants it: among `leaving`, deleted as soon as that can be done */
const struct claim *claim_before(const struct claim *c);   /* the own one that it waits for, or NULL */
void claim_free(struct claim *c);                          /* its znode is gone, or goes with its session */
void claim_free_all(struct directory *d);                  /* the same, of all that the directory has */
bool claim_orphan(struct directory *d, struct slice name); /* nobody knew it: to be deleted. False: no name of ours */
void claim_send_delete(struct claim *c);      /* of a LEAVING one, if it can be sent and is not under way */
void claim_send_deletes(struct directory *d); /* of all that leave, as long as there is room; before anything else */
void claim_suspended(struct claim *c);        /* the connection is gone: what was under way is unknown */
void claim_held(struct claim *c);             /* entitled from now on */
void claim_watch_pred(struct claim *c);  /* WAITING: watches what it waits for, unless that is done, or it is ours */
void claim_forget_pred(struct claim *c); /* that is not known any longer */
void claim_watch_own(struct claim *c);
/* After a reconnection: asks what became of its claims; false: it cannot. `alone`: held here, and nobody is next. */
bool claim_recover(struct directory *d, bool alone);
uint64_t claim_read(struct claim *c, enum operation_kind kind, struct slice name);  /* a znode beside it */
uint64_t claim_write(struct claim *c, enum operation_kind kind, struct slice data); /* its own */
void claim_pred_gone(struct claim *c); /* a list alone says who is first now, and whether our own znode still stands */
/* What it watches, of that name, was deleted or written: its predecessor or its own znode. */
void claim_watched(struct claim *c, enum zk_watch type, struct slice child);
/* Answers of JOIN, WATCH_PRED, WATCH_OWN, ADOPT, LEAVE and DETAIL. `c` is NULL when the claim is gone. */
void claim_answered(struct claim *c, const struct operation *op, const struct event *event);
void claim_adopt(struct claim *c, struct slice name);      /* asks what a create of unknown outcome left under it */
void claim_found(struct claim *c, struct slice name);      /* LEAVING, its create of unknown outcome: it left this */
void claim_path(const struct claim *c, struct bytes *out); /* appends that of its znode */
