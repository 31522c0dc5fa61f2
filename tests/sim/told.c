/* SPDX-License-Identifier: Apache-2.0 */
/* Events that clients get: under RESP3 as pushes at once, under RESP2 late, as answers of EVENTS. */
#include "world.h"

#include <inttypes.h>
#include <stdlib.h>

enum { ITEMS_MAX = 5 };

struct told {
	int lock;  /* that it names; -1 */
	size_t count;
	struct slice item[ITEMS_MAX];
};

static struct slice line_next(struct slice *rest)
{
	const char *end = memmem(rest->data, rest->len, "\r\n", 2);
	struct slice line = { rest->data, end ? (size_t)(end - rest->data) : rest->len };

	*rest = end ? (struct slice){ end + 2, rest->len - line.len - 2 } : (struct slice){ 0 };
	return line;
}

/* An array or push of bulk strings and integers. */
static struct told parse(const struct world *w, struct slice text)
{
	struct told t = { .lock = -1 };
	int i;

	line_next(&text);
	while (text.len && t.count < ITEMS_MAX) {
		struct slice line = line_next(&text);

		t.item[t.count++] = line.len && line.data[0] == '$' ? line_next(&text) : line;
	}
	for (i = 0; i < w->lock_count; i++)
		if (t.count > 1 && slice_eq(t.item[1], slice_of(w->lock_name[i])))
			t.lock = i;
	return t;
}

static void bad_event(const struct caller *c, const struct told *t, const char *why)
{
	world_fail(c->host->w, t->lock, "host %d client %u: told %.*s %.*s: %s", c->host->index, c->conn,
		   (int)t->item[0].len, t->item[0].data, (int)t->item[1].len, t->item[1].data, why);
}

static int64_t token_of(const struct caller *c, const struct told *t)
{
	if (t->count < 3 || t->item[2].len < 2 || t->item[2].data[0] != ':')
		bad_event(c, t, "no token");
	return strtoll(t->item[2].data + 1, NULL, 10);
}

static void told_lost(struct caller *c, const struct told *t, bool pushed)
{
	struct holding *g = &c->holding[t->lock];

	if (!g->held && delegations_may_lose(c, t->lock)) {
		*g = (struct holding){ .held = true, .lost = true, .pushed = true, .token = token_of(c, t) };
		return;
	}
	/* Who took it says so in the log, once all are told. */
	if (c->host->w->forces[t->lock] && t->count == 4 && slice_eq(t->item[3], SLICE("forced")) && g->held)
		g->lost = true;
	if (!g->held || (!g->lost && !holding_unsure(g)) || token_of(c, t) != g->token)
		bad_event(c, t, "nothing was lost");
	if (t->count != 4 || (!holding_unsure(g) && !g->cut_short && slice_eq(t->item[3], SLICE("lease")) != g->by_lease))
		bad_event(c, t, "for another reason");
	c->host->w->stats->losses++;
	c->host->w->stats->leases_ended += slice_eq(t->item[3], SLICE("lease"));
	if (pushed)
		g->lost = g->pushed = true;
	else
		*g = (struct holding){ 0 };
}

/* The queued wait that the event ends. */
static struct wait ended(struct caller *c, const struct told *t)
{
	struct wait was = c->wait[t->lock];

	if (!was.on)
		bad_event(c, t, "and it does not wait for it");
	c->wait[t->lock].on = false;
	return was;
}

void told_late(struct holding *g)
{
	g->vague = true;
	g->lease_until = INT64_MAX;
}

static void told_granted(struct caller *c, const struct told *t)
{
	struct holding *g = &c->holding[t->lock];
	struct wait was = ended(c, t);
	int64_t token = token_of(c, t);

	c->host->w->stats->queued_grants++;
	if (g->held) {
		if (token != g->token || (g->lost && !was.blind))
			bad_event(c, t, "another token than the grant's, or before its loss was told");
		holding_reentered(c, &was.ask);
		if (was.blind)
			told_late(g);
		return;
	}
	if (was.blind)
		check_forget_last(c->host, t->lock);
	else
		check_grant(c, &was.ask, token);
	*g = holding_granted(c, &was.ask, token);
	if (was.blind)
		told_late(g);
}

static void told_timeout(struct caller *c, const struct told *t)
{
	struct wait was = ended(c, t);

	c->host->read_at_step[t->lock] = 0; /* who stood behind it was not at the front */
	if (!c->half_closed && (was.ask.wait_ms < 0 || was.ask.asked_at + was.ask.wait_ms * MS > c->host->w->sched.now))
		bad_event(c, t, "before its time");
	c->host->w->stats->timeouts++;
}

static void told_failed(struct caller *c, const struct told *t)
{
	static const char *const codes[] = { "UNAVAILABLE", "MISMATCH", "LIMIT", "DRAINING" };
	size_t i = 0;

	ended(c, t);
	c->host->read_at_step[t->lock] = 0;
	while (i < 4 && (t->count != 4 || !slice_eq(t->item[2], slice_of(codes[i]))))
		i++;
	if (i == 4)
		bad_event(c, t, "no error it may get");
	c->host->w->stats->failures++;
}

static void told(struct caller *c, struct slice text, bool pushed)
{
	struct told t = parse(c->host->w, text);
	bool names;

	if (t.count == 0)
		return;
	if (slice_eq(t.item[0], SLICE("lost")) && t.count == 4 &&
	    permits_told_lost(c, t.item[1], t.item[3], pushed))
		return;
	names = slice_eq(t.item[0], SLICE("lost")) || slice_eq(t.item[0], SLICE("granted")) ||
		slice_eq(t.item[0], SLICE("timeout")) || slice_eq(t.item[0], SLICE("failed"));
	if (names && t.lock < 0)
		bad_event(c, &t, "no lock of ours");
	if (names)
		c->host->wanted_at[t.lock] = c->host->moved_at[t.lock] = c->host->w->sched.now;
	if (slice_eq(t.item[0], SLICE("jeopardy")) || slice_eq(t.item[0], SLICE("safe")))
		c->jeopardy = slice_eq(t.item[0], SLICE("jeopardy"));
	if (slice_eq(t.item[0], SLICE("lost")))
		told_lost(c, &t, pushed);
	else if (slice_eq(t.item[0], SLICE("granted")))
		told_granted(c, &t);
	else if (slice_eq(t.item[0], SLICE("timeout")))
		told_timeout(c, &t);
	else if (slice_eq(t.item[0], SLICE("failed")))
		told_failed(c, &t);
	else if (slice_eq(t.item[0], SLICE("leader")) && t.count == 5)
		elections_told(c, t.lock, token_of(c, &t), t.item[3], t.item[4]);
	else if (slice_eq(t.item[0], SLICE("unobserved")) && t.lock >= 0)
		c->watching[t.lock] = (struct watching){ 0 };
}

void told_pushed(struct caller *c, struct slice push)
{
	if (c->protocol != 3 || push.len == 0 || push.data[0] != '>')
		world_fail(c->host->w, -1, "host %d client %u: not a push it may get: %.*s", c->host->index, c->conn,
			   (int)push.len, push.data);
	told(c, push, true);
}

void told_event(struct caller *c, struct slice reply)
{
	bool none = reply.len >= 3 && memcmp(reply.data, "*-1", 3) == 0;

	if (c->protocol == 3) {
		if (reply.len < 4 || memcmp(reply.data, "-ERR", 4) != 0)
			world_fail(c->host->w, -1, "EVENTS under RESP3: %.*s", (int)reply.len, reply.data);
		return;
	}
	if (reply.len == 0 || reply.data[0] != '*')
		world_fail(c->host->w, -1, "EVENTS: %.*s", (int)reply.len, reply.data);
	if (!none)
		told(c, reply, false);
}
