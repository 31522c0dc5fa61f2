/* SPDX-License-Identifier: Apache-2.0 */
#include "core/session/health.h"

#include "core/session/ensemble.h"

static const int64_t SAY_AGAIN_NS = 60000000000;
static const int64_t REFUSED_NS = 300000000000; /* so long a refusal is shown to monitors */

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

/* ---- whether a lock can be had ---- */

static bool is_needed(enum operation_kind kind)
{
	return kind == OPERATION_BEAT || kind == OPERATION_JOIN || kind == OPERATION_LIST || kind == OPERATION_DIR_MAKE ||
	       kind == OPERATION_DIR_GET || kind == OPERATION_SEMAPHORE_GET || kind == OPERATION_SEMAPHORE_WRITE;
}

/* The znode goes with its delete or with that of the next try, or at the latest with the session. */
void health_tick(struct ensemble *zk)
{
	struct operation_request r = { .op.kind = OPERATION_TRY, .create = ZK_EPHEMERAL };
	struct health *h = &zk->health;
	struct bytes path = { 0 };

	if ((!h->doubtful && !h->barred.len) || (h->tried_ns && zk->env->now_ns - h->tried_ns < zk->session.timeout_ns))
		return;
	h->doubtful = false;
	h->tried_ns = zk->env->now_ns;
	bytes_format(&path, "%s/.try_%s", zk->env->conf->root, zk->env->conf->host);
	r.path = bytes_view(&path);
	operation_send(zk, EFFECT_ZK_CREATE, &r);
	r.op.kind = OPERATION_TRY_END;
	operation_send(zk, EFFECT_ZK_DELETE, &r);
	bytes_free(&path);
}

static void needed(struct ensemble *zk, struct slice path)
{
	struct health *h = &zk->health;
	struct slice sentence = bytes_view(&h->sentence);
	const char *at = path.len ? memmem(sentence.data, sentence.len, path.data, path.len) : NULL;

	bytes_set(&h->refused, sentence);
	bytes_char(&h->refused, '\0');
	h->path = at ? (struct slice){ h->refused.data + (at - sentence.data), path.len } : (struct slice){ 0 };
	h->refused_ns = zk->env->now_ns;
	h->doubtful = true;
}

/* A server that is too busy to tell has told nothing. */
static void tried(struct health *h, enum zk_code code)
{
	if (code == ZK_REFUSED) {
		bytes_set(&h->barred, bytes_view(&h->sentence));
		bytes_char(&h->barred, '\0');
	} else if (code == ZK_OK || code == ZK_NODEEXISTS) {
		bytes_clear(&h->barred);
	}
}

bool health_refuses_some(const struct ensemble *zk)
{
	return zk->health.refused.len && zk->env->now_ns - zk->health.refused_ns < REFUSED_NS;
}

const char *health_refusal(const struct ensemble *zk, struct slice path)
{
	const struct health *h = &zk->health;
	size_t len = h->path.len < path.len ? h->path.len : path.len;

	if (h->barred.len)
		return h->barred.data;
	/* A semaphore's directories are below its own. */
	return len && health_refuses_some(zk) && memcmp(h->path.data, path.data, len) == 0 &&
			       (h->path.len == path.len || (h->path.len > len ? h->path : path).data[len] == '/')
		       ? h->refused.data
		       : NULL;
}

void health_deinit(struct health *h)
{
	bytes_free(&h->sentence);
	bytes_free(&h->refused);
	bytes_free(&h->barred);
}

static void count(struct stats *stats, enum zk_cause cause)
{
	uint64_t *const counters[] = {
#define X(word) [ZK_CAUSE_##word] = &stats->refused_##word##_total,
		ZK_CAUSES(X)
#undef X
	};

	++*counters[cause];
}

/* Making parents that exist may be refused where everything else is allowed. */
static bool cures(enum operation_kind kind, enum operation_kind trouble)
{
	return kind == trouble || (kind == OPERATION_BEAT && trouble == OPERATION_PATH);
}

void health_answered(struct ensemble *zk, enum operation_kind kind, struct slice path, const struct event *event)
{
	struct health *h = &zk->health;

	if (zk_refuses(event->zk_answered.code)) {
		count(&zk->env->stats, event->zk_answered.cause);
		denied(zk, kind, path, event->zk_answered.data);
		if (event->zk_answered.code == ZK_REFUSED && is_needed(kind))
			needed(zk, path);
	} else if (event->zk_answered.code == ZK_OK && h->trouble == TROUBLE_DENIED && cures(kind, h->denied)) {
		h->said_ns[h->denied] = 0;
		clear(h);
	}
	if (kind == OPERATION_JOIN && event->zk_answered.code == ZK_OK && slice_eq(path, h->path))
		bytes_clear(&h->refused); /* that name can be had again */
	if (kind == OPERATION_TRY)
		tried(h, event->zk_answered.code);
	/* It may stand there still. The next try deletes it. */
	if (kind == OPERATION_TRY_END && event->zk_answered.code != ZK_OK && event->zk_answered.code != ZK_NONODE)
		h->doubtful = true;
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
