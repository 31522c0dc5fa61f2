/* SPDX-License-Identifier: Apache-2.0 */
#include "io/zookeeper/ops.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

void zk_reply_deinit(struct zk_reply *r)
{
	mem_free(r->children);
	*r = (struct zk_reply){ 0 };
}

enum { ZQUOTAEXCEEDED = -125 }; /* newer than the library */

/* Each code of a server is classed here, once. */
static const struct known {
	int rc;
	enum zk_code code;
	enum zk_cause cause; /* REFUSED, BUSY */
	const char *sentence;
} known[] = {
	{ .rc = ZOK, .code = ZK_OK },
	{ .rc = ZNONODE, .code = ZK_NONODE },
	{ .rc = ZNODEEXISTS, .code = ZK_NODEEXISTS },
	{ .rc = ZNOTEMPTY, .code = ZK_NOTEMPTY },
	{ .rc = ZBADVERSION, .code = ZK_BADVERSION },
	{ ZNOAUTH, ZK_REFUSED, ZK_CAUSE_acl, "not authenticated: no ACL allows it to the user of zookeeper.auth_file" },
	{ ZAUTHFAILED, ZK_REFUSED, ZK_CAUSE_acl, "the server refuses the authentication by zookeeper.auth_file" },
	{ ZINVALIDACL, ZK_REFUSED, ZK_CAUSE_acl, "the server does not take the ACL of zookeeper.auth_file" },
	{ ZSESSIONCLOSEDREQUIRESASLAUTH, ZK_REFUSED, ZK_CAUSE_acl,
	  "the server serves only clients that authenticate: set zookeeper.auth_file" },
	{ ZQUOTAEXCEEDED, ZK_REFUSED, ZK_CAUSE_quota,
	  "a quota of ZooKeeper is used up: raise it (setquota of zkCli.sh), or remove znodes below the path it is set on" },
	{ ZEPHEMERALONLOCALSESSION, ZK_REFUSED, ZK_CAUSE_local_session,
	  "the server gives local sessions that are not upgraded, and those can make no ephemeral znode: set "
	  "localSessionsUpgradingEnabled=true on every server" },
	{ ZTHROTTLEDOP, ZK_BUSY, ZK_CAUSE_throttled,
	  "the server is overloaded and throttles requests; it is asked again in a moment" },
	{ ZNOTREADONLY, ZK_BUSY, ZK_CAUSE_read_only,
	  "the server is read-only, because it has no quorum; another one is asked" },
	{ ZBADARGUMENTS, ZK_REFUSED, ZK_CAUSE_other, "the server takes the arguments for invalid" },
	{ ZUNIMPLEMENTED, ZK_REFUSED, ZK_CAUSE_other, "the server does not know the operation: it is too old" },
	/* Of the connection, or the library's own. */
	{ .rc = ZSESSIONEXPIRED, .code = ZK_UNKNOWN },
	{ .rc = ZINVALIDCALLBACK, .code = ZK_UNKNOWN },
	{ .rc = ZCLOSING, .code = ZK_UNKNOWN },
	{ .rc = ZNOTHING, .code = ZK_UNKNOWN },
	{ .rc = ZSESSIONMOVED, .code = ZK_UNKNOWN },
};

static const struct known *find(int rc)
{
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (known[i].rc == rc)
			return &known[i];
	return NULL;
}

enum zk_code zk_reply_code(int rc)
{
	const struct known *k = find(rc);

	if (k)
		return k->code;
	/* Newer servers have more codes. Those below this one are the server's own refusals. */
	return rc <= ZAPIERROR ? ZK_REFUSED : ZK_UNKNOWN;
}

void zk_reply_refused(struct zk_reply *r, int rc, struct event *event)
{
	const struct known *k = find(rc);

	event->zk_answered.cause = k ? k->cause : ZK_CAUSE_other;
	if (k)
		snprintf(r->sentence, sizeof(r->sentence), "%s", k->sentence);
	else if (strcmp(zerror(rc), zerror(INT_MIN)) == 0)
		snprintf(r->sentence, sizeof(r->sentence), "the server answers with the error %d, which is newer than this program",
			 rc);
	else
		snprintf(r->sentence, sizeof(r->sentence), "%s (error %d)", zerror(rc), rc);
	event->zk_answered.data = slice_of(r->sentence);
}

/* All zero for NULL. */
static struct zk_stat zk_reply_stat(const struct Stat *stat)
{
	if (!stat)
		return (struct zk_stat){ 0 };
	return (struct zk_stat){
		.czxid = stat->czxid,
		.mzxid = stat->mzxid,
		.pzxid = stat->pzxid,
		.owner = stat->ephemeralOwner,
		.version = stat->version,
		.cversion = stat->cversion,
		.children = stat->numChildren,
	};
}

/* Sets count and children (never NULL), which are valid until the next call. `names` may be NULL. */
static void zk_reply_children(struct zk_reply *r, const struct String_vector *names, struct event *event)
{
	size_t count = names && names->count > 0 ? (size_t)names->count : 0, i;

	if (r->cap < count || !r->children) {
		r->cap = count > 2 * r->cap ? count : 2 * r->cap + 1;
		r->children = mem_resize(r->children, r->cap * sizeof(*r->children));
	}
	for (i = 0; i < count; i++)
		r->children[i] = slice_of(names->data[i]);
	event->zk_answered.count = count;
	event->zk_answered.children = r->children;
}

struct zk_op {
	TAILQ_ENTRY(zk_op) entry;
	struct zk_ops *ops; /* NULL: abandoned */
	uint64_t id;       /* 0: the broker has not asked for it, or another operation has the answer */
	enum zk_body body; /* of its answer */
	enum zk_capability needs; /* ZK_CAPABILITIES: nothing that a server may lack */
	bool watches;      /* the path, when it has succeeded */
	bool ephemeral;    /* a create */
	bool pair;         /* a create, or the get behind it, which answers for both once the create has succeeded */
	size_t path_len;
	char path[]; /* with a NUL */
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
	mem_free(ops->made.path);
	zk_inlet_reset(&ops->inlet);
}

static void op_tell(struct zk_op *op, int rc, struct event *event)
{
	struct zk_ops *ops = op->ops;

	event->type = EVENT_ZK_ANSWERED;
	event->zk_answered.op = op->id;
	event->zk_answered.code = zk_reply_code(rc);
	if (ops && ops->server && op->needs < ZK_CAPABILITIES && zk_capable_answered(ops->server, op->needs, rc))
		event->zk_answered.code = ZK_BUSY; /* it is asked for again, and then in another form */
	else if (ops && ops->server && op->needs < ZK_CAPABILITIES && zk_refuses(event->zk_answered.code))
		zk_capable_refuses(ops->server);
	if (ops && zk_refuses(event->zk_answered.code))
		zk_reply_refused(&ops->reply, rc, event);
	if (ops && op->watches && rc == ZOK)
		zk_paths_add(ops->paths, op->path, event->zk_answered.children ? ZK_PATH_CHILDREN : ZK_PATH_DATA);
	if (ops)
		TAILQ_REMOVE(&ops->list, op, entry);
	if (ops && op->id)
		ops->answered(ops->arg, event);
	mem_free(op);
}

/* ---- what a create is answered ---- */

static bool is_believed(const struct zk_ops *ops)
{
	return !ops->server || (!zk_capable_lacks(ops->server, ZK_CREATE2) && ops->server->state[ZK_STAT] == ZK_PRESENT);
}

/* A get has shown an ephemeral znode that was made on this connection. */
static void compare(struct zk_ops *ops, const struct Stat *stat)
{
	int64_t claimed = ops->made.czxid;

	mem_free(ops->made.path);
	ops->made.path = NULL;
	if (stat->ephemeralOwner && stat->ephemeralOwner != ops->session)
		return; /* somebody has deleted ours, and made another one */
	if (!stat->ephemeralOwner || stat->czxid <= ops->highest || (!stat->version && stat->mzxid != stat->czxid)) {
		zk_capable_shown(ops->server, ZK_CZXID, false, "a znode that was just made has none, or none above others'");
		return;
	}
	ops->highest = stat->czxid;
	zk_capable_shown(ops->server, ZK_CZXID, true, NULL);
	if (claimed >= 0)
		zk_capable_shown(ops->server, ZK_STAT, stat->czxid == claimed,
				 "its czxid is not the number of the znode");
}

static void made(struct zk_ops *ops, const char *path, int64_t czxid)
{
	mem_free(ops->made.path);
	ops->made.path = mem_text(path);
	ops->made.czxid = czxid;
}

static void paired(struct zk_op *op, int rc, const struct Stat *stat)
{
	struct event event = { .zk_answered = { .path = { op->path, op->path_len } } };

	if (rc == ZOK)
		event.zk_answered.stat = zk_reply_stat(stat);
	op_tell(op, zk_reply_code(rc) == ZK_UNKNOWN ? rc : ZOK, &event);
}

/* `stat` NULL: of create, or none came. */
static void created(int rc, const char *path, const struct Stat *stat, const void *data)
{
	struct zk_op *op = (struct zk_op *)data;
	struct zk_ops *ops = op->ops;
	struct event event = { 0 };

	if (ops && op->pair && rc == ZOK) {
		TAILQ_NEXT(op, entry)->id = op->id;
		op->id = 0;
	}
	if (ops && is_believed(ops))
		event.zk_answered.stat = zk_reply_stat(stat);
	else if (ops && op->ephemeral && rc == ZOK && path)
		made(ops, path, stat ? stat->czxid : -1);
	if (path)
		event.zk_answered.path = slice_of(path);
	op_tell(op, rc, &event);
}

static void named(int rc, const char *path, const void *data)
{
	created(rc, path, NULL, data);
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

	struct zk_op *op = (struct zk_op *)data;
	struct zk_ops *ops = op->ops;

	if (value && len > 0)
		event.zk_answered.data = (struct slice){ value, (size_t)len };
	if (ops && ops->server && ops->made.path && rc == ZOK && stat && strcmp(op->path, ops->made.path) == 0)
		compare(ops, stat);
	if (op->pair && op->id)
		paired(op, rc, stat);
	else
		op_tell(op, rc, &event);
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

static int create_send(struct zk_op *op, enum zk_create create, struct slice data, const struct zk_ops_client *client)
{
	bool numbered = create == ZK_EPHEMERAL_SEQUENTIAL;

	op->ephemeral = numbered || create == ZK_EPHEMERAL;
	op->needs = create == ZK_CONTAINER ? ZK_CONTAINERS : ZK_CREATE2;
	op->body = numbered ? ZK_BODY_NUMBERED : ZK_BODY_CREATED;
	if (create == ZK_CONTAINER || !zk_capable_lacks(op->ops->server, ZK_CREATE2))
		return zoo_acreate2(client->zh, op->path, data.data, (int)data.len, client->acl, create_mode(create),
				    created, op);
	op->needs = ZK_CAPABILITIES;
	op->body = numbered ? ZK_BODY_PATH_NUMBERED : ZK_BODY_PATH;
	return zoo_acreate(client->zh, op->path, data.data, (int)data.len, client->acl, create_mode(create), named, op);
}

static int op_send(struct zk_op *op, const struct effect *e, struct slice data, const struct zk_ops_client *client)
{
	const char *path = op->path;
	watcher_fn watcher = e->watch ? client->watcher : NULL;
	void *context = client->context;
	zhandle_t *zh = client->zh;

	if (e->type == EFFECT_ZK_CREATE)
		return create_send(op, e->create, data, client);
	if (e->type == EFFECT_ZK_LIST) {
		op->body = ZK_BODY_LIST;
		return zoo_awget_children2(zh, path, watcher, context, listed, op);
	}
	if (e->type == EFFECT_ZK_GET) {
		op->body = ZK_BODY_DATA;
		return zoo_awget(zh, path, watcher, context, got, op);
	}
	if (e->type == EFFECT_ZK_DELETE) {
		op->body = ZK_BODY_NONE;
		return zoo_adelete(zh, path, -1, deleted, op);
	}
	assert(e->type == EFFECT_ZK_SET);
	op->body = ZK_BODY_STAT;
	return zoo_aset(zh, path, data.data, (int)data.len, e->exact ? e->version : -1, was_set, op);
}

static struct zk_op *op_new(struct zk_ops *ops, uint64_t id, struct slice path)
{
	struct zk_op *op = mem_new(sizeof(*op) + path.len + 1);

	op->ops = ops;
	op->id = id;
	op->needs = ZK_CAPABILITIES;
	op->path_len = path.len;
	memcpy(op->path, path.data, path.len);
	TAILQ_INSERT_TAIL(&ops->list, op, entry);
	return op;
}

static int op_sent(struct zk_op *op, int rc)
{
	if (rc != ZOK) {
		TAILQ_REMOVE(&op->ops->list, op, entry);
		mem_free(op);
	}
	return rc;
}

enum zk_code zk_ops_send(struct zk_ops *ops, const struct effect *effect, struct slice path, struct slice data,
			 const struct zk_ops_client *client)
{
	bool pair = effect->type == EFFECT_ZK_CREATE && effect->create == ZK_EPHEMERAL && !is_believed(ops);
	struct zk_op *op = op_new(ops, effect->op, path), *get;
	int rc;

	op->watches = effect->watch;
	rc = op_sent(op, op_send(op, effect, data, client));
	if (rc != ZOK || !pair)
		return zk_reply_code(rc);
	get = op_new(ops, 0, path);
	get->body = ZK_BODY_DATA;
	get->pair = true;
	op->pair = op_sent(get, zoo_awget(client->zh, get->path, NULL, NULL, got, get)) == ZOK;
	return ZK_OK;
}

/* ---- trials ---- */

/* One after the other: a server that closes the connection at the second has not always sent its answer to the first. */
static bool try_next(struct zk_ops *ops, const struct zk_ops_client *client)
{
	static const struct {
		enum zk_capability what;
		enum zk_create create;
	} trials[] = { { ZK_CREATE2, ZK_PERSISTENT }, { ZK_CONTAINERS, ZK_CONTAINER } };

	for (; ops->trial < sizeof(trials) / sizeof(trials[0]); ops->trial++) {
		struct zk_op *op;

		if (!zk_capable_untried(ops->server, trials[ops->trial].what))
			continue;
		op = op_new(ops, 0, SLICE("/lockbroker-none/trial"));
		op->needs = trials[ops->trial].what;
		op->body = ZK_BODY_CREATED;
		return op_sent(op, zoo_acreate2(client->zh, op->path, "", 0, client->acl,
						create_mode(trials[ops->trial++].create), created, op)) == ZOK;
	}
	return false;
}

bool zk_ops_begin(struct zk_ops *ops, struct zk_capable *server, const struct zk_ops_client *client)
{
	mem_free(ops->made.path);
	ops->made.path = NULL;
	ops->highest = 0;
	ops->server = server;
	ops->session = zoo_client_id(client->zh)->client_id;
	ops->trial = 0;
	return try_next(ops, client);
}

bool zk_ops_tries(struct zk_ops *ops, const struct zk_ops_client *client)
{
	return !TAILQ_EMPTY(&ops->list) || try_next(ops, client);
}

void zk_ops_ended(struct zk_ops *ops)
{
	const struct zk_op *first = TAILQ_FIRST(&ops->list);

	if (ops->server && first && first->needs < ZK_CAPABILITIES)
		zk_capable_ended(ops->server, first->needs);
}

bool zk_ops_abandon(struct zk_ops *ops, uint64_t *ret_id)
{
	struct zk_op *op;

	while ((op = TAILQ_FIRST(&ops->list))) {
		TAILQ_REMOVE(&ops->list, op, entry);
		op->ops = NULL;
		*ret_id = op->id;
		if (op->id)
			return true;
	}
	return false;
}

enum zk_inlet_result zk_ops_look(struct zk_ops *ops, int fd, zhandle_t *zh, bool authenticates,
				char ret_sentence[ZK_ANSWER_SENTENCE_MAX])
{
	const struct zk_op *first = TAILQ_FIRST(&ops->list);
	struct zk_asked asked;
	struct slice frame;
	enum zk_inlet_result look = zk_inlet_result(&ops->inlet, fd, &frame);

	if (look == ZK_INLET_WRONG)
		snprintf(ret_sentence, ZK_ANSWER_SENTENCE_MAX, "spoils its answers: the next one has a length that none has");
	if (look != ZK_INLET_READ)
		return look;
	if (first)
		asked = (struct zk_asked){ first->body, { first->path, first->path_len } };
	if (!zk_answer_is_right(frame, first ? &asked : NULL, authenticates, ret_sentence))
		return ZK_INLET_WRONG;
	if (zk_inlet_give(&ops->inlet, fd, zh))
		return ZK_INLET_READ;
	snprintf(ret_sentence, ZK_ANSWER_SENTENCE_MAX, "has sent an answer that cannot be read: %s", strerror(errno));
	return ZK_INLET_WRONG;
}
