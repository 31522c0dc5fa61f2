/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rules that a user with subordinate ids passes. Who has an entry in /etc/subuid may have processes of the users that it
 * names, in a user namespace: to a rule by user or by group they are somebody else. Nobody can know for certain whose an id
 * is, because the name service may have further entries, so that this warns and refuses nothing.
 */
#pragma once

#include "io/conf/conf.h"

/*
 * True, with a sentence about the first rule, once resolved, that denies something to a user of that file (subuid(5)),
 * unless a rule denies the same to everybody. May block. A file that cannot be read has no users.
 */
bool conf_subids_pass(const struct conf *conf, const char *file, char sentence[CONF_SENTENCE_MAX]);
