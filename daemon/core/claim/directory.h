/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A lock's directory: its kind and flavour, its lists, and the children watch that shows that nobody waits.
 *
 *   watch       | means                                                 | left by
 *   NONE        | it is unknown whether somebody waits                  | list with watch answered -> the next two
 *   UNCONTENDED | no event since that list, which showed no other       | event -> FIRED; or NONE while a list with
 *               |   session that conflicts with our claim               |   watch is under way; connection lost -> NONE
 *   CONTENDED   | the same; it showed one                               | likewise
 *   FIRED       | a child was made or deleted since: somebody may wait  | list with watch answered; connection lost
 *               |   now                                                 |   -> NONE
 *
 * A list with watch may be under way in each state (`watch_op`). While the watch is armed, one is sent when an operation of
 * our own will fire it: until then the older list stays true.
 * Data (record.h): kind=<word>, flavour=<word>. A directory that another library made has neither, and stays as it is.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/heap.h"
#include "base/map.h"
#include "core/claim/names.h"
#include "core/claim/sighting.h"
#include "core/claim/turn.h"
#include "core/session/operation.h"
#include "core/znode/flavour.h"
#include "protocol/bytes.h"
#include "protocol/errors.h"

/* Facts that answers have shown. The rule above acts on them when it settles the directory, before the event ends. */
enum {
	FACT_LOST = 1,    /* somebody deleted the held znode: the grants on it are void */
	FACT_MISSING = 2, /* semaphore: the directory is gone */
	FACT_COUNTED = 4, /* SLOTS: a list has shown how many `children` there are; `counted` marks our claims among them */
	FACT_FAILED = 8,  /* the requests that `failure` names cannot be served */
};

enum failed { FAILED_JOINER, FAILED_REQUESTS, FAILED_ALL }; /* the request of a new claim; all; observers, too */

struct failure {
	enum failed failed;
	enum error_code code;
	struct bytes sentence; /* a string */
};

/* Its data: not read since it was made; being read; of our kind and flavour; of another. */
enum directory_state { DIRECTORY_UNKNOWN, DIRECTORY_ASKED, DIRECTORY_FITS, DIRECTORY_MISMATCH };
enum directory_watch { WATCH_NONE, WATCH_FIRED, WATCH_UNCONTENDED, WATCH_CONTENDED };
TAILQ_HEAD(claim_list, claim);

struct directory {
	struct directories *directories;
	struct lock *lock;  /* its owner: nothing in claim/ looks at it */
	TAILQ_ENTRY(directory) touched_link;
	bool touched, later, left, refused, waits[TURNS]; /* directories.h; left, refused: lock/lock.h; waits: turn.h */
	enum flavour flavour;
	enum kind kind;
	bool part; /* it belongs to a semaphore, whose own data say the kind of what is below */
	struct claim *claim, *next;
	struct account *payer, *maker; /* payer: is charged for claims and watches (port/pools.h); lasting.h */
	size_t claim_count, children, data_bytes; /* data_bytes: a claim's znode must have room for a text of that length */
	struct claim_list leaving, slots; /* slots, SLOTS: all claims that are not LEAVING */
	struct timer timer; /* the next instant at which time alone changes something */
	struct map_node path_node;
	struct naming naming; /* names.h */
	TAILQ_ENTRY(directory) later_link, turn_links[TURNS];
	bool observed;            /* a client observes who leads: the list and the first contender are watched */
	size_t extra_watch_bytes; /* of other watches for it */
	bool privileged;          /* the client for whom more is charged next came through the operators' socket */
	struct charge watches;    /* the bytes of all its watches (charge.h) */
	size_t operations;        /* open ones; they keep the struct alive */
	int64_t pause_until_ns, verified_ns; /* nothing is sent before (jitter, a refusal); its claims were as they should be */
	unsigned int busy; /* how often ZooKeeper was since a claim was held: each pause is longer than the one before */
	bool relist, remembered; /* it is to be listed after the pause; it has claims not verified on this connection */
	enum directory_state state;
	enum directory_watch watch;
	bool was_uncontended;  /* `watch`, when the connection was lost */
	bool contended_before; /* somebody waited behind our last held claim, and probably will behind the next */
	bool tells_kind;       /* its data do; otherwise the contenders in it show as what the name is used */
	bool unverified;       /* it did not fit before: nothing is put into it until its data are read again */
	bool exhausted, unrecognized_reported; /* its numbers run out: nobody joins until it was empty and made again */
	bool wanted, wanted_watch;  /* it is to be listed when its turn comes; with the watch */
	uint64_t watch_op, list_op; /* the list with watch that is under way, 0: none; the last list sent */
	uint64_t exhausted_op;      /* the list that shows whether it is empty, or then its delete; 0: neither */
	int64_t czxid, list_bytes;  /* of the directory whose data were read; of its last list, 0: unknown */
	unsigned int facts;         /* FACT_* */
	struct failure failure; /* the first one of an event */
	struct seen seen;
	struct bytes before; /* the host that had the lock before the held claim, until a grant is made on that */
	struct ledger_lock *record; /* of its lock, in the ledger; NULL: none */
	struct bytes path;
};

/* Sends ZooKeeper an operation on the directory or on a child. The directory is kept until the answer. */
uint64_t directory_send(struct directory *d, enum effect_type type, struct operation_request *r);
uint64_t directory_send_child(struct directory *d, enum effect_type type, struct operation_request *r, struct slice child);
void directory_check(struct directory *d); /* reads the data if they are unknown */
void directory_make(struct directory *d); /* creates it (names_take()), then reads it: somebody else may have been first */
void directory_list(struct directory *d, bool watch); /* when its turn comes; with `watch`, arms the children watch */
void directory_list_wanted(struct directory *d);      /* lists it if that is wanted and its turn has come */
void directory_want_nothing(struct directory *d);
bool directory_is_listed(const struct directory *d); /* a list is under way: it shows all changes reported before it */
void directory_arm(struct directory *d);            /* lists it with watch, unless that is done or under way */
bool directory_watches(const struct directory *d);  /* there is a children watch, or one will be set */
void directory_exhaust(struct directory *d);        /* its numbers are too near the wrap: nothing more is put into it */
void directory_delete(struct directory *d, enum operation_kind kind); /* if it is empty; DIR_REMOVE: nobody here uses it */
void directory_renewed(struct directory *d);        /* it is gone, or was made again */
void directory_stay_exhausted(struct directory *d); /* somebody else is in it */
void directory_renew(struct directory *d); /* exhausted, and wanted: lists it to see whether it can be made again */
void directory_forget_watch(struct directory *d); /* somebody may wait: the watch is not relied on any longer */
void directory_suspended(struct directory *d);    /* the same: the connection is lost */
void directory_fail(struct directory *d, enum failed failed, enum error_code code, const char *sentence);
void directory_answered(const struct operation *op, const struct event *event); /* DIR_MAKE, DIR_GET, DIR_END, DIR_REMOVE */
void directory_changed(struct directory *d); /* a child was made or deleted */
