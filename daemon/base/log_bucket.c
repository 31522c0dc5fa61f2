/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log_bucket.h"

#include <string.h>

#define NS_PER_MS INT64_C(1000000)

static const struct {
	int64_t burst, every_ns;
} kinds[] = {
#define X(name, burst, every_ms) { burst, (every_ms)*NS_PER_MS },
	LOG_EVENTS(X)
#undef X
};

/* FNV-1a. Units that collide share a bucket, no more. */
uint64_t log_unit_hash(struct slice text)
{
	uint64_t h = 0xcbf29ce484222325;

	for (size_t i = 0; i < text.len; i++)
		h = (h ^ (unsigned char)text.data[i]) * 0x100000001b3;
	return h;
}

/* As good as none. */
static bool is_free(const struct log_bucket *b, int64_t now_ns)
{
	return !b->used || (!b->held && b->full_ns <= now_ns);
}

static struct log_bucket *begin(struct log_bucket *b, enum log_event event)
{
	*b = (struct log_bucket){ .used = true, .event = event };
	return b;
}

static struct log_bucket *find(struct log_buckets *b, enum log_event event, const struct log_account *account,
			       int64_t now_ns)
{
	uint64_t unit_hash = account ? log_unit_hash(account->unit) : 0;
	struct log_bucket *place = NULL;

	for (size_t i = 0; account && i < LOG_BUCKETS_MAX; i++) {
		struct log_bucket *one = &b->accounts[i];

		if (one->used && one->event == event && one->uid == account->uid && one->unit_hash == unit_hash)
			return one;
		if (!place && is_free(one, now_ns))
			place = one;
	}
	if (!place)
		return b->events[event].used ? &b->events[event] : begin(&b->events[event], event);
	begin(place, event);
	place->named = true;
	place->uid = account->uid;
	place->unit_hash = unit_hash;
	place->unit_len = account->unit.len < LOG_UNIT_MAX ? account->unit.len : LOG_UNIT_MAX;
	if (place->unit_len)
		memcpy(place->unit, account->unit.data, place->unit_len);
	return place;
}

/* Lines that must find room when that one has passed. */
static int64_t reserve(enum log_event event, const struct log_account *account)
{
	if (log_is_of_hold(event))
		return LOG_ALL_LINES / 2;
	return account ? LOG_ALL_LINES / 10 : 0;
}

bool log_buckets_pass(struct log_buckets *b, enum log_event event, const struct log_account *account, int64_t now_ns)
{
	struct log_bucket *bucket = find(b, event, account, now_ns);
	int64_t every_ns = kinds[event].every_ns;

	if (bucket->full_ns < now_ns)
		bucket->full_ns = now_ns;
	if (b->all_full_ns < now_ns)
		b->all_full_ns = now_ns;
	if (bucket->full_ns - now_ns <= (kinds[event].burst - 1) * every_ns &&
	    b->all_full_ns - now_ns <= (LOG_ALL_LINES - 1 - reserve(event, account)) * LOG_ALL_EVERY_NS) {
		bucket->full_ns += every_ns;
		b->all_full_ns += LOG_ALL_EVERY_NS;
		return true;
	}
	if (!bucket->held++) {
		bucket->since_ns = now_ns;
		b->holding++;
	}
	return false;
}

static bool take(struct log_buckets *b, struct log_bucket *bucket, bool all, int64_t now_ns, struct log_bucket *ret)
{
	if (!bucket->held || (!all && now_ns - bucket->since_ns < LOG_TELL_NS))
		return false;
	*ret = *bucket;
	bucket->held = 0;
	b->holding--;
	return true;
}

bool log_buckets_take(struct log_buckets *b, bool all, int64_t now_ns, struct log_bucket *ret)
{
	if (!b->holding)
		return false;
	for (size_t i = 0; i < LOG_EVENT_COUNT; i++)
		if (take(b, &b->events[i], all, now_ns, ret))
			return true;
	for (size_t i = 0; i < LOG_BUCKETS_MAX; i++)
		if (take(b, &b->accounts[i], all, now_ns, ret))
			return true;
	return false;
}
