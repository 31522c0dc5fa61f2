/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What the files of the lockbroker command share. */
#pragma once

#include <stdbool.h>

#include "client-lib/lockbroker.h"

/* As sysexits(3) and flock(1) have them; a command that was run gives its own. */
enum cli_exit {
	CLI_OK = 0,
	CLI_ODD = 1, /* the audit found something */
	CLI_NOBODY = 1, /* revoke, force-unlock: there was no holder; leader: nobody leads; limit: no semaphore */
	CLI_ERROR_REPLY = 1, /* call: a reply was an error */
	CLI_USAGE = 64,
	CLI_UNAVAILABLE = 69, /* no broker, or no ZooKeeper, or the lock was lost */
	CLI_DEADLOCK = 70, /* it would be waited for in a circle, or by a command that runs under it */
	CLI_OSERR = 71,
	CLI_TAKEN = 75,
	CLI_DENIED = 77,
	CLI_CANNOT_RUN = 126,
	CLI_NOT_FOUND = 127,
	CLI_SIGNAL = 128,
};

/*
 * Writes "lockbroker: <sentence>" to the standard error output, in one write, with control characters escaped. It never
 * waits: a message for which there is no room is written by a later call, or dropped and counted.
 */
void cli_say(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Says the sentence and points to --help; returns CLI_USAGE. */
int cli_usage(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Tries again what could not be said. */
void cli_say_unsaid(void);
/* Prints what all commands do, or that one. */
void cli_help(const char *word);
/* The exit status that belongs to a failure. */
int cli_exit_of(enum lb_result result);

/* Prints an array of maps that all have the same keys: one row each, the keys as heads. Anything else prints nothing. */
void cli_table(const struct lb_reply *reply);
/* What another process wrote, as it may be shown to people; cut to fit. Returns `ret`. */
const char *cli_shown(const char *text, char *ret, size_t size);
/* Prints a text or a number in a line of its own, as it would stand in a table. */
void cli_line(const struct lb_reply *value);

/* Prints a text as it would stand in a table; what would break the line or steer the terminal is shown. */
void cli_text(const char *text, size_t len);

/* The same with each line of a text of several; INFO, say. */
void cli_lines(const char *text, size_t len);

/* In quotes, as it could stand in a request; what would steer the terminal as \xHH. */
void cli_quoted(const char *text, size_t len);

/* A command around this one holds that lock, so that to wait for it would never end. */
bool cli_nested(struct lb *lb, const char *name, bool shared);
/* Tells what we run that these locks are held, besides those of the commands around us. 0, or -1 and errno. */
int cli_nested_export(size_t count, char *const *names, const int64_t *tokens);

/* `lockbroker call`: argv[0] is that. Returns the exit status. */
int cli_call(const char *socket, int argc, char **argv);
/* `lockbroker lock`, `lockbroker sem`, `lockbroker campaign`: argv[0] is that. Returns the exit status. */
int cli_lock(const char *socket, int argc, char **argv);
