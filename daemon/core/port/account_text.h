/* SPDX-License-Identifier: Apache-2.0 */
/* Accounts in sentences. */
#pragma once

#include "base/account.h"
#include "protocol/bytes.h"

/* The name of a pool, the limit that sets its total, the advice for its user, and its name in METRICS. */
struct pool_words {
	const char *noun, *limit, *advice, *metric; /* metric NULL: it is none, or is shown in another way */
};

/* user 1000 (unit web.service) */
void account_name(const struct account *a, struct bytes *out);
/* ... uses 75 of 75 allowed connections (limits.clients, limits.user_share): close some; and the account's `kept`. */
void account_refusal(const struct account *a, size_t pool, bool privileged, const struct pool_words *words,
		     struct bytes *out);
