/* SPDX-License-Identifier: Apache-2.0 */
#include "io/recorder.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "core/port/ledger.h"
#include "io/base/feed.h"
#include "io/files/saved_table.h"

/* A file system without room is not asked for it all the time. */
#define PAUSE_NS CLOCK_NS_PER_S

struct recorder {
	struct feed *feed;
	struct saved *saved;
	struct ledger *ledger;
	size_t bytes;
	int64_t again_ns; /* no more is asked for before */
	struct log_rate rate;
};

_Static_assert(RECORDER_FIRST % LEDGER_CHUNK_BYTES == 0 && RECORDER_MORE % LEDGER_CHUNK_BYTES == 0, "whole chunks");

struct recorder *recorder_new(struct feed *feed, struct saved *saved)
{
	void *memory = saved_grow(saved, RECORDER_FIRST);
	struct recorder *r;

	if (!memory)
		return NULL;
	r = mem_new(sizeof(*r));
	r->feed = feed;
	r->saved = saved;
	r->bytes = RECORDER_FIRST;
	r->ledger = ledger_new(memory, RECORDER_FIRST);
	feed_record(feed, r->ledger);
	recorder_settle(r);
	return r;
}

void recorder_free(struct recorder *r)
{
	if (!r)
		return;
	feed_record(r->feed, NULL);
	ledger_free(r->ledger);
	mem_free(r);
}

/* A quarter of what there is: the number of times stays small. */
static bool grow(struct recorder *r)
{
	size_t more = r->bytes / 4 / RECORDER_MORE * RECORDER_MORE;
	void *memory;

	if (more < RECORDER_MORE)
		more = RECORDER_MORE;
	memory = saved_grow(r->saved, more);
	if (memory) {
		r->bytes += more;
		ledger_add(r->ledger, memory, more);
		return true;
	}
	r->again_ns = feed_seen(r->feed) + PAUSE_NS;
	return false;
}

static void settle(struct recorder *r)
{
	while (ledger_room(r->ledger) < RECORDER_LOW)
		if (!grow(r))
			break;
	if (!ledger_full(r->ledger))
		return;
	feed_record_missing(r->feed);
	if (ledger_full(r->ledger))
		log_rated(&r->rate, LOG_LEVEL_ERROR,
			  "the file saved cannot become larger: %s; if the daemon is killed now, all locks are lost",
			  strerror(errno));
}

void recorder_settle(struct recorder *r)
{
	if (r && ledger_room(r->ledger) < RECORDER_LOW && feed_seen(r->feed) >= r->again_ns)
		settle(r);
}
