/* SPDX-License-Identifier: Apache-2.0 */
#include "core/session/session.h"

#include <assert.h>
#include <stdlib.h>

#include "base/mem.h"
#include "core/session/presence.h"
#include "core/hosts/inbox.h"
#include "core/kind/semaphore.h"
#include "core/state.h"

enum {
	/* As parts of T. The heartbeat's is a little under the T/6 the proof asks for: a timer may fire late. */
	BEAT_PART = 8,
	/* Lock traffic proves as well as a heartbeat, but only the heartbeat shows others of our name that we live. */
	ANNOUNCE_PART = 4,
	ANSWER_PART = 6,
	SAFE_PART = 3,
	STALL_PART = 3,
	/* After this many ticks past T without a connection the server must have expired us. */
	GIVE_UP_TICKS = 2,
	SHORT_LIVES = 5,
};

static const int64_t JOIN_JITTER_NS = 200000000;
/* Connections that each last less are somebody else's doing. */
static const int64_t SHORT_LIFE_NS = 1000000000;
static const int64_t SHARED_AGAIN_NS = 600000000000;

/* Without a connection for so long is worth a line of the log. */
static const int64_t COMPLAIN_FIRST_NS = 5000000000;

static void update(struct broker *b);

const char *session_state_word(enum session_state state)
{
	switch (state) {
	case SESSION_NONE:
		return "none";
	case SESSION_SAFE:
		return "safe";
	case SESSION_JEOPARDY:
		return "jeopardy";
	case SESSION_LOST:
		return "lost";
	}
	return "";
}

static void begin_silence(struct broker *b)
{
	b->session.silent_ns = b->now_ns;
	b->session.complain_ns = b->now_ns + COMPLAIN_FIRST_NS;
}

void session_init(struct broker *b)
{
	struct session *s = &b->session;

	s->timer.kind = TIMER_SESSION;
	s->state = b->conf->standalone ? SESSION_SAFE : SESSION_NONE;
	s->safe_until_ns = s->told_ns = INT64_MIN;
	s->stalled_until_ns = INT64_MIN;
	s->timeout_ns = b->conf->session_timeout_ns;
	begin_silence(b);
}

void session_deinit(struct broker *b)
{
	heap_unset(&b->timers, &b->session.timer);
	bytes_free(&b->session.server);
}

int64_t session_safe_until(const struct broker *b)
{
	const struct session *s = &b->session;

	if (b->conf->standalone)
		return INT64_MAX;
	return s->state == SESSION_SAFE || s->state == SESSION_JEOPARDY ? s->safe_until_ns : INT64_MIN;
}

static enum session_page_state page_state(enum session_state state)
{
	switch (state) {
	case SESSION_NONE:
		return SESSION_PAGE_NONE;
	case SESSION_SAFE:
		return SESSION_PAGE_SAFE;
	case SESSION_JEOPARDY:
		return SESSION_PAGE_JEOPARDY;
	case SESSION_LOST:
		return SESSION_PAGE_LOST;
	}
	return SESSION_PAGE_NONE;
}

void session_view(const struct broker *b, struct session_view *ret)
{
	int64_t until = session_safe_until(b);

	ret->epoch = b->session.epoch;
	ret->state = page_state(b->session.state);
	ret->safe_until_ns = until == INT64_MIN ? 0 : until;
}

bool session_grants(const struct broker *b)
{
	const struct session *s = &b->session;

	if (b->conf->standalone)
		return true;
	if (s->stalled || (s->state != SESSION_SAFE && s->state != SESSION_JEOPARDY))
		return false;
	return b->now_ns + b->conf->grant_min_ns < session_safe_until(b);
}

static int64_t min64(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* The next instant at which time alone changes something. Later writes and proofs only move it further away. */
static void arm(struct broker *b)
{
	struct session *s = &b->session;
	int64_t T = s->timeout_ns, due = b->now_ns + T / ANSWER_PART, silent_ns = operation_silent_since(b);

	if (b->conf->standalone)
		return;
	if (s->connected) {
		due = min64(due, s->write_ns + T / BEAT_PART);
		due = min64(due, s->announced_ns + T / ANNOUNCE_PART);
		if (silent_ns != INT64_MAX)
			due = min64(due, silent_ns + T / ANSWER_PART);
		if (s->stalled && s->stalled_until_ns > b->now_ns)
			due = min64(due, s->stalled_until_ns);
	}
	if (s->state == SESSION_SAFE)
		due = min64(due, s->safe_until_ns - T / SAFE_PART + 1);
	if (s->state == SESSION_SAFE || s->state == SESSION_JEOPARDY)
		due = min64(due, s->safe_until_ns);
	heap_set(&b->timers, &s->timer, due);
}

static void log_state(struct broker *b, enum effect_level level, const char *text)
{
	struct bytes *out = &b->out->arena;
	size_t begin = broker_log_begin(b);

	bytes_text(out, text);
	bytes_text(out, " (session 0x");
	bytes_hex(out, (uint64_t)b->session.id, 16);
	bytes_text(out, ")");
	broker_log_end(b, level, begin);
}

/* Connections that prove nothing may come and go for as long as it takes somebody to read the first lines. */
static enum effect_level level_of(const struct session *s, enum effect_level level)
{
	return s->fruitless && !s->proving ? EFFECT_LEVEL_DEBUG : level;
}

static void tell_holders(struct broker *b)
{
	struct client *c;

	TAILQ_FOREACH(c, &b->clients, link)
		client_tell_session(c);
}

static void lose_all(struct broker *b)
{
	struct lock *lock;

	TAILQ_FOREACH(lock, &b->locks_used, link) {
		lock_lose(lock);
		lock_touch(lock);
	}
}

static void enter(struct broker *b, enum session_state state)
{
	struct session *s = &b->session;
	enum session_state was = s->state;

	if (was == state)
		return;
	s->state = state;
	switch (state) {
	case SESSION_NONE:
		break;
	case SESSION_SAFE:
		log_state(b, EFFECT_LEVEL_INFO, was == SESSION_JEOPARDY ? "session safe again" : "session safe");
		tell_holders(b);
		break;
	case SESSION_JEOPARDY:
		b->stats.jeopardies_total++;
		log_state(b, EFFECT_LEVEL_WARNING, "session in jeopardy: nothing proves that it lives");
		tell_holders(b);
		break;
	case SESSION_LOST:
		b->stats.sessions_lost_total++;
		s->epoch++;
		log_state(b, EFFECT_LEVEL_ERROR, "session lost: every grant is void");
		lose_all(b);
		break;
	}
}

static void update(struct broker *b)
{
	struct session *s = &b->session;

	if (b->conf->standalone || s->state == SESSION_NONE || s->state == SESSION_LOST)
		return;
	if (b->now_ns >= s->safe_until_ns)
		enter(b, SESSION_LOST);
	else if (s->connected && s->safe_until_ns - b->now_ns >= s->timeout_ns / SAFE_PART)
		enter(b, SESSION_SAFE);
	else
		enter(b, SESSION_JEOPARDY);
}

static void suspend_lock(struct lock *lock)
{
	struct claim *c;

	if (lock->claim)
		claim_suspended(lock->claim);
	if (lock->next)
		claim_suspended(lock->next);
	TAILQ_FOREACH(c, &lock->permits, link)
		claim_suspended(c);
	TAILQ_FOREACH(c, &lock->leaving, link)
		claim_suspended(c);
	if (lock->claim_count)
		lock_remember(lock, true);
	directory_suspended(lock);
	try_forget(lock, (struct slice){ 0 });
	observe_suspended(lock);
	if (lock->semaphore)
		semaphore_suspended(lock->semaphore);
	turn_forget(lock);
	lock_touch(lock);
}

static void disconnect(struct broker *b)
{
	struct session *s = &b->session;
	struct lock *lock;

	s->connected = false;
	s->proving = false;
	s->contact_ns = b->now_ns;
	begin_silence(b);
	operation_begin(b); /* nothing is open any more */
	b->stats.suspensions_total++;
	operation_fail_all(b);
	inbox_suspended(b);
	TAILQ_FOREACH(lock, &b->locks_used, link)
		suspend_lock(lock);
	TAILQ_FOREACH(lock, &b->locks_idle, link)
		try_forget(lock, (struct slice){ 0 });
	audit_suspended(b);
}

static void forget_claims(struct broker *b)
{
	struct lock *lock;

	TAILQ_FOREACH(lock, &b->locks_used, link) {
		claim_free_all(lock);
		lock_touch(lock);
	}
}

/* The session is over, or as good as: nothing of it will be heard of again. */
static void forget(struct broker *b)
{
	struct session *s = &b->session;

	if (s->connected)
		disconnect(b);
	if (s->state == SESSION_SAFE || s->state == SESSION_JEOPARDY)
		enter(b, SESSION_LOST);
	forget_claims(b);
	inbox_forget(b);
	s->id = 0;
	s->safe_until_ns = s->told_ns = INT64_MIN;
	s->announced = false;
}

/*
 * Nobody speaks for it any more, and it may live: servers that were restarted count anew. Even one of which a server says
 * that it has expired is looked at: that costs a connection.
 */
static void give_up(struct broker *b)
{
	int64_t id = b->session.id, told_ns = b->session.told_ns;

	forget(b);
	if (id)
		former_add(b, id, told_ns);
}

void session_open(struct broker *b)
{
	give_up(b);
	b->session.contact_ns = b->now_ns;
	b->session.opening = true;
	effects_add(b->out, EFFECT_ZK_OPEN);
	arm(b);
}

void session_expired(struct broker *b)
{
	if (!b->session.id)
		return;
	log_state(b, level_of(&b->session, EFFECT_LEVEL_WARNING), "session expired by ZooKeeper");
	session_open(b);
}

/* Everybody's waiters come back at once under a new session: each lock joins a little later, by chance. */
static void jitter_joins(struct broker *b)
{
	struct lock *lock;

	TAILQ_FOREACH(lock, &b->locks_used, link) {
		lock_pause(lock, random_below(&b->random, JOIN_JITTER_NS));
	}
}

static void begin_session(struct broker *b, int64_t id)
{
	struct session *s = &b->session;

	if (s->id)
		forget(b);
	if (s->had_one)
		jitter_joins(b);
	s->had_one = true;
	b->stats.sessions_total++;
	s->id = id;
	enter(b, SESSION_NONE);
}

static void forget_answers(struct session *s)
{
	for (size_t i = 0; i < SESSION_ANSWERS; i++)
		s->answers_ns[i] = INT64_MIN;
}

/* They are told apart by an eighth of a tick: what lies between serves no better. */
static void note_answer(struct broker *b)
{
	int64_t *answers = b->session.answers_ns;

	if (answers[0] != INT64_MIN && b->now_ns - answers[0] < b->conf->tick_ns / SESSION_ANSWERS)
		return;
	memmove(answers + 1, answers, (SESSION_ANSWERS - 1) * sizeof(*answers));
	answers[0] = b->now_ns;
}

int64_t session_older_answer(const struct broker *b)
{
	const int64_t *answers = b->session.answers_ns;

	for (size_t i = 0; i < SESSION_ANSWERS; i++)
		if (answers[i] != INT64_MIN && answers[i] <= b->now_ns - b->conf->tick_ns / 2)
			return answers[i];
	return INT64_MIN;
}

static int by_age(const void *a, const void *b)
{
	const struct lock *x = *(struct lock *const *)a, *y = *(struct lock *const *)b;

	return (x->verified_ns > y->verified_ns) - (x->verified_ns < y->verified_ns);
}

/* A connection that ends before all was found out is no loss: the next one goes on with what was not. */
static void queue_recovery(struct broker *b)
{
	struct lock *lock, **locks;
	size_t count = 0;

	TAILQ_FOREACH(lock, &b->locks_used, link) {
		lock_touch(lock);
		if (!TAILQ_EMPTY(&lock->leaving))
			turn_wait(lock, TURN_DELETE);
		count += lock->claim_count || lock->observation.count;
	}
	locks = mem_new((count + 1) * sizeof(struct lock *));
	count = 0;
	TAILQ_FOREACH(lock, &b->locks_used, link)
		if (lock->claim_count || lock->observation.count)
			locks[count++] = lock;
	qsort(locks, count, sizeof(struct lock *), by_age);
	for (size_t i = 0; i < count; i++)
		turn_wait(locks[i], TURN_RECOVER);
	mem_free(locks);
}

/* The servers' minSessionTimeout and maxSessionTimeout bound what is asked for. */
static void log_timeout(struct broker *b)
{
	struct bytes *out = &b->out->arena;
	size_t begin;

	if (b->session.timeout_ns == b->conf->session_timeout_ns)
		return;
	begin = broker_log_begin(b);
	bytes_text(out, "the servers grant a session timeout of ");
	bytes_int(out, b->session.timeout_ns / 1000000);
	bytes_text(out, " ms, asked for were ");
	bytes_int(out, b->conf->session_timeout_ns / 1000000);
	bytes_text(out, " ms: their minSessionTimeout or maxSessionTimeout, or 2 and 20 of their ticks, bound it");
	broker_log_end(b, level_of(&b->session, EFFECT_LEVEL_WARNING), begin);
}

void session_connected(struct broker *b, const struct event *event)
{
	struct session *s = &b->session;
	int64_t id = event->zk_connected.session;
	bool fresh = s->id != id, other = s->timeout_ns != event->zk_connected.timeout_ns;

	/* Its deadline came first: the handle that says so is discarded. */
	if (s->opening)
		return;
	session_suspended(b);
	if (fresh)
		begin_session(b, id);
	s->timeout_ns = event->zk_connected.timeout_ns;
	s->connected = true;
	s->contact_ns = b->now_ns;
	s->seen_ns = event->zk_connected.asked_ns;
	/* Matters only when the servers grant a shorter T than before: from the handshake on that is what counts. */
	s->safe_until_ns = min64(s->safe_until_ns, s->seen_ns + s->timeout_ns / 50 * 49);
	forget_answers(s);
	operation_begin(b);
	bytes_clear(&s->server);
	bytes_slice(&s->server, event->zk_connected.server);
	log_state(b, level_of(s, EFFECT_LEVEL_INFO),
		  fresh ? "connected to ZooKeeper: new session" : "connected to ZooKeeper again");
	if (fresh || other)
		log_timeout(b);
	if (fresh)
		presence_parents(b);
	/* A list is believed only behind an answered write of its connection: recovery begins with that answer. */
	presence_beat(b);
	queue_recovery(b);
	inbox_connected(b);
	update(b);
	arm(b);
}

/*
 * Two that use one session take the connection from each other again and again. What is proven stays so: whoever it is
 * keeps the session alive, unless he ends it.
 */
static void suspect_sharing(struct broker *b)
{
	struct session *s = &b->session;

	if (b->now_ns - s->contact_ns >= SHORT_LIFE_NS)
		s->short_lives = 0;
	else if (++s->short_lives >= SHORT_LIVES && b->now_ns >= s->shared_ns) {
		s->shared_ns = b->now_ns + SHARED_AGAIN_NS;
		log_state(b, EFFECT_LEVEL_WARNING, "connections to ZooKeeper end as soon as they are made: somebody else may "
						   "be using this session, or something between cuts them");
	}
}

void session_suspended(struct broker *b)
{
	struct session *s = &b->session;
	enum effect_level level;

	if (!s->connected)
		return;
	suspect_sharing(b);
	level = level_of(s, EFFECT_LEVEL_WARNING);
	s->fruitless = !s->proving;
	disconnect(b);
	log_state(b, level, "connection to ZooKeeper lost");
	update(b);
	arm(b);
}

static void touch_waiting(struct broker *b)
{
	struct lock *lock;

	TAILQ_FOREACH(lock, &b->locks_used, link)
		if (lock->request_count)
			lock_touch(lock);
}

static void prove(struct broker *b, const struct operation *op)
{
	struct session *s = &b->session;
	int64_t until = min64(op->flight.sent_ns + s->timeout_ns / 3 * 2, op->seen_ns + s->timeout_ns / 50 * 49);

	s->stalled = false;
	s->proved_ns = b->now_ns;
	if (until > s->safe_until_ns)
		s->safe_until_ns = until;
	if (until > s->told_ns)
		s->told_ns = until;
	if ((s->state == SESSION_NONE || s->state == SESSION_LOST) && s->safe_until_ns > b->now_ns) {
		enter(b, SESSION_SAFE);
		arm(b);
	}
	update(b);
}

void session_proved(struct broker *b, const struct operation *op)
{
	struct session *s = &b->session;
	bool granted = session_grants(b);

	s->proving = true;
	trouble_proved(b);
	if (s->fruitless) {
		s->fruitless = false;
		log_state(b, EFFECT_LEVEL_INFO, "ZooKeeper answers again");
	}
	if (op->flight.sent_ns > s->beat_ns)
		s->beat_ns = op->flight.sent_ns;
	note_answer(b);
	if (op->older_ns > s->seen_ns)
		s->seen_ns = op->older_ns;
	if (b->now_ns - op->flight.sent_ns > s->timeout_ns / ANSWER_PART)
		b->stats.late_writes_total++;
	else if (op->flight.sent_ns >= s->stalled_until_ns)
		prove(b, op);
	if (!granted && session_grants(b))
		touch_waiting(b);
}

void session_refused(struct broker *b, const struct operation *op)
{
	struct session *s = &b->session;

	if (s->write_ns > op->flight.sent_ns)
		return;
	s->write_ns = s->beat_ns;
	arm(b);
}

void session_pass(struct broker *b, int64_t before_ns)
{
	struct session *s = &b->session;

	s->opening = false;
	if (b->conf->standalone)
		return;
	/* Also before there is a session: the answer to its handshake may have waited all that time. */
	if (b->now_ns - before_ns > s->timeout_ns / STALL_PART) {
		s->stalled = true;
		s->stalled_until_ns = b->now_ns + b->conf->tick_ns;
		b->stats.stalls_total++;
		log_state(b, EFFECT_LEVEL_WARNING, "the daemon stood still: nothing is granted until the session is proven");
		arm(b);
	}
	update(b);
}

/* Less and less often: the state can be read from INFO, and an outage may last. */
static void complain(struct broker *b)
{
	struct session *s = &b->session;
	int64_t silent_ns = b->now_ns - s->silent_ns;
	size_t begin;

	if (b->now_ns < s->complain_ns)
		return;
	s->complain_ns = b->now_ns + (silent_ns < COMPLAIN_FIRST_NS ? COMPLAIN_FIRST_NS : silent_ns);
	begin = broker_log_begin(b);
	bytes_text(&b->out->arena, "no ZooKeeper server can be reached for ");
	bytes_int(&b->out->arena, silent_ns / 1000000000);
	bytes_text(&b->out->arena, " s: trying on");
	if (b->trouble.sentence.len) {
		bytes_text(&b->out->arena, "; ");
		bytes_slice(&b->out->arena, bytes_view(&b->trouble.sentence));
	}
	broker_log_end(b, EFFECT_LEVEL_WARNING, begin);
}

static void tick_connected(struct broker *b)
{
	struct session *s = &b->session;
	int64_t silent_ns = operation_silent_since(b);

	if (silent_ns != INT64_MAX && b->now_ns - silent_ns >= s->timeout_ns / ANSWER_PART) {
		b->stats.drops_total++;
		log_state(b, EFFECT_LEVEL_WARNING, "ZooKeeper server is silent: trying the next one");
		effects_add(b->out, EFFECT_ZK_DROP);
		session_suspended(b);
		return;
	}
	if (b->now_ns - s->write_ns >= s->timeout_ns / BEAT_PART ||
	    b->now_ns - s->announced_ns >= s->timeout_ns / ANNOUNCE_PART ||
	    (s->stalled && b->now_ns >= s->stalled_until_ns && s->write_ns < s->stalled_until_ns))
		presence_beat(b);
}

void session_tick(struct broker *b)
{
	struct session *s = &b->session;

	update(b);
	if (s->connected) {
		tick_connected(b);
	} else {
		complain(b);
		if (s->id && b->now_ns - s->contact_ns > s->timeout_ns + GIVE_UP_TICKS * b->conf->tick_ns)
			session_open(b);
	}
	arm(b);
}
