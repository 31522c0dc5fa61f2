/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A handle and its connection: bytes in and out, whole messages, deadlines. One request is waited for at a time; before
 * its answer come those of the unlocks that were not waited for, and what is no answer is a push, kept for lb_event().
 * Input stays in `in` until the next call, because replies point into it. Once anything went wrong with the stream the
 * descriptor is closed: an answer could no longer be told from that of an earlier request. Not part of the public
 * interface.
 */
#pragma once

#include "held.h"
#include "lockbroker.h"
#include "protocol/bytes.h"
#include "protocol/limits.h"
#include "protocol/name.h"
#include "protocol/resp.h"

/* Unlocks on the wire whose answers nobody has waited for: with names of any length, far less than a socket holds. */
enum { WIRE_UNLOCKS_MAX = 16 };

enum { WIRE_VALUES_MAX = 16 * 1024 * 1024, WIRE_REPLY_BYTES_MAX = 256 * 1024 * 1024 };

#define WIRE_FOREVER INT64_MAX

struct lb {
	int fd; /* -1: closed, and `end` says why */
	int64_t patience_ms;
	struct bytes in;
	size_t reply_bytes; /* the first bytes of `in` are the last reply; dropped when the next call begins */
	struct resp_replies replies;
	struct bytes out;
	struct bytes events;                        /* whole pushes, oldest first */
	struct holdings holdings;
	bool waits_for_unlock;                      /* lb_set_deferred(): off */
	int unlocks;                                /* not answered yet */
	struct bytes unlock_names;                  /* theirs, NUL-terminated, oldest first */
	struct bytes late_error, late_name;         /* the first of them that failed, until a call has said so */
	char name[NAME_BYTES_MAX + 1], reason[256], data[LIMIT_DATA_BYTES_MAX + 1]; /* of the last event */
	char error[512], end[512];
};

/* The clock of the deadlines. */
int64_t wire_now_ms(void);
/* The instant that many milliseconds from now; negative: never. */
int64_t wire_deadline(int64_t ms);
/* Keeps the sentence for lb_error() and returns `result`. */
enum lb_result wire_fail(struct lb *lb, enum lb_result result, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* Closes; `error` is an errno, or 0. LB_CONNECTION. */
enum lb_result wire_hang_up(struct lb *lb, const char *why, int error);
/* Takes the first n bytes away. */
void wire_drop(struct bytes *b, size_t n);
/* Before each call: forgets the last reply. LB_CONNECTION when the connection is closed. */
enum lb_result wire_begin(struct lb *lb);
/* Sends `out`, with patience. LB_NONE: the daemon takes no more; what it has said before is still to be read. */
enum lb_result wire_send(struct lb *lb);
/*
 * Takes one message off the input, waiting for it. LB_OK: *ret_push tells which kind; a push went to `events`, a
 * reply stands in `replies` and `reply_bytes`. LB_NONE: `deadline` passed. Answers to unlocks are taken on the way.
 */
enum lb_result wire_read(struct lb *lb, int64_t deadline, bool *ret_push);
