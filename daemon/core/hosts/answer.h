/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The answers of HOLDERS, QUEUE, WHY and HOSTS to a query that knows all it can know (QUERY_ANSWERING). They grow with the
 * locks of others. The first steps are done at once, if nothing else is to be done for the user; the rest is left
 * (core/port/work.h).
 *
 *   state | means                                          | event -> next state
 *   ROWS  | holders, waiters (view.h) or hosts are shown,  | a step: the next one; none is left -> PLACE, if WHY is asked by
 *         |   one row after the other                      |   one that waits; else answered
 *         |                                                | longer than an answer may be -> answered LIMIT
 *   PLACE | the requests before the client's are counted   | a step: the next one; it is reached, or gone -> answered
 *
 * An answer ends with its client, which has no question any longer once it is closed. At a hand-over the query is asked
 * again; without a connection, or if nobody is to be asked, the answer starts over with the knowledge of this host.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "core/hosts/view.h"
#include "core/port/work.h"
#include "protocol/bytes.h"

struct answer {
	struct work_item work;
	struct query *query;
	struct view view;
	struct bytes rows;
	size_t at, row_count;
	size_t here;       /* rows of this host */
	int64_t permits;   /* that the rows hold together */
	struct bytes said; /* WHY: the sentence about the first holders, or a client that has it delegated and free; */
	int64_t delegated; /* that client's number; 0: there is none */
	bool placing;      /* PLACE */
	uint32_t rules;    /* env->rules that the rows were made by: it starts over when they change */
	struct walk walk;
	int64_t position;  /* WHY: the requests that were counted; */
	int64_t count;     /* ... the permits that the client's waits for */
	bool waits;        /* ... that was reached */
};

/* The query is of one of those commands. */
bool answer_is_of(const struct query *q);
/* Answers now or later, and frees the query. */
void answer_begin(struct query *q);
/* Answers later, even if it could be done now. */
void answer_leave(struct query *q);
/* Some steps, at most as many as that or a few more; answers after the last one. Returns how many. */
int64_t answer_continue(struct answer *a, int64_t steps);
/* There will be none: the query is ASKED again, or to be freed. Takes NULL. */
void answer_end(struct answer *a);
