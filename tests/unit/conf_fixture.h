/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the tests of the configuration have in common: a text is read as a file, a value is tried, a table is printed. A test
 * between conf_begin() and conf_end() has a configuration that begins with the defaults.
 */
#pragma once

#include <stddef.h>

#include "io/conf/conf.h"

extern struct conf c;
extern char conf_error[CONF_ERROR_MAX];

int conf_begin(void **state);
int conf_end(void **state);
void conf_anew(void); /* frees the configuration `c`, and gives it the defaults again */

/*
 * Reads a file of that text as conf_read() does. *ret_error (CONF_ERROR_MAX bytes) has FILE for the file's name; NULL: it
 * must not fail.
 */
int read_text(struct conf *conf, const char *text, char *ret_error);

/* The text is refused with a message that contains `expected`. */
void assert_refused(const char *text, const char *expected);

/* An override of `c`: its result; that it is taken; that it is refused, with that sentence in `conf_error`. */
int override(const char *text);
void assert_overridden(const char *text);
void assert_override_refused(const char *text, const char *expected);

/* Each of the values is taken, or is not, by an override. NULL ends them. */
#define VALUES(...) ((const char *const[]){ __VA_ARGS__, NULL })
void assert_allowed(const char *section, const char *name, const char *const *values);
void assert_not_allowed(const char *section, const char *name, const char *const *values);

/* text[0..len]: `first`, then `others`, then the NUL. */
void fill(char *text, size_t len, char first, char others);

/* What conf_print() writes. The caller frees it. */
char *printed(const struct conf *conf);

/* Prints the configuration, reads the text into *back, and checks that *back prints the same. The caller frees *back. */
void assert_printed_again(const struct conf *conf, struct conf *back);
