/* SPDX-License-Identifier: Apache-2.0 */
#include "core/port/account_text.h"

#include "protocol/bytes_format.h"

void account_name(const struct account *a, struct bytes *out)
{
	if (a == &a->all->nobody)
		bytes_text(out, "the daemon");
	else
		bytes_format(out, "user %d", a->uid);
	if (a->unit && *a->unit)
		bytes_format(out, " (unit %s)", a->unit);
}

void account_refusal(const struct account *a, size_t pool, bool privileged, const struct pool_words *words,
		     struct bytes *out)
{
	account_name(a, out);
	bytes_format(out, " uses %d of %d allowed %s (%s, limits.user_share): %s", a->used[pool],
		     account_allowed(a, pool, privileged), words->noun, words->limit, words->advice);
	if (a->kept[pool])
		bytes_format(out, "; %s", a->kept[pool]);
}
