/* SPDX-License-Identifier: Apache-2.0 */
#include "core/command/list.h"

#include <assert.h>

#include "base/glob.h"
#include "base/mem.h"
#include "base/minmax.h"
#include "core/client/args.h"
#include "core/client/reply.h"
#include "core/hosts/participant.h"
#include "protocol/name.h"

enum {
	MATCH_STEPS_A_STEP = 32,    /* they take about as long as a look at a lock, as do comparisons of hashes */
	ROWS_FIRST = 16,
	PATTERN_MAX = 1 << 20,      /* more than a request can have */
	LIST_SMALL = 65536,         /* so much is not charged */
};

/* A name in `names`. */
struct list_row {
	size_t at, len;
	int64_t rank; /* the largest is the first */
	uint64_t hash;
};

/* ---- the names of locks, in a heap ---- */

static struct slice name_of(const struct list *l, const struct list_row *row)
{
	return (struct slice){ l->names.data + row->at, row->len };
}

static bool is_behind(const struct list *l, const struct list_row *a, const struct list_row *b)
{
	return a->rank != b->rank ? a->rank < b->rank : slice_order(name_of(l, a), name_of(l, b)) > 0;
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
	for (; at > 0 && is_behind(l, &l->heap[at], &l->heap[(at - 1) / 2]); at = (at - 1) / 2)
		swap(l, at, (at - 1) / 2);
}

/* The last one, which stands behind the heap then. */
static const struct list_row *take_row(struct list *l)
{
	size_t at = 0, child;

	swap(l, 0, --l->count);
	while ((child = 2 * at + 1) < l->count) {
		if (child + 1 < l->count && is_behind(l, &l->heap[child + 1], &l->heap[child]))
			child++;
		if (!is_behind(l, &l->heap[child], &l->heap[at]))
			break;
		swap(l, child, at);
		at = child;
	}
	return &l->heap[l->count];
}

/* ---- steps ---- */

static int64_t waited_ns(const struct lock *lock)
{
	const struct request *r = TAILQ_FIRST(&lock->requests);

	return r ? lock->locks->env->now_ns - r->asked_ns : 0;
}

/* With an order each name has room for any other that takes its place. */
static void note_lock(struct list *l, const struct lock *lock)
{
	const struct request *first = TAILQ_FIRST(&lock->requests);
	const int64_t ranks[] = { [ORDER_WAIT] = first ? -first->asked_ns : INT64_MIN,
				  [ORDER_WAITERS] = (int64_t)lock->request_count,
				  [ORDER_GRANTS] = lock->granted, [ORDER_NAME] = 0 };
	struct list_row row = { l->names.len, lock->name.len, ranks[l->order], lock->name_node.hash };
	size_t room = l->order ? NAME_BYTES_MAX : row.len;

	bytes_reserve(&l->names, room);
	memcpy(l->names.data + row.at, lock->name.data, row.len);
	if (l->count < l->most) {
		l->names.len += room;
	} else if (is_behind(l, &row, l->heap)) {
		return;
	} else {
		row.at = take_row(l)->at;
		memcpy(l->names.data + row.at, lock->name.data, row.len);
	}
	add_row(l, &row);
	l->kept = l->count;
}

static void show_first(struct list *l, const struct lock *lock)
{
	const struct grant *g = delegated_holder(lock);
	struct participant p;

	reply_pairs(&l->rows, "waited_ms", waited_ns(lock) / NS_PER_MS, "grants", lock->granted);
	resp_bulk(&l->rows, SLICE("first"));
	if (!g)
		return resp_nil(&l->rows, l->client->version);
	p = participant_holder(g);
	participant_veil(&p, l->client, bytes_view(&lock->name));
	participant_write_holder(&p, &l->rows, l->client->version);
}

static void show_lock(struct list *l, const struct lock *lock)
{
	size_t holders = lock->grant_count - delegated_free_of(lock);
	const struct grant *kept = LIST_FIRST(&lock->delegated);
	struct bytes *out = &l->rows;

	resp_map(out, l->order ? 9 : 6, l->client->version);
	reply_pairs(out, "name", bytes_view(&lock->name));
	reply_pairs(out, "state", lock_state_word(lock), "holders", holders, "waiters", lock->request_count,
		    "token", holders ? TAILQ_FIRST(&lock->grants)->token : 0);
	reply_pairs(out, "delegated", kept ? kept->client->id : 0);
	if (l->order)
		show_first(l, lock);
	l->row_count++;
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

/* WALK: the next lock or client. False: all were looked at, which is a step, too. */
static bool look(struct list *l, int64_t *done)
{
	const struct client *c = walk_client(&l->walk);
	const struct lock *lock = walk_lock(&l->walk);
	size_t matching = 0;

	if (c && !c->bearer && (client_is_own(l->client, c) || client_is_operator(l->client)))
		show_client(l, c);
	else if (lock && glob_matches(l->glob, bytes_view(&lock->name), &matching))
		note_lock(l, lock);
	*done += 1 + (int64_t)matching / MATCH_STEPS_A_STEP;
	return c || lock;
}

/* PLACE. A lock that came again has two rows, of which the first is right; without an order they are neighbours. */
static void place(struct list *l, int64_t *done)
{
	size_t at = l->at++, from = l->order || !at ? 0 : at - 1, i = at;
	const struct list_row *row = &l->heap[at];
	const struct lock *lock = lock_find(l->client->locks, name_of(l, row));

	while (i > from && l->heap[i - 1].hash != row->hash)
		i--;
	*done += (int64_t)(at - i) / MATCH_STEPS_A_STEP;
	if (i == from && lock && !lock->idle)
		show_lock(l, lock);
}

static bool too_long(const struct list *l)
{
	return l->rows.len > l->client->locks->env->conf->limits.output_bytes;
}

size_t list_memory(const struct list *l)
{
	size_t all = glob_memory(l->glob) + l->names.cap + l->rows.cap + l->cap * sizeof(*l->heap);

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
		struct bytes rows = l->rows;
		size_t count = l->row_count;

		l->rows = (struct bytes){ 0 };
		reply_rows(over(l), &rows, count);
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
	if (look(l, done))
		return pays(l);
	if (l->count)
		take_row(l);
	else if (l->at < l->kept)
		place(l, done);
	else
		return false;
	return pays(l);
}

int64_t list_continue(struct list *l, int64_t steps)
{
	uint32_t rules = l->client->locks->env->rules;
	int64_t done = 0;

	/* What it might look at before is not shown any longer. */
	if (l->kind == LIST_LOCKS && (l->rules != rules || !l->rows.len)) {
		l->rules = rules;
		l->at = l->row_count = 0;
		reply_begin_rows(&l->rows);
	}
	while (done < steps)
		if (!step(l, &done)) {
			answer(l);
			break;
		}
	return done;
}

/* ---- begun and ended ---- */

static struct list *make(struct client *c, enum list_kind kind, const struct slice *pattern, enum order order, int64_t most)
{
	struct list *l = mem_new(sizeof(*l));

	assert(!c->list);
	l->work.kind = WORK_LIST;
	l->client = c;
	l->kind = kind;
	l->order = order;
	l->most = order ? (size_t)min64(most, LIST_MOST) : SIZE_MAX;
	if (pattern)
		l->glob = glob_new(*pattern);
	c->list = l;
	charge_set(&l->charge, c->account, POOL_MEMORY, list_memory(l));
	return l;
}

/* What comes before it for the same user goes first. */
void list_begin(struct client *c, enum list_kind kind, const struct slice *pattern, enum order order, int64_t most)
{
	struct list *l = make(c, kind, pattern, order, most);
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
	bytes_free(&l->names);
	bytes_free(&l->rows);
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
	entry_number(w, "order", l->order);
	entry_number(w, "most", l->order ? (int64_t)l->most : 0);
}

bool list_restore(struct client *c, const struct entry *e)
{
	struct slice pattern;
	int64_t kind, order, most;
	bool any;

	if (!entry_get_number(e, "list", LIST_NONE, LIST_CLIENTS, &kind) ||
	    !entry_get_text(e, "pattern", PATTERN_MAX, &pattern) || !entry_get_flag(e, "any", &any) ||
	    !entry_get_number(e, "order", ORDER_NONE, ORDER_NAME, &order) || !entry_get_number(e, "most", 0, LIST_MOST, &most))
		return false;
	if (kind == LIST_NONE)
		return true;
	if (!c->asking || c->closed || (order && !most))
		return entry_refuse(e, "the client waits for no list");
	work_add(&c->locks->env->works, &c->user->worker,
		 &make(c, (enum list_kind)kind, any ? NULL : &pattern, (enum order)order, most)->work);
	return true;
}
