/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The flight recorder: a ring in memory of the latest events, also of events that the log does not show. A record is not
 * formatted yet, so that writing one costs about a hundred instructions; events of every request are not recorded.
 * `lockbroker log` shows it, and the handler of crashes writes it into the log (io/crash.h).
 *
 * The ring is of bytes: a record takes 32 bytes and its text, and one that comes to the end of the ring goes on at its
 * beginning. A new record takes the place of as many of the oldest ones as it needs. A text may be as long as a sentence
 * of the log; a longer one ends with "...".
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

enum { FLIGHT_TEXT_MAX = 2048, FLIGHT_LINE_MAX = 4 * FLIGHT_TEXT_MAX + 256 };

/* Its text stands behind it. */
struct flight_record {
	int64_t at_ns;
	int64_t who, number;
	uint16_t kind, len; /* of the text */
};

struct flight_ring {
	size_t size;             /* of `bytes` */
	uint64_t oldest, next;   /* the numbers of the oldest record, and of the next one */
	uint64_t first, last, end; /* places, modulo `size`: where the oldest and the newest one begin, and the end */
	int64_t wall_ns;         /* since 1970, at the instant 0 of the clock */
	char bytes[];
};

/* Of so many bytes at most; NULL if that is too little for the longest record. `wall_ns` as in struct flight_ring. */
struct flight_ring *flight_new(size_t bytes, int64_t wall_ns);
void flight_free(struct flight_ring *f);
/* `f` may be NULL: then nothing is recorded. */
void flight_note(struct flight_ring *f, enum flight_kind kind, int64_t at_ns, int64_t who, int64_t number,
		 struct slice text);
/* Its number says how many times the same has happened in a row: a client that is refused again and again is one record. */
void flight_note_again(struct flight_ring *f, enum flight_kind kind, int64_t at_ns, int64_t who, struct slice text);

/* Reads records, the oldest first. Nothing may be recorded until it is through. */
struct flight_reader {
	const struct flight_ring *ring;
	uint64_t left, at; /* records; where the next one begins */
};

/* Of the latest `most` records, or of all that are there; of none if `f` is NULL. */
struct flight_reader flight_read(const struct flight_ring *f, uint64_t most);
/*
 * The next record as a line of the form of the log, without a newline; its length, 0 if there is none. Neither calls
 * anything that may not be called in the handler of a signal.
 */
size_t flight_line(struct flight_reader *reader, char line[FLIGHT_LINE_MAX]);
