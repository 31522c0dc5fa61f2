/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A charge: the use of one pool by one account (account.h), for one thing. It is a field of that thing; each call names the
 * pool, which is always the same.
 */
#pragma once

#include "base/account.h"

/*
 * A thing that cannot outlive a reference to its account, and costs the same each time, needs no struct: its owner knows
 * both. These functions are for such things, and count no reference.
 */
static inline void charge_add(struct account *a, size_t pool, uint64_t amount)
{
	a->used[pool] += amount;
	a->all->pools[pool].used += amount;
}

static inline void charge_remove(struct account *a, size_t pool, uint64_t amount)
{
	a->used[pool] -= amount;
	a->all->pools[pool].used -= amount;
}

/* Zeroed: nothing is charged. */
struct charge {
	struct account *account; /* NULL if amount is 0 */
	uint64_t amount;
};

/* Nothing is charged yet. */
static inline void charge_force(struct charge *c, struct account *a, size_t pool, uint64_t amount)
{
	if (!amount)
		return;
	*c = (struct charge){ a, amount };
	a->references++;
	charge_add(a, pool, amount);
}

static inline bool charge_try(struct charge *c, struct account *a, size_t pool, uint64_t amount, bool privileged)
{
	if (!account_may(a, pool, amount, privileged))
		return false;
	charge_force(c, a, pool, amount);
	return true;
}

/* Takes one that is empty. */
static inline void charge_give_back(struct charge *c, size_t pool)
{
	struct account *a = c->account;

	if (!a)
		return;
	charge_remove(a, pool, c->amount);
	*c = (struct charge){ 0 };
	if (!--a->references)
		account_free(a);
}

/* Sets account and amount, which may be 0, without a check. */
void charge_set(struct charge *c, struct account *a, size_t pool, uint64_t amount);
/* Sets the amount, of the same account. False: it is not admitted, and did not change. Less is always admitted. */
bool charge_change(struct charge *c, struct account *a, size_t pool, uint64_t amount, bool privileged);
