/* SPDX-License-Identifier: Apache-2.0 */
/* A host's requests to ZooKeeper that are not answered yet, kept beside the broker's own state. */
#include "world.h"

#include <inttypes.h>

#include "core/state.h"

/*
 * A new connection is taken to be able to answer so many at once. Heartbeats, and the rest of what one claim sends together,
 * go beyond what may be open.
 */
enum { FIRST = 150, BEYOND = 8, LOOKS_MAX = 20 };

static int64_t silent_since(const struct load *l)
{
	int64_t sent = l->sent_at[l->first % LOAD_MAX];

	return l->first == l->end ? INT64_MAX : sent > l->answered_at ? sent : l->answered_at;
}

static bool is_brokers(struct slice path)
{
	return memmem(path.data, path.len, "/.", 2);
}

static bool is_write(const struct effect *e)
{
	return e->type != EFFECT_ZK_LIST && e->type != EFFECT_ZK_GET;
}

/*
 * Behind what has waited for long nothing is read, and no more reads and writes are open than the connection has shown that
 * it can answer.
 */
static void check_window(const struct host *h, const struct effect *e, struct slice path)
{
	const struct load *l = &h->load;
	uint64_t seen = l->most[0] + l->most[1], most = (2 * seen > FIRST ? 2 * seen : FIRST) + BEYOND;
	uint64_t first = l->first > l->answering ? l->first : l->answering;
	int64_t age;

	if (first >= l->end || l->wrote || is_brokers(path))
		return;
	age = h->w->sched.now - l->sent_at[first % LOAD_MAX];
	if (e->type == EFFECT_ZK_LIST && age >= h->w->timeout / 12)
		world_fail(h->w, -1, "host %d: lists %.*s behind an operation that has been open for %" PRId64 " ms",
			   h->index, (int)path.len, path.data, age / MS);
	if (l->end - first > most)
		world_fail(h->w, -1,
			   "host %d: %" PRIu64 " operations are open, and no more than %" PRIu64
			   " were ever answered in time", h->index, l->end - first, seen);
}

void load_sent(struct host *h, const struct effect *e, struct slice path)
{
	struct load *l = &h->load;

	if (l->end - l->first == LOAD_MAX)
		world_fail(h->w, -1, "host %d: %d operations are open", h->index, LOAD_MAX);
	if (l->first == l->end)
		l->first = l->end = e->op;
	if (e->op != l->end)
		world_fail(h->w, -1, "host %d: operation %" PRIu64 " follows %" PRIu64, h->index, e->op, l->end - 1);
	check_window(h, e, path);
	/* By a timer no more than a few are looked at: who joins writes as well. */
	if (e->type == EFFECT_ZK_GET && !e->watch && l->by_time && ++l->looks > LOOKS_MAX && !l->wrote)
		world_fail(h->w, -1, "host %d: looks at all that waits in one event", h->index);
	l->wrote |= e->type == EFFECT_ZK_CREATE;
	l->writes[l->end % LOAD_MAX] = is_write(e);
	l->answered_when_sent[l->end % LOAD_MAX] = l->answered[is_write(e)];
	l->sent_at[l->end++ % LOAD_MAX] = h->w->sched.now;
}

/* Deadlines come first: what the event says is taken in when it was carried out. */
void load_before(struct host *h, const struct event *e)
{
	h->load.wrote = e->type == EVENT_ZK_CONNECTED;
	/* Of a host that stood still much is overdue at once: the window bounds that. */
	h->load.by_time = e->type == EVENT_TIME && h->w->sched.now - h->load.handled_at < h->w->timeout / 3;
	h->load.handled_at = h->w->sched.now;
	h->load.looks = 0;
	h->load.answering = e->type == EVENT_ZK_ANSWERED ? e->zk_answered.op + 1 : 0;
	h->load.failed = e->type == EVENT_ZK_ANSWERED && e->zk_answered.code == ZK_UNKNOWN;
}

/* A busy answer is no silence: the connection is dropped when nothing was answered for a sixth of T, and not before. */
void load_dropped(struct host *h)
{
	struct load *l = &h->load;
	int64_t since = silent_since(l);

	if (!l->failed && (since == INT64_MAX || h->w->sched.now - since < h->w->timeout / 6))
		world_fail(h->w, -1, "host %d: drops a connection that was answered %" PRId64 " ms ago", h->index,
			   since == INT64_MAX ? -1 : (h->w->sched.now - since) / MS);
	l->first = l->end;
}

/* The session was given up: nothing of it is answered any longer. */
void load_opened(struct host *h)
{
	h->load.first = h->load.end;
}

static void take_in(struct host *h, const struct event *e)
{
	int64_t now = h->w->sched.now, timeout = h->w->timeout;
	struct load *l = &h->load;
	uint64_t at_once, first;
	size_t at;
	bool write;

	if (e->type == EVENT_ZK_SUSPENDED || e->type == EVENT_ZK_EXPIRED) {
		l->first = l->end;
	} else if (e->type == EVENT_ZK_CONNECTED) {
		/* What a deadline led to at the beginning of this event counts as asked on the connection before. */
		first = h->broker->ensemble.operations.first;
		l->first = l->first < first ? first : l->first;
		l->most[0] = l->most[1] = 0;
	} else if (e->type == EVENT_ZK_ANSWERED && !l->failed && e->zk_answered.op >= l->first) {
		at = e->zk_answered.op % LOAD_MAX;
		write = l->writes[at];
		l->first = e->zk_answered.op + 1;
		l->answered_at = now;
		at_once = ++l->answered[write] - l->answered_when_sent[at];
		if (at_once > l->most[write] && now - l->sent_at[at] <= timeout / 12)
			l->most[write] = at_once;
	}
}

void load_after(struct host *h, const struct event *e)
{
	int64_t since;

	take_in(h, e);
	since = silent_since(&h->load);
	if (since != INT64_MAX && broker_deadline(h->broker) - h->offset > since + h->w->timeout / 6)
		world_fail(h->w, -1, "host %d: the timer comes after a sixth of T without an answer", h->index);
}
