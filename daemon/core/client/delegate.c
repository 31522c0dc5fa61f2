/* SPDX-License-Identifier: Apache-2.0 */
#include "core/client/delegate.h"

#include "core/client/reply.h"
#include "core/lock/delegated.h"
#include "core/lock/locks.h"

void delegate_ask(struct client *c)
{
	const struct env *env = c->locks->env;
	const char *why;

	if (!env->conf->delegation) {
		reply_error(c, ERROR_DENIED, "nothing is delegated: the configuration says locks.delegation = 0");
	} else if (c->version < 3) {
		reply_error(c, ERROR_ERR, "DELEGATE needs RESP3: say HELLO 3 first");
	} else if (c->delegations) {
		reply_error(c, ERROR_ERR, "this connection has its page already");
	} else if (!delegated_may_begin(c, &why)) {
		c->locks->env->stats.limits_total++;
		reply_error(c, ERROR_LIMIT, "%s", why);
	} else {
		c->delegating = true;
		effects_add(env->out, EFFECT_PAGE)->conn = c->conn;
	}
}

static void answer(struct client *c, const struct event *event)
{
	struct effects *out = c->locks->env->out;

	if (!event->page.page) {
		/* Not counted among what limits refuse: the client goes on by messages. */
		if (event->page.limited) {
			reply_error(c, ERROR_LIMIT, "%s", event->page.sentence);
			return;
		}
		reply_error(c, ERROR_UNAVAILABLE, "no page could be made: %s", event->page.sentence);
		return;
	}
	reply_integer(c, DELEGATION_SLOTS);
	out->list[out->count - 1].page = true;
}

void delegate_page(struct client *c, const struct event *event)
{
	c->delegating = false;
	if (event->page.page)
		delegated_begin(c, event->page.page);
	if (!c->closing)
		answer(c, event);
}
