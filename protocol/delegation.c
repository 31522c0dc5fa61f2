/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "delegation.h"

#include <assert.h>
#include <string.h>

/* The word. Each step on it is sequentially consistent: what follows it is read after it. */
enum { STATE_MASK = 3, WANTED = 4, LOST = 8, GENERATION_SHIFT = 16 };

_Static_assert(sizeof(struct delegation_slot) == DELEGATION_SLOT_BYTES, "programs of other versions map these");
_Static_assert(sizeof(struct delegation_page) == DELEGATION_PAGE_BYTES, "and as many");

static uint64_t word_of(uint64_t generation, enum delegation_state state)
{
	return generation << GENERATION_SHIFT | state;
}

static enum delegation_state free_or_held(uint64_t word)
{
	return (word & STATE_MASK) == DELEGATION_HELD ? DELEGATION_HELD : DELEGATION_FREE;
}

void delegation_init(struct delegation_page *page)
{
	memset(page, 0, sizeof(*page));
	page->magic = DELEGATION_MAGIC;
	page->version = DELEGATION_VERSION;
}

void delegation_grant(struct delegation_slot *slot, const struct delegation_terms *terms, enum delegation_state state)
{
	assert(state != DELEGATION_NONE && terms->generation > 0 && terms->generation >> (64 - GENERATION_SHIFT) == 0);
	slot->token = terms->token;
	slot->epoch = terms->epoch;
	slot->grant_min_ns = terms->grant_min_ns;
	memcpy(slot->page_id, terms->page_id, sizeof(slot->page_id));
	__atomic_store_n(&slot->word, word_of(terms->generation, state), __ATOMIC_SEQ_CST);
}

/* Nobody but the daemon changes a word with a mark. */
static enum delegation_state mark(struct delegation_slot *slot, uint64_t with)
{
	enum delegation_state was = free_or_held(__atomic_fetch_or(&slot->word, with, __ATOMIC_SEQ_CST));

	if (was == DELEGATION_FREE)
		delegation_end(slot);
	return was;
}

enum delegation_state delegation_recall(struct delegation_slot *slot)
{
	return mark(slot, WANTED);
}

enum delegation_state delegation_lose(struct delegation_slot *slot)
{
	return mark(slot, LOST);
}

void delegation_end(struct delegation_slot *slot)
{
	__atomic_store_n(&slot->word, 0, __ATOMIC_SEQ_CST);
}

struct delegation_view delegation_look(const struct delegation_slot *slot)
{
	return (struct delegation_view){
		.state = free_or_held(__atomic_load_n(&slot->word, __ATOMIC_SEQ_CST)),
		.held_since_ns = __atomic_load_n(&slot->held_since_ns, __ATOMIC_RELAXED),
		.uses = __atomic_load_n(&slot->uses, __ATOMIC_RELAXED),
	};
}

bool delegation_is_page(const struct delegation_page *page)
{
	return page->magic == DELEGATION_MAGIC && page->version == DELEGATION_VERSION;
}

/* The daemon changes the terms only between the end of a delegation and the answer to a LOCK, which this process sent. */
bool delegation_read(const struct delegation_slot *slot, uint64_t after, struct delegation_terms *ret)
{
	uint64_t word = __atomic_load_n(&slot->word, __ATOMIC_SEQ_CST), generation = word >> GENERATION_SHIFT;

	if (generation <= after || word != word_of(generation, DELEGATION_HELD))
		return false;
	*ret = (struct delegation_terms){ .generation = generation,
					  .token = slot->token,
					  .epoch = slot->epoch,
					  .grant_min_ns = slot->grant_min_ns };
	memcpy(ret->page_id, slot->page_id, sizeof(ret->page_id));
	return true;
}

bool delegation_none(const struct delegation_slot *slot)
{
	return __atomic_load_n(&slot->word, __ATOMIC_SEQ_CST) == 0;
}

static bool swap(struct delegation_slot *slot, uint64_t from, uint64_t to)
{
	return __atomic_compare_exchange_n(&slot->word, &from, to, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

bool delegation_take(struct delegation_slot *slot, uint64_t generation)
{
	return swap(slot, word_of(generation, DELEGATION_FREE), word_of(generation, DELEGATION_HELD));
}

bool delegation_holds(const struct delegation_slot *slot, uint64_t generation)
{
	uint64_t word = __atomic_load_n(&slot->word, __ATOMIC_SEQ_CST);

	return (word & ~(uint64_t)WANTED) == word_of(generation, DELEGATION_HELD);
}

bool delegation_stands(const struct delegation_terms *terms, const struct session_page *page,
		       const struct session_view *view, int64_t now_ns, int64_t min_ns)
{
	if (memcmp(terms->page_id, page->id, sizeof(page->id)) != 0 || view->epoch != terms->epoch || view->moved)
		return false;
	if (view->state != SESSION_SAFE && view->state != SESSION_JEOPARDY)
		return false;
	return view->safe_until_ns > now_ns && view->safe_until_ns - now_ns > min_ns;
}

bool delegation_leave(struct delegation_slot *slot, uint64_t generation)
{
	return swap(slot, word_of(generation, DELEGATION_HELD), word_of(generation, DELEGATION_FREE));
}
