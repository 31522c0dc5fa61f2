/* SPDX-License-Identifier: Apache-2.0 */
#include "core/hosts/release.h"

#include "core/client/mlock.h"
#include "core/hosts/hosts.h"
#include "core/kind/observe.h"

void release_client(struct hosts *h, struct client *c)
{
	struct observer *o;
	struct request *r;
	struct grant *g;

	notification_drop_all(c);
	while ((o = TAILQ_FIRST(&c->observers)))
		observe_end(o);
	if (c->mlock)
		mlock_free(c->mlock);
	while ((r = TAILQ_FIRST(&c->requests)))
		request_end(r);
	request_forget_ended(c);
	if (c->query && c->query->revocation)
		revocation_free(c->query->revocation);
	if (c->query)
		query_free(c->query);
	if (c->auditing)
		audit_leave(h, c);
	while ((g = TAILQ_FIRST(&c->grants)))
		grant_end(g);
	heap_unset(&c->locks->env->timers, &c->events_timer);
	c->events_waiting = false;
	c->told_jeopardy = false;
}
