/* SPDX-License-Identifier: Apache-2.0 */
/* What ZooKeeper is asked: the kind, who acts on the answer (route.c), and what a refusal is called (health.h). */
#pragma once

/* clang-format off */
#define OPERATION_KINDS(X) \
	X(PATH, PRESENCE, "make the directories of all locks") /* create a parent of everything */ \
	X(BEAT, PRESENCE, "announce this host") /* create or set this host's own znode: the heartbeat */ \
	X(DUPLICATE, PRESENCE, "read who announced this host's name") /* get that znode, which another session made */ \
	X(TRY, PRESENCE, "make a znode for whatever lock") /* create one below the root: can any be made (health.h)? */ \
	X(TRY_END, PRESENCE, "delete the znode of a try") /* and delete it */ \
	X(DIR_MAKE, DIRECTORY, "make") /* create a lock's directory */ \
	X(DIR_GET, DIRECTORY, "read") /* get its data: kind and flavour */ \
	X(DIR_END, DIRECTORY, "delete") /* delete it: its numbers run out and it is empty */ \
	X(DIR_REMOVE, DIRECTORY, "delete") /* delete it, if it is empty: nobody here has used it for long */ \
	X(LIST, LISTING, "list") /* list it */ \
	X(JOIN, CLAIM, "create a znode in") /* create a claim's znode */ \
	X(LOOK_OWN, LOOK, "read a znode of") /* get a waiting claim's own znode (look.h), */ \
	X(LOOK_PRED, LOOK, "read a znode of") /* and its predecessor */ \
	X(WATCH_PRED, CLAIM, "read a znode of") /* get and watch the predecessor that a claim waits for */ \
	X(WATCH_OWN, CLAIM, "read a znode of") /* get and watch a claim's own znode */ \
	X(WATCH_AHEAD, CLAIM, "read a znode of") /* get and watch the one before that predecessor (second.h) */ \
	X(ADOPT, CLAIM, "read a znode of") /* get a znode that a create of unknown outcome left */ \
	X(LEAVE, CLAIM, "delete a znode of") /* delete a claim's znode */ \
	X(HOLDER, CLAIM, "describe a holder in") /* set the data of a held claim's znode */ \
	X(PROCLAIM, KIND, "write who leads in") /* the same, of an election: who is to lead (election.h) */ \
	X(OBSERVE_LIST, KIND, "show who leads in") /* list an election's directory (observe.h) */ \
	X(OBSERVE_GET, KIND, "show who leads in") /* get and watch its first contender */ \
	X(SEMAPHORE_GET, KIND, "read the limit of") /* get and watch the data of a semaphore: its limit */ \
	X(SEMAPHORE_WRITE, KIND, "make a semaphore") /* make it or one of its directories, or set its limit */ \
	X(LIMIT_GET, LIMIT, "read or set a limit") /* get a semaphore's data for LIMIT */ \
	X(LIMIT_SET, LIMIT, "read or set a limit") /* set them for LIMIT */ \
	X(QUERY_LIST, QUERY, "say what was asked about other hosts") /* list a directory for a query (query.h) */ \
	X(QUERY_GET, QUERY, "say what was asked about other hosts") /* get what such a list showed */ \
	X(QUERY_WRITE, QUERY, "say what was asked about other hosts") /* a write without effect, before such a list */ \
	X(AUDIT_ROOT, AUDIT, "show a directory to an audit") /* list what is below a root */ \
	X(AUDIT_DATA, AUDIT, "show a directory to an audit") /* get the data of a directory there: its kind and flavour */ \
	X(AUDIT_LIST, AUDIT, "show a directory to an audit") /* list it */ \
	X(AUDIT_DELETE, AUDIT, "delete an orphaned znode") /* delete an orphan in it, whose lock is not known */ \
	X(INBOX_LIST, INBOX, "let this host read its mail") /* list this host's mailbox, with a children watch */ \
	X(INBOX_GET, INBOX, "let this host read its mail") /* get a letter, */ \
	X(INBOX_DELETE, INBOX, "let this host read its mail") /* and delete it: both are sent together */ \
	X(LETTER_POST, OUTBOX, "pass a letter to another host") /* create a letter in another host's mailbox */ \
	X(LETTER_WITHDRAW, OUTBOX, "pass a letter to another host") /* delete it, if nobody has read it */ \
	X(REVOCATION_DELETE, REVOCATION, "delete the znode of a holder that does not answer") \
	X(CENSUS_LIST, CENSUS, "show which locks there are") /* list what is below a root, for LOCKS ... ALL (census.h) */
/* clang-format on */

enum operation_kind {
#define X(name, owner, words) OPERATION_##name,
	OPERATION_KINDS(X)
#undef X
};

#define X(name, owner, words) +1
enum { OPERATION_KIND_COUNT = 0 OPERATION_KINDS(X) };
#undef X
