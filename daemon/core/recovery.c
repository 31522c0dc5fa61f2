/* SPDX-License-Identifier: Apache-2.0 */
#include "core/recovery.h"

#include <assert.h>
#include <stdlib.h>

#include "base/mem.h"
#include "core/claim/charge.h"
#include "core/claim/listing.h"
#include "core/client/notify.h"
#include "core/drain.h"
#include "core/hosts/scan.h"
#include "core/hosts/query_reply.h"
#include "core/kind/permit_limit.h"
#include "core/state.h"

static const int64_t JOIN_JITTER_NS = 200000000;

/* ---- ZooKeeper's answers and watch events ---- */

static struct claim *claim_of(const struct operation *op)
{
	struct claim *c;

	if (!op->directory || !op->claim)
		return NULL;
	CLAIM_FOREACH(c, op->directory)
		if (c->number == op->claim)
			break;
	return c;
}

/* The module that an answer belongs to, by what it needs besides. */
struct owner {
	void (*directory)(const struct operation *op, const struct event *event);
	void (*claim)(struct claim *c, const struct operation *op, const struct event *event);
	void (*hosts)(struct hosts *h, const struct operation *op, const struct event *event);
	bool (*ensemble)(struct ensemble *zk, enum operation_kind kind, const struct event *event);
};

/* As long as an operation is open its lock does not become one of another kind. */
static void kind_answered(const struct operation *op, const struct event *event)
{
	op->directory->lock->rule->answered(op, event);
}

#define OWNER_PRESENCE .ensemble = presence_answered
#define OWNER_DIRECTORY .directory = directory_answered
#define OWNER_LISTING .directory = listing_answered
#define OWNER_CLAIM .claim = claim_answered
#define OWNER_LOOK .claim = look_answered
#define OWNER_KIND .directory = kind_answered
#define OWNER_QUERY .hosts = query_answered
#define OWNER_LIMIT .hosts = query_limit_answered
#define OWNER_AUDIT .hosts = audit_answered
#define OWNER_INBOX .hosts = inbox_answered
#define OWNER_OUTBOX .hosts = hosts_outbox_answered
#define OWNER_SCAN .hosts = scan_answered
#define OWNER_REVOCATION .hosts = revocation_operated

static const struct owner owners[] = {
#define X(name, owner, words) [OPERATION_##name] = { OWNER_##owner },
	OPERATION_KINDS(X)
#undef X
};

static void dispatch(struct broker *b, const struct operation *op, const struct event *event)
{
	const struct owner *owner = &owners[op->kind];

	if (owner->directory)
		owner->directory(op, event);
	else if (owner->claim)
		owner->claim(claim_of(op), op, event);
	else if (owner->hosts)
		owner->hosts(&b->hosts, op, event);
	else if (!owner->ensemble(&b->ensemble, op->kind, event))
		drain_refuse(b);
}

/* Takes the operation off the queue, then acts on its answer: operations that it sends are queued behind. */
static void route_answer(struct broker *b, const struct event *event)
{
	struct operation op = operation_take(&b->ensemble, event->zk_answered.op);

	if (event->zk_answered.code == ZK_UNKNOWN)
		b->env.stats.unknown_total++;
	health_answered(&b->ensemble, op.kind, op.directory ? bytes_view(&op.directory->path) : SLICE(""), event);
	if (zk_refuses(event->zk_answered.code))
		env_note(&b->env, FLIGHT_operation_failed, (int64_t)event->zk_answered.op, op.kind, event->zk_answered.data);
	dispatch(b, &op, event);
	if (op.directory) {
		op.directory->operations--;
		directory_touch(op.directory);
	}
}

/* The connection is lost: all open operations get ZK_UNKNOWN. */
static void route_fail_all(struct broker *b)
{
	const struct operations *o = &b->ensemble.operations;
	uint64_t end = o->end;

	while (o->first < end) {
		const struct event unknown = { .type = EVENT_ZK_ANSWERED,
					       .zk_answered = { .op = o->first, .code = ZK_UNKNOWN } };

		route_answer(b, &unknown);
	}
	assert(o->first == o->end);
}

static void child_watched(struct directory *d, enum zk_watch type, struct slice child)
{
	struct claim *c;

	sighting_forget(d, child);
	CLAIM_FOREACH(c, d)
		claim_watched(c, type, child);
	if (d->lock->rule->watched)
		d->lock->rule->watched(d->lock, &child);
	directory_touch(d);
}

void recovery_watched(struct broker *b, const struct event *event)
{
	struct slice path = event->zk_watch.path;
	enum zk_watch type = event->zk_watch.type;
	struct directory *d = directory_find(&b->directories, path);
	const char *slash;

	if (inbox_watched(&b->hosts, path) || !b->ensemble.session.connected)
		return;
	permit_limit_watched(&b->locks, path);
	if (d) {
		directory_changed(d);
		if (d->lock->rule->watched)
			d->lock->rule->watched(d->lock, NULL);
		directory_touch(d);
		return;
	}
	slash = memrchr(path.data, '/', path.len);
	if (!slash || type == ZK_WATCH_CHILDREN || type == ZK_WATCH_CREATED)
		return;
	d = directory_find(&b->directories, (struct slice){ path.data, (size_t)(slash - path.data) });
	if (d)
		child_watched(d, type, (struct slice){ slash + 1, (size_t)(path.data + path.len - slash - 1) });
}

static void tell_holders(struct broker *b)
{
	struct client *c;

	TAILQ_FOREACH(c, &b->locks.clients, link)
		notify_session(c);
}

static void lose_all(struct broker *b)
{
	struct lock *lock;

	TAILQ_FOREACH(lock, &b->locks.used, link)
		lock_lose(lock);
	TAILQ_FOREACH(lock, &b->locks.idle, link)
		lock_lose(lock);
}

/* ---- the end of a connection ---- */

static void suspend_directory(struct directory *d, size_t *count)
{
	struct claim *c;

	CLAIM_FOREACH(c, d)
		claim_suspended(c);
	if (d->claim_count)
		directory_remember(d, true);
	directory_suspended(d);
	sighting_forget(d, (struct slice){ 0 });
	turn_forget(d);
	charge_recount(d); /* the connection's end has removed all watches */
	directory_touch_one(d, count);
}

static void suspend_lock(struct lock *lock, size_t *count)
{
	struct directory *d;

	LOCK_DIRECTORIES(d, lock)
		suspend_directory(d, count);
	if (lock->rule->suspended)
		lock->rule->suspended(lock);
}

static void disconnect(struct broker *b)
{
	struct lock *lock;
	size_t count = 0;

	session_disconnect(&b->ensemble);
	route_fail_all(b);
	hosts_suspended(&b->hosts);
	TAILQ_FOREACH(lock, &b->locks.used, link)
		suspend_lock(lock, &count);
	TAILQ_FOREACH(lock, &b->locks.idle, link)
		sighting_forget(&lock->directory, (struct slice){ 0 });
	audit_suspended(&b->hosts);
}

void recovery_suspended(struct broker *b, bool planned)
{
	enum effect_level level;

	if (!b->ensemble.session.connected)
		return;
	level = session_ending(&b->ensemble, planned);
	if (planned)
		hosts_move(&b->hosts);
	disconnect(b);
	recovery_follow(b, session_suspended(&b->ensemble, level));
}

/* ---- the end of a session ---- */

/* The session is over, or will be: no answer of it is expected any longer. */
static void forget(struct broker *b)
{
	struct directory *d;
	struct lock *lock;

	if (b->ensemble.session.connected)
		disconnect(b);
	/* First: the next process would take it for one that goes on, whose holders were told that all is well. */
	ledger_session(b->env.ledger, 0);
	recovery_follow(b, session_lose(&b->ensemble));
	TAILQ_FOREACH(lock, &b->locks.used, link)
		LOCK_DIRECTORIES(d, lock) {
			claim_free_all(d);
			directory_touch(d);
		}
	outbox_forget_all(&b->hosts);
}

void recovery_open(struct broker *b)
{
	forget(b);
	session_open(&b->ensemble);
}

void recovery_expired(struct broker *b)
{
	if (session_expired(&b->ensemble))
		recovery_open(b);
}

/* ---- the beginning of a connection ---- */

/* Under a new session the waiters of all hosts come back at once, so each lock joins after a short random delay. */
static void jitter_joins(struct broker *b)
{
	struct directory *d;
	struct lock *lock;

	TAILQ_FOREACH(lock, &b->locks.used, link)
		LOCK_DIRECTORIES(d, lock)
			directory_delay(d, random_below(&b->env.random, JOIN_JITTER_NS));
}

static int by_age(const void *a, const void *b)
{
	const struct directory *x = *(struct directory *const *)a, *y = *(struct directory *const *)b;

	return (x->verified_ns > y->verified_ns) - (x->verified_ns < y->verified_ns);
}

/* If a connection ends before the recovery does, the next one continues with the rest. */
static void queue_recovery(struct broker *b)
{
	struct directory *d, **all;
	struct lock *lock;
	size_t count = 0, touched = 0;

	all = mem_new((b->directories.paths.count + 1) * sizeof(struct directory *));
	TAILQ_FOREACH(lock, &b->locks.used, link)
		LOCK_DIRECTORIES(d, lock) {
			directory_touch_one(d, &touched);
			if (!TAILQ_EMPTY(&d->leaving))
				turn_wait(d, TURN_DELETE);
			if (d->claim_count || lock->observer_count)
				all[count++] = d;
		}
	qsort(all, count, sizeof(struct directory *), by_age);
	for (size_t i = 0; i < count; i++)
		turn_wait(all[i], TURN_RECOVER);
	mem_free(all);
}

void recovery_connected(struct broker *b, const struct event *event)
{
	const struct session *s = &b->ensemble.session;

	/* Its deadline came first: the handle that reports the end is discarded. */
	if (s->opening)
		return;
	recovery_suspended(b, false);
	if (s->id != event->zk_connected.session) {
		if (s->id)
			forget(b);
		if (s->had_one)
			jitter_joins(b);
	}
	session_connected(&b->ensemble, event);
	queue_recovery(b);
	inbox_list(&b->hosts);
	outbox_connected(&b->hosts);
	recovery_follow(b, session_review(&b->ensemble));
}

void recovery_follow(struct broker *b, unsigned int changes)
{
	if (changes & SESSION_CHANGED && b->ensemble.session.state == SESSION_LOST)
		lose_all(b);
	else if (changes & SESSION_CHANGED)
		tell_holders(b);
	/* Whoever goes on takes holders as told of it: their marks stand there before. */
	if (changes & SESSION_CHANGED)
		ledger_state(b->env.ledger, b->ensemble.session.epoch, b->ensemble.session.state == SESSION_JEOPARDY);
	if (changes & SESSION_GRANTS)
		lock_touch_waiting(&b->locks);
	if (changes & SESSION_DROPPED)
		recovery_suspended(b, false);
	if (changes & SESSION_OVER)
		recovery_open(b);
}

/* ---- an answer ---- */

/* Answers that went through the quorum prove the session, even if they are errors. */
static bool proves(enum zk_code code)
{
	return code <= ZK_BADVERSION;
}

void recovery_answered(struct broker *b, const struct event *event)
{
	struct ensemble *zk = &b->ensemble;
	const struct operation *op = operation_find(zk, event->zk_answered.op);
	int64_t list_bytes, floor;
	bool looked;

	if (!op)
		return;
	if (op->flight.write && proves(event->zk_answered.code))
		recovery_follow(b, session_proved(zk, op));
	else if (op->flight.write)
		session_refused(zk, op);
	if (event->zk_answered.code == ZK_UNKNOWN) {
		/* Even if the adapter takes the connection as good, later answers on it could not be believed any longer. */
		if (op->directory)
			directory_pause(op->directory);
		effects_add(b->env.out, EFFECT_ZK_DROP);
		recovery_suspended(b, false);
		return;
	}
	if (event->zk_answered.code == ZK_OK)
		past_answered(zk, op->flight.write, &event->zk_answered.stat);
	list_bytes = operation_measure(zk, op, event);
	if (event->zk_answered.children && op->directory)
		op->directory->list_bytes = list_bytes;
	looked = past_looked(zk);
	floor = zk->past.floor;
	route_answer(b, event);
	if (zk->past.floor != floor)
		recovery_open(b); /* a znode that was made before the look may have too low a number */
	else if (!looked && past_looked(zk))
		recovery_follow(b, SESSION_GRANTS);
}

/* ---- the largest packet ---- */

/* The lock's znodes, if any, cannot be read any longer; they go with the session at the latest. */
static void give_up(struct lock *lock)
{
	struct directory *d;

	directory_fail(&lock->directory, FAILED_ALL, ERROR_LIMIT, charge_too_long);
	grant_lose_all(lock, LOSS_LIMIT);
	LOCK_DIRECTORIES(d, lock)
		claim_free_all(d);
}

void recovery_packet(struct broker *b, const struct event *event)
{
	struct lock *lock;

	budget_packet(&b->ensemble, event);
	TAILQ_FOREACH(lock, &b->locks.used, link)
		if (charge_is_oversize(lock_held(lock)))
			give_up(lock); /* the longer path of two */
}
