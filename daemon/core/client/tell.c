/* SPDX-License-Identifier: Apache-2.0 */
#include "core/client/tell.h"

#include <assert.h>

#include "base/cold.h"
#include "base/container.h"
#include "core/client/ask.h"
#include "core/client/bid.h"
#include "core/client/mlock.h"
#include "core/client/notify.h"
#include "core/client/reply.h"
#include "core/kind/observe.h"

/* ---- how a request ended ---- */

/* Called before its client gets the answer and may ask again: the next request reuses a blocked one's memory. */
static void finish(struct locks *locks, struct request *r)
{
	outcome_drop(&locks->outcomes, &r->outcome);
	request_free(r);
}

static COLD void tell_queued(struct client *c, const struct lock *lock, int64_t number)
{
	notify(c, "granted", bytes_view(&lock->name), number);
}

static void tell_granted(struct locks *locks, struct request *r)
{
	int64_t number = r->outcome.number;
	struct client *c = r->client;
	struct lock *lock = r->lock;
	bool queued = r->queued;

	finish(locks, r);
	if (queued)
		tell_queued(c, lock, number);
	else if (c->mlock)
		mlock_granted(c->mlock);
	else if (c->bearer)
		return bid_granted(c);
	else
		reply_integer(c, number);
	notify_session(c);
}

static COLD void tell_timed_out(struct locks *locks, struct request *r)
{
	struct client *c = r->client;
	struct lock *lock = r->lock;
	bool queued = r->queued;

	finish(locks, r);
	if (queued)
		notify(c, "timeout", bytes_view(&lock->name));
	else if (c->mlock)
		mlock_timed_out(c->mlock);
	else if (c->bearer)
		bid_timed_out(c);
	else
		reply_nil(c);
}

static COLD void tell_failed(struct locks *locks, struct request *r)
{
	struct refusal no = { .code = r->outcome.code, .sentence = r->outcome.sentence };
	struct client *c = r->client;
	struct lock *lock = r->lock;
	bool queued = r->queued;

	r->outcome.sentence = (struct bytes){ 0 };
	finish(locks, r);
	if (!queued && c->mlock) {
		mlock_failed(c->mlock, &no);
	} else if (c->bearer) {
		bid_failed(c, &no);
	} else if (!queued) {
		refusal_name(&no, bytes_view(&lock->name));
		refusal_reply(c, &no);
	} else {
		notify(c, "failed", bytes_view(&lock->name), error_word(no.code), bytes_view(&no.sentence));
		bytes_free(&no.sentence);
	}
}

/* ---- what was not asked for ---- */

static void tell_lost(struct locks *locks, struct grant *g)
{
	struct client *c = g->client;

	outcome_drop(&locks->outcomes, &g->outcome);
	/* The client of an MLOCK did not learn of the grants that it took, either. */
	if (c->bearer)
		bid_lost(g);
	else if (!c->mlock || !mlock_lost(c->mlock, g))
		notify_lost(c, g);
}

static void tell_leader(struct locks *locks, struct observer *o)
{
	outcome_drop(&locks->outcomes, &o->outcome);
	notify_leader(o->client, o);
}

static COLD void tell_unobserved(struct observer *o)
{
	notify(o->client, "unobserved", bytes_view(&o->lock->name), error_word(o->outcome.code),
	       bytes_view(&o->outcome.sentence));
	observe_end(o);
}

static void tell(struct locks *locks, struct outcome *o)
{
	switch (o->kind) {
	case OUTCOME_GRANTED:
		tell_granted(locks, container_of(o, struct request, outcome));
		break;
	case OUTCOME_TIMED_OUT:
		tell_timed_out(locks, container_of(o, struct request, outcome));
		break;
	case OUTCOME_FAILED:
		tell_failed(locks, container_of(o, struct request, outcome));
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
		assert(!"an outcome");
	}
}

void tell_all(struct locks *locks)
{
	struct outcome *o;

	while ((o = TAILQ_FIRST(&locks->outcomes)))
		tell(locks, o);
}
