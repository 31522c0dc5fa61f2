/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * For how long the locks are still proven, found out without ever waiting for the broker, which may hang.
 *
 * The session page tells it; without a page the broker is asked (VALID), one question at a time. An answer counts from
 * the moment of its question, and stays valid until the next one comes: a broker that does not answer is given no more
 * time than it has proven.
 *
 * All locks were granted in one session and with one lease, so that one name stands for all.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "client-lib/lockbroker.h"

struct cli_proof {
	struct lb *lb;
	const char *name;
	/* Private. */
	int64_t until_ms; /* by the latest answer; CLOCK_BOOTTIME */
	int64_t asked_ms; /* when the latest question was sent */
	bool asking;      /* that question is not answered yet */
	int told;         /* answers to be ignored that come before that answer */
};

/* The first check, which waits for its answer: to be called before anything depends on us. */
enum lb_result cli_proof_begin(struct cli_proof *p);
/* Reads the messages of the broker; events are kept for lb_event(). LB_OK, or LB_CONNECTION: everything is void. */
enum lb_result cli_proof_hear(struct cli_proof *p);
/*
 * Asks again if the latest question is at least `every_ms` old; does nothing if there is a session page. If that has
 * moved, asks where it is, and waits at most `every_ms`, unless the earlier one still proves something.
 */
enum lb_result cli_proof_ask(struct cli_proof *p, int64_t every_ms);
/* Sends the broker a request whose answer does not matter. */
enum lb_result cli_proof_tell(struct cli_proof *p, size_t argc, const char *const *argv);
/* In milliseconds; 0: nothing is proven. Also right in a child that has inherited all this. */
int64_t cli_proof_left_ms(const struct cli_proof *p);
/* Why a lock is given up when nothing is proven any longer: its lease may end before the broker tells that. Static text. */
const char *cli_proof_over(bool leased);
