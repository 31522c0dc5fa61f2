/* SPDX-License-Identifier: Apache-2.0 */
#include "core/claim/listing.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "core/claim/directories.h"

/* ---- which children are znodes of our claims ---- */

/*
 * A semaphore may have thousands of both, so the children that have names of the present session are put in order,
 * and looked for there. For the answer of a list, and as long as that.
 */
struct own {
	const struct slice *list;      /* the children as ZooKeeper listed them; borrowed */
	const struct slice **children; /* those of the present session, by name; NULL: a child is not looked for so */
	size_t count;
	bool *known;                   /* by place in the list: a claim has it */
};

static bool carries_name(struct slice child, const struct claim *c)
{
	struct contender parsed;

	return child.len >= c->name_len + CONTENDER_DIGITS && child.len <= c->name_len + CONTENDER_DIGITS + 1 &&
	       memcmp(child.data, c->name, c->name_len) == 0 && contender_parse(child, c->directory->flavour, &parsed);
}

/* The child has the claim's name. Before its number is known: that name and a number behind it, nothing else. */
static bool own_is(struct slice child, const struct claim *c)
{
	return c->named ? slice_eq(child, slice_of(c->name)) : carries_name(child, c);
}

static int by_name(const void *a, const void *b)
{
	return slice_order(**(const struct slice *const *)a, **(const struct slice *const *)b);
}

static struct own own_begin(const struct directory *d, const struct event *event)
{
	size_t count = event->zk_answered.count;
	struct own o = { .list = event->zk_answered.children };

	o.children = mem_new_array(count + 1, sizeof(*o.children));
	o.known = mem_new_array(count + 1, sizeof(*o.known));
	for (size_t i = 0; i < count; i++)
		if (directory_is_ours(d, o.list[i]))
			o.children[o.count++] = &o.list[i];
	qsort(o.children, o.count, sizeof(*o.children), by_name);
	return o;
}

static void own_end(struct own *o)
{
	mem_free(o->children);
	mem_free(o->known);
}

/* The place of the first that is not before the name, in the order of names: that name, or what begins with it. */
static size_t place(const struct own *o, struct slice name)
{
	size_t low = 0, high = o->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (slice_order(*o->children[middle], name) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* The claim's znode; NULL: it is not in the list. */
static const struct slice *own_find(const struct own *o, const struct claim *c)
{
	size_t at = place(o, slice_of(c->name));

	return at < o->count && own_is(*o->children[at], c) ? o->children[at] : NULL;
}

/* Notes which children are znodes of the claims that the directory has now. */
static void own_note(struct own *o, const struct directory *d)
{
	const struct claim *c;

	CLAIM_FOREACH(c, d)
		for (size_t i = place(o, slice_of(c->name)); i < o->count && own_is(*o->children[i], c); i++)
			o->known[o->children[i] - o->list] = true;
}

/* NULL: the claim's znode is not in the list. A lock has few claims: it is not worth an order. */
static const struct slice *find_own(const struct claim *c, const struct own *own, const struct event *event)
{
	if (own->children)
		return own_find(own, c);
	for (size_t i = 0; i < event->zk_answered.count; i++)
		if (own_is(event->zk_answered.children[i], c))
			return &event->zk_answered.children[i];
	return NULL;
}

/* ---- what a list shows of a claim ---- */

struct ahead {
	bool any, readers, writers;
	struct contender nearest, farther; /* farther: the one before the nearest; without a name: there is none */
	size_t others; /* others: those that no claim of the directory knows */
};

static bool is_known(const struct directory *d, struct slice child)
{
	const struct claim *c;

	CLAIM_FOREACH(c, d)
		if (own_is(child, c))
			return true;
	return false;
}

static void note_ahead(struct ahead *ahead, const struct contender *other)
{
	if (!ahead->any || contender_before(&ahead->nearest, other)) {
		ahead->farther = ahead->nearest;
		ahead->nearest = *other;
	} else if (!ahead->farther.name.len || contender_before(&ahead->farther, other)) {
		ahead->farther = *other;
	}
}

/* The contenders before the claim that keep it from being entitled. */
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
		note_ahead(&ahead, &other);
		ahead.any = true;
		ahead.others += !is_known(c->directory, other.name);
		ahead.writers = ahead.writers || other.mode == MODE_EXCLUSIVE;
		ahead.readers = ahead.readers || other.mode == MODE_SHARED;
	}
	return ahead;
}

static void examine_waiting(struct claim *c, const struct event *event)
{
	struct ahead ahead;

	if (c->directory->flavour == FLAVOUR_SLOTS) {
		c->counted = true;
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
		claim_forget_pred(c); /* settling the lock watches the new one if somebody still waits */
		bytes_slice(&c->pred, ahead.nearest.name);
	}
	if (directory_is_ours(c->directory, ahead.farther.name))
		ahead.farther.name = (struct slice){ 0 };
	claim_second_listed(c, ahead.others, !ahead.readers, ahead.farther.name);
	sighting_listed(c, &ahead.nearest, event);
}

/* Takes from a list what it shows of one of our claims. A list sent before the claim's create shows nothing. */
static void examine(struct claim *c, uint64_t number, bool fits, const struct own *all, const struct event *event)
{
	const struct slice *own;

	if (c->join_op > number || c->state == CLAIM_JOINING || (c->state == CLAIM_LEAVING && c->named))
		return;
	own = find_own(c, all, event);
	if (!own && (c->state == CLAIM_WAITING || c->state == CLAIM_HELD))
		claim_vanished(c);
	else if (!own)
		claim_free(c);
	else if (c->state == CLAIM_LEAVING)
		claim_found(c, *own);
	else if (c->state == CLAIM_WAITING && fits)
		examine_waiting(c, event);
	else if ((c->state == CLAIM_UNSURE || c->salvaged) && !c->adopting && !c->directory->relist)
		claim_adopt(c, *own); /* if it is refused, the list after the pause does it again */
}

static bool only_ours(const struct directory *d, const struct event *event)
{
	for (size_t i = 0; i < event->zk_answered.count; i++)
		if (!is_known(d, event->zk_answered.children[i]))
			return false;
	return true;
}

/* The delete of a directory that somebody has just joined fails, and harms nobody. */
static void examine_exhausted(struct directory *d, uint64_t number, const struct event *event)
{
	if (d->part && !d->czxid)
		d->czxid = event->zk_answered.stat.czxid;
	if (event->zk_answered.code == ZK_NONODE || event->zk_answered.stat.czxid != d->czxid)
		directory_renewed(d);
	else if (number != d->exhausted_op)
		return;
	else if (event->zk_answered.count == 0)
		directory_delete(d, OPERATION_DIR_END);
	else if (only_ours(d, event))
		d->exhausted_op = 0; /* ours are being deleted: it is listed again */
	else
		directory_stay_exhausted(d);
}

static void report_unrecognized(struct directory *d, struct slice child)
{
	struct directories *all = d->directories;
	struct slice shown = contender_shown(child);

	if (d->unrecognized_reported)
		return;
	d->unrecognized_reported = true;
	effects_say(all->env->out, EFFECT_LEVEL_WARNING, znode_unknown,
		    EFFECT_FIELDS("path=%v znode=%v", bytes_view(&d->path), shown),
		    "a child of no known kind in %s: %n", bytes_view(&d->path), shown);
}

enum child listing_classify(struct listing_view view, struct slice child, enum mode *mode)
{
	struct contender other;

	if (contender_of_session(child, view.flavour, view.session))
		return view.directory && is_known(view.directory, child) ? CHILD_OURS : CHILD_STRAY;
	if (!contender_parse(child, view.flavour, &other))
		return CHILD_UNRECOGNIZED;
	*mode = other.mode;
	return other.known ? CHILD_OTHER : CHILD_UNKNOWN;
}

/* Contenders of other sessions that conflict with our claim. */
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

/* Deletes our orphans and reports unrecognized children. */
static struct others examine_others(struct directory *d, enum mode mode, const struct own *own, const struct event *event)
{
	const struct listing_view view = { d->directories->ensemble->session.id, d->flavour, own->known ? NULL : d };
	struct others others = { 0 };

	for (size_t i = 0; i < event->zk_answered.count; i++) {
		struct slice child = event->zk_answered.children[i];
		enum mode other = MODE_EXCLUSIVE;

		switch (listing_classify(view, child, &other)) {
		case CHILD_OURS:
			break;
		case CHILD_STRAY:
			if (!own->known || !own->known[i])
				claim_stray(d, child);
			break;
		case CHILD_UNRECOGNIZED:
			report_unrecognized(d, child);
			break;
		case CHILD_UNKNOWN:
			report_unrecognized(d, child);
			others.waiters = others.waiters || mode_conflicts(mode, other);
			break;
		case CHILD_OTHER:
			if (mode_conflicts(mode, other))
				note_other(&others, d, child);
			break;
		}
	}
	return others;
}

/* Any list shows that somebody waits; only a list with the children watch shows that nobody does. */
static void examine_rivals(struct directory *d, uint64_t number, struct others others)
{
	bool armed = d->watch_op == number, somebody = others.waiters;
	struct claim *c = d->claim;

	if (armed) {
		d->watch = somebody ? WATCH_CONTENDED : WATCH_UNCONTENDED;
		d->watch_op = 0;
		d->contended_before = d->contended_before && somebody;
	}
	if (!c || c->state != CLAIM_HELD)
		return;
	if (armed || others.tries) {
		c->tried = others.tries;
		c->looked_ns = d->directories->env->now_ns;
	}
	if (somebody) {
		c->rivals = true;
	} else if (armed) {
		c->rivals = false;
		c->own_watch = CLAIM_UNSET; /* the children watch takes its place */
		c->contended = 0;
		c->contended_ns = 0;
	}
}

/* Other software's directories have no data, but a semaphore of theirs has its permits below the child `leases`. */
static bool is_semaphores(const struct directory *d, const struct event *event)
{
	for (size_t i = 0; i < event->zk_answered.count && !d->part; i++)
		if (slice_eq(event->zk_answered.children[i], SLICE("leases")))
			return true;
	return false;
}

static void listed(struct directory *d, uint64_t number, const struct event *event)
{
	struct claim *c, *after, *first = d->claim, *next = d->next;
	bool gone = event->zk_answered.code == ZK_NONODE;
	struct others others;
	struct own own = { 0 };

	directory_verified(d);
	/* A directory that was made again may be of another kind: its data are read before anything is granted. */
	if (!d->part && (gone || d->czxid != event->zk_answered.stat.czxid))
		d->state = d->state == DIRECTORY_ASKED ? d->state : DIRECTORY_UNKNOWN;
	if (is_semaphores(d, event)) {
		d->state = DIRECTORY_MISMATCH;
		d->unverified = true;
		directory_fail(d, FAILED_REQUESTS, ERROR_MISMATCH, "this name is in use as a semaphore, not as a lock");
	}
	if (d->exhausted)
		examine_exhausted(d, number, event);
	if (d->flavour == FLAVOUR_SLOTS)
		own = own_begin(d, event);
	if (next)
		examine(next, number, d->state == DIRECTORY_FITS, &own, event);
	if (first)
		examine(first, number, d->state == DIRECTORY_FITS, &own, event);
	TAILQ_FOREACH_SAFE(c, &d->slots, link, after)
		examine(c, number, true, &own, event);
	if (d->flavour == FLAVOUR_SLOTS) {
		d->facts |= FACT_COUNTED;
		d->children = event->zk_answered.count;
	}
	TAILQ_FOREACH_SAFE(c, &d->leaving, link, after)
		examine(c, number, false, &own, event);
	if (own.known)
		own_note(&own, d);
	others = examine_others(d, d->claim ? d->claim->mode : MODE_EXCLUSIVE, &own, event);
	own_end(&own);
	examine_rivals(d, number, others);
	/* This holds while the data are being read, too: that read may have been sent after this list. */
	if (!gone && (d->state == DIRECTORY_UNKNOWN || d->state == DIRECTORY_ASKED) && d->claim)
		d->relist = true;
}

/* Only a list can show the claim's place in the queue, or whether it has a znode at all, and which. */
static bool is_unlisted(const struct claim *c)
{
	return c->state == CLAIM_UNSURE || c->salvaged || (c->state == CLAIM_WAITING && !c->pred.len) ||
	       (c->state == CLAIM_LEAVING && !c->named);
}

/* `all`: a list was to show something of each claim that has or wants a grant. */
static bool has_unlisted(const struct directory *d, bool all)
{
	const struct claim *c;

	CLAIM_FOREACH(c, d)
		if (is_unlisted(c) || (all && (c->state == CLAIM_WAITING || c->state == CLAIM_HELD)))
			return true;
	return false;
}

/* Whoever needs the watch lists with it again; what else the list was to show is not asked otherwise. */
static void list_refused(struct directory *d, bool watch, enum zk_code code)
{
	directory_refused(d, code, FAILED_REQUESTS, "ZooKeeper refuses to list the lock's directory");
	d->relist = d->relist || has_unlisted(d, !watch);
}

void listing_answered(const struct operation *op, const struct event *event)
{
	struct directory *d = op->directory;
	enum zk_code code = event->zk_answered.code;
	bool watch = d->watch_op == event->zk_answered.op; /* and no list with watch was sent after it */

	if (code != ZK_OK && code != ZK_NONODE) {
		if (watch)
			directory_forget_watch(d);
		d->exhausted_op = 0;
		if (code != ZK_UNKNOWN)
			list_refused(d, op->watch, code);
		return;
	}
	if (!d->directories->ensemble->session.proving) {
		directory_forget_watch(d);
		d->exhausted_op = 0;
		turn_wait(d, TURN_RECOVER);
		return;
	}
	listed(d, event->zk_answered.op, event);
	if (op->watch && code == ZK_NONODE)
		directory_forget_watch(d);
}

/* ---- the look at a waiting claim ---- */

static const int64_t LONG_WAIT_NS = 30000000000;

void look_later(struct claim *c)
{
	struct directories *all = c->directory->directories;

	c->look_ns = all->env->now_ns + LONG_WAIT_NS - random_below(&all->env->random, LONG_WAIT_NS / 3);
}

static bool must_list(const struct claim *c, bool fits)
{
	const struct directory *d = c->directory;

	if (c->looks + 1 >= LOOKS_MAX || d->part || d->state != DIRECTORY_FITS)
		return true;
	return !c->pred.len || directory_is_ours(d, bytes_view(&c->pred)) || !fits;
}

static void list(struct claim *c)
{
	c->looks = 0;
	directory_list(c->directory, false);
}

bool look_continue(struct claim *c, bool fits)
{
	if (!c->listed || c->directory->directories->env->now_ns < c->look_ns || !turn_may(c->directory, TURN_LOOK))
		return false;
	look_later(c);
	if (must_list(c, fits)) {
		list(c);
		return true;
	}
	c->looks++;
	claim_read(c, OPERATION_LOOK_OWN, slice_of(c->name));
	claim_read(c, OPERATION_LOOK_PRED, bytes_view(&c->pred));
	return false;
}

static bool is_as_it_was(const struct claim *c, const struct operation *op, const struct event *event)
{
	int64_t session = c->directory->directories->ensemble->session.id;

	if (event->zk_answered.code != ZK_OK)
		return false;
	return op->kind == OPERATION_LOOK_PRED ||
	       (event->zk_answered.stat.owner == session && event->zk_answered.stat.czxid == c->czxid);
}

void look_answered(struct claim *c, const struct operation *op, const struct event *event)
{
	if (c && c->state == CLAIM_WAITING && event->zk_answered.code < ZK_BUSY && !is_as_it_was(c, op, event))
		list(c);
}
