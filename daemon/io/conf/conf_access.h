/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The section [access], whose key may stand in it any number of times: a rule each (rule.h).
 *
 * The process that goes on after a kill reads what the one before had printed for it. There a rule is followed by what it
 * was resolved to and where it stood: users that are gone since are no errors, and errors name the file that people know.
 */
#pragma once

#include "io/conf/conf.h"

/* It is that section. */
bool conf_access_is(const char *section);
/* Appends the rule. 0, or -EINVAL with a sentence, also if the section has no such key. */
int conf_access_set(struct conf *conf, const char *name, const char *value, const char *where, char error[CONF_ERROR_MAX]);
/*
 * Finds the users and groups that rules name; may block. 0, or with a line for each that is not found: -ENOENT; -EAGAIN if
 * all of these only cannot be looked up now.
 */
int conf_access_resolve(struct conf *conf, char error[CONF_ERROR_MAX]);
/*
 * A name is one thing at a time, so that whom a rule denies only to lock it can keep it from others as an election or a
 * semaphore. True, with a sentence about the first rule, once resolved, that leaves somebody that.
 */
bool conf_access_leaves(const struct conf *conf, char sentence[CONF_SENTENCE_MAX]);
bool conf_access_same(const struct conf *a, const struct conf *b);
void conf_access_print(const struct conf *conf, FILE *out);
/* The same for the next process, which is to set conf->kept before it reads that. */
void conf_access_keep(const struct conf *conf, FILE *out);
void conf_access_free(struct conf *conf);
