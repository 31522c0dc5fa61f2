/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stands around broker_handle() in a build with STEPS=1: an event that takes more steps than its bound ends the program. The
 * bound is a number for each event, and the additions of the table of events that grow in docs/design/work.md. At the end of
 * the program the number of events and the longest one are written to stderr if LOCKBROKER_STEPS is set.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#include "core/state.h"
#include "tests/steps/count.h"

enum {
	EVENT = 30000, /* every event: some turns (core/port/work.h), and what one request or answer can need */
	BYTE = 24,     /* each byte of its request, or of what ZooKeeper says */
	DUE = 4000,    /* each deadline that is due with it: what has waited or was held is ended and told */
	CHILD = 60,    /* each child of a directory that is listed */
	SENT = 1000,   /* each operation that it sends: as many as the window of the connection has room for */
	RECORD = 1000, /* each record of the flight recorder, for LOG; and BYTE for each of its bytes */
	LOOK = 25,     /* each grant, wait or client that searches for a deadlock look at: DEADLOCK_EDGES_IN_ALL at most */
	CLAIM = 100,   /* each claim of a semaphore: a permit counts by comparison with all */
	/*
	 * When a session or a connection begins or ends, when what may be granted changes, and at a stop: each of these. When
	 * something is due or ZooKeeper says something of a znode: each wait and each grant.
	 */
	LOCK = 400,
	CLIENT = 300,
	WAIT = 300,
	GRANT = 1000,
	OPERATION = 300,
};

void __real_broker_handle(struct broker *b, int64_t now_ns, const struct event *event, struct effects *effects);
void __wrap_broker_handle(struct broker *b, int64_t now_ns, const struct event *event, struct effects *effects);

static uint64_t events;
static struct {
	uint64_t steps, may;
	char text[160];
} longest;

static size_t bytes_of(const struct event *event)
{
	size_t bytes = 0;

	if (event->type == EVENT_CLIENT_ASKED)
		for (size_t i = 0; i < event->asked.argc; i++)
			bytes += event->asked.argv[i].len + 1;
	if (event->type == EVENT_ZK_ANSWERED) {
		bytes += event->zk_answered.data.len + event->zk_answered.path.len;
		for (size_t i = 0; i < event->zk_answered.count; i++)
			bytes += event->zk_answered.children[i].len;
	}
	return bytes;
}

static size_t due(const struct heap *timers, int64_t now_ns)
{
	size_t count = 0;

	for (size_t i = 1; i <= timers->count; i++)
		count += timers->timers[i]->due_ns <= now_ns;
	return count;
}

static uint64_t of_records(const struct broker *b, const struct event *event)
{
	const struct flight_ring *f = b->env.conf->flight;
	bool asked = event->type == EVENT_CLIENT_ASKED && event->asked.argv[0].len == 3 &&
		     strncasecmp(event->asked.argv[0].data, "LOG", 3) == 0;

	return f && asked ? RECORD * (f->next - f->oldest) + BYTE * (f->end - f->first) : 0;
}

/* What concerns all that the broker has. */
static bool is_for_all(const struct event *event)
{
	return (event->type >= EVENT_ZK_CONNECTED && event->type <= EVENT_ZK_EXPIRED) ||
	       event->type == EVENT_ZK_PACKET || event->type == EVENT_TOKENS || event->type == EVENT_CONF ||
	       event->type == EVENT_STOP || event->type == EVENT_FORMER_OVER || event->type == EVENT_RESTART_OVER;
}

static uint64_t of_waits_and_grants(const struct broker *b)
{
	return WAIT * b->locks.request_count + GRANT * b->locks.grant_count;
}

static uint64_t of_all(const struct broker *b)
{
	const struct operations *o = &b->ensemble.operations;

	return of_waits_and_grants(b) + LOCK * b->locks.names.count + CLIENT * b->locks.client_count +
	       OPERATION * (o->end - o->first);
}

static size_t sent(const struct effects *effects)
{
	size_t count = 0;

	for (size_t i = 0; i < effects->count; i++)
		count += effects->list[i].type >= EFFECT_ZK_CREATE && effects->list[i].type <= EFFECT_ZK_SET;
	return count;
}

void __wrap_broker_handle(struct broker *b, int64_t now_ns, const struct event *event, struct effects *effects)
{
	size_t bytes = bytes_of(event), children = event->type == EVENT_ZK_ANSWERED ? event->zk_answered.count : 0;
	size_t due_count = due(&b->env.timers, now_ns);
	uint64_t all = of_all(b), before = steps_count(), steps;
	uint64_t may = EVENT + BYTE * bytes + DUE * due_count + CHILD * children + CLAIM * b->directories.claim_count +
		       of_records(b, event);
	enum session_state state = b->ensemble.session.state;
	size_t sent_before = sent(effects);
	bool restored = b->restored, proving = b->ensemble.session.proving;

	if (due_count || event->type == EVENT_ZK_ANSWERED || event->type == EVENT_ZK_WATCH)
		may += of_waits_and_grants(b);
	events++;
	__real_broker_handle(b, now_ns, event, effects);
	steps = steps_count() - before;
	may += SENT * (sent(effects) - sent_before) + LOOK * b->locks.searched;
	if (is_for_all(event) || restored || b->ensemble.session.state != state ||
	    b->ensemble.session.proving != proving)
		may += all;
	if (steps <= longest.steps && steps <= may)
		return;
	longest.steps = steps;
	longest.may = may;
	snprintf(longest.text, sizeof(longest.text), "type %d, %zu bytes, %.*s", (int)event->type, bytes,
		 event->type == EVENT_CLIENT_ASKED
			 ? (int)(event->asked.argv[0].len > 40 ? 40 : event->asked.argv[0].len)
			 : 0,
		 event->type == EVENT_CLIENT_ASKED ? event->asked.argv[0].data : "");
	if (steps <= may)
		return;
	fprintf(stderr, "An event (%s) took %" PRIu64 " steps, and may take %" PRIu64 ".\n", longest.text, steps, may);
	abort();
}

static void __attribute__((destructor)) publish(void)
{
	if (longest.steps && getenv("LOCKBROKER_STEPS"))
		fprintf(stderr, "The longest of %" PRIu64 " events (%s) took %" PRIu64 " steps, and might take %" PRIu64 ".\n",
			events, longest.text, longest.steps, longest.may);
}
