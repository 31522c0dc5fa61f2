/* SPDX-License-Identifier: Apache-2.0 */
#include "core/drain.h"

#include "base/cold.h"
#include "core/client/halt.h"
#include "core/state.h"

void drain(struct broker *b)
{
	if (b->env.stopping)
		return;
	b->env.stopping = true;
	halt(&b->locks);
	audit_stopping(&b->hosts);
	heap_set(&b->env.timers, &b->stop_timer, b->env.now_ns + b->env.conf->stop_timeout_ns);
}

bool drain_is_over(const struct broker *b)
{
	const struct locks *l = &b->locks;

	if (l->grant_count - l->lost_count != l->bearers_hold)
		return false;
	return !l->bearers_hold || b->env.conf->standalone || !b->ensemble.session.connected ||
	       b->directories.claim_count <= l->bearers_hold;
}

COLD void drain_end(struct broker *b, bool close_session)
{
	struct effect *e;

	if (b->stopped)
		return;
	b->stopped = true;
	heap_unset(&b->env.timers, &b->stop_timer);
	e = effects_add(b->env.out, EFFECT_STOPPED);
	e->close_session = close_session;
	e->refused = b->refused;
}

void drain_due(struct broker *b)
{
	halt_hurry(&b->locks);
	if (b->locks.bearers_hold || !drain_is_over(b))
		drain_end(b, false);
}

void drain_refuse(struct broker *b)
{
	if (b->env.stopping)
		return;
	b->refused = true;
	drain(b);
}
