/* SPDX-License-Identifier: Apache-2.0 */
#include "core/hosts/scan.h"

#include <assert.h>

#include "base/glob.h"
#include "base/mem.h"
#include "core/client/reply.h"
#include "core/hosts/hosts.h"
#include "core/znode/record.h"
#include "protocol/name.h"

enum {
	MATCH_STEPS_A_STEP = 32,      /* they take about as long as a look at a lock; so do looks at flags */
	NAME_STEPS = 4,               /* what a name counts for (core/port/work.h) */
	NAMES_FIRST = 16,
	LENGTH_BYTES = 4,             /* of a name in a list on the wire */
	PATTERN_MAX = 1 << 20, /* more than a request can have */
	MEMORY_SMALL = 65536,  /* so much is not charged */
	ENDS_BYTES = 1024,     /* of an answer besides its rows */
};

/* ---- what it has ---- */

static void forget_names(struct scan *s)
{
	for (size_t i = 0; i < s->count; i++)
		bytes_free(&s->names[i]);
	mem_free(s->names);
	s->names = NULL;
	s->count = s->cap = s->name_bytes = 0;
}

static void end_row(struct scan *s)
{
	if (s->showing)
		view_end(&s->view);
	s->showing = false;
	bytes_free(&s->holders);
	s->holder_count = 0;
}

static void forget_rows(struct scan *s)
{
	end_row(s);
	bytes_free(&s->rows);
	s->row_count = s->at = 0;
}

size_t scan_memory(const struct scan *s)
{
	size_t all = glob_memory(s->glob) + s->after.cap + s->root.listed.cap + s->name.cap + s->cap * sizeof(*s->names) +
		     s->name_bytes + s->holders.cap + s->rows.cap;

	return all > MEMORY_SMALL ? all - MEMORY_SMALL : 0;
}

/* For what it has become: `refused`, if its account may not have that. */
static void pay(struct scan *s)
{
	struct client *c = s->query->client;
	size_t bytes = scan_memory(s);

	if (bytes == s->charge.amount)
		return;
	if (bytes > s->charge.amount && !account_may(c->account, POOL_MEMORY, bytes - s->charge.amount, c->privileged))
		s->refused = true;
	charge_set(&s->charge, c->account, POOL_MEMORY, bytes);
}

void scan_restart(struct scan *s)
{
	struct hosts *h;

	if (!s)
		return;
	h = s->query->hosts;
	work_drop(&h->env->works, &s->work);
	walk_end(h->locks, &s->walk);
	forget_rows(s);
	forget_names(s);
	bytes_free(&s->name);
	s->further = s->root_refused = s->refused = false;
	s->state = SCAN_ROOT;
	root_find(h->env->conf, 0, &s->root);
	pay(s);
}

static void begin(struct query *q, struct slice pattern, struct slice after, int64_t most)
{
	struct scan *s = mem_new(sizeof(*s));

	assert(!q->scan);
	s->work.kind = WORK_SCAN;
	s->query = q;
	s->glob = glob_new(pattern);
	bytes_slice(&s->after, after);
	s->most = most;
	q->scan = s;
	scan_restart(s);
	query_aim(q);
}

void scan_end(struct query *q)
{
	struct scan *s = q->scan;

	if (!s)
		return;
	scan_restart(s);
	charge_give_back(&s->charge, POOL_MEMORY);
	glob_free(s->glob);
	bytes_free(&s->after);
	mem_free(s);
	q->scan = NULL;
}

/* ---- the names of the page ---- */

/* Where it stands among them, or belongs. */
static size_t place_of(const struct scan *s, struct slice name)
{
	size_t low = 0, high = s->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (slice_order(bytes_view(&s->names[middle]), name) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static void drop_last(struct scan *s)
{
	struct bytes *last = &s->names[--s->count];

	s->name_bytes -= last->cap;
	bytes_free(last);
}

/* The first names are kept. Two prefixes may have one path, and then one name twice. */
static void pick(struct scan *s, struct slice name)
{
	size_t at = place_of(s, name);

	if (at < s->count && slice_eq(bytes_view(&s->names[at]), name))
		return;
	if (s->count == (size_t)s->most) {
		s->further = true;
		if (at == s->count)
			return;
		drop_last(s);
	}
	if (s->count == s->cap) {
		s->cap = s->cap ? 2 * s->cap : NAMES_FIRST;
		s->names = mem_resize(s->names, s->cap * sizeof(*s->names));
	}
	memmove(&s->names[at + 1], &s->names[at], (s->count - at) * sizeof(*s->names));
	s->names[at] = (struct bytes){ 0 };
	bytes_slice(&s->names[at], name);
	bytes_fit(&s->names[at]);
	s->name_bytes += s->names[at].cap;
	s->count++;
}

static void look_at(struct scan *s, struct slice name, int64_t *done)
{
	size_t matching = 0;

	if (slice_order(name, bytes_view(&s->after)) > 0 && glob_matches(s->glob, name, &matching))
		pick(s, name);
	*done += NAME_STEPS + (int64_t)matching / MATCH_STEPS_A_STEP;
}

/* Standalone, all locks are this host's. False: all were looked at. */
static bool look_here(struct scan *s, int64_t *done)
{
	struct locks *locks = s->query->hosts->locks;
	const struct lock *lock;

	if (!s->walk.begun)
		walk_begin(locks, &s->walk, false);
	lock = walk_lock(&s->walk);
	if (lock)
		look_at(s, bytes_view(&lock->name), done);
	else
		walk_end(locks, &s->walk);
	return lock != NULL;
}

static bool look_below(struct scan *s, int64_t *done)
{
	struct slice znode;
	enum flavour flavour;

	if (!root_next(&s->root, &znode))
		return false;
	bytes_clear(&s->name);
	if (root_lock(s->query->hosts->env->conf, &s->root, znode, &s->name, &flavour))
		look_at(s, bytes_view(&s->name), done);
	else
		*done += NAME_STEPS;
	return true;
}

void scan_answered(struct hosts *h, const struct operation *op, const struct event *event)
{
	enum zk_code code = event->zk_answered.code;
	struct query *q = query_of(h, op);
	struct scan *s = q ? q->scan : NULL;
	int64_t bytes = 0;

	h->root_open = false;
	for (size_t i = 0; i < event->zk_answered.count; i++)
		bytes += (int64_t)event->zk_answered.children[i].len + LENGTH_BYTES;
	h->root_bytes = bytes > h->root_bytes ? bytes : h->root_bytes;
	if (!s)
		return;
	q->state = QUERY_READING;
	q->partial = code == ZK_UNKNOWN;
	s->state = SCAN_NAMES;
	s->root_refused = code != ZK_OK && code != ZK_NONODE && code != ZK_UNKNOWN;
	root_listed(&s->root, event);
	pay(s);
}

/* ---- rows ---- */

static void begin_row(struct scan *s)
{
	uint32_t rules = s->query->hosts->env->rules;

	end_row(s);
	if (s->at == 0)
		s->rules = rules;
	view_begin_holders(&s->view, s->query);
	s->showing = true;
}

static const char *kind_of(const struct query *q, const struct lock *lock)
{
	struct slice data = q->count ? bytes_view(&q->children[0].data) : (struct slice){ 0 };
	enum kind kind = KIND_LOCK;

	if (q->part != QUERY_LOCK)
		kind = KIND_SEMAPHORE;
	else if (lock)
		kind = lock->directory.kind;
	else if (record_is_ours(data) && !kind_of_word(record_get(data, "kind"), &kind))
		kind = KIND_LOCK; /* its contenders say nothing */
	return kind_word(kind);
}

static void write_row(const struct scan *s, struct bytes *out, bool more, int64_t waiters, size_t hosts_waiting)
{
	const struct query *q = s->query;
	int64_t limit = q->permits ? q->permits : lock_limit(lock_find(q->hosts->locks, bytes_view(&q->name)));

	resp_map(out, 8, q->client->version);
	reply_pairs(out, "name", bytes_view(&q->name), "kind", kind_of(q, view_lock(q)), "limit", limit);
	reply_pairs(out, "waiters", waiters, "hosts_waiting", hosts_waiting, "more", (int64_t)more, "known",
		    (int64_t)!q->refused);
	resp_bulk(out, SLICE("holders"));
	resp_array(out, s->holder_count);
	bytes_slice(out, bytes_view(&s->holders));
}

static bool too_long(const struct scan *s)
{
	return s->rows.len + ENDS_BYTES > s->query->hosts->env->conf->limits.output_bytes;
}

/* A lock that makes the page too long is the first one of the next page. False: the page is complete. */
static bool add_row(struct scan *s, bool more, int64_t *done)
{
	const struct query *q = s->query;
	const struct lock *lock = view_lock(q);
	int64_t waiters = lock ? (int64_t)lock->request_count : 0;
	size_t before, waiting, len = s->rows.len;

	view_hosts(q, &before, &waiting);
	*done += (int64_t)q->count / MATCH_STEPS_A_STEP;
	if (s->holder_count || waiters || waiting || q->refused) {
		write_row(s, &s->rows, more || q->unread, waiters, waiting);
		if (too_long(s) && s->row_count) {
			s->rows.len = len;
			s->further = true;
			return false;
		}
		s->row_count++;
	}
	s->at++;
	return s->at < s->count;
}

/* What this host holds for itself is newer than what was read of others. */
static bool is_over(const struct scan *s, const struct participant *p)
{
	const struct lock *lock = view_lock(s->query);

	return !p->here && lock && !lock->slots && lock->grant_count && lock->directory.claim &&
	       lock->directory.claim->mode == MODE_EXCLUSIVE;
}

enum row_step { ROW_OPEN, ROW_MADE, ROW_LAST };

static enum row_step make_row(struct scan *s, int64_t *done)
{
	struct participant p;
	enum view_step is = view_step(&s->view, &p, done);
	bool more = is == VIEW_ROW && s->holder_count == SCAN_HOLDERS_MAX;

	if (is == VIEW_LAST || more)
		return add_row(s, more, done) ? ROW_MADE : ROW_LAST;
	if (is == VIEW_ROW && !is_over(s, &p)) {
		participant_write_holder(&p, &s->holders, s->query->client->version);
		s->holder_count++;
	}
	return ROW_OPEN;
}

/* ---- the answer ---- */

static bool failed(const struct scan *s)
{
	return s->refused || s->query->partial || s->root_refused;
}

static void reply_failed(const struct scan *s, struct client *c)
{
	if (s->query->partial)
		reply_error(c, ERROR_UNAVAILABLE,
			    "there is no connection to ZooKeeper, which knows the locks of all hosts");
	else if (s->root_refused)
		reply_error(c, ERROR_UNAVAILABLE, "ZooKeeper refuses to show the names of the locks");
	else
		reply_error(c, ERROR_LIMIT, "%s", pools_refusal(c->locks->env, c->account, POOL_MEMORY, c->privileged));
}

static void answer(struct scan *s)
{
	struct query *q = s->query;
	struct client *c = q->client;
	struct bytes *out = reply_out(c);

	if (failed(s)) {
		reply_failed(s, c);
	} else if (too_long(s)) {
		reply_too_long(c);
	} else {
		resp_map(out, 2, c->version);
		resp_bulk(out, SLICE("next"));
		if (s->further)
			resp_bulk(out, bytes_view(&s->names[s->at - 1]));
		else
			resp_nil(out, c->version);
		resp_bulk(out, SLICE("locks"));
		resp_array(out, s->row_count);
		bytes_slice(out, bytes_view(&s->rows));
		reply_end(c);
	}
	scan_end(q);
	query_free(q);
}

/* ---- steps ---- */

/* Asks about the lock whose turn it is; standalone this host knows all. False: the query waits for its turn. */
static bool ask_lock(struct scan *s)
{
	struct query *q = s->query;

	end_row(s);
	query_next(q, bytes_view(&s->names[s->at]));
	if (!q->hosts->env->conf->standalone) {
		work_drop(&q->hosts->env->works, &s->work);
		return false;
	}
	q->state = QUERY_ANSWERING;
	begin_row(s);
	return true;
}

enum step { STEP_MORE, STEP_WAITS, STEP_ANSWER };

static enum step ask(struct scan *s)
{
	return ask_lock(s) ? STEP_MORE : STEP_WAITS;
}

static enum step step_names(struct scan *s, int64_t *done)
{
	const struct broker_conf *conf = s->query->hosts->env->conf;

	if (conf->standalone ? look_here(s, done) : look_below(s, done))
		return STEP_MORE;
	++*done;
	if (!conf->standalone && root_find(conf, s->root.number + 1, &s->root)) {
		s->state = SCAN_ROOT;
		query_next(s->query, (struct slice){ 0 });
		work_drop(&s->query->hosts->env->works, &s->work);
		return STEP_WAITS;
	}
	if (!s->count)
		return STEP_ANSWER;
	s->state = SCAN_LOCKS;
	return ask(s);
}

static enum step step_locks(struct scan *s, int64_t *done)
{
	if (s->rules != s->query->hosts->env->rules) { /* what it might look at before is not shown any longer */
		forget_rows(s);
		return ask(s);
	}
	switch (make_row(s, done)) {
	case ROW_OPEN:
		break;
	case ROW_MADE:
		return ask(s);
	case ROW_LAST:
		return STEP_ANSWER;
	}
	return STEP_MORE;
}

static enum step step(struct scan *s, int64_t *done)
{
	enum step is;

	if (failed(s))
		return STEP_ANSWER;
	is = s->state == SCAN_LOCKS ? step_locks(s, done) : step_names(s, done);
	pay(s);
	return is;
}

int64_t scan_continue(struct scan *s, int64_t steps)
{
	bool one = s->query->hosts->env->conf->all_in_pieces;
	int64_t done = 0;

	while (done < steps) {
		enum step is = step(s, &done);

		if (is == STEP_ANSWER)
			answer(s);
		if (is != STEP_MORE)
			break;
		if (one)
			return steps;
	}
	return done;
}

/* ---- begun, and found ---- */

static void take(struct query *q)
{
	struct scan *s = q->scan;

	q->state = QUERY_ANSWERING;
	if (s->state == SCAN_LOCKS && !failed(s))
		begin_row(s);
	else if (s->state == SCAN_ROOT) /* standalone, or it failed */
		s->state = SCAN_NAMES;
}

void scan_leave(struct query *q)
{
	take(q);
	work_add(&q->hosts->env->works, &q->client->user->worker, &q->scan->work);
}

void scan_found(struct query *q)
{
	struct work_user *worker = &q->client->user->worker;
	struct env *env = q->hosts->env;
	struct client *c = q->client;

	take(q);
	/* What comes before it for the same user goes first. */
	if (!env->conf->all_in_pieces && TAILQ_EMPTY(&worker->items))
		scan_continue(q->scan, WORK_TURN_STEPS);
	if (c->query && c->query->state == QUERY_ANSWERING)
		work_add(&env->works, worker, &c->query->scan->work);
}

void scan_ask(struct hosts *h, struct client *c, struct slice pattern, struct slice after, int64_t most)
{
	struct query *q = query_new(h, c, COMMAND_LOCKS, (struct slice){ 0 });

	begin(q, pattern, after, most < SCAN_COUNT_MAX ? most : SCAN_COUNT_MAX);
	if (query_begin(q))
		scan_found(q);
}

/* ---- in a snapshot ---- */

void scan_snapshot(const struct scan *s, struct entry_writer *w)
{
	entry_text(w, "pattern", glob_pattern(s->glob));
	entry_text(w, "after", bytes_view(&s->after));
	entry_number(w, "most", s->most);
}

bool scan_restore(struct query *q, const struct entry *e)
{
	struct slice pattern, after;
	int64_t most;

	if (!entry_get_text(e, "pattern", PATTERN_MAX, &pattern) ||
	    !entry_get_text(e, "after", NAME_BYTES_MAX, &after) ||
	    !entry_get_number(e, "most", 1, SCAN_COUNT_MAX, &most))
		return false;
	begin(q, pattern, after, most);
	return true;
}
