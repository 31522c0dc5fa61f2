/* SPDX-License-Identifier: Apache-2.0 */
#include "core/hosts/query_reply.h"

#include "core/client/reply.h"
#include "core/hosts/answer.h"
#include "core/hosts/scan.h"
#include "core/hosts/hosts.h"
#include "core/kind/permit_limit.h"
#include "core/znode/record.h"

enum { LIMIT_TRIES_MAX = 8 };

/* ---- who leads ---- */

/* False: nobody leads, as far as the first contender says. */
static bool leader_elsewhere(const struct query *q, struct participant *ret)
{
	struct slice data = q->count ? bytes_view(&q->children->data) : (struct slice){ 0 };
	const struct hosts *h = q->hosts;

	if (!q->count || q->children->ours || !slice_eq(record_get(data, "leader"), SLICE("1")))
		return false;
	*ret = participant_elsewhere(h, q->children);
	/* Its data are as old as its leadership. */
	ret->for_ms = env_wall_ms(h->env, h->env->now_ns) - participant_number(data, "since", 0);
	ret->for_ms = ret->for_ms < 0 ? 0 : ret->for_ms;
	return true;
}

static void answer_leader(const struct query *q)
{
	const struct lock *lock = lock_find(q->hosts->locks, bytes_view(&q->name));
	/* Since it was asked the name may have become a lock's or a semaphore's. */
	const struct grant *g = lock && lock->directory.kind == KIND_ELECTION ? TAILQ_FIRST(&lock->grants) : NULL;
	struct participant p = { 0 };

	if (!g && (q->partial || q->refused)) {
		reply_error(q->client, ERROR_UNAVAILABLE, q->refused ? "ZooKeeper refuses to show who leads"
									    : "ZooKeeper cannot be asked who leads");
		return;
	}
	if (g)
		p = participant_holder(g);
	if (!g && !leader_elsewhere(q, &p)) {
		reply_nil(q->client);
		return;
	}
	participant_veil(&p, q->client, bytes_view(&q->name));
	participant_write_leader(&p, reply_out(q->client), q->client->version);
	reply_end(q->client);
}

/* ---- the limit of a semaphore ---- */

void query_limit_reply(struct client *c, int64_t limit)
{
	if (limit > 0)
		reply_integer(c, limit);
	else
		reply_nil(c);
}

static void set_limit(struct query *q, int32_t version)
{
	struct operation_request r = {
		.op = { .kind = OPERATION_LIMIT_SET, .query = q->number },
		.path = bytes_view(&q->path),
		.exact = true,
		.version = version,
	};

	permit_limit_data(operation_data(q->hosts->ensemble), q->limit);
	query_send(q, EFFECT_ZK_SET, &r);
}

void query_limit_answered(struct hosts *h, const struct operation *op, const struct event *event)
{
	bool got = op->kind == OPERATION_LIMIT_GET && event->zk_answered.code == ZK_OK;
	struct query *q = query_of(h, op);
	int64_t limit = q ? q->limit : 0;
	bool fits = !got || permit_limit_data_fits(event->zk_answered.data, &limit);

	if (!q)
		return;
	if (got && fits && q->limit && limit != q->limit) {
		set_limit(q, event->zk_answered.stat.version);
		return;
	}
	if (event->zk_answered.code == ZK_BADVERSION && ++q->tries < LIMIT_TRIES_MAX) {
		q->state = QUERY_ASKED;
		return;
	}
	if (!fits)
		reply_error(q->client, ERROR_MISMATCH,
			    "this name is in use as a lock, not as a semaphore, until some minutes after its last use");
	else if (event->zk_answered.code == ZK_OK || event->zk_answered.code == ZK_NONODE)
		query_limit_reply(q->client, event->zk_answered.code == ZK_OK ? limit : 0);
	else
		reply_error(q->client, ERROR_UNAVAILABLE, "ZooKeeper refused to tell the limit");
	query_free(q);
}

/* ---- asked and answered ---- */

void query_reply(struct query *q)
{
	if (q->client->lookup) {
		lookup_answered(q);
		return;
	}
	if (q->scan) {
		scan_found(q);
		return;
	}
	if (answer_is_of(q)) {
		answer_begin(q);
		return;
	}
	if (q->command == COMMAND_LIMIT)
		reply_error(q->client, ERROR_UNAVAILABLE, "not connected to ZooKeeper, which knows the limit");
	else
		answer_leader(q);
	query_free(q);
}

void query_ask(struct hosts *h, struct client *c, enum command command, struct slice name)
{
	struct query *q = query_new(h, c, command, name);

	if (query_begin(q))
		query_reply(q);
}

void query_known(struct hosts *h, struct client *c, struct slice name)
{
	struct query *q = query_new(h, c, COMMAND_HOLDERS, name);

	query_take_seen(q);
	query_reply(q);
}
