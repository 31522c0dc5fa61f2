/* SPDX-License-Identifier: Apache-2.0 */
#include "io/loop.h"

#include <assert.h>
#include <errno.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "io/notify.h"
#include "io/files/page.h"
#include "io/files/saved.h"
#include "io/socket/server.h"
#include "io/zookeeper/former.h"
#include "io/files/tokens.h"
#include "io/watch.h"
#include "io/zookeeper/zookeeper.h"

/* For the requests of what is readable in one turn, and of each queue of those who wait. */
#define SHARE_NS (2 * CLOCK_NS_PER_MS)

struct loop {
	struct watch_base *base;
	struct watch *timer;
	struct broker *broker;
	struct effects effects;
	struct loop_adapters to;
	int64_t armed_ns; /* what the timer is set to; INT64_MAX: nothing */
	int64_t now_ns;   /* of the latest event */
	int64_t share_ns; /* of the first event of this share of the turn; 0: none yet */
	uint64_t events; /* handled so far */
	struct session_view session; /* after the latest of them */
	bool handling, hurry, stopped;
	struct loop_end end;
};

static void loop_timer(void *arg, int fd, unsigned int what)
{
	const struct event event = { .type = EVENT_TIME };
	struct loop *l = arg;

	(void)fd;
	(void)what;
	l->armed_ns = INT64_MAX;
	loop_event(l, &event);
}

int loop_new(struct loop **ret_loop, const struct broker_conf *conf, uint64_t seed)
{
	struct loop *l = mem_new(sizeof(*l));

	l->base = watch_base_new();
	if (!l->base) {
		loop_free(l);
		return -ENOSYS;
	}
	l->timer = watch_new(l->base, loop_timer, l);
	l->armed_ns = INT64_MAX;
	l->broker = broker_new(conf, seed, loop_now(l));
	*ret_loop = l;
	return 0;
}

void loop_free(struct loop *l)
{
	if (!l)
		return;
	broker_free(l->broker);
	effects_free(&l->effects);
	watch_free(l->timer);
	watch_base_free(l->base);
	mem_free(l);
}

struct watch_base *loop_base(const struct loop *l)
{
	return l->base;
}

void loop_attach(struct loop *l, const struct loop_adapters *adapters)
{
	l->to = *adapters;
}

int64_t loop_now(struct loop *l)
{
	int64_t now_ns = clock_now_ns();

	if (now_ns > l->now_ns)
		l->now_ns = now_ns;
	return l->now_ns;
}

bool loop_spent(const struct loop *l)
{
	return l->share_ns && l->now_ns - l->share_ns > SHARE_NS;
}

int64_t loop_seen(const struct loop *l)
{
	return l->now_ns;
}

void loop_share(struct loop *l)
{
	l->share_ns = 0;
}

void loop_hurry(struct loop *l)
{
	l->hurry = true;
}

static void loop_log(struct loop *l, const struct effect *effect)
{
	static const enum log_level levels[] = {
		[EFFECT_LEVEL_ERROR] = LOG_LEVEL_ERROR,
		[EFFECT_LEVEL_WARNING] = LOG_LEVEL_WARNING,
		[EFFECT_LEVEL_INFO] = LOG_LEVEL_INFO,
		[EFFECT_LEVEL_DEBUG] = LOG_LEVEL_DEBUG,
	};
	struct slice text = effects_slice(&l->effects, effect->text);

	log_line(levels[effect->level], "%.*s", (int)text.len, text.data);
	if (effect->level != EFFECT_LEVEL_DEBUG && !effect->one_of_many)
		notify_status(l->to.notify, text.data, (int)text.len);
}

static void loop_carry_out(struct loop *l, const struct effect *effect)
{
	struct slice text = effects_slice(&l->effects, effect->text);

	switch (effect->type) {
	case EFFECT_REPLY:
		server_reply(l->to.server, effect->conn, text, effect->lazy);
		break;
	case EFFECT_PUSH:
		server_push(l->to.server, effect->conn, text, effect->report);
		break;
	case EFFECT_CLOSE:
		server_close(l->to.server, effect->conn);
		break;
	case EFFECT_ZK_OPEN:
		zookeeper_open(l->to.zookeeper);
		break;
	case EFFECT_ZK_DROP:
		zookeeper_drop(l->to.zookeeper);
		break;
	case EFFECT_ZK_CREATE:
	case EFFECT_ZK_LIST:
	case EFFECT_ZK_GET:
	case EFFECT_ZK_DELETE:
	case EFFECT_ZK_SET:
		zookeeper_send(l->to.zookeeper, effect, text, effects_slice(&l->effects, effect->data));
		break;
	case EFFECT_TOKENS:
		tokens_reserve(l->to.tokens, effect->limit);
		break;
	case EFFECT_HOLDER:
		saved_holder(l->to.saved, effect->conn, effect->holds);
		break;
	case EFFECT_PROCESS:
		server_process(l->to.server, effect->conn, effect->pid);
		break;
	case EFFECT_FORMER_ADD:
		saved_add_former(l->to.saved, effect->session);
		break;
	case EFFECT_FORMER_END:
		zk_former_end(l->to.successor, effect->session);
		break;
	case EFFECT_LOG:
		loop_log(l, effect);
		break;
	case EFFECT_STOPPED:
		l->stopped = true;
		l->end.close_session = effect->close_session;
		l->end.refused = effect->refused;
		break;
	}
}

/*
 * Before anything of this event is on the wire: who reads a grant and then the page must find the proof it was made
 * on, not an older one; and so must a successor.
 */
static void loop_show(struct loop *l)
{
	broker_session(l->broker, &l->session);
	page_update(l->to.page, &l->session);
	saved_safe_until(l->to.saved, l->session.safe_until_ns);
}

void loop_event(struct loop *l, const struct event *event)
{
	size_t i;

	assert(!l->handling);
	l->handling = true;
	l->events++;
	broker_handle(l->broker, loop_now(l), event, &l->effects);
	if (!l->share_ns)
		l->share_ns = l->now_ns;
	loop_show(l);
	/* The adapter has logged it. */
	if (event->type == EVENT_ZK_TROUBLE)
		notify_status(l->to.notify, event->zk_trouble.sentence.data, (int)event->zk_trouble.sentence.len);
	for (i = 0; i < l->effects.count; i++)
		loop_carry_out(l, &l->effects.list[i]);
	effects_clear(&l->effects);
	l->handling = false;
}

/* An earlier instant than needed is left alone: most deadlines only move away. */
static void loop_arm(struct loop *l)
{
	int64_t deadline_ns = broker_deadline(l->broker);

	if (deadline_ns >= l->armed_ns)
		return;
	watch_set_by(l->timer, deadline_ns);
	l->armed_ns = deadline_ns;
}

/* Goes on until nothing that was settled led to another event. */
static void loop_settle(struct loop *l)
{
	uint64_t before;

	do {
		before = l->events;
		server_settle(l->to.server);
		if (l->to.zookeeper)
			zookeeper_settle(l->to.zookeeper);
		if (l->to.successor)
			zk_former_settle(l->to.successor);
	} while (l->events != before);
	loop_arm(l);
}

struct loop_end loop_run(struct loop *l)
{
	loop_settle(l);
	while (!l->stopped) {
		bool wait = !l->hurry;

		l->hurry = false;
		loop_share(l);
		watch_base_turn(l->base, wait);
		server_continue(l->to.server);
		loop_settle(l);
	}
	return l->end;
}
