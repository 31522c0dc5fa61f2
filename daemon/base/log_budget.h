/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How many lines of a kind that everybody causes pass: of the whole daemon, and fairly among the accounts that cause them.
 *
 * There are LOG_BUDGET_LINES places. A line takes one, which comes back later: one place each `every_ns`, by turns to the
 * accounts that have some. So in the long run each account gets all that it needs, or at least its part. An account may have
 * at most four fifths of the places that the others leave, so that one that comes later finds some. Important lines have
 * a quarter more places: they pass before others of the same account, and do not pass more often in the long run.
 *
 * At most LOG_BUDGET_ACCOUNTS accounts are told apart; further ones count as one.
 *
 * Pure: the caller has the clock.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/log_bucket.h"

enum { LOG_BUDGET_LINES = 500, LOG_BUDGET_IMPORTANT = 625, LOG_BUDGET_ACCOUNTS = 64, LOG_ENTRY_BYTES = 1300 };

struct log_budget_account {
	uint32_t uid;
	uint64_t unit_hash;
	uint32_t used; /* places, at least one */
};

struct log_budget {
	struct log_budget_account accounts[LOG_BUDGET_ACCOUNTS];
	size_t count, next; /* next: to which a place comes back */
	uint32_t used;
	int64_t every_ns, back_ns; /* back: when the latest place came back, or could have */
};

/* So many bytes of the journal a day, in the long run: LOG_ENTRY_BYTES a line. */
void log_budget_set(struct log_budget *b, int64_t bytes_per_day);
bool log_budget_pass(struct log_budget *b, const struct log_account *account, bool important, int64_t now_ns);
