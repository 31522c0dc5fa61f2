/* SPDX-License-Identifier: Apache-2.0 */
#include "core/lock/notification.h"

#include "base/mem.h"
#include "core/lock/client_ledger.h"
#include "core/lock/locks.h"

bool notification_counts(enum notification_type type)
{
	return type != NOTIFICATION_LOST && type != NOTIFICATION_LEADER;
}

size_t notification_bytes(const struct notification *n)
{
	return sizeof(*n) + n->text.len;
}

void notification_keep(struct client *c, const struct notification *told)
{
	struct notification *n = mem_new(sizeof(*n));

	*n = *told;
	assert(!n->place || !*n->place);
	if (n->place)
		*n->place = n;
	TAILQ_INSERT_TAIL(&c->notifications, n, link);
	n->charge = (struct charge){ 0 };
	if (notification_counts(n->type)) {
		c->notification_count++;
		charge_force(&n->charge, c->account, POOL_MEMORY, notification_bytes(n));
	}
	client_ledger_review(c);
}

void notification_add(struct client *c, const struct notification *told)
{
	notification_keep(c, told);
	if (notification_counts(told->type) && c->notification_count > c->locks->env->conf->limits.events_per_client)
		client_close(c);
}

void notification_free(struct client *c, struct notification *n)
{
	if (n->place)
		*n->place = NULL;
	TAILQ_REMOVE(&c->notifications, n, link);
	if (notification_counts(n->type))
		c->notification_count--;
	charge_give_back(&n->charge, POOL_MEMORY);
	client_ledger_review(c);
	bytes_free(&n->text);
	mem_free(n);
}

void notification_drop_all(struct client *c)
{
	struct notification *n;

	while ((n = TAILQ_FIRST(&c->notifications)))
		notification_drop(c, n);
}
