/* SPDX-License-Identifier: Apache-2.0 */
/* What is asked of ZooKeeper, by what the answer is for: that says who gets it (operation.c). */
#pragma once

enum operation_kind {
	OPERATION_PATH,     /* create a parent of everything */
	OPERATION_BEAT,     /* create or set this host's own znode: the heartbeat */
	OPERATION_DUPLICATE,    /* get it, somebody else made it */
	OPERATION_DIR_MAKE, /* create a lock's directory */
	OPERATION_DIR_GET,  /* get its data: kind and flavour */
	OPERATION_JOIN,     /* create a claim's znode */
	OPERATION_DIR_END,  /* delete a lock's directory: its numbers ran out and it is empty */
	OPERATION_LIST,     /* list a lock's directory */
	OPERATION_LOOK_OWN,   /* get a waiting claim's own znode (look.h), */
	OPERATION_LOOK_PRED,  /* and its predecessor */
	OPERATION_WATCH_PRED, /* get-and-watch the predecessor a claim waits for */
	OPERATION_WATCH_OWN,  /* get-and-watch a held claim's own znode */
	OPERATION_ADOPT,    /* get a znode that a create of unknown outcome left */
	OPERATION_LEAVE,    /* delete a claim's znode */
	OPERATION_HOLDER,   /* set the data of a held claim's znode */
	OPERATION_PROCLAIM, /* the same, of an election: who is to lead (election.h) */
	OPERATION_SEMAPHORE_GET, /* get-and-watch the data of a semaphore: its limit */
	OPERATION_SEMAPHORE_WRITE, /* make it or one of its directories, or set its limit */
	OPERATION_LIMIT_GET, /* get a semaphore's data for LIMIT */
	OPERATION_LIMIT_SET, /* set them for LIMIT */
	OPERATION_OBSERVE_LIST, /* list an election's directory (observe.h) */
	OPERATION_OBSERVE_GET,  /* get-and-watch its first contender */
	OPERATION_QUERY_LIST, /* list a directory for a query (query.h) */
	OPERATION_QUERY_GET,  /* get what such a list showed */
	OPERATION_AUDIT_ROOT, /* list what is below a root */
	OPERATION_AUDIT_DATA, /* get the data of a directory there: its kind and flavour */
	OPERATION_AUDIT_LIST, /* list it */
	OPERATION_AUDIT_DELETE, /* delete a stray in it, whose lock is not known */
	OPERATION_INBOX_LIST,  /* list this host's mailbox, with a children watch */
	OPERATION_INBOX_GET,   /* get a letter, */
	OPERATION_INBOX_DELETE, /* and delete it: sent in one breath */
	OPERATION_LETTER_POST, /* create a letter in another host's mailbox */
	OPERATION_LETTER_WITHDRAW, /* delete it, if nobody has read it */
	OPERATION_REVOCATION_DELETE, /* delete the znode of a holder whose host does not answer */
};

enum { OPERATION_KINDS = OPERATION_REVOCATION_DELETE + 1 };
