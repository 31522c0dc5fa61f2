/* SPDX-License-Identifier: Apache-2.0 */
/*
 * limits.by_unit: users, each by name or number, separated by commas. As with the names of rules (conf_access.h), reading it
 * is pure, their numbers are found later, and the process that goes on after a kill has those that were found before it.
 */
#pragma once

#include "io/conf/conf_section.h"

/* Such a list, also an empty one: at most CONF_USERS_MAX. */
bool conf_users_are(const char *list);
/* Finds the numbers of conf->by_unit, set at `where`; may block. As conf_access_resolve(). */
int conf_users_resolve(struct conf *conf, const char *where, char error[CONF_ERROR_MAX]);
/* Both have the same list and the same numbers. */
bool conf_users_same(const struct conf *a, const struct conf *b);
/* The numbers as keys of the section, for the next process, which is to set conf->kept before it reads them. */
void conf_users_keep(const struct conf *conf, FILE *out);
/* The key is one of these. */
bool conf_users_is_kept(const struct conf *conf, const struct conf_section *section, const char *name);
/* 0, or -EINVAL with a sentence. */
int conf_users_take_kept(struct conf *conf, const char *value, const char *where, char error[CONF_ERROR_MAX]);
void conf_users_free(struct conf *conf);
