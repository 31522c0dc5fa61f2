/* SPDX-License-Identifier: Apache-2.0 */
#include "core/route.h"

#include <assert.h>

#include "core/claim/claims.h"
#include "core/claim/listing.h"
#include "core/claim/look.h"
#include "core/drain.h"
#include "core/hosts/query_limit.h"
#include "core/kind/election.h"
#include "core/kind/observe.h"
#include "core/kind/semaphore.h"
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

/* The module that an answer belongs to. */
enum owner {
	OWNER_PRESENCE,
	OWNER_DIRECTORY,
	OWNER_LISTING,
	OWNER_CLAIM,
	OWNER_LOOK,
	OWNER_ELECTION,
	OWNER_OBSERVER,
	OWNER_SEMAPHORE,
	OWNER_QUERY,
	OWNER_LIMIT,
	OWNER_AUDIT,
	OWNER_INBOX,
	OWNER_OUTBOX,
	OWNER_REVOCATION,
};

static void dispatch(struct broker *b, const struct operation *op, uint64_t number, const struct event *event)
{
	static const enum owner owners[] = {
#define X(name, owner, words) [OPERATION_##name] = OWNER_##owner,
		OPERATION_KINDS(X)
#undef X
	};

	switch (owners[op->kind]) {
	case OWNER_PRESENCE:
		if (presence_answered(&b->ensemble, op->kind, event) == PRESENCE_DUPLICATE)
			drain_refuse(b);
		break;
	case OWNER_DIRECTORY:
		directory_answered(op, event);
		break;
	case OWNER_LISTING:
		listing_answered(op, number, event);
		break;
	case OWNER_LOOK:
		look_answered(claim_of(op), op, event);
		break;
	case OWNER_CLAIM:
		claim_answered(claim_of(op), op, event);
		break;
	case OWNER_ELECTION:
		assert(op->directory);
		election_answered(op->directory->lock, number, event);
		break;
	case OWNER_OBSERVER:
		observe_answered(op, number, event);
		break;
	case OWNER_SEMAPHORE:
		semaphore_answered(op, event);
		break;
	case OWNER_QUERY:
		query_answered(&b->hosts, op, event);
		break;
	case OWNER_LIMIT:
		query_limit_answered(&b->hosts, op, event);
		break;
	case OWNER_AUDIT:
		audit_answered(&b->hosts, op, event);
		break;
	case OWNER_INBOX:
		hosts_inbox_answered(&b->hosts, op, event);
		break;
	case OWNER_OUTBOX:
		hosts_outbox_answered(&b->hosts, op, event);
		break;
	case OWNER_REVOCATION:
		revocation_operated(&b->hosts, op, event);
		break;
	}
}

void route_answer(struct broker *b, uint64_t number, const struct event *event)
{
	struct operation op = operation_take(&b->ensemble, number);

	if (event->zk_answered.code == ZK_UNKNOWN)
		b->env.stats.unknown_total++;
	health_answered(&b->ensemble, op.kind, op.directory ? bytes_view(&op.directory->path) : SLICE(""), event);
	dispatch(b, &op, number, event);
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
		struct event unknown = { .type = EVENT_ZK_ANSWERED };

		unknown.zk_answered.op = o->first;
		unknown.zk_answered.code = ZK_UNKNOWN;
		route_answer(b, o->first, &unknown);
	}
	assert(o->first == o->end);
}

static void child_watched(struct directory *d, enum zk_watch type, struct slice child)
{
	struct claim *c;

	seen_forget(d, child);
	CLAIM_FOREACH(c, d)
		claim_watched(c, type, child);
	observe_watched(d->lock, &child);
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
	semaphore_watched(&b->locks, path);
	if (d) {
		directory_changed(d);
		observe_watched(d->lock, NULL);
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
