/* What a host has asked of ZooKeeper and not been answered, kept beside the broker's own books. */
#include "world.h"

#include <inttypes.h>

static int64_t silent_since(const struct load *l)
{
	int64_t sent = l->sent_at[l->first % LOAD_MAX];

	return l->first == l->end ? INT64_MAX : sent > l->answered_at ? sent : l->answered_at;
}

void load_sent(struct host *h, const struct effect *e)
{
	struct load *l = &h->load;

	if (l->end - l->first == LOAD_MAX)
		world_fail(h->w, -1, "host %d: %d operations are open", h->index, LOAD_MAX);
	if (l->first == l->end)
		l->first = l->end = e->op;
	if (e->op != l->end)
		world_fail(h->w, -1, "host %d: operation %" PRIu64 " follows %" PRIu64, h->index, e->op, l->end - 1);
	l->sent_at[l->end++ % LOAD_MAX] = h->w->sched.now;
}

/* Deadlines come first: what the event says is taken in when it was carried out. */
void load_before(struct host *h, const struct event *e)
{
	h->load.before = h->load.end;
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

static void take_in(struct load *l, const struct event *e, int64_t now)
{
	if (e->type == EVENT_ZK_SUSPENDED || e->type == EVENT_ZK_EXPIRED) {
		l->first = l->end;
	} else if (e->type == EVENT_ZK_CONNECTED && l->first < l->before) {
		l->first = l->before;
	} else if (e->type == EVENT_ZK_ANSWERED && !l->failed && e->zk_answered.op >= l->first) {
		l->first = e->zk_answered.op + 1;
		l->answered_at = now;
	}
}

void load_after(struct host *h, const struct event *e)
{
	int64_t since;

	take_in(&h->load, e, h->w->sched.now);
	since = silent_since(&h->load);
	if (since != INT64_MAX && broker_deadline(h->broker) - h->offset > since + h->w->timeout / 6)
		world_fail(h->w, -1, "host %d: the timer comes after a sixth of T without an answer", h->index);
}
