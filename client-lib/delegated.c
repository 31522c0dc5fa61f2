/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "delegated.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "request.h"

enum {
	OFTEN = 3,              /* the page is asked for when a name is asked for so often */
	LISTEN_NS = 1000000000, /* a handle that sends nothing looks so often at what it is sent */
};

static bool is_of(const struct delegated *s, const char *name)
{
	return s->name && strcmp(s->name, name) == 0;
}

/* The entry of that name, and its slot in the page; NULL: there is no entry, or no page. */
static struct delegated *find(struct delegations *d, const char *name, struct delegation_slot **ret_slot)
{
	struct delegation_page *page = delegations_page(d);
	unsigned i = d->latest;

	if (!page)
		return NULL;
	if (!is_of(&d->slots[i], name))
		for (i = 0; i < DELEGATION_SLOTS; i++)
			if (is_of(&d->slots[i], name))
				break;
	if (i == DELEGATION_SLOTS)
		return NULL;
	*ret_slot = &page->slots[i];
	return &d->slots[i];
}

/* ---- the page ---- */

/* A daemon that cannot or will not is not asked again on this connection. */
static void ask_for_page(struct lb *lb)
{
	struct delegations *d = &lb->delegations;
	const struct slice word = SLICE("DELEGATE");
	int64_t slots;
	enum lb_result r;

	lb->takes_fd = true;
	r = request_ask_integer(lb, 1, &word, &slots);
	lb->takes_fd = false;
	if (lb->taken_fd >= 0) {
		if (r == LB_OK && slots == DELEGATION_SLOTS)
			delegations_map(d, lb->taken_fd);
		close(lb->taken_fd);
		lb->taken_fd = -1;
	}
	d->refused = !d->page;
}

static uint32_t hash(const char *name)
{
	uint32_t h = 2166136261;

	for (; *name; name++)
		h = (h ^ (unsigned char)*name) * 16777619;
	return h;
}

/* A guess, which costs a page if it is wrong. */
static bool asked_often(struct delegations *d, const char *name)
{
	uint32_t h = hash(name), i = h % DELEGATED_ASKED;

	if (d->asked[i].hash != h)
		d->asked[i].times = 0;
	d->asked[i].hash = h;
	return ++d->asked[i].times >= OFTEN;
}

/* ---- slots ---- */

static void name_slot(struct delegated *s, const char *name)
{
	free(s->name);
	s->name = strdup(name);
	if (!s->name)
		abort();
	s->held = false;
	s->terms.token = 0;
}

unsigned delegated_prepare(struct lb *lb, const char *name)
{
	struct delegations *d = &lb->delegations;
	struct delegation_page *page = delegations_page(d);
	struct delegation_slot *slot;
	struct delegated *s;

	if (d->off)
		return 0;
	if (!page) {
		if (!d->offered || d->refused || lb->fd < 0 || !asked_often(d, name))
			return 0;
		ask_for_page(lb);
		page = d->page;
		if (!page)
			return 0;
	}
	s = find(d, name, &slot);
	if (s)
		return (unsigned)(s - d->slots) + 1;
	for (unsigned i = 0; i < DELEGATION_SLOTS; i++) {
		if (!delegation_none(&page->slots[i]))
			continue;
		name_slot(&d->slots[i], name);
		return i + 1;
	}
	return 0;
}

void delegated_read(struct lb *lb, unsigned slot, bool shared, int64_t token)
{
	struct delegations *d = &lb->delegations;
	struct delegation_page *page = delegations_page(d);
	struct delegated *s;

	if (!page)
		return;
	s = &d->slots[slot - 1];
	s->held = delegation_read(&page->slots[slot - 1], s->terms.generation, &s->terms) && s->terms.token == token;
	if (!s->held)
		return;
	s->shared = shared;
	d->latest = slot - 1;
	holdings_delegated(&lb->holdings, slice_of(s->name), token, s->terms.epoch);
}

/* ---- taking and leaving ---- */

/* As delegation.h has it: the word again, the session page, the clock, in this order. */
static bool stands(struct lb *lb, const struct delegated *s, struct delegation_slot *slot, int64_t min_ns)
{
	const struct session_page *session = lb->holdings.page;
	struct session_view view;

	if (!session || !delegation_holds(slot, s->terms.generation) || !session_page_read(session, &view))
		return false;
	lb->delegations.now_ns = request_clock_ns();
	return delegation_stands(&s->terms, session, &view, lb->delegations.now_ns, min_ns);
}

/*
 * The daemon may have closed the connection, and a program that never reads its events makes the daemon do so. After a
 * pause that may be long ago, and another daemon grants the lock.
 */
static bool has_to_listen(struct delegations *d)
{
	if (d->now_ns - d->heard_ns < LISTEN_NS)
		return false;
	d->heard_ns = d->now_ns;
	return true;
}

bool delegated_is_heard(struct lb *lb, int64_t now_ns)
{
	lb->delegations.now_ns = now_ns;
	return !has_to_listen(&lb->delegations);
}

/* Undone by message: its answer tells nothing that matters, since nothing was done under that grant. */
static enum lb_result give_back(struct lb *lb, const char *name)
{
	const struct slice words[] = { SLICE("UNLOCK"), slice_of(name) };
	int64_t depth;

	return request_ask_integer(lb, 2, words, &depth) == LB_CONNECTION ? LB_CONNECTION : LB_NONE;
}

enum lb_result delegated_take(struct lb *lb, const char *name, bool shared, int64_t *ret_token)
{
	struct delegations *d = &lb->delegations;
	struct delegation_slot *slot;
	struct delegated *s = find(d, name, &slot);
	bool stood;

	/* An unlock that failed is told by the next call that locks: only a message brings its answer. */
	if (!s || d->off || lb->unlocks > 0 || lb->late_error.len > 0)
		return LB_NONE;
	if (s->held || s->shared != shared || !delegation_take(slot, s->terms.generation))
		return LB_NONE;
	stood = stands(lb, s, slot, s->terms.grant_min_ns);
	if (!stood || has_to_listen(d)) {
		if (!delegation_leave(slot, s->terms.generation))
			return give_back(lb, name);
		/* What it is told is about what it does not hold. If the connection has ended, the page is gone. */
		return stood && request_read_events(lb) == LB_OK ? delegated_take(lb, name, shared, ret_token) : LB_NONE;
	}
	__atomic_store_n(&slot->held_since_ns, d->now_ns, __ATOMIC_RELAXED);
	__atomic_store_n(&slot->uses, slot->uses + 1, __ATOMIC_RELAXED);
	s->held = true;
	d->latest = (unsigned)(s - d->slots);
	holdings_delegated(&lb->holdings, slice_of(s->name), s->terms.token, s->terms.epoch);
	if (ret_token)
		*ret_token = s->terms.token;
	return LB_OK;
}

enum lb_result delegated_leave(struct lb *lb, const char *name, bool *ret_wait)
{
	struct delegations *d = &lb->delegations;
	struct delegation_slot *slot;
	struct delegated *s = find(d, name, &slot);

	*ret_wait = s && s->held;
	if (!*ret_wait)
		return LB_NONE;
	/* Whatever comes of it: it is left now, or released by message. */
	s->held = false;
	if (!stands(lb, s, slot, 0) || (has_to_listen(d) && request_read_events(lb) != LB_OK))
		return LB_NONE;
	if (!holdings_once(&lb->holdings, slice_of(name), s->terms.token) || !delegation_leave(slot, s->terms.generation))
		return LB_NONE;
	holdings_leave(&lb->holdings, slice_of(name));
	return LB_OK;
}

bool delegated_holds(struct lb *lb, const char *name)
{
	struct delegation_slot *slot;
	const struct delegated *s = find(&lb->delegations, name, &slot);

	return s && s->held && delegation_holds(slot, s->terms.generation);
}

void lb_set_delegation(struct lb *lb, int on)
{
	lb->delegations.off = !on;
}
