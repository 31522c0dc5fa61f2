/* SPDX-License-Identifier: Apache-2.0 */
#include "core/client/restart.h"

#include "core/client/reply.h"
#include "core/lock/locks.h"

void restart_ask(struct client *c)
{
	struct locks *locks = c->locks;

	if (!client_is_operator(c)) {
		reply_denied(c, "restart the daemon");
	} else if (locks->env->stopping) {
		reply_error(c, ERROR_DRAINING, "the daemon is stopping");
	} else if (locks->restarter) {
		reply_error(c, ERROR_ERR, "not restarted: client %d has asked for that already, and is waiting for it",
			    locks->restarter->id);
	} else {
		locks->restarter = c;
		effects_add(locks->env->out, EFFECT_RESTART);
	}
}

static void reply_done(struct client *c, const struct event *event)
{
	const struct broker_conf *conf = c->locks->env->conf;

	resp_map(reply_out(c), 3, c->version);
	reply_pairs(reply_out(c), "process_id", conf->pid, "version", conf->version, "paused_us",
		    event->restart.paused_ns / 1000);
	reply_end(c);
}

void restart_over(struct locks *locks, const struct event *event)
{
	struct client *c = locks->restarter;

	locks->restarter = NULL;
	if (!c || c->closing)
		return;
	if (event->restart.done)
		reply_done(c, event);
	else
		reply_error(c, ERROR_ERR, "not restarted: %s", event->restart.sentence);
}
