/* SPDX-License-Identifier: Apache-2.0 */
#include "core/kind/payer.h"

#include "core/claim/charge.h"
#include "core/kind/observe.h"
#include "core/kind/semaphore.h"
#include "core/lock/locks.h"

struct account *payer_of(const struct lock *lock)
{
	struct account *user = lock_user(lock);

	if (!user && observation_of(lock))
		user = TAILQ_FIRST(&observation_of(lock)->observers)->client->account;
	return user;
}

static size_t permits_of(const struct grant *g)
{
	return g ? (size_t)g->depth : 0;
}

struct payer_permits payer_permits(const struct lock *lock)
{
	const struct grant *first = TAILQ_FIRST(&lock->grants);

	return (struct payer_permits){ .lock = lock, .grant = first, .left = permits_of(first) };
}

struct account *payer_of_next(struct payer_permits *p)
{
	const struct semaphore *s = semaphore_of(p->lock);

	while (p->grant && p->left == 0) {
		p->grant = TAILQ_NEXT(p->grant, link);
		p->left = permits_of(p->grant);
	}
	if (!p->grant)
		return s->gathering ? s->gathering->client->account : NULL;
	p->left--;
	return p->grant->client->account;
}

static void settle_permits(const struct lock *lock)
{
	struct payer_permits permits = payer_permits(lock);
	struct account *payer;
	struct claim *c;

	TAILQ_FOREACH(c, &lock->slots->slots, link) {
		payer = payer_of_next(&permits);
		if (payer && c->path.amount && payer != c->path.account)
			charge_set(&c->path, payer, POOL_PATHS, c->path.amount);
	}
}

void payer_settle(struct lock *lock)
{
	const struct request *head = TAILQ_FIRST(&lock->requests);
	struct account *payer = payer_of(lock);

	if (payer && payer != lock->charge.account)
		lock_pay(lock, payer);
	if (!lock->slots)
		return;
	if (head && lock->directory.payer != head->client->account)
		charge_to(&lock->directory, head->client->account);
	else if (!head && lock->directory.payer != lock->charge.account)
		charge_to(&lock->directory, lock->charge.account);
	settle_permits(lock);
}
