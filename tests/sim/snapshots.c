/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A host's process is replaced by another one, which has the state of the first from a snapshot, and its clients and its
 * session. Nobody notices, but for a short loss of the connection to ZooKeeper.
 */
#include "world.h"

#include <stdio.h>
#include <stdlib.h>

#include "anything.h"
#include "core/snapshot.h"
#include "core/state.h"

/* Of the seeds behind the first ones one in so many takes snapshots, whatever its mix. */
enum { FROM = 50, SHARE = 4, EVERY_MS = 1500 };

/* The handle of the new process knows the session, and the last zxid that that of the old one has seen. */
static void shut(struct host *h)
{
	if (h->broker->ensemble.session.connected && rng_percent(&h->w->snapshots.rng, 70))
		host_handle(h, &(struct event){ .type = EVENT_ZK_SUSPENDED, .zk_suspended.planned = true });
	zhandle_drop(h->zk, rng_percent(&h->w->snapshots.rng, 50));
	if (h->broker->ensemble.session.connected)
		host_handle(h, &(struct event){ .type = EVENT_ZK_SUSPENDED });
}

/* A record for the tests has to have something of everything. */
static size_t score(struct slice text)
{
	static const char *const words[] = { "former",     "claim",      "request",     "grant",        "slots",
					     "semaphore",  "observer",   "observation", "notification", "mlock",
					     "letter",     "client",     "group",       "child",        "lease",
					     "data",       "withheld",   "remembered",  "gathering",    "told jeopardy",
					     "events due", "restarting", "half closed", "lost",         "orphan",
					     "expired" };
	size_t found = 0;

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		char line[32];
		int len = snprintf(line, sizeof(line), "+%s\r\n", words[i]);

		found += memmem(text.data, text.len, line, (size_t)len) != NULL;
	}
	return found;
}

static void keep(struct tally *stats, struct slice text)
{
	size_t found = stats->snapshot_file ? score(text) : 0;
	FILE *f;

	if (found <= stats->snapshot_score)
		return;
	f = fopen(stats->snapshot_file, "wb");
	if (!f || fwrite(text.data, 1, text.len, f) != text.len || fclose(f))
		abort();
	stats->snapshot_score = found;
}

static struct broker *replaced(struct host *h)
{
	struct bytes text = { 0 }, again = { 0 }, why = { 0 };
	struct broker *b;

	broker_snapshot(h->broker, &text);
	b = broker_restore(reloads_read(h), bytes_view(&text), host_now(h), &why);
	if (!b)
		world_fail(h->w, -1, "host %d: its snapshot is refused: %.*s", h->index, (int)why.len, why.data);
	broker_snapshot(b, &again);
	if (!slice_eq(bytes_view(&text), bytes_view(&again)))
		world_fail(h->w, -1, "host %d: the snapshot of what came from a snapshot is another one", h->index);
	/* That of delegations is set once their pages are there. */
	if (broker_deadline(b) != broker_deadline(h->broker) && !h->conf.delegation && !h->w->mix->delegations)
		world_fail(h->w, -1, "host %d: a snapshot has another deadline", h->index);
	keep(h->w->stats, bytes_view(&text));
	bytes_free(&text);
	bytes_free(&again);
	bytes_free(&why);
	return b;
}

static void replace(struct host *h)
{
	struct broker *b;

	h->kill = (struct kill){ .off = true };
	TRACE(h->w, -1, "host %d is replaced", h->index);
	shut(h);
	b = replaced(h);
	broker_check(b);
	broker_free(h->broker);
	h->broker = b;
	if (h->w->any)
		lines_forget(h);
	delegations_resume(h);
	kills_record(h);
	h->kill.off = false;
	/* The new process has a handle only for a session that there is. */
	if (!b->env.conf->standalone && !b->ensemble.session.id) {
		zhandle_close(h->zk, false);
		h->opening = false;
	}
	if (h->w->last_fault < h->w->sched.now)
		h->w->last_fault = h->w->sched.now; /* as of any connection that is lost */
	h->w->stats->snapshots++;
	any_rules_restored(h);
	if (rng_percent(&h->w->snapshots.rng, 50))
		host_handle(h, &(struct event){ .type = EVENT_TIME });
}

static void due(void *world, uint64_t argument)
{
	struct world *w = world;
	struct host *h = &w->hosts[rng_below(&w->snapshots.rng, (uint32_t)w->host_count)];

	(void)argument;
	if (h->broker && !h->stopping && !h->dying && h->stopped_until <= w->sched.now)
		replace(h);
	snapshots_start(w);
}

void snapshots_start(struct world *w)
{
	int64_t mean = w->snapshots.every_ms * MS, from = w->leap_until > w->sched.now ? w->leap_until : w->sched.now;

	if (mean && !w->quiet)
		sched_at(&w->sched, from + rng_between(&w->snapshots.rng, 1, 2 * mean), due, w, 0);
}

void snapshots_init(struct world *w)
{
	w->snapshots.rng.state = w->seed * 0xd1342543de82ef95u + 7; /* all else is what it is without */
	w->snapshots.every_ms = w->mix->snapshot_every_ms;
	/* The traces of the first seeds are recorded without (golden.py). */
	if (!w->snapshots.every_ms && w->seed > FROM && w->seed % SHARE == 0)
		w->snapshots.every_ms = EVERY_MS;
}
