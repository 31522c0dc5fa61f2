/* SPDX-License-Identifier: Apache-2.0 */
#include "core/lock/lock_ledger.h"

#include "base/cold.h"
#include "core/lock/client_ledger.h"

COLD void lock_ledger_write(struct lock *lock)
{
	struct ledger *l = lock->locks->env->ledger;
	struct ledger_lock *old = lock->directory.record, *r;
	struct directory *d;

	if (!l)
		return;
	r = ledger_take(l, sizeof(*r) + lock->name.len);
	r->head.number = old ? old->head.number : ++l->last_number;
	r->latest = old ? old->latest : 0;
	r->noted = old ? old->noted : 0;
	r->kept = 0;
	r->kind = lock->rule->kind;
	r->length = (uint32_t)lock->name.len;
	memcpy(r->name, lock->name.data, lock->name.len);
	ledger_publish(l, &r->head, LEDGER_LOCK);
	if (old)
		ledger_drop(l, &old->head);
	LOCK_DIRECTORIES(d, lock)
	d->record = r;
}

void lock_ledger_remove(struct lock *lock)
{
	struct ledger *l = lock->locks->env->ledger;

	if (l)
		ledger_drop(l, &lock->directory.record->head);
}

COLD void grant_ledger_write(struct grant *g)
{
	struct ledger *l = g->lock->locks->env->ledger;
	struct ledger_grant *old = g->record, *r;

	if (!l)
		return;
	if (!g->client->record)
		client_ledger_add(g->client);
	r = ledger_take(l, sizeof(*r) + g->data.len);
	r->head.number = old ? old->head.number : ++l->last_number;
	r->lock = g->lock->directory.record->head.number;
	r->client = g->client->id;
	r->token = LEDGER_TOKEN(g->token, g->mode);
	r->flags = grant_ledger_flags(g);
	r->depth = g->depth;
	r->lease_ns = g->lease.place ? g->lease.due_ns : LEDGER_NO_LEASE;
	r->granted_ns = g->granted_ns;
	r->length = g->data.len;
	if (g->data.len)
		memcpy(r->data, g->data.data, g->data.len);
	ledger_publish(l, &r->head, LEDGER_GRANT);
	g->record = r;
	if (old)
		ledger_drop(l, &old->head);
}
