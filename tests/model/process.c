/* SPDX-License-Identifier: Apache-2.0 */
/* The steps of the process: those of the library, one for each thing that others can see or change. */
#include "tests/model/delegation_model.h"

static bool say(struct model *m, enum model_message message, bool with_slot)
{
	struct model_said said = { (uint8_t)message, m->name, m->shared, with_slot };

	for (int i = 0; i < 2; i++) {
		if (m->said[i].message != NO_MESSAGE)
			continue;
		m->said[i] = said;
		return true;
	}
	return false;
}

static struct delegation_terms mine(const struct model *m)
{
	return (struct delegation_terms){
		.generation = m->mine, .epoch = m->mine_epoch, .grant_min_ns = 0, .page_id = { m->mine_page },
	};
}

/* The real comparison: of the view that was read, at an instant after that. */
static bool stands(const struct model_walk *walk, const struct model *m, bool sees_time)
{
	struct delegation_terms terms = mine(m);
	bool over = model_over(m, m->seen_epoch);
	struct session_page page = { .id = { m->page } };
	struct session_view view = {
		.epoch = m->seen_epoch, .state = SESSION_SAFE, .safe_until_ns = over && sees_time ? 1 : 3, .moved = m->seen_moved,
	};

	if (BROKEN(walk, NO_EPOCH) || BROKEN(walk, LOSS_KEEPS_WORD))
		terms.epoch = view.epoch;
	if (BROKEN(walk, EPOCH_BY_PARITY) && (terms.epoch & 1) == (view.epoch & 1))
		terms.epoch = view.epoch;
	return delegation_stands(&terms, &page, &view, 2, terms.grant_min_ns);
}

static void read_page(struct model *m)
{
	m->seen_epoch = model_page_epoch(m);
	m->seen_moved = !m->page_is_ds && m->page_moved;
}

static void enter(struct model *m, bool delegated, uint8_t epoch)
{
	m->pc = INSIDE;
	m->depth = 1;
	m->delegated = delegated;
	m->granted_epoch = epoch;
	m->seen_epoch = m->seen_moved = m->void_seen = 0;
}

static void rest(struct model *m)
{
	m->pc = IDLE;
	m->name = m->shared = m->depth = m->delegated = m->granted_epoch = 0;
	m->seen_epoch = m->seen_moved = m->void_now = m->void_seen = 0;
}

/* lb_lock() of a name for which P has a delegation, as far as it knows. */
static void takes(struct model_walk *walk, const struct model *m)
{
	struct model t = *m;
	struct delegation_slot slot = model_slot(m);
	bool taken = delegation_take(&slot, m->mine), others;

	if (BROKEN(walk, TAKE_IGNORES_WANTED) && m->state == DELEGATION_FREE && m->generation == m->mine) {
		t.state = DELEGATION_HELD;
		taken = true;
	} else {
		model_store(&t, &slot);
	}
	t.seen_epoch = t.seen_moved = 0;
	t.pc = taken ? TAKEN : ASKS;
	others = taken && BROKEN(walk, CHECK_BEFORE) &&
		 (m->others_since || model_conflicts(walk->scope, m, m->name, m->shared));
	if (taken && BROKEN(walk, CHECK_BEFORE))
		enter(&t, true, m->mine_epoch);
	walk->to(walk, &t, taken ? "P takes it" : "P cannot take it", m->seen_epoch, others ? "P enters what others had" : NULL);
}

static void looks_first(struct model_walk *walk, const struct model *m)
{
	struct model t = *m;

	read_page(&t);
	if (!stands(walk, &t, true))
		t.pc = ASKS;
	walk->to(walk, &t, "P looks at the proof before it takes", false, NULL);
}

static void begins(struct model_walk *walk, const struct model *m)
{
	if (m->seen_epoch) {
		takes(walk, m);
		return;
	}
	for (uint8_t name = A; name <= (walk->scope->two_names ? B : A); name++) {
		for (uint8_t shared = !walk->scope->p_exclusive; shared <= walk->scope->p_shared; shared++) {
			struct model t = *m;

			t.name = name;
			t.shared = shared;
			if (t.bound != name || t.bound_shared != shared || !t.mine) {
				t.pc = ASKS;
				walk->to(walk, &t, "P wants it", false, NULL);
			} else if (BROKEN(walk, CHECK_BEFORE)) {
				looks_first(walk, &t);
			} else {
				takes(walk, &t);
			}
		}
	}
}

static void asks(struct model_walk *walk, const struct model *m)
{
	struct model t = *m;
	struct delegation_slot slot = model_slot(m);
	bool with_slot = m->bound == m->name || delegation_none(&slot) || BROKEN(walk, SLOT_USED_TWICE);

	if (!m->connected || !say(&t, LOCK, with_slot))
		return;
	if (with_slot && t.bound != t.name)
		t.others_since = 0;
	if (with_slot) {
		t.bound = t.name;
		t.bound_shared = t.shared;
	}
	t.pc = WAITS_LOCK;
	walk->to(walk, &t, with_slot ? "P says LOCK SLOT" : "P says LOCK", true, NULL);
}

static void gets_lock(struct model_walk *walk, const struct model *m)
{
	struct model t = *m;
	struct delegation_slot slot = model_slot(m);
	struct delegation_terms terms;
	bool delegated = delegation_read(&slot, m->mine, &terms);

	t.reply = NO_REPLY;
	if (m->reply != GRANTED) {
		rest(&t);
		walk->to(walk, &t, "P is refused", true, NULL);
		return;
	}
	if (delegated) {
		t.mine = (uint8_t)terms.generation;
		t.mine_epoch = (uint8_t)terms.epoch;
		t.mine_page = terms.page_id[0];
		t.others_since = 0;
	}
	enter(&t, delegated, delegated ? t.mine_epoch : m->granted_epoch);
	walk->to(walk, &t, delegated ? "P has it, delegated" : "P has it", true, NULL);
}

static void looks(struct model_walk *walk, const struct model *m)
{
	struct model t = *m;
	struct delegation_slot slot = model_slot(m);
	bool others;

	switch ((enum model_pc)m->pc) {
	case TAKEN:
		t.pc = delegation_holds(&slot, m->mine) || BROKEN(walk, WORD_NOT_READ_AGAIN) ? SEEN : UNDOES;
		walk->to(walk, &t, "P reads the word again", true,
			 t.pc == SEEN && m->void_now ? "P enters what was taken by force" : NULL);
		return;
	case SEEN:
		read_page(&t);
		t.pc = TIMED;
		walk->to(walk, &t, "P reads the session page", true, NULL);
		return;
	default:
		break;
	}
	if (!stands(walk, m, true)) {
		t.pc = UNDOES;
		walk->to(walk, &t, "P sees no proof", true, NULL);
		return;
	}
	enter(&t, true, m->mine_epoch);
	/* What was taken by force since it read the word again, its next look at the word tells. */
	others = m->others_since || model_conflicts(walk->scope, m, m->name, m->shared);
	walk->to(walk, &t, "P enters", true, others && !m->void_now ? "P enters what others had" : NULL);
}

static void undoes(struct model_walk *walk, const struct model *m)
{
	struct model t = *m;
	struct delegation_slot slot = model_slot(m);

	t.seen_epoch = t.seen_moved = t.void_now = 0;
	if (delegation_leave(&slot, m->mine)) {
		model_store(&t, &slot);
		t.pc = ASKS;
	} else if (BROKEN(walk, RETURN_LOST)) {
		t.pc = ASKS;
	} else if (!m->connected || !say(&t, UNLOCK, false)) {
		return;
	} else {
		t.pc = WAITS_UNDO;
	}
	walk->to(walk, &t, "P undoes it", true, NULL);
}

static void leaves(struct model_walk *walk, const struct model *m)
{
	struct model t = *m;
	struct delegation_slot slot = model_slot(m);
	const char *bad = NULL;

	switch ((enum model_pc)m->pc) {
	case LEAVING:
		read_page(&t);
		t.pc = LEAVING_SEEN;
		walk->to(walk, &t, "P reads the session page before its unlock", true, NULL);
		return;
	case LEAVING_SEEN:
		t.void_seen = model_void(m);
		if (BROKEN(walk, UNLOCK_LOOKS_NOT) || stands(walk, m, !BROKEN(walk, UNLOCK_SEES_NO_TIME))) {
			t.pc = LEAVING_TIMED;
			walk->to(walk, &t, "P may leave", true, NULL);
			return;
		}
		break;
	default:
		if (!delegation_leave(&slot, m->mine))
			break;
		if (m->void_now || m->void_seen)
			bad = "an unlock says nothing of a loss";
		model_store(&t, &slot);
		rest(&t);
		walk->to(walk, &t, "P leaves", true, bad);
		return;
	}
	if (BROKEN(walk, RETURN_LOST)) {
		rest(&t);
	} else {
		if (!m->connected || !say(&t, UNLOCK, false))
			return;
		t.pc = WAITS_UNLOCK;
	}
	walk->to(walk, &t, "P says UNLOCK", true, NULL);
}

static void inside(struct model_walk *walk, const struct model *m)
{
	struct model t = *m;

	if (m->delegated) {
		t.pc = LEAVING;
		walk->to(walk, &t, "P begins its unlock", true, NULL);
	} else if (m->connected) {
		if (say(&t, UNLOCK, false)) {
			t.pc = WAITS_UNLOCK;
			walk->to(walk, &t, "P says UNLOCK", true, NULL);
		}
		t = *m;
		if (m->depth == 1 && !model_void(m) && say(&t, LAZY, false)) {
			rest(&t);
			walk->to(walk, &t, "P says UNLOCK LAZY", true, NULL);
		}
	}
	t = *m;
	if (walk->scope->lease && m->connected && m->depth == 1 && say(&t, LOCK_AGAIN, false)) {
		t.pc = WAITS_AGAIN;
		walk->to(walk, &t, "P says LOCK REENTER LEASE", false, NULL);
	}
}

static void gets_answer(struct model_walk *walk, const struct model *m)
{
	struct model t = *m;
	const char *bad = NULL;

	t.reply = NO_REPLY;
	if (m->pc == WAITS_UNDO) {
		t.pc = ASKS;
		t.void_now = 0;
	} else if (m->reply != GRANTED) {
		if (!model_void(m))
			bad = "who holds is told that it does not";
		rest(&t);
	} else if (m->pc == WAITS_AGAIN) {
		t.pc = INSIDE;
		t.depth = 2;
		t.delegated = walk->scope->broken == MODEL_LEASE_KEEPS_DELEGATION && m->delegated;
	} else {
		t.depth--;
		t.pc = INSIDE;
		t.delegated = 0;
		if (t.depth == 0)
			rest(&t);
	}
	walk->to(walk, &t, "P reads the answer", true, bad);
}

/* All of the connection is over: what was held through it is lost, and P says so. */
static void sees_the_end(struct model_walk *walk, const struct model *m)
{
	struct model t = *m;

	rest(&t);
	t.bound = t.bound_shared = t.mine = t.mine_epoch = t.mine_page = t.reply = t.others_since = 0;
	t.state = t.marks = t.generation = t.terms_epoch = t.terms_page = 0;
	t.said[0] = t.said[1] = (struct model_said){ 0 };
	t.connected = 1;
	t.last = 0;
	t.page_is_ds = 1;
	t.page = m->incarnation;
	t.page_epoch = t.page_moved = t.page_over = 0;
	walk->to(walk, &t, "P sees the end of its connection", true, NULL);
}

void model_process_steps(struct model_walk *walk, const struct model *m)
{
	struct model t = *m;

	if (m->pc == DEAD)
		return;
	if (!m->connected && m->alive == D_WELL)
		sees_the_end(walk, m);
	if (m->connected && m->alive == D_WELL && !m->page_is_ds) {
		t.page_is_ds = 1;
		t.page = m->incarnation;
		t.page_epoch = t.page_moved = t.page_over = 0;
		walk->to(walk, &t, "P maps the next session page", true, NULL);
	}
	if (walk->scope->p_dies && m->connected) {
		t = *m;
		rest(&t);
		t.pc = DEAD;
		walk->to(walk, &t, "P dies", false, NULL);
	}
	switch ((enum model_pc)m->pc) {
	case IDLE: begins(walk, m); break;
	case TAKEN: case SEEN: case TIMED: looks(walk, m); break;
	case UNDOES: undoes(walk, m); break;
	case ASKS: asks(walk, m); break;
	case INSIDE: inside(walk, m); break;
	case LEAVING: case LEAVING_SEEN: case LEAVING_TIMED: leaves(walk, m); break;
	case WAITS_LOCK:
		if (m->reply != NO_REPLY)
			gets_lock(walk, m);
		break;
	case WAITS_UNDO: case WAITS_UNLOCK: case WAITS_AGAIN:
		if (m->reply != NO_REPLY)
			gets_answer(walk, m);
		break;
	case DEAD: break;
	}
}
