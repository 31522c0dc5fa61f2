/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "client-lib/http/sightings.h"

#include <search.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client-lib/cli/reply_text.h"
#include "client-lib/clock.h"

enum { EVICTIONS_MAX = 64, CHANGE_BYTES_MAX = 1024 };

static const char released[] = "released: no client of this host holds it";
static const char far_released[] = "no other host holds it any longer";

/* ---- the tree ---- */

static int compare(const void *a, const void *b)
{
	return slice_order(*(const struct slice *)a, *(const struct slice *)b);
}

void sightings_init(struct sightings *all)
{
	*all = (struct sightings){ .asked_ms = INT64_MAX };
	TAILQ_INIT(&all->changes);
}

struct sighting *sightings_find(const struct sightings *all, struct slice name)
{
	struct sighting **found = tfind(&name, &all->tree, compare);

	return found ? *found : NULL;
}

bool sighting_is_used(const struct sighting *s)
{
	return s->here || s->far_first || s->hosts_waiting > 0;
}

bool sighting_begins(const struct sighting *s, struct slice prefix)
{
	return s->name.len >= prefix.len && (prefix.len == 0 || memcmp(s->name.data, prefix.data, prefix.len) == 0);
}

static void forget(struct sightings *all, struct sighting *s)
{
	tdelete(&s->name, &all->tree, compare);
	all->count--;
	free(s->first);
	free(s->far_first);
	free(s);
}

static void drop_change(struct sightings *all, struct sighting_change *c)
{
	struct sighting *s = c->sighting;

	TAILQ_REMOVE(&s->changes, c, of_lock);
	TAILQ_REMOVE(&all->changes, c, of_all);
	s->change_count--;
	all->change_count--;
	free(c);
}

static void drop_oldest(struct sightings *all)
{
	struct sighting_change *c = TAILQ_FIRST(&all->changes);
	struct sighting *s = c->sighting;

	drop_change(all, c);
	if (!sighting_is_used(s) && s->change_count == 0)
		forget(all, s);
}

/* NULL: there are too many. */
static struct sighting *find_or_add(struct sightings *all, struct slice name)
{
	struct sighting *s = sightings_find(all, name);

	if (s)
		return s;
	for (int i = 0; i < EVICTIONS_MAX && all->count >= SIGHTINGS_MAX && all->change_count > 0; i++)
		drop_oldest(all);
	if (all->count >= SIGHTINGS_MAX) {
		all->truncated = true;
		return NULL;
	}
	s = calloc(1, sizeof(*s) + name.len);
	if (!s)
		abort();
	memcpy(s->bytes, name.data, name.len);
	s->name = (struct slice){ s->bytes, name.len };
	s->waits_since_ms = s->far_ms = s->asked_ms = s->first_ms = s->shown_ms = INT64_MIN;
	s->grants = s->far_holders = s->hosts_waiting = -1;
	s->grants_per_s = -1;
	TAILQ_INIT(&s->changes);
	if (!tsearch(&s->name, &all->tree, compare))
		abort();
	all->count++;
	return s;
}

struct walk {
	void (*visit)(void *of, struct sighting *s);
	void *of;
};

static void step(const void *node, VISIT which, void *arg)
{
	const struct walk *w = arg;

	if (which == postorder || which == leaf)
		w->visit(w->of, *(struct sighting *const *)node);
}

void sightings_walk(const struct sightings *all, void (*visit)(void *of, struct sighting *s), void *of)
{
	struct walk w = { .visit = visit, .of = of };

	twalk_r(all->tree, step, &w);
}

/* ---- what happened ---- */

static void note(struct sightings *all, struct sighting *s, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
static void note(struct sightings *all, struct sighting *s, const char *format, ...)
{
	char text[CHANGE_BYTES_MAX];
	struct sighting_change *c;
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (s->change_count == SIGHTINGS_CHANGES_MAX)
		drop_change(all, TAILQ_FIRST(&s->changes));
	else if (all->change_count == SIGHTINGS_CHANGES_ALL_MAX)
		drop_change(all, TAILQ_FIRST(&all->changes)); /* not the sighting: somebody may walk along them */
	c = malloc(sizeof(*c) + strlen(text) + 1);
	if (!c)
		abort();
	c->sighting = s;
	c->at_ms = clock_ms(CLOCK_REALTIME);
	memcpy(c->text, text, strlen(text) + 1);
	TAILQ_INSERT_TAIL(&s->changes, c, of_lock);
	TAILQ_INSERT_TAIL(&all->changes, c, of_all);
	s->change_count++;
	all->change_count++;
}

static void note_holder(struct sightings *all, struct sighting *s, const struct sighting_client *c)
{
	char pid[32] = "";

	if (c->pid > 0)
		snprintf(pid, sizeof(pid), "%spid %lld", *c->command ? ", " : "", (long long)c->pid);
	note(all, s, "held %son %s%s%s%s%s%s%s", c->shared ? "shared " : "", c->here ? "this host" : "host ",
	     c->here ? "" : c->host, *c->command || *pid ? " by " : "", c->command, pid, *c->text ? ": " : "", c->text);
}

static bool is_same(const struct sighting_client *a, const struct sighting_client *b)
{
	return a->pid == b->pid && a->token == b->token && strcmp(a->host, b->host) == 0;
}

/* ---- clients ---- */

static bool is_text(struct slice text)
{
	return !memchr(text.data, '\0', text.len);
}

struct sighting_client *sighting_client_new(const struct lb_reply *row, int64_t now_ms)
{
	struct slice name, command, host, text;
	int64_t held = reply_number(row, "held_ms"), age = reply_number(row, "age_ms");
	const struct lb_reply *waited = lb_reply_field(row, "waited_ms");
	struct sighting_client *c;
	char *to;

	if (lb_reply_type(row) != LB_REPLY_MAP)
		return NULL;
	name = reply_field(row, "name");
	command = name.len > 0 && is_text(name) ? name : reply_field(row, "command");
	host = reply_field(row, "host");
	text = reply_field(row, "data");
	c = calloc(1, sizeof(*c) + command.len + host.len + text.len + sizeof("other software") + 3);
	if (!c)
		abort();
	to = c->texts;
	c->host = to;
	to = (char *)mempcpy(to, host.data, host.len) + 1;
	if (host.len == 0)
		to = stpcpy(c->texts, "other software") + 1;
	c->command = to;
	to = (char *)mempcpy(to, command.data, command.len) + 1;
	c->text = to;
	memcpy(to, text.data, text.len);
	c->here = reply_number(row, "client") > 0;
	c->shared = slice_eq(reply_field(row, "mode"), SLICE("shared"));
	c->pid = reply_number(row, "pid");
	c->uid = reply_number(row, "uid");
	c->token = reply_number(row, "token");
	if (waited)
		held = lb_reply_integer(waited);
	c->since_ms = held < 0 ? INT64_MIN : now_ms - held - (age > 0 ? age : 0);
	return c;
}

/* ---- this host ---- */

static void take_rate(struct sighting *s, int64_t grants, int64_t now_ms)
{
	int64_t passed = now_ms - s->grants_ms;

	if (s->grants < 0 || grants < s->grants)
		s->grants_per_s = -1;
	else if (passed >= 500)
		s->grants_per_s = (double)(grants - s->grants) * 1000 / (double)passed;
	else
		return;
	s->grants = grants;
	s->grants_ms = now_ms;
}

/* `now` takes the place of the holder that was known there. NULL: nobody holds it there, and the note has these words. */
static void replace_holder(struct sightings *all, struct sighting *s, struct sighting_client **known,
			   struct sighting_client *now, const char *gone)
{
	if (now && !(*known && is_same(*known, now)))
		note_holder(all, s, now);
	if (!now && *known)
		note(all, s, "%s", gone);
	free(*known);
	*known = now;
}

static void take_first(struct sightings *all, struct sighting *s, const struct lb_reply *row, int64_t now_ms)
{
	replace_holder(all, s, &s->first, sighting_client_new(row, now_ms), released);
}

static void take_waiters(struct sightings *all, struct sighting *s, int64_t waiters)
{
	if (waiters > 0 && s->waiters == 0)
		note(all, s, "%lld of this host wait%s for it", (long long)waiters, waiters == 1 ? "s" : "");
	if (waiters == 0 && s->waiters > 0)
		note(all, s, "nobody of this host waits for it any longer");
	s->waiters = waiters;
}

static void take_counts(struct sightings *all, struct sighting *s, const struct lb_reply *row)
{
	take_waiters(all, s, reply_number(row, "waiters"));
	s->holders = reply_number(row, "holders");
	s->delegated = reply_number(row, "delegated");
	snprintf(s->state, sizeof(s->state), "%.*s", (int)reply_field(row, "state").len,
		 reply_field(row, "state").data);
}

struct sighting *sightings_take_here(struct sightings *all, const struct lb_reply *row, int64_t now_ms)
{
	struct sighting *s = find_or_add(all, reply_field(row, "name"));
	const struct lb_reply *waited = lb_reply_field(row, "waited_ms"), *first = lb_reply_field(row, "first");

	if (!s)
		return NULL;
	s->here = true;
	s->named = all->list;
	s->named_ms = now_ms;
	take_counts(all, s, row);
	if (waited) {
		s->waits_since_ms = s->waiters > 0 ? now_ms - lb_reply_integer(waited) : INT64_MIN;
		take_rate(s, reply_number(row, "grants"), now_ms);
		take_first(all, s, first, now_ms);
	}
	if (!waited && (s->waiters == 0 || s->waits_since_ms == INT64_MIN))
		s->waits_since_ms = s->waiters > 0 ? now_ms : INT64_MIN;
	if (!waited && s->holders == 0 && s->first)
		take_first(all, s, NULL, now_ms);
	return s;
}

struct range {
	struct sightings *all;
	struct slice after, until, prefix;
	uint64_t since;
	int64_t since_ms;
};

static bool is_in(const struct range *r, const struct sighting *s)
{
	return (r->after.len == 0 || slice_order(s->name, r->after) > 0) &&
	       (r->until.len == 0 || slice_order(s->name, r->until) <= 0) && sighting_begins(s, r->prefix);
}

static void end_waits(struct sightings *all, struct sighting *s)
{
	take_waiters(all, s, 0);
	s->waits_since_ms = INT64_MIN;
}

static void leave(struct sightings *all, struct sighting *s)
{
	end_waits(all, s);
	if (s->first || s->holders > 0)
		note(all, s, "%s", released);
	free(s->first);
	s->first = NULL;
	s->here = false;
	s->holders = s->delegated = 0;
	s->grants = -1;
	s->grants_per_s = -1;
	s->state[0] = '\0';
}

/* Lists that were asked for earlier do not end what take_part_here() has seen later; WHY tells nothing about this host. */
static bool is_missing(const struct range *r, const struct sighting *s)
{
	bool later = s->far_ms >= r->all->asked_ms && s->named_ms >= r->all->asked_ms;

	return s->here && s->named < r->since && !later && is_in(r, s);
}

static void end_here(void *of, struct sighting *s)
{
	struct range *r = of;

	if (is_missing(r, s))
		leave(r->all, s);
}

void sightings_end_here(struct sightings *all, uint64_t since, struct slice prefix, struct slice until)
{
	struct range r = { .all = all, .since = since, .prefix = prefix, .until = until };

	sightings_walk(all, end_here, &r);
}

static void end_wait(void *of, struct sighting *s)
{
	struct range *r = of;

	if (is_missing(r, s) && s->waiters > 0)
		end_waits(r->all, s);
}

void sightings_end_waits(struct sightings *all, uint64_t since)
{
	struct range r = { .all = all, .since = since };

	sightings_walk(all, end_wait, &r);
}

/* ---- other hosts ---- */

static void take_holders(struct sightings *all, struct sighting *s, const struct lb_reply *rows, int64_t now_ms)
{
	struct sighting_client *first = NULL;

	s->far_holders = 0;
	for (const struct lb_reply *row = lb_reply_item(rows, 0); row; row = reply_row_after(rows, row)) {
		bool here = reply_number(row, "client") > 0;

		s->far_holders += !here;
		if (!here && !first)
			first = sighting_client_new(row, now_ms);
	}
	replace_holder(all, s, &s->far_first, first, far_released);
	s->far_ms = now_ms;
}

/* What no short list of this host has named. Its own holders come first. */
static void take_part_here(struct sightings *all, struct sighting *s, const struct lb_reply *row, int64_t now_ms)
{
	const struct lb_reply *holders = lb_reply_field(row, "holders"), *first = lb_reply_item(holders, 0);
	int64_t here = (int64_t)lb_reply_count(holders) - s->far_holders, waiters = reply_number(row, "waiters");

	if (s->named == all->list)
		return;
	if (here > 0 && !s->first)
		take_first(all, s, first, now_ms);
	if (here == 0 && waiters == 0)
		return;
	s->named_ms = now_ms;
	s->holders = here;
	take_waiters(all, s, waiters);
	if (s->waits_since_ms == INT64_MIN || waiters == 0)
		s->waits_since_ms = waiters > 0 ? now_ms : INT64_MIN;
	s->here = true;
}

void sightings_take_far(struct sightings *all, const struct lb_reply *row, int64_t now_ms)
{
	struct sighting *s = find_or_add(all, reply_field(row, "name"));
	struct slice kind = reply_field(row, "kind");

	if (!s)
		return;
	snprintf(s->kind, sizeof(s->kind), "%.*s", (int)kind.len, kind.data);
	s->hosts_waiting = reply_number(row, "hosts_waiting");
	take_holders(all, s, lb_reply_field(row, "holders"), now_ms);
	take_part_here(all, s, row, now_ms);
}

void sightings_take_why(struct sightings *all, struct sighting *s, const struct lb_reply *why, int64_t now_ms)
{
	s->hosts_waiting = reply_number(why, "hosts_waiting");
	take_holders(all, s, lb_reply_field(why, "holders"), now_ms);
}

static void end_far(void *of, struct sighting *s)
{
	struct range *r = of;

	if (s->far_ms >= r->since_ms || !is_in(r, s))
		return;
	if (s->here && s->named < r->all->list && s->named_ms < r->since_ms)
		leave(r->all, s);
	replace_holder(r->all, s, &s->far_first, NULL, far_released);
	s->far_ms = INT64_MIN;
	s->far_holders = s->hosts_waiting = -1;
}

void sightings_end_far(struct sightings *all, int64_t since_ms, struct slice after, struct slice until)
{
	struct range r = { .all = all, .after = after, .until = until, .since_ms = since_ms };

	sightings_walk(all, end_far, &r);
}

/* ---- nobody has or wants it ---- */

struct unused {
	struct sightings *all;
	struct sighting **list;
	size_t count, used;
	int64_t since_ms;
};

static void collect(void *of, struct sighting *s)
{
	struct unused *u = of;
	struct range old = { .all = u->all, .since_ms = u->since_ms };

	if (s->far_ms != INT64_MIN)
		end_far(&old, s);
	u->used += sighting_is_used(s);
	if (!sighting_is_used(s) && s->change_count == 0)
		u->list[u->count++] = s;
}

void sightings_sweep(struct sightings *all, int64_t now_ms)
{
	struct unused u = { .all = all,
			    .list = calloc(all->count + 1, sizeof(struct sighting *)),
			    .since_ms = now_ms - SIGHTINGS_FAR_MS };

	if (!u.list)
		abort();
	sightings_walk(all, collect, &u);
	for (size_t i = 0; i < u.count; i++)
		forget(all, u.list[i]);
	free(u.list);
	if (u.used < SIGHTINGS_MAX)
		all->truncated = false;
}
