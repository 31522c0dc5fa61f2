/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A semaphore, shared by half of the clients of each host. It is checked against the truth of the ensemble: all
 * hosts together never have more permits than the limit; each valid permit has a lease of its host's session; and
 * nothing is left behind.
 */
#include "world.h"

#include "core/znode/contender.h"

#include <inttypes.h>
#include <stdlib.h>

#define NAME "sem"

#define SEMAPHORE "/locks/sem"

static const char leases[] = SEMAPHORE "/leases", mutex[] = SEMAPHORE "/locks";

/* In ordinary weather some worlds have it, chosen without the run's random numbers: the others are what they would be. */
void permits_init(struct world *w)
{
	uint64_t roll = w->seed * 0x9e3779b97f4a7c15u >> 33;
	int h, i;

	if (!w->mix->permits && (w->mix->steps || w->mix->restore_every_ms || roll % 5))
		return;
	w->permits_limit = w->mix->permits ? rng_between(&w->rng, 1, 5) : (int64_t)(1 + roll / 5 % 5);
	w->permits_most = w->permits_limit;
	for (h = 0; h < w->host_count; h++)
		for (i = 0; i < w->hosts[h].client_count; i++)
			w->hosts[h].clients[i].permitted = !w->hosts[h].clients[i].auditor && i % (w->mix->permits ? 2 : 4) == 0;
}

bool permits_turn(struct caller *c)
{
	struct world *w = c->host->w;

	if (!w->permits_limit || c->permitted || c->auditor)
		return c->permitted;
	if (w->quiet)
		return c->permits.count > 0;
	return rng_percent(&w->rng, c->permits.count ? 50 : 15);
}

static struct ask ask_for(enum command command, int64_t count)
{
	return (struct ask){ .command = command, .token = count, .wait_ms = -1, .target = -1, .owner = -1,
			     .permits = command != COMMAND_EVENTS && command != COMMAND_RESET && command != COMMAND_HELLO };
}

/* What the directory says in the truth; 0: nothing. */
static int64_t agreed(struct world *w)
{
	struct znode *dir = fakezk_find(&w->zk, SLICE(SEMAPHORE), FAKEZK_TRUTH);
	const struct zdata *data = dir ? dir->view[FAKEZK_TRUTH].data : NULL;
	const char *at = data ? memmem(data->bytes, data->len, "\nlimit=", 7) : NULL;

	return at ? strtoll(at + 7, NULL, 10) : 0;
}

static bool holds_or_waits(const struct caller *c)
{
	int i;

	for (i = 0; i < LOCKS_MAX; i++)
		if (c->holding[i].held || c->wait[i].on)
			return true;
	return c->permits.count > 0;
}

static int64_t lease_choose(struct world *w)
{
	return rng_percent(&w->rng, 70) ? rng_between(&w->rng, 1, 80) : rng_between(&w->rng, 80, w->timeout / MS);
}

static struct ask acquire(struct caller *c)
{
	struct world *w = c->host->w;
	int64_t limit = agreed(w) ? agreed(w) : w->permits_limit;
	struct ask a = ask_for(COMMAND_ACQUIRE, rng_between(&w->rng, 1, limit));

	a.limit = limit;
	/* Where a deadlock could stay who holds something never waits for ever. */
	if ((!ask_is_watched(c->host) && (holds_or_waits(c) || c->sent)) || (!w->quiet && rng_percent(&w->rng, 50)))
		a.wait_ms = rng_percent(&w->rng, 40) ? 0 : rng_between(&w->rng, 1, 2000);
	if (!w->quiet && rng_percent(&w->rng, 30))
		a.lease_ms = lease_choose(w);
	return a;
}

/* Standalone each host would have its own. */
static struct ask limit_ask(struct caller *c)
{
	struct world *w = c->host->w;
	struct ask a = ask_for(COMMAND_LIMIT, 0);

	/* Nor where deadlocks are looked for: who waits with the limit of before can still go on. */
	if (w->mix->standalone || ask_is_watched(c->host) || !rng_percent(&w->rng, 25))
		return a;
	a.limit = rng_between(&w->rng, 1, 5);
	w->limits_asked = true;
	if (caller_is_operator(c) && a.limit > w->permits_most)
		w->permits_most = a.limit;
	return a;
}

static struct ask other_ask(struct caller *c)
{
	static const enum command others[] = {
		COMMAND_EVENTS, COMMAND_EVENTS, COMMAND_LIMIT, COMMAND_LIMIT, COMMAND_RESET, COMMAND_RENEW, COMMAND_VALID,
		COMMAND_HOLDERS, COMMAND_QUEUE, COMMAND_WHY, COMMAND_REVOKE, COMMAND_FORCEUNLOCK,
	};
	struct rng *r = &c->host->w->rng;
	struct ask a = ask_for(others[rng_below(r, sizeof(others) / sizeof(others[0]))], 0);

	if (a.command == COMMAND_RENEW)
		a.lease_ms = lease_choose(c->host->w);
	if (a.command == COMMAND_EVENTS)
		a.wait_ms = 0;
	if (a.command == COMMAND_FORCEUNLOCK && rng_percent(r, 50))
		a.command = COMMAND_REVOKE;
	if (a.command == COMMAND_FORCEUNLOCK)
		c->host->w->permit_forces++;
	return a.command == COMMAND_LIMIT ? limit_ask(c) : a;
}

struct ask permits_ask(struct caller *c)
{
	struct rng *r = &c->host->w->rng;
	uint32_t roll = rng_below(r, 100);
	int64_t has = c->permits.count;

	if (c->permitted && c->id == 0 && c->wants_pushes && !c->hellos_sent && roll % 4 == 0)
		return ask_for(COMMAND_HELLO, 3);
	if (has && (c->host->w->quiet || roll < 60))
		return ask_for(COMMAND_RELEASE, c->host->w->quiet ? has : rng_between(r, 1, has + (roll < 5)));
	if (c->host->w->quiet)
		return c->done ? ask_for(COMMAND_COUNT, 0) : acquire(c);
	return roll < 85 ? acquire(c) : other_ask(c);
}

size_t permits_words(const struct caller *c, const struct ask *a, struct slice *words, char *buffer)
{
	size_t n = 0;

	(void)c;
	words[n++] = slice_of(command_table[a->command].word);
	words[n++] = SLICE(NAME);
	if (a->command == COMMAND_RENEW)
		words[n++] = ask_put_number(&buffer, a->lease_ms);
	if (a->command == COMMAND_ACQUIRE)
		words[n++] = SLICE("LIMIT");
	if (a->limit)
		words[n++] = ask_put_number(&buffer, a->limit);
	if (a->command == COMMAND_ACQUIRE || a->command == COMMAND_RELEASE) {
		words[n++] = SLICE("COUNT");
		words[n++] = ask_put_number(&buffer, a->token);
	}
	if (a->command == COMMAND_ACQUIRE && a->lease_ms) {
		words[n++] = SLICE("LEASE");
		words[n++] = ask_put_number(&buffer, a->lease_ms);
	}
	if (a->command == COMMAND_ACQUIRE && a->wait_ms >= 0) {
		words[n++] = SLICE("WAIT");
		words[n++] = ask_put_number(&buffer, a->wait_ms);
	}
	return n;
}

static void bad(struct caller *c, const struct ask *a, struct slice reply, const char *why)
{
	world_fail(c->host->w, -1, "host %d client %u with %" PRId64 " permits: %s of %" PRId64 ": %s: %.*s", c->host->index,
		   c->conn, c->permits.count, command_table[a->command].word, a->token, why, (int)reply.len, reply.data);
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
	if (c->current.command == COMMAND_RESET || c->current.command == COMMAND_QUIT)
		return c->permits.count;
	return c->current.command == COMMAND_RELEASE && c->current.token <= c->permits.count ? c->current.token : 0;
}

/* Those of its clients that are inside what its broker can prove. */
static int64_t valid_permits(const struct host *h)
{
	int64_t count = 0;
	int i;

	if (!h->broker || h->permits_vague || host_now(h) >= broker_safe_until(h->broker))
		return 0;
	for (i = 0; i < h->client_count; i++)
		if (!h->clients[i].permits.lost)
			count += h->clients[i].permits.count - letting_go(&h->clients[i]);
	return count;
}

/* In the truth. */
static int64_t slots_of(const struct host *h)
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
	if (valid_permits(h) > slots_of(h))
		world_fail(h->w, -1, "host %d: its clients have %" PRId64 " valid permits, and %s it has %" PRId64 " leases",
			   h->index, valid_permits(h), when, slots_of(h));
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
	struct permits *p = &c->permits;
	struct host *h = c->host;
	struct world *w = h->w;
	int64_t end = a->lease_ms ? w->sched.now + a->lease_ms * MS : INT64_MAX;

	if (p->lost || strtoll(reply.data + 1, NULL, 10) != p->count + a->token)
		bad(c, a, reply, "not that many");
	p->lease_until = p->count && p->lease_until > end ? p->lease_until : end;
	p->count += a->token;
	c->done = c->done || w->quiet;
	w->stats->permits++;
	check_order(c, a);
	if (!h->conf.standalone && host_now(h) + h->conf.grant_min_ns >= broker_safe_until(h->broker))
		bad(c, a, reply, "not proven for long enough");
	if ((h->conf.standalone ? valid_permits(h) : all_valid(w)) > w->permits_most)
		bad(c, a, reply, "more than the limit are held");
	if (!h->conf.standalone)
		check_backed(h, "when one is granted");
}

/* A loss of this client that it was not told of. */
static bool may_be_lost(const struct caller *c)
{
	return c->permits.lost || c->host->permits_vague;
}

static void lost(struct caller *c, const struct ask *a, struct slice reply)
{
	if (!may_be_lost(c))
		bad(c, a, reply, "nothing was lost");
	c->permits = (struct permits){ 0 };
}

static bool ended_early(const struct caller *c, const struct ask *a)
{
	return a->wait_ms > 0 && !c->half_closed && c->unblocked_at < a->asked_at &&
	       a->asked_at + a->wait_ms * MS > c->host->w->sched.now;
}

static void acquire_answered(struct caller *c, const struct ask *a, struct slice reply)
{
	bool none = begins(reply, "$-1") || begins(reply, "_");

	if (begins(reply, ":"))
		granted(c, a, reply);
	else if (begins(reply, "-LOST"))
		lost(c, a, reply);
	else if (begins(reply, "-DEADLOCK this client waits for "))
		deadlock_answered(c, a, reply);
	else if (begins(reply, "-DEADLOCK") && c->permits.count + a->token <= a->limit)
		bad(c, a, reply, "it does not wait for itself");
	else if (begins(reply, "-MISMATCH") && !c->host->w->limits_asked)
		bad(c, a, reply, "nobody ever changed the limit");
	else if (!none && !begins(reply, "-DEADLOCK") && !begins(reply, "-LIMIT") && !begins(reply, "-MISMATCH") &&
		 !begins(reply, "-UNAVAILABLE") && !begins(reply, "-DRAINING"))
		bad(c, a, reply, "unexpected");
	if (none && ended_early(c, a))
		bad(c, a, reply, "before its time");
}

static void release_answered(struct caller *c, const struct ask *a, struct slice reply)
{
	if (begins(reply, "-LOST")) {
		lost(c, a, reply);
	} else if (begins(reply, "-NOTHELD")) {
		if (c->permits.count >= a->token)
			bad(c, a, reply, "it has them");
	} else {
		if (!begins(reply, ":") || strtoll(reply.data + 1, NULL, 10) != c->permits.count - a->token || c->permits.lost)
			bad(c, a, reply, "not what is left");
		c->permits.count -= a->token;
		if (!c->permits.count)
			c->permits = (struct permits){ 0 };
	}
}

static void limit_answered(struct caller *c, const struct ask *a, struct slice reply)
{
	struct world *w = c->host->w;
	int64_t limit = begins(reply, ":") ? strtoll(reply.data + 1, NULL, 10) : 0;

	if (begins(reply, "-DENIED")) {
		if (!a->limit || caller_is_operator(c))
			bad(c, a, reply, "an operator may");
	} else if (limit) {
		if (limit > w->permits_most || (limit != w->permits_limit && !w->limits_asked) || (a->limit && limit != a->limit))
			bad(c, a, reply, "another limit");
	} else if (!begins(reply, "$-1") && !begins(reply, "_") && !begins(reply, "-UNAVAILABLE")) {
		bad(c, a, reply, "unexpected");
	}
}

static void renew_answered(struct caller *c, const struct ask *a, struct slice reply)
{
	struct permits *p = &c->permits;

	if (begins(reply, ":1")) {
		if (!p->count || p->lost)
			bad(c, a, reply, "it has none");
		p->lease_until = c->host->w->sched.now + a->lease_ms * MS;
		c->host->w->stats->renewals++;
	} else if (begins(reply, "-LOST")) {
		lost(c, a, reply);
	} else if (!begins(reply, "-NOTHELD") || p->count) {
		bad(c, a, reply, p->count ? "it has some" : "unexpected");
	}
}

static void valid_answered(struct caller *c, const struct ask *a, struct slice reply)
{
	const struct permits *p = &c->permits;
	int64_t ms = begins(reply, ":") ? strtoll(reply.data + 1, NULL, 10) : -1, left = INT64_MAX;

	if (!c->host->conf.standalone)
		left = host_proven_ns(c->host);
	if (p->count && p->lease_until != INT64_MAX && p->lease_until - c->host->w->sched.now < left)
		left = p->lease_until - c->host->w->sched.now;
	if (ms < 0 || (ms > 0 && (!p->count || p->lost)) || (ms > 0 && ms > left / MS))
		bad(c, a, reply, "longer than it is proven or leased");
	if (ms == 0 && p->count && !may_be_lost(c) && left / MS > 1)
		bad(c, a, reply, "they are valid");
}

static void revocation_answered(struct caller *c, const struct ask *a, struct slice reply)
{
	bool denied = a->command == COMMAND_FORCEUNLOCK && !caller_is_operator(c);

	if (denied != begins(reply, "-DENIED"))
		bad(c, a, reply, "an operator may, and nobody else");
	if (!denied && !begins(reply, ":") && !begins(reply, "-UNAVAILABLE") && !begins(reply, "-LIMIT") &&
	    (a->command == COMMAND_FORCEUNLOCK || !begins(reply, "-ERR")))
		bad(c, a, reply, "unexpected");
}

void permits_answered(struct caller *c, const struct ask *a, struct slice reply)
{
	switch ((int)a->command) {
	case COMMAND_ACQUIRE:
		acquire_answered(c, a, reply);
		break;
	case COMMAND_RELEASE:
		release_answered(c, a, reply);
		break;
	case COMMAND_LIMIT:
		limit_answered(c, a, reply);
		break;
	case COMMAND_RENEW:
		renew_answered(c, a, reply);
		break;
	case COMMAND_VALID:
		valid_answered(c, a, reply);
		break;
	case COMMAND_REVOKE:
	case COMMAND_FORCEUNLOCK:
		revocation_answered(c, a, reply);
		break;
	case COMMAND_HOLDERS:
	case COMMAND_QUEUE:
	case COMMAND_WHY:
		if (!begins(reply, "-UNAVAILABLE") && !begins(reply, "*") && !begins(reply, "%"))
			bad(c, a, reply, "it always has an answer");
	}
}

bool permits_told_lost(struct caller *c, struct slice name, struct slice reason, bool pushed)
{
	struct permits *p = &c->permits;
	bool lease = slice_eq(reason, SLICE("lease"));

	if (!slice_eq(name, SLICE(NAME)))
		return false;
	/* Who took them says so in the log, once all are told. */
	p->lost = p->lost || (p->count && c->host->w->permit_forces && slice_eq(reason, SLICE("forced")));
	if (!may_be_lost(c) || (lease != p->by_lease && !p->cut_short && !c->host->permits_vague))
		world_fail(c->host->w, -1, "host %d client %u: told that its permits are lost (%.*s), and they are not",
			   c->host->index, c->conn, (int)reason.len, reason.data);
	c->host->w->stats->losses++;
	c->host->w->stats->leases_ended += lease;
	if (pushed)
		p->lost = p->pushed = p->count > 0;
	else
		*p = (struct permits){ 0 };
	return true;
}

void permits_forced(struct host *h, struct slice text)
{
	int i;

	if (!h->w->permit_forces)
		world_fail(h->w, -1, "host %d: permits are taken by force, which nobody wanted", h->index);
	if (memmem(text.data, text.len, " from 0 holders", 15))
		return;
	h->w->stats->forced++;
	for (i = 0; i < h->client_count; i++) {
		struct caller *c = &h->clients[i];

		if (forced_spared(c, SLICE("sem")))
			continue;
		if (permits_valid(c) && c->protocol == 3 && c->state == CLIENT_ON)
			world_fail(h->w, -1, "host %d client %u: its permits were taken by force and nothing was pushed",
				   h->index, c->conn);
		c->permits.lost = c->permits.count > 0;
	}
}

void permits_void(struct caller *c)
{
	c->permits.lost = c->permits.count > 0;
}

void permits_end_due(struct caller *c)
{
	struct permits *p = &c->permits;

	if (p->count && !p->lost && p->lease_until <= c->host->w->sched.now)
		p->lost = p->by_lease = true;
}

bool permits_valid(const struct caller *c)
{
	return c->permits.count && !may_be_lost(c) && !check_resetting(c);
}

void permits_check_told(struct caller *c)
{
	const struct permits *p = &c->permits;
	const struct host *h = c->host;

	if (p->count && p->lost && !p->pushed && c->protocol == 3 && c->state == CLIENT_ON && !h->permits_vague &&
	    !check_resetting(c))
		world_fail(h->w, -1, "host %d client %u: its permits are void and nothing was pushed", h->index, c->conn);
	if (!permits_valid(c))
		return;
	if (broker_deadline(h->broker) - h->offset > p->lease_until)
		world_fail(h->w, -1, "host %d: the timer comes after the end of the lease of permits", h->index);
	if (!h->conf.standalone && valid_permits(h) && !h->holds[c->conn])
		world_fail(h->w, -1, "host %d client %u: has permits and is not in the table of holders", h->index, c->conn);
}

void permits_check_deleted(struct world *w, const struct znode *n, enum zk_by cause)
{
	int h;

	if (!n->parent || n->parent->len != sizeof(leases) - 1 || memcmp(n->parent->path, leases, sizeof(leases) - 1) != 0)
		return;
	for (h = 0; h < w->host_count; h++)
		if (n->session && check_host_of(w, n->session) == &w->hosts[h]) {
			w->hosts[h].permits_vague |= cause == ZK_BY_OPERATOR || check_is_forced(w, n);
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
	contender_name(&path, s->id, 0xffffffffff0000 | (w->stray_count++ & 0xffff),
		       lease ? FLAVOUR_SLOTS : FLAVOUR_MUTEX, MODE_EXCLUSIVE);
	fakezk_write(&w->zk, create, bytes_view(&path), (struct slice){ 0 }, ZK_EPHEMERAL_SEQUENTIAL, ZK_BY_OPERATOR);
	bytes_free(&path);
}

/* What the first said of the limit is gone. */
static void overwrite(struct world *w)
{
	w->stats->operations++;
	w->limit_overwritten = true;
	fakezk_operate(&w->zk, EFFECT_ZK_SET, SLICE(SEMAPHORE), SLICE("x"));
}

static void operator_acts(void *world, uint64_t argument)
{
	struct world *w = world;

	(void)argument;
	if (w->quiet)
		return;
	sched_at(&w->sched, w->sched.now + rng_between(&w->rng, 1, w->mix->operator_every_ms * 2) * MS, operator_acts, w, 0);
	if (rng_percent(&w->rng, 15))
		overwrite(w);
	else if (!w->mix->orphan_every_ms || rng_percent(&w->rng, 50))
		delete_one(w);
	else
		make_orphan(w);
}

void permits_start(struct world *w)
{
	/* It does not notice when its turn is deleted, and waits for room with its lease against who has the next. */
	if (w->permits_limit && w->mix->foreign_every_ms && !w->mix->operator_every_ms)
		permits_guest_start(w);
	if (w->permits_limit && w->mix->operator_every_ms)
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
