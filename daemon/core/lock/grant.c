/* SPDX-License-Identifier: Apache-2.0 */
#include "core/lock/grant.h"

#include <assert.h>

#include "base/mem.h"
#include "core/lock/bearer.h"
#include "core/lock/hold.h"
#include "core/lock/lock_ledger.h"
#include "core/lock/take_back.h"

const char *loss_word(enum loss loss)
{
	static const char *const words[] = {
		[LOSS_SESSION] = "session", [LOSS_DELETED] = "deleted", [LOSS_LEASE] = "lease",
		[LOSS_LIMIT] = "limit",     [LOSS_FORCED] = "forced",
	};

	return words[loss];
}

/* Thousands may hold one lock, and one client may hold thousands: the search takes the shorter list. */
struct grant *grant_find(const struct lock *lock, const struct client *client)
{
	struct grant *g, *lost = NULL;

	if (client->grant_count < lock->grant_count) {
		TAILQ_FOREACH(g, &client->grants, client_link) {
			if (g->lock == lock && !g->lost)
				return g;
			lost = g->lock == lock ? g : lost;
		}
		return lost;
	}
	TAILQ_FOREACH(g, &lock->grants, link)
		if (g->client == client)
			return g;
	TAILQ_FOREACH(g, &lock->lost, link)
		if (g->client == client)
			return g;
	return NULL;
}

/* The adapter needs nothing about a closed client, and nothing in standalone mode. */
static void tell_adapter(struct client *c)
{
	struct effect *e;

	if (c->bearer) {
		bearer_holds(c, c->is_holder);
		return;
	}
	if (c->locks->env->conf->standalone)
		return;
	if (c->locks->conns[c->conn] != c)
		return;
	e = effects_add(c->locks->env->out, EFFECT_HOLDER);
	e->conn = c->conn;
	e->holds = c->is_holder;
}

/* The client's grants changed: without any it is no holder, and not in jeopardy. */
static inline void grants_changed(struct client *c)
{
	bool holds = c->grant_count > c->lost_count;

	if (c->is_holder == holds)
		return;
	c->is_holder = holds;
	tell_adapter(c);
	if (holds)
		return;
	c->told_jeopardy = false;
	notification_drop(c, c->session_notification);
}

static inline void link_up(struct grant *g)
{
	struct lock *lock = g->lock;
	struct client *client = g->client;

	TAILQ_INSERT_TAIL(g->lost ? &lock->lost : &lock->grants, g, link);
	TAILQ_INSERT_TAIL(&client->grants, g, client_link);
	lock->locks->grant_count++;
	client->grant_count++;
	client->counted += g->counted;
	if (g->lost) {
		client->lost_count++;
		lock->locks->lost_count++;
	} else {
		lock->grant_count++;
	}
}

void grant_add(struct grant *g)
{
	struct account *a = g->client->account;

	link_up(g);
	if (g->counted)
		charge_add(a, POOL_GRANTS, 1);
	g->lock->mixed |= a != g->lock->charge.account;
}

void grant_new(struct request *r, enum mode mode, int64_t token)
{
	struct client *client = r->client;
	struct lock *lock = r->lock;
	struct locks *locks = lock->locks;
	struct grant *g = mem_new_spared(&locks->spare_grant, offsetof(struct grant, delegated_link), sizeof(*g));

	assert(session_grants(lock->locks->ensemble)); /* nothing is granted without proof */
	assert(token >= lock->token);                  /* a later grant never has a smaller token */
	lock->token = token;
	lock->granted++;
	g->client = client;
	g->lock = lock;
	g->mode = mode;
	g->depth = 1;
	g->token = token;
	g->granted_ns = locks->env->now_ns;
	g->asked_ns = r->asked_ns;
	bytes_move(&g->before, &lock->directory.before);
	g->lease.kind = TIMER_LEASE;
	bytes_move(&g->data, &r->data);
	g->counted = true;
	assert(r->place); /* it is the grant's from now on */
	r->place = false;
	link_up(g);
	hold_watch(g);
	grants_changed(client);
	locks->env->stats.grants_total++;
	/* First: a bearer's grant that is found without a lease would have no end, if nothing else has one for it. */
	if (r->lease_ns)
		grant_renew(g, r->lease_ns);
	grant_ledger_begin(g);
}

void grant_renew(struct grant *g, int64_t lease_ns)
{
	struct locks *locks = g->lock->locks;

	assert(!g->lost && lease_ns > 0);
	heap_set(&locks->env->timers, &g->lease, locks->env->now_ns + lease_ns);
	grant_ledger_change(g);
}

int64_t grant_lease_rest_ns(const struct grant *g)
{
	return g->lease.place ? g->lease.due_ns - g->lock->locks->env->now_ns : INT64_MAX;
}

void grant_extend(struct grant *g, int64_t lease_ns)
{
	if (!lease_ns)
		heap_unset(&g->lock->locks->env->timers, &g->lease);
	else if (lease_ns > grant_lease_rest_ns(g))
		grant_renew(g, lease_ns);
	grant_ledger_change(g);
}

void grant_set_depth(struct grant *g, int64_t depth)
{
	g->depth = depth;
	grant_ledger_change(g);
}

void grant_downgrade(struct grant *g)
{
	g->mode = MODE_SHARED;
	grant_ledger_change(g);
}

void grant_reenter(struct grant *g, int64_t lease_ns, struct slice data)
{
	assert(!g->lost);
	g->depth++;
	g->lock->locks->env->stats.reentries_total++;
	grant_extend(g, lease_ns);
	if (data.len) {
		bytes_set(&g->data, data);
		grant_ledger_write(g);
		if (g->lock->directory.claim)
			g->lock->directory.claim->holder_token = 0; /* the written data are not true any longer */
		directory_touch(lock_held(g->lock));
	}
}

/* It does not count against the limits of its client and user any longer. */
static void uncount(struct grant *g)
{
	if (!g->counted)
		return;
	g->counted = false;
	g->client->counted--;
	charge_remove(g->client->account, POOL_GRANTS, 1);
}

static void count_end(const struct grant *g)
{
	struct env *env = g->lock->locks->env;

	histogram_add(&env->stats.hold, env->now_ns - g->granted_ns);
	g->lock->ended_ns = env->now_ns;
}

void grant_end(struct grant *g)
{
	struct lock *lock = g->lock;
	struct client *client = g->client;

	if (!g->lost && (!g->slot || g->recalled || !delegated_slot(g) || (g->delegated && !delegated_is_free(g))))
		hold_say(g, LOG_EVENT_released, client->closed ? "closed" : "released", g->depth);
	if (g->slot) {
		hold_say(g, LOG_EVENT_delegated, NULL, 1);
		delegated_forget(g);
	}
	if (!TAILQ_EMPTY(&lock->locks->walks))
		walk_leave_grant(lock->locks, g);
	TAILQ_REMOVE(g->lost ? &lock->lost : &lock->grants, g, link);
	TAILQ_REMOVE(&client->grants, g, client_link);
	heap_unset(&lock->locks->env->timers, &g->lease);
	heap_unset(&lock->locks->env->timers, &g->age);
	outcome_drop(&lock->locks->outcomes, &g->outcome);
	notification_drop(client, g->notification);
	client->grant_count--;
	lock->locks->grant_count--;
	uncount(g);
	if (g->lost) {
		client->lost_count--;
		lock->locks->lost_count--;
	} else {
		lock->grant_count--;
		count_end(g);
	}
	grant_ledger_end(g);
	bytes_free(&g->data);
	bytes_free(&g->before);
	mem_spare(&lock->locks->spare_grant, g);
	grants_changed(client);
	directory_touch(lock_held(lock));
}

void grant_lose(struct grant *g, enum loss loss)
{
	struct lock *lock = g->lock;
	struct locks *locks = lock->locks;

	if (g->slot)
		hold_say(g, LOG_EVENT_delegated, NULL, 1);
	if (g->slot && !delegated_lose(g)) {
		grant_end(g);
		return;
	}
	if (!TAILQ_EMPTY(&locks->walks))
		walk_leave_grant(locks, g);
	TAILQ_REMOVE(&lock->grants, g, link);
	TAILQ_INSERT_TAIL(&lock->lost, g, link);
	heap_unset(&locks->env->timers, &g->lease);
	heap_unset(&locks->env->timers, &g->age);
	lock->grant_count--;
	g->lost = true;
	g->loss = loss;
	env_note(locks->env, FLIGHT_grant_lost, (int64_t)g->client->id, g->token, bytes_view(&lock->name));
	hold_say(g, LOG_EVENT_lost, loss_word(loss), g->depth);
	count_end(g);
	g->client->lost_count++;
	/* A lease that its client let run out keeps the lock in use until that is told; other losses are nobody's fault. */
	if (loss != LOSS_LEASE)
		uncount(g);
	grant_ledger_change(g);
	locks->lost_count++;
	locks->env->stats.losses_total++;
	notification_drop(g->client, g->notification);
	if (loss == LOSS_LEASE)
		locks->env->stats.leases_ended_total++;
	grants_changed(g->client);
	outcome_add(&locks->outcomes, &g->outcome, OUTCOME_LOST, g->client);
	directory_touch(lock_held(lock));
}

void grant_lose_all(struct lock *lock, enum loss loss)
{
	struct grant *g;

	while ((g = TAILQ_FIRST(&lock->grants)))
		grant_lose(g, loss);
}
