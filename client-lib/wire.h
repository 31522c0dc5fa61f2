/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A handle and its connection: bytes in and out, whole messages, deadlines. A call waits for the answer to one request
 * at a time. Answers that no call waits for come before it: to unlocks, and to the question where the session page is
 * after a crash of the daemon. Any other message is a push, kept for lb_event(). Input stays in `in` until the next
 * call, because replies point into it. After any error in the stream the descriptor is closed, because an answer could
 * be taken for the answer to another request. Not part of the public interface.
 */
#pragma once

#include "delegations.h"
#include "held.h"
#include "lockbroker.h"
#include "protocol/bytes.h"
#include "protocol/limits.h"
#include "protocol/name.h"
#include "protocol/resp.h"

/* Unlocks whose answers were not waited for: with names of any length, these are far fewer bytes than a socket holds. */
enum { WIRE_UNLOCKS_MAX = 16 };

enum { WIRE_VALUES_MAX = 16 * 1024 * 1024, WIRE_REPLY_BYTES_MAX = 256 * 1024 * 1024 };

#define WIRE_FOREVER INT64_MAX

struct lb {
	int fd; /* -1: closed, and `end` has the reason */
	uint64_t ends;      /* how many connections have ended */
	bool ended;         /* the daemon closed the last connection, rather than we */
	bool refused;       /* a socket is there, and nobody listened at the last attempt to connect */
	bool reconnects;    /* a call that finds the connection closed makes a new one */
	char *path;         /* of the socket */
	const char *remedy; /* a sentence: the remedy if nobody listens there */
	const char *label, *owner; /* that request_connect() gives the connection; NULL: none */
	void (*waiting)(void *context); /* called while a call waits for an answer, every waiting_ms; NULL: nothing is */
	void *waiting_context;
	int waiting_ms;
	int64_t patience_ms;
	struct bytes in;
	size_t reply_bytes; /* the first bytes of `in` are the latest reply; they are dropped when the next call begins */
	struct resp_replies replies;
	struct bytes out;
	struct bytes events;                        /* whole pushes, oldest first */
	struct holdings holdings;
	struct delegations delegations;
	bool takes_fd;                              /* the answer that is awaited may bring a descriptor */
	int taken_fd;                               /* which it brought; -1: none */
	bool waits_for_unlock;                      /* lb_set_deferred(): off */
	int unlocks;                                /* not answered yet */
	bool asks_page;                             /* neither is the question for the page */
	/*
	 * The names of these unlocks, NUL-terminated, and an empty one for that question, in the order of the answers.
	 */
	struct bytes unanswered;
	struct bytes late_error, late_name;         /* of the first of them that failed, until a call has reported it */
	char name[NAME_BYTES_MAX + 1], reason[256], data[LIMIT_DATA_BYTES_MAX + 1]; /* of the latest event */
	char error[512], end[512];
};

/* The clock of the deadlines. */
int64_t wire_now_ms(void);
/* The instant that many milliseconds from now; negative: never. */
int64_t wire_deadline(int64_t ms);
/* Of a text that may have been cut: takes away the beginning of a character at its end. */
void wire_whole_characters(char *text);
/* Keeps the sentence for lb_error() and returns `result`. */
enum lb_result wire_fail(struct lb *lb, enum lb_result result, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/*
 * Closes the connection: its locks are lost, and `events` reports that. `error` is an errno, or 0. LB_CONNECTION.
 */
enum lb_result wire_hang_up(struct lb *lb, const char *why, int error);
/* Removes the first n bytes. */
void wire_drop(struct bytes *b, size_t n);
/* To be called first in each call: forgets the last reply. LB_CONNECTION if the connection is closed. */
enum lb_result wire_begin(struct lb *lb);
/* Sends `out`, with patience. LB_NONE: the daemon accepts no more; its earlier messages can still be read. */
enum lb_result wire_send(struct lb *lb);
/*
 * Takes one message off the input, waiting for it. LB_OK: *ret_push tells its kind; a push was appended to `events`, a
 * reply is in `replies` and `reply_bytes`. LB_NONE: `deadline` passed. Answers that nobody waits for are consumed on the
 * way.
 */
enum lb_result wire_read(struct lb *lb, int64_t deadline, bool *ret_push);

/* Waits for one more push, which is appended to `events`. LB_OK; LB_NONE: `deadline` passed; LB_CONNECTION. */
enum lb_result wire_read_push(struct lb *lb, int64_t deadline);

/* Maps the session page, whose path and id are in the daemon's answer to HELLO, which was read last: no question is open. */
void wire_map_page(struct lb *lb);
/*
 * If the page has moved: adds the question where it is to `out`, unless it was asked already. Its answer is taken before
 * that to whatever is added after it.
 */
void wire_add_question(struct lb *lb);
/* Sends that question. It waits for no answer. */
enum lb_result wire_ask_page(struct lb *lb);
