/* SPDX-License-Identifier: Apache-2.0 */
#include "core/hosts/revoke.h"

#include "core/client/notify.h"
#include "core/client/tell.h"
#include "core/hosts/hosts.h"
#include "core/lock/take_back.h"
#include "protocol/name.h"

/* Asked faster than it reads, a client would be closed and lose what it holds: no other client may cause that. */
static const int64_t ASK_EVERY_NS = 1000000000;

bool revoke_reason_valid(struct slice reason)
{
	return reason.len > 0 && reason.len <= REVOKE_REASON_MAX && name_is_text(reason);
}

struct revoker revoke_by(const struct client *c)
{
	return (struct revoker){
		.host = slice_of(c->locks->env->conf->host),
		.command = bytes_view(&c->comm),
		.client = bytes_view(&c->name),
		.uid = c->uid,
		.pid = c->pid,
	};
}

/* True: it was asked. */
static bool ask(struct grant *g, struct slice reason)
{
	struct env *env = g->lock->locks->env;
	bool asked = g->asked_back_ns && env->now_ns - g->asked_back_ns < ASK_EVERY_NS;

	if (asked)
		return true;
	if (notify_full(g->client) || notify_unresponsive(g->client))
		return false;
	g->asked_back_ns = env->now_ns;
	notify_revoke(g->client, g, reason);
	env->stats.revokes_total++;
	return true;
}

static void take(struct grant *g)
{
	g->lock->locks->env->stats.forced_total++;
	grant_lose(g, LOSS_FORCED);
}

/* Nobody is left who held it when it began. */
static bool is_over(const struct revoke *r)
{
	return !r->walk.left || !r->walk.grant || r->walk.grant->granted_ns > r->begun_ns;
}

bool revoke_some(struct revoke *r, struct slice reason, int64_t most, int64_t *steps)
{
	while (*steps < most && !is_over(r)) {
		struct grant *g = walk_grant(&r->walk);

		*steps += WORK_PUSH_STEPS;
		if (r->forced)
			take(g);
		r->count += r->forced || ask(g, reason);
	}
	if (r->forced)
		tell_outcomes(r->locks); /* before the answer and the log line */
	return is_over(r);
}

bool revoke_begin(struct revoke *r, struct locks *locks, struct lock *lock, struct slice reason)
{
	int64_t most = locks->env->conf->all_in_pieces ? 0 : REVOKE_AT_ONCE * WORK_PUSH_STEPS, steps = 0;

	r->locks = locks;
	r->begun_ns = locks->env->now_ns;
	if (!lock)
		return true;
	delegated_take_back(lock, true);
	walk_begin_grants(&r->walk, lock);
	return revoke_some(r, reason, most, &steps);
}

void revoke_end(struct revoke *r)
{
	if (r->locks)
		walk_end(r->locks, &r->walk);
}

/* A log does not tell the session in it: what follows that is the letter's as well. */
static struct slice shown(struct slice id)
{
	const char *dash = memrchr(id.data, '-', id.len);

	return dash ? (struct slice){ dash + 1, (size_t)(id.data + id.len - dash - 1) } : id;
}

void revoke_log(struct hosts *h, struct slice name, int64_t holders, const struct revoker *by, struct slice id)
{
	struct bytes *out = &h->env->out->arena;

	bytes_format(out, "lock %n taken by force from %d holders, for uid %d, pid %d (%q", name, holders, by->uid,
		     by->pid, by->command);
	if (by->client.len)
		bytes_format(out, ", %q", by->client);
	bytes_format(out, ") of host %q", by->host);
	if (id.len)
		bytes_format(out, ", letter %q", shown(id));
	effects_log(h->env->out, EFFECT_LEVEL_WARNING, LOG_EVENT_forced,
		    EFFECT_FIELDS("name=%v holders=%d by_uid=%d by_pid=%d by_command=%v by_host=%v", name, holders,
				  by->uid, by->pid, by->command, by->host));
}
