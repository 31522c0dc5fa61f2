/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Replies for people. Text that other processes have written must not steer the terminal: a character that would steer
 * it, or would break the line, is printed as its number.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client-lib/lockbroker.h"
#include "protocol/slice.h"

enum { CLI_SHOWN_MAX = 16 };
enum { CLI_DURATION_MAX = 48 };

/* A number of milliseconds as people read it, with the two largest units: "12s", "3m05s"; negative: empty. Returns `ret`. */
const char *cli_duration(long long ms, char ret[CLI_DURATION_MAX]);
/* Prints a text or a number in a line of its own, as it would stand in a table. */
void cli_line(const struct lb_reply *value);
/* Prints a text as it would stand in a table. */
void cli_text(struct slice text);
/* Prints each line of a text, such as INFO's, as it would stand in a table. */
void cli_lines(struct slice text);
/* Takes the next line off the text, without its end. False: there is none. */
bool cli_next_line(struct slice *text, struct slice *ret);
/* Prints a text in quotes, as it could stand in a request. */
void cli_quoted(struct slice text);
/* Decodes a character of UTF-8: its number, or -1 for an invalid byte. Returns how many bytes it has. */
size_t cli_character(const char *text, size_t len, int32_t *ret);
/*
 * Control characters, and characters that break the line, change its direction or are not seen: they could disguise a
 * name.
 */
bool cli_is_harmful(int32_t c);
/*
 * Writes the first character of a text as it is to be shown, NUL-terminated, with its width in columns of a terminal.
 * Returns how many bytes of `text` it has.
 */
size_t cli_show_character(const char *text, size_t len, char ret_shown[CLI_SHOWN_MAX], int *ret_width);
/* Seconds since 1970 as this host's clock shows them, with the second. Returns `ret`. */
const char *cli_instant(long long seconds, char ret[CLI_DURATION_MAX]);
/* The text as it may be shown to people, cut to fit. Returns `ret`. */
const char *cli_shown(const char *text, char *ret, size_t size);
