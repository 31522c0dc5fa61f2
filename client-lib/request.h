/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A request in words, and its one answer: the building blocks of the calls in lock.c, event.c and election.c. Not
 * part of the public interface.
 *
 * All functions return LB_OK or the result of the call, and keep the sentence for lb_error().
 */
#pragma once

#include "wire.h"

/* The most that a request has besides names: ACQUIRE name LIMIT n COUNT k WAIT ms LEASE ms, for example. */
enum { REQUEST_WORDS_MAX = LIMIT_NAMES_MAX + 12, REQUEST_NUMBERS_MAX = 4 };

/* The digits of numbers are in the request itself, so it must not be moved. */
struct request {
	struct slice words[REQUEST_WORDS_MAX];
	size_t count;
	size_t first, names; /* the words that name locks whose loss this call has to report */
	char digits[REQUEST_NUMBERS_MAX][24];
	size_t numbers;
	size_t wait;         /* the word after WAIT; 0: there is none */
	char *wait_digits;   /* its text */
	int64_t timeout_ms, lease_ms;
	/* Private. */
	int64_t ended_ms, give_up_ms; /* when a connection ended under this request; 0: none did */
};

void request_begin(struct request *r, const char *command);
/* COMMAND name; and the same where the call reports the loss of that lock. */
void request_about(struct request *r, const char *command, const char *name);
void request_name(struct request *r, const char *command, const char *name);
void request_add(struct request *r, struct slice word);
/* `word` (NULL: none), and the digits. */
void request_add_number(struct request *r, const char *word, int64_t number);
/* The time to wait, unless there is no limit; more than a year counts as a year. */
void request_add_wait(struct request *r, int64_t timeout_ms);
/* Adds SHARED, WAIT, LEASE and DATA (NULL: none of them). LB_REFUSED: an unknown option is set. */
enum lb_result request_options(struct lb *lb, struct request *r, const struct lb_options *options);
/* COMMAND name, and the options. */
enum lb_result request_fill(struct lb *lb, struct request *r, const char *command, const char *name,
			    const struct lb_options *options);

/* Until when an answer may come that is due at `end`, by the clock of the deadlines. */
int64_t request_answer_by(const struct lb *lb, int64_t end);
/*
 * Connects to lb->path and greets the daemon, within the patience. LB_OK; otherwise the handle has no connection.
 */
enum lb_result request_connect(struct lb *lb);
/* The same until `deadline`, again and again while no daemon serves the socket, or one that is stopping. */
enum lb_result request_reconnect(struct lb *lb, int64_t deadline);
/*
 * After request_connect() has failed with `r`: the same if the daemon is just being started again, because the socket is
 * there, or the connection was ended at once. Otherwise, and if `deadline` has passed, `r`.
 */
enum lb_result request_await(struct lb *lb, enum lb_result r, int64_t deadline);

/* The same if the answer is an integer. */
enum lb_result request_ask_integer(struct lb *lb, size_t argc, const struct slice *argv, int64_t *ret);
/*
 * Makes the request, and makes it again, with the rest of its WAIT, if its connection ends: the first request ended
 * with the connection, so that no lock is taken twice. The answer must come within `wait_ms` (negative: no time limit)
 * plus the patience. LB_LOST, once: one of the locks that it names was held through a connection that ended.
 */
enum lb_result request_make(struct lb *lb, struct request *r, int64_t wait_ms);
/* The same if the answer is an integer that comes at once. */
enum lb_result request_make_integer(struct lb *lb, struct request *r, int64_t *ret);
/* Reads the messages that the daemon has sent so far, without waiting for more. */
enum lb_result request_read_events(struct lb *lb);
/* LB_REFUSED: the answer has a form that this command does not have. */
enum lb_result request_unexpected(struct lb *lb, const char *command);
/* Reports, once, the failure of an unlock that was not waited for. LB_OK: none failed. */
enum lb_result request_late_failure(struct lb *lb);

/* The result that belongs to a code of PROTOCOL.md; false if the library does not know the code. */
bool request_result_of(struct slice code, enum lb_result *ret);
/* The clock of the session page, which goes on while the host sleeps. */
int64_t request_clock_ns(void);
int64_t request_clock_ms(void);
/* Until when a lease (0: none) counts, on that clock. */
int64_t request_lease_end(int64_t from_ns, int64_t lease_ms);
