/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * For how long what is held is still proven, found out without ever waiting for the broker, which may hang.
 *
 * The session page tells; where there is none the broker is asked (VALID), one question at a time. An answer counts from
 * the moment of its question, and until the next one comes the last one is what counts: a broker that does not answer
 * has as much patience as it has proven.
 *
 * All that is held was granted in one session and with one lease, so that one name stands for all.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "client-lib/lockbroker.h"

struct cli_proof {
	struct lb *lb;
	const char *name;
	/* Private. */
	int64_t until_ms; /* CLOCK_BOOTTIME; as the broker answered last */
	int64_t asked_ms; /* when it was asked last */
	bool asking;      /* that question is not answered yet */
	int told;         /* answers that come before, and that nobody wants */
};

/* The first look, which waits for its answer: to be taken before anything depends on us. */
enum lb_result cli_proof_begin(struct cli_proof *p);
/* Takes what the broker has sent: events are kept for lb_event(). LB_OK, or LB_CONNECTION: everything is void. */
enum lb_result cli_proof_hear(struct cli_proof *p);
/* Asks again when the last question was so long ago; nothing to do where there is a session page. */
enum lb_result cli_proof_ask(struct cli_proof *p, int64_t every_ms);
/* Tells the broker something whose answer does not matter. */
enum lb_result cli_proof_tell(struct cli_proof *p, size_t argc, const char *const *argv);
/* Milliseconds; 0: nothing proves it. Also right in a child that has inherited all this. */
int64_t cli_proof_left_ms(const struct cli_proof *p);
