/* SPDX-License-Identifier: Apache-2.0 */
#include "core/command/uncovered.h"

#include <stddef.h>

enum { FAMILY_MAX = 16 };

static const struct {
	const char *why;
	const char *commands[FAMILY_MAX + 1];
} families[] = {
	{ "lockbroker keeps no hashes, so locks that are kept in one, as those of Redisson are, are not covered: use locks "
	  "that are set with SET NX PX",
	  { "HSET", "HSETNX", "HMSET", "HGET", "HMGET", "HGETALL", "HEXISTS", "HINCRBY", "HDEL", "HLEN", "HPEXPIRE" } },
	{ "lockbroker keeps no sorted sets, so locks and semaphores that are kept in one, as Symfony's are since 5.2, are "
	  "not covered: use locks that are set with SET NX PX, or ACQUIRE",
	  { "ZADD", "ZREM", "ZCARD", "ZCOUNT", "ZSCORE", "ZRANK", "ZRANGE", "ZREVRANGE", "ZRANGEBYSCORE",
	    "ZREMRANGEBYSCORE", "ZPOPMIN" } },
	{ "nothing is published here: who waits for a lock asks again, or waits with LOCK",
	  { "PUBLISH", "SPUBLISH", "SUBSCRIBE", "PSUBSCRIBE", "SSUBSCRIBE", "UNSUBSCRIBE", "PUNSUBSCRIBE",
	    "SUNSUBSCRIBE", "PUBSUB" } },
	{ "there is no log-in, for the kernel tells which user connects: take the password from the URL", { "AUTH" } },
	{ "there are no transactions here: release or extend a lock by its value, with a script that compares it",
	  { "MULTI", "EXEC", "DISCARD", "WATCH", "UNWATCH" } },
};

const char *uncovered(struct slice command)
{
	for (size_t i = 0; i < sizeof(families) / sizeof(*families); i++)
		for (const char *const *word = families[i].commands; *word; word++)
			if (slice_is(command, *word))
				return families[i].why;
	return NULL;
}
