/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The messages of a command while it waits. It asks through a connection of its own, because ours waits.
 *
 *     on a terminal -> every second a line in place of the last one: for how long it waits, for which lock, its holder,
 *                      and our position; or why nothing can be granted
 *     elsewhere     -> after 5 s, and then after twice the time each, up to 10 minutes: why nothing is granted although
 *                      nobody holds it, because there is no ZooKeeper, for example. With --verbose, also its holder
 *     main process  -> as well, for `systemctl status`: the name it waits for, and since when; the holder of a lock, when
 *     of a service     such a line is due; the leader of an election, at once and at each change
 *
 * A `hold` that nobody reads any longer ends while it waits.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "client-lib/cli/order.h"
#include "client-lib/cli/shown.h"
#include "protocol/slice.h"

struct cli_progress {
	const struct cli_order *order;
	const char *socket;
	/* Private. */
	bool on_terminal;
	struct lb *lb;     /* the connection that asks; NULL: none */
	struct lb *observer; /* the handle that observes the election, for the status; NULL: none */
	struct lb *waits;  /* the handle that waits */
	int64_t since_ms;
	char since[CLI_DURATION_MAX]; /* the same, as the host's clock shows it */
	int64_t due_ms, pause_ms; /* without a terminal: when the next line is due, and the time to the one after it */
	size_t at;         /* the name that we were seen to wait for last */
};

void cli_progress_init(struct cli_progress *p, const struct cli_order *order, const char *socket);
void cli_progress_deinit(struct cli_progress *p);
/* From here on to the end, calls with that handle are shown if they wait. */
void cli_progress_begin(struct cli_progress *p, struct lb *waits);
void cli_progress_end(struct cli_progress *p);
/* There is no broker to wait at, and why. Says so when a line is due, also on a terminal. */
void cli_progress_away(struct cli_progress *p, const char *why);

/* Out of INFO: why nothing can be granted to anybody on this host, in `ret`; false: no reason is known. */
bool cli_progress_halted(struct slice info, char *ret, size_t size);
/* Out of WHY (NULL: not known): what hinders a grant, in `ret`; false: somebody holds the lock, or waits on another host. */
bool cli_progress_hindered(const struct lb_reply *why, char *ret, size_t size);
/* The line, with the answer to HOLDERS (NULL: not known) and our place (0: not known), cut to `size`. Returns `ret`. */
const char *cli_progress_line(const char *name, int64_t waited_ms, const struct lb_reply *holders, int place, char *ret,
			      size_t size);
/* How a holder is called: by the job that it named, or by its own program. */
struct slice cli_progress_program(const struct lb_reply *holder);
/* Our place in the answer to QUEUE, from 1 on; 0: we are not there. */
int cli_progress_place(const struct lb_reply *queue, int64_t pid);
