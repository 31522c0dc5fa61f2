/* SPDX-License-Identifier: Apache-2.0 */
/* DRAIN: nothing is granted any longer, so that the host can be served, or stopped without a loss. */
#include "core/client/halt.h"
#include "core/client/reply.h"
#include "core/command/call.h"

static int64_t held(const struct locks *locks)
{
	return (int64_t)(locks->grant_count - locks->lost_count);
}

static void say(const struct client *c)
{
	const struct locks *locks = c->locks;
	const struct env *env = locks->env;
	const char *sentence = env->draining ? "operators drain this daemon: it grants nothing"
					     : "operators end the drain: this daemon grants again";
	int64_t on = env->draining, count = held(locks);
	struct effect *line = effects_say(env->out, EFFECT_LEVEL_INFO, drain,
					  EFFECT_FIELDS("on=%d held=%d waiting=%d pid=%d", on, count, locks->request_count,
							c->pid),
					  "%s", sentence);

	effects_caused(env->out, line, c->account->uid, slice_of(c->account->unit));
}

/* To drain once more asks the holders once more. */
static void change(struct client *c, bool draining)
{
	bool before = c->locks->env->draining;

	if (draining)
		halt_drain(c->locks);
	else if (before)
		halt_over(c->locks);
	if (before != draining)
		say(c);
}

static void reply_state(struct client *c)
{
	const struct locks *locks = c->locks;

	resp_map(reply_out(c), 4, c->version);
	reply_pairs(reply_out(c), "draining", locks->env->draining, "held", held(locks), "waiting", locks->request_count,
		    "claims", locks->directories->claim_count);
	reply_end(c);
}

void cmd_drain(struct client *c, struct call *call)
{
	bool off = call->argc > 1 && slice_is(call->argv[1], "OFF");
	bool asks = call->argc > 1 && slice_is(call->argv[1], "STATE");

	if (!client_is_operator(c)) {
		reply_denied(c, "drain the daemon");
	} else if (call->argc > 1 && !off && !asks) {
		args_syntax_error(call);
	} else if (c->locks->env->stopping) {
		reply_error(c, ERROR_DRAINING, "the daemon is stopping");
	} else {
		if (!asks)
			change(c, !off);
		reply_state(c);
	}
}
