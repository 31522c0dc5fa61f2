/* SPDX-License-Identifier: Apache-2.0 */
#include "core/hosts/query_limit.h"

#include "core/client/reply.h"
#include "core/hosts/hosts.h"
#include "core/hosts/query.h"
#include "core/kind/semaphore.h"

enum { TRIES_MAX = 8 };

void query_limit(struct hosts *h, struct client *c, struct slice name, int64_t limit)
{
	query_new(h, c, COMMAND_LIMIT, name)->limit = limit;
}

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
		.exact = true,
		.version = version,
	};
	struct bytes data = { 0 };

	semaphore_data(&data, q->limit);
	r.path = bytes_view(&q->path);
	r.data = bytes_view(&data);
	query_send(q, EFFECT_ZK_SET, &r);
	bytes_free(&data);
}

void query_limit_answered(struct hosts *h, const struct operation *op, const struct event *event)
{
	bool got = op->kind == OPERATION_LIMIT_GET && event->zk_answered.code == ZK_OK;
	struct query *q = query_of(h, op);
	int64_t limit = q ? q->limit : 0;
	bool fits = !got || semaphore_data_fits(event->zk_answered.data, &limit);

	if (!q)
		return;
	if (got && fits && q->limit && limit != q->limit) {
		set_limit(q, event->zk_answered.stat.version);
		return;
	}
	if (event->zk_answered.code == ZK_BADVERSION && ++q->tries < TRIES_MAX) {
		q->state = QUERY_ASKED;
		return;
	}
	if (!fits)
		reply_error(q->client, ERROR_MISMATCH, "this name is in use as a lock, not as a semaphore");
	else if (event->zk_answered.code == ZK_OK || event->zk_answered.code == ZK_NONODE)
		query_limit_reply(q->client, event->zk_answered.code == ZK_OK ? limit : 0);
	else
		reply_error(q->client, ERROR_UNAVAILABLE, "ZooKeeper refused to tell the limit");
	query_free(q);
}
