/* SPDX-License-Identifier: Apache-2.0 */
#include "core/hosts/audit.h"

#include "base/mem.h"
#include "core/claim/listing.h"
#include "core/client/reply.h"
#include "core/hosts/hosts.h"
#include "core/kind/permit_limit.h"
#include "core/znode/record.h"

enum { NAME_STEPS = 2 }; /* what a name counts for (core/port/work.h) */

/* ---- where lock directories are ---- */

/* Goes to that root, or the one after it. False: none is left. */
static bool begin_root(struct hosts *h, size_t number)
{
	struct audit *a = &h->audit;

	if (!root_find(h->env->conf, number, &a->root))
		return false;
	a->state = AUDIT_ROOT;
	a->root_asked = a->mismatch = false;
	bytes_clear(&a->names);
	a->sent = a->answered = 0;
	return true;
}

/* A directory that is looked at: `name` below the root is a lock's, or a semaphore's with a part of it behind a '/'. */
struct audited {
	struct slice name, path;
	enum flavour flavour;
};

static struct slice name_at(const struct audit *a, size_t at)
{
	return slice_of(a->names.data + at + 1);
}

static void pass(size_t *at, struct slice name)
{
	*at += name.len + 2;
}

static void add_name(struct audit *a, enum flavour flavour, struct slice name, const char *part)
{
	bytes_char(&a->names, (char)flavour);
	bytes_format(&a->names, "%s%s", name, part);
	bytes_char(&a->names, '\0');
}

/* ---- a sweep ---- */

static void forget(struct hosts *h)
{
	struct audit *a = &h->audit;

	a->state = AUDIT_IDLE;
	work_drop(&h->env->works, &a->work);
	root_forget(&a->root);
	bytes_free(&a->names);
	for (size_t i = 0; i < a->example_count; i++)
		bytes_free(&a->examples[i].path);
	a->example_count = 0;
}

void audit_deinit(struct hosts *h)
{
	forget(h);
}

static void wait_in(struct client_list *list, struct client *c)
{
	if (c->auditing)
		TAILQ_REMOVE(c->auditing, c, audit_link);
	c->auditing = list;
	if (list)
		TAILQ_INSERT_TAIL(list, c, audit_link);
}

static void begin(struct hosts *h)
{
	struct audit *a = &h->audit;
	struct client *c;

	while ((c = TAILQ_FIRST(&a->queued)))
		wait_in(&a->served, c);
	a->sweep++;
	ledger_number(h->env->ledger, CEILING_SWEEP, a->sweep);
	a->begun_ns = h->env->now_ns;
	a->counts = (struct audit_counts){ 0 };
	begin_root(h, 0);
}

/* The next of those in the list, who does not wait any longer; NULL: nobody is left. */
static struct client *next(struct client_list *list)
{
	struct client *c = TAILQ_FIRST(list);

	if (c)
		wait_in(NULL, c);
	return c;
}

/* In the turns of whom it is done for. */
static void leave_for_later(struct hosts *h)
{
	struct audit *a = &h->audit;

	work_drop(&h->env->works, &a->work);
	a->work.kind = WORK_AUDIT;
	work_add(&h->env->works, &TAILQ_FIRST(&a->served)->user->worker, &a->work);
}

void audit_leave(struct hosts *h, struct client *c)
{
	struct audit *a = &h->audit;

	wait_in(NULL, c);
	if (a->state == AUDIT_IDLE)
		return;
	if (TAILQ_EMPTY(&a->served))
		forget(h);
	else if (a->work.worker)
		leave_for_later(h);
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

/* The lock's directory at that path; the host gets to know the lock if its limits allow that. */
static struct directory *find(struct hosts *h, const struct audited *p)
{
	struct directory *d = directory_find(h->locks->directories, p->path);
	struct lock *lock = d ? d->lock : NULL;
	struct bytes name = { 0 };
	enum flavour flavour;

	if (lock && lock->slots)
		return d;
	if (lock)
		lock = lock_make(h->locks, bytes_view(&lock->name), NULL);
	else if (root_lock(h->env->conf, &h->audit.root, p->name, &name, &flavour))
		lock = lock_make(h->locks, bytes_view(&name), NULL);
	bytes_free(&name);
	return lock && slice_eq(bytes_view(&lock->directory.path), p->path) ? &lock->directory : NULL;
}

static void send(struct hosts *h, enum effect_type type, enum operation_kind kind, struct slice path, struct slice child)
{
	struct operation_request r = { .op = { .kind = kind, .claim = h->audit.sweep }, .path = path, .child = child };

	h->audit.open++;
	operation_send(h->ensemble, type, &r);
}

/* A lock deletes it however long that takes. When the host may not know another lock, it tries once. */
static void delete_stray(struct hosts *h, const struct audited *p, struct slice child)
{
	struct directory *d = find(h, p);

	if (d && claim_stray(d, child))
		return;
	if (!turn_of_questions(h->locks->directories)) {
		h->audit.counts.undeleted++;
		return;
	}
	h->env->stats.strays_total++;
	h->audit.counts.undeleted++;
	send(h, EFFECT_ZK_DELETE, OPERATION_AUDIT_DELETE, p->path, child);
}

static void examine_child(struct hosts *h, const struct audited *p, struct slice child)
{
	struct listing_view view = {
		h->ensemble->session.id, p->flavour, directory_find(h->locks->directories, p->path)
	};
	struct audit *a = &h->audit;
	enum mode mode;
	enum child is = listing_classify(view, child, &mode);

	a->counts.contenders += is != CHILD_UNRECOGNIZED;
	a->counts.ours += is == CHILD_OURS;
	if (is == CHILD_STRAY) {
		FOUND(a, strays, p->path, child);
		delete_stray(h, p, child);
	}
	/* A directory of another kind has children of that kind. */
	if (is == CHILD_UNKNOWN || (is == CHILD_UNRECOGNIZED && !a->mismatch))
		FOUND(a, odd_children, p->path, child);
}

static void data_answered(struct audit *a, const struct audited *p, struct slice data)
{
	int64_t limit;

	a->mismatch = true;
	/* A semaphore's only children are the directories of its parts. */
	if (record_is_ours(data) && permit_limit_data_fits(data, &limit)) {
		add_name(a, FLAVOUR_MUTEX, p->name, "/locks");
		add_name(a, FLAVOUR_SLOTS, p->name, "/leases");
		return;
	}
	for (enum kind kind = KIND_LOCK; kind_is_known(kind); kind++)
		if (flavour_fits(kind, p->flavour, data))
			a->mismatch = false;
	if (a->mismatch)
		FOUND(a, mismatched, p->path, NO_CHILD);
}

static void list_answered(struct hosts *h, const struct audited *p, const struct event *event)
{
	struct audit *a = &h->audit;

	if (event->zk_answered.code == ZK_OK) {
		a->counts.directories++;
		h->env->stats.audit_directories_total++;
		for (size_t i = 0; i < event->zk_answered.count; i++)
			examine_child(h, p, event->zk_answered.children[i]);
	} else if (event->zk_answered.code != ZK_NONODE) {
		FOUND(a, refused, p->path, NO_CHILD);
	}
	pass(&a->answered, p->name);
	a->mismatch = false;
}

static void place_answered(struct hosts *h, const struct operation *op, const struct event *event)
{
	struct audit *a = &h->audit;
	struct slice name = name_at(a, a->answered);
	struct bytes path = { 0 };
	struct audited p = { .flavour = (enum flavour)a->names.data[a->answered] };

	bytes_format(&path, "%s/%s", a->root.path, name);
	p.path = bytes_view(&path);
	p.name = (struct slice){ path.data + a->root.path.len + 1, name.len }; /* those bytes stay where they are */
	if (op->kind == OPERATION_AUDIT_LIST)
		list_answered(h, &p, event);
	else if (event->zk_answered.code == ZK_OK)
		data_answered(a, &p, event->zk_answered.data);
	bytes_free(&path);
}

static void look_at(struct hosts *h, struct slice child)
{
	struct audit *a = &h->audit;
	struct bytes name = { 0 };
	enum flavour flavour;

	if (root_lock(h->env->conf, &a->root, child, &name, &flavour))
		add_name(a, flavour, child, "");
	else
		FOUND(a, odd_names, a->root.path, child);
	bytes_free(&name);
}

int64_t audit_look(struct hosts *h, int64_t steps)
{
	struct audit *a = &h->audit;
	struct slice child;
	int64_t done = 0;

	while (done < steps && root_next(&a->root, &child)) {
		look_at(h, child);
		done += h->env->conf->all_in_pieces ? steps : NAME_STEPS;
	}
	if (a->root.looked < a->root.listed.len)
		return done;
	work_drop(&h->env->works, &a->work);
	root_forget(&a->root);
	a->state = AUDIT_WALK;
	return done;
}

static void root_answered(struct hosts *h, const struct event *event)
{
	struct audit *a = &h->audit;

	if (event->zk_answered.code == ZK_OK)
		root_listed(&a->root, event);
	else if (event->zk_answered.code != ZK_NONODE)
		FOUND(a, refused, a->root.path, NO_CHILD);
	a->state = AUDIT_NAMES;
	audit_look(h, WORK_TURN_STEPS);
	if (a->state == AUDIT_NAMES)
		leave_for_later(h);
}

void audit_answered(struct hosts *h, const struct operation *op, const struct event *event)
{
	struct audit *a = &h->audit;

	a->open--;
	/* An answer to an earlier sweep; or the connection is gone, which audit_suspended() handles. */
	if (a->state == AUDIT_IDLE || op->claim != a->sweep || event->zk_answered.code == ZK_UNKNOWN)
		return;
	if (op->kind == OPERATION_AUDIT_ROOT)
		root_answered(h, event);
	else if (op->kind == OPERATION_AUDIT_DATA || op->kind == OPERATION_AUDIT_LIST)
		place_answered(h, op, event);
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
	send(h, EFFECT_ZK_LIST, OPERATION_AUDIT_ROOT, a->root.path, NO_CHILD);
}

static void send_directories(struct hosts *h)
{
	struct audit *a = &h->audit;

	while (a->sent < a->names.len && may_send(h)) {
		struct slice znode = name_at(a, a->sent);

		send(h, EFFECT_ZK_GET, OPERATION_AUDIT_DATA, a->root.path, znode);
		send(h, EFFECT_ZK_LIST, OPERATION_AUDIT_LIST, a->root.path, znode);
		pass(&a->sent, znode);
	}
}

static void end_root(struct hosts *h)
{
	struct audit *a = &h->audit;

	if (begin_root(h, a->root.number + 1))
		return;
	a->state = AUDIT_CLEAR;
	a->clear_op = h->ensemble->operations.end;
}

static void reply(const struct audit *a, struct client *c)
{
	struct bytes *out = reply_out(c);

	resp_map(out, sizeof(a->counts) / sizeof(int64_t) + 2, c->version);
#define X(name, text) reply_pairs(out, #name, a->counts.name);
	AUDIT_COUNTS(X)
#undef X
	reply_pairs(out, "elapsed_ms", (c->locks->env->now_ns - a->begun_ns) / 1000000);
	resp_bulk(out, SLICE("examples"));
	resp_array(out, a->example_count);
	for (size_t i = 0; i < a->example_count; i++) {
		resp_map(out, 2, c->version);
		reply_pairs(out, "what", a->examples[i].what, "path", bytes_view(&a->examples[i].path));
	}
	reply_end(c);
}

static void finish(struct hosts *h)
{
	struct audit *a = &h->audit;
	struct client *c;

	a->counts.undeleted += (int64_t)h->locks->directories->stray_count;
	h->env->stats.audits_total++;
	effects_say(h->env->out, a->counts.strays ? EFFECT_LEVEL_WARNING : EFFECT_LEVEL_INFO, audit,
		    EFFECT_FIELDS("directories=%d strays=%d", a->counts.directories, a->counts.strays),
		    "audit: looked at %d directories and found %d strays of this host", a->counts.directories,
		    a->counts.strays);
	while ((c = next(&a->served)))
		reply(a, c);
	forget(h);
}

static void fail_all(struct client_list *list, enum error_code code, const char *sentence)
{
	struct client *c;

	while ((c = next(list)))
		reply_error(c, code, "%s", sentence);
}

static void fail_queued(struct audit *a)
{
	fail_all(&a->queued, ERROR_UNAVAILABLE, "the connection to ZooKeeper was lost before the audit began");
}

void audit_continue(struct hosts *h)
{
	struct audit *a = &h->audit;

	if (!h->ensemble->session.connected) {
		if (!session_reaches(h->ensemble))
			fail_queued(a);
		return;
	}
	if (a->state == AUDIT_IDLE && !TAILQ_EMPTY(&a->queued))
		begin(h);
	if (a->state == AUDIT_WALK && a->answered == a->names.len)
		end_root(h);
	if (a->state == AUDIT_ROOT)
		send_root(h);
	else if (a->state == AUDIT_WALK)
		send_directories(h);
	if (a->state == AUDIT_CLEAR && h->locks->directories->stray_count &&
	    !TAILQ_EMPTY(&h->locks->directories->turns.queues[TURN_DELETE]))
		a->clear_op = UINT64_MAX; /* a delete that waits is sent after every open operation */
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

void audit_suspended(struct hosts *h)
{
	struct audit *a = &h->audit;
	struct client *c;

	if (session_reaches(h->ensemble)) {
		TAILQ_CONCAT(&a->served, &a->queued, audit_link);
		TAILQ_CONCAT(&a->queued, &a->served, audit_link);
		TAILQ_FOREACH(c, &a->queued, audit_link)
			c->auditing = &a->queued;
		forget(h);
		return;
	}
	while ((c = next(&a->served)))
		reply_error(c, ERROR_UNAVAILABLE,
			    "the connection to ZooKeeper was lost during the audit, after %d directories; "
			    "strays found and deleted: %d",
			    a->counts.directories, a->counts.strays);
	forget(h);
	fail_queued(a);
}

void audit_stopping(struct hosts *h)
{
	struct audit *a = &h->audit;

	fail_all(&a->served, ERROR_DRAINING, "the daemon is stopping");
	fail_all(&a->queued, ERROR_DRAINING, "the daemon is stopping");
	forget(h);
}

void audit_wait(struct hosts *h, struct client *c)
{
	wait_in(&h->audit.queued, c);
}

void audit_ask(struct hosts *h, struct client *c)
{
	if (h->env->conf->standalone) { /* there is nothing to look at */
		h->audit.counts = (struct audit_counts){ 0 };
		h->audit.begun_ns = h->env->now_ns;
		reply(&h->audit, c);
	} else if (h->env->stopping) {
		reply_error(c, ERROR_DRAINING, "the daemon is stopping");
	} else if (!session_reaches(h->ensemble)) {
		reply_error(c, ERROR_UNAVAILABLE, "there is no connection to ZooKeeper");
	} else {
		audit_wait(h, c);
	}
}
