/* SPDX-License-Identifier: Apache-2.0 */
/* The client and the host that want the locks too, time, and how D ends and goes on. */
#include <string.h>

#include "tests/model/delegation_model.h"

struct model model_start(void)
{
	return (struct model){
		.alive = D_WELL, .incarnation = 1, .epoch = 1, .claim = 1, .connected = 1, .page_is_ds = 1, .page = 1,
	};
}

struct delegation_slot model_slot(const struct model *m)
{
	return (struct delegation_slot){
		.word = (uint64_t)m->generation << 16 | (uint64_t)m->marks << 2 | m->state,
		.epoch = m->terms_epoch,
		.page_id = { m->terms_page },
	};
}

void model_store(struct model *m, const struct delegation_slot *slot)
{
	m->state = slot->word & 3;
	m->marks = slot->word >> 2 & 3;
	m->generation = (uint8_t)(slot->word >> 16);
	m->terms_epoch = (uint8_t)slot->epoch;
	m->terms_page = slot->page_id[0];
}

uint8_t model_page_epoch(const struct model *m)
{
	return m->page_is_ds ? m->epoch : m->page_epoch;
}

bool model_over(const struct model *m, uint8_t epoch)
{
	return m->page_is_ds || epoch != m->page_epoch ? m->expired >> epoch & 1 : m->page_over;
}

bool model_void(const struct model *m)
{
	if (m->void_now)
		return true;
	return m->connected ? m->epoch != m->granted_epoch || (m->expired >> m->granted_epoch & 1) : m->page_over;
}

bool model_conflicts(const struct model_scope *s, const struct model *m, enum model_name name, bool p_shared)
{
	bool q = m->q == Q_HOLDS && m->q_name == name && !(p_shared && s->q_shared);

	return q || (name == A && m->r_holds);
}

void model_others_had(struct model *m, enum model_name name)
{
	if (m->bound == name)
		m->others_since = 1;
}

/* What lb_valid() says. */
static bool valid(const struct model *m)
{
	struct delegation_slot slot = model_slot(m);

	if (m->granted_epoch != model_page_epoch(m) || model_over(m, m->granted_epoch))
		return false;
	return m->delegated ? delegation_holds(&slot, m->mine) : !m->void_now;
}

const char *model_bad(const struct model_scope *scope, const struct model *m)
{
	bool in = m->pc == INSIDE || m->pc == LEAVING || m->pc == WAITS_AGAIN;

	return in && valid(m) && model_conflicts(scope, m, m->name, m->shared) ? "two holders" : NULL;
}

/* The page of a D that has died is not written any longer; what it has promised ends some day, before the session. */
static void dies(struct model_walk *walk, const struct model *m, bool keeps_p)
{
	struct model t = *m;

	if (m->page_is_ds) {
		t.page_is_ds = 0;
		t.page_epoch = m->epoch;
		t.page_over = m->expired >> m->epoch & 1;
		t.page_moved = 0;
	}
	t.alive = D_DEAD;
	t.pending = NOTHING;
	t.q = Q_IDLE;
	t.armed = t.r_known = 0;
	t.kept = keeps_p && m->connected;
	if (!t.kept) {
		for (uint8_t name = A; name <= B; name++) {
			bool delegated = (m->slot == SLOT_DELEGATED || m->slot == SLOT_RECALLED) && m->slot_name == name;
			bool free_one = m->slot == SLOT_DELEGATED && m->state != DELEGATION_HELD;

			if (m->connected && (m->grant[name] || (delegated && !(free_one && BROKEN(walk, FREE_IS_NO_HOLDER)))))
				t.ghost[name] = 1;
			t.grant[name] = t.lost[name] = 0;
		}
		t.slot = SLOT_NONE;
		t.slot_name = t.slot_shared = t.lease = 0;
		t.connected = t.last = t.reply = 0;
		t.said[0] = t.said[1] = (struct model_said){ 0 };
	}
	walk->to(walk, &t, keeps_p ? "D dies, and P's connection is kept" : "D dies", false, NULL);
}

static void follows(struct model_walk *walk, const struct model *m)
{
	struct model t = *m;

	t.alive = D_WELL;
	t.incarnation++;
	t.kept = 0;
	/* Its predecessor had lost the session, and not got to the word. */
	if (t.slot != SLOT_NONE && t.slot != SLOT_LOST && t.terms_epoch != t.epoch && !BROKEN(walk, OLD_EPOCH_INHERITED))
		t.pending = TO_LOSE_WORD;
	walk->to(walk, &t, "the next D starts", true, NULL);
	t.page_moved = 1;
	walk->to(walk, &t, "the next D starts, and says that the page has moved", true, NULL);
}

static void hands_over(struct model_walk *walk, const struct model *m)
{
	struct model t = *m;

	t.handed_over = 1;
	if (m->alive == D_WELL) {
		t.alive = D_BETWEEN;
		t.snapshot = m->slot == SLOT_DELEGATED ? m->state : 0;
		walk->to(walk, &t, "D hands over", false, NULL);
		return;
	}
	t.alive = D_WELL;
	t.snapshot = 0;
	if (m->slot == SLOT_DELEGATED && ((BROKEN(walk, SNAPSHOT_BELIEVED) && m->snapshot == DELEGATION_FREE) ||
					  BROKEN(walk, HANDED_OVER_FORGOTTEN)))
		t.slot = t.slot_name = t.slot_shared = 0;
	walk->to(walk, &t, "the next D has it all", true, NULL);
}

static void time_passes(struct model_walk *walk, const struct model *m)
{
	struct model t = *m;

	if (!m->page_is_ds && !m->page_over) {
		t.page_over = 1;
		walk->to(walk, &t, "what the former page promises ends", true, NULL);
	} else if (m->epoch <= walk->scope->losses && !(m->expired >> m->epoch & 1)) {
		t.expired |= (uint8_t)(1 << m->epoch);
		walk->to(walk, &t, "the proof runs out", false, NULL);
	}
	t = *m;
	if ((m->expired >> m->epoch & 1) && m->claim && !m->r_holds) {
		t.claim = t.armed = t.r_known = t.r_waits = 0;
		t.r_holds = 1;
		model_others_had(&t, A);
		walk->to(walk, &t, "ZooKeeper expires the session, and R has A", false, NULL);
	}
	t = *m;
	if (m->alive == D_WELL && (m->ghost[A] || m->ghost[B]) && (m->page_is_ds || m->page_over)) {
		t.ghost[A] = t.ghost[B] = 0;
		walk->to(walk, &t, "D: what its predecessor has told ends", true, NULL);
	}
}

void model_other_steps(struct model_walk *walk, const struct model *m)
{
	const struct model_scope *s = walk->scope;
	struct model t = *m;

	time_passes(walk, m);
	for (uint8_t name = A; m->alive == D_WELL && m->q == Q_IDLE && name <= (s->two_names ? B : A); name++) {
		t.q = Q_WAITS;
		t.q_name = name;
		walk->to(walk, &t, "Q asks", false, NULL);
	}
	t = *m;
	if (m->q == Q_HOLDS) {
		t.q = Q_IDLE;
		t.q_name = 0;
		walk->to(walk, &t, "Q unlocks", true, NULL);
	}
	t = *m;
	if (!m->r_waits && !m->r_holds && m->claim) {
		t.r_waits = 1;
		t.r_known = m->armed;
		walk->to(walk, &t, "R asks", false, NULL);
	}
	t = *m;
	if (m->r_holds) {
		t.r_holds = 0;
		walk->to(walk, &t, "R unlocks", true, NULL);
	}
	t = *m;
	if (m->alive == D_WELL && !m->claim && !m->r_holds && !(m->expired >> m->epoch & 1)) {
		t.claim = 1;
		walk->to(walk, &t, "the host has the claim", true, NULL);
	}
	if (m->alive == D_WELL && m->pending != TO_LOSE_WORD && s->dies && m->incarnation == 1)
		dies(walk, m, false);
	if (m->alive == D_WELL && s->dies && s->page_inherited && m->incarnation == 1)
		dies(walk, m, true);
	if (m->alive == D_DEAD)
		follows(walk, m);
	if (s->hand_over && (m->alive == D_BETWEEN || (m->alive == D_WELL && !m->handed_over && m->pending == NOTHING)))
		hands_over(walk, m);
}
