/* SPDX-License-Identifier: Apache-2.0 */
#include "core/session/operation.h"

#include <assert.h>

#include "base/mem.h"
#include "base/minmax.h"
#include "core/session/ensemble.h"

enum {
	OPERATIONS_FIRST_SIZE = 64,
	/* In bytes: what goes with a path and data, both ways; what a read brings, mostly; each child's length. */
	REQUEST_OVERHEAD = 128,
	READ_ANSWER = 256,
	CHILD_OVERHEAD = 4,
};

/* ---- how much may be open ---- */

enum { SPAN_PART = 24 }; /* of T */

static const int64_t FIRST[WINDOW_GAUGES] = { WINDOW_FIRST_BYTES, WINDOW_FIRST_COUNT, WINDOW_FIRST_COUNT };
static const int64_t LEAST[WINDOW_GAUGES] = { WINDOW_LEAST_BYTES, WINDOW_LEAST_COUNT, WINDOW_LEAST_COUNT };

void window_begin(struct window *w, int64_t now_ns)
{
	*w = (struct window){ .trip_ns = INT64_MAX };
	for (int i = 0; i < WINDOW_GAUGES; i++) {
		w->size[i] = FIRST[i];
		w->used_ns[i] = now_ns;
	}
}

static int64_t amount(const struct flight *flight, int gauge)
{
	const int64_t amounts[WINDOW_GAUGES] = {
		[WINDOW_BYTES] = flight->bytes, [WINDOW_READS] = !flight->write, [WINDOW_WRITES] = flight->write
	};

	return amounts[gauge];
}

void window_sent(struct window *w, struct flight *flight)
{
	for (int i = 0; i < WINDOW_GAUGES; i++) {
		flight->answered[i] = w->answered[i];
		w->open[i] += amount(flight, i);
	}
}

bool window_has_room(const struct window *w)
{
	if (!w->open[WINDOW_READS] && !w->open[WINDOW_WRITES])
		return true;
	for (int i = 0; i < WINDOW_GAUGES; i++)
		if (w->open[i] >= w->size[i])
			return false;
	return true;
}

/* A round trip of more than that is no distance, but a server that is slow. */
int64_t window_span_ns(const struct window *w, int64_t timeout_ns)
{
	return timeout_ns / SPAN_PART + (w->trip_ns == INT64_MAX ? 0 : min64(w->trip_ns, timeout_ns / SPAN_PART));
}

/* So much was answered in so long: what would be in `span_ns`, if so much more is to be believed. */
static int64_t in_time(int64_t answered, int64_t took_ns, int64_t span_ns)
{
	/* By a quotient: T may be an hour, and the product of that and some megabytes would overflow. */
	if (took_ns <= span_ns / 2)
		return 2 * answered;
	return (int64_t)((double)answered * ((double)span_ns / (double)took_ns));
}

static void measure(struct window *w, int gauge, int64_t answered, int64_t took_ns, int64_t span_ns)
{
	int64_t fits = in_time(answered, took_ns, span_ns);

	if (took_ns > span_ns || fits > w->size[gauge])
		w->size[gauge] = max64(LEAST[gauge], fits);
}

void window_answered(struct window *w, const struct flight *flight, int64_t now_ns, int64_t timeout_ns)
{
	int64_t took_ns = now_ns - flight->sent_ns, span_ns;

	if (flight->write)
		w->trip_ns = min64(w->trip_ns, took_ns);
	span_ns = window_span_ns(w, timeout_ns);
	for (int i = 0; i < WINDOW_GAUGES; i++) {
		int64_t mine = amount(flight, i), answered;

		w->open[i] -= mine;
		w->answered[i] += mine;
		answered = w->answered[i] - flight->answered[i];
		measure(w, i, answered, took_ns, span_ns);
		if (answered * 2 >= w->size[i]) {
			w->used_ns[i] = now_ns;
		} else if (now_ns - w->used_ns[i] >= timeout_ns && w->size[i] > FIRST[i]) {
			w->size[i] = max64(FIRST[i], w->size[i] / 2);
			w->used_ns[i] = now_ns;
		}
	}
}

/* ---- the queue ---- */

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

struct bytes *operation_data(const struct ensemble *zk)
{
	return &zk->env->out->arena;
}

static const struct effect *emit(struct ensemble *zk, enum effect_type type, const struct operation_request *request,
				 uint64_t number)
{
	struct effects *out = zk->env->out;
	struct effect *e;

	tell_more(out);
	e = effects_add(out, type);
	e->data = effects_take(out);
	bytes_slice(&out->arena, request->path);
	if (request->child.len)
		bytes_format(&out->arena, "/%s", request->child);
	e->text = effects_take(out);
	e->op = number;
	e->create = request->create;
	e->exact = request->exact;
	e->version = request->version;
	e->watch = request->op.watch || request->op.kind == OPERATION_WATCH_PRED ||
		   request->op.kind == OPERATION_WATCH_OWN || request->op.kind == OPERATION_WATCH_AHEAD ||
		   request->op.kind == OPERATION_SEMAPHORE_GET;
	return e;
}

/* Of the request and of its answer: a directory is most likely as large as it was. */
static int64_t expected_bytes(const struct ensemble *zk, const struct effect *sent, int64_t list_bytes)
{
	int64_t bytes = (int64_t)(sent->text.len + sent->data.len) + REQUEST_OVERHEAD;

	if (sent->type == EFFECT_ZK_GET)
		return bytes + READ_ANSWER;
	if (sent->type == EFFECT_ZK_LIST)
		return bytes + (list_bytes ? list_bytes : zk->operations.list_bytes);
	return bytes;
}

/* What is not known is taken to be as large as the largest of late. */
static int64_t note_list(struct operations *o, const struct event *event)
{
	int64_t bytes = 0;

	for (size_t i = 0; i < event->zk_answered.count; i++)
		bytes += (int64_t)event->zk_answered.children[i].len + CHILD_OVERHEAD;
	o->list_bytes = bytes > o->list_bytes ? bytes : o->list_bytes - (o->list_bytes - bytes) / 16;
	return bytes;
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
	op->flight.bytes = expected_bytes(zk, emit(zk, type, request, number), request->list_bytes);
	window_sent(&o->window, &op->flight);
	if (op->flight.write) {
		zk->session.write_ns = zk->env->now_ns;
		op->write = proof_sent(&zk->session.proof, zk->env->now_ns, zk->env->conf->tick_ns);
		zk->env->stats.zk_writes_total++;
	} else {
		zk->env->stats.zk_reads_total++;
	}
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

const struct operation *operation_find(struct ensemble *zk, uint64_t number)
{
	struct operations *o = &zk->operations;

	return number < o->first || number >= o->end || slot(o, number)->done ? NULL : slot(o, number);
}

int64_t operation_measure(struct ensemble *zk, const struct operation *op, const struct event *event)
{
	zk->operations.answered_ns = zk->env->now_ns;
	histogram_add(&zk->env->stats.round_trip, zk->env->now_ns - op->flight.sent_ns);
	window_answered(&zk->operations.window, &op->flight, zk->env->now_ns, zk->session.timeout_ns);
	return event->zk_answered.children ? note_list(&zk->operations, event) : 0;
}

struct operation operation_take(struct ensemble *zk, uint64_t number)
{
	struct operations *o = &zk->operations;
	struct operation op = *slot(o, number);

	assert(!op.done);
	slot(o, number)->done = true;
	while (o->first != o->end && slot(o, o->first)->done)
		o->first++;
	return op;
}

void operation_deinit(struct operations *o)
{
	mem_free(o->ring);
	*o = (struct operations){ 0 };
}
