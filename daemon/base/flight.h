/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The flight recorder: a ring in memory of what has happened lately, also of what the log does not show. A record has a
 * fixed size, and is no text yet, so that writing one costs a few dozen instructions; what happens with every request is
 * not recorded. `lockbroker log` shows it, and the handler of crashes writes it into the log (io/crash.h).
 *
 * Pure: the caller has the clock. The ring has no pointers into anything else, so that it can be read at any time.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "protocol/slice.h"

/* Kind, sentence, the keys of the two numbers, the key of the text; "": it is not shown. */
#define FLIGHT_KINDS(X) \
	X(log, "", "", "", \
	  "") /* a line of the log, shown or not: `who` is its enum log_event, the text its sentence */ \
	X(client_connected, "a client connected", "client", "uid", "command") \
	X(client_gone, "a client is gone", "client", "uid", "command") \
	X(refused, "a request was refused", "client", "times", "why") \
	X(claim_joining, "this host queues for a lock", "claim", "", "path") \
	X(claim_waiting, "this host waits for a lock", "claim", "", "path") \
	X(claim_held, "this host holds a lock", "claim", "", "path") \
	X(claim_leaving, "this host gives a lock back", "claim", "", "path") \
	X(claim_unsure, "it is not known what became of a znode", "claim", "", "path") \
	X(hand_off, "a lock was handed on within this host", "claim", "handoffs", "name") \
	X(grant_lost, "a grant was lost", "client", "token", "name") \
	X(operation_failed, "an operation of ZooKeeper failed", "operation", "kind", "why")

enum flight_kind {
#define X(name, sentence, who, number, text) FLIGHT_##name,
	FLIGHT_KINDS(X)
#undef X
		FLIGHT_KIND_COUNT
};

enum { FLIGHT_TEXT_MAX = 100, FLIGHT_LINE_MAX = 640 };

struct flight_record {
	int64_t at_ns; /* 0: nothing is recorded here */
	int64_t who, number;
	uint16_t kind, len;         /* of the text */
	char text[FLIGHT_TEXT_MAX]; /* what is longer is cut */
};

struct flight_ring {
	size_t size;     /* records */
	uint64_t next;   /* the number of the next one; it is at `next` modulo `size` */
	int64_t wall_ns; /* since 1970, at the instant 0 of the clock */
	struct flight_record records[];
};

/* Of so many bytes at most; NULL if that is too little for one record. `wall_ns` as in struct flight. */
struct flight_ring *flight_new(size_t bytes, int64_t wall_ns);
void flight_free(struct flight_ring *f);
/* `f` may be NULL: then nothing is recorded. */
void flight_note(struct flight_ring *f, enum flight_kind kind, int64_t at_ns, int64_t who, int64_t number,
		 struct slice text);
/* Its number says how many times the same has happened in a row: a client that is refused again and again is one record. */
void flight_note_again(struct flight_ring *f, enum flight_kind kind, int64_t at_ns, int64_t who, struct slice text);
/* The number of the oldest record that is still there. */
uint64_t flight_oldest(const struct flight_ring *f);
/*
 * The record of that number as a line of the form of the log, without a newline; its length, 0 if it is not there. It
 * calls nothing that may not be called in the handler of a signal.
 */
size_t flight_line(const struct flight_ring *f, uint64_t number, char line[FLIGHT_LINE_MAX]);
