/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of the configuration have in common: a text is read as a file, a value is tried, a table is printed. */
#pragma once

#include <stddef.h>

#include "io/conf/conf.h"

/*
 * Reads a file of that text as conf_read() does. *error (CONF_ERROR_MAX bytes) has FILE for the file's name; NULL: it
 * must not fail.
 */
int read_text(struct conf *conf, const char *text, char *error);

/* The text is refused with a message that contains `expected`. */
void assert_refused(const char *text, const char *expected);

/* The value is taken, or is not, by an override. */
void assert_allowed(const char *section, const char *name, const char *value);
void assert_not_allowed(const char *section, const char *name, const char *value);

/* text[0..len]: `first`, then `c`, then the NUL. */
void fill(char *text, size_t len, char first, char c);

/* What conf_print() writes. The caller frees it. */
char *printed(const struct conf *c);
