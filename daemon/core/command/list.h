/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The answers of LOCKS and CLIENT LIST, which grow with the locks and clients of others. The first steps are done at once,
 * if nothing else is to be done for the user; the rest is left (core/port/work.h).
 *
 *   state   | means                                               | event -> next state
 *   WALK    | the locks or clients that were there when it began  | a step: the next one. All -> RANK, CLIENT LIST:
 *           |   are looked at, the oldest first. Of the locks the |   answered
 *           |   names are kept, with ORDER of the first `most`    |
 *   RANK    | the names are sorted                                | a step: the next one, from the last; all -> PLACE
 *   PLACE   | the rows of these locks are made, the first first   | a step: the next one; all -> answered
 *   any     |                                                     | longer than an answer may be -> answered LIMIT
 *           |                                                     | LOCKS: other rules of access -> PLACE begins anew
 *
 * Each row is true at the instant of its step; with ORDER it stands where it belonged when the walk came by. A lock or
 * client that exists from the first step to the last one is shown exactly once. If it comes or goes between these, it is
 * shown, or is not. A lock that is released and taken again between them has one row.
 *
 * In each state the list ends with its client. A hand-over carries the question only, and the list begins again.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "core/client/args.h"
#include "core/lock/locks.h"
#include "core/port/entry.h"
#include "protocol/bytes.h"

struct list_row;

enum list_kind { LIST_NONE, LIST_LOCKS, LIST_CLIENTS };

enum { LIST_MOST = 1000 }; /* rows of LOCKS ... ORDER */

struct list {
	struct work_item work;
	struct client *client;
	enum list_kind kind;
	struct glob *glob;    /* LOCKS: of the pattern; NULL: there is none */
	struct walk walk;
	enum order order;
	size_t most;          /* rows; SIZE_MAX: all */
	struct bytes names;   /* LOCKS */
	struct list_row *heap; /* LOCKS: of the names; the last one is on top */
	size_t count, cap;
	size_t kept;          /* names in all: the sorted ones stand behind the heap */
	size_t at;            /* PLACE: the next one */
	struct bytes rows;
	size_t row_count;
	uint32_t rules;       /* LOCKS: env->rules that the rows were made by: PLACE begins anew when they change */
	struct charge charge; /* of list_memory() */
	bool refused;         /* its client's account may not have more */
};

/* The memory that it needs beyond the memory of a short list. */
size_t list_memory(const struct list *l);

/* LOCKS (`pattern` NULL: all; with an order the first `most`) and CLIENT LIST (clients of the same user; to operators all):
 * answered now or later. */
void list_begin(struct client *c, enum list_kind kind, const struct slice *pattern, enum order order, int64_t most);
/* Some steps, at most as many as that or a few more; answers after the last one. Returns how many. */
int64_t list_continue(struct list *l, int64_t steps);
/* Its client is closed or gone, or it is answered. Takes NULL. */
void list_end(struct list *l);
/* A hand-over: the question. False: the entry is refused. */
void list_snapshot(const struct list *l, struct entry_writer *w);
bool list_restore(struct client *c, const struct entry *e);
