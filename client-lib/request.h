/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A request in words, and its one answer: the building blocks of the calls in lock.c, multi.c, event.c, semaphore.c and
 * election.c. Not part of the public interface.
 *
 * All functions return LB_OK or what the call is to return, and keep the sentence for lb_error().
 */
#pragma once

#include "wire.h"

/* The most that a request has, such as ACQUIRE name LIMIT n COUNT k WAIT ms LEASE ms. */
enum { REQUEST_WORDS_MAX = 12, REQUEST_NUMBERS_MAX = 4 };

/* The digits of numbers are in the request itself, so it must not be moved. */
struct request {
	struct slice words[REQUEST_WORDS_MAX];
	size_t count;
	char digits[REQUEST_NUMBERS_MAX][24];
	size_t numbers;
	int64_t timeout_ms, lease_ms;
};

void request_add(struct request *r, struct slice word);
void request_add_number(struct request *r, const char *word, int64_t number);
/* Adds SHARED, WAIT, LEASE and DATA (NULL: none of them). LB_REFUSED: an unknown option is set. */
enum lb_result request_options(struct lb *lb, struct request *r, const struct lb_options *options);
/* Allows the handle to acquire again what it holds: a handle is used by one thread. */
void request_reenters(struct request *r);
/* COMMAND name, and the options. */
enum lb_result request_fill(struct lb *lb, struct request *r, const char *command, const char *name,
			    const struct lb_options *options);

/*
 * Sends the request and waits for the answer, which must come within `wait_ms` (negative: no time limit) plus the
 * patience. An error reply becomes its result; any other reply is left in lb->replies.
 */
enum lb_result request_ask(struct lb *lb, size_t argc, const struct slice *argv, int64_t wait_ms);
/* The same if the answer is an integer that comes at once. */
enum lb_result request_ask_integer(struct lb *lb, size_t argc, const struct slice *argv, int64_t *ret);
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
