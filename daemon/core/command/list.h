/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The answers of LOCKS and CLIENT LIST, which grow with what others own. The first steps are done at once, if nothing else
 * is to be done for the user; the rest is left (core/port/work.h).
 *
 *   state   | means                                               | event -> next state
 *   WALK    | the locks or clients that were there when it began  | a step: the next one, with its row if it is shown
 *           |   are looked at, the oldest first                   | all looked at -> PLACE, CLIENT LIST: answered
 *           |                                                     | longer than an answer may be -> answered LIMIT
 *   PLACE   | the rows of the locks are put in order of the names | a step: the next one; all -> answered
 *
 * Each row is true at the instant of its step. What is there from the first step to the last one is shown exactly once;
 * what comes or goes meanwhile is shown, or is not. A lock that is released and taken again meanwhile has one row.
 *
 * In each state the list ends with its client. A hand-over carries the question only, and the list begins again.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "core/lock/locks.h"
#include "core/port/entry.h"
#include "protocol/bytes.h"

struct list_row;

enum list_kind { LIST_NONE, LIST_LOCKS, LIST_CLIENTS };

struct list {
	struct work_item work;
	struct client *client;
	enum list_kind kind;
	struct glob *glob;    /* LOCKS: of the pattern; NULL: there is none */
	struct walk walk;
	bool placing;         /* PLACE */
	struct bytes rows;    /* text, as it was found */
	struct list_row *heap; /* LOCKS: where the rows are; the one with the first name is on top */
	size_t count, cap;
	struct bytes last;    /* PLACE: the name that was put last */
	struct bytes placed;
	size_t placed_count;
	struct charge charge; /* of list_memory() */
	bool refused;         /* its client's account may not have more */
};

/* What it needs, beyond what a short one needs. */
size_t list_memory(const struct list *l);

/* LOCKS (`pattern` NULL: all) and CLIENT LIST (clients of the same user; to operators all): answered now or later. */
void list_begin(struct client *c, enum list_kind kind, const struct slice *pattern);
/* Some steps, at most as many as that or a few more; answers after the last one. Returns how many. */
int64_t list_continue(struct list *l, int64_t steps);
/* Its client is closed or gone, or it is answered. Takes NULL. */
void list_end(struct list *l);
/* A hand-over: what was asked for. False: the entry is refused. */
void list_snapshot(const struct list *l, struct entry_writer *w);
bool list_restore(struct client *c, const struct entry *e);
