/* SPDX-License-Identifier: Apache-2.0 */
#include "core/session/status.h"

#include "core/session/ensemble.h"

static const int64_t NS_PER_MS = 1000000;

static void put_ms(struct bytes *out, int64_t ns)
{
	bytes_int(out, ns > 0 ? ns / NS_PER_MS : 0);
	bytes_text(out, " ms");
}

static void why_nothing(const struct ensemble *zk, struct bytes *out)
{
	const struct session *s = &zk->session;

	if (!s->had_one) {
		bytes_text(out, "never connected; trying for ");
		put_ms(out, zk->env->now_ns - s->silent_ns);
	} else if (!s->connected) {
		bytes_text(out, "a new session, and no connection for ");
		put_ms(out, zk->env->now_ns - s->silent_ns);
	} else {
		bytes_text(out, "connected; no write was answered yet");
	}
}

static void why_lost(const struct ensemble *zk, struct bytes *out)
{
	const struct session *s = &zk->session;

	bytes_text(out, "last proof ");
	put_ms(out, zk->env->now_ns - s->proved_ns);
	bytes_text(out, " ago; every grant made before is void; ");
	bytes_text(out, !s->id ? "a new session is asked for" :
			       s->connected ? "a write is waited for" : "no connection");
}

void status_why(const struct ensemble *zk, struct bytes *out)
{
	const struct session *s = &zk->session;

	if (zk->env->conf->standalone) {
		bytes_text(out, "standalone: nothing has to be proven");
		return;
	}
	if (s->stalled)
		bytes_text(out, "the daemon stood still: nothing is granted until a write is answered; ");
	switch (s->state) {
	case SESSION_NONE:
		why_nothing(zk, out);
		break;
	case SESSION_SAFE:
	case SESSION_JEOPARDY:
		bytes_text(out, "last proof ");
		put_ms(out, zk->env->now_ns - s->proved_ns);
		bytes_text(out, " ago");
		if (s->state == SESSION_SAFE)
			break;
		bytes_text(out, s->connected ? "; lost in " : "; not connected; lost in ");
		put_ms(out, s->safe_until_ns - zk->env->now_ns);
		bytes_text(out, " unless a write is answered");
		break;
	case SESSION_LOST:
		why_lost(zk, out);
		break;
	}
}

const char *status_zookeeper_word(const struct ensemble *zk)
{
	if (zk->session.connected && zk->session.proving)
		return "connected";
	return zk->trouble.kind == TROUBLE_REFUSED || zk->trouble.kind == TROUBLE_DENIED ? "refused" : "connecting";
}
