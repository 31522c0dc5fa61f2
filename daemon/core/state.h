/* SPDX-License-Identifier: Apache-2.0 */
/* The broker's state: what the parts of the core share. Nothing outside the core includes it, but tests/anything. */
#pragma once

#include "base/heap.h"
#include "base/map.h"
#include "base/queue.h"
#include "core/session/presence.h"
#include "core/hosts/audit.h"
#include "core/broker.h"
#include "core/lock/client.h"
#include "core/hosts/revocation.h"
#include "core/session/former.h"
#include "core/hosts/outbox.h"
#include "core/lock/lock.h"
#include "core/hosts/inbox.h"
#include "core/session/operation.h"
#include "core/lock/group.h"
#include "base/random.h"
#include "core/session/session.h"
#include "core/port/stats.h"
#include "core/session/trouble.h"

enum timer_kind {
	TIMER_SESSION, TIMER_LOCK, TIMER_REQUEST, TIMER_LEASE, TIMER_EVENTS, TIMER_FORMER, TIMER_STOP,
	TIMER_INBOX, TIMER_LETTER, TIMER_REVOCATION,
};

TAILQ_HEAD(lock_list, lock);
TAILQ_HEAD(query_list, query);
TAILQ_HEAD(mlock_list, mlock);

struct broker {
	const struct broker_conf *conf;
	struct random random;
	int64_t now_ns;      /* of the event being handled */
	struct effects *out; /* where its effects go */
	int64_t started_ns;
	bool started, stopping, stopped;
	bool refused; /* it stops because its name is another's */
	struct heap timers;
	struct timer stop_timer;

	struct client **conns; /* by connection number */
	size_t conns_cap, client_count;
	uint64_t last_client;
	struct client_list clients, closing;
	struct query_list queries;
	struct mlock_list mlocks; /* to be gone on with */
	uint64_t last_query, last_search;
	size_t query_open; /* their operations without an answer, also of those that are gone */
	struct revocation_list revocations;
	uint64_t last_revocation;
	struct inbox inbox;
	struct outbox_list letters;
	size_t outbox_count;
	uint64_t outbox_last;
	struct map users, groups;

	struct map names, paths; /* locks by name and by directory path */
	struct lock *named;      /* the latest found by name; NULL */
	struct map semaphores;   /* by name */
	struct lock_list locks_used, locks_idle, dirty;
	struct turns turns;
	size_t idle_count;
	/* Sums, for INFO and the checks; blocked: requests that hold back their client. */
	size_t request_count, blocked_count, grant_count, lost_count, claim_count;
	size_t remembered_count, orphan_count; /* locks, claims */

	struct session session;
	struct duplicate duplicate;
	struct formers formers;
	struct trouble trouble;
	struct operations operations;
	struct audit audit;
	size_t path_bytes;     /* of all claims and letters */
	size_t watch_bytes;    /* of all watches that stand or are asked for: path and length */
	int64_t packet_bytes;  /* the largest packet a server takes; 0: large enough, or not known */
	uint64_t last_claim, last_nonce;
	int64_t token_next, token_limit; /* standalone: claim numbers */
	bool token_asked;
	struct stats stats;
};

/* Settles every touched lock, now. */
void broker_settle(struct broker *b);
/* Stops as if asked to, and says that starting again would not help. */
void broker_refuse(struct broker *b);
/* Bracket a line for the log: the text is put together by the caller in the arena. */
size_t broker_log_begin(struct broker *b);
struct effect *broker_log_end(struct broker *b, enum effect_level level, size_t begin);
