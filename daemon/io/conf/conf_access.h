/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The section [access], whose key may stand in it any number of times: a rule each (rule.h).
 *
 * The process that goes on after a kill reads the text that the earlier process had printed for it. There a rule is
 * followed by its resolved numbers and its place: users that are gone since are no errors, and errors name the file
 * that people know.
 */
#pragma once

#include "io/conf/conf.h"
#include "io/conf/conf_section.h"

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

/*
 * limits.by_unit: users, each by name or number, separated by commas. As with the names of rules (conf_access.h),
 * reading it is pure, their numbers are found later, and the process that goes on after a kill has the numbers that the
 * earlier process found.
 */

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

/*
 * Rules that a user with subordinate ids passes. A user with an entry in /etc/subuid may have processes of the users
 * that the entry names, in a user namespace: to a rule by user or by group these processes belong to another user.
 * Nobody can know for certain whose an id is, because the name service may have further entries, so that this warns and
 * refuses nothing.
 */

/*
 * True, with a sentence about the first rule, once resolved, that denies something to a user of that file (subuid(5)),
 * unless a rule denies the same to everybody. May block. A file that cannot be read has no users.
 */
bool conf_subids_pass(const struct conf *conf, const char *file, char sentence[CONF_SENTENCE_MAX]);
