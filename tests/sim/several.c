/* SPDX-License-Identifier: Apache-2.0 */
/* MLOCK and MUNLOCK. While an MLOCK is under way only its broker knows what it has taken. */
#include "world.h"

#include <stdio.h>
#include <stdlib.h>

static bool has(const struct ask *a, int lock)
{
	return a->several & 1U << lock;
}

static bool is_unknown(const struct caller *c, int lock)
{
	return !ask_may_touch(c, lock) || (c->wait[lock].on && !rng_percent(&c->host->w->rng, 10));
}

static bool choose(struct caller *c, struct ask *a, enum command command, bool held)
{
	struct world *w = c->host->w;
	int lock;

	for (lock = 0; lock < w->lock_count; lock++)
		if (!w->election[lock] && !is_unknown(c, lock) && (!held || c->holding[lock].held) && rng_percent(&w->rng, 70))
			a->several |= 1U << lock;
	if (!a->several)
		return false;
	a->command = command;
	a->target = (int)rng_below(&w->rng, 2);
	return true;
}

/* Its order is that of the names, not that of LOCKs without a limit: between hosts that could be a deadlock. */
bool several_choose(struct caller *c, struct ask *a)
{
	if (!choose(c, a, COMMAND_MLOCK, false))
		return false;
	if (a->wait_ms < 0 && !ask_is_watched(c->host))
		a->wait_ms = rng_between(&c->host->w->rng, 1, 2000);
	return true;
}

/* Now and then one is among them that it does not hold. */
bool several_choose_unlock(struct caller *c, struct ask *a)
{
	return choose(c, a, COMMAND_MUNLOCK, !rng_percent(&c->host->w->rng, 10));
}

size_t several_words(const struct world *w, const struct ask *a, struct slice *words, char **buffer)
{
	size_t n = 1;
	int i, lock;

	for (i = 0; i < w->lock_count; i++) {
		lock = a->target ? w->lock_count - 1 - i : i;
		if (has(a, lock))
			words[n++] = slice_of(w->lock_name[lock]);
	}
	words[0] = ask_put_number(buffer, (int64_t)n - 1);
	return n;
}

bool several_asked(const struct caller *c, int lock)
{
	return c->asking && c->current.command == COMMAND_MLOCK && has(&c->current, lock);
}

bool several_asked_by_any(const struct host *h, int lock)
{
	int i;

	for (i = 0; i < h->client_count; i++)
		if (several_asked(&h->clients[i], lock))
			return true;
	return false;
}

void several_forget(struct caller *c, const struct ask *a)
{
	struct host *h = c->host;
	int lock;

	for (lock = 0; lock < h->w->lock_count; lock++) {
		if (!has(a, lock))
			continue;
		h->read_at_step[lock] = 0; /* who stood behind it was not at the front */
		h->wanted_at[lock] = h->moved_at[lock] = h->w->sched.now;
		check_forget_last(h, lock);
	}
}

/* The lock that the sentence names at its end. */
static int named(struct caller *c, const struct ask *a, struct slice reply)
{
	const struct world *w = c->host->w;
	int lock;

	for (lock = 0; lock < w->lock_count; lock++) {
		size_t len = strlen(w->lock_name[lock]);

		if (has(a, lock) && reply.len > len + 4 && reply.data[reply.len - len - 3] == ' ' &&
		    memcmp(reply.data + reply.len - len - 2, w->lock_name[lock], len) == 0)
			return lock;
	}
	answer_bad(c, a, reply, "it names none of them");
	return -1;
}

static void lost(struct caller *c, const struct ask *a, struct slice reply)
{
	struct holding *g = &c->holding[named(c, a, reply)];

	if (!g->held || (!g->lost && !holding_unsure(g)))
		answer_bad(c, a, reply, "nothing was lost");
	*g = (struct holding){ 0 };
}

/* Nothing is taken, and a loss of any of them would have been told first. */
static void held(struct caller *c, const struct ask *a, struct slice reply)
{
	struct ask one = *a;
	int lock;

	for (lock = 0; lock < c->host->w->lock_count; lock++)
		if (has(a, lock) && c->holding[lock].lost && !holding_unsure(&c->holding[lock]))
			answer_bad(c, a, reply, "the loss of one was not told");
	one.lock = named(c, a, reply);
	held_answered(c, &one, reply);
}

static void taken(struct caller *c, const struct ask *a, struct slice reply, int64_t token)
{
	struct holding *g = &c->holding[a->lock];

	if (g->held && !g->lost && token == g->token) {
		if (g->shared && !a->shared)
			answer_bad(c, a, reply, "an upgrade");
		holding_reentered(c, a);
		return;
	}
	if (g->held)
		answer_bad(c, a, reply, "granted before the loss was told, or another token than the grant's");
	check_late_grant(c, a, token);
	*g = holding_granted(c, a, token);
}

static void released(struct caller *c, const struct ask *a, struct slice reply, int64_t depth)
{
	struct holding *g = &c->holding[a->lock];

	if (!g->held || g->lost || depth != g->depth - 1)
		answer_bad(c, a, reply, "it does not hold that");
	g->depth--;
	if (depth == 0)
		*g = (struct holding){ 0 };
}

/* An integer for each, in the order of asking. */
static void all(struct caller *c, const struct ask *a, struct slice reply)
{
	struct world *w = c->host->w;
	const char *at = reply.data, *end = reply.data + reply.len;
	int i;

	for (i = 0; i < w->lock_count; i++) {
		struct ask one = *a;

		one.lock = a->target ? w->lock_count - 1 - i : i;
		if (!has(a, one.lock))
			continue;
		at = memchr(at, ':', (size_t)(end - at));
		if (!at)
			answer_bad(c, a, reply, "not one for each");
		if (a->command == COMMAND_MLOCK)
			taken(c, &one, reply, strtoll(++at, NULL, 10));
		else
			released(c, &one, reply, strtoll(++at, NULL, 10));
	}
	w->stats->several_granted += a->command == COMMAND_MLOCK;
	c->done = c->done || (w->quiet && a->command == COMMAND_MLOCK);
}

/* It queued for one of them, and that is no part of an MLOCK. */
static bool is_queued(const struct caller *c, const struct ask *a)
{
	int lock;

	for (lock = 0; lock < c->host->w->lock_count; lock++)
		if (has(a, lock) && c->wait[lock].on)
			return true;
	return false;
}

/* It holds one of them shared, and wants it exclusively. */
static bool is_upgrade(const struct caller *c, const struct ask *a)
{
	int lock;

	for (lock = 0; lock < c->host->w->lock_count; lock++)
		if (has(a, lock) && c->holding[lock].held && !c->holding[lock].lost && c->holding[lock].shared)
			return a->reenter && !a->shared;
	return false;
}

static void not_taken(struct caller *c, const struct ask *a, struct slice reply)
{
	if (answer_begins(reply, "-DEADLOCK this client waits for "))
		deadlock_answered(c, a, reply);
	else if (answer_begins(reply, "-DEADLOCK") ? !is_upgrade(c, a) :
		 answer_begins(reply, "-ERR") || is_queued(c, a) ? !answer_begins(reply, "-ERR") || !is_queued(c, a) :
		 !answer_begins(reply, "*-1") && !answer_begins(reply, "_") && !answer_begins(reply, "-LIMIT") &&
		 !answer_begins(reply, "-UNAVAILABLE") && !answer_begins(reply, "-DRAINING") &&
		 !answer_begins(reply, "-MISMATCH"))
		answer_bad(c, a, reply, "unexpected");
}

void several_answered(struct caller *c, const struct ask *a, struct slice reply)
{
	int lock;

	c->host->w->stats->several++;
	several_forget(c, a);
	if (answer_begins(reply, "*") && !answer_begins(reply, "*-1")) {
		if (a->command == COMMAND_MLOCK && is_queued(c, a))
			answer_bad(c, a, reply, "it has queued for one of them");
		all(c, a, reply);
	} else if (answer_begins(reply, "-LOST")) {
		lost(c, a, reply);
	} else if (a->command == COMMAND_MLOCK && answer_begins(reply, "-HELD")) {
		held(c, a, reply);
	} else if (a->command == COMMAND_MLOCK) {
		not_taken(c, a, reply);
	} else {
		lock = answer_begins(reply, "-NOTHELD") ? named(c, a, reply) : -1;
		if (lock < 0 || c->holding[lock].held)
			answer_bad(c, a, reply, "it does hold it, or was not told of the loss");
	}
}

void several_check_left(const struct host *h)
{
	int i, lock;

	for (i = 0; i < h->client_count; i++) {
		const struct caller *c = &h->clients[i];
		bool any = c->state != CLIENT_ON || (c->asking && c->current.command == COMMAND_MLOCK);

		for (lock = 0; lock < h->w->lock_count; lock++)
			any = any || c->permits.count || c->holding[lock].held || c->wait[lock].on || delegations_keep(c, lock);
		if (!any && h->holds[c->conn])
			world_fail(h->w, -1, "host %d client %u: it is told of nothing, and its broker holds something for it",
				   h->index, c->conn);
	}
}
