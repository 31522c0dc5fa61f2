/* SPDX-License-Identifier: Apache-2.0 */
/* What a claim does when ZooKeeper answers an operation, or a watch fires. */
#include <assert.h>

#include "core/znode/holder.h"
#include "core/claim/claim_steps.h"
#include "core/claim/directories.h"

enum { JOIN_TRIES = 8 }; /* NONODE this often in a row: something deletes the directory as fast as we make it */

/* The whole name gives the order among the hosts; the znode's czxid is the base of the tokens. */
static void set_seq(struct claim *c, const struct event *event)
{
	struct contender self;
	bool numbered = contender_parse(slice_of(c->name), c->directory->flavour, &self);

	assert(numbered);
	names_forget(c->directory); /* somebody else has made it */
	c->named = true;
	c->seq = self.seq;
	c->czxid = event->zk_answered.stat.czxid;
}

/* Its tokens would not be above those of before. */
static void go_back(struct claim *c)
{
	struct directory *d = c->directory;
	bool first = c == d->claim;

	claim_leave(c);
	directory_pause(d);
	if (first || d->flavour == FLAVOUR_SLOTS)
		directory_fail(
			d, FAILED_JOINER, ERROR_UNAVAILABLE,
			"tokens would repeat, because an older state of ZooKeeper was restored; the daemon's log says "
			"what to do");
}

static void joined(struct claim *c, const struct event *event)
{
	struct slice path = event->zk_answered.path;
	size_t dir = c->directory->path.len + 1;

	assert(path.len > dir);
	claim_set_name(c, (struct slice){ path.data + dir, path.len - dir });
	set_seq(c, event);
	if (c->state == CLAIM_LEAVING) {
		claim_send_delete(c);
		return;
	}
	c->state = CLAIM_WAITING;
	claim_note(c, FLIGHT_claim_waiting);
	if (c->seq >= CONTENDER_WRAP_NEAR && c->directory->flavour != FLAVOUR_SLOTS) { /* slots are only counted */
		struct directory *d = c->directory;

		claim_leave(c);
		directory_exhaust(d);
	} else if (!past_allows(c->directory->directories->ensemble, c->czxid)) {
		go_back(c);
	}
}

/* There will be no znode. The requests that wait for it fail, unless they wait for another claim. */
static void give_up(struct claim *c, const char *why)
{
	struct directory *d = c->directory;
	bool first = c == d->claim;

	claim_free(c);
	if (first || d->flavour == FLAVOUR_SLOTS)
		directory_fail(d, FAILED_JOINER, ERROR_UNAVAILABLE, why);
}

static void join_again(struct claim *c)
{
	struct directory *d = c->directory;

	if (c->state == CLAIM_LEAVING) {
		claim_free(c);
	} else if (d->part) {
		claim_free(c);
		d->facts |= FACT_MISSING;
	} else if (d->directories->env->now_ns < d->pause_until_ns) {
		claim_free(c); /* it was too busy to make the directory: all of it is done again after the pause */
	} else if (++c->join_tries > JOIN_TRIES) {
		give_up(c, "the lock's directory cannot be made");
	} else if (!names_take(d)) {
		claim_free(c);
	} else {
		d->directories->turns.breath = true;
		directory_make(d);
		claim_send_join(c);
		d->directories->turns.breath = false;
	}
}

static void join_answered(struct claim *c, const struct event *event)
{
	enum zk_code code = event->zk_answered.code;

	if (code == ZK_OK) {
		joined(c, event);
	} else if (code == ZK_NONODE) {
		join_again(c);
	} else if (code == ZK_BUSY) {
		directory_retry(c->directory);
		claim_free(c); /* the request makes another one after the pause */
	} else if (code != ZK_UNKNOWN) {
		directory_pause(c->directory);
		give_up(c, "ZooKeeper refuses to create the znode");
	} else if (c->state == CLAIM_JOINING) {
		c->state = CLAIM_UNSURE;
		claim_note(c, FLIGHT_claim_unsure);
	}
}

static void pred_answered(struct claim *c, const struct event *event)
{
	enum zk_code code = event->zk_answered.code;

	/* A list may have shown another predecessor since, or none: the end of this one does not make the claim first. */
	if (c->state != CLAIM_WAITING || event->zk_answered.op != c->pred_op)
		return;
	if (code == ZK_NONODE) {
		claim_pred_gone(c);
	} else if (code == ZK_OK) {
		if (!c->directory->tells_kind)
			c->other_kind = holder_other_kind(c->directory->kind, event->zk_answered.data);
		if (c->pred_watch)
			seen_read(c, event->zk_answered.data);
	} else if (code != ZK_UNKNOWN) {
		/* No watch was set, so the directory is listed instead, after a pause each time. */
		c->pred_watch = false;
		c->directory->relist = true;
		directory_pause(c->directory);
	}
}

/* The znode that was read belongs to the present session. */
static bool is_of_session(const struct claim *c, const struct event *event)
{
	return event->zk_answered.code == ZK_OK &&
	       event->zk_answered.stat.owner == c->directory->directories->ensemble->session.id;
}

/* It is the one that the claim made. */
static bool is_same(const struct claim *c, const struct event *event)
{
	return is_of_session(c, event) && event->zk_answered.stat.czxid == c->czxid;
}

static void own_answered(struct claim *c, const struct event *event)
{
	enum zk_code code = event->zk_answered.code;

	if ((c->state != CLAIM_HELD && c->state != CLAIM_WAITING) || code == ZK_UNKNOWN)
		return;
	if (code == ZK_BUSY) {
		c->own_watch = CLAIM_UNSET; /* settling the lock sets it after the pause */
		directory_retry(c->directory);
		return;
	}
	if (is_same(c, event)) {
		if (c->own_watch == CLAIM_ASKED)
			c->own_watch = CLAIM_STANDS;
		if (claim_is_held_alone(c->directory))
			directory_verified(c->directory);
	} else if (c->state == CLAIM_HELD || code != ZK_REFUSED) { /* if it waits, a list decides as without the watch */
		directory_list(c->directory, false);
	}
}

/* A znode is ours only if our present session owns it and its uuid belongs to a claim that was never let go. */
static void adopt_answered(struct claim *c, const struct event *event)
{
	if ((c->state != CLAIM_UNSURE && !c->salvaged) || event->zk_answered.code == ZK_UNKNOWN)
		return;
	c->adopting = false;
	if (event->zk_answered.code >= ZK_REFUSED) { /* it may be ours: the read is repeated after a pause */
		c->directory->relist = true;
		directory_pause(c->directory);
		return;
	}
	if (c->salvaged) {
		c->salvaged = false;
		if (!is_same(c, event))
			claim_vanished(c);
		return;
	}
	if (!is_of_session(c, event)) {
		claim_free(c);
		return;
	}
	set_seq(c, event);
	c->state = CLAIM_WAITING;
	c->directory->directories->env->stats.adopted_total++;
	if (!past_allows(c->directory->directories->ensemble, c->czxid))
		go_back(c);
}

static void leave_answered(struct claim *c, const struct event *event)
{
	enum zk_code code = event->zk_answered.code;
	uint64_t deleted = c->leave_op;

	c->leave_op = 0;
	if (code == ZK_OK || code == ZK_NONODE) {
		claim_follow_all(c, deleted);
		claim_free(c);
	} else if (code != ZK_UNKNOWN) {
		c->spent = false;
		directory_pause(c->directory);
	}
}

void claim_watched(struct claim *c, enum zk_watch type, struct slice child)
{
	if (c->state == CLAIM_LEAVING)
		return;
	if (c->named && slice_eq(child, slice_of(c->name))) {
		c->own_watch = CLAIM_UNSET; /* used up; settling the lock sets it again */
		if (type == ZK_WATCH_DELETED)
			directory_list(c->directory, false);
	} else if (c->state == CLAIM_WAITING && c->pred.len && slice_eq(child, bytes_view(&c->pred))) {
		if (type == ZK_WATCH_DELETED)
			claim_pred_gone(c);
		else
			c->pred_watch = false; /* used up; settling the lock sets it again */
	} else {
		second_watched(c, type, child);
	}
}

static void holder_answered(struct claim *c, const struct event *event)
{
	if (event->zk_answered.code != ZK_BUSY)
		return; /* the watch shows a deletion */
	c->holder_client = 0;
	directory_retry(c->directory);
}

void claim_answered(struct claim *c, const struct operation *op, const struct event *event)
{
	static void (*const answered[OPERATION_KIND_COUNT])(struct claim * c, const struct event *event) = {
		[OPERATION_JOIN] = join_answered,     [OPERATION_WATCH_PRED] = pred_answered,
		[OPERATION_WATCH_OWN] = own_answered, [OPERATION_WATCH_AHEAD] = second_answered,
		[OPERATION_ADOPT] = adopt_answered,
		[OPERATION_LEAVE] = leave_answered,   [OPERATION_HOLDER] = holder_answered,
	};

	if (c && answered[op->kind])
		answered[op->kind](c, event);
}
