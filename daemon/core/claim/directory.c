/* SPDX-License-Identifier: Apache-2.0 */
#include "core/claim/directory.h"

#include <assert.h>

#include "base/container.h"
#include "core/claim/directories.h"
#include "core/znode/record.h"

/* What ZooKeeper refused, or did not tell, is tried again: not at once. */
static const int64_t PAUSE_NS = 1000000000;

/* What it is too busy for: from an eighth of a second to four seconds, less a random part. */
static const int64_t BUSY_PAUSE_NS = 125000000;
enum { BUSY_DOUBLINGS = 5 };

void directory_init(struct directory *d, struct directories *all, struct lock *lock)
{
	d->directories = all;
	d->lock = lock;
	d->timer.kind = TIMER_DIRECTORY;
	d->payer = &all->env->accounts.nobody;
	TAILQ_INIT(&d->slots);
	TAILQ_INIT(&d->leaving);
}

static void leave_later(struct directory *d)
{
	struct directories *all = d->directories;

	if (!d->later)
		return;
	d->later = false;
	TAILQ_REMOVE(&all->later, d, later_link);
	if (TAILQ_EMPTY(&all->later))
		work_drop(&all->env->works, &all->work);
}

void directory_deinit(struct directory *d)
{
	struct directories *all = d->directories;

	assert(!d->claim_count && !d->claim && !d->next && TAILQ_EMPTY(&d->slots) && TAILQ_EMPTY(&d->leaving));
	assert(!d->facts && !d->operations && d->naming.state != NAMING_WAITS);
	charge_give_back(&d->watches, POOL_WATCHES);
	lasting_forget(d);
	leave_later(d);
	if (d->touched)
		directory_untouch(d);
	heap_unset(&all->env->timers, &d->timer);
	turn_forget(d);
	if (all->turns.served == d)
		all->turns.served = NULL;
	map_remove(&all->paths, &d->path_node);
	bytes_free(&d->failure.sentence);
	bytes_free(&d->seen.by);
	bytes_free(&d->seen.data);
	bytes_free(&d->before);
	bytes_free(&d->path);
}

void directory_add(struct directory *d)
{
	struct map *paths = &d->directories->paths;

	map_add(paths, &d->path_node, map_hash(paths, d->path.data, d->path.len));
}

struct directory *directory_find(const struct directories *all, struct slice path)
{
	struct directory *d;

	MAP_FOREACH(d, &all->paths, map_hash(&all->paths, path.data, path.len), path_node)
		if (slice_eq(bytes_view(&d->path), path))
			return d;
	return NULL;
}

void directory_touch(struct directory *d)
{
	if (d->touched)
		return;
	d->touched = true;
	TAILQ_INSERT_TAIL(&d->directories->touched, d, touched_link);
}

void directory_untouch(struct directory *d)
{
	assert(d->touched);
	d->touched = false;
	TAILQ_REMOVE(&d->directories->touched, d, touched_link);
}

void directory_touch_later(struct directory *d)
{
	struct directories *all = d->directories;

	if (d->later)
		return;
	d->later = true;
	TAILQ_INSERT_TAIL(&all->later, d, later_link);
	all->work.kind = WORK_LOCKS;
	work_add(&all->env->works, &all->worker, &all->work);
}

void directory_touch_one(struct directory *d, size_t *count)
{
	if (++*count > WORK_TURN_STEPS || d->directories->env->conf->all_in_pieces)
		directory_touch_later(d);
	else
		directory_touch(d);
}

int64_t directory_touch_some(struct directories *all, int64_t steps)
{
	struct directory *d;
	int64_t done = 0;

	for (; done < steps && (d = TAILQ_FIRST(&all->later)); done++) {
		leave_later(d);
		directory_touch(d);
	}
	return done;
}

void directory_delay(struct directory *d, int64_t pause_ns)
{
	d->pause_until_ns = d->directories->env->now_ns + pause_ns;
	directory_touch(d);
}

void directory_pause(struct directory *d)
{
	directory_delay(d, PAUSE_NS);
}

/* One breath may be refused several times: that is one pause. */
void directory_retry(struct directory *d)
{
	int64_t pause_ns = BUSY_PAUSE_NS << d->busy;

	if (d->directories->env->now_ns < d->pause_until_ns)
		return;
	if (d->busy < BUSY_DOUBLINGS)
		d->busy++;
	directory_delay(d, pause_ns - random_below(&d->directories->env->random, pause_ns / 2));
}

bool directory_may_send(const struct directory *d)
{
	return d->directories->ensemble->session.connected && d->directories->env->now_ns >= d->pause_until_ns &&
	       d->naming.state != NAMING_WAITS;
}

void directory_remember(struct directory *d, bool remembered)
{
	if (d->remembered == remembered)
		return;
	d->remembered = remembered;
	d->directories->remembered_count += remembered ? 1 : (size_t)-1;
}

void directory_verified(struct directory *d)
{
	d->verified_ns = d->directories->env->now_ns;
	if (!d->remembered)
		return;
	d->directories->env->stats.relisted_total++;
	directory_remember(d, false);
}

/* ---- what it asks ---- */

uint64_t directory_send(struct directory *d, enum effect_type type, struct operation_request *r)
{
	r->op.directory = d;
	r->list_bytes = d->list_bytes;
	d->operations++;
	return operation_send(d->directories->ensemble, type, r);
}

uint64_t directory_send_child(struct directory *d, enum effect_type type, struct operation_request *r, struct slice child)
{
	r->path = bytes_view(&d->path);
	r->child = child;
	return directory_send(d, type, r);
}

static uint64_t send(struct directory *d, enum effect_type type, struct operation op)
{
	struct operation_request r = {
		.op = op,
		.path = bytes_view(&d->path),
		.create = directory_lasts(d) ? ZK_PERSISTENT : ZK_CONTAINER,
	};

	return directory_send(d, type, &r);
}

static void ask(struct directory *d)
{
	d->state = DIRECTORY_ASKED;
	send(d, EFFECT_ZK_GET, (struct operation){ .kind = OPERATION_DIR_GET });
}

void directory_check(struct directory *d)
{
	if (d->state == DIRECTORY_UNKNOWN || d->state == DIRECTORY_MISMATCH)
		ask(d);
}

void directory_make(struct directory *d)
{
	struct bytes *data = operation_data(d->directories->ensemble);

	record_begin(data);
	bytes_format(data, "kind=%s\nflavour=%s\n", kind_word(d->kind), flavour_word(d->flavour));
	lasting_make(d);
	send(d, EFFECT_ZK_CREATE, (struct operation){ .kind = OPERATION_DIR_MAKE });
	ask(d);
}

static uint64_t send_list(struct directory *d, bool watch)
{
	struct operation op = { .kind = OPERATION_LIST, .watch = watch };

	d->list_op = send(d, EFFECT_ZK_LIST, op);
	return d->list_op;
}

void directory_list(struct directory *d, bool watch)
{
	d->wanted = true;
	d->wanted_watch |= watch;
	directory_list_wanted(d);
}

void directory_list_wanted(struct directory *d)
{
	uint64_t number;

	if (!d->wanted || !turn_may(d, TURN_JOIN))
		return;
	number = send_list(d, d->wanted_watch);
	if (d->wanted_watch)
		d->watch_op = number;
	directory_want_nothing(d);
}

void directory_want_nothing(struct directory *d)
{
	d->wanted = d->wanted_watch = false;
}

bool directory_is_listed(const struct directory *d)
{
	return d->wanted || operation_find(d->directories->ensemble, d->list_op);
}

static bool is_armed(const struct directory *d)
{
	return d->watch == WATCH_UNCONTENDED || d->watch == WATCH_CONTENDED;
}

bool directory_watches(const struct directory *d)
{
	return is_armed(d) || d->watch_op || d->wanted_watch;
}

void directory_arm(struct directory *d)
{
	if (!directory_watches(d))
		directory_list(d, true);
}

void directory_fail(struct directory *d, enum failed failed, enum error_code code, const char *sentence)
{
	if (d->facts & FACT_FAILED)
		return;
	d->facts |= FACT_FAILED;
	d->failure.failed = failed;
	d->failure.code = code;
	bytes_clear(&d->failure.sentence);
	bytes_text(&d->failure.sentence, sentence);
	bytes_char(&d->failure.sentence, '\0');
	directory_touch(d);
}

void directory_refused(struct directory *d, enum zk_code code, enum failed failed, const char *sentence)
{
	if (code == ZK_BUSY) {
		directory_retry(d);
		return;
	}
	directory_pause(d);
	directory_fail(d, failed, ERROR_UNAVAILABLE, sentence);
}

void directory_stay_exhausted(struct directory *d)
{
	d->exhausted_op = 0;
	directory_fail(d, FAILED_REQUESTS, ERROR_LIMIT,
		       "the sequence numbers of this lock's directory run out: it can be used again once nobody uses it");
}

void directory_exhaust(struct directory *d)
{
	d->exhausted = true;
	d->exhausted_op = 0; /* that list was sent before our last znode went */
	if (d->part)
		d->czxid = 0; /* its data are not read: the list that came with the join shows its czxid */
}

void directory_renew(struct directory *d)
{
	if (!d->exhausted_op && turn_may(d, TURN_JOIN))
		d->exhausted_op = send_list(d, false);
}

void directory_forget_watch(struct directory *d)
{
	d->watch = WATCH_NONE;
	d->watch_op = 0;
	d->wanted_watch = false;
	d->was_uncontended = false;
}

void directory_suspended(struct directory *d)
{
	bool quiet = d->watch == WATCH_UNCONTENDED;

	directory_forget_watch(d);
	directory_want_nothing(d);
	d->was_uncontended = quiet;
}

static void tell_mismatch(struct directory *d, struct slice data)
{
	struct bytes why = { 0 };

	flavour_say_mismatch(&why, d->kind, d->flavour, data);
	bytes_char(&why, '\0');
	directory_fail(d, FAILED_ALL, ERROR_MISMATCH, why.data);
	bytes_free(&why);
}

static void get_answered(struct directory *d, const struct event *event)
{
	enum zk_code code = event->zk_answered.code;

	d->state = DIRECTORY_UNKNOWN;
	if (code == ZK_OK) {
		d->czxid = event->zk_answered.stat.czxid;
		d->tells_kind = record_is_ours(event->zk_answered.data);
		d->state = flavour_fits(d->kind, d->flavour, event->zk_answered.data) ? DIRECTORY_FITS
										      : DIRECTORY_MISMATCH;
		d->unverified = d->state == DIRECTORY_MISMATCH;
		if (d->state == DIRECTORY_MISMATCH)
			tell_mismatch(d, event->zk_answered.data);
	} else if (code == ZK_NONODE) {
		d->unverified = false;
	} else if (code != ZK_UNKNOWN) {
		directory_refused(d, code, FAILED_ALL, "ZooKeeper refuses to read the lock's directory");
	}
}

static void make_answered(struct directory *d, const struct event *event)
{
	if (event->zk_answered.code != ZK_OK && event->zk_answered.code != ZK_UNKNOWN)
		lasting_gone(d);
	if (event->zk_answered.code == ZK_NONODE)
		presence_above(d->directories->ensemble, bytes_view(&d->path));
	else if (zk_refuses(event->zk_answered.code))
		directory_refused(d, event->zk_answered.code, FAILED_ALL, "ZooKeeper refuses to make the lock's directory");
}

void directory_delete(struct directory *d, enum operation_kind kind)
{
	send(d, EFFECT_ZK_DELETE, (struct operation){ .kind = kind });
}

static void went(struct directory *d, enum zk_code code)
{
	if (code == ZK_OK)
		lasting_removed(d);
	else if (code == ZK_NONODE)
		lasting_gone(d);
}

/* Whoever has joined meanwhile, or joins now, makes it again, and reads what it is then. */
static void remove_answered(struct directory *d, const struct event *event)
{
	enum zk_code code = event->zk_answered.code;

	d->refused = code != ZK_OK && code != ZK_NONODE;
	if (d->refused)
		return;
	d->directories->env->stats.directories_removed_total += code == ZK_OK;
	went(d, code);
	if (d->state != DIRECTORY_ASKED)
		d->state = DIRECTORY_UNKNOWN;
}

void directory_renewed(struct directory *d)
{
	d->exhausted = false;
	d->exhausted_op = 0;
	if (!d->part)
		d->state = DIRECTORY_UNKNOWN;
}

static void end_answered(struct directory *d, const struct event *event)
{
	went(d, event->zk_answered.code);
	if (event->zk_answered.code == ZK_OK || event->zk_answered.code == ZK_NONODE)
		directory_renewed(d);
	else if (event->zk_answered.code >= ZK_BUSY)
		d->exhausted_op = 0;
	else
		directory_stay_exhausted(d);
}

void directory_answered(const struct operation *op, const struct event *event)
{
	if (op->kind == OPERATION_DIR_GET)
		get_answered(op->directory, event);
	else if (op->kind == OPERATION_DIR_END)
		end_answered(op->directory, event);
	else if (op->kind == OPERATION_DIR_REMOVE)
		remove_answered(op->directory, event);
	else
		make_answered(op->directory, event);
}

/* A list under way sets the watch again: its answer is newer than the event of the older watch. */
void directory_changed(struct directory *d)
{
	if (is_armed(d))
		d->watch = d->watch_op ? WATCH_NONE : WATCH_FIRED;
}
