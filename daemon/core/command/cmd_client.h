/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What Redis clients say at connect and besides: HELLO, PING, ECHO, SELECT, INFO, CLIENT, COMMAND, RESET, QUIT. And what
 * both kinds of commands share.
 */
#pragma once

#include "core/lock/client.h"
#include "protocol/commands.h"

/* One request: the words as they came, the command's own first. */
struct request_words {
	struct client *client;
	size_t argc;
	const struct slice *argv;
};

/* -ERR <what> '<name>' command; <how it is used> */
void usage_error(struct client *c, const char *what, enum command command);
void syntax_error(struct client *c, enum command command);
/* -ERR unknown command */
void unknown_command(struct client *c, struct slice word);

void redis_hello(const struct request_words *w);
void redis_ping(const struct request_words *w);
void redis_echo(const struct request_words *w);
void redis_select(const struct request_words *w);
void redis_info(const struct request_words *w);
void redis_client(const struct request_words *w);
void redis_command(const struct request_words *w);
void redis_reset(const struct request_words *w);
void redis_quit(const struct request_words *w);
