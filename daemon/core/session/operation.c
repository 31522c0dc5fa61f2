/* SPDX-License-Identifier: Apache-2.0 */
#include "core/session/operation.h"

#include <assert.h>

#include "base/mem.h"
#include "core/session/presence.h"
#include "core/hosts/audit.h"
#include "core/hosts/revocation.h"
#include "core/kind/election.h"
#include "core/hosts/outbox.h"
#include "core/hosts/inbox.h"
#include "core/hosts/query.h"
#include "core/kind/semaphore.h"
#include "core/state.h"

enum {
	OPERATIONS_FIRST_SIZE = 64,
	/* In bytes: what goes with a path and data, both ways; what a read brings, mostly; each child's length. */
	REQUEST_OVERHEAD = 128,
	READ_ANSWER = 256,
	CHILD_OVERHEAD = 4,
};

/* An answer of unknown outcome on a living connection: the same would happen again at once. */
static const int64_t UNKNOWN_PAUSE_NS = 1000000000;

static struct operation *slot(struct operations *o, uint64_t number)
{
	return &o->ring[number & (o->cap - 1)];
}

static void grow(struct operations *o)
{
	size_t cap = o->cap ? o->cap * 2 : OPERATIONS_FIRST_SIZE;
	struct operation *ring = mem_new(cap * sizeof(*ring));

	for (uint64_t n = o->first; n < o->end; n++)
		ring[n & (cap - 1)] = *slot(o, n);
	mem_free(o->ring);
	o->ring = ring;
	o->cap = cap;
}

static bool is_write(enum effect_type type)
{
	return type == EFFECT_ZK_CREATE || type == EFFECT_ZK_SET || type == EFFECT_ZK_DELETE;
}

static bool asks_zookeeper(enum effect_type type)
{
	return is_write(type) || type == EFFECT_ZK_LIST || type == EFFECT_ZK_GET;
}

/* What went before it to ZooKeeper, if anything did, is not the last. */
static void tell_more(struct effects *out)
{
	for (size_t i = out->count; i-- > 0;) {
		if (!asks_zookeeper(out->list[i].type))
			continue;
		out->list[i].more = true;
		return;
	}
}

static void emit(struct ensemble *zk, enum effect_type type, const struct operation_request *request, uint64_t number)
{
	struct effects *out = zk->env->out;
	size_t begin = effects_begin(out);
	struct effect *e;
	struct span path, data;

	bytes_slice(&out->arena, request->path);
	path = effects_end(out, begin);
	begin = effects_begin(out);
	bytes_slice(&out->arena, request->data);
	data = effects_end(out, begin);
	tell_more(out);
	e = effects_add(out, type);
	e->op = number;
	e->create = request->create;
	e->exact = request->exact;
	e->version = request->version;
	e->watch = request->op.watch || request->op.kind == OPERATION_WATCH_PRED ||
		   request->op.kind == OPERATION_WATCH_OWN || request->op.kind == OPERATION_SEMAPHORE_GET;
	e->text = path;
	e->data = data;
}

/* Of the request and of its answer: a directory is most likely as large as it was. */
static int64_t expected_bytes(const struct ensemble *zk, enum effect_type type, const struct operation_request *request)
{
	int64_t bytes = (int64_t)(request->path.len + request->data.len) + REQUEST_OVERHEAD;
	const struct lock *lock = request->op.lock;

	if (type == EFFECT_ZK_GET)
		return bytes + READ_ANSWER;
	if (type == EFFECT_ZK_LIST)
		return bytes + (lock && lock->directory.list_bytes ? lock->directory.list_bytes : zk->operations.list_bytes);
	return bytes;
}

/* What is not known is taken to be as large as the largest of late. */
static void note_list(struct ensemble *zk, struct lock *lock, const struct event *event)
{
	struct operations *o = &zk->operations;
	int64_t bytes = 0;

	for (size_t i = 0; i < event->zk_answered.count; i++)
		bytes += (int64_t)event->zk_answered.children[i].len + CHILD_OVERHEAD;
	o->list_bytes = bytes > o->list_bytes ? bytes : o->list_bytes - (o->list_bytes - bytes) / 16;
	if (lock)
		lock->directory.list_bytes = bytes;
}

uint64_t operation_send(struct ensemble *zk, enum effect_type type, const struct operation_request *request)
{
	struct operations *o = &zk->operations;
	struct operation *op;
	uint64_t number;

	assert(zk->session.connected);
	if (!o->end)
		o->first = o->end = 1;
	if (o->end - o->first == o->cap)
		grow(o);
	number = o->end++;
	op = slot(o, number);
	*op = request->op;
	op->done = false;
	op->flight = (struct flight){ .write = is_write(type), .sent_ns = zk->env->now_ns };
	op->flight.bytes = expected_bytes(zk, type, request);
	window_sent(&o->window, &op->flight);
	if (op->lock)
		op->lock->operations++;
	if (op->flight.write) {
		zk->session.write_ns = zk->env->now_ns;
		op->seen_ns = zk->session.seen_ns;
		op->older_ns = session_older_answer(zk);
		zk->env->stats.zk_writes_total++;
	} else {
		zk->env->stats.zk_reads_total++;
	}
	emit(zk, type, request, number);
	return number;
}

int64_t operation_oldest_ns(const struct ensemble *zk)
{
	const struct operations *o = &zk->operations;

	return o->first == o->end ? INT64_MAX : o->ring[o->first & (o->cap - 1)].flight.sent_ns;
}

int64_t operation_silent_since(const struct ensemble *zk)
{
	int64_t sent_ns = operation_oldest_ns(zk), answered_ns = zk->operations.answered_ns;

	return sent_ns > answered_ns ? sent_ns : answered_ns;
}

static struct claim *claim_of(const struct operation *op)
{
	struct claim *c;

	if (!op->lock || !op->claim)
		return NULL;
	if (op->lock->claim && op->lock->claim->number == op->claim)
		return op->lock->claim;
	if (op->lock->next && op->lock->next->number == op->claim)
		return op->lock->next;
	TAILQ_FOREACH(c, &op->lock->permits, link)
		if (c->number == op->claim)
			return c;
	TAILQ_FOREACH(c, &op->lock->leaving, link)
		if (c->number == op->claim)
			return c;
	return NULL;
}

static void dispatch(struct ensemble *zk, const struct operation *op, uint64_t number, const struct event *event)
{
	switch (op->kind) {
	case OPERATION_PATH:
	case OPERATION_BEAT:
	case OPERATION_DUPLICATE:
		presence_answered(zk, op->kind, event);
		break;
	case OPERATION_DIR_MAKE:
	case OPERATION_DIR_GET:
	case OPERATION_DIR_END:
	case OPERATION_LIST:
		directory_answered(op, number, event);
		break;
	case OPERATION_JOIN:
	case OPERATION_LOOK_OWN:
	case OPERATION_LOOK_PRED:
	case OPERATION_WATCH_PRED:
	case OPERATION_WATCH_OWN:
	case OPERATION_ADOPT:
	case OPERATION_LEAVE:
	case OPERATION_HOLDER:
		claim_answered(claim_of(op), op, event);
		break;
	case OPERATION_PROCLAIM:
		election_answered(op->lock, number, event);
		break;
	case OPERATION_OBSERVE_LIST:
	case OPERATION_OBSERVE_GET:
		observe_answered(op, number, event);
		break;
	case OPERATION_SEMAPHORE_GET:
	case OPERATION_SEMAPHORE_WRITE:
		semaphore_answered(op, event);
		break;
	case OPERATION_LIMIT_GET:
	case OPERATION_LIMIT_SET:
	case OPERATION_QUERY_LIST:
	case OPERATION_QUERY_GET:
		query_answered(&zk->broker->hosts, op, event);
		break;
	case OPERATION_AUDIT_ROOT:
	case OPERATION_AUDIT_DATA:
	case OPERATION_AUDIT_LIST:
	case OPERATION_AUDIT_DELETE:
		audit_answered(&zk->broker->hosts, op, event);
		break;
	case OPERATION_INBOX_LIST:
	case OPERATION_INBOX_GET:
	case OPERATION_INBOX_DELETE:
		inbox_answered(&zk->broker->hosts, op, event);
		break;
	case OPERATION_LETTER_POST:
	case OPERATION_LETTER_WITHDRAW:
		outbox_operated(&zk->broker->hosts, op, event);
		break;
	case OPERATION_REVOCATION_DELETE:
		revocation_operated(&zk->broker->hosts, op, event);
		break;
	}
}

/* Takes the operation off the queue, then acts on its answer: what that sends is queued behind. */
static void finish(struct ensemble *zk, uint64_t number, const struct event *event)
{
	struct operations *o = &zk->operations;
	struct operation op = *slot(o, number);

	slot(o, number)->done = true;
	while (o->first != o->end && slot(o, o->first)->done)
		o->first++;
	if (event->zk_answered.code == ZK_UNKNOWN)
		zk->env->stats.unknown_total++;
	trouble_answered(zk, &op, event);
	dispatch(zk, &op, number, event);
	if (op.lock) {
		op.lock->operations--;
		lock_touch(op.lock);
	}
}

/* The answers that went through the quorum, also when they are errors. */
static bool proves(enum zk_code code)
{
	return code <= ZK_BADVERSION;
}

void operation_answered(struct ensemble *zk, const struct event *event)
{
	struct operations *o = &zk->operations;
	uint64_t number = event->zk_answered.op;
	const struct operation *op;

	if (number < o->first || number >= o->end || slot(o, number)->done)
		return;
	op = slot(o, number);
	if (op->flight.write && proves(event->zk_answered.code))
		session_proved(zk, op);
	else if (op->flight.write)
		session_refused(zk, op);
	if (event->zk_answered.code == ZK_UNKNOWN) {
		/* Whatever the adapter thinks of the connection, what follows on it could no longer be believed. */
		if (op->lock)
			lock_pause(op->lock, UNKNOWN_PAUSE_NS);
		effects_add(zk->env->out, EFFECT_ZK_DROP);
		session_suspended(zk);
		return;
	}
	o->answered_ns = zk->env->now_ns;
	window_answered(&o->window, &op->flight, zk->env->now_ns, zk->session.timeout_ns);
	if (event->zk_answered.children)
		note_list(zk, op->lock, event);
	finish(zk, number, event);
}

void operation_begin(struct ensemble *zk)
{
	window_begin(&zk->operations.window, zk->env->now_ns);
}

void operation_fail_all(struct ensemble *zk)
{
	struct operations *o = &zk->operations;
	uint64_t end = o->end;

	while (o->first < end) {
		struct event unknown = { .type = EVENT_ZK_ANSWERED };

		unknown.zk_answered.op = o->first;
		unknown.zk_answered.code = ZK_UNKNOWN;
		finish(zk, o->first, &unknown);
	}
	assert(o->first == o->end);
}

void operation_deinit(struct operations *o)
{
	mem_free(o->ring);
	*o = (struct operations){ 0 };
}
