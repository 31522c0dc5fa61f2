/* SPDX-License-Identifier: Apache-2.0 */
/* The steps of D. A step is what it does in one go; a kill may come between any two. */
#include "tests/model/delegation_model.h"

static bool p_uses(const struct model *m, enum model_name name)
{
	bool reads = m->pc == WAITS_LOCK && m->reply == GRANTED;

	return m->connected && m->name == name && m->pc != DEAD && m->pc != IDLE && m->pc != ASKS &&
	       (m->pc != WAITS_LOCK || reads);
}

/* P's grant of that name has ended; the next answer about it says so. */
static void voids(struct model *m, enum model_name name, bool tell)
{
	m->grant[name] = 0;
	m->lost[name] = m->lost[name] || tell;
	if (name == A)
		m->lease = 0;
}

static void ends_slot(struct model *m)
{
	struct delegation_slot slot = model_slot(m);

	delegation_end(&slot);
	model_store(m, &slot);
	m->slot = SLOT_NONE;
	m->slot_name = m->slot_shared = 0;
}

static enum delegation_state recalls(struct model *m)
{
	struct delegation_slot slot = model_slot(m);
	enum delegation_state was = delegation_recall(&slot);

	model_store(m, &slot);
	return was;
}

static enum delegation_state loses(struct model *m)
{
	struct delegation_slot slot = model_slot(m);
	enum delegation_state was = delegation_lose(&slot);

	model_store(m, &slot);
	return was;
}

/* Its session is lost: the grants end with it, and R may have A. */
static void loses_page(struct model *m)
{
	for (uint8_t name = A; name <= B; name++) {
		if (m->grant[name] || (m->slot == SLOT_DELEGATED && m->slot_name == name))
			voids(m, name, m->grant[name] > 0);
		m->ghost[name] = 0;
	}
	m->epoch++;
	m->claim = m->armed = m->r_known = 0;
	if (m->q == Q_HOLDS)
		m->q = Q_IDLE;
}

static void loses_word(const struct model_walk *walk, struct model *m)
{
	bool kept = BROKEN(walk, EPOCH_BY_PARITY) || BROKEN(walk, LOSS_KEEPS_WORD);

	if (m->slot != SLOT_DELEGATED && m->slot != SLOT_RECALLED)
		return;
	if (!kept && loses(m) == DELEGATION_HELD) {
		voids(m, m->slot_name, true);
		m->slot = SLOT_LOST;
	} else {
		m->slot = SLOT_NONE;
		m->slot_name = m->slot_shared = 0;
	}
}

/* It was held: an ordinary grant from now on. */
static void keeps_held(struct model *m)
{
	m->slot = SLOT_RECALLED;
	m->grant[m->slot_name] = 1;
	m->grant_shared[m->slot_name] = m->slot_shared;
}

/* Whether somebody wants what is delegated. */
static bool wanted(const struct model_walk *walk, const struct model *m)
{
	bool reader = m->slot_shared && walk->scope->q_shared;

	if (m->slot != SLOT_DELEGATED)
		return false;
	if (BROKEN(walk, RECALL_NOT_FOR_WRITERS) && m->slot_shared)
		return false;
	return (m->slot_name == A && m->r_known) || (m->q == Q_WAITS && m->q_name == m->slot_name && !reader);
}

/* For who wants it, or for any other reason: idle, limits, a drain. */
static void takes_back(struct model_walk *walk, const struct model *m)
{
	struct model t = *m;
	bool fair = wanted(walk, m);

	if (m->slot != SLOT_DELEGATED)
		return;
	if (BROKEN(walk, LEDGER_FIRST)) {
		t.pending = TO_TAKE;
		t.slot = SLOT_NONE;
	} else if (m->state != DELEGATION_FREE) {
		if (recalls(&t) == DELEGATION_HELD)
			keeps_held(&t);
		else
			t.pending = TO_WRITE_DOWN;
	} else if (BROKEN(walk, TWO_STEPS)) {
		t.pending = TO_STORE;
	} else {
		/* The first half of delegation_recall() of a free one; the second half begins with the same. */
		t.marks |= 1;
		t.pending = TO_STORE;
	}
	walk->to(walk, &t, "D takes it back", fair, NULL);
}

static void goes_on(struct model_walk *walk, const struct model *m)
{
	struct model t = *m;

	t.pending = NOTHING;
	switch ((enum model_pending)m->pending) {
	case TO_STORE:
		if (!BROKEN(walk, TWO_STEPS))
			recalls(&t);
		else
			t.state = t.marks = t.generation = 0;
		t.pending = TO_WRITE_DOWN;
		break;
	case TO_WRITE_DOWN:
		t.slot = SLOT_NONE;
		t.slot_name = t.slot_shared = 0;
		break;
	case TO_TAKE:
		if (recalls(&t) == DELEGATION_HELD)
			keeps_held(&t);
		else
			t.slot_name = t.slot_shared = 0;
		break;
	case TO_LOSE_WORD:
		loses_word(walk, &t);
		break;
	case TO_LOSE_PAGE:
		loses_page(&t);
		break;
	case NOTHING:
		break;
	}
	walk->to(walk, &t, "D goes on", true, NULL);
}

/* The page and the word say so in either order. */
static void loses_session(struct model_walk *walk, const struct model *m)
{
	struct model t = *m;

	loses_page(&t);
	t.pending = TO_LOSE_WORD;
	walk->to(walk, &t, "D loses its session, and says so in the page", true, NULL);
	t = *m;
	loses_word(walk, &t);
	t.pending = TO_LOSE_PAGE;
	walk->to(walk, &t, "D loses its session, and says so in the word", true, NULL);
}

/* Unlike a loss of the session, only the word or an event says so. */
static void forces(struct model_walk *walk, const struct model *m, bool by_lease)
{
	struct model t = *m;
	bool word = m->slot == SLOT_RECALLED && m->slot_name == A;

	if (m->slot == SLOT_DELEGATED && m->slot_name == A) {
		if (BROKEN(walk, NO_LOST_BIT) || (by_lease && BROKEN(walk, LEASE_KEEPS_DELEGATION))) {
			voids(&t, A, m->state == DELEGATION_HELD);
			t.slot = SLOT_NONE;
			t.slot_name = t.slot_shared = 0;
		} else if (loses(&t) == DELEGATION_HELD) {
			voids(&t, A, true);
			t.slot = SLOT_LOST;
		} else {
			t.slot = SLOT_NONE;
			t.slot_name = t.slot_shared = 0;
		}
	} else if (m->grant[A]) {
		voids(&t, A, true);
		if (word && !BROKEN(walk, NO_LOST_BIT)) {
			loses(&t);
			t.slot = SLOT_LOST;
		}
	} else {
		return;
	}
	t.forced += !by_lease;
	if (p_uses(m, A))
		t.void_now = 1;
	t.lease = 0;
	walk->to(walk, &t, by_lease ? "the lease ends" : "D takes A by force", by_lease, NULL);
}

/* ---- what P says ---- */

static void answers(struct model *t, enum model_reply reply)
{
	if (t->said[0].message != LAZY)
		t->reply = (uint8_t)reply;
	if (reply == GRANTED && t->said[0].message == LOCK)
		t->granted_epoch = t->epoch;
	t->said[0] = t->said[1];
	t->said[1] = (struct model_said){ 0 };
}

static void tells_loss(struct model *t, enum model_name name)
{
	t->lost[name] = 0;
	if (t->slot == SLOT_LOST && t->slot_name == name)
		ends_slot(t);
	answers(t, IS_LOST);
}

static void heeds_lock(struct model_walk *walk, const struct model *m)
{
	uint8_t name = m->said[0].name, shared = m->said[0].shared;
	bool twice = BROKEN(walk, SLOT_USED_TWICE), unarmed = BROKEN(walk, DELEGATES_UNARMED);
	bool q_conflicts = m->q_name == name && !(shared && walk->scope->q_shared);
	bool knows = name == B || (m->armed && !m->r_known) || unarmed;
	struct model t = *m;

	if ((m->q != Q_IDLE && q_conflicts) || m->ghost[name] || (name == A && !m->claim)) {
		answers(&t, ENOUGH);
		walk->to(walk, &t, "D answers that it is taken", false, NULL);
		return;
	}
	t.grant[name] = 1;
	t.grant_shared[name] = shared;
	answers(&t, GRANTED);
	walk->to(walk, &t, "D grants P", true, NULL);
	if (m->said[0].with_slot && (m->slot == SLOT_NONE || twice) && knows && m->last < walk->scope->generations) {
		struct delegation_slot slot = model_slot(m);
		const struct delegation_terms terms = {
			.generation = m->last + 1, .epoch = m->epoch, .page_id = { m->incarnation },
		};

		t = *m;
		delegation_grant(&slot, &terms, DELEGATION_HELD);
		model_store(&t, &slot);
		t.last++;
		t.slot = SLOT_DELEGATED;
		t.slot_name = name;
		t.slot_shared = shared;
		answers(&t, GRANTED);
		walk->to(walk, &t, "D delegates to P", true, NULL);
	}
}

static void heeds_again(struct model_walk *walk, const struct model *m)
{
	uint8_t name = m->said[0].name;
	struct model t = *m;

	if (m->slot == SLOT_DELEGATED && m->slot_name == name) {
		bool lease = m->said[0].message == LOCK_AGAIN;

		if (lease && BROKEN(walk, LEASE_KEEPS_DELEGATION)) {
			t.lease = name == A;
			answers(&t, GRANTED);
		} else if (recalls(&t) == DELEGATION_FREE) {
			t.slot = SLOT_NONE;
			t.slot_name = t.slot_shared = 0;
		} else if (BROKEN(walk, HELD_TAKEN_AS_RETURNED)) {
			ends_slot(&t);
		} else {
			keeps_held(&t);
		}
		walk->to(walk, &t, "D takes it back for P's request", true, NULL);
		return;
	}
	if (m->grant[name] == 1) {
		t.grant[name] = 2;
		t.lease = name == A && m->said[0].message == LOCK_AGAIN;
		answers(&t, GRANTED);
		walk->to(walk, &t, "D grants P one level more", true, NULL);
		return;
	}
	heeds_lock(walk, m);
}

static void heeds_unlock(struct model_walk *walk, const struct model *m)
{
	uint8_t name = m->said[0].name;
	struct model t = *m;
	bool hides;

	if (m->slot == SLOT_DELEGATED && m->slot_name == name) {
		ends_slot(&t);
		answers(&t, m->state == DELEGATION_HELD ? GRANTED : NOT_HELD);
	} else if (m->grant[name] > 0) {
		t.grant[name]--;
		if (t.grant[name] == 0 && m->slot == SLOT_RECALLED && m->slot_name == name)
			ends_slot(&t);
		if (t.grant[name] == 0 && name == A)
			t.lease = 0;
		answers(&t, GRANTED);
	} else {
		answers(&t, NOT_HELD);
	}
	hides = t.reply == GRANTED && m->pc == WAITS_UNLOCK && model_void(m);
	walk->to(walk, &t, "D heeds UNLOCK", true, hides ? "an unlock by message says nothing of a loss" : NULL);
}

static void heeds(struct model_walk *walk, const struct model *m)
{
	const struct model_said *said = &m->said[0];
	struct model t = *m;

	if (said->message == NO_MESSAGE)
		return;
	if (m->lost[said->name]) {
		tells_loss(&t, said->name);
		walk->to(walk, &t, "D tells P of the loss", true, NULL);
	} else if (said->message == LOCK || said->message == LOCK_AGAIN) {
		heeds_again(walk, m);
	} else {
		heeds_unlock(walk, m);
	}
}

static void sees_p_dead(struct model_walk *walk, const struct model *m)
{
	struct model t = *m;

	t.said[0] = t.said[1] = (struct model_said){ 0 };
	ends_slot(&t);
	for (uint8_t name = A; name <= B; name++)
		t.grant[name] = t.lost[name] = 0;
	t.lease = t.reply = t.connected = 0;
	walk->to(walk, &t, "D sees P's end", true, NULL);
}

static void serves_others(struct model_walk *walk, const struct model *m)
{
	struct model t = *m;
	bool in_use = m->grant[A] || m->ghost[A] || (m->q == Q_HOLDS && m->q_name == A) ||
		      (m->slot == SLOT_DELEGATED && m->slot_name == A);

	if (m->claim && !m->armed && !(BROKEN(walk, DELEGATES_UNARMED) && m->slot == SLOT_DELEGATED)) {
		t.armed = 1;
		t.r_known = m->r_waits;
		walk->to(walk, &t, "D looks for other hosts", true, NULL);
	}
	t = *m;
	if (m->claim && m->r_known && !in_use) {
		t.claim = t.armed = t.r_known = t.r_waits = 0;
		t.r_holds = 1;
		model_others_had(&t, A);
		walk->to(walk, &t, "D gives the claim back to R", true, NULL);
	}
	t = *m;
	if (m->q == Q_WAITS && (m->q_name == B || m->claim) && !m->ghost[m->q_name]) {
		bool p_has = m->grant[m->q_name] && !(m->grant_shared[m->q_name] && walk->scope->q_shared);
		bool together = m->slot_shared && walk->scope->q_shared;
		bool delegated = m->slot == SLOT_DELEGATED && m->slot_name == m->q_name && !together;

		if (!p_has && !delegated) {
			t.q = Q_HOLDS;
			if (!walk->scope->q_shared)
				model_others_had(&t, m->q_name);
			walk->to(walk, &t, "D grants Q", true, NULL);
		}
	}
}

void model_daemon_steps(struct model_walk *walk, const struct model *m)
{
	if (m->alive != D_WELL)
		return;
	if (m->pending != NOTHING) {
		goes_on(walk, m);
		return;
	}
	/* Deadlines come before everything else. */
	if (m->expired >> m->epoch & 1) {
		loses_session(walk, m);
		return;
	}
	if (m->connected && m->pc == DEAD)
		sees_p_dead(walk, m);
	if (m->connected)
		heeds(walk, m);
	takes_back(walk, m);
	serves_others(walk, m);
	if (walk->scope->force && m->forced < 1)
		forces(walk, m, false);
	if (m->lease)
		forces(walk, m, true);
}
