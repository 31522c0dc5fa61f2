/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A claim is one znode of this host in a lock's directory, or the wish for one.
 *
 *   state    | means                                         | event -> next state
 *   (NONE)   | no struct                                     | wanted -> JOINING
 *   JOINING  | create and list were sent together            | create answered -> WAITING; without a czxid -> UNSURE, and
 *            |                                               |   get; NONODE: make the directory, both again; refused
 *            |                                               |   -> NONE; connection lost -> UNSURE
 *   WAITING  | the znode exists; a list shows who is before  | list: nobody conflicting -> HELD; list: znode gone -> NONE
 *            |   (`listed`: one did, on this connection)     |   (join again); predecessor gone: list, or HELD (second)
 *   HELD     | entitled: grants are made on it               | list: znode gone -> NONE, its grants are lost
 *   UNSURE   | the create's outcome or its czxid is unknown  | list: not there -> NONE; there: get -> ours -> WAITING
 *   LEAVING  | nobody wants it; it is deleted                | delete answered OK or NONODE -> NONE
 *
 * LEAVING is final: a claim that was let go is never adopted again, whatever happens to its znode. WAITING, HELD and
 * LEAVING outlast a lost connection. On the new one a list shows what became of the first two; for a held claim that
 * nobody here waits behind, its own znode shows it. The delete is sent again. Answers come in order: a list that
 * was sent after the claim's create shows its znode, and all that were made before it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/charge.h"
#include "base/queue.h"
#include "core/port/event.h"
#include "core/session/operation.h"
#include "core/znode/contender.h"
#include "protocol/bytes.h"
#include "protocol/slice.h"

enum claim_state { CLAIM_JOINING, CLAIM_WAITING, CLAIM_HELD, CLAIM_UNSURE, CLAIM_LEAVING };

enum { CLAIM_HANDOFFS_MAX = 1023, CLAIM_NEXT_FROM = 768 }; /* the token has ten bits; from 768 on next is queued */

/*
 * A waiting claim that is second in line holds at once when its predecessor goes, without a list, if two facts were shown
 * on this connection. They are forgotten with it, and so at a hand-over and a kill:
 *
 *   before    | how many other hosts' contenders are before | a list showed that; 2 -> 1: `ahead` was deleted.
 *             |   it: 1, it is second. Later ones are        |   Unknown (0): another list, another predecessor
 *             |   behind it                                 |
 *   own_watch | STANDS: its znode existed when that watch   | UNSET -> ASKED: it waits; ASKED -> STANDS: answered;
 *             |   was answered, and nothing has happened    |   CHANGED, DELETED -> UNSET: the event used the watch
 *             |   to the znode since                        |   up, so later events would not be reported
 *
 * All of this comes on one connection, in the order in which it happened. So when the predecessor's DELETED comes (or
 * NONODE answers the get), nothing else was before the claim at that moment, and its own znode existed. The answer about
 * the own znode must come first: a watch that an earlier claim set on the same predecessor may still stand, and reports its
 * end before that.
 *
 * A claim farther back also watches `ahead`, the contender before its predecessor. When the znode of `ahead` is deleted, the
 * predecessor gets the lock, and it has to be known whether the claim is second before that one goes. A claim with two
 * writers before it watches both, so that their deletions show it. With more, the deletion alone does not prove it, because
 * others may have been before the predecessor: a list shows it, and no hand-off waits for that list. To watch a third one
 * as well costs more than that list: one more host would be woken up by each release.
 *
 * In all other cases a list decides. A claim that held at once has not looked behind itself: another host may wait there
 * (`rivals`).
 */

/* Of a znode: not set, or used up; sent; answered, and nothing has happened since. */
enum claim_watch { CLAIM_UNSET, CLAIM_ASKED, CLAIM_STANDS };

struct second {
	uint8_t before;
	bool writers; /* all contenders before it are writers */
	bool watched;
	struct bytes ahead; /* the contender before the predecessor; empty: none, or it need not be watched */
};

struct claim {
	struct directory *directory;
	TAILQ_ENTRY(claim) link; /* directory->leaving or ->slots */
	enum claim_state state;
	enum mode mode;
	uint64_t number, nonce; /* never used twice; part of its uuid. From here on, HELD: the grants made on it */
	int64_t czxid, idle_ns; /* idle: it has had no grant since then */
	bool granted, follows, salvaged; /* or: proclaimed; took over from number `followed`; of a killed process */
	enum mode granted_mode; /* of the last grant, before any downgrade: its token fences that, too */
	int32_t handoffs;       /* n of the token */
	int64_t held_ns, granted_ns; /* when it became HELD (before: when it joined); when the first of its grants was made */
	int64_t contended, contended_ns; /* hand-offs made while somebody waited or might wait; since when */
	uint64_t join_op, leave_op; /* the create: lists sent after it must show the znode; the delete under way, or 0 */
	char name[CONTENDER_NAME_MAX]; /* it includes the number once that is known */
	struct charge path;            /* the bytes of its path, in the session */
	size_t name_len;               /* length of the name without the number */
	bool named, orphan;            /* its number is known; LEAVING: a list showed it, and no claim knew it */
	bool spent, withheld;          /* LEAVING: not one of the lock's two; its delete waits. See claim_follow() */
	bool listed, readers_ahead;    /* WAITING: a list of this connection showed others before it; only readers */
	bool succeeds;                 /* directory->seen is another host's claim that was before it */
	bool tries, watches, pred_watch; /* only tries want it (sighting.h); see claim_join(); WAITING: pred has a watch */
	bool contested, in_use; /* WAITING and listed: its predecessor waits, too; its predecessor's data say `held` */
	bool tried, says_held;  /* HELD: a list showed a try behind it; its data say held (or may, or its forerunner's) */
	bool adopting, counted; /* UNSURE, salvaged: found, its owner is being read; SLOTS: a list showed it (FACT_COUNTED) */
	bool rivals; /* HELD, on this connection: a list showed that others wait; or none was sent (second) */
	enum claim_watch own_watch; /* see second */
	const char *other_kind;      /* WAITING: the kind as which its host uses the name; NULL: the same kind as ours */
	uint8_t join_tries, looks;   /* looks, WAITING: reads since the last list (listing.h) */
	uint32_t seq, followed;
	int64_t look_ns, looked_ns; /* WAITING, listed: the next look; HELD: when a list last showed who is behind it */
	int64_t taken_ns;  /* WAITING: from then on another host's claim before it counts as held; 0: none was listed */
	struct second second;
	struct bytes pred; /* WAITING and listed: the predecessor's name, */
	uint64_t pred_op;  /* and the latest operation that read its data, or 0 */
	/* The grant that its data describe (holder.h), and when they were written; 0: none on this connection. */
	int64_t holder_token, holder_ns;
	uint64_t holder_client;
	struct ledger_claim *record; /* in the ledger; NULL: none */
};
const char *claim_state_word(enum claim_state state);
struct claim *claim_new(struct directory *d, enum mode mode); /* one more, that is nowhere yet */
/* Sends its create; NULL: a limit forbids it. `tries`: only tries want it. `watches`: its list is to set the watch. */
struct claim *claim_join(struct directory *d, enum mode mode, bool tries, bool watches);
void claim_release(struct directory *d); /* sends the deletes that were withheld (claim_follow()) */
void claim_leave(struct claim *c);       /* nobody wants it: it is deleted as soon as possible */
const struct claim *claim_before(const struct claim *c);   /* the claim of this host that it waits for, or NULL */
void claim_free(struct claim *c);                          /* its znode is gone, or goes with its session */
void claim_free_all(struct directory *d);                  /* the same for all claims of the directory */
void claim_vanished(struct claim *c); /* WAITING, HELD: somebody deleted its znode. The grants on it are lost */
bool claim_stray(struct directory *d, struct slice name); /* deletes one that no claim knew. False: not our name */
void claim_send_delete(struct claim *c);      /* LEAVING: sends the delete, if it can and none is under way */
void claim_send_deletes(struct directory *d); /* for all that leave, as long as there is room; before anything else */
void claim_suspended(struct claim *c);        /* the connection is lost: the outcome of open operations is unknown */
void claim_held(struct claim *c);             /* entitled from now on */
void claim_watch_pred(struct claim *c);  /* WAITING: watches its predecessor, unless that is ours; and see second */
void claim_forget_pred(struct claim *c); /* the predecessor is not known any longer */
void claim_watch_own(struct claim *c);
/* After a reconnection: asks about its claims. False: it cannot now. `alone`: one is held here, and nobody is next. */
bool claim_recover(struct directory *d, bool alone);
uint64_t claim_read(struct claim *c, enum operation_kind kind, struct slice name);  /* reads a znode beside it */
uint64_t claim_write(struct claim *c, enum operation_kind kind);                   /* writes its own znode */
/* The watched znode of that name was deleted or written: the predecessor or the claim's own. */
void claim_watched(struct claim *c, enum zk_watch type, struct slice child);
/* Answers of JOIN, WATCH_*, ADOPT, LEAVE and HOLDER. `c` is NULL when the claim is gone. */
void claim_answered(struct claim *c, const struct operation *op, const struct event *event);
void claim_adopt(struct claim *c, struct slice name); /* UNSURE, or salvaged: reads the owner of that znode */
void claim_found(struct claim *c, struct slice name);      /* LEAVING: its create of unknown outcome made this znode */
/*
 * WAITING: a list has shown so many contenders of other hosts before it, only writers or not, and which one is before its
 * predecessor; empty: no other host's.
 */
void claim_second_listed(struct claim *c, size_t others, bool writers, struct slice ahead);

/*
 * A *next* follows a held claim that has no tokens left, without a gap: the held claim keeps other hosts out until it
 * is deleted, and *next* does so from then on, because nothing but the held claim is before it.
 *
 *   held     | means                                       | event -> next state
 *   HELD     | grants are made on it                       | no tokens left, nobody else waits, a list showed next right
 *            |                                             |   behind it -> withheld; next is HELD
 *   withheld | LEAVING, and exists: its delete waits for   | the next but one joins, so that delete, create and list go in
 *            |   another request to be sent                |   one breath; a list shows that somebody waits; the claim that
 *            |                                             |   followed it goes back, or is gone -> on its way
 *   (on its  | LEAVING as any other                        | answered -> gone; refused: it counts to the two again
 *   way)     |                                             |
 *
 * A change of the directory or a lost connection is no reason to let the withheld claim go: somebody may have deleted
 * the claim that followed it, and other hosts must be kept out until its holders are notified.
 */

/* From now on the lock's *next* is held in place of its claim. */
void claim_follow(struct directory *d);
/* The number of claims that are gone when the requests that are sent now arrive, or after claim_release(). */
size_t claim_spent_count(const struct directory *d);
/*
 * This host's grants rest on the znode of that name: it is the znode of the held claim, or of the claim that it followed:
 * other hosts may have seen that znode just before it went.
 */
bool claim_keeps_out(const struct directory *d, struct slice name);
