/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Locks and grants in the ledger (port/ledger.h). A lock is in it as long as the host knows it, so a pair of LOCK and UNLOCK
 * writes only the grant and its token. All of these do nothing without a ledger.
 */
#pragma once

#include <stdint.h>

#include "core/lock/locks.h"

/* The lock is new, or of another kind now. */
void lock_ledger_write(struct lock *lock);
/* It is freed. */
void lock_ledger_remove(struct lock *lock);
/* The grant is not there yet, or the text that its holder gave is another. */
void grant_ledger_write(struct grant *g);

/* The token is given, or will be: after a kill every new token is above it. 0: the session is lost. */
static inline void lock_ledger_token(const struct lock *lock, int64_t token, enum mode mode)
{
	struct ledger *l = lock->locks->env->ledger;

	if (l && !lock->slots)
		ledger_store(l, &lock->directory.record->latest, LEDGER_TOKEN(token, mode));
}

/* The value that its kind keeps there may have changed. */
static inline void lock_ledger_keep(const struct lock *lock)
{
	struct ledger *l = lock->locks->env->ledger;

	if (l && lock->rule->keeps && lock->directory.record->kept != lock->rule->keeps(lock))
		ledger_store(l, &lock->directory.record->kept, lock->rule->keeps(lock));
}

/* The same for one that is new: it counts and has one level. Every pair of LOCK and UNLOCK comes here. */
static inline void grant_ledger_begin(struct grant *g)
{
	struct ledger *l = g->lock->locks->env->ledger;
	struct ledger_grant *r;

	if (!l)
		return;
	if (g->data.len || !g->client->record || !l->cells[0].count) {
		grant_ledger_write(g);
		return;
	}
	r = ledger_take(l, sizeof(*r));
	r->head.number = ++l->last_number;
	r->lock = g->lock->directory.record->head.number;
	r->client = g->client->id;
	r->token = LEDGER_TOKEN(g->token, g->mode);
	r->flags = LEDGER_COUNTED;
	r->depth = 1;
	r->lease_ns = g->lease.place ? g->lease.due_ns : LEDGER_NO_LEASE;
	r->granted_ns = g->granted_ns;
	r->length = 0;
	ledger_publish(l, &r->head, LEDGER_GRANT);
	g->record = r;
}

static inline void grant_ledger_end(struct grant *g)
{
	struct ledger *l = g->lock->locks->env->ledger;

	if (l)
		ledger_drop(l, &g->record->head);
}

static inline uint64_t grant_ledger_flags(const struct grant *g)
{
	return (g->lost ? LEDGER_LOST + (uint64_t)g->loss * LEDGER_LOSS : 0) | (g->counted ? LEDGER_COUNTED : 0) |
	       (uint64_t)g->slot * LEDGER_SLOT;
}

/* One of its numbers has changed: the first that differs from the record. */
static inline void grant_ledger_change(struct grant *g)
{
	struct ledger *l = g->lock->locks->env->ledger;
	struct ledger_grant *r = g->record;
	int64_t lease_ns;

	if (!l || !r)
		return;
	lease_ns = g->lease.place ? g->lease.due_ns : LEDGER_NO_LEASE;
	if (r->flags != grant_ledger_flags(g))
		ledger_store(l, &r->flags, grant_ledger_flags(g));
	if (r->depth != g->depth)
		ledger_store(l, (uint64_t *)&r->depth, (uint64_t)g->depth);
	if (r->lease_ns != lease_ns)
		ledger_store(l, (uint64_t *)&r->lease_ns, (uint64_t)lease_ns);
	if (r->token != LEDGER_TOKEN(g->token, g->mode))
		ledger_store(l, &r->token, LEDGER_TOKEN(g->token, g->mode));
}
