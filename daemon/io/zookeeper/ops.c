/* SPDX-License-Identifier: Apache-2.0 */
#include "io/zookeeper/ops.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

struct zk_op {
	TAILQ_ENTRY(zk_op) entry;
	struct zk_ops *ops; /* NULL: abandoned */
	uint64_t id;
	char *watched; /* the path of a watch that is set when the operation has succeeded; otherwise NULL */
};

void zk_ops_init(struct zk_ops *ops, struct zk_paths *paths, void (*answered)(void *arg, struct event *event),
		 void *arg)
{
	*ops = (struct zk_ops){ .paths = paths, .answered = answered, .arg = arg };
	TAILQ_INIT(&ops->list);
}

void zk_ops_deinit(struct zk_ops *ops)
{
	assert(TAILQ_EMPTY(&ops->list));
	zk_reply_deinit(&ops->reply);
	bytes_free(&ops->path);
}

static void op_free(struct zk_op *op)
{
	free(op->watched);
	mem_free(op);
}

static void op_tell(struct zk_op *op, int rc, struct event *event)
{
	struct zk_ops *ops = op->ops;

	event->type = EVENT_ZK_ANSWERED;
	event->zk_answered.op = op->id;
	event->zk_answered.code = zk_reply_code(rc);
	if (event->zk_answered.code == ZK_REFUSED)
		event->zk_answered.data = slice_of(zk_reply_sentence(rc));
	if (ops && op->watched && rc == ZOK)
		zk_paths_add(ops->paths, op->watched, event->zk_answered.children ? ZK_PATH_CHILDREN : ZK_PATH_DATA);
	if (ops)
		TAILQ_REMOVE(&ops->list, op, entry);
	op_free(op);
	if (ops)
		ops->answered(ops->arg, event);
}

static void created(int rc, const char *path, const struct Stat *stat, const void *data)
{
	struct event event = { .zk_answered = { .stat = zk_reply_stat(stat) } };

	if (path)
		event.zk_answered.path = slice_of(path);
	op_tell((struct zk_op *)data, rc, &event);
}

static void listed(int rc, const struct String_vector *names, const struct Stat *stat, const void *data)
{
	struct zk_op *op = (struct zk_op *)data;
	struct event event = { .zk_answered = { .stat = zk_reply_stat(stat) } };

	if (op->ops)
		zk_reply_children(&op->ops->reply, names, &event);
	op_tell(op, rc, &event);
}

static void got(int rc, const char *value, int len, const struct Stat *stat, const void *data)
{
	struct event event = { .zk_answered = { .stat = zk_reply_stat(stat) } };

	if (value && len > 0)
		event.zk_answered.data = (struct slice){ value, (size_t)len };
	op_tell((struct zk_op *)data, rc, &event);
}

static void deleted(int rc, const void *data)
{
	struct event event = { .type = EVENT_ZK_ANSWERED };

	op_tell((struct zk_op *)data, rc, &event);
}

static void was_set(int rc, const struct Stat *stat, const void *data)
{
	struct event event = { .zk_answered = { .stat = zk_reply_stat(stat) } };

	op_tell((struct zk_op *)data, rc, &event);
}

static int create_mode(enum zk_create create)
{
	switch (create) {
	case ZK_PERSISTENT:
		return ZOO_PERSISTENT;
	case ZK_CONTAINER:
		return ZOO_CONTAINER;
	case ZK_EPHEMERAL:
		return ZOO_EPHEMERAL;
	case ZK_EPHEMERAL_SEQUENTIAL:
		return ZOO_EPHEMERAL_SEQUENTIAL;
	}
	abort();
}

static int op_send(struct zk_op *op, const struct effect *e, const char *path, struct slice data,
		   const struct zk_ops_client *client)
{
	watcher_fn watcher = e->watch ? client->watcher : NULL;
	void *context = client->context;
	zhandle_t *zh = client->zh;

	switch (e->type) {
	case EFFECT_ZK_CREATE:
		return zoo_acreate2(zh, path, data.data, (int)data.len, client->acl, create_mode(e->create),
				    created, op);
	case EFFECT_ZK_LIST:
		return zoo_awget_children2(zh, path, watcher, context, listed, op);
	case EFFECT_ZK_GET:
		return zoo_awget(zh, path, watcher, context, got, op);
	case EFFECT_ZK_DELETE:
		return zoo_adelete(zh, path, -1, deleted, op);
	case EFFECT_ZK_SET:
		return zoo_aset(zh, path, data.data, (int)data.len, e->exact ? e->version : -1, was_set, op);
	case EFFECT_REPLY:
	case EFFECT_PUSH:
	case EFFECT_CLOSE:
	case EFFECT_ZK_OPEN:
	case EFFECT_ZK_DROP:
	case EFFECT_TOKENS:
	case EFFECT_HOLDER:
	case EFFECT_PROCESS:
	case EFFECT_LIFELINE:
	case EFFECT_LIFELINE_OVER:
	case EFFECT_PAGE:
	case EFFECT_FORMER_ADD:
	case EFFECT_FORMER_END:
	case EFFECT_RESTART:
	case EFFECT_RELOAD:
	case EFFECT_LOG:
	case EFFECT_STOPPED:
		break;
	}
	abort();
}

enum zk_code zk_ops_send(struct zk_ops *ops, const struct effect *effect, struct slice path, struct slice data,
			 const struct zk_ops_client *client)
{
	struct zk_op *op = mem_new(sizeof(*op));
	int rc;

	bytes_clear(&ops->path);
	bytes_slice(&ops->path, path);
	bytes_char(&ops->path, '\0');
	op->ops = ops;
	op->id = effect->op;
	if (effect->watch) {
		op->watched = strdup(ops->path.data);
		if (!op->watched)
			abort();
	}
	TAILQ_INSERT_TAIL(&ops->list, op, entry);
	rc = op_send(op, effect, ops->path.data, data, client);
	if (rc != ZOK) {
		TAILQ_REMOVE(&ops->list, op, entry);
		op_free(op);
	}
	return zk_reply_code(rc);
}

bool zk_ops_abandon(struct zk_ops *ops, uint64_t *ret_id)
{
	struct zk_op *op = TAILQ_FIRST(&ops->list);

	if (!op)
		return false;
	TAILQ_REMOVE(&ops->list, op, entry);
	op->ops = NULL;
	*ret_id = op->id;
	return true;
}
