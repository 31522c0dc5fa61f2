/* SPDX-License-Identifier: Apache-2.0 */
#include "core/broker.h"

#include <assert.h>

#include "base/cold.h"
#include "base/container.h"
#include "base/mem.h"
#include "core/claim/charge.h"
#include "core/claim/claim_ledger.h"
#include "core/client/ask.h"
#include "core/client/bid.h"
#include "core/client/deadlock.h"
#include "core/client/halt.h"
#include "core/client/mlock.h"
#include "core/client/notify.h"
#include "core/client/reply.h"
#include "core/client/tell.h"
#include "core/command/command.h"
#include "core/command/list.h"
#include "core/connection.h"
#include "core/drain.h"
#include "core/hosts/answer.h"
#include "core/hosts/scan.h"
#include "core/hosts/release.h"
#include "core/kind/kinds.h"
#include "core/kind/observe.h"
#include "core/kind/payer.h"
#include "core/lock/client_ledger.h"
#include "core/lock/hold.h"
#include "core/lock/take_back.h"
#include "core/recovery.h"
#include "core/session/ensemble_snapshot.h"
#include "core/state.h"

static const int64_t TOKEN_BLOCK = 1 << 20;

/* ---- the work that events have left (port/work.h), each kind by the module that it belongs to ---- */

/* Continues with the client's end, or with its RESET. */
static void release_more(struct broker *b, struct client *c, int64_t *steps)
{
	if (!release_some(&b->hosts, c, b->env.conf->all_in_pieces ? *steps + 1 : WORK_TURN_STEPS, steps))
		return;
	work_drop(&b->env.works, &c->releasing);
	if (!c->resetting)
		return;
	command_reset_over(c);
	*steps = WORK_TURN_STEPS; /* one answer at a time waits until all is settled */
}

/* What a process has set ends with it, and perhaps its user, who stays until that is known. True: the user is gone. */
static bool cut_lifeline(struct broker *b, struct lifeline *l, int64_t *done)
{
	struct user *user = container_of(l->work.worker, struct user, worker);

	user->clients++;
	*done += bid_cut(l, WORK_TURN_STEPS - *done);
	return user_leave(&b->locks, user);
}

/* True: the user whose item it is has gone. */
static bool step(struct broker *b, struct work_item *w, int64_t *done)
{
	const int64_t left = WORK_TURN_STEPS - *done;

	switch (w->kind) {
	case WORK_LIST:
		*done += list_continue(container_of(w, struct list, work), left);
		break;
	case WORK_ANSWER:
		*done += answer_continue(container_of(w, struct answer, work), left);
		break;
	case WORK_SCAN:
		*done += scan_continue(container_of(w, struct scan, work), left);
		break;
	case WORK_AUDIT:
		*done += audit_look(&b->hosts, left);
		break;
	case WORK_MLOCK: /* one in a turn: all is settled between two, and a search for a deadlock may take long */
		mlock_go_on(container_of(w, struct mlock, work));
		*done += WORK_TURN_STEPS + (int64_t)b->locks.searched / DEADLOCK_EDGES_A_STEP;
		break;
	case WORK_RELEASE:
		release_more(b, container_of(w, struct client, releasing), done);
		break;
	case WORK_REVOKE:
		*done += revocation_continue(container_of(w, struct revocation, work), left);
		break;
	case WORK_LETTER_TASK:
		*done += letter_task_continue(container_of(w, struct letter_task, work), left);
		break;
	case WORK_OBSERVERS:
		*done += observe_look(container_of(w, struct observation, work), left);
		break;
	case WORK_BID:
		bid_go_on(container_of(w, struct bid, work));
		*done += BID_STEPS;
		break;
	case WORK_LIFELINE:
		return cut_lifeline(b, container_of(w, struct lifeline, work), done);
	case WORK_LOOKUP:
		command_again(&b->hosts, container_of(w, struct lookup, work));
		*done = WORK_TURN_STEPS; /* one answer at a time waits until all is settled */
		break;
	case WORK_BATCH:
		batch_turn(container_of(w, struct batch, work));
		*done = WORK_TURN_STEPS;
		break;
	case WORK_DELEGATIONS:
		*done += delegated_continue(container_of(w, struct delegations, work), left);
		break;
	case WORK_HALT:
		*done += halt_continue(&b->locks, left);
		break;
	case WORK_LOCKS:
		*done += directory_touch_some(&b->directories, left);
		break;
	case WORK_LEADER:
		observe_tell(container_of(w, struct observer, work));
		*done += WORK_PUSH_STEPS;
		break;
	}
	return false;
}

/* Does a piece of it, for the user whose turn it is. */
static void piece_do(struct broker *b)
{
	struct work_ring *works = &b->env.works;
	struct work_item *w = work_next(works);
	struct work_user *worker;
	int64_t done = 0;

	if (!w)
		return;
	worker = w->worker;
	while (done < WORK_TURN_STEPS && (w = TAILQ_FIRST(&worker->items)))
		if (step(b, w, &done))
			return;
	work_turn_over(works, worker, done);
}

/* ---- the broker ---- */

struct broker *broker_new(const struct broker_conf *conf, uint64_t seed, int64_t now_ns)
{
	const uint64_t *key = conf->hash_key;
	struct broker *b = mem_new(sizeof(*b));

	b->ensemble.env = b->directories.env = b->locks.env = b->hosts.env = &b->env;
	b->directories.ensemble = b->locks.ensemble = b->hosts.ensemble = &b->ensemble;
	b->locks.directories = &b->directories;
	b->hosts.locks = &b->locks;
	b->locks.rules = kind_rules;
	b->env.conf = conf;
	b->env.rules = 1;
	b->env.random.state = seed;
	b->env.now_ns = b->env.started_ns = now_ns;
	b->env.stats.since_s = conf->started_s;
	b->directories.last_nonce = random_next(&b->env.random) >> 9;
	b->stop_timer.kind = TIMER_STOP;
	b->directories.token_next = b->directories.token_limit = 1;
	TAILQ_INIT(&b->locks.clients);
	TAILQ_INIT(&b->locks.lifelines);
	TAILQ_INIT(&b->env.works);
	TAILQ_INIT(&b->locks.walks);
	b->locks.halting.work.kind = WORK_HALT;
	work_user_init(&b->locks.halting.worker);
	TAILQ_INIT(&b->locks.used);
	TAILQ_INIT(&b->locks.idle);
	TAILQ_INIT(&b->directories.touched);
	turn_init(&b->directories);
	names_init(&b->directories);
	lasting_init(&b->directories);
	TAILQ_INIT(&b->directories.later);
	work_user_init(&b->directories.worker);
	TAILQ_INIT(&b->locks.closing);
	TAILQ_INIT(&b->locks.told);
	TAILQ_INIT(&b->locks.outcomes);
	TAILQ_INIT(&b->locks.mlocks);
	accounts_init(&b->env.accounts, POOLS, key[0], key[1]);
	TAILQ_INIT(&b->locks.attempts);
	map_init(&b->locks.places, 0, 0);
	map_init(&b->locks.ids, 0, 0);
	map_init(&b->locks.lifeline_pids, 0, 0);
	map_init(&b->locks.users, 0, 0); /* by account: nobody chooses where one is */
	pools_configure(&b->env);
	hosts_init(&b->hosts);
	map_init(&b->locks.groups, key[0], key[1]);
	map_init(&b->locks.attempted, key[0], key[1]);
	map_init(&b->locks.names, key[0], key[1]);
	map_init(&b->directories.paths, key[0], key[1]);
	session_init(&b->ensemble);
	return b;
}

static void free_locks(struct broker *b)
{
	struct directory *d;
	struct lock *lock;

	while ((lock = TAILQ_FIRST(&b->locks.used))) {
		LOCK_DIRECTORIES(d, lock) {
			claim_free_all(d);
			d->operations = 0;
		}
		lock_free(lock);
	}
	while ((lock = TAILQ_FIRST(&b->locks.idle)))
		lock_free(lock);
}

void broker_free(struct broker *b)
{
	struct client *c;

	if (!b)
		return;
	b->env.ledger = NULL; /* the next process needs it as it is, and the pages */
	TAILQ_FOREACH(c, &b->locks.clients, link)
		delegated_abandon(c);
	hosts_deinit(&b->hosts);
	while ((c = TAILQ_FIRST(&b->locks.clients)))
		connection_gone(b, c);
	place_forget_notes(&b->locks);
	free_locks(b);
	session_deinit(&b->ensemble);
	heap_unset(&b->env.timers, &b->stop_timer);
	heap_deinit(&b->env.timers);
	map_deinit(&b->locks.places);
	map_deinit(&b->locks.attempted);
	map_deinit(&b->locks.ids);
	map_deinit(&b->locks.lifeline_pids);
	map_deinit(&b->locks.users);
	names_deinit(&b->directories);
	lasting_deinit(&b->directories);
	accounts_deinit(&b->env.accounts);
	bytes_free(&b->env.refusal);
	map_deinit(&b->locks.groups);
	map_deinit(&b->locks.names);
	map_deinit(&b->directories.paths);
	mem_free(b->locks.conns);
	mem_free(b->locks.spare_grant);
	mem_free(b->directories.spare_claim);
	mem_free(b);
}

static void settle_locks(struct broker *b)
{
	struct directory *d;

	while ((d = TAILQ_FIRST(&b->directories.touched))) {
		struct lock *lock = d->lock;

		/* The losses with a znode are told before a *next* that took its place is served. */
		if (d->facts) {
			lock_learn(d);
			tell_outcomes(&b->locks);
			continue;
		}
		lock_settle(d);
		if (lock->mixed)
			payer_settle(lock);
		if (!b->env.conf->standalone)
			charge_recount(d);
		/* The list that ended its last claim may have shown another one of ours: only now it is empty. */
		if (!d->claim_count && !b->env.conf->standalone)
			directory_ledger_forget(d);
		tell_outcomes(&b->locks);
		ask_settle_aside(lock);
	}
}

static inline bool is_settled(const struct broker *b)
{
	return TAILQ_EMPTY(&b->directories.touched) && TAILQ_EMPTY(&b->locks.mlocks);
}

static __attribute__((noinline)) void settle_all(struct broker *b)
{
	do {
		settle_locks(b);
		if (!TAILQ_EMPTY(&b->locks.mlocks))
			mlock_continue(&b->locks);
	} while (!is_settled(b));
}

/* Settles every touched lock, and the next step of each MLOCK that got one of its locks. Most often there is none. */
static inline void settle(struct broker *b)
{
	if (!is_settled(b))
		settle_all(b);
}

/* Its buffer is full, or it asked for it: a connection that is being closed is granted nothing any longer. */
static COLD void close_client(struct broker *b, struct client *c)
{
	TAILQ_REMOVE(&b->locks.closing, c, closing_link);
	c->closed = true;
	c->resetting = false;
	if (c->delegations)
		delegated_take_back_all(c);
	list_end(c->list);
	release_begin(&b->hosts, c);
	effects_add(b->env.out, EFFECT_CLOSE)->conn = c->conn;
}

static void close_clients(struct broker *b)
{
	while (!TAILQ_EMPTY(&b->locks.closing))
		close_client(b, TAILQ_FIRST(&b->locks.closing));
}

/* ---- standalone: numbers for claims, reserved in blocks before they are used ---- */

static void ask_tokens(struct broker *b)
{
	if (!b->env.conf->standalone || b->directories.token_asked ||
	    b->directories.token_limit - b->directories.token_next > TOKEN_BLOCK / 2)
		return;
	b->directories.token_asked = true;
	effects_add(b->env.out, EFFECT_TOKENS)->limit = b->directories.token_limit + TOKEN_BLOCK;
}

static void tokens_reserved(struct broker *b, int64_t limit)
{
	if (!b->directories.token_asked && limit > b->directories.token_next)
		b->directories.token_next = limit;
	if (limit > b->directories.token_limit)
		b->directories.token_limit = limit;
	ledger_number(b->env.ledger, CEILING_TOKENS, (uint64_t)b->directories.token_limit);
	b->directories.token_asked = false;
	lock_touch_waiting(&b->locks);
}

/* ---- events ---- */

static struct client *client_of(const struct broker *b, uint32_t conn)
{
	assert(conn < b->locks.conns_cap && b->locks.conns[conn]);
	return b->locks.conns[conn];
}

static void asked(struct broker *b, const struct event *event)
{
	struct client *c = client_of(b, event->conn);

	assert(!c->asking);
	if (c->closing)
		return;
	c->asking = true;
	b->env.stats.requests_total++;
	command_handle(&b->hosts, c, event->asked.argc, event->asked.argv);
}

/* What the adapter has found out for a client. */
static void found_out(struct client *c, const struct event *event)
{
	if (event->type == EVENT_CLIENT_PROCESS)
		connection_process(c, event);
	else if (event->type == EVENT_CLIENT_GROUPS)
		client_set_groups(c, &event->groups);
	else
		command_page(c, event);
}

static void start(struct broker *b)
{
	b->started = true;
	if (b->env.conf->standalone)
		return;
	formers_start(&b->ensemble);
	recovery_open(b);
}

static void tick(struct broker *b)
{
	if (!b->started)
		start(b);
	piece_do(b);
}

static void former_told(struct broker *b, const struct event *event)
{
	if (event->type == EVENT_FORMER_FREE)
		former_free(&b->ensemble, event->former.session);
	else
		former_over(&b->ensemble, event);
}

/* What a program was told at the beginning stays true: its strings, and the limit of what the servers were asked about. */
static bool stays_true(const struct broker_conf *before, const struct broker_conf *now)
{
	return before->root == now->root && before->host == now->host && before->standalone == now->standalone &&
	       before->prefixes == now->prefixes && before->tick_ns == now->tick_ns &&
	       before->session_timeout_ns == now->session_timeout_ns &&
	       before->limits.session_path_bytes == now->limits.session_path_bytes;
}

static void answer_reload(struct client *c, const struct event *event)
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

/* Another configuration from now on, or none because it has an error; every RELOAD that waits is answered. */
static void reloaded(struct broker *b, const struct event *event)
{
	struct client *c;

	if (event->conf.now) {
		assert(stays_true(b->env.conf, event->conf.now));
		b->env.conf = event->conf.now;
		b->env.rules++;
		/* New rules apply to every request from now on, also to those for delegated locks. */
		TAILQ_FOREACH(c, &b->locks.clients, link)
			delegated_take_back_later(c);
		pools_configure(&b->env);
		budget_limits(&b->env, &b->ensemble.budget);
	}
	TAILQ_FOREACH(c, &b->locks.clients, link)
		if (c->reloading)
			answer_reload(c, event);
}

/* All but the requests of clients: most events are such, and need no frame for the others. */
static __attribute__((noinline)) void dispatch(struct broker *b, const struct event *event)
{
	switch (event->type) {
	case EVENT_TIME:
		tick(b);
		break;
	case EVENT_CLIENT_CONNECTED:
		connection_begin(b, event);
		break;
	case EVENT_CLIENT_ASKED: /* broker_handle() does it */
		break;
	case EVENT_CLIENT_HALF_CLOSED:
		connection_half_closed(client_of(b, event->conn));
		break;
	case EVENT_CLIENT_WRITTEN:
		client_of(b, event->conn)->revoke_bytes = 0;
		break;
	case EVENT_LIFELINE:
		lifeline_told(&b->locks, event);
		break;
	case EVENT_CLIENT_PROCESS:
	case EVENT_CLIENT_GROUPS:
	case EVENT_CLIENT_PAGE:
		found_out(client_of(b, event->conn), event);
		break;
	case EVENT_CLIENT_LEAVES:
		connection_leaves(b, client_of(b, event->conn));
		break;
	case EVENT_CLIENT_GONE:
		connection_gone(b, client_of(b, event->conn));
		break;
	case EVENT_ZK_CONNECTED:
		recovery_connected(b, event);
		break;
	case EVENT_ZK_SUSPENDED:
		recovery_suspended(b, event->zk_suspended.planned);
		break;
	case EVENT_ZK_EXPIRED: /* it went before all else */
		break;
	case EVENT_ZK_ANSWERED:
		recovery_answered(b, event);
		break;
	case EVENT_ZK_WATCH:
		recovery_watched(b, event);
		break;
	case EVENT_ZK_TROUBLE:
		health_trouble(&b->ensemble, event);
		break;
	case EVENT_ZK_LACKS:
		b->ensemble.lacks = event->zk_lacks;
		break;
	case EVENT_ZK_PACKET:
		recovery_packet(b, event);
		break;
	case EVENT_TOKENS:
		tokens_reserved(b, event->tokens.limit);
		break;
	case EVENT_FORMER_FREE:
	case EVENT_FORMER_OVER:
		former_told(b, event);
		break;
	case EVENT_RESTART_OVER:
		command_restart_over(&b->locks, event);
		break;
	case EVENT_CONF:
		reloaded(b, event);
		break;
	case EVENT_STOP:
		drain(b);
		break;
	}
}

/* Sends the answer that waited until all was settled. */
static void answer(struct client *c)
{
	c->locks->after = NULL;
	reply_settled(c);
	/* The end of a wait may have been the event that EVENTS waits for. */
	if (c->half_closed && c->events_waiting)
		notify_end_wait(c);
}

static __attribute__((noinline)) void fire(struct broker *b, struct timer *t)
{
	switch ((enum timer_kind)t->kind) {
	case TIMER_SESSION:
		recovery_follow(b, session_tick(&b->ensemble));
		break;
	case TIMER_DIRECTORY:
		directory_touch(container_of(t, struct directory, timer));
		break;
	case TIMER_REQUEST:
		request_expire(container_of(t, struct request, timer));
		break;
	case TIMER_LEASE:
		grant_lose(container_of(t, struct grant, lease), LOSS_LEASE);
		break;
	case TIMER_HOLD:
	case TIMER_WAIT:
		hold_due(&b->locks, t);
		break;
	case TIMER_EVENTS:
		notify_end_wait(container_of(t, struct client, events_timer));
		break;
	case TIMER_FORMER:
		formers_tick(&b->ensemble);
		break;
	case TIMER_DELEGATIONS:
		delegated_look(container_of(t, struct delegations, idle));
		break;
	case TIMER_STOP:
		drain_due(b);
		break;
	case TIMER_INBOX:
		inbox_due(&b->hosts);
		break;
	case TIMER_LETTER:
		letter_withdraw(container_of(t, struct letter, timer));
		break;
	case TIMER_REVOCATION:
		revocation_due(container_of(t, struct revocation, timer));
		break;
	case TIMER_PLACE:
		place_due(container_of(t, struct place, timer));
		break;
	case TIMER_ATTEMPT:
		place_attempt_due(container_of(t, struct attempt, timer));
		break;
	case TIMER_FORWARD:
		forward_due(container_of(t, struct forward, timer));
		break;
	}
}

static void pass(struct broker *b)
{
	struct timer *t;

	tell_outcomes(&b->locks);
	while ((t = heap_first(&b->env.timers)) && t->due_ns <= b->env.now_ns) {
		heap_unset(&b->env.timers, t);
		fire(b, t);
		tell_outcomes(&b->locks);
	}
	settle(b);
}

static void serve_turns(struct broker *b)
{
	struct directory *d;
	enum turn turn;

	while ((turn = turn_next(&b->directories, &d)) != TURN_NONE) {
		if (turn == TURN_QUESTIONS) {
			hosts_continue(&b->hosts);
		} else {
			lock_take_turn(d, turn);
			settle(b);
		}
	}
}

/* The adapter of this process does not know what that of the one before was asked for. */
static COLD void resume(struct broker *b)
{
	struct client *c;
	bool reload = false;

	b->restored = false;
	lifelines_resume(&b->locks);
	if (!b->env.conf->standalone && b->started)
		ensemble_resume(&b->ensemble);
	TAILQ_FOREACH(c, &b->locks.clients, link) {
		reload |= c->reloading;
		if (c->child)
			client_watch_child(c);
		if (c->delegating)
			effects_add(b->env.out, EFFECT_PAGE)->conn = c->conn;
		if (c->searching)
			deadlock_look_at(c);
		c->searching = false;
	}
	if (reload)
		effects_add(b->env.out, EFFECT_RELOAD);
}

/* The pages say who holds delegated locks: they are read before anything else can happen to the grants. */
static void resume_delegations(struct broker *b)
{
	struct client *c;

	TAILQ_FOREACH(c, &b->locks.clients, link)
		if (c->delegations)
			delegated_resume(c->delegations);
}

void broker_give_page(struct broker *b, uint32_t conn, struct delegation_page *page)
{
	assert(b->restored);
	delegated_go_on(client_of(b, conn), page);
}

void broker_handle(struct broker *b, int64_t now_ns, const struct event *event, struct effects *effects)
{
	int64_t before = b->env.now_ns;
	unsigned int changes;

	b->env.out = effects;
	b->locks.mlock_steps = b->locks.searched = b->locks.said = b->locks.lost_said = 0;
	if (!TAILQ_EMPTY(&b->locks.told) && !effects->count)
		client_ledger_all_told(&b->locks); /* what was given before is carried out */
	if (now_ns > before)
		b->env.now_ns = now_ns;
	if (b->restored)
		resume_delegations(b);
	changes = session_pass(&b->ensemble, before);
	if (changes)
		recovery_follow(b, changes);
	/* Nothing is granted in a session that is over, even if an earlier grant has just run out. */
	if (event->type == EVENT_ZK_EXPIRED)
		recovery_expired(b);
	pass(b);
	if (event->type == EVENT_CLIENT_ASKED)
		asked(b, event);
	else
		dispatch(b, event);
	if (b->restored)
		resume(b);
	tell_outcomes(&b->locks);
	if (b->started)
		ask_tokens(b);
	close_clients(b);
	settle(b);
	if (b->locks.after)
		answer(b->locks.after);
	if (b->directories.turns.waiting)
		serve_turns(b);
	hosts_continue(&b->hosts);
	/* The releases of one client may send the next one event too many. */
	do {
		close_clients(b);
		settle(b);
	} while (!TAILQ_EMPTY(&b->locks.closing));
	if (b->env.stopping && drain_is_over(b))
		drain_end(b, !b->locks.bearers_hold);
	assert(TAILQ_EMPTY(&b->locks.outcomes));
	b->env.out = NULL;
}

bool broker_has_work(const struct broker *b)
{
	return !TAILQ_EMPTY(&b->env.works);
}

int64_t broker_deadline(const struct broker *b)
{
	const struct timer *t = heap_first(&b->env.timers);

	if (!b->started || broker_has_work(b))
		return b->env.now_ns;
	return t ? t->due_ns : INT64_MAX;
}

const struct accounts *broker_accounts(const struct broker *b)
{
	return &b->env.accounts;
}

size_t broker_clients(const struct broker *b)
{
	return locks_conns(&b->locks);
}

bool broker_has_client(const struct broker *b, uint32_t conn)
{
	return conn < b->locks.conns_cap && b->locks.conns[conn];
}

bool broker_has_bearers(const struct broker *b)
{
	return !b->env.conf->standalone && b->locks.bearers_hold;
}

bool broker_owns_much(const struct broker *b, uint32_t conn)
{
	const struct client *c = b->locks.conns[conn];

	return c->request_count + c->grant_count + c->observer_count > WORK_TURN_STEPS / RELEASE_STEPS;
}

int64_t broker_held_since(const struct broker *b, uint32_t conn)
{
	const struct client *c = b->locks.conns[conn];

	return c->is_holder ? TAILQ_FIRST(&c->grants)->granted_ns : INT64_MAX;
}

struct client_origin broker_origin(const struct broker *b, uint32_t conn)
{
	const struct client *c = b->locks.conns[conn];

	return (struct client_origin){ c->uid, bytes_view(&c->unit), c->privileged };
}

void broker_session(const struct broker *b, struct session_view *ret)
{
	session_view(&b->ensemble, ret);
}

int64_t broker_session_timeout(const struct broker *b)
{
	return b->ensemble.session.timeout_ns;
}

int64_t broker_safe_until(const struct broker *b)
{
	return session_safe_until(&b->ensemble);
}
