/* SPDX-License-Identifier: Apache-2.0 */
#include "core/session/proof.h"

#include <string.h>

#include "base/minmax.h"

void proof_forget(struct proof *p)
{
	p->safe_until_ns = p->told_ns = INT64_MIN;
}

void proof_init(struct proof *p)
{
	proof_forget(p);
	p->stalled_until_ns = INT64_MIN;
}

void proof_connected(struct proof *p, int64_t asked_ns, int64_t timeout_ns)
{
	p->seen_ns = asked_ns;
	/* Matters only when the servers grant a shorter T than before: from the handshake on that is what counts. */
	p->safe_until_ns = min64(p->safe_until_ns, p->seen_ns + timeout_ns / 50 * 49);
	for (size_t i = 0; i < PROOF_ANSWERS; i++)
		p->answers_ns[i] = INT64_MIN;
}

void proof_stalled(struct proof *p, int64_t now_ns, int64_t tick_ns)
{
	p->stalled = true;
	p->stalled_until_ns = now_ns + tick_ns;
}

/* The latest instant at least half a tick ago at which a write was answered; INT64_MIN: none. */
static int64_t older_answer(const struct proof *p, int64_t now_ns, int64_t tick_ns)
{
	for (size_t i = 0; i < PROOF_ANSWERS; i++)
		if (p->answers_ns[i] != INT64_MIN && p->answers_ns[i] <= now_ns - tick_ns / 2)
			return p->answers_ns[i];
	return INT64_MIN;
}

struct proof_write proof_sent(const struct proof *p, int64_t now_ns, int64_t tick_ns)
{
	return (struct proof_write){ now_ns, p->seen_ns, older_answer(p, now_ns, tick_ns) };
}

/* They are told apart by an eighth of a tick: what lies between serves no better. */
static void note_answer(struct proof *p, int64_t now_ns, int64_t tick_ns)
{
	if (p->answers_ns[0] != INT64_MIN && now_ns - p->answers_ns[0] < tick_ns / PROOF_ANSWERS)
		return;
	memmove(p->answers_ns + 1, p->answers_ns, (PROOF_ANSWERS - 1) * sizeof(*p->answers_ns));
	p->answers_ns[0] = now_ns;
}

enum proof_result proof_answered(struct proof *p, const struct proof_write *w, int64_t now_ns, int64_t timeout_ns,
				 int64_t tick_ns)
{
	int64_t until;

	note_answer(p, now_ns, tick_ns);
	p->seen_ns = max64(p->seen_ns, w->older_ns);
	if (now_ns - w->sent_ns > timeout_ns / PROOF_ANSWER_PART)
		return PROOF_LATE;
	if (w->sent_ns < p->stalled_until_ns)
		return PROOF_VOID;
	until = min64(w->sent_ns + timeout_ns / 3 * 2, w->seen_ns + timeout_ns / 50 * 49);
	p->stalled = false;
	p->safe_until_ns = max64(p->safe_until_ns, until);
	p->told_ns = max64(p->told_ns, until);
	return PROOF_MADE;
}
