/* SPDX-License-Identifier: Apache-2.0 */
#include "core/route.h"

#include <assert.h>

#include "core/claim/listing.h"
#include "core/claim/look.h"
#include "core/drain.h"
#include "core/hosts/census.h"
#include "core/hosts/query_reply.h"
#include "core/kind/permit_limit.h"
#include "core/state.h"

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
#define OWNER_CENSUS .hosts = census_answered
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

void route_answer(struct broker *b, const struct event *event)
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

void route_fail_all(struct broker *b)
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

	seen_forget(d, child);
	CLAIM_FOREACH(c, d)
		claim_watched(c, type, child);
	if (d->lock->rule->watched)
		d->lock->rule->watched(d->lock, &child);
	directory_touch(d);
}

void route_watched(struct broker *b, const struct event *event)
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
