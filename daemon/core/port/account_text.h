/* SPDX-License-Identifier: Apache-2.0 */
/* Accounts in sentences. */
#pragma once

#include "base/account.h"
#include "protocol/bytes.h"

/* How a pool is called, the limit that says its total, what its user can do about it, and its name in METRICS. */
struct pool_words {
	const char *noun, *limit, *advice, *metric; /* metric NULL: it is none, or is shown in another way */
};

/* user 1000 (unit web.service) */
void account_name(const struct account *a, struct bytes *out);
/* ... uses 75 of 75 allowed connections (limits.clients, limits.user_share): close some; and what is `kept` of these. */
void account_refusal(const struct account *a, size_t pool, bool privileged, const struct pool_words *words,
		     struct bytes *out);
