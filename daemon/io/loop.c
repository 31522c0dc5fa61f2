/* SPDX-License-Identifier: Apache-2.0 */
#include "io/loop.h"

#include <stdint.h>

#include "base/clock.h"
#include "base/cold.h"
#include "base/log.h"
#include "base/mem.h"
#include "core/snapshot.h"
#include "io/base/feed.h"
#include "io/base/keeper.h"
#include "io/base/trim.h"
#include "io/base/watch.h"
#include "io/files/page.h"
#include "io/files/saved.h"
#include "io/files/tokens.h"
#include "io/handover/handover.h"
#include "io/fdstore.h"
#include "io/hold_log.h"
#include "io/memory_watch.h"
#include "io/notify.h"
#include "io/ledger_file.h"
#include "io/reload.h"
#include "io/socket/lifelines.h"
#include "io/socket/server.h"
#include "io/socket/socket_pools.h"
#include "io/zookeeper/former.h"
#include "io/zookeeper/zookeeper.h"

/* So often it is looked how much memory is used: what is worth giving back was used for longer. */
enum { LOOK_EVENTS = 64 };

struct loop {
	struct feed *feed;
	const struct broker *broker; /* the feed's */
	uint64_t events;             /* that it has consumed */
	struct watch *timer, *log;
	struct trim trim;
	struct watch *trims; /* what is used is looked at */
	uint64_t look_at;    /* `events` then */
	uint64_t trim_at;    /* `events` a turn ago, while memory is given back */
	int64_t armed_ns; /* what the timer is set to; INT64_MAX: nothing */
	struct loop_adapters to;
	int64_t log_due_ns; /* how long its watch waits; 0: it does not */
	bool stopped;
	struct loop_end end;
};

/* ---- effects ---- */

static void loop_log(struct loop *l, const struct effects *effects, const struct effect *effect)
{
	struct slice text = effects_slice(effects, effect->text), fields = effects_slice(effects, effect->data);
	struct log_account account;

	if (effect->type == EFFECT_HOLD) {
		hold_log_note(l->to.hold_log, effects, effect);
		return;
	}
	fields.len -= effect->log.unit_len;
	account = (struct log_account){ effect->log.uid, { fields.data + fields.len, effect->log.unit_len } };
	/* The levels are the same (io/conf/conf_value.c). */
	log_text((enum log_level)effect->level, (enum log_event)effect->log.event, effect->log.caused ? &account : NULL,
		 text, fields);
	if (effect->level != EFFECT_LEVEL_DEBUG)
		notify_status(l->to.notify, text.data, (int)text.len);
}

/*
 * Kept apart from loop_carry_out(), which then needs no frame for it: most effects are replies, or tell that a connection
 * holds something.
 */
static __attribute__((noinline)) void loop_effect(struct loop *l, const struct effects *effects,
						  const struct effect *effect)
{
	struct slice text = effects_slice(effects, effect->text);

	switch (effect->type) {
	case EFFECT_REPLY:
		server_reply_page(l->to.server, effect->conn, text);
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
		zookeeper_send(l->to.zookeeper, effect, text, effects_slice(effects, effect->data));
		break;
	case EFFECT_TOKENS:
		tokens_reserve(l->to.tokens, effect->limit);
		break;
	case EFFECT_HOLDER:
		saved_bearers(l->to.saved, effect->holds);
		break;
	case EFFECT_PROCESS:
		server_process(l->to.server, effect->conn, effect->pid);
		break;
	case EFFECT_LIFELINE:
		lifelines_watch(l->to.lifelines, effect, text);
		break;
	case EFFECT_LIFELINE_OVER:
		lifelines_over(l->to.lifelines, effect->lifeline.number);
		break;
	case EFFECT_FORMER_ADD:
		saved_add_former(l->to.saved, effect->session);
		break;
	case EFFECT_FORMER_END:
		zk_former_end(l->to.former, effect->session);
		break;
	case EFFECT_RELOAD:
		reload_ask(l->to.reload);
		break;
	case EFFECT_LOG:
	case EFFECT_HOLD:
		loop_log(l, effects, effect);
		break;
	case EFFECT_PAGE:
		server_page(l->to.server, effect->conn);
		break;
	case EFFECT_RESTART:
		handover_ask(l->to.handover);
		break;
	case EFFECT_STOPPED:
		l->stopped = true;
		l->end.close_session = effect->close_session;
		l->end.refused = effect->refused;
		break;
	}
}

/*
 * Before anything of this event is on the wire: a client that reads a grant and then the page must find the proof that
 * the grant was made on, not an older one; and so must the next daemon. That one is told first: killed in between, this
 * process must not have shown more than the next one knows of, which lets others in when the proof has run out.
 */
static void loop_show(struct loop *l)
{
	struct session_view view;

	broker_session(l->broker, &view);
	saved_safe_until(l->to.saved, view.safe_until_ns);
	page_update(l->to.page, &view);
}

static COLD void loop_reply_long(struct loop *l, struct effects *effects, const struct effect *effect)
{
	struct bytes text;

	if (effects_give(effects, effect, &text))
		server_reply_whole(l->to.server, effect->conn, &text, effect->text.at);
	else
		server_reply(l->to.server, effect->conn, effects_slice(effects, effect->text), effect->lazy);
}

static void loop_carry_out(void *arg, const struct event *event, struct effects *effects)
{
	struct loop *l = arg;
	size_t i;

	l->events++;
	loop_show(l);
	/* The adapter has already logged it. */
	if (event->type == EVENT_ZK_TROUBLE)
		notify_status(l->to.notify, event->zk_trouble.sentence.data, (int)event->zk_trouble.sentence.len);
	for (i = 0; i < effects->count; i++) {
		const struct effect *effect = &effects->list[i];

		if (effect->type == EFFECT_HOLDER && effect->conn != EFFECT_NO_CONN)
			saved_holder(l->to.saved, effect->conn, effect->holds);
		else if (effect->type != EFFECT_REPLY || effect->page)
			loop_effect(l, effects, effect);
		else if (effect->text.len >= EFFECT_LONG_BYTES)
			loop_reply_long(l, effects, effect);
		else
			server_reply(l->to.server, effect->conn, effects_slice(effects, effect->text), effect->lazy);
	}
}

/* ---- turns ---- */

static void loop_timer(int fd, short what, void *arg)
{
	const struct event event = { .type = EVENT_TIME };
	struct loop *l = arg;

	l->armed_ns = INT64_MAX;
	feed_event(l->feed, &event);
}

static void loop_log_due(int fd, short what, void *arg)
{
	struct loop *l = arg;

	l->log_due_ns = 0;
	log_go_on();
	hold_log_tell(l->to.hold_log, clock_now_ns(), false);
}

/* Nothing more may be logged for a long time. */
static __attribute__((noinline)) void loop_log_later(struct loop *l, int64_t due_ns)
{
	if (l->log_due_ns && l->log_due_ns <= due_ns)
		return;
	l->log_due_ns = due_ns;
	watch_set(l->log, -1, 0, due_ns);
}

/* Which others could use, too, if it falls. */
static uint64_t memory_used(const struct loop *l)
{
	const struct accounts *sockets = server_accounts(l->to.server);

	return snapshot_memory(l->broker) + sockets->pools[SOCKET_INPUT].used + sockets->pools[SOCKET_OUTPUT].used;
}

static __attribute__((noinline)) void loop_look(struct loop *l)
{
	l->look_at = l->events + LOOK_EVENTS;
	memory_watch_note(l->to.memory);
	trim_note(&l->trim, memory_used(l));
	if ((trim_may_be_due(&l->trim) || ledger_file_may_be_due(l->to.ledger_file)) && !watch_is_set(l->trims))
		watch_set(l->trims, -1, 0, TRIM_PAUSE_NS);
}

static void loop_trims(int fd, short what, void *arg)
{
	struct loop *l = arg;

	trim_ask(&l->trim, memory_used(l), feed_now(l->feed));
	ledger_file_ask(l->to.ledger_file);
	loop_look(l);
}

struct loop *loop_new(struct feed *feed, const struct loop_adapters *adapters)
{
	struct loop *l = mem_new(sizeof(*l));

	l->feed = feed;
	l->broker = feed_broker(feed);
	l->to = *adapters;
	l->timer = watch_new(feed_base(feed), loop_timer, l);
	l->log = watch_new(feed_base(feed), loop_log_due, l);
	l->trims = watch_new(feed_base(feed), loop_trims, l);
	trim_init(&l->trim);
	l->armed_ns = INT64_MAX;
	feed_attach(feed, loop_carry_out, l);
	return l;
}

void loop_free(struct loop *l)
{
	if (!l)
		return;
	watch_free(l->timer);
	watch_free(l->log);
	watch_free(l->trims);
	trim_deinit(&l->trim);
	mem_free(l);
}

/*
 * A timer that is set to an earlier instant than needed is left alone: most deadlines only move away. While there is work,
 * the next turn does not wait.
 */
static void loop_arm(struct loop *l)
{
	int64_t deadline_ns = broker_deadline(l->broker);

	if (deadline_ns >= l->armed_ns || broker_has_work(l->broker))
		return;
	watch_set_by(l->timer, deadline_ns);
	l->armed_ns = deadline_ns;
}

/* To another process, which is to take over. */
static COLD void give_way(struct loop *l)
{
	server_clean(l->to.server);
	reload_give_way(l->to.reload);
}

/* Kept apart from loop_settle(), which then needs no frame for it. */
static __attribute__((noinline)) void loop_settle_zookeeper(struct loop *l)
{
	zookeeper_settle(l->to.zookeeper);
	if (l->to.former)
		zk_former_settle(l->to.former);
}

/*
 * Repeats until nothing that was settled leads to another event; then another process may take over. Returns whether there
 * is another turn.
 */
static bool loop_settle(struct loop *l)
{
	uint64_t before;
	int64_t due_ns;

	do {
		before = l->events;
		if (fdstore_is_asked(l->to.keep) || handover_is_ready(l->to.handover))
			give_way(l);
		handover_settle(l->to.handover);
		/* Before anything is written: a client that has read its reply must find the ledger up to date after a crash. */
		feed_carried_out(l->feed);
		server_settle(l->to.server);
		lifelines_settle(l->to.lifelines);
		if (l->to.zookeeper)
			loop_settle_zookeeper(l);
	} while (l->events != before);
	keeper_settle(l->to.keeper);
	loop_arm(l);
	ledger_file_settle(l->to.ledger_file);
	due_ns = log_due_ns();
	if (due_ns)
		loop_log_later(l, due_ns);
	/* What comes earlier looks again. */
	due_ns = l->log_due_ns ? 0 : hold_log_due_ns(l->to.hold_log, feed_now(l->feed));
	if (due_ns)
		loop_log_later(l, due_ns);
	if (l->events >= l->look_at)
		loop_look(l);
	/* Whoever asked for a reload is told here what came of it. */
	if (!l->stopped && !reload_is_reading(l->to.reload) && server_is_clean(l->to.server) &&
	    (fdstore_due(l->to.keep) || handover_due(l->to.handover)))
		l->stopped = l->end.handed_over = true;
	return !l->stopped;
}

/* A piece of what the broker has left to do. */
static __attribute__((noinline)) void loop_work(struct loop *l)
{
	const struct event event = { .type = EVENT_TIME };

	feed_event(l->feed, &event);
}

/* Memory is to be given back: by the heap, or by the file that outlives this process. */
static bool loop_trims_now(const struct loop *l)
{
	return l->trim.state != TRIM_REST || ledger_file_shrinks(l->to.ledger_file);
}

/*
 * A piece for each turn in which nobody wants anything; then the next turn does not wait.
 */
static __attribute__((noinline)) void loop_trim(struct loop *l)
{
	if (l->events == l->trim_at && !feed_hurries(l->feed) && !broker_has_work(l->broker)) {
		if (l->trim.state != TRIM_REST)
			trim_piece(&l->trim, feed_now(l->feed));
		else
			ledger_file_piece(l->to.ledger_file);
	}
	l->trim_at = l->events;
	if (loop_trims_now(l))
		feed_hurry(l->feed);
	else
		loop_look(l);
}

struct loop_end loop_run(struct loop *l)
{
	struct watch_base *base = feed_base(l->feed);

	while (loop_settle(l)) {
		if (loop_trims_now(l))
			loop_trim(l);
		watch_base_turn(base, !feed_begin_turn(l->feed) && !broker_has_work(l->broker));
		server_continue(l->to.server);
		if (broker_has_work(l->broker))
			loop_work(l);
	}
	return l->end;
}
