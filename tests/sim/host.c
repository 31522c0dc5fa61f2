/* SPDX-License-Identifier: Apache-2.0 */
/* A host: the broker's process, its clock and its timer; it carries out the broker's effects. */
#include "world.h"

#include <assert.h>
#include <stdlib.h>

#include "anything.h"

int64_t host_now(const struct host *h)
{
	return h->w->sched.now + h->offset;
}

int64_t host_proven_ns(const struct host *h)
{
	int64_t safe = broker_safe_until(h->broker);

	return safe == INT64_MIN ? 0 : safe - host_now(h);
}

static void timer_due(void *host, uint64_t life)
{
	struct host *h = host;

	if (life != h->timer_life || !h->broker)
		return;
	if (h->stopped_until > h->w->sched.now) {
		sched_at(&h->w->sched, h->stopped_until, timer_due, h, life);
		return;
	}
	h->timer_at = INT64_MAX;
	if (h->woke_at == h->w->sched.now && ++h->idle_wakes > 10000)
		world_fail(h->w, -1, "host %d: the timer is due again and again, and time does not pass", h->index);
	if (h->woke_at != h->w->sched.now)
		h->idle_wakes = 0;
	h->woke_at = h->w->sched.now;
	host_handle(h, &(struct event){ .type = EVENT_TIME });
}

static void timer_arm(struct host *h)
{
	int64_t due = broker_deadline(h->broker), late;

	if (due == h->timer_at)
		return;
	h->timer_at = due;
	h->timer_life++;
	if (due == INT64_MAX)
		return;
	late = rng_below(&h->w->rng, 8) ? rng_between(&h->w->rng, 0, MS / 2) : rng_between(&h->w->rng, 0, 10 * MS);
	sched_at(&h->w->sched, due - h->offset + late, timer_due, h, h->timer_life);
}

static void session_open_due(void *host, uint64_t life)
{
	struct host *h = host;

	if (life != h->life || !h->broker || !h->opening)
		return;
	h->opening = false;
	zhandle_open(h->zk);
}

static void session_drop_due(void *host, uint64_t life)
{
	struct host *h = host;

	if (life == h->life && h->broker)
		zhandle_drop(h->zk, rng_percent(&h->w->rng, 50));
}

static void tokens_due(void *host, uint64_t life)
{
	struct host *h = host;
	struct event e = { .type = EVENT_TOKENS };

	if (life != h->life || !h->broker)
		return;
	e.tokens.limit = h->tokens;
	host_handle(h, &e);
}

static void stopped_due(void *host, uint64_t end_session)
{
	struct host *h = host;

	if (h->broker && h->stopping)
		host_die(h, end_session);
}

static void stopped(struct host *h, const struct effect *e)
{
	if (e->refused)
		world_fail(h->w, -1, "host %d: takes what its own earlier life left for another daemon", h->index);
	sched_at(&h->w->sched, h->w->sched.now, stopped_due, h, e->close_session);
	h->stopping = true;
}

static void carry_to_client(struct host *h, const struct effect *e, struct slice text)
{
	struct world *w = h->w;

	if (ghost_takes(h, e))
		return;
	if (w->any) {
		any_effect(h, e, text);
		return;
	}
	if (e->conn == BALLAST_CONN && w->ballast.names) {
		if (e->type == EFFECT_REPLY)
			ballast_replied(h, text);
		else if (e->type == EFFECT_PUSH)
			ballast_pushed(h, text);
		return;
	}
	if (e->conn < (uint32_t)h->client_count && h->clients[e->conn].going && e->type != EFFECT_CLOSE)
		return;
	if (e->conn >= (uint32_t)h->client_count || h->clients[e->conn].state == CLIENT_OFF)
		world_fail(w, -1, "host %d: an effect names connection %u, which is not there", h->index, e->conn);
	if (e->type == EFFECT_REPLY)
		caller_replied(&h->clients[e->conn], text);
	else if (e->type == EFFECT_PUSH)
		told_pushed(&h->clients[e->conn], text);
	else
		caller_close(&h->clients[e->conn]);
}

static void host_logged(struct host *h, const struct effect *e, struct slice text)
{
	if (e->type == EFFECT_HOLD) {
		if (h->w->any)
			any_held(h, e);
		return;
	}
	restores_logged(h, text);
	if (h->w->any)
		any_logged(h, e, text);
	else
		check_logged(h, text);
	known_effect(h, e, text);
}

static void host_carry_out(struct host *h, const struct effects *all, const struct effect *e)
{
	struct world *w = h->w;
	struct slice text = effects_slice(all, e->text);

	if (w->tracing)
		trace_effect(h, e);
	switch (e->type) {
	case EFFECT_REPLY:
	case EFFECT_PUSH:
	case EFFECT_CLOSE:
		carry_to_client(h, e, text);
		break;
	case EFFECT_ZK_OPEN:
		load_opened(h);
		known_effect(h, e, text);
		saved_given_up(h);
		h->opening = true;
		sched_at(&w->sched, w->sched.now, session_open_due, h, h->life);
		break;
	case EFFECT_ZK_DROP:
		load_dropped(h);
		known_effect(h, e, text);
		h->porter.drops++;
		sched_at(&w->sched, w->sched.now, session_drop_due, h, h->life);
		break;
	case EFFECT_ZK_CREATE:
	case EFFECT_ZK_LIST:
	case EFFECT_ZK_GET:
	case EFFECT_ZK_DELETE:
	case EFFECT_ZK_SET:
		if (e->type == EFFECT_ZK_SET)
			faults_written(h, text);
		if (e->type == EFFECT_ZK_CREATE && w->any)
			any_created(h, e, text, effects_slice(all, e->data));
		load_sent(h, e, text);
		known_effect(h, e, text);
		zhandle_send(h->zk, e, text, effects_slice(all, e->data));
		break;
	case EFFECT_TOKENS:
		h->tokens = e->limit;
		sched_at(&w->sched, w->sched.now + rng_between(&w->rng, 0, 5 * MS), tokens_due, h, h->life);
		break;
	case EFFECT_LIFELINE:
	case EFFECT_LIFELINE_OVER:
		lines_effect(h, e);
		break;
	case EFFECT_HOLDER:
		if (e->conn != EFFECT_NO_CONN && !w->any && (e->conn != BALLAST_CONN || !w->ballast.names))
			saved_holder(h, e->conn, e->holds);
		break;
	case EFFECT_FORMER_ADD:
		saved_add(h, e->session);
		break;
	case EFFECT_FORMER_END:
		saved_end(h, e->session);
		break;
	case EFFECT_PAGE:
		delegations_make(h, e->conn);
		break;
	case EFFECT_RELOAD: /* nobody asks for them */
	case EFFECT_RESTART:
	case EFFECT_PROCESS:
		break;
	case EFFECT_LOG: case EFFECT_HOLD:
		host_logged(h, e, text);
		break;
	case EFFECT_STOPPED:
		stopped(h, e);
		break;
	}
}

void host_handle(struct host *h, const struct event *e)
{
	size_t i, count;

	if (h->dying)
		return;
	h->w->sched.steps++;
	if (h->w->tracing)
		trace_event(h, e);
	h->answered = e->type == EVENT_ZK_ANSWERED;
	kills_before(h, e);
	check_before(h, e);
	load_before(h, e);
	delegations_look_begins(h, e);
	broker_handle(h->broker, host_now(h), e, &h->effects);
	delegations_look_ends(h, e);
	if (!h->w->any)
		forced_handled(h);
	count = kills_carried(h);
	if (!h->dying)
		delegations_page(h, false);
	/* Nothing below comes back to the broker at once, so the list stands still. */
	for (i = 0; i < count; i++)
		host_carry_out(h, &h->effects, &h->effects.list[i]);
	effects_clear(&h->effects);
	if (h->dying)
		return;
	check_after(h);
	if (h->w->any)
		any_check(h);
	load_after(h, e);
	ballast_checked(h);
	timer_arm(h);
}

void host_zk_notified(void *host, const struct event *e)
{
	struct host *h = host;
	struct event mine = *e;
	struct restores_answer answer;

	if (mine.type == EVENT_ZK_CONNECTED)
		mine.zk_connected.asked_ns += h->offset;
	forced_answered(h, e);
	/* What the old handle still says is of a session that the broker has given up. */
	if (!h->broker || h->opening)
		return;
	answer = restores_answer(h, &mine);
	host_handle(h, &mine);
	if (!h->dying)
		restores_answered(h, &answer);
}

void host_goes_on(struct host *h)
{
	if (h->w->any)
		lines_forget(h);
	known_forget(h);
	h->began_at = h->w->sched.now;
	h->stopping = h->opening = false;
	h->timer_at = INT64_MAX;
	h->timer_life++;
	h->life++;
	h->load = (struct load){ 0 };
	if (h->conf.standalone)
		tokens_due(h, h->life);
}

void host_start(struct host *h)
{
	struct world *w = h->w;
	int i;

	saved_begin(h);
	restores_begin(h);
	delegations_page(h, true);
	reloads_begin(h);
	h->broker = broker_new(&h->told[h->turn], rng_next(&w->rng), host_now(h));
	assert(h->broker);
	h->permits_vague = false;
	memset(h->ghosts, 0, sizeof(h->ghosts));
	h->zk->mute_suspended_percent = 3;
	TRACE(w, -1, "host %d starts", h->index);
	host_goes_on(h);
	kills_record(h);
	host_handle(h, &(struct event){ .type = EVENT_TIME });
	for (i = 0; i < h->client_count; i++)
		caller_begin(&h->clients[i]);
}

static void host_again(void *host, uint64_t life)
{
	struct host *h = host;

	if (life == h->life && !h->broker)
		host_start(h);
}

void host_die(struct host *h, bool end_session)
{
	int i;

	if (!h->broker)
		return;
	TRACE(h->w, -1, "host %d: the process ends%s", h->index, end_session ? " with its session" : "");
	saved_leave(h);
	h->kill = (struct kill){ 0 };
	h->dying = false;
	broker_free(h->broker);
	h->broker = NULL;
	h->life++;
	for (i = 0; i < h->client_count; i++)
		caller_cut(&h->clients[i]);
	ballast_cut(h);
	if (h->w->any)
		any_cut(h);
	zhandle_close(h->zk, end_session);
	sched_at(&h->w->sched, h->w->sched.now + rng_between(&h->w->rng, 10 * MS, 3 * SECOND), host_again, h, h->life);
}

void host_free(struct host *h)
{
	int i;

	broker_free(h->broker);
	kills_free(h);
	for (i = 0; i < h->client_count; i++)
		pipe_clear(&h->clients[i].socket);
	zhandle_free(h->zk);
	effects_free(&h->effects);
}

uint32_t host_conns(const struct host *h)
{
	return (uint32_t)(h->w->any ? any_of(h)->peer_count : h->client_count);
}
