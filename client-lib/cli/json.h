/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Replies for programs: JSON on the standard output. Texts are UTF-8; a byte that is not becomes U+FFFD, and a character
 * that would steer a terminal is written as its number, which means the same.
 */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "client-lib/lockbroker.h"
#include "protocol/slice.h"

/* --json was given: commands print by these functions, and end a value with cli_json_line(). */
extern bool cli_json_asked;

/* Prints a reply as one value, without a line end: maps as objects, nil as null. NULL: null. */
void cli_json(const struct lb_reply *reply);
void cli_json_text(struct slice text);
/* The same, into that file. */
void cli_json_to(FILE *file, const struct lb_reply *reply);
/* Prints the reply in a line of its own. */
void cli_json_line(const struct lb_reply *reply);
/* The lines of a text as an array of texts, in a line of its own; and those of INFO as an object of sections. */
void cli_json_lines(struct slice text);
void cli_json_info(struct slice text);
