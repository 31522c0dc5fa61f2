/* SPDX-License-Identifier: Apache-2.0 */
#include "core/command/list.h"

#include <assert.h>

#include "base/glob.h"
#include "base/mem.h"
#include "core/client/args.h"
#include "core/client/reply.h"
#include "protocol/name.h"

enum {
	MATCH_STEPS_A_STEP = 32,    /* they take about as long as a look at a lock */
	ROWS_FIRST = 16,
	PATTERN_MAX = 1 << 20,      /* more than a request can have */
	LIST_SMALL = 65536,         /* so much is not charged */
};

/* Of `rows`: the text of a row, and in it the name. */
struct list_row {
	size_t at, len, name_at, name_len;
	size_t order; /* of two rows with one name the later one is true */
};

/* ---- the rows of locks, in a heap ---- */

static struct slice name_of(const struct list *l, const struct list_row *row)
{
	return (struct slice){ l->rows.data + row->name_at, row->name_len };
}

static bool is_before(const struct list *l, size_t a, size_t b)
{
	int order = slice_order(name_of(l, &l->heap[a]), name_of(l, &l->heap[b]));

	return order < 0 || (order == 0 && l->heap[a].order > l->heap[b].order);
}

static void swap(struct list *l, size_t a, size_t b)
{
	struct list_row row = l->heap[a];

	l->heap[a] = l->heap[b];
	l->heap[b] = row;
}

static void add_row(struct list *l, const struct list_row *row)
{
	size_t at = l->count++;

	if (at == l->cap) {
		l->cap = l->cap ? 2 * l->cap : ROWS_FIRST;
		l->heap = mem_resize(l->heap, l->cap * sizeof(*l->heap));
	}
	l->heap[at] = *row;
	l->heap[at].order = at;
	for (; at > 0 && is_before(l, at, (at - 1) / 2); at = (at - 1) / 2)
		swap(l, at, (at - 1) / 2);
}

static struct list_row take_row(struct list *l)
{
	struct list_row first = l->heap[0];
	size_t at = 0, child;

	l->heap[0] = l->heap[--l->count];
	while ((child = 2 * at + 1) < l->count) {
		if (child + 1 < l->count && is_before(l, child + 1, child))
			child++;
		if (!is_before(l, child, at))
			break;
		swap(l, child, at);
		at = child;
	}
	return first;
}

/* ---- steps ---- */

static void show_lock(struct list *l, const struct lock *lock)
{
	size_t holders = lock->grant_count - delegated_free_of(lock);
	const struct grant *kept = LIST_FIRST(&lock->delegated);
	struct bytes *out = &l->rows;
	struct list_row row = { .at = out->len, .name_len = lock->name.len };

	resp_map(out, 6, l->client->version);
	reply_pairs(out, "name", bytes_view(&lock->name));
	row.name_at = out->len - 2 - lock->name.len; /* before the end of the line */
	reply_pairs(out, "state", lock_state_word(lock), "holders", holders, "waiters", lock->request_count,
		    "token", holders ? TAILQ_FIRST(&lock->grants)->token : 0);
	reply_pairs(out, "delegated", kept ? kept->client->id : 0);
	row.len = out->len - row.at;
	add_row(l, &row);
}

static void show_client(struct list *l, const struct client *c)
{
	struct bytes *out = &l->rows;

	bytes_format(out, "id=%d addr=unix name=%s pid=%d uid=%d cmd=", c->id, bytes_view(&c->name), c->pid, c->uid);
	if (c->last_command != COMMAND_COUNT)
		args_command_word(out, c->last_command);
	bytes_format(out, " comm=%s resp=%d held=%d waiting=", bytes_view(&c->comm), c->version,
		     c->grant_count - delegated_free_count(c));
	if (c->request)
		name_encode(bytes_view(&c->request->lock->name), out);
	bytes_format(out, " queued=%d age=%d lib-name=%s lib-ver=%s owner=%s\n", c->request_count - (c->request != NULL),
		     (c->locks->env->now_ns - c->connected_ns) / NS_PER_S, bytes_view(&c->lib_name),
		     bytes_view(&c->lib_version), c->group ? bytes_view(&c->group->name) : SLICE(""));
}

/* The next lock or client. False: all were looked at. */
static bool look(struct list *l, int64_t *done)
{
	const struct client *c = walk_client(&l->walk);
	const struct lock *lock = walk_lock(&l->walk);
	size_t matching = 0;

	if (c && !c->bearer && (client_is_own(l->client, c) || client_is_operator(l->client)))
		show_client(l, c);
	else if (lock && glob_matches(l->glob, bytes_view(&lock->name), &matching))
		show_lock(l, lock);
	*done += 1 + (int64_t)matching / MATCH_STEPS_A_STEP;
	return c || lock;
}

static void place(struct list *l)
{
	struct list_row row = take_row(l);

	if (l->placed_count && slice_eq(bytes_view(&l->last), name_of(l, &row)))
		return;
	bytes_set(&l->last, name_of(l, &row));
	bytes_slice(&l->placed, (struct slice){ l->rows.data + row.at, row.len });
	l->placed_count++;
}

static bool too_long(const struct list *l)
{
	return l->rows.len > l->client->locks->env->conf->limits.output_bytes;
}

size_t list_memory(const struct list *l)
{
	size_t all = glob_memory(l->glob) + l->rows.cap + l->placed.cap + l->last.cap + l->cap * sizeof(*l->heap);

	return all > LIST_SMALL ? all - LIST_SMALL : 0;
}

/* For what it has become. False: its account may not have that. */
static bool pays(struct list *l)
{
	struct client *c = l->client;
	size_t bytes = list_memory(l);

	if (bytes == l->charge.amount)
		return true;
	l->refused = !account_may(c->account, POOL_MEMORY, bytes - l->charge.amount, c->privileged);
	charge_set(&l->charge, c->account, POOL_MEMORY, bytes);
	return !l->refused;
}

/* ---- answers ---- */

/* The client may ask again. */
static struct client *over(struct list *l)
{
	struct client *c = l->client;

	list_end(l);
	return c;
}

static void answer(struct list *l)
{
	if (l->refused) {
		const struct client *c = l->client;
		const char *sentence = pools_refusal(c->locks->env, c->account, POOL_MEMORY, c->privileged);

		reply_error(over(l), ERROR_LIMIT, "%s", sentence);
		return;
	}
	if (too_long(l)) {
		reply_too_long(over(l));
		return;
	}
	if (l->kind == LIST_LOCKS) {
		struct bytes placed = l->placed;
		size_t count = l->placed_count;

		l->placed = (struct bytes){ 0 };
		reply_rows(over(l), &placed, count);
		return;
	}
	resp_bulk(reply_out(l->client), bytes_view(&l->rows));
	reply_end(over(l));
}

/* False: it is to be answered. */
static bool step(struct list *l, int64_t *done)
{
	if (too_long(l))
		return false;
	if (!l->walk.begun)
		walk_begin(l->client->locks, &l->walk, l->kind == LIST_CLIENTS);
	l->placing = l->placing || !look(l, done);
	if (!l->placing)
		return pays(l);
	if (!l->count)
		return false;
	place(l);
	++*done;
	return pays(l);
}

int64_t list_continue(struct list *l, int64_t steps)
{
	int64_t done = 0;

	while (done < steps)
		if (!step(l, &done)) {
			answer(l);
			break;
		}
	return done;
}

/* ---- begun and ended ---- */

static struct list *make(struct client *c, enum list_kind kind, const struct slice *pattern)
{
	struct list *l = mem_new(sizeof(*l));

	assert(!c->list);
	l->work.kind = WORK_LIST;
	l->client = c;
	l->kind = kind;
	reply_begin_rows(&l->placed);
	if (pattern)
		l->glob = glob_new(*pattern);
	c->list = l;
	charge_set(&l->charge, c->account, POOL_MEMORY, list_memory(l));
	return l;
}

/* What comes before it for the same user goes first. */
void list_begin(struct client *c, enum list_kind kind, const struct slice *pattern)
{
	struct list *l = make(c, kind, pattern);
	struct env *env = c->locks->env;

	if (!env->conf->all_in_pieces && TAILQ_EMPTY(&c->user->worker.items))
		list_continue(l, WORK_TURN_STEPS);
	if (c->list)
		work_add(&env->works, &c->user->worker, &l->work);
}

void list_end(struct list *l)
{
	if (!l)
		return;
	work_drop(&l->client->locks->env->works, &l->work);
	walk_end(l->client->locks, &l->walk);
	l->client->list = NULL;
	charge_give_back(&l->charge, POOL_MEMORY);
	glob_free(l->glob);
	bytes_free(&l->rows);
	bytes_free(&l->last);
	bytes_free(&l->placed);
	mem_free(l->heap);
	mem_free(l);
}

/* ---- in a snapshot ---- */

void list_snapshot(const struct list *l, struct entry_writer *w)
{
	entry_number(w, "list", l->kind);
	if (l->glob)
		entry_text(w, "pattern", glob_pattern(l->glob));
	entry_number(w, "any", !l->glob);
}

bool list_restore(struct client *c, const struct entry *e)
{
	struct slice pattern;
	int64_t kind;
	bool any;

	if (!entry_get_number(e, "list", LIST_NONE, LIST_CLIENTS, &kind) ||
	    !entry_get_text(e, "pattern", PATTERN_MAX, &pattern) || !entry_get_flag(e, "any", &any))
		return false;
	if (kind == LIST_NONE)
		return true;
	if (!c->asking || c->closed)
		return entry_refuse(e, "the client waits for no list");
	work_add(&c->locks->env->works, &c->user->worker,
		 &make(c, (enum list_kind)kind, any ? NULL : &pattern)->work);
	return true;
}
