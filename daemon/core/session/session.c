/* SPDX-License-Identifier: Apache-2.0 */
#include "core/session/session.h"

#include "base/cold.h"
#include "base/minmax.h"
#include "core/session/ensemble.h"

enum {
	/* As parts of T. The heartbeat's is a little under the T/6 the proof asks for: a timer may fire late. */
	BEAT_PART = 8,
	/* When answers take so long that jeopardy is nearer than one may take, the next is not waited for as long. */
	HASTY_BEAT_PART = 16,
	/* Lock traffic proves as well as a heartbeat, but only the heartbeat shows others of our name that we live. */
	ANNOUNCE_PART = 4,
	SAFE_PART = 3,
	STALL_PART = 3,
	SHORT_LIVES = 5,
};

/* Something else ends connections that last less than this, one after the other. */
static const int64_t SHORT_LIFE_NS = 1000000000;
static const int64_t SHARED_AGAIN_NS = 600000000000;

/* Without a connection for so long is worth a line of the log. */
static const int64_t COMPLAIN_FIRST_NS = 5000000000;

const char *session_state_word(enum session_state state)
{
	static const char *const words[] = {
		[SESSION_NONE] = "none",
		[SESSION_SAFE] = "safe",
		[SESSION_JEOPARDY] = "jeopardy",
		[SESSION_LOST] = "lost",
	};

	return words[state];
}

static void begin_silence(struct ensemble *zk)
{
	zk->session.silent_ns = zk->env->now_ns;
	zk->session.complain_ns = zk->env->now_ns + COMPLAIN_FIRST_NS;
}

void session_init(struct ensemble *zk)
{
	struct session *s = &zk->session;

	budget_limits(zk->env, &zk->budget);
	s->timer.kind = TIMER_SESSION;
	s->state = zk->env->conf->standalone ? SESSION_SAFE : SESSION_NONE;
	proof_init(&s->proof);
	s->timeout_ns = zk->env->conf->session_timeout_ns;
	begin_silence(zk);
	formers_init(zk);
	presence_init(zk);
}

void session_deinit(struct ensemble *zk)
{
	heap_unset(&zk->env->timers, &zk->session.timer);
	heap_unset(&zk->env->timers, &zk->formers.timer);
	bytes_free(&zk->session.server);
	bytes_free(&zk->presence.path);
	bytes_free(&zk->presence.other);
	health_deinit(&zk->health);
	operation_deinit(&zk->operations);
}

int64_t session_safe_until(const struct ensemble *zk)
{
	const struct session *s = &zk->session;

	if (zk->env->conf->standalone)
		return INT64_MAX;
	return s->state == SESSION_SAFE || s->state == SESSION_JEOPARDY ? s->proof.safe_until_ns : INT64_MIN;
}

void session_view(const struct ensemble *zk, struct session_view *ret)
{
	int64_t until = session_safe_until(zk);

	*ret = (struct session_view){ .epoch = zk->session.epoch,
				      .state = zk->session.state,
				      .safe_until_ns = until == INT64_MIN ? 0 : until };
}

bool session_reaches(const struct ensemble *zk)
{
	const struct session *s = &zk->session;

	return s->connected || (s->moving && s->state == SESSION_SAFE);
}

bool session_grants(const struct ensemble *zk)
{
	const struct session *s = &zk->session;

	if (zk->env->conf->standalone)
		return true;
	if (s->proof.stalled || !past_looked(zk) || (s->state != SESSION_SAFE && s->state != SESSION_JEOPARDY))
		return false;
	return zk->env->now_ns + zk->env->conf->grant_min_ns < session_safe_until(zk);
}

/* When the next heartbeat is due, unless another write is sent before. */
static int64_t beat_due(const struct session *s)
{
	int64_t T = s->timeout_ns, due = s->write_ns + T / BEAT_PART;

	if (s->state != SESSION_SAFE)
		return due;
	return min64(due, max64(s->write_ns + T / HASTY_BEAT_PART,
				s->proof.safe_until_ns - T / SAFE_PART - T / PROOF_ANSWER_PART));
}

/* The next instant at which time alone changes something. Later writes and proofs only move it further away. */
static void arm(struct ensemble *zk)
{
	struct session *s = &zk->session;
	int64_t T = s->timeout_ns, due = zk->env->now_ns + T / PROOF_ANSWER_PART, silent_ns = operation_silent_since(zk);

	if (zk->env->conf->standalone)
		return;
	if (s->connected) {
		due = min64(due, beat_due(s));
		due = min64(due, s->announced_ns + T / ANNOUNCE_PART);
		if (silent_ns != INT64_MAX)
			due = min64(due, silent_ns + T / PROOF_ANSWER_PART);
		if (s->proof.stalled && s->proof.stalled_until_ns > zk->env->now_ns)
			due = min64(due, s->proof.stalled_until_ns);
	} else if (s->id) {
		due = min64(due, s->contact_ns + T);
	}
	if (s->state == SESSION_SAFE)
		due = min64(due, s->proof.safe_until_ns - T / SAFE_PART + 1);
	if (s->state == SESSION_SAFE || s->state == SESSION_JEOPARDY)
		due = min64(due, s->proof.safe_until_ns);
	heap_set(&zk->env->timers, &s->timer, due);
}

#define log_state(zk, level, event, text) \
	effects_say((zk)->env->out, level, event, EFFECT_FIELDS("session_epoch=%d", (zk)->session.epoch), "%s", text)

/* Kept apart, because it says what it costs. */
static void log_lost(struct ensemble *zk)
{
	const struct session *s = &zk->session;
	int64_t proved_ms = s->proved_ns ? (zk->env->now_ns - s->proved_ns) / 1000000 : 0;

	effects_say(zk->env->out, EFFECT_LEVEL_ERROR, session_lost,
		    EFFECT_FIELDS("session_epoch=%d unproven_ms=%d", s->epoch, proved_ms),
		    "session lost: every grant is void");
}

/* Connections that prove nothing may come and go for as long as it takes somebody to read the first lines. */
static enum effect_level level_of(const struct session *s, enum effect_level level)
{
	return s->fruitless && !s->proving ? EFFECT_LEVEL_DEBUG : level;
}

static unsigned int enter(struct ensemble *zk, enum session_state state)
{
	struct session *s = &zk->session;
	enum session_state was = s->state;

	if (was == state)
		return 0;
	s->state = state;
	switch (state) {
	case SESSION_NONE:
		break;
	case SESSION_SAFE:
		log_state(zk, EFFECT_LEVEL_INFO, session_safe,
			  was == SESSION_JEOPARDY ? "session safe again" : "session safe");
		break;
	case SESSION_JEOPARDY:
		zk->env->stats.jeopardies_total++;
		log_state(zk, EFFECT_LEVEL_WARNING, session_jeopardy,
			  "session in jeopardy: nothing proves that it lives");
		break;
	case SESSION_LOST:
		zk->env->stats.sessions_lost_total++;
		s->epoch++;
		log_lost(zk);
		break;
	}
	if (state == SESSION_NONE || state == SESSION_LOST)
		ledger_state(zk->env->ledger, s->epoch, false);
	return SESSION_CHANGED;
}

static unsigned int update(struct ensemble *zk)
{
	struct session *s = &zk->session;

	if (zk->env->conf->standalone || s->state == SESSION_NONE || s->state == SESSION_LOST)
		return 0;
	if (zk->env->now_ns >= s->proof.safe_until_ns)
		return enter(zk, SESSION_LOST);
	if ((s->connected || s->moving) && s->proof.safe_until_ns - zk->env->now_ns >= s->timeout_ns / SAFE_PART)
		return enter(zk, SESSION_SAFE);
	return enter(zk, SESSION_JEOPARDY);
}

unsigned int session_review(struct ensemble *zk)
{
	unsigned int changes = update(zk);

	arm(zk);
	return changes;
}

void session_disconnect(struct ensemble *zk)
{
	struct session *s = &zk->session;

	s->connected = false;
	s->proving = false;
	s->contact_ns = zk->env->now_ns;
	begin_silence(zk);
	window_begin(&zk->operations.window, zk->env->now_ns);
	zk->env->stats.suspensions_total++;
}

unsigned int session_lose(struct ensemble *zk)
{
	const struct session *s = &zk->session;

	return s->state == SESSION_SAFE || s->state == SESSION_JEOPARDY ? enter(zk, SESSION_LOST) : 0;
}

static void clear(struct session *s)
{
	s->id = 0;
	proof_forget(&s->proof);
	s->announced = false;
}

/*
 * No daemon uses the old session any longer, and it may still be alive: servers that were restarted give it its whole
 * timeout again. Even a session that a server calls expired is looked at, which costs one connection.
 */
void session_open(struct ensemble *zk)
{
	struct session *s = &zk->session;

	if (s->id)
		former_add(zk, s->id, s->proof.told_ns);
	clear(s);
	s->contact_ns = zk->env->now_ns;
	s->opening = true;
	effects_add(zk->env->out, EFFECT_ZK_OPEN);
	arm(zk);
}

bool session_expired(struct ensemble *zk)
{
	if (!zk->session.id)
		return false;
	log_state(zk, level_of(&zk->session, EFFECT_LEVEL_WARNING), session_expired, "session expired by ZooKeeper");
	return true;
}

static void begin_session(struct ensemble *zk, int64_t id)
{
	struct session *s = &zk->session;

	clear(s);
	s->had_one = true;
	zk->env->stats.sessions_total++;
	s->id = id;
	ledger_session(zk->env->ledger, id);
	past_session(zk);
	enter(zk, SESSION_NONE);
}

/* The servers' minSessionTimeout and maxSessionTimeout bound what is asked for. */
static void log_timeout(struct ensemble *zk)
{
	if (zk->session.timeout_ns != zk->env->conf->session_timeout_ns)
		effects_say(
			zk->env->out, level_of(&zk->session, EFFECT_LEVEL_WARNING), session_timeout,
			EFFECT_FIELDS("timeout_ms=%d wanted_ms=%d", zk->session.timeout_ns / 1000000,
				      zk->env->conf->session_timeout_ns / 1000000),
			"the servers grant a session timeout of %d ms, not %d ms as configured: their minSessionTimeout or "
			"maxSessionTimeout, or 2 and 20 of their ticks, limit it",
			zk->session.timeout_ns / 1000000, zk->env->conf->session_timeout_ns / 1000000);
}

void session_connected(struct ensemble *zk, const struct event *event)
{
	struct session *s = &zk->session;
	int64_t id = event->zk_connected.session;
	bool fresh = s->id != id, other = s->timeout_ns != event->zk_connected.timeout_ns;

	if (fresh)
		begin_session(zk, id);
	s->timeout_ns = event->zk_connected.timeout_ns;
	s->connected = true;
	past_connected(zk);
	s->moving = false;
	s->contact_ns = zk->env->now_ns;
	proof_connected(&s->proof, event->zk_connected.asked_ns, s->timeout_ns);
	window_begin(&zk->operations.window, zk->env->now_ns);
	bytes_set(&s->server, event->zk_connected.server);
	effects_say(zk->env->out, level_of(s, EFFECT_LEVEL_INFO), zookeeper_connected,
		    EFFECT_FIELDS("server=%v session_epoch=%d new=%d", bytes_view(&s->server), s->epoch, fresh), "%s",
		    fresh ? "connected to ZooKeeper: new session" : "connected to ZooKeeper again");
	if (fresh || other)
		log_timeout(zk);
	if (fresh)
		presence_above(zk, bytes_view(&zk->presence.path));
	/* A list is believed only behind an answered write of its connection: recovery begins with that answer. */
	presence_beat(zk);
}

/*
 * Two that use one session take the connection from each other again and again. What is proven stays so: whichever
 * daemon has the connection keeps the session alive, unless it ends it.
 */
static void suspect_sharing(struct ensemble *zk)
{
	struct session *s = &zk->session;

	if (zk->env->now_ns - s->contact_ns >= SHORT_LIFE_NS)
		s->short_lives = 0;
	else if (++s->short_lives >= SHORT_LIVES && zk->env->now_ns >= s->shared_ns) {
		s->shared_ns = zk->env->now_ns + SHARED_AGAIN_NS;
		log_state(zk, EFFECT_LEVEL_WARNING, session_shared,
			  "connections to ZooKeeper end as soon as they are made: "
			  "somebody else may be using this session, or something between cuts them");
	}
}

enum effect_level session_ending(struct ensemble *zk, bool planned)
{
	struct session *s = &zk->session;
	enum effect_level level;

	s->moving = planned;
	if (planned)
		return EFFECT_LEVEL_DEBUG;
	suspect_sharing(zk);
	level = level_of(s, EFFECT_LEVEL_WARNING);
	s->fruitless = !s->proving;
	return level;
}

unsigned int session_suspended(struct ensemble *zk, enum effect_level level)
{
	log_state(zk, level, zookeeper_lost, "connection to ZooKeeper lost");
	return session_review(zk);
}

static unsigned int prove(struct ensemble *zk)
{
	struct session *s = &zk->session;
	unsigned int changes = 0;

	s->proved_ns = zk->env->now_ns;
	if ((s->state == SESSION_NONE || s->state == SESSION_LOST) && s->proof.safe_until_ns > zk->env->now_ns) {
		changes = enter(zk, SESSION_SAFE);
		arm(zk);
	}
	return changes | update(zk);
}

unsigned int session_proved(struct ensemble *zk, const struct operation *op)
{
	struct session *s = &zk->session;
	bool granted = session_grants(zk);
	unsigned int changes = 0;

	s->proving = true;
	health_proved(zk);
	if (s->fruitless) {
		s->fruitless = false;
		log_state(zk, EFFECT_LEVEL_INFO, zookeeper_answers, "ZooKeeper answers again");
	}
	if (op->flight.sent_ns > s->beat_ns)
		s->beat_ns = op->flight.sent_ns;
	switch (proof_answered(&s->proof, &op->write, zk->env->now_ns, s->timeout_ns, zk->env->conf->tick_ns)) {
	case PROOF_LATE:
		zk->env->stats.late_writes_total++;
		break;
	case PROOF_VOID:
		break;
	case PROOF_MADE:
		changes = prove(zk);
		break;
	}
	return changes | (!granted && session_grants(zk) ? SESSION_GRANTS : 0);
}

void session_refused(struct ensemble *zk, const struct operation *op)
{
	struct session *s = &zk->session;

	if (s->write_ns > op->flight.sent_ns)
		return;
	s->write_ns = s->beat_ns;
	arm(zk);
}

static COLD void session_stalled(struct ensemble *zk, int64_t stood_ns)
{
	proof_stalled(&zk->session.proof, zk->env->now_ns, zk->env->conf->tick_ns);
	zk->env->stats.stalls_total++;
	effects_say(zk->env->out, EFFECT_LEVEL_WARNING, stalled, EFFECT_FIELDS("stood_ms=%d", stood_ns / 1000000),
		    "the daemon did not run for a while: nothing is granted until the session is proven again");
	arm(zk);
}

unsigned int session_pass(struct ensemble *zk, int64_t before_ns)
{
	struct session *s = &zk->session;

	if (zk->env->conf->standalone)
		return 0;
	if (s->opening)
		s->opening = false;
	/* Also before there is a session: the answer to its handshake may have waited all that time. */
	if (zk->env->now_ns - before_ns > s->timeout_ns / STALL_PART)
		session_stalled(zk, zk->env->now_ns - before_ns);
	return update(zk);
}

/* Less and less often: the state can be read from INFO, and an outage may last. */
static void complain(struct ensemble *zk)
{
	struct session *s = &zk->session;
	int64_t silent_ns = zk->env->now_ns - s->silent_ns;

	if (zk->env->now_ns < s->complain_ns)
		return;
	s->complain_ns = zk->env->now_ns + (silent_ns < COMPLAIN_FIRST_NS ? COMPLAIN_FIRST_NS : silent_ns);
	effects_say(zk->env->out, EFFECT_LEVEL_WARNING, zookeeper_unreachable,
		    EFFECT_FIELDS("after_s=%d", silent_ns / 1000000000),
		    "no ZooKeeper server reachable for %d s; still trying%s%s", silent_ns / 1000000000,
		    zk->health.sentence.len ? "; " : "", bytes_view(&zk->health.sentence));
}

static unsigned int tick_connected(struct ensemble *zk)
{
	struct session *s = &zk->session;
	int64_t silent_ns = operation_silent_since(zk);

	if (silent_ns != INT64_MAX && zk->env->now_ns - silent_ns >= s->timeout_ns / PROOF_ANSWER_PART) {
		zk->env->stats.drops_total++;
		log_state(zk, EFFECT_LEVEL_WARNING, zookeeper_silent,
			  "the ZooKeeper server does not answer: trying the next one");
		effects_add(zk->env->out, EFFECT_ZK_DROP);
		return SESSION_DROPPED;
	}
	if (zk->env->now_ns >= beat_due(s) ||
	    zk->env->now_ns - s->announced_ns >= s->timeout_ns / ANNOUNCE_PART ||
	    (s->proof.stalled && zk->env->now_ns >= s->proof.stalled_until_ns && s->write_ns < s->proof.stalled_until_ns))
		presence_beat(zk);
	health_tick(zk);
	return 0;
}

static unsigned int tick_alone(struct ensemble *zk)
{
	const struct session *s = &zk->session;

	complain(zk);
	return s->id && zk->env->now_ns - s->contact_ns >= s->timeout_ns ? SESSION_OVER : 0;
}

unsigned int session_tick(struct ensemble *zk)
{
	unsigned int changes = update(zk);

	changes |= zk->session.connected ? tick_connected(zk) : tick_alone(zk);
	arm(zk);
	return changes;
}
