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

#include "core/claim/child.h"
#include "core/port/event.h"
#include "core/znode/flavour.h"
#include "core/znode/kind.h"
#include "core/znode/mode.h"
#include "protocol/bytes.h"

struct locks;
struct claim;
struct lock;
struct operation;

enum directory_state {
	DIRECTORY_UNKNOWN, /* its data was not read yet, or it was made anew */
	DIRECTORY_ASKED,   /* being read */
	DIRECTORY_FITS,
	DIRECTORY_MISMATCH,
};

enum directory_watch { DIRECTORY_WATCH_NONE, DIRECTORY_WATCH_ARMED, DIRECTORY_WATCH_FIRED };

struct directory {
	enum directory_state state;
	enum directory_watch watch;
	bool uncontended;  /* ARMED: no contender of another session conflicts with our claim */
	bool was_uncontended;    /* it was ARMED and quiet when the connection went */
	bool contended_before;  /* somebody waited behind our last held claim: most likely so he will behind the next */
	bool unverified;   /* it did not fit before: nothing is put into it until it was read again */
	bool exhausted;    /* its numbers run out: nobody joins until it was empty and made anew */
	bool unrecognized_reported; /* a child of no known kind was reported */
	bool wanted, wanted_watch; /* it is to be listed, with watch, when its turn comes */
	uint64_t watch_op; /* the list with watch that is under way; 0: none */
	uint64_t list_op;  /* the last list sent */
	uint64_t exhausted_op;  /* the list that asks whether it is empty by now; 0: none, nor its deletion */
	int64_t czxid;     /* of the directory whose data was read */
	int64_t list_bytes; /* of its last list; 0: not known */
	struct bytes path;
};

/* Made for that kind, or by software that does not say. */
bool directory_data_fits(enum kind kind, enum flavour flavour, struct slice data);
void directory_check(struct lock *lock);            /* reads the data if they are not known */
void directory_make(struct lock *lock);             /* creates it, then reads it (somebody may have been first) */
void directory_list(struct lock *lock, bool watch); /* when its turn comes; with `watch`, arms the children watch */
void directory_list_wanted(struct lock *lock);      /* if it is, and its turn has come */
void directory_want_nothing(struct lock *lock);
/* A list that was sent after that operation is under way, or answered, or will be sent. */
bool directory_lists_after(const struct directory *d, uint64_t number);
void directory_arm(struct lock *lock);              /* lists and arms it, unless that is done or under way */
bool directory_watches(const struct directory *d);  /* there is a children watch, or will be */
/* Its numbers are too near the wrap: nothing more is put into it. */
void directory_exhaust(struct lock *lock);
/* Worn, and wanted: looks whether it can be made anew. Requests fail when somebody else is in it. */
void directory_renew(struct lock *lock);
/* Reads its data again if they are not known, and lists it. */
void directory_list_anew(struct lock *lock);
/* The predecessor is no more: the list alone says who is first now, and whether our own znode still stands. */
void directory_pred_gone(struct claim *c);
/* It is known that nobody who conflicts with our claim waits; that somebody does. */
bool directory_is_uncontended(const struct directory *d);
bool directory_is_contended(const struct directory *d);
/* Somebody may wait: the watch fired, or was never answered. */
void directory_forget_watch(struct lock *lock);
void directory_suspended(struct lock *lock); /* the same: the connection is gone */
/* Answers of DIR_MAKE, DIR_GET, DIR_END and LIST. */
void directory_answered(const struct operation *op, uint64_t number, const struct event *event);
/* Something was made or deleted in it. */
void directory_changed(struct directory *d);
/* What the claim watches, of that name, was deleted or written: its predecessor or its own znode. */
void directory_child_watched(struct claim *c, enum zk_watch type, struct slice child);
