/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An account has the use of the shared resources, a few pools, by one user or by one systemd unit of a user. A charge is a
 * field of the thing that it is for, and is given back with that thing.
 *
 *   - A charge c of account u is admitted if used_u + c <= share * (total - reserve - used by all others). So one user
 *     alone can have that share of a pool, a second one the same share of the rest, and so on: as long as the share is less
 *     than 100 %, nobody can take the part that the next user needs.
 *   - Of an empty pool a first charge is admitted up to total - reserve: no pool is too small to be used.
 *   - The privileged (operators) are admitted up to the total: nobody else can use the reserve.
 *   - This is checked when something is charged. Nothing is taken away later: another total or share applies to later
 *     charges. A charge that is restored or cannot be refused is made by force.
 *   - The use of a pool is the sum of its use by all accounts, and the sum of all charges. An account exists as
 *     long as it has references or charges; when it is freed, all of its pools are zero.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/map.h"
#include "base/queue.h"

enum { ACCOUNT_POOLS_MAX = 10, ACCOUNT_PERCENT = 100, ACCOUNT_RESERVE_PART = 50 /* 2 % */ };

struct pool {
	uint64_t total, reserve, used;
	uint64_t weight; /* share * (total - reserve) */
	uint64_t easy;   /* as long as all together use no more, nobody can be beyond a share */
};

struct account {
	struct accounts *all;
	struct map_node node;
	TAILQ_ENTRY(account) link; /* all->list */
	uint32_t uid;
	char *unit;        /* ""; a name: the account is of that unit of the user */
	size_t references; /* calls of account_enter() without account_leave() yet, and its charges */
	uint64_t used[ACCOUNT_POOLS_MAX];
	char *kept[ACCOUNT_POOLS_MAX]; /* a sentence: a use of that pool that its user may not know of; NULL: there is none */
};

struct accounts {
	struct map map;
	TAILQ_HEAD(account_list, account) list; /* in order of coming */
	uint64_t share;                         /* percent */
	size_t pool_count;
	struct pool pools[ACCOUNT_POOLS_MAX];
	const uint32_t *by_unit; /* users that have an account for each of their units, as root has */
	size_t by_unit_count;
	struct account nobody; /* is charged for things without a user; it is always there, and not in the list */
};

/* Totals are 0, the share is 100. The keys are of the hash of names (map.h). */
void accounts_init(struct accounts *all, size_t pool_count, uint64_t key0, uint64_t key1);
void accounts_deinit(struct accounts *all); /* nothing is charged, and nobody has a reference */
void accounts_set_share(struct accounts *all, unsigned int percent); /* 1..100 */
void accounts_set_total(struct accounts *all, size_t pool, uint64_t total);
/* The array is borrowed until the next call. Accounts that exist do not change. */
void accounts_set_by_unit(struct accounts *all, const uint32_t *uids, size_t count);
bool accounts_has_units(const struct accounts *all, uint32_t uid); /* so that its unit has to be known */

/* The account of a user and, if it has one for each, of the unit; one more reference. */
struct account *account_enter(struct accounts *all, uint32_t uid, const char *unit, size_t unit_len);
void account_leave(struct account *a);
/* The account that account_enter() gives, without a reference; NULL: there is none. */
struct account *account_find(const struct accounts *all, uint32_t uid, const char *unit, size_t unit_len);
/* How much it may use in all. It uses more if its share became smaller, or if it was charged by force. */
uint64_t account_allowed(const struct account *a, size_t pool, bool privileged);
bool account_is_admitted(const struct account *a, size_t pool, uint64_t more, bool privileged); /* by the whole rule */
void account_keeps(struct account *a, size_t pool, const char *text, size_t len);            /* `kept`, copied */
void account_free(struct account *a);                                                        /* when it is empty */

/* Each request asks this, more than once; most often the first comparison is enough. */
static inline bool account_may(const struct account *a, size_t pool, uint64_t more, bool privileged)
{
	const struct pool *p = &a->all->pools[pool];

	return p->used + more <= p->easy || account_is_admitted(a, pool, more, privileged);
}
