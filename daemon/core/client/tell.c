/* SPDX-License-Identifier: Apache-2.0 */
#include "core/client/tell.h"

#include <assert.h>

#include "base/container.h"
#include "core/client/ask.h"
#include "core/client/mlock.h"
#include "core/client/notify.h"
#include "core/client/reply.h"
#include "core/kind/observe.h"
#include "core/lock/locks.h"

/* ---- how a request ended ---- */

/* Each takes the sentence over. */
static void notify(struct client *c, struct slice name, const struct outcome *o, struct refusal *no)
{
	if (o->kind == OUTCOME_GRANTED)
		notify_granted(c, name, o->number);
	else if (o->kind == OUTCOME_TIMED_OUT)
		notify_timeout(c, name);
	else
		notify_failed(c, name, no->code, bytes_view(&no->sentence));
	bytes_free(&no->sentence);
}

static void step(struct mlock *m, const struct outcome *o, struct refusal *no)
{
	if (o->kind == OUTCOME_GRANTED)
		mlock_granted(m);
	else if (o->kind == OUTCOME_TIMED_OUT)
		mlock_timed_out(m);
	else
		mlock_failed(m, no);
}

static void reply(struct client *c, struct slice name, const struct outcome *o, struct refusal *no)
{
	if (o->kind == OUTCOME_GRANTED) {
		reply_integer(c, o->number);
	} else if (o->kind == OUTCOME_TIMED_OUT) {
		reply_nil(c);
	} else {
		refusal_name(no, name);
		refusal_reply(c, no);
	}
}

static void tell_request(struct locks *locks, struct request *r)
{
	struct refusal no = { .code = r->outcome.code, .sentence = r->outcome.sentence };
	struct outcome o = r->outcome;
	struct lock *lock = r->lock;
	bool queued = r->queued;

	/* Before its client may ask again: it may be the memory of the next request. */
	outcome_drop(&locks->outcomes, &r->outcome);
	r->outcome.sentence = (struct bytes){ 0 };
	request_free(r);
	if (queued)
		notify(o.client, bytes_view(&lock->name), &o, &no);
	else if (o.client->mlock)
		step(o.client->mlock, &o, &no);
	else
		reply(o.client, bytes_view(&lock->name), &o, &no);
	if (o.kind == OUTCOME_GRANTED)
		notify_session(o.client);
}

/* ---- what was not asked for ---- */

static void tell_lost(struct locks *locks, struct grant *g)
{
	struct client *c = g->client;

	outcome_drop(&locks->outcomes, &g->outcome);
	/* Of what an MLOCK took its client was not told either. */
	if (!c->mlock || !mlock_lost(c->mlock, g))
		notify_lost(c, g);
}

static void tell_leader(struct locks *locks, struct observer *o)
{
	outcome_drop(&locks->outcomes, &o->outcome);
	notify_leader(o->client, o);
}

static void tell_unobserved(struct observer *o)
{
	notify_unobserved(o->client, bytes_view(&o->lock->name), o->outcome.code, bytes_view(&o->outcome.sentence));
	observe_end(o);
}

static void tell(struct locks *locks, struct outcome *o)
{
	switch (o->kind) {
	case OUTCOME_GRANTED:
	case OUTCOME_TIMED_OUT:
	case OUTCOME_FAILED:
		tell_request(locks, container_of(o, struct request, outcome));
		break;
	case OUTCOME_LOST:
		tell_lost(locks, container_of(o, struct grant, outcome));
		break;
	case OUTCOME_LEADER:
		tell_leader(locks, container_of(o, struct observer, outcome));
		break;
	case OUTCOME_UNOBSERVED:
		tell_unobserved(container_of(o, struct observer, outcome));
		break;
	case OUTCOME_NONE:
		assert(!"to be told");
	}
}

void tell_outcomes(struct locks *locks)
{
	struct outcome *o;

	while ((o = TAILQ_FIRST(&locks->outcomes)))
		tell(locks, o);
}
