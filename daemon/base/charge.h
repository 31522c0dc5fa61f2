/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A charge: what one account (account.h) uses of one pool, for one thing. It is a field of that thing; each call names the
 * pool, which is always the same.
 */
#pragma once

#include "base/account.h"

/*
 * What cannot outlive a reference to its account, and is always charged the same, needs no struct: its owner knows
 * both. These are for that, and count no reference.
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

/* From now on it is that amount, of that account; what it becomes may be nothing. Nobody is asked. */
void charge_set(struct charge *c, struct account *a, size_t pool, uint64_t amount);
/* The same for the same account, or false: it is not admitted, and stays what it was. Less is always admitted. */
bool charge_change(struct charge *c, struct account *a, size_t pool, uint64_t amount, bool privileged);
