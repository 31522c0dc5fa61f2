/* SPDX-License-Identifier: Apache-2.0 */
#include "core/claim/names.h"

#include <assert.h>

#include "base/mem.h"
#include "core/claim/directories.h"

/* The first directory of each line is looked at this often. */
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

static uint64_t first_number(const struct names_line *line)
{
	return TAILQ_FIRST(&line->queue)->naming.number;
}

static struct names_line *line_of(struct names *n, struct account *a, bool privileged)
{
	struct names_line *line;

	TAILQ_FOREACH(line, &n->lines, link)
		if (line->account == a && line->privileged == privileged)
			return line;
	line = mem_new(sizeof(*line));
	line->account = a;
	line->privileged = privileged;
	a->references++;
	TAILQ_INIT(&line->queue);
	TAILQ_INSERT_TAIL(&n->lines, line, link); /* its first directory has come last */
	return line;
}

static void enter(struct directory *d)
{
	struct names *n = &d->directories->names;

	d->naming.state = NAMING_WAITS;
	d->naming.line = line_of(n, d->payer, d->privileged);
	d->naming.number = ++n->last;
	TAILQ_INSERT_TAIL(&d->naming.line->queue, d, naming.link);
	n->waiting++;
}

/* The line's first directory has left: the line moves to the place of its next one, or ends. */
static void move(struct names *n, struct names_line *line)
{
	struct names_line *after = TAILQ_NEXT(line, link);

	TAILQ_REMOVE(&n->lines, line, link);
	if (TAILQ_EMPTY(&line->queue)) {
		account_leave(line->account);
		mem_free(line);
		return;
	}
	while (after && first_number(after) < first_number(line))
		after = TAILQ_NEXT(after, link);
	if (after)
		TAILQ_INSERT_BEFORE(after, line, link);
	else
		TAILQ_INSERT_TAIL(&n->lines, line, link);
}

static void step_out(struct directory *d)
{
	struct names *n = &d->directories->names;
	struct names_line *line = d->naming.line;
	bool was_first = TAILQ_FIRST(&line->queue) == d;

	TAILQ_REMOVE(&line->queue, d, naming.link);
	d->naming.line = NULL;
	n->waiting--;
	if (was_first)
		move(n, line);
}

static void leave(struct directory *d, enum naming_state state)
{
	if (d->naming.state == NAMING_WAITS)
		step_out(d);
	d->naming.state = state;
}

void names_follow(struct directory *d)
{
	const struct names_line *line = d->naming.line;

	if (d->naming.state != NAMING_WAITS || (line->account == d->payer && line->privileged == d->privileged))
		return;
	step_out(d);
	enter(d);
}

/* The bucket only fills up during this look, so an account that was refused once stays refused until the next look. */
static void serve(struct directories *all)
{
	struct names *n = &all->names;
	struct names_line *refused = NULL, *line; /* all lines up to this one were refused */
	size_t served = 0;

	n->more = false;
	/* What is paid for while nothing can be made would be made all at once. */
	if (!all->ensemble->session.connected)
		return;
	while ((line = refused ? TAILQ_NEXT(refused, link) : TAILQ_FIRST(&n->lines))) {
		struct directory *d = TAILQ_FIRST(&line->queue);

		if (served == NAMES_MOST) {
			n->more = true;
			return;
		}
		if (limits(all)->new_names_per_s && !pay(d)) {
			refused = line;
			continue;
		}
		leave(d, NAMING_PAID);
		directory_touch(d);
		served++;
	}
}

/* The first one is woken for all. */
static void arm(struct directories *all)
{
	const struct names_line *line = TAILQ_FIRST(&all->names.lines);
	int64_t now_ns = all->env->now_ns, due_ns = now_ns;
	bool goes_on = all->names.more && all->ensemble->session.connected;

	if (!line)
		return;
	if (limits(all)->new_names_per_s && !goes_on) {
		int64_t each_ns = NS_PER_S / (int64_t)limits(all)->new_names_per_s;

		due_ns = all->names.drained_ns + (each_ns > LOOK_NS ? each_ns : LOOK_NS);
	}
	/* Without a connection nobody is served, and a reconnection has all of them settled. */
	if (due_ns <= now_ns && !goes_on && (limits(all)->new_names_per_s || !all->ensemble->session.connected))
		due_ns = now_ns + LOOK_NS;
	heap_set_by(&all->env->timers, &TAILQ_FIRST(&line->queue)->timer, due_ns);
}

/* Somebody else may have looked at the bucket and made room: whether it is empty counts, too. */
static void serve_if_room(struct directories *all)
{
	if (!limits(all)->new_names_per_s || drain(all) || !all->names.count || all->names.more)
		serve(all);
	arm(all);
}

/* Names that came earlier and may go on, too, are served first. */
static bool is_paid_for(struct directory *d)
{
	struct directories *all = d->directories;

	drain(all);
	if (d->naming.state == NAMING_NONE && !all->names.waiting)
		return pay(d);
	if (d->naming.state == NAMING_NONE)
		enter(d);
	serve(all);
	return d->naming.state == NAMING_PAID;
}

bool names_take(struct directory *d)
{
	struct directories *all = d->directories;
	bool came_now = d->naming.state == NAMING_NONE;
	const char *refusal = lasting_refusal(d);

	if (refusal) {
		directory_fail(d, FAILED_ALL, ERROR_LIMIT, refusal);
		names_forget(d);
		return false;
	}
	if (!limits(all)->new_names_per_s || d->naming.state == NAMING_PAID || is_paid_for(d)) {
		leave(d, NAMING_NONE);
		all->env->stats.names_total++;
		return true;
	}
	if (d->naming.state == NAMING_NONE)
		enter(d);
	all->env->stats.names_delayed_total += came_now;
	arm(all);
	directory_touch(d);
	return false;
}

bool names_continue(struct directory *d)
{
	serve_if_room(d->directories);
	return d->naming.state == NAMING_WAITS;
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
	TAILQ_INIT(&all->names.lines);
	all->names.drained_ns = all->env->now_ns;
}

void names_deinit(struct directories *all)
{
	struct names *n = &all->names;

	assert(TAILQ_EMPTY(&n->lines));
	while (n->count)
		give_back_oldest(n);
	mem_free(n->made);
}
