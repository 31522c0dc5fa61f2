/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The commands that have a file of their own. argv[0] is the command's word; all return the exit status. */
#pragma once

struct lb;

/* `lockbroker call` */
int cli_call(const char *socket, int argc, char **argv);
/* `lockbroker ls` */
int cli_ls(const char *socket, int argc, char **argv);
/* `lockbroker metrics` */
int cli_metrics(const char *socket, int argc, char **argv);
/* `lockbroker check`: its exit status is that of a plugin of Nagios, 0 to 3 */
int cli_check(const char *socket, int argc, char **argv);
/* `lockbroker http`: becomes the program that serves it */
int cli_http(const char *socket, int argc, char **argv);
/* `lockbroker lock`, `lockbroker hold`, `lockbroker sem`, `lockbroker campaign` */
int cli_lock(const char *socket, int argc, char **argv);

/* The following commands use the caller's connection, get only their arguments, and return the exit status. */
/* `lockbroker who`, with its argument: a name */
int cli_who(struct lb *lb, char **arguments);
/* `lockbroker leader` and `lockbroker observe`, likewise */
int cli_leader(struct lb *lb, char **arguments);
int cli_observe(struct lb *lb, char **arguments);
/* `lockbroker access`, with its arguments: a user, a name, and perhaps a unit */
int cli_access(struct lb *lb, char **arguments);
/* `lockbroker drain`, with its argument: --wait, --off, or none */
int cli_drain(struct lb *lb, char **arguments);
/* Prints what all commands do; with a word, what that command does. */
int cli_help(const char *word);
int cli_version(void);
