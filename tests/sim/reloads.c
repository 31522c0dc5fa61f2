/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The configuration changes while the broker runs: limits above and below what is in use, and what times waiting. What the
 * broker had before is overwritten, so that it must have let go of it. Chance is of a stream of its own: a world without
 * reloads is what it is without this file.
 */
#include "world.h"

#include "core/state.h"

static struct rng stream(struct world *w, int salt)
{
	return (struct rng){ .state = (w->seed + (uint64_t)w->sched.now) * 0x9e3779b97f4a7c15u + (uint64_t)salt };
}

static void loosen(struct host *h)
{
	struct broker_conf *l = &h->loosest;

	if (h->conf.handoff_max > l->handoff_max)
		l->handoff_max = h->conf.handoff_max;
	if (h->conf.linger_ns > l->linger_ns)
		l->linger_ns = h->conf.linger_ns;
	if (h->conf.try_ns > l->try_ns)
		l->try_ns = h->conf.try_ns;
	if (h->conf.try_ns < h->least_try_ns)
		h->least_try_ns = h->conf.try_ns;
}

void reloads_begin(struct host *h)
{
	if (h->life == 0) {
		h->limits = h->conf.limits;
		h->least_try_ns = h->conf.try_ns;
	}
	h->told[h->turn] = h->conf;
	loosen(h);
}

void reloads_tell(struct host *h)
{
	h->turn = !h->turn;
	h->told[h->turn] = h->conf;
	loosen(h);
	host_handle(h, &(struct event){ .type = EVENT_CONF, .conf = { .now = &h->told[h->turn] } });
	h->told[!h->turn] = (struct broker_conf){ 0 };
}

/* One in three times those of the beginning. Nobody observes where locks are few (elections.c). */
static struct broker_limits limits_choose(struct host *h, struct rng *r)
{
	struct broker_limits l = h->limits;

	if (rng_below(r, 3) == 0)
		return l;
	l.locks = rng_below(r, LOCKS_MAX + 1);
	l.requests_per_lock = rng_below(r, 6);
	l.requests_per_client = rng_below(r, 6);
	l.requests = rng_below(r, 12);
	l.grants_per_client = 1 + rng_below(r, 6);
	l.grants = rng_below(r, 12);
	l.events_per_client = 1 + rng_below(r, 100);
	l.output_bytes = (size_t)1 << (15 + rng_below(r, 6));
	return l;
}

static void choose(struct host *h, struct rng *r)
{
	static const int64_t handoffs[] = { 0, 1, 3, 64 }, lingers[] = { 0, 100 * MS, 2 * SECOND };
	static const int64_t tries[] = { 0, 100 * MS, SECOND };

	h->conf.limits = limits_choose(h, r);
	h->conf.delegation = h->w->mix->delegations && rng_percent(r, 70);
	h->conf.handoff_max = handoffs[rng_below(r, 4)];
	h->conf.handoff_ns = rng_percent(r, 30) ? 50 * MS : 5 * SECOND;
	h->conf.linger_ns = lingers[rng_below(r, 3)];
	h->conf.try_ns = tries[rng_below(r, 3)];
	h->conf.grant_min_ns = rng_percent(r, 50) ? 0 : 200 * MS;
	h->conf.log_level = rng_percent(r, 50) ? EFFECT_LEVEL_DEBUG : EFFECT_LEVEL_INFO;
	h->conf.stop_timeout_ns = rng_between(r, 0, 3) * SECOND;
}

const struct broker_conf *reloads_read(struct host *h)
{
	struct rng r = stream(h->w, 2 * h->index + 101);

	if (!h->w->mix->reload_every_ms || h->w->quiet || rng_percent(&r, 50))
		return h->broker->env.conf;
	choose(h, &r);
	h->turn = !h->turn;
	h->told[h->turn] = h->conf;
	loosen(h);
	return &h->told[h->turn];
}

static void due(void *host, uint64_t argument)
{
	struct host *h = host;
	struct world *w = h->w;
	struct rng r = stream(w, 2 * h->index + 1);

	(void)argument;
	if (w->quiet)
		return;
	if (h->broker && h->stopped_until <= w->sched.now) {
		choose(h, &r);
		reloads_tell(h);
	}
	sched_at(&w->sched, w->sched.now + rng_between(&r, 1, 2 * w->mix->reload_every_ms) * MS, due, h, 0);
}

void reloads_start(struct world *w)
{
	for (int i = 0; i < w->host_count && w->mix->reload_every_ms; i++)
		sched_at(&w->sched, w->sched.now, due, &w->hosts[i], 0);
}

static void relax(void *host, uint64_t argument)
{
	struct host *h = host;

	(void)argument;
	h->conf.limits = h->limits;
	if (h->broker && h->stopped_until > h->w->sched.now)
		sched_at(&h->w->sched, h->stopped_until, relax, h, 0);
	else if (h->broker)
		reloads_tell(h);
}

void reloads_stop(struct world *w)
{
	for (int i = 0; i < w->host_count && w->mix->reload_every_ms; i++)
		relax(&w->hosts[i], 0);
}
