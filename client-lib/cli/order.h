/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The order in a command line of `lockbroker lock`, `hold`, `sem` or `campaign`. The form is as in flock(1):
 *
 *     VERB [OPTION...] [--] NAME [--] CMD [ARG...]     options end at the first word, which is the name
 *     VERB [OPTION...] [--] NAME -c LINE               $SHELL, or else /bin/sh, runs LINE, which is one word
 *     hold [OPTION...] [--] NAME
 *     lock --any [OPTION...] NAME... {-- CMD [ARG...] | -c LINE}
 *     hold --any [OPTION...] NAME...
 *
 * campaign has DATA behind NAME. All words after that are the command, whatever they look like.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client-lib/cli/options.h"
#include "client-lib/lockbroker.h"
#include "protocol/limits.h"

enum cli_held { HELD_LOCKS, HELD_PERMITS, HELD_LEADERSHIP };

struct cli_order {
	const struct cli_command *verb;
	enum cli_held held;
	bool runs;          /* a command; else it only holds */
	const char *socket; /* NULL: not given */
	struct lb_options options; /* of locks; timeout_ms of all. Times are at most 1e9 s */
	int64_t limit, permits;
	int64_t connect_ms;  /* -1: not given */
	int64_t grace_ms, min_hold_ms, splay_ms;
	int on_revoke;       /* the signal; 0: none */
	int64_t conflict;    /* the exit status if it is taken, 0 to 255 */
	bool closes, in_place, verbose;
	bool any;            /* one of the names is wanted, not all of them */
	const char *owner;   /* NULL: not given */
	char *names[LIMIT_NAMES_MAX]; /* NAME, and the names of -a */
	size_t count;        /* also counts the names of -a that do not fit */
	const char *data;    /* of campaign */
	char **command;      /* NULL: none, for hold */
	char *line[4];       /* the command of -c */
	bool with_dashes;    /* a "--" follows in the command */
	int asks; /* ASKS_RUN, or for help or the version instead */
};

/*
 * Reads the words, argv[0] being the verb's; the order points into them. CLI_OK; or CLI_USAGE, after it said what is
 * wrong. If only help or the version is asked for, the rest of the order is not set.
 */
int cli_order_read(struct cli_order *o, const struct cli_command *verb, int argc, char **argv);
