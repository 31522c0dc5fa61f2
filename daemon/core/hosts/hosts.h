/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The questions and requests between this host and others, in both directions: queries, revocations, letters and audits.
 * The result of one for another passes through here: the fate of a letter that was sent, a finished query.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/queue.h"
#include "core/hosts/audit.h"
#include "core/hosts/letter_task.h"
#include "core/hosts/forward.h"
#include "core/hosts/inbox.h"
#include "core/hosts/outbox.h"
#include "core/hosts/query.h"
#include "core/hosts/revocation.h"
#include "core/lock/locks.h"

/* A daemon has this long to read a letter that is waited for, and as long again to answer it. */
static const int64_t LETTER_PATIENCE_NS = 2000000000;

TAILQ_HEAD(query_list, query);

struct hosts {
	struct env *env;
	struct ensemble *ensemble;
	struct locks *locks;
	struct query_list queries;
	uint64_t last_query, query_round; /* a number, and a tag (query.h) */
	size_t query_open; /* operations of queries without an answer, also of freed queries */
	bool root_open;    /* ... the list of a root among them: one at a time (scan.h) */
	int64_t root_bytes; /* the longest such list that came */
	struct inbox inbox;
	struct letter_list letters;
	size_t outbox_count;
	uint64_t outbox_last;
	struct audit audit;
	struct letter_tasks letter_tasks;
	struct forward_list forwards;
};

void hosts_init(struct hosts *h);
/* Withdraws no letter, and answers no query. */
void hosts_deinit(struct hosts *h);
/* A hand-over ends the connection: questions to other hosts are asked again. */
void hosts_move(struct hosts *h);
/* The connection is gone, and its requests end, except the audit (audit_suspended()) and queries. */
void hosts_suspended(struct hosts *h);
/* Continues whatever has room now. After every event. */
void hosts_continue(struct hosts *h);
void hosts_outbox_answered(struct hosts *h, const struct operation *op, const struct event *event);
