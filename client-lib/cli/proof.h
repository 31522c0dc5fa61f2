/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * For how long the locks of an order are still proven, found out without ever waiting for the broker, which may hang; and
 * the events of these locks.
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

#include "client-lib/cli/order.h"
#include "client-lib/lockbroker.h"

/* The proof is to be heeded at least this often. */
enum { CLI_PROOF_MS = 500 };

struct cli_proof {
	struct lb *lb;
	const struct cli_order *order;
	const char *held; /* the subject of sentences about all of them: "held locks are" */
	/* One lock (NULL: all) is lost, and why: the rest of a sentence. It sets `lost` if no further loss matters. */
	void (*lose)(void *context, const char *name, const char *why);
	void *context;
	bool lost;
	bool asked_back; /* somebody asked for one of them; stays until it is set to false */
	/* Private. */
	int64_t until_ms; /* by the latest answer; CLOCK_BOOTTIME */
	int64_t asked_ms; /* when the latest question was sent */
	bool asking;      /* that question is not answered yet */
	int told;         /* answers to be ignored that come before that answer */
};

/* The first look, which waits for its answer: to be called before anything depends on us. */
void cli_proof_begin(struct cli_proof *p);
/*
 * Reads the messages of the broker, reports its events, and asks again if the latest question is CLI_PROOF_MS old. If
 * there is a session page that has moved, asks where it is, and waits at most as long, unless the earlier one still proves
 * something.
 */
void cli_proof_heed(struct cli_proof *p);
/* Sends the broker a request whose answer does not matter. */
enum lb_result cli_proof_tell(struct cli_proof *p, size_t argc, const char *const *argv);
/* In milliseconds; 0: nothing is proven. Also right in a child that has inherited all this. */
int64_t cli_proof_left_ms(const struct cli_proof *p);
/* Why a lock is given up when nothing is proven any longer: its lease may end before the broker tells that. Static text. */
const char *cli_proof_over(const struct cli_proof *p);
