/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The messages of the lockbroker command, and its exit status. */
#pragma once

#include "client-lib/lockbroker.h"

/*
 * As in sysexits(3) and flock(1); `lockbroker lock`, `sem` and `campaign` exit with the status of the command they have
 * run.
 */
enum cli_exit {
	CLI_OK = 0,
	CLI_FINDINGS = 1,    /* the audit found something wrong */
	CLI_NOBODY = 1,      /* revoke, force-unlock: no holder; leader: nobody leads; limit: no semaphore; config: no key */
	CLI_ERROR_REPLY = 1, /* call: a reply was an error */
	CLI_UNKNOWN = 3,     /* check: wrong usage, or the state is unknown */
	CLI_USAGE = 64,
	CLI_UNAVAILABLE = 69, /* no broker, or it cannot say: it has no ZooKeeper, for example */
	CLI_DEADLOCK = 70,    /* acquiring it would deadlock, or a command around this one holds it */
	CLI_OSERR = 71,
	CLI_TAKEN = 75,
	CLI_DENIED = 77,
	CLI_LOST = 79, /* the lock was lost before the command ended, whatever that ended with */
	CLI_CANNOT_RUN = 126,
	CLI_NOT_FOUND = 127,
	CLI_SIGNAL = 128,
};

/*
 * Writes "lockbroker: <sentence>" to the standard error output, in one write, with control characters escaped. It never
 * waits: a message for which there is no room is written by a later call, or dropped and counted.
 */
void cli_say(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The command that is carried out, and the name that it is about; "": none. Both stay as they are. */
void cli_say_about(const char *command, const char *name);
/* Writes the sentence, in the same line points to the help of the command, and returns CLI_USAGE. */
int cli_usage(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Tries again to write the output that could not be written. */
void cli_say_unsaid(void);
/*
 * Shows a line on a terminal in place of the one shown before; "": takes that away, as any message does. It never waits
 * either: where there is no room, nothing is shown.
 */
void cli_show_line(const char *text);
/* The missing end of a sentence that another one follows: "." or "". */
const char *cli_stop(const char *sentence);
/* The exit status that belongs to a failure. */
int cli_exit_of(enum lb_result result);
/*
 * The exit status of a command that has written to the standard output: `status`; CLI_OSERR, after it said so, if not all
 * could be written.
 */
int cli_written(int status);
/* Says why the last call failed, with `result`, and for which name; returns the exit status. */
int cli_failed(const struct lb *lb, enum lb_result result);
/* Sends the words as a request. Prints the reason of a failure; returns the exit status. */
int cli_ask_words(struct lb *lb, int count, const char *const *words, const struct lb_reply **ret);
/* The same of a command, without an argument if that is NULL. */
int cli_ask(struct lb *lb, const char *command, const char *argument, const struct lb_reply **ret);
/* The reply to it; NULL, and nothing is said, if it failed. */
const struct lb_reply *cli_reply(struct lb *lb, const char *command, const char *argument);
