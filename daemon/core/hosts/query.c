/* SPDX-License-Identifier: Apache-2.0 */
#include "core/hosts/query.h"

#include <assert.h>

#include "base/mem.h"
#include "core/hosts/scan.h"
#include "core/hosts/hosts.h"
#include "core/kind/permit_limit.h"
#include "core/znode/record.h"

static const struct slice NO_CHILD = { 0 };

static void free_children(struct query_child *children, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		bytes_free(&children[i].name);
		bytes_free(&children[i].data);
	}
	mem_free(children);
}

static void forget_children(struct query *q)
{
	free_children(q->children, q->count);
	q->children = NULL;
	q->count = q->sent = q->answered = 0;
}

/* All that was found. */
static void forget(struct query *q)
{
	forget_children(q);
	free_children(q->holders, q->holder_count);
	q->holders = NULL;
	q->holder_count = 0;
	q->permits = 0;
	q->crowded = q->partial = q->refused = q->unread = q->wrote = false;
}

void query_free(struct query *q)
{
	assert(!q->revocation && !q->answer && !q->scan);
	forget(q);
	bytes_free(&q->name);
	bytes_free(&q->path);
	TAILQ_REMOVE(&q->hosts->queries, q, link);
	q->client->query = NULL;
	mem_free(q);
}

bool query_is_elsewhere(const struct query_child *child)
{
	return !child->ours && !child->gone;
}

bool query_is_held(const struct query *q, const struct query_child *lease, size_t place)
{
	return !q->permits || place < (size_t)q->permits || record_get(bytes_view(&lease->data), "since").len;
}

size_t query_entitled(const struct query *q)
{
	size_t count = 0;

	if (q->part == QUERY_SLOTS)
		return q->count;
	while (count < q->count && q->children[count].mode == MODE_SHARED)
		count++;
	return count || !q->count ? count : 1;
}

/* Those that have to release; and the one behind a sole holder, which may have taken over from it (claim.h). */
static size_t revoked(const struct query *q)
{
	size_t entitled = query_entitled(q);
	bool alone = q->part == QUERY_LOCK && q->command == COMMAND_FORCEUNLOCK && entitled == 1 &&
		     q->children[0].mode == MODE_EXCLUSIVE;

	return alone && q->count > 1 ? 2 : entitled;
}

void query_send(struct query *q, enum effect_type type, const struct operation_request *request)
{
	q->hosts->query_open++;
	operation_send(q->hosts->ensemble, type, request);
}

/* Reads the directory, or a child of it. */
static void send(struct query *q, enum effect_type type, enum operation_kind kind, struct slice child)
{
	bool of_root = kind == OPERATION_SCAN_LIST;

	struct operation_request r = {
		.op = { .kind = kind, .query = q->number },
		.path = bytes_view(&q->path),
		.child = child,
		.list_bytes = of_root ? q->hosts->root_bytes : 0,
	};

	q->hosts->root_open = q->hosts->root_open || of_root;
	query_send(q, type, &r);
}

/* ZooKeeper's `sync` is not enough: a former leader that is cut off answers it. A write has to pass the quorum. */
static void write_first(struct query *q)
{
	struct operation_request r = { .op = { .kind = OPERATION_QUERY_WRITE, .query = q->number } };

	q->wrote = true;
	presence_write(q->hosts->ensemble, &r);
	query_send(q, EFFECT_ZK_SET, &r);
}

/* If this host holds exclusively, only the others that wait have to be asked for. */
static bool known_here(const struct query *q)
{
	const struct lock *lock;

	if (q->part != QUERY_LOCK)
		return false;
	if (q->command != COMMAND_HOLDERS && q->command != COMMAND_LEADER && !q->revocation)
		return false;
	lock = lock_find(q->hosts->locks, bytes_view(&q->name));
	return lock && !lock->slots && lock->grant_count && lock->directory.claim->mode == MODE_EXCLUSIVE;
}

void query_aim(struct query *q)
{
	const struct hosts *h = q->hosts;
	bool of_lock = q->name.len && q->command != COMMAND_LEADER && q->command != COMMAND_LIMIT;
	const struct lock *here = of_lock ? lock_find(h->locks, bytes_view(&q->name)) : NULL;

	bytes_clear(&q->path);
	if (q->command == COMMAND_HOSTS)
		bytes_format(&q->path, "%s/.hosts", h->env->conf->root);
	else if (q->scan && q->scan->state == SCAN_ROOT)
		bytes_slice(&q->path, q->scan->root.path);
	else if (q->name.len)
		q->flavour = flavour_place(h->env->conf, bytes_view(&q->name), &q->path);
	q->part = here && here->slots ? QUERY_LIMIT :
		  q->command == COMMAND_LOCKS && !q->name.len		    ? QUERY_ROOT :
										      QUERY_LOCK;
	q->state = QUERY_ASKED;
}

/* Most often behind all others. */
static void get_in_line(struct query *q)
{
	struct hosts *h = q->hosts;
	struct user *user = q->client->user;
	struct query *before = TAILQ_LAST(&h->queries, query_list);

	if (client_is_operator(q->client))
		q->tag = h->query_round;
	else
		q->tag = user->last_query = (user->last_query > h->query_round ? user->last_query : h->query_round) + 1;
	while (before && before->tag > q->tag)
		before = TAILQ_PREV(before, query_list, link);
	if (before)
		TAILQ_INSERT_AFTER(&h->queries, before, q, link);
	else
		TAILQ_INSERT_HEAD(&h->queries, q, link);
}

void query_go_last(struct query *q)
{
	struct hosts *h = q->hosts;

	TAILQ_REMOVE(&h->queries, q, link);
	TAILQ_INSERT_TAIL(&h->queries, q, link);
	q->tag = q->client->user->last_query = ++h->query_round;
}

struct query *query_new(struct hosts *h, struct client *c, enum command command, struct slice name)
{
	struct query *q = mem_new(sizeof(*q));

	q->hosts = h;
	q->client = c;
	q->command = command;
	q->number = ++h->last_query;
	ledger_number(h->env->ledger, CEILING_QUERY, q->number);
	bytes_slice(&q->name, name);
	query_aim(q);
	get_in_line(q);
	c->query = q;
	return q;
}

static void begin_anew(struct query *q)
{
	forget(q);
	query_aim(q);
	TAILQ_REMOVE(&q->hosts->queries, q, link);
	get_in_line(q);
}

void query_refresh(struct query *q)
{
	q->fresh = true;
	begin_anew(q);
}

void query_next(struct query *q, struct slice name)
{
	bytes_set(&q->name, name);
	begin_anew(q);
}

bool query_begin(struct query *q)
{
	if (q->hosts->env->conf->standalone || known_here(q))
		return true;
	q->partial = !session_reaches(q->hosts->ensemble);
	return q->partial;
}

void query_take_seen(struct query *q)
{
	const struct lock *lock = lock_find(q->hosts->locks, bytes_view(&q->name));

	q->known = true;
	if (q->part != QUERY_LOCK || !lock || lock->grant_count || !sighting_tells_holder(&lock->directory))
		return;
	q->children = mem_new(sizeof(*q->children));
	q->children[0].mode = lock->directory.seen.mode;
	bytes_slice(&q->children[0].name, bytes_view(&lock->directory.seen.by));
	bytes_slice(&q->children[0].data, bytes_view(&lock->directory.seen.data));
	q->count = 1;
}

static int by_order(const void *a, const void *b)
{
	const struct query_child *x = a, *y = b;

	if (x->seq != y->seq)
		return x->seq < y->seq ? -1 : 1;
	return slice_order(bytes_view(&x->name), bytes_view(&y->name));
}

static bool wanted(const struct query *q, struct slice name, struct query_child *ret)
{
	int64_t session = q->hosts->ensemble->session.id;
	struct contender parsed;

	*ret = (struct query_child){ 0 };
	if (q->command == COMMAND_HOSTS)
		return true;
	if (!contender_parse(name, q->flavour, &parsed))
		return false;
	ret->mode = parsed.mode;
	ret->seq = parsed.seq;
	ret->ours = contender_of_session(name, q->flavour, session);
	return true;
}

static void keep_children(struct query *q, const struct event *event)
{
	size_t count = event->zk_answered.count, most = q->revocation ? SIZE_MAX : QUERY_CHILDREN_MAX, keep;
	struct query_child child;

	q->children = mem_new((count + 1) * sizeof(*q->children));
	for (size_t i = 0; i < count; i++) {
		if (!wanted(q, event->zk_answered.children[i], &child))
			continue;
		bytes_slice(&child.name, event->zk_answered.children[i]);
		q->children[q->count++] = child;
	}
	qsort(q->children, q->count, sizeof(*q->children), by_order);
	keep = q->command == COMMAND_LEADER && q->count ? 1 : q->revocation ? revoked(q) : q->count;
	q->crowded = q->part == QUERY_SLOTS ? q->permits && q->count > (size_t)q->permits : q->crowded;
	while (q->count > keep || q->count > most)
		bytes_free(&q->children[--q->count].name);
}

/* WHY and LOCKS only count those that wait, and QUEUE those that hold. */
static bool is_counted(const struct query *q)
{
	return ((q->command == COMMAND_WHY || q->command == COMMAND_LOCKS) && q->part == QUERY_MUTEX) ||
	       (q->command == COMMAND_QUEUE && q->part == QUERY_SLOTS);
}

/* So many are read. LOCKS shows the first few of those that hold. */
static size_t readable(const struct query *q)
{
	size_t entitled = q->scan ? query_entitled(q) : q->count;

	return q->scan && entitled > SCAN_READS_MAX ? SCAN_READS_MAX : entitled;
}

/* Our own are not read: this host knows better. Answers are counted in order. */
static void read_more(struct query *q)
{
	struct hosts *h = q->hosts;
	size_t most = readable(q);

	if (is_counted(q))
		q->sent = q->answered = q->count;
	while (q->sent < most && q->sent - q->answered < QUERY_READS_MAX && h->ensemble->session.connected &&
	       turn_of_questions(h->locks->directories)) {
		struct query_child *child = &q->children[q->sent];

		if (child->ours && q->sent > q->answered)
			return;
		q->sent++;
		if (child->ours)
			q->answered++;
		else
			send(q, EFFECT_ZK_GET, OPERATION_QUERY_GET, bytes_view(&child->name));
	}
}

static void ask_part(struct query *q, enum query_part part)
{
	struct slice name = bytes_view(&q->name);

	q->part = part;
	q->state = QUERY_ASKED;
	bytes_clear(&q->path);
	q->flavour = flavour_place(q->hosts->env->conf, name, &q->path);
	if (part == QUERY_LOCK || part == QUERY_LIMIT)
		return;
	bytes_text(&q->path, part == QUERY_SLOTS ? "/leases" : "/locks");
	q->flavour = part == QUERY_SLOTS ? FLAVOUR_SLOTS : FLAVOUR_MUTEX;
}

/* The present part is known. False: it was the last. */
static bool go_on(struct query *q)
{
	q->unread = q->unread || q->answered < query_entitled(q);
	if (q->part != QUERY_SLOTS ||
	    (q->command != COMMAND_WHY && q->command != COMMAND_QUEUE && q->command != COMMAND_LOCKS))
		return false;
	while (q->count > q->answered)
		bytes_free(&q->children[--q->count].name);
	q->holders = q->children;
	q->holder_count = q->count;
	q->children = NULL;
	q->count = q->sent = q->answered = 0;
	ask_part(q, QUERY_MUTEX);
	return true;
}

/* False: it is finished. */
static bool step(struct query *q)
{
	switch (q->state) {
	case QUERY_ASKED:
		if (!turn_of_questions(q->hosts->locks->directories) || (q->part == QUERY_ROOT && q->hosts->root_open))
			break;
		q->state = QUERY_LISTING;
		if (q->fresh && !q->wrote)
			write_first(q);
		if (q->command == COMMAND_LIMIT)
			send(q, EFFECT_ZK_GET, OPERATION_LIMIT_GET, NO_CHILD);
		else if (q->part == QUERY_LIMIT)
			send(q, EFFECT_ZK_GET, OPERATION_QUERY_GET, NO_CHILD);
		else if (q->part == QUERY_ROOT)
			send(q, EFFECT_ZK_LIST, OPERATION_SCAN_LIST, NO_CHILD);
		else
			send(q, EFFECT_ZK_LIST, OPERATION_QUERY_LIST, NO_CHILD);
		break;
	case QUERY_LISTING:
	case QUERY_REVOKING:
	case QUERY_ANSWERING:
		break;
	case QUERY_READING:
		read_more(q);
		if (q->answered < readable(q))
			break;
		if (go_on(q))
			return step(q);
		return false;
	}
	return true;
}

/* It is not known yet what it asks for. */
static bool is_open(const struct query *q)
{
	return q->state != QUERY_REVOKING && q->state != QUERY_ANSWERING;
}

/* Nobody can be asked any longer: the answer is what this host knows. */
static struct query *given_up(struct hosts *h)
{
	struct query *q;

	if (session_reaches(h->ensemble))
		return NULL;
	TAILQ_FOREACH(q, &h->queries, link)
		if (is_open(q)) {
			q->partial = true;
			return q;
		}
	return NULL;
}

struct query *query_finished(struct hosts *h)
{
	struct query *q;
	size_t active = 0;

	if (!h->ensemble->session.connected)
		return given_up(h);
	TAILQ_FOREACH(q, &h->queries, link) {
		if (!is_open(q))
			continue;
		if (active == QUERY_ACTIVE_MAX || h->query_open >= QUERY_OPEN_MAX || !h->ensemble->session.proving)
			break;
		if (q->tag > h->query_round)
			h->query_round = q->tag;
		if (!step(q))
			return q;
		active++;
	}
	return NULL;
}

/* The directory is a semaphore's, not a lock's. */
static bool shows_semaphore(const struct query *q, const struct event *event)
{
	if (q->part != QUERY_LOCK || q->no_semaphore || q->command == COMMAND_LEADER || q->command == COMMAND_HOSTS)
		return false;
	for (size_t i = 0; i < event->zk_answered.count; i++)
		if (slice_eq(event->zk_answered.children[i], SLICE("leases")) ||
		    slice_eq(event->zk_answered.children[i], SLICE("locks")))
			return true;
	return false;
}

static void limit_answered(struct query *q, const struct event *event)
{
	enum zk_code code = event->zk_answered.code;

	/* This host may have been asked for permits by mistake. */
	q->no_semaphore = code == ZK_OK && !permit_limit_data_fits(event->zk_answered.data, &q->permits);
	q->refused |= code != ZK_OK && code != ZK_NONODE && code != ZK_UNKNOWN;
	ask_part(q, q->no_semaphore ? QUERY_LOCK : QUERY_SLOTS);
}

static void list_answered(struct query *q, const struct event *event)
{
	enum zk_code code = event->zk_answered.code;

	if (shows_semaphore(q, event)) {
		ask_part(q, QUERY_LIMIT);
		return;
	}
	q->state = QUERY_READING;
	q->partial = code == ZK_UNKNOWN;
	q->refused |= code != ZK_OK && code != ZK_NONODE && code != ZK_UNKNOWN;
	keep_children(q, event);
}

/* Without its data there is no answer. */
static bool matters(const struct query *q, const struct query_child *child)
{
	return q->command == COMMAND_LEADER || (q->revocation && child < q->children + query_entitled(q));
}

static void get_answered(struct query *q, const struct event *event)
{
	struct query_child *child = &q->children[q->answered++];
	enum zk_code code = event->zk_answered.code;

	if (code == ZK_OK) {
		struct slice data = event->zk_answered.data;

		/* Brokers write less, and what others write does not concern us. */
		data.len = data.len < QUERY_DATA_MAX ? data.len : QUERY_DATA_MAX;
		bytes_slice(&child->data, data);
		child->owner = event->zk_answered.stat.owner;
	} else {
		child->gone = code == ZK_NONODE;
		q->partial |= code == ZK_UNKNOWN;
	}
	if (q->command == COMMAND_LEADER && child->gone) { /* the next may lead by now */
		forget_children(q);
		q->state = QUERY_ASKED;
	} else if (matters(q, child) && code != ZK_OK && code != ZK_NONODE && code != ZK_UNKNOWN) {
		q->refused = true;
	}
}

void query_move_all(struct hosts *h)
{
	struct query *q;

	TAILQ_FOREACH(q, &h->queries, link) {
		if (q->state == QUERY_REVOKING || q->known)
			continue;
		q->number = ++h->last_query;
		ledger_number(h->env->ledger, CEILING_QUERY, q->number);
		forget(q);
		if (q->scan)
			bytes_clear(&q->name);
		query_aim(q);
	}
}

struct query *query_find(const struct hosts *h, uint64_t number)
{
	struct query *q;

	TAILQ_FOREACH(q, &h->queries, link)
		if (q->number == number)
			return q;
	return NULL;
}

struct query *query_of(struct hosts *h, const struct operation *op)
{
	h->query_open--;
	return query_find(h, op->query);
}

void query_answered(struct hosts *h, const struct operation *op, const struct event *event)
{
	struct query *q = query_of(h, op);

	if (!q)
		return;
	if (op->kind == OPERATION_QUERY_WRITE)
		q->refused |= zk_refuses(event->zk_answered.code);
	else if (op->kind == OPERATION_QUERY_LIST)
		list_answered(q, event);
	else if (q->state == QUERY_LISTING)
		limit_answered(q, event);
	else
		get_answered(q, event);
}
