/* SPDX-License-Identifier: Apache-2.0 */
#include "core/command/info.h"

#include "base/mem.h"
#include "core/client/args.h"
#include "core/client/reply.h"
#include "core/lock/locks.h"
#include "protocol/name.h"

static const int64_t NS_PER_MS = 1000000;

enum {
	MATCH_STEPS_MAX = 10000000, /* some tens of milliseconds, in which nobody else is served */
	LOCK_BYTES_MIN = 90,        /* that LOCKS shows of one lock */
};

static void write_lock(struct client *c, const struct lock *lock)
{
	const struct grant *g = TAILQ_FIRST(&lock->grants);
	struct bytes *out = reply_out(c);

	resp_map(out, 5, c->version);
	reply_pairs(out, "name", bytes_view(&lock->name), "state", lock_state_word(lock), "holders", lock->grant_count,
		    "waiters", lock->request_count, "token", g ? g->token : 0);
}

static int by_name(const void *a, const void *b)
{
	const struct lock *const *x = a, *const *y = b;

	return slice_order(bytes_view(&(*x)->name), bytes_view(&(*y)->name));
}

void info_locks(struct client *c, const struct slice *pattern)
{
	const struct lock **shown = mem_new((c->locks->names.count + 1) * sizeof(*shown)), *lock;
	size_t begin = reply_out(c)->len, count = 0, work = 0, bytes_max = c->locks->env->conf->limits.output_bytes;
	/* Once there is more than an answer can hold, the search, the sorting and the writing stop. */
	size_t most = bytes_max / LOCK_BYTES_MIN;

	TAILQ_FOREACH(lock, &c->locks->used, link) {
		if (work > MATCH_STEPS_MAX || count > most)
			break;
		if (!pattern || name_matches(*pattern, bytes_view(&lock->name), &work))
			shown[count++] = lock;
	}
	if (work > MATCH_STEPS_MAX) {
		mem_free(shown);
		reply_error(c, ERROR_LIMIT,
			    "matching that pattern with all locks takes more than 10000000 steps: use a simpler one");
		_Static_assert(MATCH_STEPS_MAX == 10000000, "as it is said");
		return;
	}
	if (count <= most)
		qsort(shown, count, sizeof(*shown), by_name);
	resp_array(reply_out(c), count);
	for (size_t i = 0; i < count && reply_out(c)->len - begin <= bytes_max; i++)
		write_lock(c, shown[i]);
	reply_end(c);
	mem_free(shown);
}

static void write_client(struct bytes *out, const struct client *c)
{
	bytes_format(out, "id=%d addr=unix name=%s pid=%d uid=%d cmd=", c->id, bytes_view(&c->name), c->pid, c->uid);
	if (c->last_command != COMMAND_COUNT)
		args_command_word(out, c->last_command);
	bytes_format(out, " comm=%s resp=%d held=%d waiting=", bytes_view(&c->comm), c->version, c->grant_count);
	if (c->request)
		name_encode(bytes_view(&c->request->lock->name), out);
	bytes_format(out, " queued=%d age=%d lib-name=%s lib-ver=%s owner=%s\n", c->request_count - (c->request != NULL),
		     (c->locks->env->now_ns - c->connected_ns) / (1000 * NS_PER_MS), bytes_view(&c->lib_name),
		     bytes_view(&c->lib_version), c->group ? bytes_view(&c->group->name) : SLICE(""));
}

void info_clients(struct client *c)
{
	const struct client *other;
	struct bytes text = { 0 };

	TAILQ_FOREACH(other, &c->locks->clients, link)
		if (text.len <= c->locks->env->conf->limits.output_bytes)
			write_client(&text, other);
	resp_bulk(reply_out(c), bytes_view(&text));
	reply_end(c);
	bytes_free(&text);
}
