/* SPDX-License-Identifier: Apache-2.0 */
/* The steps of D, W and R, and of time. D takes words back one by one, each in several steps, and may die in between. */
#include <string.h>

#include "tests/model/readers_model.h"

struct model readers_model_start(const struct model_scope *scope)
{
	struct model m;

	memset(&m, 0, sizeof(m)); /* all its bytes are compared */
	m.alive = m.incarnation = m.epoch = m.claim = 1;
	for (int i = 0; i < scope->processes; i++) {
		m.p[i].pc = IDLE;
		m.p[i].connected = m.p[i].page = 1;
	}
	return m;
}

struct delegation_slot readers_model_slot(const struct model_process *p)
{
	return (struct delegation_slot){
		.word = (uint64_t)p->generation << 16 | (uint64_t)p->marks << 2 | p->state,
		.epoch = p->terms_epoch,
		.page_id = { p->page },
	};
}

void readers_model_store(struct model_process *p, const struct delegation_slot *slot)
{
	p->state = slot->word & 3;
	p->marks = slot->word >> 2 & 3;
	p->generation = (uint8_t)(slot->word >> 16);
	p->terms_epoch = (uint8_t)slot->epoch;
}

bool readers_model_over(const struct model *m, const struct model_process *p)
{
	return p->page == m->incarnation ? m->expired >> p->granted_epoch & 1 : m->page_over;
}

/* ---- what is bad ---- */

static bool is_in(const struct model *m, const struct model_process *p)
{
	bool in = p->pc == INSIDE || p->pc == LEAVING || p->pc == WAITS_CHANGE;

	return in && !readers_model_over(m, p) && (p->page != m->incarnation || p->granted_epoch == m->epoch);
}

const char *readers_model_bad(const struct model *m)
{
	int readers = 0, writers = (m->w == W_HOLDS) + m->r_holds;

	for (int i = 0; i < PROCESSES; i++) {
		readers += is_in(m, &m->p[i]) && m->p[i].shared;
		writers += is_in(m, &m->p[i]) && !m->p[i].shared;
	}
	return writers > 1 || (writers && readers) ? "a writer and others are inside" : NULL;
}

static bool writer_waits(const struct model *m)
{
	bool waits = m->w == W_WAITS || m->r_known;

	for (int i = 0; i < PROCESSES; i++)
		waits |= m->p[i].waits == WAITS_EXCLUSIVE;
	return waits;
}

static bool is_wanted(const struct model *m)
{
	bool wanted = writer_waits(m);

	for (int i = 0; i < PROCESSES; i++)
		wanted |= m->p[i].waits != WAITS_NOT;
	return wanted;
}

bool readers_model_waits(const struct model *m)
{
	return is_wanted(m) || m->r_waits;
}

/* ---- a word is taken back ---- */

static bool has_word(const struct model_process *p)
{
	return p->grant == DELEGATED || p->grant == UNWRITTEN;
}

static void ends(struct model_process *p)
{
	struct delegation_slot slot = readers_model_slot(p);

	delegation_end(&slot);
	readers_model_store(p, &slot);
	p->grant = NO_GRANT;
	p->grant_shared = 0;
}

static void goes_back(struct model_walk *walk, struct model_process *p)
{
	struct delegation_slot slot = readers_model_slot(p);

	if (p->state == DELEGATION_FREE) {
		/* The first half of delegation_recall() of a free one; the second half is delegation_end(). */
		p->marks |= !BROKEN(walk, LOOKS_THEN_STORES);
		p->back = TO_STORE;
	} else if (delegation_recall(&slot) == DELEGATION_HELD) {
		readers_model_store(p, &slot);
		p->back = NOT_BACK;
		p->grant = RECALLED;
		if (BROKEN(walk, INSIDE_COUNTS_AS_GONE))
			ends(p);
	} else {
		readers_model_store(p, &slot);
		p->back = TO_WRITE_DOWN;
	}
}

static void is_lost(struct model_process *p)
{
	struct delegation_slot slot = readers_model_slot(p);
	bool word = has_word(p) || p->grant == RECALLED;

	p->back = NOT_BACK;
	p->lost = p->grant != NO_GRANT;
	if (word) {
		p->lost = delegation_lose(&slot) == DELEGATION_HELD || p->grant == RECALLED;
		readers_model_store(p, &slot);
	}
	p->grant = NO_GRANT;
	p->grant_shared = 0;
}

static void goes_on(struct model_walk *walk, const struct model *m, int i)
{
	struct model t = *m;
	struct model_process *p = &t.p[i];
	struct delegation_slot slot = readers_model_slot(p);

	switch ((enum model_back)p->back) {
	case TO_STORE:
		delegation_end(&slot);
		readers_model_store(p, &slot);
		p->back = TO_WRITE_DOWN;
		break;
	case TO_MARK:
		goes_back(walk, p);
		break;
	case TO_WRITE_DOWN:
		p->back = NOT_BACK;
		p->grant = NO_GRANT;
		p->grant_shared = 0;
		break;
	case TO_LOSE:
		is_lost(p);
		break;
	case TO_CLEAR:
		ends(p);
		p->back = NOT_BACK;
		break;
	case NOT_BACK:
		return;
	}
	walk->to(walk, &t, "D goes on with a word", true, NULL);
}

bool readers_model_is_busy(const struct model *m)
{
	bool busy = false;

	for (int i = 0; i < PROCESSES; i++)
		busy |= m->p[i].back != NOT_BACK;
	return busy;
}

static bool has_delegated(const struct model *m)
{
	bool any = false;

	for (int i = 0; i < PROCESSES; i++)
		any |= m->p[i].grant == DELEGATED;
	return any;
}

/* False: no process has a delegation. */
static bool takes_all_back(struct model_walk *walk, struct model *t)
{
	bool any = false;

	for (int i = 0; i < PROCESSES; i++) {
		struct model_process *p = &t->p[i];

		if (p->grant != DELEGATED || (any && BROKEN(walk, ONE_OF_THEM)))
			continue;
		any = true;
		p->back = TO_MARK;
		if (BROKEN(walk, LEDGER_FIRST))
			p->grant = UNWRITTEN;
	}
	return any;
}

static void takes_back(struct model_walk *walk, const struct model *m)
{
	struct model t = *m;

	if (is_wanted(m) && !(m->pass && BROKEN(walk, ONE_OF_THEM)) && takes_all_back(walk, &t)) {
		t.pass = writer_waits(m);
		walk->to(walk, &t, "D takes all back for who waits", true, NULL);
	} else if (writer_waits(m) && !m->pass) {
		t.pass = 1;
		walk->to(walk, &t, "D has all back for who waits", true, NULL);
	}
	for (int i = 0; i < PROCESSES; i++) {
		if (m->p[i].grant != DELEGATED)
			continue;
		t = *m;
		t.p[i].back = TO_MARK;
		walk->to(walk, &t, "D takes one back that is not used", false, NULL);
	}
}

/* ---- grants ---- */

static bool is_granted(const struct model *m, bool shared, int but)
{
	for (int i = 0; i < PROCESSES; i++) {
		const struct model_process *p = &m->p[i];

		if (p->ghost || (i != but && p->grant != NO_GRANT && !(shared && p->grant_shared)))
			return true;
	}
	return m->w == W_HOLDS;
}

static bool may_have(const struct model *m, int i, bool shared)
{
	return m->claim && !is_granted(m, shared, i) && (!shared || !writer_waits(m));
}

static void answers(struct model_process *p, enum model_reply reply)
{
	p->reply = (uint8_t)reply;
	p->said = SILENCE;
}

static void grants(struct model_walk *walk, const struct model *m, int i, bool shared)
{
	bool knows = (m->armed && !m->r_known) || BROKEN(walk, DELEGATES_UNARMED);
	struct model t = *m;
	struct model_process *p = &t.p[i];

	p->grant = ORDINARY;
	p->grant_shared = shared;
	p->waits = WAITS_NOT;
	p->granted_epoch = m->epoch;
	answers(p, GRANTED);
	t.pass = writer_waits(&t) && m->pass;
	walk->to(walk, &t, "D grants a process", true, NULL);
	if (knows && !is_wanted(&t) && p->last < walk->scope->generations) {
		struct delegation_slot slot = readers_model_slot(p);
		const struct delegation_terms terms = {
			.generation = p->last + 1, .epoch = m->epoch, .page_id = { m->incarnation },
		};

		delegation_grant(&slot, &terms, DELEGATION_HELD);
		readers_model_store(p, &slot);
		p->last++;
		p->grant = DELEGATED;
		walk->to(walk, &t, "D delegates to a process", true, NULL);
	}
}

static void heeds_lock(struct model_walk *walk, const struct model *m, int i)
{
	const struct model_process *p = &m->p[i];
	struct model t = *m;
	bool shared = p->shared, conflicts = false;

	/* A process that asks for the lock does not hold it, and its word is not HELD. */
	if (p->grant == DELEGATED) {
		t.p[i].back = TO_MARK;
		walk->to(walk, &t, "D takes back what a process asks for", true, NULL);
		return;
	}
	for (int k = 0; k < PROCESSES; k++)
		conflicts |= m->p[k].grant == DELEGATED && !(shared && m->p[k].grant_shared);
	if (conflicts && !BROKEN(walk, ONLY_ITS_OWN) && takes_all_back(walk, &t)) {
		t.p[i].waits = shared ? WAITS_SHARED : WAITS_EXCLUSIVE;
		t.p[i].said = SILENCE;
		t.pass = !shared;
		walk->to(walk, &t, "D takes all back for who asks", true, NULL);
	} else if (may_have(m, i, shared) || (conflicts && BROKEN(walk, ONLY_ITS_OWN))) {
		grants(walk, m, i, shared);
	} else {
		t.p[i].waits = shared ? WAITS_SHARED : WAITS_EXCLUSIVE;
		t.p[i].said = SILENCE;
		walk->to(walk, &t, "D has a process wait", true, NULL);
	}
}

/* The process asks to change the grant that it has. */
static void heeds_change(struct model_walk *walk, const struct model *m, int i)
{
	struct model t = *m;
	struct model_process *p = &t.p[i];
	bool upgrade = p->said == UPGRADE;

	if (p->grant == DELEGATED && !(upgrade ? BROKEN(walk, UPGRADE_IN_PLACE) : BROKEN(walk, DOWNGRADE_BY_WORD))) {
		p->back = TO_MARK;
		walk->to(walk, &t, "D takes back what a process wants changed", true, NULL);
		return;
	}
	if (p->grant == NO_GRANT) {
		answers(p, NOT_HELD);
	} else if (!upgrade) {
		p->grant_shared = true;
		answers(p, GRANTED);
	} else if (BROKEN(walk, UPGRADE_IN_PLACE)) {
		p->grant_shared = false;
		answers(p, UPGRADED);
	} else {
		answers(p, REFUSED);
	}
	walk->to(walk, &t, upgrade ? "D refuses an upgrade" : "D downgrades", true, NULL);
}

static void heeds_unlock(struct model_walk *walk, const struct model *m, int i)
{
	struct model t = *m;
	struct model_process *p = &t.p[i];
	bool held = p->grant != NO_GRANT && !(p->grant == DELEGATED && p->state != DELEGATION_HELD);

	answers(p, held ? GRANTED : NOT_HELD);
	ends(p);
	if (BROKEN(walk, ONE_HAS_LEFT))
		for (int k = 0; k < PROCESSES && m->w == W_WAITS; k++)
			t.p[k].grant = NO_GRANT;
	walk->to(walk, &t, "D heeds UNLOCK", true, NULL);
}

static void heeds(struct model_walk *walk, const struct model *m, int i)
{
	struct model t = *m;

	if (!m->p[i].connected || m->p[i].said == SILENCE)
		return;
	if (m->p[i].lost) {
		t.p[i].lost = 0;
		ends(&t.p[i]);
		answers(&t.p[i], IS_LOST);
		walk->to(walk, &t, "D tells a process of the loss", true, NULL);
	} else if (m->p[i].said == LOCK) {
		heeds_lock(walk, m, i);
	} else if (m->p[i].said == UNLOCK) {
		heeds_unlock(walk, m, i);
	} else {
		heeds_change(walk, m, i);
	}
}

static void sees_dead(struct model_walk *walk, const struct model *m, int i)
{
	struct model t = *m;
	struct model_process *p = &t.p[i];

	if (!p->connected || p->pc != DEAD)
		return;
	if (!BROKEN(walk, DEATH_UNSEEN))
		ends(p);
	p->connected = p->lost = p->said = p->reply = p->waits = 0;
	walk->to(walk, &t, "D sees the end of a process", true, NULL);
}

static void serves_writers(struct model_walk *walk, const struct model *m)
{
	struct model t = *m;

	if (m->w == W_WAITS && m->claim && !is_granted(m, false, PROCESSES)) {
		t.w = W_HOLDS;
		t.pass = writer_waits(&t) && m->pass;
		walk->to(walk, &t, "D grants W", true, NULL);
	}
	t = *m;
	if (m->claim && !m->armed && !(BROKEN(walk, DELEGATES_UNARMED) && has_delegated(m))) {
		t.armed = 1;
		t.r_known = m->r_waits;
		walk->to(walk, &t, "D looks for other hosts", true, NULL);
	}
	t = *m;
	if (m->claim && m->r_known && !is_granted(m, false, PROCESSES)) {
		t.claim = t.armed = t.r_known = t.r_waits = 0;
		t.r_holds = 1;
		t.pass = writer_waits(&t) && m->pass;
		walk->to(walk, &t, "D gives the claim back to R", true, NULL);
	}
}

/* ---- the session ---- */

static void loses_page(struct model *m)
{
	m->epoch++;
	m->claim = m->armed = m->r_known = m->loses_page = 0;
	m->w = m->w == W_HOLDS ? W_IDLE : m->w;
	m->pass = writer_waits(m) && m->pass;
	for (int i = 0; i < PROCESSES; i++)
		m->p[i].ghost = 0;
}

static void loses_words(struct model *m)
{
	for (int i = 0; i < PROCESSES; i++)
		m->p[i].back = m->p[i].grant != NO_GRANT ? TO_LOSE : NOT_BACK;
}

/* The loss is written into the page and into the words, in either order. */
static void loses_session(struct model_walk *walk, const struct model *m)
{
	struct model t = *m;

	loses_words(&t);
	loses_page(&t);
	walk->to(walk, &t, "D loses its session, and writes that into the page", true, NULL);
	t = *m;
	loses_words(&t);
	t.loses_page = 1;
	walk->to(walk, &t, "D loses its session, and writes that into the words", true, NULL);
}

void readers_model_daemon(struct model_walk *walk, const struct model *m)
{
	struct model t = *m;

	if (readers_model_is_busy(m)) {
		for (int i = 0; i < PROCESSES; i++)
			goes_on(walk, m, i);
		return;
	}
	/* Deadlines come before everything else. */
	if (m->loses_page) {
		loses_page(&t);
		walk->to(walk, &t, "D writes the loss into the page", true, NULL);
		return;
	}
	if (m->expired >> m->epoch & 1) {
		loses_session(walk, m);
		return;
	}
	for (int i = 0; i < PROCESSES; i++) {
		const struct model_process *p = &m->p[i];

		sees_dead(walk, m, i);
		heeds(walk, m, i);
		if (p->waits != WAITS_NOT && may_have(m, i, p->waits == WAITS_SHARED))
			grants(walk, m, i, p->waits == WAITS_SHARED);
	}
	takes_back(walk, m);
	serves_writers(walk, m);
}

/* ---- kills, and others ---- */

static void dies(struct model_walk *walk, const struct model *m)
{
	struct model t = *m;

	t.alive = t.armed = t.r_known = t.pass = 0;
	t.w = W_IDLE;
	for (int i = 0; i < PROCESSES; i++) {
		struct model_process *p = &t.p[i];
		bool free_one = p->grant == DELEGATED && p->state != DELEGATION_HELD;

		p->back = NOT_BACK;
		p->grant = p->grant == UNWRITTEN ? NO_GRANT : p->grant;
		if (walk->scope->kept)
			continue;
		p->ghost = p->grant != NO_GRANT && !(free_one && BROKEN(walk, FREE_IS_NO_HOLDER));
		p->grant = p->grant_shared = p->lost = p->waits = p->connected = p->said = p->reply = p->last = 0;
	}
	t.incarnation += !walk->scope->kept;
	walk->to(walk, &t, "D dies", false, NULL);
}

/* With the pages kept, the next D first takes its predecessor's delegations back, and clears every other slot. */
static void follows(struct model_walk *walk, const struct model *m)
{
	struct model t = *m;

	t.alive = 2;
	for (int i = 0; i < PROCESSES && walk->scope->kept; i++) {
		struct model_process *p = &t.p[i];

		if (!BROKEN(walk, NEXT_TAKES_NONE))
			p->back = p->grant == DELEGATED ? TO_MARK : p->grant == NO_GRANT && p->state ? TO_CLEAR : NOT_BACK;
		else if (p->grant == DELEGATED && p->state != DELEGATION_HELD)
			p->grant = p->grant_shared = 0;
	}
	walk->to(walk, &t, "the next D starts", true, NULL);
}

static void time_passes(struct model_walk *walk, const struct model *m)
{
	struct model t = *m;

	if (walk->scope->loss && m->epoch == 1 && !m->expired) {
		t.expired = 1 << 1;
		walk->to(walk, &t, "the proof runs out", false, NULL);
	}
	t = *m;
	if ((m->expired >> m->epoch & 1) && m->claim && !m->r_holds) {
		t.claim = t.armed = t.r_known = t.r_waits = 0;
		t.r_holds = 1;
		walk->to(walk, &t, "ZooKeeper expires the session, and R has it", false, NULL);
	}
	t = *m;
	if (m->incarnation == 2 && !m->page_over) {
		t.page_over = 1;
		for (int i = 0; i < PROCESSES; i++)
			t.p[i].ghost = 0;
		walk->to(walk, &t, "what the former page promises ends", true, NULL);
	}
}

void readers_model_steps(struct model_walk *walk, const struct model *m)
{
	const struct model_scope *s = walk->scope;
	struct model t = *m;

	for (int i = 0; i < PROCESSES; i++)
		readers_model_process(walk, m, i);
	if (m->alive)
		readers_model_daemon(walk, m);
	else
		follows(walk, m);
	time_passes(walk, m);
	if (s->writer && m->alive && m->w == W_IDLE) {
		t.w = W_WAITS;
		walk->to(walk, &t, "W asks", false, NULL);
	}
	t = *m;
	if (m->w == W_HOLDS) {
		t.w = W_IDLE;
		walk->to(walk, &t, "W unlocks", true, NULL);
	}
	t = *m;
	if (s->loss && !m->r_waits && !m->r_holds && m->claim) {
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
	if (m->alive && !m->claim && !m->r_holds && !(m->expired >> m->epoch & 1)) {
		t.claim = 1;
		walk->to(walk, &t, "the host has the claim", true, NULL);
	}
	if (m->alive == 1 && (s->kept || s->kill))
		dies(walk, m);
}
