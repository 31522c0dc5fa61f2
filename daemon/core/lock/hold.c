/* SPDX-License-Identifier: Apache-2.0 */
#include "core/lock/hold.h"

#include "base/cold.h"
#include "base/container.h"
#include "base/hold_record.h"
#include "core/lock/locks.h"

enum {
	SAID_MAX = 16,   /* in one event, of those that go on: the others are said in the next milliseconds */
	LOST_MAX = 1000, /* in one event: more than the log takes of several accounts */
};

static const int64_t LONG_NS = INT64_C(10) * 1000000000;

static bool is_wanted(const struct env *env)
{
	return env->conf->log_level >= (env->conf->log_grants ? EFFECT_LEVEL_INFO : EFFECT_LEVEL_DEBUG);
}

static uint32_t shown(const struct client *c, struct slice *ret_command)
{
	uint32_t pid = client_shown(c, ret_command);

	/* All known processes of the client have ended: the record names the latest one. */
	if (!pid && c->child) {
		pid = c->child;
		*ret_command = bytes_view(&c->child_comm);
	}
	*ret_command = hold_record_command(*ret_command, bytes_view(&c->name));
	return pid;
}

static void say(const struct lock *lock, const struct client *c, enum log_event event, struct hold_record h)
{
	struct env *env = lock->locks->env;
	struct effect *e;

	if (!env->out) /* a broker that is being freed logs nothing */
		return;
	h.kind = kind_word(lock->rule->kind);
	h.name = bytes_view(&lock->name);
	h.client = c->id;
	h.pid = shown(c, &h.command);
	h.now_ns = env->now_ns;
	hold_record_write(&h, &env->out->arena);
	e = effects_add(env->out, EFFECT_HOLD);
	e->log.event = (uint8_t)event;
	e->data = effects_take(env->out);
	effects_caused(env->out, e, c->account->uid, slice_of(c->account->unit));
}

void hold_say(const struct grant *g, enum log_event event, const char *why, int64_t count)
{
	struct hold_record h = { .mode = mode_word(g->mode), .why = why, .token = g->token, .asked_ns = g->asked_ns };

	if (!is_wanted(g->lock->locks->env) || (event == LOG_EVENT_delegated && !g->delegated) ||
	    (event == LOG_EVENT_lost && g->lock->locks->lost_said++ >= LOST_MAX))
		return;
	h.over = why && count == g->depth;
	h.permits = g->lock->slots ? count : 0;
	h.takings = event == LOG_EVENT_delegated ? delegated_takings(g) : 0;
	h.granted_ns = h.takings ? g->granted_ns : delegated_since_ns(g);
	h.data = bytes_view(&g->data);
	h.before = bytes_view(&g->before);
	say(g->lock, g->client, event, h);
}

static COLD void say_wait(struct request *r, enum log_event event, const char *why)
{
	const struct grant *g = delegated_holder(r->lock);
	const struct seen *seen = &r->lock->directory.seen;
	struct hold_record h = { .mode = mode_word(r->mode), .why = why, .asked_ns = r->asked_ns };

	r->said = true;
	h.here = g != NULL;
	if (g)
		h.holder_pid = shown(g->client, &h.holder_command);
	else if (seen->by.len && seen->first)
		h.holder = bytes_view(&seen->data);
	say(r->lock, r->client, event, h);
}

void hold_watch(struct grant *g)
{
	struct env *env = g->lock->locks->env;

	g->age.kind = TIMER_HOLD;
	if (is_wanted(env))
		heap_set(&env->timers, &g->age, g->granted_ns + LONG_NS);
}

void hold_watch_wait(struct request *r)
{
	struct env *env = r->lock->locks->env;
	int64_t long_ns = env->conf->long_wait_ns;

	r->age.kind = TIMER_WAIT;
	if (long_ns)
		heap_set(&env->timers, &r->age, r->asked_ns + long_ns);
}

void hold_waited(struct request *r, const char *why)
{
	heap_unset(&r->lock->locks->env->timers, &r->age);
	if (r->said)
		say_wait(r, LOG_EVENT_waited, why);
}

void hold_due(struct locks *locks, struct timer *t)
{
	struct grant *g = container_of(t, struct grant, age);
	int64_t later_ms = (int64_t)(locks->said++ / (locks->env->conf->all_in_pieces ? 1 : SAID_MAX));

	if (later_ms)
		heap_set(&locks->env->timers, t, locks->env->now_ns + later_ms * NS_PER_MS);
	else if (t->kind == TIMER_WAIT && locks->env->conf->long_wait_ns)
		say_wait(container_of(t, struct request, age), LOG_EVENT_waits, NULL);
	else if (t->kind == TIMER_HOLD && !g->delegated)
		hold_say(g, LOG_EVENT_granted, NULL, g->depth);
}
