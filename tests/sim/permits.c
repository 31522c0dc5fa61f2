/*
 * A semaphore, shared by half of the clients of each host. Against the truth of the ensemble: nobody is granted more
 * than the limit, all hosts together; each valid permit has a lease of its host's session; and nothing is left behind.
 */
#include "world.h"

#include "core/contender.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define NAME "sem"

static const char leases[] = "/locks/sem/leases", mutex[] = "/locks/sem/locks";

void permits_init(struct world *w)
{
	int h, i;

	w->permits_limit = rng_between(&w->rng, 1, 5);
	for (h = 0; h < w->host_count; h++)
		for (i = 0; i < w->hosts[h].client_count; i++)
			w->hosts[h].clients[i].permitted = !w->hosts[h].clients[i].auditor && i % 2 == 0;
}

static struct ask ask_for(enum command command, int64_t count)
{
	return (struct ask){ .command = command, .token = count, .wait_ms = -1 };
}

static struct ask acquire(struct caller *c)
{
	struct world *w = c->host->w;
	struct ask a = ask_for(COMMAND_ACQUIRE, rng_between(&w->rng, 1, w->permits_limit));

	/* Who has some and waits for more may wait for somebody who does the same: never for ever. */
	if (c->permits || c->sent || (!w->quiet && rng_percent(&w->rng, 50)))
		a.wait_ms = rng_percent(&w->rng, 40) ? 0 : rng_between(&w->rng, 1, 2000);
	return a;
}

struct ask permits_ask(struct caller *c)
{
	struct rng *r = &c->host->w->rng;
	uint32_t roll = rng_below(r, 100);

	if (c->permits && (c->host->w->quiet || roll < 60))
		return ask_for(COMMAND_RELEASE, c->host->w->quiet ? c->permits : rng_between(r, 1, c->permits + (roll < 5)));
	if (c->host->w->quiet)
		return c->done ? ask_for(COMMAND_COUNT, 0) : acquire(c);
	if (roll < 85)
		return acquire(c);
	return ask_for(roll < 90 ? COMMAND_EVENTS : roll < 95 ? COMMAND_LIMIT : COMMAND_RESET, 0);
}

size_t permits_words(const struct caller *c, const struct ask *a, struct slice *words, char *buffer)
{
	char *limit = buffer, *count = buffer + 24, *wait = buffer + 48;
	size_t n = 0;

	sprintf(limit, "%" PRId64, c->host->w->permits_limit);
	sprintf(count, "%" PRId64, a->token);
	sprintf(wait, "%" PRId64, a->command == COMMAND_EVENTS ? 0 : a->wait_ms);
	words[n++] = slice_of(command_table[a->command].word);
	if (a->command != COMMAND_EVENTS && a->command != COMMAND_RESET)
		words[n++] = SLICE(NAME);
	if (a->command == COMMAND_ACQUIRE) {
		words[n++] = SLICE("LIMIT");
		words[n++] = slice_of(limit);
	}
	if (a->command == COMMAND_ACQUIRE || a->command == COMMAND_RELEASE) {
		words[n++] = SLICE("COUNT");
		words[n++] = slice_of(count);
	}
	if (a->command == COMMAND_EVENTS || a->wait_ms >= 0) {
		words[n++] = SLICE("WAIT");
		words[n++] = slice_of(wait);
	}
	return n;
}

static void bad(struct caller *c, const struct ask *a, struct slice reply, const char *why)
{
	world_fail(c->host->w, -1, "host %d client %u with %" PRId64 " permits: %s of %" PRId64 ": %s: %.*s", c->host->index,
		   c->conn, c->permits, command_table[a->command].word, a->token, why, (int)reply.len, reply.data);
}

static bool begins(struct slice reply, const char *text)
{
	return reply.len >= strlen(text) && memcmp(reply.data, text, strlen(text)) == 0;
}

/* What it gives back in this very event: who gets it may be told before. */
static int64_t letting_go(const struct caller *c)
{
	if (!c->asking)
		return 0;
	if (c->current.command == COMMAND_RESET)
		return c->permits;
	return c->current.command == COMMAND_RELEASE && c->current.token <= c->permits ? c->current.token : 0;
}

/* Those of its clients that are inside what the broker can prove. */
static int64_t valid_permits(const struct host *h)
{
	int64_t count = 0;
	int i;

	if (!h->broker || h->permits_vague || host_now(h) >= broker_safe_until(h->broker))
		return 0;
	for (i = 0; i < h->client_count; i++)
		if (!h->clients[i].permits_lost)
			count += h->clients[i].permits - letting_go(&h->clients[i]);
	return count;
}

/* In the truth. */
static int64_t leases_of(const struct host *h)
{
	struct znode *dir = fakezk_find(&h->w->zk, slice_of(leases), FAKEZK_TRUTH), *n;
	int64_t count = 0;

	if (dir)
		TAILQ_FOREACH(n, &dir->children, sibling)
			count += n->view[FAKEZK_TRUTH].exists && n->session && n->session == h->zk->session;
	return count;
}

static void check_backed(struct host *h, const char *when)
{
	if (valid_permits(h) > leases_of(h))
		world_fail(h->w, -1, "host %d: its clients have %" PRId64 " valid permits, and %s it has %" PRId64 " leases",
			   h->index, valid_permits(h), when, leases_of(h));
}

static void check_order(struct caller *c, const struct ask *a)
{
	int i;

	for (i = 0; i < c->host->client_count; i++) {
		const struct caller *o = &c->host->clients[i];
		const struct ask *b = &o->current;

		if (o == c || !o->asking || b->command != COMMAND_ACQUIRE || b->order > a->order || o->state != CLIENT_ON ||
		    o->half_closed)
			continue;
		if (b->wait_ms >= 0 && b->asked_at + b->wait_ms * MS <= c->host->w->sched.now)
			continue; /* it is on its way out */
		world_fail(c->host->w, -1, "host %d: client %u got permits before client %u, which asked earlier",
			   c->host->index, c->conn, o->conn);
	}
}

/* All hosts together, and who is no host. */
static int64_t all_valid(const struct world *w)
{
	int64_t all = permits_guest_holds(&w->guest);
	int h;

	for (h = 0; h < w->host_count; h++)
		all += valid_permits(&w->hosts[h]);
	return all;
}

void permits_check_guest(struct world *w)
{
	if (all_valid(w) > w->permits_limit)
		world_fail(w, -1, "somebody else takes a permit, and there are %" PRId64 " then", all_valid(w));
}

static void granted(struct caller *c, const struct ask *a, struct slice reply)
{
	struct host *h = c->host;
	struct world *w = h->w;

	if (c->permits_lost || strtoll(reply.data + 1, NULL, 10) != c->permits + a->token)
		bad(c, a, reply, "not that many");
	c->permits += a->token;
	c->done = c->done || w->quiet;
	w->stats->permits++;
	check_order(c, a);
	if (!h->conf.standalone && host_now(h) + h->conf.grant_min_ns >= broker_safe_until(h->broker))
		bad(c, a, reply, "not proven for long enough");
	if ((h->conf.standalone ? valid_permits(h) : all_valid(w)) > w->permits_limit)
		bad(c, a, reply, "more than the limit are held");
	if (!h->conf.standalone)
		check_backed(h, "when one is granted");
}

static void lost(struct caller *c, const struct ask *a, struct slice reply)
{
	if (!c->permits_lost && !c->host->permits_vague)
		bad(c, a, reply, "nothing was lost");
	c->permits = 0;
	c->permits_lost = false;
}

static void acquire_answered(struct caller *c, const struct ask *a, struct slice reply)
{
	if (begins(reply, ":"))
		granted(c, a, reply);
	else if (begins(reply, "-LOST"))
		lost(c, a, reply);
	else if (begins(reply, "-DEADLOCK") && c->permits + a->token <= c->host->w->permits_limit)
		bad(c, a, reply, "it does not wait for itself");
	else if (!begins(reply, "$-1") && !begins(reply, "-DEADLOCK") && !begins(reply, "-LIMIT") &&
		 !begins(reply, "-UNAVAILABLE") && !begins(reply, "-DRAINING"))
		bad(c, a, reply, "unexpected");
	if (begins(reply, "$-1") && a->wait_ms > 0 && !c->half_closed &&
	    a->asked_at + a->wait_ms * MS > c->host->w->sched.now)
		bad(c, a, reply, "before its time");
}

static void release_answered(struct caller *c, const struct ask *a, struct slice reply)
{
	if (begins(reply, "-LOST")) {
		lost(c, a, reply);
	} else if (begins(reply, "-NOTHELD")) {
		if (c->permits >= a->token)
			bad(c, a, reply, "it has them");
	} else {
		if (!begins(reply, ":") || strtoll(reply.data + 1, NULL, 10) != c->permits - a->token || c->permits_lost)
			bad(c, a, reply, "not what is left");
		c->permits -= a->token;
	}
}

static void limit_answered(struct caller *c, const struct ask *a, struct slice reply)
{
	if (begins(reply, ":") && strtoll(reply.data + 1, NULL, 10) != c->host->w->permits_limit)
		bad(c, a, reply, "another limit");
	else if (!begins(reply, ":") && !begins(reply, "$-1") && !begins(reply, "-UNAVAILABLE"))
		bad(c, a, reply, "unexpected");
}

void permits_answered(struct caller *c, const struct ask *a, struct slice reply)
{
	if (a->command == COMMAND_ACQUIRE)
		acquire_answered(c, a, reply);
	else if (a->command == COMMAND_RELEASE)
		release_answered(c, a, reply);
	else if (a->command == COMMAND_LIMIT)
		limit_answered(c, a, reply);
	else if (a->command == COMMAND_EVENTS)
		told_event(c, reply);
	else
		caller_let_go(c);
}

bool permits_told_lost(struct caller *c, struct slice name)
{
	if (!slice_eq(name, SLICE(NAME)))
		return false;
	if (!c->permits_lost && !c->host->permits_vague)
		world_fail(c->host->w, -1, "host %d client %u: told that its permits are lost, and they are not", c->host->index,
			   c->conn);
	c->permits = 0;
	c->permits_lost = false;
	return true;
}

void permits_check_deleted(struct world *w, const struct znode *n, enum zk_cause cause)
{
	int h;

	if (!n->parent || n->parent->len != sizeof(leases) - 1 || memcmp(n->parent->path, leases, sizeof(leases) - 1) != 0)
		return;
	for (h = 0; h < w->host_count; h++)
		if (w->hosts[h].broker && w->hosts[h].zk->session && w->hosts[h].zk->session == n->session) {
			w->hosts[h].permits_vague |= cause == ZK_BY_OPERATOR;
			check_backed(&w->hosts[h], "one of its leases gone");
		}
}

static struct znode *choose(struct world *w, const char *path)
{
	struct znode *dir = fakezk_find(&w->zk, slice_of(path), FAKEZK_TRUTH), *n, *chosen = dir;
	int count = 0;

	if (dir)
		TAILQ_FOREACH(n, &dir->children, sibling)
			if (n->view[FAKEZK_TRUTH].exists && rng_below(&w->rng, (uint32_t)++count) == 0)
				chosen = n;
	return chosen;
}

static void delete_one(struct world *w)
{
	struct znode *n = choose(w, rng_percent(&w->rng, 60) ? leases : mutex);

	if (!n)
		return;
	w->stats->operations++;
	fakezk_operate(&w->zk, EFFECT_ZK_DELETE, (struct slice){ n->path, n->len }, (struct slice){ 0 });
}

static void make_orphan(struct world *w)
{
	struct host *h = &w->hosts[rng_below(&w->rng, (uint32_t)w->host_count)];
	struct zsession *s = h->broker ? h->zk->session : NULL;
	struct txn create = { .origin = -1, .request = EFFECT_ZK_CREATE, .session = s };
	bool lease = rng_percent(&w->rng, 60);
	struct bytes path = { 0 };

	if (!s || !s->alive || w->zk.leader < 0)
		return;
	bytes_text(&path, lease ? leases : mutex);
	bytes_char(&path, '/');
	contender_name(&path, (struct contender_id){ s->id, 0xffffffffff0000 | (w->orphan_count++ & 0xffff) },
		       lease ? FLAVOUR_LEASES : FLAVOUR_MUTEX, MODE_EXCLUSIVE);
	fakezk_write(&w->zk, create, bytes_view(&path), (struct slice){ 0 }, ZK_EPHEMERAL_SEQUENTIAL, ZK_BY_OPERATOR);
	bytes_free(&path);
}

static void operator_acts(void *world, uint64_t argument)
{
	struct world *w = world;

	(void)argument;
	if (w->quiet)
		return;
	sched_at(&w->sched, w->sched.now + rng_between(&w->rng, 1, w->mix->operator_every_ms * 2) * MS, operator_acts, w, 0);
	if (rng_percent(&w->rng, 50))
		delete_one(w);
	else
		make_orphan(w);
}

void permits_start(struct world *w)
{
	if (w->mix->permits && w->mix->foreign_every_ms)
		permits_guest_start(w);
	if (w->mix->permits && w->mix->operator_every_ms)
		sched_at(&w->sched, w->sched.now + SECOND, operator_acts, w, 0);
}

static void check_empty(struct world *w, const char *path)
{
	struct znode *dir = fakezk_find(&w->zk, slice_of(path), FAKEZK_TRUTH), *n;

	if (dir)
		TAILQ_FOREACH(n, &dir->children, sibling)
			if (n->view[FAKEZK_TRUTH].exists)
				world_fail(w, -1, "nobody wants %s, and it is still there", n->path);
}

void permits_check_end(struct world *w)
{
	check_empty(w, mutex);
	check_empty(w, leases);
}
