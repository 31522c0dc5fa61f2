/* SPDX-License-Identifier: Apache-2.0 */
#include "core/claim/directory.h"

#include <assert.h>

#include "base/container.h"
#include "base/mem.h"
#include "core/claim/directories.h"
#include "core/session/presence.h"
#include "core/znode/record.h"

/* A list or a read that ZooKeeper refused is tried again, not at once. */
static const int64_t REFUSED_PAUSE_NS = 1000000000;

void directory_init(struct directory *d, struct directories *all)
{
	d->directories = all;
	d->pause_until_ns = INT64_MIN;
	TAILQ_INIT(&d->slots);
	TAILQ_INIT(&d->leaving);
}

void directory_deinit(struct directory *d)
{
	struct directories *all = d->directories;

	if (d->touched)
		directory_untouch(d);
	turn_forget(d);
	if (all->turns.served == d)
		all->turns.served = NULL;
	map_remove(&all->paths, &d->path_node);
	bytes_free(&d->failure.sentence);
	bytes_free(&d->seen.by);
	bytes_free(&d->seen.data);
	bytes_free(&d->path);
}

void directory_add(struct directory *d)
{
	struct map *paths = &d->directories->paths;

	map_add(paths, &d->path_node, map_hash(paths, d->path.data, d->path.len));
}

struct directory *directory_find(const struct directories *all, struct slice path)
{
	struct map_node *node = map_first(&all->paths, map_hash(&all->paths, path.data, path.len));

	for (; node; node = map_next(node)) {
		struct directory *d = container_of(node, struct directory, path_node);

		if (slice_eq(bytes_view(&d->path), path))
			return d;
	}
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

void directory_pause(struct directory *d, int64_t pause_ns)
{
	d->pause_until_ns = d->directories->env->now_ns + pause_ns;
	directory_touch(d);
}

bool directory_may_send(const struct directory *d)
{
	return d->directories->ensemble->session.connected && d->directories->env->now_ns >= d->pause_until_ns;
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

uint64_t directory_send(struct directory *d, enum effect_type type, struct operation_request *r)
{
	r->op.directory = d;
	r->list_bytes = d->list_bytes;
	d->operations++;
	return operation_send(d->directories->ensemble, type, r);
}

static uint64_t send(struct directory *d, enum effect_type type, struct operation op, struct slice data)
{
	struct operation_request r = {
		.op = op,
		.path = bytes_view(&d->path),
		.data = data,
		/* kazoo remembers that a directory is there, and cannot do without it. */
		.create = d->flavour == FLAVOUR_KAZOO ? ZK_PERSISTENT : ZK_CONTAINER,
	};

	return directory_send(d, type, &r);
}

static void ask(struct directory *d)
{
	d->state = DIRECTORY_ASKED;
	send(d, EFFECT_ZK_GET, (struct operation){ .kind = OPERATION_DIR_GET }, (struct slice){ 0 });
}

void directory_check(struct directory *d)
{
	if (d->state == DIRECTORY_UNKNOWN || d->state == DIRECTORY_MISMATCH)
		ask(d);
}

void directory_make(struct directory *d)
{
	struct bytes data = { 0 };

	record_begin(&data);
	record_text(&data, "kind", kind_word(d->kind));
	record_text(&data, "flavour", flavour_word(d->flavour));
	send(d, EFFECT_ZK_CREATE, (struct operation){ .kind = OPERATION_DIR_MAKE }, bytes_view(&data));
	bytes_free(&data);
	ask(d);
}

static uint64_t send_list(struct directory *d, bool watch)
{
	struct operation op = { .kind = OPERATION_LIST, .watch = watch };

	d->list_op = send(d, EFFECT_ZK_LIST, op, (struct slice){ 0 });
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

bool directory_lists_after(const struct directory *d, uint64_t number)
{
	return d->wanted || d->list_op > number;
}

bool directory_watches(const struct directory *d)
{
	return d->watch == DIRECTORY_WATCH_ARMED || d->watch_op || d->wanted_watch;
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

void directory_stay_exhausted(struct directory *d)
{
	d->exhausted_op = 0;
<<<<<<< Updated upstream
	directory_fail(d, FAILED_REQUESTS, ERROR_LIMIT,
		       "this lock's sequence numbers run out: let its directory empty first");
=======
	request_fail_all(lock_of(d), ERROR_LIMIT,
			 "the sequence numbers of this lock's directory run out: it can be used again once nobody uses it");
>>>>>>> Stashed changes
}

void directory_exhaust(struct directory *d)
{
	d->exhausted = true;
	d->exhausted_op = 0; /* what was asked before our last znode went */
	if (d->part)
		d->czxid = 0; /* its data are not read: the list that came with the join tells */
}

void directory_renew(struct directory *d)
{
	if (!d->exhausted_op && turn_may(d, TURN_JOIN))
		d->exhausted_op = send_list(d, false);
}

void directory_list_anew(struct directory *d)
{
	directory_check(d);
	directory_list(d, false);
}

void directory_forget_watch(struct directory *d)
{
	d->watch = DIRECTORY_WATCH_NONE;
	d->watch_op = 0;
	d->wanted_watch = false;
	d->uncontended = d->was_uncontended = false;
}

void directory_suspended(struct directory *d)
{
	bool quiet = directory_is_uncontended(d);

	directory_forget_watch(d);
	directory_want_nothing(d);
	d->was_uncontended = quiet;
}

bool directory_is_uncontended(const struct directory *d)
{
	return d->watch == DIRECTORY_WATCH_ARMED && d->uncontended;
}

bool directory_is_contended(const struct directory *d)
{
	return d->watch == DIRECTORY_WATCH_ARMED && !d->uncontended;
}

bool directory_data_fits(enum kind kind, enum flavour flavour, struct slice data)
{
	if (!record_is_ours(data))
		return true;
	return slice_eq(record_get(data, "kind"), slice_of(kind_word(kind))) &&
	       slice_is(record_get(data, "flavour"), flavour_word(flavour));
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
	d->state = DIRECTORY_UNKNOWN;
	switch (event->zk_answered.code) {
	case ZK_OK:
		d->czxid = event->zk_answered.stat.czxid;
		d->state = directory_data_fits(d->kind, d->flavour, event->zk_answered.data) ? DIRECTORY_FITS
											     : DIRECTORY_MISMATCH;
		d->unverified = d->state == DIRECTORY_MISMATCH;
		if (d->state == DIRECTORY_MISMATCH)
			tell_mismatch(d, event->zk_answered.data);
		break;
	case ZK_NONODE:
		d->unverified = false;
		break;
	case ZK_UNKNOWN:
		break;
	case ZK_NODEEXISTS:
	case ZK_NOTEMPTY:
	case ZK_BADVERSION:
	case ZK_REFUSED:
		directory_pause(d, REFUSED_PAUSE_NS);
		directory_fail(d, FAILED_ALL, ERROR_UNAVAILABLE, "ZooKeeper refuses to read the lock's directory");
		break;
	}
}

static void make_answered(struct directory *d, const struct event *event)
{
	if (event->zk_answered.code == ZK_NONODE)
		presence_above(d->directories->ensemble, bytes_view(&d->path));
	else if (event->zk_answered.code == ZK_REFUSED)
		directory_fail(d, FAILED_ALL, ERROR_UNAVAILABLE, "ZooKeeper refuses to make the lock's directory");
}

void directory_end(struct directory *d)
{
	send(d, EFFECT_ZK_DELETE, (struct operation){ .kind = OPERATION_DIR_END }, (struct slice){ 0 });
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
	if (event->zk_answered.code == ZK_OK || event->zk_answered.code == ZK_NONODE)
		directory_renewed(d);
	else if (event->zk_answered.code == ZK_UNKNOWN)
		d->exhausted_op = 0;
	else
		directory_stay_exhausted(d);
}

<<<<<<< Updated upstream
void directory_answered(const struct operation *op, const struct event *event)
=======
/* Before its number is known: the name we asked for and a number behind it, nothing else. */
static bool carries_name(struct slice child, const struct claim *c)
{
	struct contender parsed;

	return child.len >= c->name_len + CONTENDER_DIGITS && child.len <= c->name_len + CONTENDER_DIGITS + 1 &&
	       memcmp(child.data, c->name, c->name_len) == 0 && contender_parse(child, c->directory->flavour, &parsed);
}

static bool is_own(struct slice child, const struct claim *c)
{
	return c->named ? slice_eq(child, slice_of(c->name)) : carries_name(child, c);
}

/* NULL: it is not there. */
static const struct slice *find_own(const struct claim *c, const struct event *event)
{
	for (size_t i = 0; i < event->zk_answered.count; i++)
		if (is_own(event->zk_answered.children[i], c))
			return &event->zk_answered.children[i];
	return NULL;
}

struct ahead {
	bool any, writers;
	struct contender nearest;
};

/* Those before the claim that keep it from being entitled. */
static struct ahead find_ahead(const struct claim *c, const struct event *event)
{
	struct contender self = { .name = slice_of(c->name), .seq = c->seq }, other;
	struct ahead ahead = { 0 };

	for (size_t i = 0; i < event->zk_answered.count; i++) {
		if (!contender_parse(event->zk_answered.children[i], c->directory->flavour, &other) ||
		    slice_eq(other.name, self.name))
			continue;
		if (!contender_before(&other, &self))
			continue;
		if (!mode_conflicts(c->mode, other.mode))
			continue;
		if (!ahead.any || contender_before(&ahead.nearest, &other))
			ahead.nearest = other;
		ahead.any = true;
		ahead.writers = ahead.writers || other.mode == MODE_EXCLUSIVE;
	}
	return ahead;
}

static void vanished(struct claim *c)
{
	struct directory *d = c->directory;
	struct directories *all = d->directories;
	size_t begin = effects_begin(all->env->out);

	all->env->stats.vanished_total++;
	bytes_text(&all->env->out->arena, "somebody deleted our znode ");
	claim_path(c, &all->env->out->arena);
	effects_log(all->env->out, EFFECT_LEVEL_WARNING, begin);
	if (c == d->claim)
		grant_lose_all(lock_of(d), LOSS_DELETED);
	claim_free(c);
}

static void examine_waiting(struct claim *c, const struct event *event)
{
	struct ahead ahead;

	if (c->directory->flavour == FLAVOUR_SLOTS) {
		semaphore_counted(c, event->zk_answered.count);
		return;
	}
	ahead = find_ahead(c, event);
	if (!ahead.any) {
		claim_held(c);
		return;
	}
	c->listed = true;
	c->readers_ahead = !ahead.writers;
	c->looks = 0;
	look_later(c);
	if (!slice_eq(bytes_view(&c->pred), ahead.nearest.name)) {
		claim_forget_pred(c); /* settling the lock watches the new one, if somebody still waits then */
		bytes_slice(&c->pred, ahead.nearest.name);
	}
	seen_listed(c, &ahead.nearest, event);
}

/* What a list says about one of our claims. A list sent before the claim's create says nothing. */
static void examine(struct claim *c, uint64_t number, bool fits, const struct event *event)
{
	const struct slice *own;

	if (c->join_op > number)
		return;
	own = find_own(c, event);
	switch (c->state) {
	case CLAIM_JOINING:
		break;
	case CLAIM_UNSURE:
		if (!own)
			claim_free(c);
		else if (!c->adopting && !c->directory->relist) /* which comes after the pause */
			claim_adopt(c, *own);
		break;
	case CLAIM_WAITING:
		if (!own)
			vanished(c);
		else if (fits)
			examine_waiting(c, event);
		break;
	case CLAIM_HELD:
		if (!own)
			vanished(c);
		break;
	case CLAIM_LEAVING:
		if (c->named)
			break;
		if (!own) {
			claim_free(c);
			break;
		}
		claim_found(c, *own);
		break;
	}
}

static bool is_known(const struct directory *d, struct slice child)
{
	const struct claim *c;

	if ((d->claim && is_own(child, d->claim)) || (d->next && is_own(child, d->next)))
		return true;
	TAILQ_FOREACH(c, &d->slots, link)
		if (is_own(child, c))
			return true;
	TAILQ_FOREACH(c, &d->leaving, link)
		if (is_own(child, c))
			return true;
	return false;
}

static bool only_ours(const struct directory *d, const struct event *event)
{
	for (size_t i = 0; i < event->zk_answered.count; i++)
		if (!is_known(d, event->zk_answered.children[i]))
			return false;
	return true;
}

/* Deleting a directory somebody has just joined fails, and harms nobody. */
static void examine_exhausted(struct directory *d, uint64_t number, const struct event *event)
{
	if (d->part && !d->czxid)
		d->czxid = event->zk_answered.stat.czxid;
	if (event->zk_answered.code == ZK_NONODE || event->zk_answered.stat.czxid != d->czxid)
		renewed(d);
	else if (number != d->exhausted_op)
		return;
	else if (event->zk_answered.count == 0)
		send(d, EFFECT_ZK_DELETE, (struct operation){ .kind = OPERATION_DIR_END }, (struct slice){ 0 });
	else if (only_ours(d, event))
		d->exhausted_op = 0; /* they are on their way out: to be asked again */
	else
		fail_exhausted(d);
}

static void report_unrecognized(struct directory *d, struct slice child)
{
	struct directories *all = d->directories;
	size_t begin;

	if (d->unrecognized_reported)
		return;
	d->unrecognized_reported = true;
	begin = effects_begin(all->env->out);
	bytes_text(&all->env->out->arena, "a child of no known kind in ");
	bytes_slice(&all->env->out->arena, bytes_view(&d->path));
	bytes_text(&all->env->out->arena, ": ");
	bytes_quote(&all->env->out->arena, child);
	effects_log(all->env->out, EFFECT_LEVEL_WARNING, begin);
}

enum directory_child directory_classify(struct directory_view view, struct slice child, enum mode *mode)
{
	struct contender other;

	if (contender_of_session(child, view.flavour, view.session))
		return view.directory && is_known(view.directory, child) ? DIRECTORY_CHILD_OURS
									 : DIRECTORY_CHILD_ORPHAN;
	if (!contender_parse(child, view.flavour, &other))
		return DIRECTORY_CHILD_UNRECOGNIZED;
	*mode = other.mode;
	return other.known ? DIRECTORY_CHILD_OTHER : DIRECTORY_CHILD_UNKNOWN;
}

/* Who conflicts with our claim, of other sessions. */
struct others {
	bool waiters, tries;
};

static void note_other(struct others *others, const struct directory *d, struct slice child)
{
	if (contender_tries(child, d->flavour))
		others->tries = true;
	else
		others->waiters = true;
}

/* Strays of ours are deleted, odd children reported. */
static struct others examine_others(struct directory *d, enum mode mode, const struct event *event)
{
	const struct directory_view view = { d->directories->ensemble->session.id, d->flavour, d };
	struct others others = { 0 };

	for (size_t i = 0; i < event->zk_answered.count; i++) {
		struct slice child = event->zk_answered.children[i];
		enum mode other = MODE_EXCLUSIVE;

		switch (directory_classify(view, child, &other)) {
		case DIRECTORY_CHILD_OURS:
			break;
		case DIRECTORY_CHILD_ORPHAN:
			claim_orphan(d, child);
			break;
		case DIRECTORY_CHILD_UNRECOGNIZED:
			report_unrecognized(d, child);
			break;
		case DIRECTORY_CHILD_UNKNOWN:
			report_unrecognized(d, child);
			others.waiters = others.waiters || mode_conflicts(mode, other);
			break;
		case DIRECTORY_CHILD_OTHER:
			if (mode_conflicts(mode, other))
				note_other(&others, d, child);
			break;
		}
	}
	return others;
}

/* That somebody waits is told by any list; that nobody does, only by one that came with the children watch. */
static void examine_rivals(struct directory *d, uint64_t number, struct others others)
{
	bool armed = d->watch_op == number, somebody = others.waiters;
	struct claim *c = d->claim;

	if (armed) {
		d->watch = DIRECTORY_WATCH_ARMED;
		d->watch_op = 0;
		d->uncontended = !somebody;
		d->contended_before = d->contended_before && somebody;
	}
	if (!c || c->state != CLAIM_HELD)
		return;
	if (armed || others.tries)
		seen_behind(c, others.tries);
	if (somebody) {
		c->rivals = true;
	} else if (armed) {
		c->rivals = c->own_watch = false; /* the children watch does for it now */
		c->contended = 0;
		c->contended_ns = 0;
	}
}

/* Of other software, whose directories say nothing: its permits stand below that child. */
static bool is_semaphores(const struct directory *d, const struct event *event)
{
	for (size_t i = 0; i < event->zk_answered.count; i++)
		if (slice_is(event->zk_answered.children[i], "leases"))
			return !d->part;
	return false;
}

static void listed(struct directory *d, uint64_t number, const struct event *event)
{
	struct claim *c, *after, *first = d->claim, *next = d->next;
	bool gone = event->zk_answered.code == ZK_NONODE;
	struct others others;

	directory_verified(d);
	/* A directory made anew may be of another kind: its data are read again before anything is granted. */
	if (!d->part && (gone || d->czxid != event->zk_answered.stat.czxid))
		d->state = d->state == DIRECTORY_ASKED ? d->state : DIRECTORY_UNKNOWN;
	if (is_semaphores(d, event)) {
		d->state = DIRECTORY_MISMATCH;
		d->unverified = true;
		request_fail_all(lock_of(d), ERROR_MISMATCH, "this name is in use as a semaphore, not as a lock");
	}
	if (d->exhausted)
		examine_exhausted(d, number, event);
	if (next)
		examine(next, number, d->state == DIRECTORY_FITS, event);
	if (first)
		examine(first, number, d->state == DIRECTORY_FITS, event);
	TAILQ_FOREACH_SAFE(c, &d->slots, link, after)
		examine(c, number, true, event);
	if (d->flavour == FLAVOUR_SLOTS)
		semaphore_listed(lock_of(d), event->zk_answered.count);
	TAILQ_FOREACH_SAFE(c, &d->leaving, link, after)
		examine(c, number, false, event);
	others = examine_others(d, d->claim ? d->claim->mode : MODE_EXCLUSIVE, event);
	examine_rivals(d, number, others);
	/* Also while they are being read, which somebody may have asked for after this list. */
	if (!gone && (d->state == DIRECTORY_UNKNOWN || d->state == DIRECTORY_ASKED) && d->claim)
		d->relist = true;
}

/* Its place in the queue, or whether there is a znode of it at all, nothing but a list can tell. */
static bool is_unlisted(const struct claim *c)
{
	return c->state == CLAIM_UNSURE || (c->state == CLAIM_WAITING && !c->listed) ||
	       (c->state == CLAIM_LEAVING && !c->named);
}

static bool has_unlisted(const struct directory *d)
{
	const struct claim *c;

	if ((d->claim && is_unlisted(d->claim)) || (d->next && is_unlisted(d->next)))
		return true;
	TAILQ_FOREACH(c, &d->slots, link)
		if (is_unlisted(c))
			return true;
	TAILQ_FOREACH(c, &d->leaving, link)
		if (is_unlisted(c))
			return true;
	return false;
}

static void list_refused(struct directory *d)
{
	directory_pause(d, REFUSED_PAUSE_NS);
	request_fail_all(d->part ? lock_of(d)->semaphore->mutex : lock_of(d), ERROR_UNAVAILABLE,
			 "ZooKeeper refuses to list the lock's directory");
	d->relist = d->relist || has_unlisted(d);
}

static void list_answered(struct directory *d, uint64_t number, const struct operation *op, const struct event *event)
{
	struct directories *all = d->directories;
	enum zk_code code = event->zk_answered.code;

	if (code != ZK_OK && code != ZK_NONODE) {
		if (op->watch)
			directory_forget_watch(d);
		d->exhausted_op = 0;
		if (code == ZK_REFUSED)
			list_refused(d);
		return;
	}
	if (!all->ensemble->session.proving) {
		directory_forget_watch(d);
		d->exhausted_op = 0;
		turn_wait(d, TURN_RECOVER);
		return;
	}
	listed(d, number, event);
	if (op->watch && code == ZK_NONODE)
		directory_forget_watch(d);
}

void directory_answered(const struct operation *op, uint64_t number, const struct event *event)
>>>>>>> Stashed changes
{
	if (op->kind == OPERATION_DIR_GET)
		get_answered(op->directory, event);
	else if (op->kind == OPERATION_DIR_END)
		end_answered(op->directory, event);
	else
		make_answered(op->directory, event);
}

/* A list under way asks for the watch anew: its answer is younger than the event of an older watch. */
void directory_changed(struct directory *d)
{
	if (d->watch == DIRECTORY_WATCH_ARMED)
		d->watch = d->watch_op ? DIRECTORY_WATCH_NONE : DIRECTORY_WATCH_FIRED;
}
