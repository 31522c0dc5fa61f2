/* SPDX-License-Identifier: Apache-2.0 */
#include "core/lock/holder_data.h"

#include <assert.h>

#include "core/lock/locks.h"
#include "core/claim/charge.h"
#include "core/znode/holder.h"
#include "core/znode/record.h"
#include "protocol/limits.h"

static const int64_t YOUNG_NS = 100000000; /* most grants end before anybody asks */
static const int64_t EVERY_NS = 1000000000;

int64_t holder_data_due_ns(const struct lock *lock)
{
	const struct grant *g = TAILQ_FIRST(&lock->grants);
	const struct claim *c = lock->directory.claim;
	int64_t due_ns;

	assert(c->state == CLAIM_HELD && c->rivals);
	if (!g || !lock->rule->tells_holder ||
	    (c->holder_client == g->client->id && c->holder_token == g->token))
		return INT64_MAX;
	due_ns = g->granted_ns + YOUNG_NS;
	return c->holder_ns && c->holder_ns + EVERY_NS > due_ns ? c->holder_ns + EVERY_NS : due_ns;
}

static struct bytes *write(const struct lock *lock, const struct client *client, struct holder *h)
{
	struct bytes *data = operation_data(lock->locks->ensemble);
	const struct env *env = lock->locks->env;

	h->pid = client_shown(client, &h->command);
	h->uid = client->uid;
	h->name = bytes_view(&client->name);
	h->written_ms = env_wall_ms(env, env->now_ns);
	holder_begin(data, env->conf->host, lock->directory.kind);
	holder_write(data, h);
	return data;
}

static struct bytes *write_grant(const struct grant *g)
{
	struct holder h = {
		.mode = g->mode,
		.token = g->token,
		.holders = (int64_t)g->lock->grant_count,
		.since_ms = env_wall_ms(g->lock->locks->env, g->granted_ns),
	};

	return write(g->lock, g->client, &h);
}

void holder_data_permits(const struct grant *g)
{
	bytes_format(write_grant(g), "client=%d\n", g->client->id);
}

void holder_data_leader(const struct request *r, int64_t token)
{
	const struct env *env = r->lock->locks->env;
	struct holder h = { .mode = r->mode, .token = token, .holders = 1, .since_ms = env_wall_ms(env, env->now_ns) };

	bytes_format(write(r->lock, r->client, &h), "leader=1\ndata=%s\n", bytes_view(&r->data));
}

static void write_first(struct lock *lock)
{
	const struct grant *g = TAILQ_FIRST(&lock->grants);
	struct claim *c = lock->directory.claim;
	struct bytes *data = write_grant(g);

	c->holder_client = g->client->id;
	c->holder_token = g->token;
	c->holder_ns = lock->locks->env->now_ns;
	if (g->data.len && charge_fits(&lock->directory, LIMIT_DATA_BYTES_MAX))
		bytes_format(data, "data=%s\n", bytes_view(&g->data));
	if (c->says_held)
		bytes_text(data, "held=1\n");
	claim_write(c, OPERATION_HOLDER);
}

void holder_data_say_held(struct lock *lock)
{
	struct claim *c = lock->directory.claim;

	/* On a new connection it is unknown whether it was written. */
	if (!c->tried || !lock->grant_count || !lock->rule->tells_holder || (c->says_held && c->holder_client))
		return;
	if (!turn_may(&lock->directory, TURN_JOIN))
		return;
	c->says_held = true;
	write_first(lock);
}

void holder_data_write(struct lock *lock)
{
	if (holder_data_due_ns(lock) <= lock->locks->env->now_ns && turn_may(&lock->directory, TURN_LOOK))
		write_first(lock);
}
