#include "core/detail.h"

#include "core/record.h"
#include "core/state.h"

static const int64_t NS_PER_MS = 1000000;
static const int64_t YOUNG_NS = 100000000; /* most grants end before somebody asks */
static const int64_t EVERY_NS = 1000000000;

int64_t detail_wall_ms(const struct broker *b, int64_t at_ns)
{
	return b->conf->started_s * 1000 + (at_ns - b->started_ns) / NS_PER_MS;
}

void detail_begin(const struct broker *b, struct bytes *data)
{
	record_begin(data);
	record_text(data, "host", b->conf->host);
}

int64_t detail_due_ns(const struct lock *lock)
{
	const struct grant *g = TAILQ_FIRST(&lock->grants);
	const struct claim *c = lock->claim;
	int64_t due_ns;

	if (!g || c->state != CLAIM_HELD || !c->own_watch ||
	    (c->detail_client == g->client->id && c->detail_token == g->token))
		return INT64_MAX;
	due_ns = g->granted_ns + YOUNG_NS;
	return c->detail_ns && c->detail_ns + EVERY_NS > due_ns ? c->detail_ns + EVERY_NS : due_ns;
}

static void write_grant(const struct broker *b, const struct lock *lock, const struct grant *g, struct bytes *data)
{
	detail_begin(b, data);
	record_int(data, "pid", g->client->pid);
	record_int(data, "uid", g->client->uid);
	record_slice(data, "command", bytes_view(&g->client->comm));
	record_slice(data, "name", bytes_view(&g->client->name));
	record_text(data, "mode", mode_word(g->mode));
	record_int(data, "token", g->token);
	record_int(data, "holders", (int64_t)lock->grant_count);
	record_int(data, "since", detail_wall_ms(b, g->granted_ns));
	record_int(data, "written", detail_wall_ms(b, b->now_ns));
}

void detail_write(struct lock *lock)
{
	struct broker *b = lock->broker;
	struct claim *c = lock->claim;
	const struct grant *g;
	struct bytes data = { 0 };

	if (detail_due_ns(lock) > b->now_ns)
		return;
	g = TAILQ_FIRST(&lock->grants);
	c->detail_client = g->client->id;
	c->detail_token = g->token;
	c->detail_ns = b->now_ns;
	write_grant(b, lock, g, &data);
	claim_write(c, bytes_view(&data));
	bytes_free(&data);
}
