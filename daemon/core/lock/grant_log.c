/* SPDX-License-Identifier: Apache-2.0 */
#include "core/lock/grant_log.h"

#include "core/lock/locks.h"

static const int64_t NS_PER_MS = 1000000;

static void write_what(struct bytes *out, const struct grant *g, int64_t count)
{
	const struct lock *lock = g->lock;

	if (lock->semaphore) {
		bytes_int(out, count);
		bytes_text(out, " permits of semaphore ");
		bytes_quote(out, bytes_view(&lock->name));
		return;
	}
	bytes_text(out, lock->directory.kind == KIND_ELECTION ? "election " : "lock ");
	bytes_quote(out, bytes_view(&lock->name));
	bytes_text(out, ", ");
	bytes_text(out, mode_word(g->mode));
	bytes_text(out, ", token ");
	bytes_int(out, g->token);
}

static void write_who(struct bytes *out, const struct client *c)
{
	bytes_int(out, (int64_t)c->id);
	bytes_text(out, ", uid ");
	bytes_int(out, c->uid);
	bytes_text(out, ", pid ");
	bytes_int(out, c->pid);
	bytes_text(out, " (");
	bytes_quote(out, bytes_view(&c->comm));
	if (c->name.len) {
		bytes_text(out, ", ");
		bytes_quote(out, bytes_view(&c->name));
	}
	bytes_text(out, ")");
}

/* False: a broker that is freed says nothing. */
static bool begin(const struct grant *g, size_t *ret_begin)
{
	struct locks *locks = g->lock->locks;

	if (!locks->env->out)
		return false;
	*ret_begin = effects_begin(locks->env->out);
	return true;
}

static void end(const struct grant *g, const char *how, size_t begun)
{
	struct locks *locks = g->lock->locks;

	bytes_text(&locks->env->out->arena, how);
	write_who(&locks->env->out->arena, g->client);
	effects_log(locks->env->out, locks->env->conf->log_grants_level, begun)->one_of_many = true;
}

void grant_log_granted(const struct grant *g, int64_t count)
{
	size_t begun;

	if (!begin(g, &begun))
		return;
	bytes_text(&g->lock->locks->env->out->arena, "granted: ");
	write_what(&g->lock->locks->env->out->arena, g, count);
	end(g, ", to client ", begun);
}

static void log_end(const struct grant *g, int64_t count)
{
	struct locks *locks = g->lock->locks;
	struct bytes *out = &locks->env->out->arena;

	write_what(out, g, count);
	bytes_text(out, ", after ");
	bytes_int(out, (locks->env->now_ns - g->granted_ns) / NS_PER_MS);
	bytes_text(out, " ms");
}

void grant_log_released(const struct grant *g, int64_t count)
{
	size_t begun;

	if (!begin(g, &begun))
		return;
	bytes_text(&g->lock->locks->env->out->arena, "released: ");
	log_end(g, count);
	end(g, ", by client ", begun);
}

void grant_log_lost(const struct grant *g)
{
	struct bytes *out;
	size_t begun;

	if (!begin(g, &begun))
		return;
	out = &g->lock->locks->env->out->arena;
	bytes_text(out, "lost (");
	bytes_text(out, loss_word(g->loss));
	bytes_text(out, "): ");
	log_end(g, g->depth);
	end(g, ", by client ", begun);
}
