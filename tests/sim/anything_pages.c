/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Clients of the mixes "anything" with pages, in a part of the worlds: they ask for a page, offer its slots, take and
 * release delegated locks without checking any proof, and write anything into the page.
 */
#include "anything.h"

#include <stdio.h>

enum { WORLDS_SHARE = 5, FAILS_PERCENT = 10, SLOTS_USED = 8 };
enum { ASKS_PERCENT = 30, OFFERS_PERCENT = 50, OWN_PERCENT = 40, WRITES_PERCENT = 60, HOSTILE_PERCENT = 10 };

bool pages_on(const struct world *w)
{
	return w->seed % WORLDS_SHARE == 2;
}

static void page_due(void *peer, uint64_t turn)
{
	struct any_peer *p = peer;
	struct host *h = p->host;
	struct event e = { .type = EVENT_CLIENT_PAGE, .conn = p->conn };

	if (turn != p->page_turn || !p->on || p->closing || !h->broker || h->dying || !broker_has_client(h->broker, p->conn))
		return;
	if (h->stopped_until > h->w->sched.now) {
		sched_at(&h->w->sched, h->stopped_until, page_due, p, turn);
		return;
	}
	p->has_page = !rng_percent(&h->w->rng, FAILS_PERCENT);
	delegation_init(&p->page);
	e.page.page = p->has_page ? &p->page : NULL;
	e.page.sentence = SLICE("the system has no room");
	host_handle(h, &e);
}

void pages_make(struct host *h, uint32_t conn)
{
	struct any_peer *p = &any_of(h)->peers[conn];

	sched_at(&h->w->sched, h->w->sched.now + rng_between(&h->w->rng, 0, MS), page_due, p, ++p->page_turn);
}

void pages_resume(struct host *h)
{
	struct any_host *a = any_of(h);

	for (int i = 0; i < a->peer_count; i++)
		if (a->peers[i].has_page && a->peers[i].on && broker_has_client(h->broker, (uint32_t)i))
			broker_give_page(h->broker, (uint32_t)i, &a->peers[i].page);
}

/* A name that it wants more often than others, so that it may keep it for a moment. */
static const char *own_name(const struct any_peer *p)
{
	return any_names[(p->host->w->seed + p->conn) % ANY_NAMES];
}

size_t pages_words(struct any_peer *p, struct slice *words, size_t count, size_t max)
{
	struct rng *r = &p->host->w->rng;
	static char number[8];
	int len;

	if (!pages_on(p->host->w))
		return count;
	if (!p->has_page && rng_percent(r, ASKS_PERCENT)) {
		words[0] = p->version == 3 ? SLICE("DELEGATE") : SLICE("HELLO");
		words[1] = SLICE("3");
		return p->version == 3 ? 1 : 2;
	}
	if (p->has_page && rng_percent(r, OWN_PERCENT)) {
		words[0] = SLICE("LOCK");
		words[1] = slice_of(own_name(p));
		count = 2;
	}
	if (count + 2 > max || !slice_eq(words[0], SLICE("LOCK")) || !rng_percent(r, OFFERS_PERCENT))
		return count;
	words[count] = SLICE("SLOT");
	len = snprintf(number, sizeof(number), "%u", 1 + rng_below(r, SLOTS_USED));
	words[count + 1] = (struct slice){ number, (size_t)len };
	return count + 2;
}

bool pages_turn(struct any_peer *p)
{
	struct rng *r = &p->host->w->rng;
	struct delegation_slot *slot;
	uint64_t generation;

	if (!p->has_page || !rng_percent(r, WRITES_PERCENT))
		return false;
	slot = &p->page.slots[rng_below(r, SLOTS_USED)];
	generation = slot->word >> 16;
	slot->uses++;
	if (rng_percent(r, HOSTILE_PERCENT)) {
		slot->word = rng_percent(r, 50) ? rng_below(r, 16) : rng_next(r);
		slot->held_since_ns = (int64_t)rng_next(r);
		slot->uses = rng_next(r);
	} else if (delegation_leave(slot, generation)) {
		p->host->w->stats->left++;
	} else {
		p->host->w->stats->taken += delegation_take(slot, generation);
	}
	return true;
}
