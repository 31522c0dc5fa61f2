/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A line on the terminal while we wait: for how long, for what, who holds it, and our place. It asks through a connection
 * of its own, because ours waits. Where the standard error output is no terminal, --verbose says once that there is no
 * ZooKeeper; otherwise nothing is shown and nothing is asked: a connection more of each that waits would be many. A `hold`
 * that nobody reads any longer ends meanwhile.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "client-lib/cli/order.h"
#include "protocol/slice.h"

struct cli_progress {
	const struct cli_order *order;
	const char *socket;
	bool shows; /* anything at all */
	bool on_terminal;
	/* Private. */
	bool told;         /* why nothing can be granted */
	struct lb *lb;     /* the connection that asks; NULL: none */
	struct lb *waits;  /* the one that waits */
	int64_t since_ms;
	size_t at;         /* the name that we were seen to wait for last */
};

void cli_progress_init(struct cli_progress *p, const struct cli_order *order, const char *socket);
void cli_progress_deinit(struct cli_progress *p);
/* From here on to the end, calls with that handle are shown if they wait. */
void cli_progress_begin(struct cli_progress *p, struct lb *waits);
void cli_progress_end(struct cli_progress *p);

/* Out of INFO: why nothing can be granted to anybody on this host, in `ret`; false: no reason is known. */
bool cli_progress_halted(struct slice info, char *ret, size_t size);
/* The line, with the answer to HOLDERS (NULL: not known) and our place (0: not known), cut to `size`. Returns `ret`. */
const char *cli_progress_line(const char *name, int64_t waited_ms, const struct lb_reply *holders, int place, char *ret,
			      size_t size);
/* How a holder is called: by what it said it runs, or by its own program. */
struct slice cli_progress_program(const struct lb_reply *holder);
/* Our place in the answer to QUEUE, from 1 on; 0: we are not there. */
int cli_progress_place(const struct lb_reply *queue, int64_t pid);
