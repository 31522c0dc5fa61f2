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

#include "base/heap.h"
#include "base/map.h"
#include "core/claim/facts.h"
#include "core/claim/seen.h"
#include "core/claim/turn.h"
#include "core/session/operation.h"
#include "core/znode/flavour.h"

struct claim;
struct directories;

/* Of its data: not read yet, or it was made again; being read; of our kind and flavour; of another. */
enum directory_state { DIRECTORY_UNKNOWN, DIRECTORY_ASKED, DIRECTORY_FITS, DIRECTORY_MISMATCH };
enum directory_watch { DIRECTORY_WATCH_NONE, DIRECTORY_WATCH_ARMED, DIRECTORY_WATCH_FIRED };
TAILQ_HEAD(claim_list, claim);

struct directory {
	struct directories *directories;
	struct lock *lock;  /* whose it is: nothing in claim/ looks at it */
	struct timer timer; /* the next instant at which time alone changes something */
	struct map_node path_node;
	TAILQ_ENTRY(directory) touched_link, turn_links[TURNS];
	bool touched, waits[TURNS]; /* to be settled; to send something */
	enum flavour flavour;
	enum kind kind;
	size_t data_bytes; /* so long a text has to have room in the data of its claims' znodes */
	bool part; /* of a semaphore, whose own data say what is below */
	struct claim *claim, *next;
	struct claim_list leaving, slots; /* slots, SLOTS: all claims but those that leave */
	size_t claim_count;
	bool observed;            /* somebody watches who leads: the list and the first contender are watched */
	size_t extra_watch_bytes; /* of what else is watched for it */
	size_t watch_bytes;       /* of its watches, charge.h */
	size_t operations;        /* open ones; they keep the struct */
	int64_t pause_until_ns;   /* nothing is asked of ZooKeeper before: jitter, or it refused something */
	int64_t verified_ns;      /* when it was found out last what became of its claims */
	bool relist, remembered; /* after the pause it is to be listed; it has claims not verified on this connection */
	enum directory_state state;
	enum directory_watch watch;
	bool uncontended, was_uncontended; /* ARMED: no other session conflicts with our claim; when the connection went */
	bool contended_before; /* somebody waited behind our last held claim: most likely so he will behind the next */
	bool unverified;       /* it did not fit before: nothing is put into it until it was read again */
	bool exhausted;        /* its numbers run out: nobody joins until it was empty and made anew */
	bool unrecognized_reported; /* a child of no known kind was reported */
	bool wanted, wanted_watch;  /* it is to be listed, with watch, when its turn comes */
	uint64_t watch_op, list_op; /* the list with watch that is under way, 0: none; the last list sent */
	uint64_t exhausted_op;      /* the list that asks whether it is empty by now; 0: none, nor its deletion */
	int64_t czxid, list_bytes;  /* of the directory whose data was read; of its last list, 0: not known */
	unsigned int facts;         /* facts.h */
	size_t children;
	struct failure failure; /* the first one of an event */
	struct seen seen;
	struct bytes path;
};

/* Asks ZooKeeper something about it or what is in it: until the answer it is kept. */
uint64_t directory_send(struct directory *d, enum effect_type type, struct operation_request *r);
void directory_check(struct directory *d);            /* reads the data if they are not known */
void directory_make(struct directory *d);             /* creates it, then reads it (somebody may have been first) */
void directory_list(struct directory *d, bool watch); /* when its turn comes; with `watch`, arms the children watch */
void directory_list_wanted(struct directory *d);      /* if it is, and its turn has come */
void directory_want_nothing(struct directory *d);
/* A list that was sent after that operation is under way, or answered, or will be sent. */
bool directory_lists_after(const struct directory *d, uint64_t number);
void directory_arm(struct directory *d);            /* lists and arms it, unless that is done or under way */
bool directory_watches(const struct directory *d);  /* there is a children watch, or will be */
void directory_exhaust(struct directory *d);        /* its numbers are too near the wrap: nothing more is put into it */
void directory_end(struct directory *d);            /* it is empty: deletes it */
void directory_renewed(struct directory *d);        /* it is gone, or another one stands there */
void directory_stay_exhausted(struct directory *d); /* somebody else is in it */
void directory_renew(struct directory *d); /* exhausted, and wanted: looks whether it is empty and can be made again */
void directory_list_anew(struct directory *d);            /* reads its data again if they are not known, and lists it */
bool directory_is_uncontended(const struct directory *d); /* nobody who conflicts with our claim waits, as is known */
bool directory_is_contended(const struct directory *d);   /* it is known that somebody does */
void directory_forget_watch(struct directory *d); /* somebody may wait: the watch fired, or was never answered */
void directory_suspended(struct directory *d);    /* the same: the connection is gone */
void directory_fail(struct directory *d, enum failed failed, enum error_code code, const char *sentence);
/* Answers of DIR_MAKE, DIR_GET and DIR_END. */
void directory_answered(const struct operation *op, const struct event *event);
void directory_changed(struct directory *d); /* something was made or deleted in it */
