/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A rule of the section [access]: it allows or denies some users some uses of the locks of a pattern.
 *
 *     allow|deny WHO PATTERN VERB[,VERB...]
 *
 *     the word WHO       means
 *     *                  everybody
 *     name, 1000         the user of that name or number
 *     1000-1999          the users of these numbers
 *     @name, @100        a process that had that group when it connected
 *     unit:web.service   a process that belonged to that systemd unit when it connected (unit_name.h)
 *
 * The VERB * is all of them. Words are separated by blanks; a PATTERN has none (its glob can stand for one: ?). Parsing is
 * pure: names of users and groups are resolved later (rule_resolve()), because that may block.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "protocol/slice.h"

enum { RULE_TEXT_MAX = 2048, RULE_ERROR_MAX = 256 };

/* The word, and the verb that a sentence puts before the name. */
#define RULE_VERBS(X) \
	X(lock, "lock") \
	X(shared, "share") \
	X(acquire, "acquire") \
	X(campaign, "campaign for") \
	X(observe, "observe") \
	X(look, "look at") \
	X(revoke, "ask for") \
	X(limit, "change the limit of")
enum rule_verb {
#define X(word, does) RULE_##word,
	RULE_VERBS(X)
#undef X
	RULE_VERB_COUNT
};

enum rule_who { RULE_EVERYBODY, RULE_USER, RULE_GROUP, RULE_UNIT };

struct rule {
	char *text;            /* as it was written: its words, with one blank between them */
	char *where;           /* "file:line" */
	bool allows;
	enum rule_who who;
	struct slice name;     /* in `text`: of a unit, or of a user or group before it is resolved */
	uint32_t low, high;    /* USER, GROUP: the numbers; low above high: not resolved yet */
	struct slice pattern;  /* in `text` */
	struct glob *glob;     /* of the pattern; NULL: every name */
	unsigned int verbs;    /* 1 << enum rule_verb */
};

/* 0, or -EINVAL with a sentence. Its memory is freed by rule_free(). */
int rule_parse(struct rule *r, const char *text, const char *where, char error[RULE_ERROR_MAX]);
/* The rule stands there from now on. */
void rule_move(struct rule *r, const char *where);
/* Takes a zeroed one. */
void rule_free(struct rule *r);
/* The number of a user or a group: without a sign, and below 2^32 - 1, which stands for nobody. */
bool rule_id(struct slice text, uint32_t *ret);
const char *rule_verb_word(enum rule_verb verb);
const char *rule_verb_does(enum rule_verb verb);
