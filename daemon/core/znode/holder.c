/* SPDX-License-Identifier: Apache-2.0 */
#include "core/znode/holder.h"

#include <assert.h>

#include "core/session/budget.h"
#include "core/znode/record.h"
#include "core/lock/locks.h"

static const int64_t NS_PER_MS = 1000000;
static const int64_t YOUNG_NS = 100000000; /* most grants end before somebody asks */
static const int64_t EVERY_NS = 1000000000;

int64_t holder_wall_ms(const struct locks *locks, int64_t at_ns)
{
	return locks->env->conf->started_s * 1000 + (at_ns - locks->env->started_ns) / NS_PER_MS;
}

void holder_begin(const struct lock *lock, struct bytes *data)
{
	record_begin(data);
	record_text(data, "host", lock->locks->env->conf->host);
	if (lock->kind != KIND_LOCK)
		record_text(data, "kind", kind_word(lock->kind));
}

bool holder_fits(enum kind kind, struct slice data)
{
	struct slice word = record_get(data, "kind");

	if (!record_is_ours(data))
		return true;
	return slice_eq(word.len ? word : slice_of(kind_word(KIND_LOCK)), slice_of(kind_word(kind)));
}

bool holder_in_use(struct slice data)
{
	return !record_is_ours(data) || record_get(data, "held").len || record_get(data, "leader").len;
}

bool holder_tells(struct slice data)
{
	return record_get(data, "pid").len;
}

int64_t holder_due_ns(const struct lock *lock)
{
	const struct grant *g = TAILQ_FIRST(&lock->grants);
	const struct claim *c = lock->claim;
	int64_t due_ns;

	assert(c->state == CLAIM_HELD && c->rivals);
	if (!g || lock->kind == KIND_ELECTION ||
	    (c->holder_client == g->client->id && c->holder_token == g->token))
		return INT64_MAX;
	due_ns = g->granted_ns + YOUNG_NS;
	return c->holder_ns && c->holder_ns + EVERY_NS > due_ns ? c->holder_ns + EVERY_NS : due_ns;
}

struct detail {
	const struct client *client;
	enum mode mode;
	int64_t token, holders, since_ns;
};

static void write_holder(const struct lock *lock, const struct detail *d, struct bytes *data)
{
	const struct locks *locks = lock->locks;
	struct slice command;

	holder_begin(lock, data);
	record_int(data, "pid", client_shown(d->client, &command));
	record_int(data, "uid", d->client->uid);
	record_slice(data, "command", command);
	record_slice(data, "name", bytes_view(&d->client->name));
	record_text(data, "mode", mode_word(d->mode));
	record_int(data, "token", d->token);
	record_int(data, "holders", d->holders);
	record_int(data, "since", holder_wall_ms(locks, d->since_ns));
	record_int(data, "written", holder_wall_ms(locks, locks->env->now_ns));
}

void holder_permits(const struct grant *g, struct bytes *data)
{
	const struct lock *leases = g->lock;
	struct detail d = { g->client, g->mode, g->token, (int64_t)leases->grant_count, g->granted_ns };

	write_holder(leases, &d, data);
	record_int(data, "client", (int64_t)g->client->id);
}

void holder_leader(const struct request *r, int64_t token, struct bytes *data)
{
	write_holder(r->lock, &(struct detail){ r->client, r->mode, token, 1, r->lock->locks->env->now_ns }, data);
	record_int(data, "leader", 1);
	record_slice(data, "data", bytes_view(&r->data));
}

static void write_first(struct lock *lock)
{
	const struct grant *g = TAILQ_FIRST(&lock->grants);
	struct detail d = { g->client, g->mode, g->token, (int64_t)lock->grant_count, g->granted_ns };
	struct claim *c = lock->claim;
	struct bytes data = { 0 };

	c->holder_client = g->client->id;
	c->holder_token = g->token;
	c->holder_ns = lock->locks->env->now_ns;
	write_holder(lock, &d, &data);
	if (g->data.len && budget_has_room_for_text(lock))
		record_slice(&data, "data", bytes_view(&g->data));
	if (c->says_held)
		record_int(&data, "held", 1);
	claim_write(c, OPERATION_HOLDER, bytes_view(&data));
	bytes_free(&data);
}

void holder_say_held(struct lock *lock)
{
	struct claim *c = lock->claim;

	/* On a new connection it is not known whether it was written. An election says who leads. */
	if (!c->tried || !lock->grant_count || lock->kind == KIND_ELECTION || (c->says_held && c->holder_client))
		return;
	if (!turn_may(lock, TURN_JOIN))
		return;
	c->says_held = true;
	write_first(lock);
}

void holder_write(struct lock *lock)
{
	if (holder_due_ns(lock) <= lock->locks->env->now_ns && turn_may(lock, TURN_LOOK))
		write_first(lock);
}
