/* SPDX-License-Identifier: Apache-2.0 */
#include "core/hosts/audit.h"

#include <assert.h>

#include "base/mem.h"
#include "core/client/reply.h"
#include "core/hosts/hosts.h"
#include "core/kind/semaphore.h"
#include "core/znode/record.h"
#include "protocol/name.h"

/* ---- where lock directories are ---- */

struct root {
	struct slice path, prefix; /* <path>/<znode name> is the lock <prefix><name> */
};

/* After the first, those of the prefixes that have a path of their own. */
static bool root_at(const struct hosts *h, size_t at, struct root *ret)
{
	*ret = (struct root){ .path = slice_of(h->env->conf->root) };
	for (size_t i = 0; at > 0 && i < h->env->conf->prefix_count; i++) {
		const struct broker_prefix *p = &h->env->conf->prefixes[i];

		if (!p->path || --at > 0)
			continue;
		*ret = (struct root){ slice_of(p->path), slice_of(p->prefix) };
	}
	return at == 0;
}

static struct root present_root(const struct hosts *h)
{
	struct root root;
	bool found = root_at(h, h->audit.root, &root);

	assert(found);
	return root;
}

static const char PART = '\n'; /* in no name of a znode */

/* The directory of that znode name below the present root. */
static void directory_path(const struct hosts *h, struct slice znode, struct bytes *out)
{
	bytes_slice(out, present_root(h).path);
	bytes_char(out, '/');
	for (size_t i = 0; i < znode.len; i++)
		bytes_char(out, znode.data[i] == PART ? '/' : znode.data[i]);
}

/* Those of a semaphore are looked at like any other, under names that no lock has: its own, PART, and theirs. */
static void add_parts(struct audit *a, struct slice znode)
{
	struct bytes parts = { 0 };

	bytes_format(&parts, "%s\nlocks/%s\nleases/", znode, znode);
	bytes_slice(&a->names, bytes_view(&parts));
	bytes_free(&parts);
}

/* False: no lock lives there, not even one of a name that a prefix takes elsewhere. */
static bool lock_name(const struct hosts *h, struct slice znode, struct bytes *out)
{
	struct bytes here = { 0 }, place = { 0 };
	bool lives;

	bytes_slice(out, present_root(h).prefix);
	if (!name_decode(znode, out) || !name_valid(bytes_view(out)) ||
	    !flavour_has_place(h->env->conf, bytes_view(out)))
		return false;
	directory_path(h, znode, &here);
	flavour_place(h->env->conf, bytes_view(out), &place);
	lives = slice_eq(bytes_view(&here), bytes_view(&place));
	bytes_free(&here);
	bytes_free(&place);
	return lives;
}

/* ---- a sweep ---- */

static void forget(struct audit *a)
{
	a->state = AUDIT_IDLE;
	bytes_free(&a->names);
	for (size_t i = 0; i < a->example_count; i++)
		bytes_free(&a->examples[i].path);
	a->example_count = 0;
}

void audit_init(struct hosts *h)
{
	TAILQ_INIT(&h->audit.served);
	TAILQ_INIT(&h->audit.queued);
}

void audit_deinit(struct hosts *h)
{
	forget(&h->audit);
}

static void wait_in(struct client_list *list, struct client *c)
{
	if (c->auditing)
		TAILQ_REMOVE(c->auditing, c, audit_link);
	c->auditing = list;
	if (list)
		TAILQ_INSERT_TAIL(list, c, audit_link);
}

static void begin_root(struct audit *a, size_t root)
{
	a->state = AUDIT_ROOT;
	a->root = root;
	a->root_asked = false;
	bytes_clear(&a->names);
	a->sent = a->answered = 0;
	a->mismatch = false;
}

static void begin(struct hosts *h)
{
	struct audit *a = &h->audit;
	struct client *c;

	while ((c = TAILQ_FIRST(&a->queued)))
		wait_in(&a->served, c);
	a->sweep++;
	a->begun_ns = h->env->now_ns;
	a->counts = (struct audit_counts){ 0 };
	begin_root(a, 0);
}

void audit_leave(struct hosts *h, struct client *c)
{
	struct audit *a = &h->audit;

	wait_in(NULL, c);
	if (a->state != AUDIT_IDLE && TAILQ_EMPTY(&a->served))
		forget(a);
}

/* ---- what was found ---- */

/* Counts it, with the path as an example of its kind while there is room for more. */
static void found(struct audit *a, int64_t *count, const char *what, struct slice path, struct slice child)
{
	struct audit_example *e;

	(*count)++;
	if (a->example_count == AUDIT_EXAMPLES_MAX)
		return;
	e = &a->examples[a->example_count++];
	e->what = what;
	if (path.len + child.len + 1 > AUDIT_EXAMPLE_BYTES)
		child.len = path.len < AUDIT_EXAMPLE_BYTES ? AUDIT_EXAMPLE_BYTES - path.len : 0;
	bytes_format(&e->path, "%s%s%s", path, child.len ? "/" : "", child);
}

#define FOUND(a, what, path, child) found(a, &(a)->counts.what, #what, path, child)

static const struct slice NO_CHILD = { 0 };

/* The lock of that directory, made known if that may be. */
static struct lock *find_lock(struct hosts *h, struct slice znode, struct slice path)
{
	const struct directory *d = directory_find(h->locks->directories, path);
	struct lock *lock = d ? lock_of(d) : NULL;
	struct bytes name = { 0 };

	if (lock && lock->semaphore)
		return lock;
	if (lock)
		lock = lock_make(h->locks, bytes_view(&lock->name));
	else if (lock_name(h, znode, &name))
		lock = lock_make(h->locks, bytes_view(&name));
	bytes_free(&name);
	return lock && slice_eq(bytes_view(&lock->directory.path), path) ? lock : NULL;
}

static void send(struct hosts *h, enum effect_type type, enum operation_kind kind, struct slice path)
{
	struct operation_request r = { .op = { .kind = kind, .claim = h->audit.sweep }, .path = path };

	h->audit.open++;
	operation_send(h->ensemble, type, &r);
}

/* A lock deletes it however long that takes. When the host may know no more of them, there is one try. */
static void delete_stray(struct hosts *h, struct slice znode, struct slice path, struct slice child)
{
	struct bytes whole = { 0 };
	struct lock *lock;

	lock = find_lock(h, znode, path);
	if (lock && claim_orphan(&lock->directory, child))
		return;
	if (!turn_of_questions(h->locks->directories)) {
		h->audit.counts.undeleted++;
		return;
	}
	bytes_format(&whole, "%s/%s", path, child);
	h->env->stats.strays_total++;
	h->audit.counts.undeleted++;
	send(h, EFFECT_ZK_DELETE, OPERATION_AUDIT_DELETE, bytes_view(&whole));
	bytes_free(&whole);
}

/* Its name was found to be a lock's before. */
static enum flavour flavour_of(const struct hosts *h, struct slice znode)
{
	const char *part = memchr(znode.data, PART, znode.len);
	struct bytes name = { 0 }, path = { 0 };
	enum flavour flavour;

	if (part)
		return part[2] == 'e' ? FLAVOUR_SLOTS : FLAVOUR_MUTEX;
	lock_name(h, znode, &name);
	flavour = flavour_place(h->env->conf, bytes_view(&name), &path);
	bytes_free(&name);
	bytes_free(&path);
	return flavour;
}

static void examine_child(struct hosts *h, enum flavour flavour, struct slice znode, struct slice child)
{
	struct audit *a = &h->audit;
	struct bytes whole = { 0 };
	struct slice path;
	enum mode mode;

	directory_path(h, znode, &whole);
	path = bytes_view(&whole);
	switch (directory_classify((struct directory_view){ h->ensemble->session.id, flavour,
							    directory_find(h->locks->directories, path) },
				   child, &mode)) {
	case DIRECTORY_CHILD_OURS:
		a->counts.contenders++;
		a->counts.ours++;
		break;
	case DIRECTORY_CHILD_ORPHAN:
		a->counts.contenders++;
		FOUND(a, strays, path, child);
		delete_stray(h, znode, path, child);
		break;
	case DIRECTORY_CHILD_OTHER:
		a->counts.contenders++;
		break;
	case DIRECTORY_CHILD_UNKNOWN:
		a->counts.contenders++;
		FOUND(a, odd_children, path, child);
		break;
	case DIRECTORY_CHILD_UNRECOGNIZED:
		/* What lies in a directory of another kind is that kind's business. */
		if (!a->mismatch)
			FOUND(a, odd_children, path, child);
		break;
	}
	bytes_free(&whole);
}

static struct slice name_at(const struct audit *a, size_t at)
{
	const char *from = a->names.data + at, *end = memchr(from, '/', a->names.len - at);

	return (struct slice){ from, (size_t)(end - from) };
}

static bool is_semaphore(struct slice data)
{
	int64_t limit;

	return record_is_ours(data) && semaphore_data_fits(data, &limit);
}

static void data_answered(struct hosts *h, const struct event *event)
{
	struct audit *a = &h->audit;
	struct slice znode = name_at(a, a->answered);
	struct bytes path = { 0 };

	if (event->zk_answered.code != ZK_OK)
		return;
	if (is_semaphore(event->zk_answered.data)) {
		add_parts(a, znode);
		a->mismatch = true; /* they are its only children */
		return;
	}
	for (int kind = 0; kind < KINDS; kind++)
		if (directory_data_fits((enum kind)kind, flavour_of(h, znode), event->zk_answered.data))
			return;
	a->mismatch = true;
	directory_path(h, znode, &path);
	FOUND(a, mismatched, bytes_view(&path), NO_CHILD);
	bytes_free(&path);
}

static void list_answered(struct hosts *h, const struct event *event)
{
	struct audit *a = &h->audit;
	struct slice znode = name_at(a, a->answered);
	enum flavour flavour = flavour_of(h, znode);
	struct bytes path = { 0 };

	if (event->zk_answered.code == ZK_OK) {
		a->counts.directories++;
		h->env->stats.audit_directories_total++;
		for (size_t i = 0; i < event->zk_answered.count; i++)
			examine_child(h, flavour, znode, event->zk_answered.children[i]);
	} else if (event->zk_answered.code != ZK_NONODE) {
		directory_path(h, znode, &path);
		FOUND(a, refused, bytes_view(&path), NO_CHILD);
	}
	a->answered += znode.len + 1;
	a->mismatch = false;
	bytes_free(&path);
}

/* Names that begin with a dot are the brokers' own: no lock's does. */
static void keep_names(struct hosts *h, const struct event *event)
{
	struct audit *a = &h->audit;
	struct slice root = present_root(h).path;
	struct bytes name = { 0 };

	for (size_t i = 0; i < event->zk_answered.count; i++) {
		struct slice child = event->zk_answered.children[i];

		if (child.len && child.data[0] == '.')
			continue;
		bytes_clear(&name);
		if (!lock_name(h, child, &name)) {
			FOUND(a, odd_names, root, child);
			continue;
		}
		bytes_format(&a->names, "%s/", child);
	}
	bytes_free(&name);
}

static void root_answered(struct hosts *h, const struct event *event)
{
	struct audit *a = &h->audit;

	if (event->zk_answered.code == ZK_OK)
		keep_names(h, event);
	else if (event->zk_answered.code != ZK_NONODE)
		FOUND(a, refused, present_root(h).path, NO_CHILD);
	a->state = AUDIT_WALK;
}

void audit_answered(struct hosts *h, const struct operation *op, const struct event *event)
{
	struct audit *a = &h->audit;

	a->open--;
	/* Of an earlier sweep; or the connection is gone, which audit_suspended() sees to. */
	if (a->state == AUDIT_IDLE || op->claim != a->sweep || event->zk_answered.code == ZK_UNKNOWN)
		return;
	if (op->kind == OPERATION_AUDIT_ROOT)
		root_answered(h, event);
	else if (op->kind == OPERATION_AUDIT_DATA)
		data_answered(h, event);
	else if (op->kind == OPERATION_AUDIT_LIST)
		list_answered(h, event);
	else if (event->zk_answered.code == ZK_OK || event->zk_answered.code == ZK_NONODE)
		a->counts.undeleted--;
}

/* ---- going on ---- */

static bool may_send(const struct hosts *h)
{
	return h->ensemble->session.connected && h->ensemble->session.proving &&
	       turn_of_questions(h->locks->directories) && h->audit.open + 2 <= AUDIT_OPEN_MAX;
}

static void send_root(struct hosts *h)
{
	struct audit *a = &h->audit;

	if (a->root_asked || !may_send(h))
		return;
	a->root_asked = true;
	send(h, EFFECT_ZK_LIST, OPERATION_AUDIT_ROOT, present_root(h).path);
}

static void send_directories(struct hosts *h)
{
	struct audit *a = &h->audit;
	struct bytes path = { 0 };

	while (a->sent < a->names.len && may_send(h)) {
		struct slice znode = name_at(a, a->sent);

		bytes_clear(&path);
		directory_path(h, znode, &path);
		send(h, EFFECT_ZK_GET, OPERATION_AUDIT_DATA, bytes_view(&path));
		send(h, EFFECT_ZK_LIST, OPERATION_AUDIT_LIST, bytes_view(&path));
		a->sent += znode.len + 1;
	}
	bytes_free(&path);
}

static void end_root(struct hosts *h)
{
	struct audit *a = &h->audit;

	struct root next;

	if (root_at(h, a->root + 1, &next)) {
		begin_root(a, a->root + 1);
		return;
	}
	a->state = AUDIT_CLEAR;
	a->clear_op = h->ensemble->operations.end;
}

static void reply(const struct audit *a, struct client *c)
{
	struct bytes *out = reply_out(c);
	size_t begin = reply_begin(c);

	resp_map(out, sizeof(a->counts) / sizeof(int64_t) + 2, c->version);
#define X(name, text) \
	resp_bulk(out, SLICE(#name)); \
	resp_integer(out, a->counts.name);
	AUDIT_COUNTS(X)
#undef X
	resp_bulk(out, SLICE("elapsed_ms"));
	resp_integer(out, (c->locks->env->now_ns - a->begun_ns) / 1000000);
	resp_bulk(out, SLICE("examples"));
	resp_array(out, a->example_count);
	for (size_t i = 0; i < a->example_count; i++) {
		resp_map(out, 2, c->version);
		resp_bulk(out, SLICE("what"));
		resp_bulk(out, slice_of(a->examples[i].what));
		resp_bulk(out, SLICE("path"));
		resp_bulk(out, bytes_view(&a->examples[i].path));
	}
	reply_end(c, begin);
}

static void finish(struct hosts *h)
{
	struct audit *a = &h->audit;
	struct client *c;

	a->counts.undeleted += (int64_t)h->locks->directories->orphan_count;
	h->env->stats.audits_total++;
	effects_say(h->env->out, a->counts.strays ? EFFECT_LEVEL_WARNING : EFFECT_LEVEL_INFO,
		    "audit: %d directories looked at, %d strays of ours found", a->counts.directories, a->counts.strays);
	while ((c = TAILQ_FIRST(&a->served))) {
		wait_in(NULL, c);
		reply(a, c);
	}
	forget(a);
}

void audit_continue(struct hosts *h)
{
	struct audit *a = &h->audit;

	if (a->state == AUDIT_IDLE && !TAILQ_EMPTY(&a->queued))
		begin(h);
	if (a->state == AUDIT_WALK && a->answered == a->names.len)
		end_root(h);
	if (a->state == AUDIT_ROOT)
		send_root(h);
	else if (a->state == AUDIT_WALK)
		send_directories(h);
	if (a->state == AUDIT_CLEAR && h->locks->directories->orphan_count &&
	    !TAILQ_EMPTY(&h->locks->directories->turns.queues[TURN_DELETE]))
		a->clear_op = UINT64_MAX; /* a stray that waits is sent later than all that is open */
	else if (a->state == AUDIT_CLEAR && a->clear_op == UINT64_MAX)
		a->clear_op = h->ensemble->operations.end;
	/* Answers come in order: the first open operation is the oldest. */
	if (a->state == AUDIT_CLEAR && h->ensemble->operations.first >= a->clear_op) {
		finish(h);
		if (!TAILQ_EMPTY(&a->queued)) {
			begin(h);
			send_root(h);
		}
	}
}

/* ---- asked, and ended early ---- */

static void fail_all(struct client_list *list, enum error_code code, const char *sentence)
{
	struct client *c;

	while ((c = TAILQ_FIRST(list))) {
		wait_in(NULL, c);
		reply_error(c, code, sentence);
	}
}

void audit_suspended(struct hosts *h)
{
	struct audit *a = &h->audit;
	struct bytes text = { 0 };

	if (a->state != AUDIT_IDLE) {
		bytes_format(&text,
			     "the connection to ZooKeeper was lost during the audit, after %d directories; "
			     "strays found and deleted: %d",
			     a->counts.directories, a->counts.strays);
		bytes_char(&text, '\0');
		fail_all(&a->served, ERROR_UNAVAILABLE, text.data);
		bytes_free(&text);
		forget(a);
	}
	fail_all(&a->queued, ERROR_UNAVAILABLE, "the connection to ZooKeeper was lost before the audit began");
}

void audit_stopping(struct hosts *h)
{
	struct audit *a = &h->audit;

	fail_all(&a->served, ERROR_DRAINING, "the daemon is stopping");
	fail_all(&a->queued, ERROR_DRAINING, "the daemon is stopping");
	forget(a);
}

/* Standalone there is nothing to look at. */
static void reply_nothing(struct hosts *h, struct client *c)
{
	h->audit.counts = (struct audit_counts){ 0 };
	h->audit.begun_ns = h->env->now_ns;
	reply(&h->audit, c);
}

void audit_ask(struct hosts *h, struct client *c)
{
	if (h->env->conf->standalone)
		reply_nothing(h, c);
	else if (h->env->stopping)
		reply_error(c, ERROR_DRAINING, "the daemon is stopping");
	else if (!h->ensemble->session.connected)
		reply_error(c, ERROR_UNAVAILABLE, "ZooKeeper cannot be asked now");
	else
		wait_in(&h->audit.queued, c);
}
