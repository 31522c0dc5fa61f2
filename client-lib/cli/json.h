/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Replies for programs: JSON, as docs/JSON.md describes it. Texts are UTF-8; a byte that is not becomes U+FFFD, and a
 * character that would steer a terminal is written as its number, which means the same.
 *
 * A field of a map has the type that its key has: a boolean is true or false, and a value that is not known, or is not
 * there (an empty text, a negative duration, the number 0 of a process), is null.
 */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "client-lib/lockbroker.h"
#include "protocol/slice.h"

/* --json was given: commands print by these functions, and end a value with cli_json_line(). */
extern bool cli_json_asked;

/* Prints a reply as one value, without a line end. NULL: null. */
void cli_json(const struct lb_reply *reply);
/* All fields of a map, and neither its brace at the end nor a line end. */
void cli_json_open(const struct lb_reply *map);
/* Prints a reply exactly as the daemon has sent it, without types by keys. */
void cli_json_plain(const struct lb_reply *reply);
void cli_json_text(struct slice text);
/* A field without a map: with a comma before it, unless `first`. A text that looks like a number is one. */
void cli_json_field(bool first, struct slice key, struct slice text);
/* The value of the map under that key is true or false. */
bool cli_is_flag(const struct lb_reply *map, struct slice key);
/* The value of the map under that key is not known, or is not there. */
bool cli_is_null(const struct lb_reply *map, struct slice key, const struct lb_reply *value);
/* Where it goes from now on; NULL: to the standard output. */
void cli_json_into(FILE *to);
/* Prints the reply in a line of its own. */
void cli_json_line(const struct lb_reply *reply);
/*
 * The lines of a text as an array of texts, in a line of its own; the lines of INFO as an object of sections; and the
 * texts of a map, with numbers among them, as one.
 */
void cli_json_lines(struct slice text);
void cli_json_info(struct slice text);
void cli_json_texts(const struct lb_reply *map);
