/* SPDX-License-Identifier: Apache-2.0 */
/* The tree as each server and the truth see it, and the log that leads from one to the other. */
#include "fakezk.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

uint32_t fakezk_hash(struct slice path)
{
	uint32_t h = 2166136261u;
	size_t i;

	for (i = 0; i < path.len; i++)
		h = (h ^ (uint8_t)path.data[i]) * 16777619u;
	return h;
}

struct znode *fakezk_find(struct fakezk *z, struct slice path, int view)
{
	uint32_t hash = fakezk_hash(path);
	struct znode *n;

	for (n = z->buckets[hash % FAKEZK_BUCKETS]; n; n = n->hash_next)
		if (n->hash == hash && n->view[view].exists && n->len == path.len &&
		    memcmp(n->path, path.data, path.len) == 0)
			return n;
	return NULL;
}

struct zk_stat fakezk_stat(const struct znode *n, int view)
{
	const struct zview *v = &n->view[view];

	return (struct zk_stat){
		.czxid = n->czxid, .mzxid = v->mzxid, .pzxid = v->pzxid,
		.owner = n->session ? n->session->id : 0, .version = v->version,
		.cversion = (int32_t)((uint32_t)v->creates * 2 - (uint32_t)v->children),
		.children = v->children,
	};
}

static struct zdata *data_new(struct slice bytes)
{
	struct zdata *d = malloc(sizeof(*d) + bytes.len);

	assert(d);
	d->refs = 1;
	d->len = bytes.len;
	if (bytes.len)
		memcpy(d->bytes, bytes.data, bytes.len);
	return d;
}

static void data_unref(struct zdata *d)
{
	if (d && --d->refs == 0)
		free(d);
}

static struct znode *node_new(struct fakezk *z, struct znode *parent, struct slice path)
{
	struct znode *n = calloc(1, sizeof(*n) + path.len + 1), **bucket;

	assert(n);
	n->len = path.len;
	memcpy(n->path, path.data, path.len);
	while (n->name_at < n->len && memchr(path.data + n->name_at, '/', n->len - n->name_at))
		n->name_at++;
	n->hash = fakezk_hash(path);
	n->created_at = z->sched->now;
	bucket = &z->buckets[n->hash % FAKEZK_BUCKETS];
	n->hash_next = *bucket;
	*bucket = n;
	TAILQ_INIT(&n->children);
	n->parent = parent;
	if (parent) {
		TAILQ_INSERT_TAIL(&parent->children, n, sibling);
		parent->refs++;
	}
	z->nodes++;
	return n;
}

static void node_unref(struct fakezk *z, struct znode *n)
{
	while (n && --n->refs == 0) {
		struct znode **at = &z->buckets[n->hash % FAKEZK_BUCKETS], *parent = n->parent;
		int v;

		while (*at != n)
			at = &(*at)->hash_next;
		*at = n->hash_next;
		if (parent)
			TAILQ_REMOVE(&parent->children, n, sibling);
		for (v = 0; v < FAKEZK_VIEWS; v++)
			data_unref(n->view[v].data);
		z->nodes--;
		free(n);
		n = parent;
	}
}

static void view_create(struct znode *n, struct zdata *data, int view)
{
	struct zview *v = &n->view[view], *p = &n->parent->view[view];

	*v = (struct zview){ .exists = true, .creates = v->creates, .mzxid = n->czxid, .pzxid = n->czxid, .data = data };
	data->refs++;
	n->refs++;
	p->creates++;
	p->children++;
	p->pzxid = n->czxid;
}

static void view_delete(struct fakezk *z, struct znode *n, int64_t zxid, int view)
{
	struct zview *p = &n->parent->view[view];

	n->view[view].exists = false;
	p->children--;
	p->pzxid = zxid;
	node_unref(z, n);
}

static void view_set(struct znode *n, struct zdata *data, int64_t zxid, int view)
{
	struct zview *v = &n->view[view];

	data_unref(v->data);
	v->data = data;
	data->refs++;
	v->version++;
	v->mzxid = zxid;
}

static void view_take(struct fakezk *z, const struct txn *t, int view)
{
	switch (t->type) {
	case TXN_CREATE:
		view_create(t->node, t->data, view);
		break;
	case TXN_DELETE:
		view_delete(z, t->node, t->zxid, view);
		break;
	case TXN_SET:
		view_set(t->node, t->data, t->zxid, view);
		break;
	case TXN_OPEN:
	case TXN_CLOSE:
		if (view != FAKEZK_TRUTH)
			t->session->known[view] = t->type == TXN_OPEN;
		break;
	case TXN_ERROR:
		break;
	}
}

void fakezk_append(struct fakezk *z, struct txn t)
{
	int i;

	if (z->log_count == z->log_cap) {
		z->log_cap = z->log_cap ? z->log_cap * 2 : 256;
		z->log = realloc(z->log, z->log_cap * sizeof(*z->log));
		assert(z->log);
	}
	if (t.node)
		t.node->refs++;
	z->log[z->log_count++] = t;
	view_take(z, &t, FAKEZK_TRUTH);
	if (t.more)
		return;
	for (i = 0; i < FAKEZK_SERVERS; i++)
		fakezk_commit_to(z, &z->server[i]);
}

void fakezk_apply(struct fakezk *z, struct zserver *s)
{
	bool more = true;

	while (more) {
		struct txn t = z->log[s->applied - z->log_base];

		s->applied++;
		s->zxid = t.zxid;
		more = t.more;
		/* The log's own reference keeps the node for the watches. */
		view_take(z, &t, s->index);
		fakezk_applied(s, &t);
	}
}

void fakezk_trim(struct fakezk *z)
{
	uint64_t done = z->log_base + z->log_count;
	size_t i, gone;

	for (i = 0; i < FAKEZK_SERVERS; i++)
		if (z->server[i].applied < done)
			done = z->server[i].applied;
	gone = (size_t)(done - z->log_base);
	if (gone == 0 || (gone < 64 && gone < z->log_count))
		return;
	for (i = 0; i < gone; i++) {
		data_unref(z->log[i].data);
		if (z->log[i].node)
			node_unref(z, z->log[i].node);
	}
	memmove(z->log, z->log + gone, (z->log_count - gone) * sizeof(*z->log));
	z->log_count -= gone;
	z->log_base = done;
}

int64_t fakezk_zxid(const struct fakezk *z)
{
	return z->single ? z->counter : z->epoch << 32 | z->counter;
}

int64_t fakezk_zxid_next(struct fakezk *z)
{
	z->counter++;
	return fakezk_zxid(z);
}

static enum zk_code write_fail(struct fakezk *z, struct txn t, enum zk_code code)
{
	t.type = TXN_ERROR;
	t.code = code;
	t.zxid = fakezk_zxid_next(z);
	fakezk_append(z, t);
	return code;
}

/* A directory that is a container, where servers have them. */
static bool stands_in(const struct fakezk *z, enum zk_create create, struct slice path)
{
	if (create != ZK_PERSISTENT || !z->lacking)
		return false;
	return !memmem(path.data, path.len, "/.", 2) && ((path.len > 7 && memcmp(path.data, "/locks/", 7) == 0) ||
							(path.len > 11 && memcmp(path.data, "/app/locks/", 11) == 0));
}

static enum zk_code write_create(struct fakezk *z, struct txn t, struct slice path, struct slice data,
				 enum zk_create create)
{
	char made[1200];
	size_t cut = path.len;
	struct znode *parent;

	while (cut && path.data[cut - 1] != '/')
		cut--;
	parent = fakezk_find(z, (struct slice){ path.data, cut > 1 ? cut - 1 : cut }, FAKEZK_TRUTH);
	if (!parent)
		return write_fail(z, t, ZK_NONODE);
	if (parent->session || (z->quota_until > z->sched->now && path.len > 7 && memcmp(path.data, "/locks/", 7) == 0)) {
		z->refused = true;
		z->refused_at = z->sched->now;
		return write_fail(z, t, ZK_REFUSED);
	}
	if (create == ZK_EPHEMERAL_SEQUENTIAL) {
		int len = snprintf(made, sizeof(made), "%.*s%010d", (int)path.len, path.data,
				   parent->view[FAKEZK_TRUTH].creates);

		path = (struct slice){ made, (size_t)len };
	}
	if (fakezk_find(z, path, FAKEZK_TRUTH))
		return write_fail(z, t, ZK_NODEEXISTS);
	t.type = TXN_CREATE;
	t.zxid = fakezk_zxid_next(z);
	t.node = node_new(z, parent, path);
	t.node->czxid = t.zxid;
	t.node->type = create;
	if (z->used_containers > 0 && (create == ZK_CONTAINER || stands_in(z, create, path))) {
		int v;

		z->used_containers--;
		for (v = 0; v < FAKEZK_VIEWS; v++)
			t.node->view[v].creates = z->first_sequence;
	}
	if (create == ZK_EPHEMERAL || create == ZK_EPHEMERAL_SEQUENTIAL) {
		t.node->session = t.session;
		LIST_INSERT_HEAD(&t.session->ephemerals, t.node, owned);
	}
	t.data = data_new(data);
	fakezk_append(z, t);
	if (z->hooks.created)
		z->hooks.created(z->hooks.ctx, t.node);
	return ZK_OK;
}

static void write_delete(struct fakezk *z, struct txn t, struct znode *n, enum zk_by cause)
{
	t.type = TXN_DELETE;
	t.node = n;
	if (n->session)
		LIST_REMOVE(n, owned);
	fakezk_append(z, t);
	if (z->hooks.deleted)
		z->hooks.deleted(z->hooks.ctx, n, cause);
}

enum zk_code fakezk_write(struct fakezk *z, struct txn t, struct slice path, struct slice data, enum zk_create create,
			  enum zk_by cause)
{
	struct znode *n;

	if (t.request == EFFECT_ZK_CREATE)
		return write_create(z, t, path, data, create);
	n = fakezk_find(z, path, FAKEZK_TRUTH);
	if (!n)
		return write_fail(z, t, ZK_NONODE);
	if (t.request == EFFECT_ZK_DELETE) {
		if (n->view[FAKEZK_TRUTH].children || !n->parent)
			return write_fail(z, t, ZK_NOTEMPTY);
		t.zxid = fakezk_zxid_next(z);
		write_delete(z, t, n, cause);
		return ZK_OK;
	}
	assert(t.request == EFFECT_ZK_SET);
	if (t.exact && n->view[FAKEZK_TRUTH].version != t.version)
		return write_fail(z, t, ZK_BADVERSION);
	t.type = TXN_SET;
	t.zxid = fakezk_zxid_next(z);
	t.node = n;
	t.data = data_new(data);
	fakezk_append(z, t);
	return ZK_OK;
}

void fakezk_session_close(struct fakezk *z, struct zsession *s, struct txn t, enum zk_by cause)
{
	struct txn part = { .zxid = fakezk_zxid_next(z), .origin = -1, .more = true, .session = s };

	s->alive = false;
	if (cause == ZK_BY_EXPIRY && z->hooks.expired)
		z->hooks.expired(z->hooks.ctx, s);
	while (!LIST_EMPTY(&s->ephemerals))
		write_delete(z, part, LIST_FIRST(&s->ephemerals), cause);
	t.type = TXN_CLOSE;
	t.session = s;
	t.zxid = part.zxid;
	fakezk_append(z, t);
}

static bool delete_newer(struct fakezk *z, int64_t zxid)
{
	struct txn t = { .origin = -1 };

	for (size_t i = 0; i < FAKEZK_BUCKETS; i++)
		for (struct znode *n = z->buckets[i]; n; n = n->hash_next) {
			const struct zview *v = &n->view[FAKEZK_TRUTH];

			if (!v->exists || n->czxid <= zxid || v->children)
				continue;
			t.zxid = fakezk_zxid_next(z);
			write_delete(z, t, n, ZK_BY_EXPIRY);
			return true;
		}
	return false;
}

static void keep_below(int64_t *number, int64_t zxid)
{
	if (*number > zxid)
		*number = zxid;
}

void fakezk_roll_back(struct fakezk *z, int64_t zxid)
{
	struct zsession *s;

	LIST_FOREACH(s, &z->sessions, link)
		if (s->alive && s->opened > zxid)
			fakezk_session_close(z, s, (struct txn){ .origin = -1 }, ZK_BY_EXPIRY);
	while (delete_newer(z, zxid))
		;
	for (size_t i = 0; i < FAKEZK_BUCKETS; i++)
		for (struct znode *n = z->buckets[i]; n; n = n->hash_next)
			for (int v = 0; v < FAKEZK_VIEWS; v++) {
				n->view[v].version -= n->view[v].mzxid > zxid && n->view[v].version > 0;
				keep_below(&n->view[v].mzxid, zxid);
				keep_below(&n->view[v].pzxid, zxid);
			}
}

void fakezk_tree_init(struct fakezk *z)
{
	struct znode *root = node_new(z, NULL, SLICE("/"));
	int v;

	root->refs = FAKEZK_VIEWS;
	for (v = 0; v < FAKEZK_VIEWS; v++)
		root->view[v] = (struct zview){ .exists = true, .data = data_new(SLICE("")) };
}

void fakezk_tree_free(struct fakezk *z)
{
	size_t i;
	int v;

	for (i = 0; i < FAKEZK_BUCKETS; i++)
		while (z->buckets[i]) {
			struct znode *n = z->buckets[i];

			z->buckets[i] = n->hash_next;
			for (v = 0; v < FAKEZK_VIEWS; v++)
				data_unref(n->view[v].data);
			free(n);
		}
	for (i = 0; i < z->log_count; i++)
		data_unref(z->log[i].data);
	free(z->log);
	z->log = NULL;
	z->log_count = z->log_cap = 0;
}
