/* SPDX-License-Identifier: Apache-2.0 */
#include "base/charge.h"

#include <assert.h>

void charge_set(struct charge *c, struct account *a, size_t pool, uint64_t amount)
{
	struct charge before = *c;

	*c = (struct charge){ 0 };
	/* The account must not be freed in between. */
	charge_force(c, a, pool, amount);
	charge_give_back(&before, pool);
}

bool charge_change(struct charge *c, struct account *a, size_t pool, uint64_t amount, bool privileged)
{
	assert(!c->account || c->account == a);
	if (amount > c->amount && !account_may(a, pool, amount - c->amount, privileged))
		return false;
	charge_set(c, a, pool, amount);
	return true;
}
