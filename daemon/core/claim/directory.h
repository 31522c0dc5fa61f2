/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A lock's directory: its kind and flavour, its lists, and the children watch that "nobody waits" rests on.
 *
 *   watch  | means                                              | left by
 *   NONE   | not known whether somebody waits                   | list with watch answered -> ARMED
 *   ARMED  | no event since that list: `quiet` says what it saw | event -> FIRED; or NONE if a list with watch is under
 *          |                                                    |   way; connection lost -> NONE
 *   FIRED  | something was made or deleted since: perhaps       | list with watch answered -> ARMED; connection lost
 *          |   somebody came                                    |   -> NONE
 *
 * A list with watch may be under way in each of them (`watch_op`). One that is asked for while ARMED is to be there when
 * a deed of our own fires the watch: until then the older list is as true as it was.
 *
 * Data (record.h): kind=<word>, flavour=<word>. What another library made says nothing about either, and is not touched.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/map.h"
#include "base/queue.h"
#include "core/claim/seen.h"
#include "core/claim/turn.h"
#include "core/port/event.h"
#include "core/session/operation.h"
#include "core/znode/flavour.h"
#include "core/znode/kind.h"
#include "core/znode/mode.h"
#include "protocol/bytes.h"
#include "protocol/errors.h"

struct claim;
struct directories;

enum directory_state {
	DIRECTORY_UNKNOWN, /* its data was not read yet, or it was made anew */
	DIRECTORY_ASKED,   /* being read */
	DIRECTORY_FITS,
	DIRECTORY_MISMATCH,
};

enum directory_watch { DIRECTORY_WATCH_NONE, DIRECTORY_WATCH_ARMED, DIRECTORY_WATCH_FIRED };

TAILQ_HEAD(claim_list, claim);

/* What answers have shown, for the rule above to act on when it settles the directory: never kept beyond the event. */
enum {
	FACT_LOST = 1,    /* somebody deleted the held znode: what was granted on it is void */
	FACT_MISSING = 2, /* of a semaphore: the directory is gone */
	FACT_COUNTED = 4, /* SLOTS: it was listed, and has so many `children`; which claims are among them, they say */
	FACT_FAILED = 8,  /* those whom `failure` names cannot be served */
};

enum failed { FAILED_JOINER, FAILED_REQUESTS, FAILED_ALL }; /* for whom a claim was made; all; and observers, too */

struct failure {
	enum failed failed;
	enum error_code code;
	struct bytes sentence; /* a string */
};

struct directory {
	struct directories *directories;
	struct map_node path_node;
	TAILQ_ENTRY(directory) touched_link, turn_links[TURNS];
	bool touched;      /* to be settled */
	bool waits[TURNS]; /* to send something */
	enum flavour flavour;
	enum kind kind;
	bool part; /* of a semaphore, whose own data say what is below */
	struct claim *claim, *next;
	struct claim_list slots; /* SLOTS: all claims but those that leave */
	struct claim_list leaving;
	size_t claim_count;
	bool observed;            /* somebody watches who leads: the list and the first contender are watched */
	size_t extra_watch_bytes; /* of what else is watched for it */
	size_t watch_bytes;       /* of its watches, budget.h */
	size_t operations;        /* open ones; they keep the struct */
	int64_t pause_until_ns;   /* nothing is asked of ZooKeeper before: jitter, or it refused something */
	int64_t verified_ns;      /* when it was found out last what became of its claims */
	bool relist;              /* after the pause it is to be listed */
	bool remembered;          /* it has claims from before the connection: not verified on this one yet */
	enum directory_state state;
	enum directory_watch watch;
	bool uncontended;      /* ARMED: no contender of another session conflicts with our claim */
	bool was_uncontended;  /* it was ARMED and quiet when the connection went */
	bool contended_before; /* somebody waited behind our last held claim: most likely so he will behind the next */
	bool unverified;       /* it did not fit before: nothing is put into it until it was read again */
	bool exhausted;        /* its numbers run out: nobody joins until it was empty and made anew */
	bool unrecognized_reported; /* a child of no known kind was reported */
	bool wanted, wanted_watch;  /* it is to be listed, with watch, when its turn comes */
	uint64_t watch_op;          /* the list with watch that is under way; 0: none */
	uint64_t list_op;           /* the last list sent */
	uint64_t exhausted_op;      /* the list that asks whether it is empty by now; 0: none, nor its deletion */
	int64_t czxid;              /* of the directory whose data was read */
	int64_t list_bytes;         /* of its last list; 0: not known */
	unsigned int facts;
	size_t children;
	struct failure failure;
	struct seen seen;
	struct bytes path;
};

void directory_init(struct directory *d, struct directories *all);
void directory_deinit(struct directory *d);
/* Its path is known: it can be found from now on. */
void directory_add(struct directory *d);
struct directory *directory_find(const struct directories *all, struct slice path);
void directory_touch(struct directory *d);   /* to be settled before the event ends */
void directory_untouch(struct directory *d); /* of a touched one: what touched it is settled */
/* What became of its claims is not known, or was found out now. */
void directory_remember(struct directory *d, bool remembered);
void directory_verified(struct directory *d);
void directory_pause(struct directory *d, int64_t pause_ns); /* nothing is asked of ZooKeeper for it for that long */
bool directory_may_send(const struct directory *d);          /* there is a connection, and no pause */
/* Asks ZooKeeper something about it or what is in it: until the answer it is kept. */
uint64_t directory_send(struct directory *d, enum effect_type type, struct operation_request *r);
/* Made for that kind, or by software that does not say. */
bool directory_data_fits(enum kind kind, enum flavour flavour, struct slice data);
void directory_check(struct directory *d);            /* reads the data if they are not known */
void directory_make(struct directory *d);             /* creates it, then reads it (somebody may have been first) */
void directory_list(struct directory *d, bool watch); /* when its turn comes; with `watch`, arms the children watch */
void directory_list_wanted(struct directory *d);      /* if it is, and its turn has come */
void directory_want_nothing(struct directory *d);
/* A list that was sent after that operation is under way, or answered, or will be sent. */
bool directory_lists_after(const struct directory *d, uint64_t number);
void directory_arm(struct directory *d);           /* lists and arms it, unless that is done or under way */
bool directory_watches(const struct directory *d); /* there is a children watch, or will be */
/* Its numbers are too near the wrap: nothing more is put into it. */
void directory_exhaust(struct directory *d);
void directory_end(struct directory *d);            /* it is empty: deletes it */
void directory_renewed(struct directory *d);        /* it is gone, or another one stands there */
void directory_stay_exhausted(struct directory *d); /* somebody else is in it */
/* Worn, and wanted: looks whether it can be made anew. Requests fail when somebody else is in it. */
void directory_renew(struct directory *d);
/* Reads its data again if they are not known, and lists it. */
void directory_list_anew(struct directory *d);
/* It is known that nobody who conflicts with our claim waits; that somebody does. */
bool directory_is_uncontended(const struct directory *d);
bool directory_is_contended(const struct directory *d);
/* Somebody may wait: the watch fired, or was never answered. */
void directory_forget_watch(struct directory *d);
void directory_suspended(struct directory *d); /* the same: the connection is gone */
/* Notes why those cannot be served, unless it is known already. */
void directory_fail(struct directory *d, enum failed failed, enum error_code code, const char *sentence);
/* Answers of DIR_MAKE, DIR_GET and DIR_END. */
void directory_answered(const struct operation *op, const struct event *event);
/* Something was made or deleted in it. */
void directory_changed(struct directory *d);
