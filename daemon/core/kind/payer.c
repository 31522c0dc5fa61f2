/* SPDX-License-Identifier: Apache-2.0 */
#include "core/kind/payer.h"

#include "core/claim/charge.h"
#include "core/kind/observe.h"
#include "core/kind/semaphore.h"
#include "core/lock/locks.h"

struct account *payer_of(const struct lock *lock)
{
	struct account *user = lock_user(lock);

	if (!user && lock->observation)
		user = TAILQ_FIRST(&lock->observation->observers)->client->account;
	return user;
}

struct account *payer_of_permit(const struct lock *lock, size_t number)
{
	const struct grant *g;

	TAILQ_FOREACH(g, &lock->grants, link) {
		if (number < (size_t)g->depth)
			return g->client->account;
		number -= (size_t)g->depth;
	}
	return lock->semaphore->gathering ? lock->semaphore->gathering->client->account : NULL;
}

static void settle_permits(const struct lock *lock)
{
	struct account *payer;
	struct claim *c;
	size_t number = 0;

	TAILQ_FOREACH(c, &lock->slots->slots, link) {
		payer = payer_of_permit(lock, number++);
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
