#include "core/grant.h"

#include "base/mem.h"
#include "core/state.h"

struct grant *grant_find(const struct lock *lock, const struct client *client)
{
	struct grant *g;

	TAILQ_FOREACH(g, &lock->grants, link)
		if (g->client == client)
			return g;
	TAILQ_FOREACH(g, &lock->lost, link)
		if (g->client == client)
			return g;
	return NULL;
}

void grant_new(struct lock *lock, struct client *client, enum mode mode, int64_t token)
{
	struct broker *b = lock->broker;
	struct grant *g = mem_new(sizeof(*g));

	g->client = client;
	g->lock = lock;
	g->mode = mode;
	g->depth = 1;
	g->token = token;
	g->granted_ns = b->now_ns;
	TAILQ_INSERT_TAIL(&lock->grants, g, link);
	TAILQ_INSERT_TAIL(&client->grants, g, client_link);
	lock->grant_count++;
	b->grant_count++;
	client->grant_count++;
	client->user->grants++;
	client_grants_changed(client);
	b->stats.grants_total++;
}

void grant_end(struct grant *g)
{
	struct lock *lock = g->lock;
	struct client *client = g->client;

	TAILQ_REMOVE(g->lost ? &lock->lost : &lock->grants, g, link);
	TAILQ_REMOVE(&client->grants, g, client_link);
	client->grant_count--;
	lock->broker->grant_count--;
	if (g->lost) {
		client->lost_count--;
		lock->broker->lost_count--;
	} else {
		client_forget_revoke(client, g);
		client->user->grants--;
		lock->grant_count--;
	}
	mem_free(g);
	client_grants_changed(client);
	lock_touch(lock);
}

void grant_lose_all(struct lock *lock)
{
	struct grant *g;

	while ((g = TAILQ_FIRST(&lock->grants))) {
		TAILQ_REMOVE(&lock->grants, g, link);
		TAILQ_INSERT_TAIL(&lock->lost, g, link);
		lock->grant_count--;
		g->lost = true;
		g->client->lost_count++;
		g->client->user->grants--;
		lock->broker->lost_count++;
		lock->broker->stats.losses_total++;
		client_forget_revoke(g->client, g);
		client_tell_lost(g->client, g);
	}
}
