/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How much may be open at ZooKeeper: as much as is answered in a 24th of T, and in the time that a write takes, so that
 * a heartbeat or a delete never waits for long behind what was asked before it.
 *
 * Three gauges: bytes, reads and writes, for a link, a server and its disk each have a speed of their own. What is
 * answered between the sending of an operation and its answer shows how fast the connection is: in that time so much
 * went through. A gauge grows to what would go through in time at that speed, but to no more than twice what did; it
 * shrinks when an answer took longer than it should have, and slowly while it is not made use of. So little that no
 * connection would be slow because of it may always be open, and one operation, however large.
 *
 * Bytes are those of requests and of answers, and of an answer what is to be expected of it (operation.c).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum window_gauge { WINDOW_BYTES, WINDOW_READS, WINDOW_WRITES, WINDOW_GAUGES };

enum {
	/* A connection begins with these; they are soon twice as much, and again, if it is faster. */
	WINDOW_FIRST_BYTES = 16384,
	WINDOW_FIRST_COUNT = 64,
	/* If so little is open and an answer still takes long, that has another reason. */
	WINDOW_LEAST_BYTES = 4096,
	WINDOW_LEAST_COUNT = 8,
};

struct window {
	int64_t open[WINDOW_GAUGES];     /* sent and not answered */
	int64_t size[WINDOW_GAUGES];     /* what may be open */
	int64_t answered[WINDOW_GAUGES]; /* ever, on this connection */
	int64_t used_ns[WINDOW_GAUGES];  /* when at least half of it was made use of */
	int64_t trip_ns;                 /* the shortest time from a write to its answer; INT64_MAX: none yet */
};

/* Of an operation that is open. */
struct flight {
	int64_t bytes;
	bool write;
	int64_t sent_ns;
	int64_t answered[WINDOW_GAUGES]; /* before it was sent */
};

void window_begin(struct window *w, int64_t now_ns); /* a connection begins, or is gone: nothing is open */
/* flight: bytes, write and sent_ns are given. */
void window_sent(struct window *w, struct flight *flight);
void window_answered(struct window *w, const struct flight *flight, int64_t now_ns, int64_t timeout_ns);
bool window_has_room(const struct window *w);                       /* one more operation may be sent */
int64_t window_span_ns(const struct window *w, int64_t timeout_ns); /* in so long what fills the window is answered */
