/* SPDX-License-Identifier: Apache-2.0 */
/* What clients ask of a latch (latch.h), and what must hold of it. */
#include "anything.h"

#include <stdio.h>

#include "latch.h"

#define NAME "latch"

enum { LIMIT_MAX = 4, TURN_PERCENT = 60 };

static const int64_t WITHIN = 20 * SECOND;

static int64_t limit_of(const struct world *w)
{
	return 1 + (int64_t)(w->seed % LIMIT_MAX);
}

static const struct lock *latch_at(const struct host *h)
{
	const struct lock *lock = h->broker ? lock_find(&h->broker->locks, SLICE(NAME)) : NULL;

	return lock && lock->rule->kind == (enum kind)KIND_LATCH ? lock : NULL;
}

/* Now and then as another kind, or with another limit. */
static const char *line_of(const struct any_peer *p)
{
	static const char *const others[] = {
		"WHY latch", "HOLDERS latch", "QUEUE latch", "LOCKS * ALL", "LOCKS", "LOCK latch WAIT 5", "VALID latch",
		"EVENTS WAIT 0", "CANCEL latch", "RESET", "ACQUIRE latch LIMIT 2 WAIT 5", "REVOKE latch", "HELLO 3", "DRAIN OFF",
	};
	struct world *w = p->host->w;
	const struct lock *lock = latch_at(p->host);
	const struct client *c = p->host->broker->locks.conns[p->conn];

	if (lock && c && grant_find(lock, c) && rng_percent(&w->rng, 60))
		return "LEAVE latch";
	if (rng_percent(&w->rng, 25))
		return others[rng_below(&w->rng, sizeof(others) / sizeof(others[0]))];
	return NULL;
}

static size_t arrive(struct any_peer *p, char *out, size_t room)
{
	struct world *w = p->host->w;
	int64_t limit = limit_of(w) + rng_percent(&w->rng, 1);
	size_t len = (size_t)snprintf(out, room, "ARRIVE %s %d", NAME, (int)limit);

	p->arrives = true;
	p->reply[0] = '\0'; /* its process may be killed before there is one */
	if (rng_percent(&w->rng, 70))
		len += (size_t)snprintf(out + len, room - len, " WAIT %d", (int)rng_between(&w->rng, 1, 4000));
	if (rng_percent(&w->rng, 30))
		len += (size_t)snprintf(out + len, room - len, " LEASE %d", (int)rng_between(&w->rng, 1, 2000));
	return len;
}

size_t latches_words(struct any_peer *p, struct slice *words)
{
	static char text[128];
	struct world *w = p->host->w;
	const char *line;
	size_t n = 0, len;

	p->arrives = false;
	if (!w->mix->latch || !rng_percent(&w->rng, TURN_PERCENT))
		return 0;
	line = line_of(p);
	len = line ? (size_t)snprintf(text, sizeof(text), "%s", line) : arrive(p, text, sizeof(text));
	for (const char *at = text; at < text + len; at += words[n++].len + 1)
		words[n] = (struct slice){ at, strcspn(at, " ") };
	return n;
}

/* What was refused may not have been counted, unless it was for want of ZooKeeper or of new names: it had begun by then. */
static bool has_arrived(struct any_peer *p)
{
	bool refused = p->replied && p->reply[0] == '-' && strncmp(p->reply, "-UNAVAILABLE", 12) != 0 &&
		       strncmp(p->reply, "-LIMIT", 6) != 0;
	bool arrives = p->arrives && !refused;

	p->arrives = false;
	return arrives;
}

void latches_check(struct host *h)
{
	struct world *w = h->w;
	struct any_host *a = any_of(h);
	struct any_latch *seen = &a->latch;
	const struct lock *lock = latch_at(h);
	const struct latch *l = lock ? latch_of(lock) : NULL;
	int64_t since = w->sched.now - WITHIN - w->timeout;

	if (!w->mix->latch)
		return;
	for (int i = 0; i < a->peer_count; i++)
		seen->arrivals += has_arrived(&a->peers[i]);
	if (lock && lock->grant_count && seen->arrivals < limit_of(w))
		world_fail(w, -1, "host %d: %zu clients have passed a latch of %d at which %d have arrived", h->index,
			   lock->grant_count, (int)limit_of(w), (int)seen->arrivals);
	lock = h->broker ? lock_find(&h->broker->locks, SLICE(NAME)) : NULL;
	if (!lock || (!lock->request_count && !lock->grant_count && !lock->aside_count))
		seen->arrivals = 0;
	if (!l || l->arrived < l->limit || !lock->request_count || w->last_fault >= since || h->stopped_until > w->sched.now ||
	    h->broker->env.stopping)
		seen->busy_at = w->sched.now;
	if (seen->busy_at < since)
		world_fail(w, -1, "host %d: somebody waits for a latch that is open", h->index);
}
