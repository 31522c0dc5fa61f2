/* SPDX-License-Identifier: Apache-2.0 */
#include "core/port/pools.h"

#include "core/port/env.h"

const struct pool_words pools_words[POOLS] = {
	[POOL_REQUESTS] = { "waiting requests", "limits.requests", "withdraw some, or wait until some are answered",
			  "requests" },
	[POOL_GRANTS] = { "locks held or waited for", "limits.grants", "release some before you ask for more", "grants" },
	[POOL_LOCKS] = { "names of locks in use", "limits.locks", "release some before you ask for more", NULL },
	[POOL_PATHS] = { "bytes of znode paths in this host's session", "limits.session_path_bytes",
			 "release some locks before you ask for more", "session_path_bytes" },
	[POOL_WATCHES] = { "bytes of watched znode paths", "limits.session_path_bytes",
			   "release some locks before you ask for more",
			  "watch_path_bytes" },
	[POOL_OBSERVERS] = { "observed elections", "limits.observers", "UNOBSERVE some", "observers" },
	[POOL_MEMORY] = { "bytes of unread events, of names that wait and of lists", "limits.memory_bytes",
			  "fetch them with EVENTS, or ask for one list after the other", "memory_bytes" },
	[POOL_NAMES] = { "names that are new to ZooKeeper", "limits.new_names",
			 "wait, or use names that exist: limits.new_names_per_s go back each second", NULL },
	[POOL_LASTING] = { "directories that stay in ZooKeeper for good", "limits.lasting_directories",
			   "use names that exist there, or, at a server that has containers, a prefix of another flavour than kazoo",
			   "lasting_directories" },
	[POOL_LETTERS] = { "letters to other hosts", "176 at a time", "try again in a few seconds",
			  "letters" },
};

void pools_configure(struct env *env)
{
	const struct broker_limits *l = &env->conf->limits;
	struct accounts *all = &env->accounts;

	accounts_set_share(all, l->user_share);
	accounts_set_by_unit(all, l->by_unit, l->by_unit_count);
	accounts_set_total(all, POOL_REQUESTS, l->requests);
	accounts_set_total(all, POOL_GRANTS, l->grants);
	accounts_set_total(all, POOL_LOCKS, l->locks);
	accounts_set_total(all, POOL_OBSERVERS, l->observers);
	accounts_set_total(all, POOL_MEMORY, l->memory_bytes);
	accounts_set_total(all, POOL_NAMES, l->new_names);
	accounts_set_total(all, POOL_LASTING, l->lasting_directories);
}

const char *pools_refusal(struct env *env, const struct account *a, enum pool_number pool, bool privileged)
{
	bytes_clear(&env->refusal);
	account_refusal(a, pool, privileged, &pools_words[pool], &env->refusal);
	bytes_char(&env->refusal, 0);
	return env->refusal.data;
}
