/* SPDX-License-Identifier: Apache-2.0 */
#include "core/broker.h"

#include <assert.h>

#include "base/container.h"
#include "base/mem.h"
#include "core/command/command.h"
#include "core/client/mlock.h"
#include "core/client/notify.h"
#include "core/client/reply.h"
#include "core/client/tell.h"
#include "core/connection.h"
#include "core/drain.h"
#include "core/hosts/release.h"
#include "core/recovery.h"
#include "core/route.h"
#include "core/session/budget.h"
#include "core/kind/kinds.h"
#include "core/kind/semaphore.h"
#include "core/state.h"

static const int64_t TOKEN_BLOCK = 1 << 20;

struct broker *broker_new(const struct broker_conf *conf, uint64_t seed, int64_t now_ns)
{
	struct broker *b = mem_new(sizeof(*b));

	b->ensemble.env = b->directories.env = b->locks.env = b->hosts.env = &b->env;
	b->directories.ensemble = b->locks.ensemble = b->hosts.ensemble = &b->ensemble;
	b->locks.directories = &b->directories;
	b->hosts.locks = &b->locks;
	b->locks.broker = b;
	b->locks.rules = kind_rules;
	b->env.conf = conf;
	b->env.random.state = seed;
	b->env.now_ns = b->env.started_ns = now_ns;
	b->directories.last_nonce = random_next(&b->env.random) >> 9;
	b->stop_timer.kind = TIMER_STOP;
	b->directories.token_next = b->directories.token_limit = 1;
	TAILQ_INIT(&b->locks.clients);
	TAILQ_INIT(&b->locks.used);
	TAILQ_INIT(&b->locks.idle);
	TAILQ_INIT(&b->directories.touched);
	turn_init(&b->directories);
	TAILQ_INIT(&b->locks.closing);
	TAILQ_INIT(&b->locks.outcomes);
	TAILQ_INIT(&b->locks.mlocks);
	hosts_init(&b->hosts);
	map_init(&b->locks.users, random_next(&b->env.random), random_next(&b->env.random));
	map_init(&b->locks.groups, random_next(&b->env.random), random_next(&b->env.random));
	map_init(&b->locks.names, random_next(&b->env.random), random_next(&b->env.random));
	map_init(&b->directories.paths, random_next(&b->env.random), random_next(&b->env.random));
	map_init(&b->locks.semaphores, random_next(&b->env.random), random_next(&b->env.random));
	session_init(&b->ensemble);
	formers_init(&b->ensemble);
	return b;
}

static void free_locks(struct broker *b)
{
	struct lock *lock;

	while ((lock = TAILQ_FIRST(&b->locks.used))) {
		claim_free_all(&lock->directory);
		lock->directory.operations = 0;
		if (lock->semaphore)
			semaphore_detach(lock);
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
	hosts_deinit(&b->hosts);
	while ((c = TAILQ_FIRST(&b->locks.clients)))
		connection_gone(b, c);
	free_locks(b);
	session_deinit(&b->ensemble);
	formers_deinit(&b->ensemble);
	bytes_free(&b->ensemble.duplicate.text);
	health_deinit(&b->ensemble.health);
	operation_deinit(&b->ensemble.operations);
	heap_unset(&b->env.timers, &b->stop_timer);
	heap_deinit(&b->env.timers);
	map_deinit(&b->locks.users);
	map_deinit(&b->locks.groups);
	map_deinit(&b->locks.names);
	map_deinit(&b->directories.paths);
	map_deinit(&b->locks.semaphores);
	mem_free(b->locks.conns);
	mem_free(b->locks.spare_grant);
	mem_free(b);
}

static void settle_locks(struct broker *b)
{
	struct directory *d;

	while ((d = TAILQ_FIRST(&b->directories.touched))) {
		struct lock *lock = lock_of(d);

		lock_settle(lock);
		budget_recount(d);
		tell_outcomes(&b->locks);
		lock_rest(lock);
	}
}

void broker_settle(struct broker *b)
{
	tell_outcomes(&b->locks);
	while (!TAILQ_EMPTY(&b->directories.touched) || !TAILQ_EMPTY(&b->locks.mlocks)) {
		settle_locks(b);
		mlock_continue(&b->locks);
	}
}

/* Their buffers are full, or they asked for it: nothing is granted any more to a connection that is being closed. */
static void close_clients(struct broker *b)
{
	struct client *c;

	while ((c = TAILQ_FIRST(&b->locks.closing))) {
		TAILQ_REMOVE(&b->locks.closing, c, closing_link);
		c->closed = true;
		release_client(&b->hosts, c);
		effects_add(b->env.out, EFFECT_CLOSE)->conn = c->conn;
	}
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
	struct lock *lock;

	if (!b->directories.token_asked && limit > b->directories.token_next)
		b->directories.token_next = limit;
	if (limit > b->directories.token_limit)
		b->directories.token_limit = limit;
	b->directories.token_asked = false;
	TAILQ_FOREACH(lock, &b->locks.used, link)
		if (lock->request_count)
			directory_touch(&lock->directory);
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

static void dispatch(struct broker *b, const struct event *event)
{
	switch (event->type) {
	case EVENT_TIME:
		break;
	case EVENT_CLIENT_CONNECTED:
		connection_begin(b, event);
		break;
	case EVENT_CLIENT_ASKED:
		asked(b, event);
		break;
	case EVENT_CLIENT_HALF_CLOSED:
		connection_half_closed(client_of(b, event->conn));
		break;
	case EVENT_CLIENT_WRITTEN:
		client_of(b, event->conn)->revoke_bytes = 0;
		break;
	case EVENT_CLIENT_PROCESS:
		connection_process(client_of(b, event->conn), event);
		break;
	case EVENT_CLIENT_GONE:
		connection_gone(b, client_of(b, event->conn));
		break;
	case EVENT_ZK_CONNECTED:
		recovery_connected(b, event);
		break;
	case EVENT_ZK_SUSPENDED:
		recovery_suspended(b);
		break;
	case EVENT_ZK_EXPIRED:
		recovery_expired(b);
		break;
	case EVENT_ZK_ANSWERED:
		route_answered(b, event);
		break;
	case EVENT_ZK_WATCH:
		route_watched(b, event);
		break;
	case EVENT_ZK_TROUBLE:
		health_trouble(&b->ensemble, event);
		break;
	case EVENT_ZK_PACKET:
		recovery_packet(b, event);
		break;
	case EVENT_TOKENS:
		tokens_reserved(b, event->tokens.limit);
		break;
	case EVENT_FORMER_FREE:
		former_free(&b->ensemble, event);
		break;
	case EVENT_FORMER_OVER:
		former_over(&b->ensemble, event);
		break;
	case EVENT_STOP:
		drain(b);
		break;
	}
}

/* What waited until all that the event changed is settled. */
static void answer(struct broker *b, const struct event *event)
{
	struct client *c;

	if (event->type == EVENT_CLIENT_ASKED) {
		reply_settled(client_of(b, event->conn));
	} else if (event->type == EVENT_CLIENT_HALF_CLOSED) {
		c = client_of(b, event->conn);
		/* The end of a wait may have been the event that EVENTS waits for. */
		if (c->events_waiting)
			notify_end_wait(c);
	}
}

static void fire(struct broker *b, struct timer *t)
{
	switch ((enum timer_kind)t->kind) {
	case TIMER_SESSION:
		recovery_follow(b, session_tick(&b->ensemble));
		break;
	case TIMER_LOCK:
		directory_touch(&container_of(t, struct lock, timer)->directory);
		break;
	case TIMER_REQUEST:
		request_expire(container_of(t, struct request, timer));
		break;
	case TIMER_LEASE:
		grant_lose(container_of(t, struct grant, lease), LOSS_LEASE);
		break;
	case TIMER_EVENTS:
		notify_end_wait(container_of(t, struct client, events_timer));
		break;
	case TIMER_FORMER:
		formers_tick(&b->ensemble);
		break;
	case TIMER_STOP:
		drain_end(b, false);
		break;
	case TIMER_INBOX:
		inbox_due(&b->hosts);
		break;
	case TIMER_LETTER:
		outbox_due(container_of(t, struct letter, timer));
		break;
	case TIMER_REVOCATION:
		revocation_due(container_of(t, struct revocation, timer));
		break;
	}
}

static void pass(struct broker *b)
{
	struct timer *t;

	while ((t = heap_first(&b->env.timers)) && t->due_ns <= b->env.now_ns) {
		heap_unset(&b->env.timers, t);
		fire(b, t);
		tell_outcomes(&b->locks);
	}
	broker_settle(b);
}

static void start(struct broker *b)
{
	b->started = true;
	if (b->env.conf->standalone)
		return;
	formers_start(&b->ensemble);
	recovery_open(b);
}

static void serve_turns(struct broker *b)
{
	struct directory *d;
	enum turn turn;

	while ((turn = turn_next(&b->directories, &d)) != TURN_NONE) {
		if (turn == TURN_QUESTIONS) {
			hosts_continue(&b->hosts);
		} else {
			lock_take_turn(lock_of(d), turn);
			broker_settle(b);
		}
	}
}

void broker_handle(struct broker *b, int64_t now_ns, const struct event *event, struct effects *effects)
{
	int64_t before = b->env.now_ns;

	b->env.out = effects;
	if (now_ns > before)
		b->env.now_ns = now_ns;
	recovery_follow(b, session_pass(&b->ensemble, before));
	/* Of a session that is over nothing is granted, also if what was before has just run out. */
	if (event->type == EVENT_ZK_EXPIRED)
		dispatch(b, event);
	pass(b);
	if (!b->started && event->type == EVENT_TIME)
		start(b);
	if (event->type != EVENT_ZK_EXPIRED)
		dispatch(b, event);
	tell_outcomes(&b->locks);
	if (b->started)
		ask_tokens(b);
	close_clients(b);
	broker_settle(b);
	answer(b, event);
	serve_turns(b);
	hosts_continue(&b->hosts);
	/* What one lets go of may be one event too many for the next. */
	do {
		close_clients(b);
		broker_settle(b);
	} while (!TAILQ_EMPTY(&b->locks.closing));
	if (b->env.stopping && b->locks.grant_count == b->locks.lost_count)
		drain_end(b, true);
	assert(TAILQ_EMPTY(&b->locks.outcomes));
	b->env.out = NULL;
}

int64_t broker_deadline(const struct broker *b)
{
	const struct timer *t = heap_first(&b->env.timers);

	if (!b->started)
		return b->env.now_ns;
	return t ? t->due_ns : INT64_MAX;
}

void broker_session(const struct broker *b, struct session_view *ret)
{
	session_view(&b->ensemble, ret);
}

int64_t broker_safe_until(const struct broker *b)
{
	return session_safe_until(&b->ensemble);
}

/* ---- for tests ---- */

/* A request wants it, or the held one comes to the end of its tokens. */
static bool is_wanted(const struct claim *next)
{
	const struct lock *lock = lock_of(next->directory);
	const struct request *head = TAILQ_FIRST(&lock->requests);

	if (lock->directory.claim->state != CLAIM_HELD)
		return false;
	return head ? mode_covers(next->mode, head->mode) : lock->directory.claim->handoffs >= CLAIM_NEXT_FROM;
}

/* What is wanted is sent or waits for its turn; and beside a claim that a list showed waiting nothing is unknown. */
static void check_sending(const struct lock *lock)
{
	const struct directory *d = &lock->directory;
	bool sends = lock->locks->ensemble->session.proving && d->pause_until_ns <= lock->locks->env->now_ns;
	bool listed = d->claim && d->claim->state == CLAIM_WAITING && d->claim->listed;
	const struct claim *c;

	assert(!sends || !d->wanted || d->waits[TURN_JOIN] || d->waits[TURN_DELETE]);
	assert(!listed || (!d->next && !d->remembered && d->claim->named));
	TAILQ_FOREACH(c, &d->leaving, link) {
		assert(!sends || !c->named || c->withheld || c->leave_op || d->waits[TURN_DELETE]);
		assert(!listed || c->named);
	}
}

static void check_lock(const struct lock *lock, size_t *requests, size_t *grants, size_t *lost, size_t *claims)
{
	const struct directory *d = &lock->directory;
	const struct request *r;
	const struct grant *g;
	const struct claim *c;
	size_t n_requests = 0, n_expired = 0, n_grants = 0, n_lost = 0, n_claims = 0;

	TAILQ_FOREACH(r, &lock->requests, link) {
		assert(r->lock == lock && (r->queued || (r->client->request == r && r->client->asking)));
		n_requests++;
		n_expired += r->expired;
	}
	TAILQ_FOREACH(g, &lock->grants, link) {
		assert(!g->lost && g->depth >= 1);
		assert(g->mode != MODE_EXCLUSIVE || (n_grants == 0 && !TAILQ_NEXT(g, link)));
		n_grants++;
	}
	TAILQ_FOREACH(g, &lock->lost, link) {
		assert(g->lost && !g->lease.place);
		n_lost++;
	}
	TAILQ_FOREACH(c, &d->leaving, link) {
		assert(c->state == CLAIM_LEAVING);
		n_claims++;
	}
	TAILQ_FOREACH(c, &d->slots, link) {
		assert(c->state != CLAIM_LEAVING && d->flavour == FLAVOUR_SLOTS);
		n_claims++;
	}
	assert(!d->next || (d->claim && d->next != d->claim));
	assert(!d->claim || d->claim->state != CLAIM_LEAVING);
	assert(!d->next || (d->next->state != CLAIM_LEAVING && is_wanted(d->next)));
	if (lock->semaphore)
		semaphore_check(lock->semaphore);
	check_sending(lock);
	assert(!n_grants || d->flavour == FLAVOUR_SLOTS ||
	       (d->claim && d->claim->state == CLAIM_HELD && d->claim->granted));
	assert(d->watch_bytes == budget_watches(d));
	n_claims += (size_t)(d->claim != NULL) + (size_t)(d->next != NULL);
	assert(n_requests == lock->request_count && n_expired == lock->expired_count);
	assert(n_grants == lock->grant_count && n_claims == d->claim_count);
	*requests += n_requests;
	*grants += n_grants + n_lost;
	*lost += n_lost;
	*claims += n_claims;
}

void broker_check(const struct broker *b)
{
	const struct lock *lock;
	const struct client *c;
	const struct request *r;
	const struct grant *g;
	const struct letter *l;
	size_t requests = 0, grants = 0, lost = 0, claims = 0, clients = 0, waiting = 0, blocked = 0, held = 0;
	size_t letters = 0, letter_bytes = 0, watches = 0, remembered = 0;

	assert(TAILQ_EMPTY(&b->directories.touched) && TAILQ_EMPTY(&b->locks.mlocks) && TAILQ_EMPTY(&b->locks.closing));
	/* Whose turn it is next is looked at with the next answer: there has to be one. */
	assert(!b->ensemble.session.proving || !b->directories.turns.waiting ||
	       b->ensemble.operations.first != b->ensemble.operations.end);
	assert(!b->directories.turns.breath && !b->directories.turns.served);
	TAILQ_FOREACH(lock, &b->locks.used, link) {
		check_lock(lock, &requests, &grants, &lost, &claims);
		watches += budget_watches(&lock->directory);
		remembered += lock->directory.remembered;
	}
	TAILQ_FOREACH(lock, &b->locks.idle, link)
		assert(lock->idle && !lock->request_count && !lock->grant_count && !lock->directory.claim_count &&
		       !lock->directory.watch_bytes && !lock->directory.remembered);
	TAILQ_FOREACH(c, &b->locks.clients, link) {
		size_t n = 0, n_lost = 0, n_requests = 0, n_counted = 0;

		TAILQ_FOREACH(g, &c->grants, client_link) {
			n++;
			n_lost += g->lost;
			n_counted += g->counted;
		}
		assert(n_counted == c->counted);
		TAILQ_FOREACH(r, &c->requests, client_link) {
			assert(r->client == c && r->queued == (r != c->request) && r->queued == (r != &c->blocking));
			n_requests++;
		}
		assert(n == c->grant_count && n_lost == c->lost_count && n_requests == c->request_count);
		assert(b->locks.conns[c->conn] == c);
		assert(c->is_holder == (n > n_lost));
		assert(!c->group || c->group->uid == c->uid);
		assert(!c->mlock || (c->request && c->mlock->client == c && c->mlock->state == MLOCK_TAKING));
		clients++;
		held += n;
		waiting += n_requests;
		blocked += c->request != NULL;
	}
	assert(clients == b->locks.client_count);
	assert(requests == b->locks.request_count && requests == waiting && blocked == b->locks.blocked_count);
	assert(grants == b->locks.grant_count && grants == held && lost == b->locks.lost_count);
	TAILQ_FOREACH(l, &b->hosts.letters, link) {
		letters++;
		letter_bytes += l->path.len;
	}
	assert(letters == b->hosts.outbox_count && letters <= LETTERS_MAX);
	assert(claims == b->directories.claim_count && (claims || b->ensemble.path_bytes == letter_bytes) &&
	       watches == b->ensemble.watch_bytes);
	assert(remembered == b->directories.remembered_count && (claims || !b->directories.orphan_count));
}

bool broker_quiet(const struct broker *b)
{
	return TAILQ_EMPTY(&b->locks.clients) && TAILQ_EMPTY(&b->locks.used) && !b->locks.groups.count &&
	       !b->locks.request_count && !b->locks.grant_count && !b->directories.claim_count &&
	       !b->hosts.outbox_count;
}
