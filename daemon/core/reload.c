/* SPDX-License-Identifier: Apache-2.0 */
#include "core/reload.h"

#include <assert.h>

#include "core/client/reply.h"
#include "core/lock/take_back.h"
#include "core/state.h"

/* What a program was told at the beginning stays true: its strings, and the limit of what the servers were asked about. */
static bool goes_on(const struct broker_conf *before, const struct broker_conf *now)
{
	return before->root == now->root && before->host == now->host && before->standalone == now->standalone &&
	       before->prefixes == now->prefixes && before->tick_ns == now->tick_ns &&
	       before->session_timeout_ns == now->session_timeout_ns &&
	       before->limits.session_path_bytes == now->limits.session_path_bytes;
}

static void answer(struct client *c, const struct event *event)
{
	c->reloading = false;
	if (c->closing)
		return;
	if (event->conf.now) {
		resp_bulk(reply_out(c), event->conf.text);
		reply_end(c);
	} else {
		reply_error(c, ERROR_ERR, "%s", event->conf.text);
	}
}

void reload(struct broker *b, const struct event *event)
{
	struct client *c;

	if (event->conf.now) {
		assert(goes_on(b->env.conf, event->conf.now));
		b->env.conf = event->conf.now;
		b->env.rules++;
		/* New rules apply to what is asked from now on. */
		TAILQ_FOREACH(c, &b->locks.clients, link)
			delegated_take_back_later(c);
		pools_configure(&b->env);
		budget_limits(&b->env, &b->ensemble.budget);
	}
	TAILQ_FOREACH(c, &b->locks.clients, link)
		if (c->reloading)
			answer(c, event);
}
