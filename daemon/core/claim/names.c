/* SPDX-License-Identifier: Apache-2.0 */
#include "core/claim/names.h"

#include <assert.h>

#include "base/mem.h"
#include "core/claim/directories.h"
#include "core/port/pools.h"

static const int64_t NS_PER_S = 1000000000;
/* Those who wait are looked at this often: there may be as many as there may be locks. */
static const int64_t LOOK_NS = 100000000;

enum { MADE_FIRST = 64 };

static const struct broker_limits *limits(const struct directories *all)
{
	return &all->env->conf->limits;
}

/* ---- the bucket ---- */

static void put(struct names *n, const struct charge *c)
{
	if (n->count == n->cap) {
		size_t cap = n->cap ? 2 * n->cap : MADE_FIRST;
		struct charge *made = mem_new_array(cap, sizeof(*made));

		for (size_t i = 0; i < n->count; i++)
			made[i] = n->made[(n->first + i) % n->cap];
		mem_free(n->made);
		n->made = made;
		n->cap = cap;
		n->first = 0;
	}
	n->made[(n->first + n->count++) % n->cap] = *c;
}

static void give_back_oldest(struct names *n)
{
	charge_give_back(&n->made[n->first], POOL_NAMES);
	n->first = (n->first + 1) % n->cap;
	n->count--;
}

/* True: some room was made. */
static bool drain(struct directories *all)
{
	struct names *n = &all->names;
	int64_t each_ns = NS_PER_S / (int64_t)limits(all)->new_names_per_s, now_ns = all->env->now_ns;
	bool any = false;

	for (; n->count && n->drained_ns + each_ns <= now_ns; n->drained_ns += each_ns) {
		give_back_oldest(n);
		any = true;
	}
	if (!n->count)
		n->drained_ns = now_ns;
	return any;
}

static bool pay(struct directory *d)
{
	struct directories *all = d->directories;
	struct charge charge = { 0 };

	if (!charge_try(&charge, d->payer, POOL_NAMES, 1, d->privileged))
		return false;
	put(&all->names, &charge);
	return true;
}

/* ---- those who wait ---- */

static void leave(struct directory *d, enum naming_state state)
{
	struct names *n = &d->directories->names;

	if (d->naming.state == NAMING_WAITS) {
		TAILQ_REMOVE(&n->queue, d, naming.link);
		n->waiting--;
	}
	d->naming.state = state;
}

static void serve(struct directories *all)
{
	struct directory *d, *after;

	/* What is paid for while nothing can be made would be made all at once. */
	if (!all->ensemble->session.connected)
		return;
	TAILQ_FOREACH_SAFE(d, &all->names.queue, naming.link, after) {
		if (limits(all)->new_names_per_s && !pay(d))
			continue;
		leave(d, NAMING_PAID);
		directory_touch(d);
	}
}

/* The first one is woken for all. */
static void arm(struct directories *all)
{
	struct directory *first = TAILQ_FIRST(&all->names.queue);
	int64_t now_ns = all->env->now_ns, due_ns = now_ns;

	if (!first)
		return;
	if (limits(all)->new_names_per_s) {
		int64_t each_ns = NS_PER_S / (int64_t)limits(all)->new_names_per_s;

		due_ns = all->names.drained_ns + (each_ns > LOOK_NS ? each_ns : LOOK_NS);
	}
	/* Without a connection nobody is served, and a reconnection has all of them settled. */
	if (due_ns <= now_ns && (limits(all)->new_names_per_s || !all->ensemble->session.connected))
		due_ns = now_ns + LOOK_NS;
	heap_set_by(&all->env->timers, &first->timer, due_ns);
}

/* Somebody else may have looked at the bucket and made room: whether it is empty counts, too. */
static void serve_if_room(struct directories *all)
{
	if (!limits(all)->new_names_per_s || drain(all) || !all->names.count)
		serve(all);
	arm(all);
}

bool names_take(struct directory *d)
{
	struct directories *all = d->directories;
	struct names *n = &all->names;

	if (!limits(all)->new_names_per_s || d->naming.state == NAMING_PAID) {
		leave(d, NAMING_NONE);
		all->env->stats.names_total++;
		return true;
	}
	serve_if_room(all);
	if (d->naming.state == NAMING_NONE && pay(d)) {
		all->env->stats.names_total++;
		return true;
	}
	if (d->naming.state == NAMING_NONE) {
		d->naming.state = NAMING_WAITS;
		TAILQ_INSERT_TAIL(&n->queue, d, naming.link);
		n->waiting++;
		all->env->stats.names_delayed_total++;
	}
	arm(all);
	directory_touch(d);
	return false;
}

bool names_continue(struct directory *d)
{
	serve_if_room(d->directories);
	return d->naming.state == NAMING_WAITS;
}

const char *names_refusal(const struct directory *d)
{
	return pools_refusal(d->directories->env, d->payer, POOL_NAMES, d->privileged);
}

void names_forget(struct directory *d)
{
	leave(d, NAMING_NONE);
	arm(d->directories);
}

size_t names_count(struct directories *all)
{
	while (!limits(all)->new_names_per_s && all->names.count)
		give_back_oldest(&all->names);
	if (all->names.count)
		drain(all);
	return all->names.count;
}

void names_init(struct directories *all)
{
	TAILQ_INIT(&all->names.queue);
	all->names.drained_ns = all->env->now_ns;
}

void names_deinit(struct directories *all)
{
	struct names *n = &all->names;

	assert(TAILQ_EMPTY(&n->queue));
	while (n->count)
		give_back_oldest(n);
	mem_free(n->made);
}
