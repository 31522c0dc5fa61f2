/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Until when the session certainly lives, from the instants at which writes were sent and answered. T is the session's
 * timeout.
 *
 * Only an answered write proves anything: it went through the leader. Each one, sent at t (taken before the call),
 * answered within T/6 and, after a standstill, sent at least a tick later, moves
 *
 *     safe_until = max(safe_until, min(t + 2/3 T, seen + 49/50 T))
 *
 * `seen` is an instant at or after which the leader saw us, if this write is answered: a write was answered then, at least
 * half a tick later a second one was sent, and its answer came before this write was sent. A connection begins with the
 * instant of its handshake. docs/design/session.md shows why that is enough.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum {
	PROOF_ANSWERS = 8,
	PROOF_ANSWER_PART = 6, /* of T: an answer that takes longer proves nothing */
};

struct proof {
	int64_t safe_until_ns;    /* INT64_MIN: nothing is proven */
	int64_t told_ns;          /* the last instant that can have been reported to holders; INT64_MIN: none */
	int64_t seen_ns;          /* `seen` of a write that is sent now */
	int64_t answers_ns[PROOF_ANSWERS]; /* when writes were answered, on this connection; the latest first */
	bool stalled;             /* the daemon stood still, and no write sent since then was answered */
	int64_t stalled_until_ns; /* a write sent before proves nothing */
};

/* A write, as it was sent: `seen` of then, and the answer that it will make so for later ones. */
struct proof_write {
	int64_t sent_ns, seen_ns, older_ns;
};

enum proof_result {
	PROOF_LATE, /* it took too long */
	PROOF_VOID, /* it was sent too soon after a standstill */
	PROOF_MADE,
};

void proof_init(struct proof *p);
/* The session is over. */
void proof_forget(struct proof *p);
/* A connection whose handshake was sent at that instant. */
void proof_connected(struct proof *p, int64_t asked_ns, int64_t timeout_ns);
void proof_stalled(struct proof *p, int64_t now_ns, int64_t tick_ns);
struct proof_write proof_sent(const struct proof *p, int64_t now_ns, int64_t tick_ns);
/* It was answered, having gone through the leader. */
enum proof_result proof_answered(struct proof *p, const struct proof_write *w, int64_t now_ns, int64_t timeout_ns,
				 int64_t tick_ns);
