/* SPDX-License-Identifier: Apache-2.0 */
/* The machine: which accesses a processor may perform next, and what they do. */
#include "tests/model/weak_model.h"

static const struct weak_access *access_at(const struct model_walk *walk, int processor, int i)
{
	return &walk->scope->programs[processor][i];
}

static bool is_fence(const struct weak_access *a)
{
	return a->kind >= FENCE_ACQUIRE;
}

static bool is_load(const struct weak_access *a)
{
	return a->kind == LOAD || a->kind == LINKED;
}

static bool is_store(const struct weak_access *a)
{
	return a->kind == STORE || a->kind == STORED;
}

static bool is_broken(int broken, const struct weak_access *a)
{
	return a->rule == 1 + broken;
}

static bool has_order(const struct model_walk *walk, const struct weak_access *a, enum weak_order order)
{
	return a->order == order && !is_broken(walk->broken, a);
}

static bool is_done(const struct model_processor *p, int i)
{
	return p->done >> i & 1;
}

/* `before` is earlier in the program, and is not performed yet. */
static bool has_to_wait(const struct model_walk *walk, const struct weak_access *a, const struct weak_access *before)
{
	switch (a->kind) {
	case FENCE_ACQUIRE:
		return is_load(before);
	case FENCE_RELEASE:
		return is_load(before) || is_store(before);
	case FENCE_SIGNAL:
		return true;
	case NO_ACCESS:
	case LOAD:
	case STORE:
	case LINKED:
	case STORED:
		break;
	}
	switch (before->kind) {
	case FENCE_ACQUIRE:
	case FENCE_SIGNAL:
		return true;
	case FENCE_RELEASE:
		return is_store(a);
	case NO_ACCESS:
	case LOAD:
	case STORE:
	case LINKED:
	case STORED:
		break;
	}
	if (has_order(walk, before, ACQUIRE) || has_order(walk, a, RELEASE))
		return true;
	if (a->at != before->at)
		return false;
	/* A load may have the value that is still in the store buffer. */
	if (a->kind == LOAD && before->kind == STORE)
		return false;
	return a->kind != LOAD || before->kind != STORED || has_order(walk, a, ACQUIRE);
}

static bool may_be_performed(const struct model_walk *walk, const struct model *m, int processor, int i)
{
	const struct weak_access *a = access_at(walk, processor, i);

	for (int k = 0; k < i; k++)
		if (!is_done(&m->p[processor], k) && has_to_wait(walk, a, access_at(walk, processor, k)))
			return false;
	return a->kind != STORED || m->p[processor].linked;
}

/* Of a STORE or STORED, whose LINKED is the access before it. */
static uint8_t value_of(const struct model_walk *walk, const struct model *m, int processor, int i)
{
	const struct weak_access *a = access_at(walk, processor, i);

	return a->sets ? a->value | m->p[processor].loaded[access_at(walk, processor, i - 1)->to] : a->value;
}

/* What a load gets: from the store buffer, or from memory. */
static uint8_t value_for(const struct model_walk *walk, const struct model *m, int processor, int i)
{
	const struct weak_access *a = access_at(walk, processor, i);

	for (int k = i - 1; k >= 0; k--)
		if (!is_done(&m->p[processor], k) && is_store(access_at(walk, processor, k)) &&
		    access_at(walk, processor, k)->at == a->at)
			return value_of(walk, m, processor, k);
	return m->memory[a->at];
}

/* A store behind that load was performed already. */
static bool was_too_early(const struct model_walk *walk, const struct model_processor *p, int processor, int i)
{
	for (int k = i + 1; k < ACCESSES; k++)
		if (is_done(p, k) && is_store(access_at(walk, processor, k)))
			return true;
	return false;
}

/* False: there is no such run. */
static bool load(struct model_walk *walk, struct model *m, int processor, int i)
{
	const struct weak_access *a = access_at(walk, processor, i);
	struct model_processor *p = &m->p[processor];

	p->loaded[a->to] = value_for(walk, m, processor, i);
	if (a->kind == LINKED) {
		p->linked = true;
		p->others = m->memory[OTHERS];
	}
	if (a->wants == ANY || (p->loaded[a->to] & ~a->except) == a->wants)
		return true;
	p->stopped = true;
	return !was_too_early(walk, p, processor, i);
}

static bool links(const struct model_walk *walk, const struct model *m, int processor, uint8_t word)
{
	for (int i = 0; i < ACCESSES; i++) {
		const struct weak_access *a = access_at(walk, processor, i);

		if (a->kind == STORED && a->at == word && !is_done(&m->p[processor], i))
			return true;
	}
	return false;
}

static void store(struct model_walk *walk, struct model *m, int processor, int i)
{
	uint8_t word = access_at(walk, processor, i)->at;

	m->memory[word] = value_of(walk, m, processor, i);
	for (int other = 0; other < PROCESSORS; other++)
		if (other != processor && links(walk, m, other, word))
			m->p[other].linked = false;
}

static void perform(struct model_walk *walk, const struct model *m, int processor, int i)
{
	const struct weak_access *a = access_at(walk, processor, i);
	struct model next = *m;

	if (is_store(a))
		store(walk, &next, processor, i);
	else if (is_load(a) && !load(walk, &next, processor, i))
		return;
	next.p[processor].done |= (uint16_t)(1u << i);
	walk->to(walk, &next, a->text, walk->scope->bad(walk->scope, &next));
}

void weak_model_steps(struct model_walk *walk, const struct model *m)
{
	for (int processor = 0; processor < PROCESSORS; processor++)
		for (int i = 0; i < ACCESSES && !m->p[processor].stopped; i++)
			if (!is_done(&m->p[processor], i) && may_be_performed(walk, m, processor, i))
				perform(walk, m, processor, i);
}

struct model weak_model_start(const struct weak_scope *scope, int broken)
{
	struct model m = { 0 };

	for (int i = 0; i < WORDS; i++)
		m.memory[i] = scope->start[i];
	for (int processor = 0; processor < PROCESSORS; processor++) {
		for (int i = 0; i < ACCESSES; i++) {
			const struct weak_access *a = &scope->programs[processor][i];

			if (a->kind == NO_ACCESS || (is_broken(broken, a) && (is_fence(a) || a->left_out)))
				m.p[processor].done |= (uint16_t)(1u << i);
		}
	}
	return m;
}

bool weak_model_ended(const struct weak_scope *scope, const struct model *m, int processor)
{
	return m->p[processor].done == UINT16_MAX && !m->p[processor].stopped;
}
