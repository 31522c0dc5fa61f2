/* SPDX-License-Identifier: Apache-2.0 */
#include "core/hosts/release.h"

#include "core/client/bid.h"
#include "core/client/mlock.h"
#include "core/hosts/answer.h"
#include "core/hosts/scan.h"
#include "core/hosts/hosts.h"
#include "core/kind/observe.h"

/* Something is left. */
static bool release_is_due(const struct client *c)
{
	return !TAILQ_EMPTY(&c->notifications) || !TAILQ_EMPTY(&c->observers) || !TAILQ_EMPTY(&c->requests) ||
	       !TAILQ_EMPTY(&c->grants) || c->mlock || c->query || c->auditing || c->bid || c->lookup;
}

/* The client asked for it, and has one of each at most. A closed one is not answered any longer. */
static void end_question(struct hosts *h, struct client *c)
{
	if (c->query && c->query->revocation)
		revocation_free(c->query->revocation);
	if (c->query) {
		answer_end(c->query->answer);
		scan_end(c->query);
		query_free(c->query);
	}
	if (c->auditing)
		audit_leave(h, c);
	if (c->lookup)
		forward_end(c->lookup);
	if (c->bid && !c->bearer)
		bid_free(c->bid);
}

/* What it waits for goes before what it holds: it is granted nothing more. */
static void end_one(struct hosts *h, struct client *c)
{
	if (c->mlock)
		mlock_free(c->mlock); /* at once: it would go on by itself */
	else if (!TAILQ_EMPTY(&c->requests))
		request_end(TAILQ_FIRST(&c->requests));
	else if (!TAILQ_EMPTY(&c->notifications))
		notification_drop(c, TAILQ_FIRST(&c->notifications));
	else if (!TAILQ_EMPTY(&c->observers))
		observe_end(TAILQ_FIRST(&c->observers));
	else
		grant_end(TAILQ_FIRST(&c->grants));
}

bool release_some(struct hosts *h, struct client *c, int64_t most, int64_t *steps)
{
	end_question(h, c);
	while (release_is_due(c) && *steps < most) {
		end_one(h, c);
		*steps += RELEASE_STEPS;
	}
	if (release_is_due(c))
		return false;
	request_forget_ended(c);
	heap_unset(&c->locks->env->timers, &c->events_timer);
	c->events_waiting = false;
	c->told_jeopardy = false;
	return true;
}

bool release_begin(struct hosts *h, struct client *c)
{
	int64_t steps = 0;

	if (release_some(h, c, h->env->conf->all_in_pieces ? 1 : WORK_TURN_STEPS, &steps))
		return true;
	work_add(&h->env->works, &c->user->worker, &c->releasing);
	return false;
}

void release_client(struct hosts *h, struct client *c)
{
	int64_t steps = 0;

	release_some(h, c, INT64_MAX, &steps);
}
