/* SPDX-License-Identifier: Apache-2.0 */
#include "core/session/budget.h"

#include "core/session/ensemble.h"

size_t budget_path_max(const struct ensemble *zk)
{
	size_t configured = zk->env->conf->limits.session_path_bytes;
	size_t taken = (size_t)zk->packet_bytes / 10 * 9;

	return zk->packet_bytes && taken < configured ? taken : configured;
}

<<<<<<< Updated upstream
=======
static size_t znode_path(const struct directory *d)
{
	return d->path.len + CONTENDER_NAME_MAX;
}

static bool fits(const struct directory *d, size_t text)
{
	const struct ensemble *zk = d->directories->ensemble;

	return !zk->packet_bytes ||
	       znode_path(d) + strlen(zk->env->conf->host) + REQUEST_SLACK + text <= (size_t)zk->packet_bytes;
}

bool budget_has_room_for_text(const struct directory *d)
{
	return fits(d, LIMIT_DATA_BYTES_MAX);
}

/* A leader's text has to be told. */
bool budget_is_oversize(const struct directory *d)
{
	return !fits(d, d->kind == KIND_ELECTION ? LIMIT_DATA_BYTES_MAX : 0);
}

const char *budget_refuses(const struct directory *d, size_t count)
{
	const struct ensemble *zk = d->directories->ensemble;
	size_t max = budget_path_max(zk), watches = count * (znode_path(d) + WATCH_OVERHEAD);

	if (budget_is_oversize(d))
		return budget_too_long;
	if (zk->path_bytes + count * znode_path(d) > max)
		return "this host's session already has as many znodes as one ZooKeeper session may (limits.session_path_bytes)";
	if (!directory_watches(d))
		watches += d->path.len + WATCH_OVERHEAD;
	if (zk->watch_bytes + watches > max)
		return too_many_watches;
	return NULL;
}

static size_t claim_watches(const struct claim *c)
{
	size_t bytes = 0, directory = c->directory->path.len + 1;

	if (c->pred_watch)
		bytes += directory + c->pred.len + WATCH_OVERHEAD;
	if (c->own_watch)
		bytes += directory + strlen(c->name) + WATCH_OVERHEAD;
	return bytes;
}

/* The other half is for those that join, and for the directories. */
bool budget_has_room_for_own(const struct claim *c)
{
	const struct ensemble *zk = c->directory->directories->ensemble;
	size_t own = c->directory->path.len + 1 + strlen(c->name) + WATCH_OVERHEAD;

	return zk->watch_bytes + own <= budget_path_max(zk) / 2;
}

/* The directory's, and one on its first contender, as long as one of ours. */
static size_t observed_watches(const struct directory *d)
{
	return d->path.len + WATCH_OVERHEAD + znode_path(d) + WATCH_OVERHEAD;
}

const char *budget_refuses_observer(const struct directory *d)
{
	const struct ensemble *zk = d->directories->ensemble;

	if (zk->env->conf->standalone || lock_of(d)->observer_count)
		return NULL;
	if (budget_is_oversize(d))
		return budget_too_long;
	return zk->watch_bytes + observed_watches(d) > budget_path_max(zk) ? too_many_watches : NULL;
}

size_t budget_watches(const struct directory *d)
{
	size_t bytes = 0;
	const struct claim *c;

	if (d->directories->env->conf->standalone)
		return 0;
	if (lock_of(d)->observer_count)
		bytes += observed_watches(d);
	else if (directory_watches(d))
		bytes += d->path.len + WATCH_OVERHEAD;
	if (d->claim)
		bytes += claim_watches(d->claim);
	if (d->next)
		bytes += claim_watches(d->next);
	if (d->part && lock_of(d) == lock_of(d)->semaphore->mutex && lock_of(d)->semaphore->state == SEMAPHORE_KNOWN)
		bytes += lock_of(d)->semaphore->path.len + WATCH_OVERHEAD;
	TAILQ_FOREACH(c, &d->slots, link)
		bytes += claim_watches(c);
	TAILQ_FOREACH(c, &d->leaving, link)
		bytes += claim_watches(c);
	return bytes;
}

void budget_recount(struct directory *d)
{
	struct ensemble *zk = d->directories->ensemble;
	size_t bytes = budget_watches(d);

	zk->watch_bytes += bytes - d->watch_bytes;
	d->watch_bytes = bytes;
}

>>>>>>> Stashed changes
static void put(struct bytes *out, const char *text, size_t number)
{
	bytes_text(out, text);
	bytes_int(out, (int64_t)number);
}

static void say(struct ensemble *zk, struct slice server)
{
	struct bytes *out = &zk->env->out->arena;
	size_t begin = effects_begin(zk->env->out);

	if (budget_path_max(zk) == zk->env->conf->limits.session_path_bytes) {
		put(out, "ZooKeeper takes packets that are large enough for limits.session_path_bytes = ",
		    zk->env->conf->limits.session_path_bytes);
		effects_log(zk->env->out, EFFECT_LEVEL_INFO, begin);
		return;
	}
	bytes_slice(out, server);
	put(out, " takes packets of no more than ", (size_t)zk->packet_bytes);
	put(out, " bytes, too few for limits.session_path_bytes = ", zk->env->conf->limits.session_path_bytes);
	put(out, ": the locks of this host are limited to ", budget_path_max(zk));
	bytes_text(out, " bytes of paths. Raise jute.maxbuffer on every server, or lower the limit");
	effects_log(zk->env->out, EFFECT_LEVEL_WARNING, begin);
}

void budget_packet(struct ensemble *zk, const struct event *event)
{
	size_t before = budget_path_max(zk);

	zk->packet_bytes = event->zk_packet.bytes;
	if (budget_path_max(zk) != before)
		say(zk, event->zk_packet.server);
}
