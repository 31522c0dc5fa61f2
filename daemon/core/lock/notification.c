/* SPDX-License-Identifier: Apache-2.0 */
#include "core/lock/notification.h"

#include <assert.h>

#include "base/mem.h"
#include "core/lock/locks.h"

/* Types that are bounded otherwise do not count. */
static bool counts(enum notification_type type)
{
	return type != NOTIFICATION_LOST && type != NOTIFICATION_LEADER;
}

struct notification *notification_add(struct client *c, enum notification_type type, struct notification **place)
{
	struct notification *n = mem_new(sizeof(*n));

	assert(!place || !*place);
	n->type = type;
	n->place = place;
	if (place)
		*place = n;
	TAILQ_INSERT_TAIL(&c->notifications, n, link);
	if (counts(type) && ++c->notification_count > c->locks->env->conf->limits.events_per_client)
		client_close(c);
	return n;
}

void notification_drop(struct client *c, struct notification *n)
{
	if (!n)
		return;
	if (n->place)
		*n->place = NULL;
	TAILQ_REMOVE(&c->notifications, n, link);
	if (counts(n->type))
		c->notification_count--;
	bytes_free(&n->text);
	mem_free(n);
}

void notification_drop_all(struct client *c)
{
	struct notification *n;

	while ((n = TAILQ_FIRST(&c->notifications)))
		notification_drop(c, n);
}
