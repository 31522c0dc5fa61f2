/* SPDX-License-Identifier: Apache-2.0 */
#include "core/session/health.h"

#include "core/session/ensemble.h"

static const int64_t NS_PER_MS = 1000000;
static const int64_t SAY_AGAIN_NS = 60000000000;

static void clear(struct health *h)
{
	h->trouble = TROUBLE_NONE;
	bytes_clear(&h->sentence);
}

static void begin(struct ensemble *zk, enum health_trouble trouble)
{
	struct health *h = &zk->health;

	clear(h);
	h->trouble = trouble;
	h->at_ns = zk->env->now_ns;
}

void health_trouble(struct ensemble *zk, const struct event *event)
{
	begin(zk, event->zk_trouble.refused ? TROUBLE_REFUSED : TROUBLE_UNREACHABLE);
	bytes_slice(&zk->health.sentence, event->zk_trouble.sentence);
}

static void denied(struct ensemble *zk, enum operation_kind kind, struct slice path, struct slice reason)
{
	static const char *const words[] = {
#define X(name, owner, text) [OPERATION_##name] = (text),
		OPERATION_KINDS(X)
#undef X
	};
	struct health *h = &zk->health;

	begin(zk, TROUBLE_DENIED);
	h->denied = kind;
	bytes_format(&h->sentence, "ZooKeeper refuses to %s%s%s: %s", words[kind], path.len ? " " : "", path, reason);
	if (h->said_ns[kind] && zk->env->now_ns - h->said_ns[kind] < SAY_AGAIN_NS)
		return;
	h->said_ns[kind] = zk->env->now_ns;
	effects_say(zk->env->out, EFFECT_LEVEL_ERROR, zookeeper_refuses,
		    EFFECT_FIELDS("operation=%v path=%v error=%v", words[kind], path, reason), "%s",
		    bytes_view(&h->sentence));
}

/* Making parents that exist may be refused where everything else is allowed. */
static bool cures(enum operation_kind kind, enum operation_kind trouble)
{
	return kind == trouble || (kind == OPERATION_BEAT && trouble == OPERATION_PATH);
}

void health_answered(struct ensemble *zk, enum operation_kind kind, struct slice path, const struct event *event)
{
	struct health *h = &zk->health;

	if (event->zk_answered.code == ZK_REFUSED) {
		denied(zk, kind, path, event->zk_answered.data);
	} else if (event->zk_answered.code == ZK_OK && h->trouble == TROUBLE_DENIED && cures(kind, h->denied)) {
		h->said_ns[h->denied] = 0;
		clear(h);
	}
}

void health_proved(struct ensemble *zk)
{
	if (zk->health.trouble == TROUBLE_UNREACHABLE || zk->health.trouble == TROUBLE_REFUSED)
		clear(&zk->health);
}

/* ---- what INFO says ---- */

static int64_t ms_of(int64_t ns)
{
	return ns > 0 ? ns / NS_PER_MS : 0;
}

static void why_nothing(const struct ensemble *zk, struct bytes *out)
{
	const struct session *s = &zk->session;

	if (s->had_one && s->connected)
		bytes_text(out, "connected; no write was answered yet");
	else
		bytes_format(out, "%s for %d ms", s->had_one ? "a new session, and no connection" : "never connected; trying",
			     ms_of(zk->env->now_ns - s->silent_ns));
}

static void why_lost(const struct ensemble *zk, struct bytes *out)
{
	const struct session *s = &zk->session;

	bytes_format(out, "last proof %d ms ago; every grant made before is void; %s", ms_of(zk->env->now_ns - s->proved_ns),
		     !s->id	  ? "a new session is asked for"
		     : s->connected ? "a write is waited for"
				    : "no connection");
}

void health_why(const struct ensemble *zk, struct bytes *out)
{
	const struct session *s = &zk->session;

	if (zk->env->conf->standalone) {
		bytes_text(out, "standalone: nothing has to be proven");
		return;
	}
	if (s->proof.stalled)
		bytes_text(out, "the daemon stood still: nothing is granted until a write is answered; ");
	switch (s->state) {
	case SESSION_NONE:
		why_nothing(zk, out);
		break;
	case SESSION_SAFE:
	case SESSION_JEOPARDY:
		bytes_format(out, "last proof %d ms ago", ms_of(zk->env->now_ns - s->proved_ns));
		if (s->state == SESSION_JEOPARDY)
			bytes_format(out, "%s; lost in %d ms unless a write is answered", s->connected ? "" : "; not connected",
				     ms_of(s->proof.safe_until_ns - zk->env->now_ns));
		break;
	case SESSION_LOST:
		why_lost(zk, out);
		break;
	}
}

const char *health_word(const struct ensemble *zk)
{
	if (zk->session.connected && zk->session.proving)
		return "connected";
	return zk->health.trouble == TROUBLE_REFUSED || zk->health.trouble == TROUBLE_DENIED ? "refused" : "connecting";
}
