/* SPDX-License-Identifier: Apache-2.0 */
/* A configuration value by the type of its key: the allowed values, the field, the printed form. Also prefixes. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "io/conf/conf.h"

#define CONF_ALLOWED_MAX 256

/* False if the value is not allowed. `ret_number` is set for the types that are numbers. */
bool conf_value_parse(const struct conf_key *key, const char *value, int64_t *ret_number);
/* The allowed values, as a phrase that follows "must be". */
void conf_value_allowed(const struct conf_key *key, char allowed[CONF_ALLOWED_MAX]);
/* Prints the value as it stands in a file. The offsets of the key's table refer to `base`, here and below. */
void conf_value_print(const struct conf_key *key, const void *base, FILE *out);
/* Whether the field is a number of whatever type; otherwise it is a string. */
bool conf_value_is_number(const struct conf_key *key);
/* As it stands in a file. */
int64_t conf_value_number(const struct conf_key *key, const void *base);
void conf_value_set_number(const struct conf_key *key, void *base, int64_t number);
const char **conf_value_text(const struct conf_key *key, const void *base);
/* A copy of the text takes the place of the former text; NULL: the field is NULL then. */
void conf_value_set_text(const struct conf_key *key, void *base, const char *text);
/* The part of a lock's name that a section of the file can carry. */
bool conf_value_is_prefix(const char *prefix);
void conf_value_prefix_allowed(char allowed[CONF_ALLOWED_MAX]);
