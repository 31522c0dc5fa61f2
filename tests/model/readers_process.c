/* SPDX-License-Identifier: Apache-2.0 */
/* The steps of a process: those of the library, one for each thing that others can see or change. */
#include "tests/model/readers_model.h"

/* Compares as the library does, with the present contents of the process's session page. */
static bool stands(const struct model_walk *walk, const struct model *m, const struct model_process *p, bool sees_time)
{
	struct delegation_terms terms = { .generation = p->mine, .epoch = p->mine_epoch, .page_id = { p->page } };
	const struct session_page page = { .id = { p->page } };
	bool current = p->page == m->incarnation, over = current ? m->expired >> m->epoch & 1 : m->page_over;
	const struct session_view view = {
		.epoch = current ? m->epoch : p->granted_epoch,
		.state = SESSION_SAFE,
		.safe_until_ns = over && sees_time ? 1 : 3,
	};

	if (BROKEN(walk, NO_EPOCH))
		terms.epoch = view.epoch;
	return delegation_stands(&terms, &page, &view, 2, 0);
}

static void rest(struct model_process *p)
{
	p->pc = IDLE;
	p->shared = p->delegated = p->granted_epoch = p->overtakes = 0;
}

static bool is_void(const struct model *m, const struct model_process *p)
{
	return readers_model_over(m, p) || (p->page == m->incarnation && p->granted_epoch != m->epoch);
}

static void begins(struct model_walk *walk, const struct model *m, int i, bool shared)
{
	struct model t = *m;
	struct model_process *p = &t.p[i];
	struct delegation_slot slot = readers_model_slot(p);
	bool same = p->mine_shared == shared || BROKEN(walk, MODE_NOT_COMPARED), taken;

	taken = p->mine && same && delegation_take(&slot, p->mine);
	if (!taken && p->mine && same && BROKEN(walk, TAKE_IGNORES_WANTED) && p->generation == p->mine &&
	    p->state == DELEGATION_FREE) {
		p->state = DELEGATION_HELD;
		taken = true;
	} else {
		readers_model_store(p, &slot);
	}
	p->shared = shared;
	p->pc = taken ? TAKEN : ASKS;
	p->granted_epoch = taken ? p->mine_epoch : 0;
	p->overtakes = taken && p->connected && m->pass && !readers_model_is_busy(m);
	walk->to(walk, &t, taken ? "a process takes its word" : "a process wants it", false, NULL);
}

static void says(struct model_walk *walk, const struct model *m, int i, enum model_message message, enum model_pc pc,
		 const char *step, bool fair)
{
	struct model t = *m;

	/* The connection has ended: the process waits until it sees the end. */
	if (!m->p[i].connected)
		return;
	t.p[i].said = (uint8_t)message;
	t.p[i].pc = (uint8_t)pc;
	walk->to(walk, &t, step, fair, NULL);
}

static void looks(struct model_walk *walk, const struct model *m, int i)
{
	struct model t = *m;
	struct model_process *p = &t.p[i];
	struct delegation_slot slot = readers_model_slot(p);
	const char *bad = NULL;

	if (p->pc == TAKEN) {
		p->pc = delegation_holds(&slot, p->mine) ? SEEN : UNDOES;
		walk->to(walk, &t, "a process reads its word again", true, NULL);
		return;
	}
	if (!stands(walk, m, p, true)) {
		p->pc = UNDOES;
		walk->to(walk, &t, "a process sees no proof", true, NULL);
		return;
	}
	p->pc = INSIDE;
	p->delegated = true;
	if (is_void(m, p))
		bad = "a process enters a lost lock";
	walk->to(walk, &t, "a process enters", true, p->overtakes ? "a word was taken past a writer that waits" : bad);
}

static void undoes(struct model_walk *walk, const struct model *m, int i)
{
	struct model t = *m;
	struct delegation_slot slot = readers_model_slot(&t.p[i]);

	if (!delegation_leave(&slot, t.p[i].mine)) {
		says(walk, m, i, UNLOCK, WAITS_UNDO, "a process undoes its lock by message", true);
		return;
	}
	readers_model_store(&t.p[i], &slot);
	t.p[i].pc = ASKS;
	t.p[i].overtakes = 0;
	walk->to(walk, &t, "a process undoes its lock", true, NULL);
}

static void leaves(struct model_walk *walk, const struct model *m, int i)
{
	struct model t = *m;
	struct model_process *p = &t.p[i];
	struct delegation_slot slot = readers_model_slot(p);
	const char *bad = NULL;

	if (p->pc == INSIDE && stands(walk, m, p, !BROKEN(walk, UNLOCK_SEES_NO_TIME))) {
		p->pc = LEAVING;
		bad = is_void(m, p) ? "an unlock says nothing of a loss" : NULL;
		walk->to(walk, &t, "a process may leave", true, bad);
	} else if (p->pc == LEAVING && delegation_leave(&slot, p->mine)) {
		readers_model_store(p, &slot);
		rest(p);
		walk->to(walk, &t, "a process leaves", true, NULL);
	} else if (BROKEN(walk, RETURN_LOST)) {
		rest(p);
		walk->to(walk, &t, "a process goes", true, NULL);
	} else {
		says(walk, m, i, UNLOCK, WAITS_UNLOCK, "a process says UNLOCK", true);
	}
}

static void inside(struct model_walk *walk, const struct model *m, int i)
{
	const struct model_process *p = &m->p[i];

	if (p->delegated || p->pc == LEAVING)
		leaves(walk, m, i);
	else
		says(walk, m, i, UNLOCK, WAITS_UNLOCK, "a process says UNLOCK", true);
	if (!walk->scope->modes || p->pc != INSIDE)
		return;
	if (p->shared) {
		says(walk, m, i, UPGRADE, WAITS_CHANGE, "a reader asks for more", false);
	} else {
		struct model t = *m;

		t.p[i].shared = true; /* the process stops writing before it asks */
		says(walk, &t, i, DOWNGRADE, WAITS_CHANGE, "a process says DOWNGRADE", false);
	}
}

static void gets_lock(struct model_walk *walk, const struct model *m, int i)
{
	struct model t = *m;
	struct model_process *p = &t.p[i];
	struct delegation_slot slot = readers_model_slot(p);
	struct delegation_terms terms;

	p->reply = NO_REPLY;
	if (m->p[i].reply != GRANTED) {
		rest(p);
		walk->to(walk, &t, "a process is told that it has lost the lock", true, NULL);
		return;
	}
	p->delegated = delegation_read(&slot, p->mine, &terms);
	if (p->delegated) {
		p->mine = (uint8_t)terms.generation;
		p->mine_epoch = (uint8_t)terms.epoch;
		p->mine_shared = p->shared;
	}
	p->pc = INSIDE;
	walk->to(walk, &t, p->delegated ? "a process has the lock, delegated" : "a process has the lock", true, NULL);
}

static void gets_answer(struct model_walk *walk, const struct model *m, int i)
{
	struct model t = *m;
	struct model_process *p = &t.p[i];
	const char *bad = NULL;

	p->reply = NO_REPLY;
	if (p->pc == WAITS_UNDO) {
		p->pc = ASKS;
		p->overtakes = 0;
	} else if (m->p[i].reply == IS_LOST || m->p[i].reply == NOT_HELD) {
		bad = is_void(m, p) ? NULL : "a holder is told that it does not hold the lock";
		rest(p);
	} else if (p->pc == WAITS_CHANGE) {
		if (m->p[i].reply == UPGRADED)
			p->shared = false;
		p->pc = INSIDE;
	} else {
		rest(p);
	}
	walk->to(walk, &t, "a process reads the answer", true, bad);
}

/* The process loses what it held through the connection. */
static void sees_the_end(struct model_walk *walk, const struct model *m, int i)
{
	struct model t = *m;
	struct model_process *p = &t.p[i];

	rest(p);
	p->state = p->marks = p->generation = p->terms_epoch = 0;
	p->mine = p->mine_epoch = p->mine_shared = p->said = p->reply = 0;
	p->connected = 1;
	p->page = m->incarnation;
	walk->to(walk, &t, "a process sees the end of its connection", true, NULL);
}

void readers_model_process(struct model_walk *walk, const struct model *m, int i)
{
	const struct model_process *p = &m->p[i];
	struct model t = *m;

	if (p->pc == ABSENT || p->pc == DEAD)
		return;
	if (walk->scope->deaths && p->connected) {
		rest(&t.p[i]);
		t.p[i].pc = DEAD;
		walk->to(walk, &t, "a process dies", false, NULL);
	}
	if (!p->connected && m->alive)
		sees_the_end(walk, m, i);
	switch ((enum model_pc)p->pc) {
	case IDLE:
		begins(walk, m, i, true);
		if (walk->scope->modes)
			begins(walk, m, i, false);
		break;
	case TAKEN: case SEEN: looks(walk, m, i); break;
	case UNDOES: undoes(walk, m, i); break;
	case ASKS: says(walk, m, i, LOCK, WAITS_LOCK, "a process says LOCK SLOT", true); break;
	case INSIDE: case LEAVING: inside(walk, m, i); break;
	case WAITS_LOCK:
		if (p->reply != NO_REPLY)
			gets_lock(walk, m, i);
		break;
	case WAITS_UNDO: case WAITS_UNLOCK: case WAITS_CHANGE:
		if (p->reply != NO_REPLY)
			gets_answer(walk, m, i);
		break;
	case ABSENT: case DEAD: break;
	}
}
