/* SPDX-License-Identifier: Apache-2.0 */
#include "core/claim/claim.h"

#include <assert.h>

#include "base/mem.h"
#include "core/claim/charge.h"
#include "core/claim/claim_ledger.h"
#include "core/claim/directories.h"
#include "core/znode/holder.h"
#include "core/znode/record.h"

enum { JOIN_TRIES = 8 }; /* NONODE this often in a row: something deletes the directory as fast as we make it */

/* ---- the claim that is second in line ---- */

/*
 * WAITING: its predecessor is gone, and it is first now. The answers to the deletes tell when the host's own earlier znodes
 * are gone.
 */
static bool second_is_first(const struct claim *c)
{
	const struct directory *d = c->directory;

	return c->second.before == 1 && c->own_watch == CLAIM_STANDS && c == d->claim && TAILQ_EMPTY(&d->leaving);
}

void claim_second_listed(struct claim *c, size_t others, bool writers, struct slice ahead)
{
	struct second *s = &c->second;

	s->before = directory_is_ours(c->directory, bytes_view(&c->pred)) || others > UINT8_MAX ? 0 : (uint8_t)others;
	s->writers = writers;
	if (slice_eq(bytes_view(&s->ahead), ahead))
		return;
	bytes_set(&s->ahead, ahead);
	s->watched = false;
}

/* A try has gone before that pays, a semaphore is listed in any case, and a full session needs its room for others. */
static bool pays(const struct claim *c)
{
	return !c->tries && !c->directory->part && charge_fits_own(c);
}

/* WAITING: its own znode has to be watched, and is not watched yet. */
static bool second_wants_own(const struct claim *c)
{
	return c->own_watch == CLAIM_UNSET && !directory_is_ours(c->directory, bytes_view(&c->pred)) && pays(c);
}

/* WAITING: the znode before its predecessor has to be watched, and is not watched yet. */
static bool second_wants_ahead(const struct claim *c)
{
	const struct second *s = &c->second;

	return s->before != 1 && s->ahead.len && !s->watched && pays(c);
}

/* It is no longer known which contenders are before the claim. */
static void second_forget(struct claim *c)
{
	c->second.before = 0;
	c->second.watched = false;
	bytes_clear(&c->second.ahead);
}

static void list(struct claim *c)
{
	second_forget(c);
	if (!directory_is_listed(c->directory))
		directory_list(c->directory, false);
}

/* If there were two, its predecessor is left, and no list is needed to know that. */
static void ahead_deleted(struct claim *c)
{
	struct second *s = &c->second;

	if (s->before != 2 || !s->writers) {
		list(c);
		return;
	}
	bytes_clear(&s->ahead);
	s->watched = false;
	s->before = 1;
	c->contested = false;
}

/* The watched znode of that name was deleted or written; the answer of WATCH_AHEAD. */
static void second_watched(struct claim *c, enum zk_watch type, struct slice child)
{
	struct second *s = &c->second;

	if (c->state != CLAIM_WAITING || !s->ahead.len || !slice_eq(child, bytes_view(&s->ahead)))
		return;
	if (type == ZK_WATCH_DELETED)
		ahead_deleted(c);
	else
		s->watched = false; /* the event used the watch up; settling the lock sets it again */
}

/* The event may be about a former predecessor: a list shows which contenders are left. */
static void second_answered(struct claim *c, const struct event *event)
{
	if (c->state == CLAIM_WAITING && c->second.watched && event->zk_answered.code == ZK_NONODE)
		list(c);
}

/* ---- claims ---- */

const char *claim_state_word(enum claim_state state)
{
	static const char *const words[] = {
		[CLAIM_JOINING] = "joining", [CLAIM_WAITING] = "waiting", [CLAIM_HELD] = "held",
		[CLAIM_UNSURE] = "unsure",   [CLAIM_LEAVING] = "leaving",
	};

	return words[state];
}

static void set_name(struct claim *c, struct slice name)
{
	assert(name.len < CONTENDER_NAME_MAX);
	memcpy(c->name, name.data, name.len);
	c->name[name.len] = '\0';
}

static uint64_t send(struct claim *c, enum effect_type type, enum operation_kind kind)
{
	struct operation_request r = {
		.op = { .kind = kind, .claim = c->number },
		.create = ZK_EPHEMERAL_SEQUENTIAL,
	};

	return directory_send_child(c->directory, type, &r, slice_of(c->name));
}

/*
 * The claim is queued behind a held one that nobody is known to wait for, or for a reader that may yet join the
 * holders. Its create will fire the watch that shows this.
 */
static bool is_next(const struct claim *c)
{
	const struct claim *first = c->directory->claim;

	return first && first != c && first->state == CLAIM_HELD && (!first->rivals || c->watches);
}

/* For the flight recorder. */
static void note(const struct claim *c, enum flight_kind kind)
{
	env_note(c->directory->directories->env, kind, (int64_t)c->number, 0, bytes_view(&c->directory->path));
}

/* Sends the create, and the list of the queue. */
static void send_join(struct claim *c)
{
	struct directories *all = c->directory->directories;
	struct bytes name = { 0 };

	c->state = CLAIM_JOINING;
	note(c, FLIGHT_claim_joining);
	if (!c->join_tries)
		c->held_ns = all->env->now_ns;
	c->nonce = ++all->last_nonce;
	ledger_number(all->env->ledger, CEILING_CLAIM, c->number);
	ledger_number(all->env->ledger, CEILING_NONCE, c->nonce);
	if (c->tries)
		c->nonce |= CONTENDER_TRY;
	contender_name(&name, all->ensemble->session.id, c->nonce, c->directory->flavour, c->mode);
	set_name(c, bytes_view(&name));
	c->name_len = name.len;
	holder_begin(operation_data(all->ensemble), all->env->conf->host, c->directory->kind);
	c->join_op = send(c, EFFECT_ZK_CREATE, OPERATION_JOIN);
	if (c->directory->flavour != FLAVOUR_SLOTS) /* there several are made, and then listed once */
		directory_list(c->directory, is_next(c));
	bytes_free(&name);
}

static inline struct claim *make(struct directory *d, enum mode mode)
{
	struct directories *all = d->directories;
	struct claim *c = mem_new_spared(&all->spare_claim, offsetof(struct claim, join_op), sizeof(*c));

	c->directory = d;
	c->mode = mode;
	c->number = ++all->last_claim;
	d->claim_count++;
	all->claim_count++;
	if (!all->env->conf->standalone)
		charge_force(&c->path, d->payer, POOL_PATHS, charge_path(d));
	return c;
}

struct claim *claim_new(struct directory *d, enum mode mode)
{
	return make(d, mode);
}

void claim_release(struct directory *d)
{
	struct claim *c;

	TAILQ_FOREACH(c, &d->leaving, link) {
		if (!c->withheld)
			continue;
		c->withheld = false;
		claim_ledger_remove(c);
		claim_send_delete(c);
	}
}

/* Standalone: the claim is held at once; its number is the base of its tokens. */
static struct claim *join_locally(struct directory *d, enum mode mode)
{
	struct directories *all = d->directories;
	struct claim *c = make(d, mode);

	c->state = CLAIM_HELD;
	c->czxid = all->token_next++;
	all->env->stats.claims_total++;
	return c;
}

/* Kept apart from claim_join(), which then needs no room for what is sent. */
static __attribute__((noinline)) struct claim *join_others(struct directory *d, enum mode mode, bool tries,
							   bool watches)
{
	struct directories *all = d->directories;
	struct claim *c;

	if (charge_refuses(d, 1))
		return NULL;
	directory_ledger_note(d);
	all->turns.breath = true;
	claim_release(d);
	TAILQ_FOREACH(c, &d->leaving, link)
		assert(!c->named || c->leave_op); /* a waiting delete is sent before anything else */
	mode = flavour_claim_mode(d->flavour, mode);
	c = claim_new(d, mode);
	c->tries = tries;
	c->watches = watches;
	directory_check(d);
	send_join(c);
	all->turns.breath = false;
	return c;
}

struct claim *claim_join(struct directory *d, enum mode mode, bool tries, bool watches)
{
	bool alone = d->directories->env->conf->standalone;

	return alone ? join_locally(d, mode) : join_others(d, mode, tries, watches);
}

/* *next* takes the place of a first claim that goes. */
static void detach(struct claim *c)
{
	struct directory *d = c->directory;

	if (c->state == CLAIM_LEAVING) {
		TAILQ_REMOVE(&d->leaving, c, link);
	} else if (d->flavour == FLAVOUR_SLOTS) {
		TAILQ_REMOVE(&d->slots, c, link);
	} else if (d->claim == c) {
		d->claim = d->next;
		d->next = NULL;
		directory_forget_watch(d);
	} else {
		assert(d->next == c);
		d->next = NULL;
	}
}

void claim_free(struct claim *c)
{
	struct directory *d = c->directory;
	struct directories *all = d->directories;

	detach(c);
	claim_ledger_remove(c);
	if (--d->claim_count == 0)
		directory_remember(d, false);
	all->claim_count--;
	all->stray_count -= c->orphan;
	charge_give_back(&c->path, POOL_PATHS);
	bytes_free(&c->pred);
	bytes_free(&c->second.ahead);
	mem_spare(&all->spare_claim, c);
	directory_touch(d);
}

void claim_free_all(struct directory *d)
{
	struct claim *c;

	while ((c = TAILQ_FIRST(&d->leaving)) || (c = TAILQ_FIRST(&d->slots)))
		claim_free(c);
	if (d->next)
		claim_free(d->next);
	if (d->claim)
		claim_free(d->claim);
}

const struct claim *claim_before(const struct claim *c)
{
	const struct claim *first = c->directory->claim, *own;

	if (!c->pred.len)
		return NULL;
	if (first && first->named && slice_eq(bytes_view(&c->pred), slice_of(first->name)))
		return first;
	TAILQ_FOREACH(own, &c->directory->leaving, link)
		if (own->named && slice_eq(bytes_view(&c->pred), slice_of(own->name)))
			return own;
	return NULL;
}

void claim_held(struct claim *c)
{
	struct directories *all = c->directory->directories;

	if (c->held_ns) /* that of a killed process may not have been written down */
		histogram_add(&all->env->stats.claim, all->env->now_ns - c->held_ns);
	c->state = CLAIM_HELD;
	c->directory->busy = 0;
	note(c, FLIGHT_claim_held);
	c->held_ns = all->env->now_ns;
	if (c->own_watch == CLAIM_ASKED) /* of an answer that comes yet nobody knows whether it set the watch */
		c->own_watch = CLAIM_UNSET;
	claim_forget_pred(c);
	bytes_clear(&c->directory->before);
	if (c->succeeds)
		bytes_slice(&c->directory->before, record_get(bytes_view(&c->directory->seen.data), "host"));
	all->env->stats.claims_total++;
}

/* It waited for another host, so others may wait for it: it is not worth a list to know. */
static void succeed(struct claim *c)
{
	claim_held(c);
	c->rivals = true;
	c->directory->directories->env->stats.successions_total++;
}

/*
 * WAITING: the predecessor's znode is deleted. Unless it is known that the claim is first now, it lists the directory:
 * the list shows which contender is first, and whether the claim's own znode exists.
 */
static void pred_gone(struct claim *c)
{
	const struct directory *d = c->directory;

	if (second_is_first(c)) {
		succeed(c);
		return;
	}
	claim_forget_pred(c);
	if (directory_is_listed(d))
		return;
	/*
	 * The claim's turn has probably come, and soon the broker must know whether somebody waits behind it. Any list
	 * shows that. A watch would only show contenders that come later, and cost one more event in every hand-off.
	 */
	directory_list(c->directory, c == c->directory->claim && !d->contended_before && !directory_watches(d));
}

/*
 * A claim behind a znode of ours needs no watch to learn that the znode goes: a list sent after the delete shows it.
 */
static void follow(struct claim *c, const struct claim *gone, uint64_t deleted)
{
	if (!c || c->state != CLAIM_WAITING || claim_before(c) != gone)
		return;
	/* A list was sent after that one, or will be. */
	if (c->directory->wanted || c->directory->list_op > deleted)
		claim_forget_pred(c);
	else
		pred_gone(c);
}

/* `gone`, a claim of this host, was deleted by the operation `deleted`: this host's claims that waited for it go on. */
static void follow_all(const struct claim *gone, uint64_t deleted)
{
	follow(gone->directory->claim, gone, deleted);
	follow(gone->directory->next, gone, deleted);
}

void claim_send_delete(struct claim *c)
{
	assert(c->state == CLAIM_LEAVING);
	if (!c->named || c->withheld || c->leave_op || !c->directory->directories->ensemble->session.connected)
		return;
	if (!turn_may(c->directory, TURN_DELETE))
		return;
	c->leave_op = send(c, EFFECT_ZK_DELETE, OPERATION_LEAVE);
	follow_all(c, c->leave_op);
}

void claim_send_deletes(struct directory *d)
{
	struct claim *c;

	if (TAILQ_EMPTY(&d->leaving) || !directory_may_send(d))
		return;
	TAILQ_FOREACH(c, &d->leaving, link)
		claim_send_delete(c);
}

void claim_leave(struct claim *c)
{
	struct directory *d = c->directory;

	if (d->directories->env->conf->standalone) {
		claim_free(c);
		return;
	}
	if (c->state == CLAIM_HELD)
		d->contended_before = c->rivals;
	claim_release(d);
	detach(c);
	claim_ledger_remove(c);
	c->state = CLAIM_LEAVING;
	note(c, FLIGHT_claim_leaving);
	c->salvaged = false;
	TAILQ_INSERT_TAIL(&d->leaving, c, link);
	claim_send_delete(c);
	directory_touch(d);
}

void claim_vanished(struct claim *c)
{
	struct directory *d = c->directory;
	struct directories *all = d->directories;
	struct slice shown = contender_shown(slice_of(c->name));

	all->env->stats.vanished_total++;
	effects_say(all->env->out, EFFECT_LEVEL_WARNING, znode_deleted,
		    EFFECT_FIELDS("path=%v znode=%v", bytes_view(&d->path), shown),
		    "somebody deleted our znode %s/%s", bytes_view(&d->path), shown);
	if (c == d->claim || d->flavour == FLAVOUR_SLOTS)
		d->facts |= FACT_LOST;
	claim_free(c);
}

bool claim_stray(struct directory *d, struct slice name)
{
	struct claim *c;

	if (name.len >= CONTENDER_NAME_MAX)
		return false;
	c = claim_new(d, MODE_EXCLUSIVE);
	c->state = CLAIM_LEAVING;
	c->named = c->orphan = true;
	directory_ledger_note(d);
	set_name(c, name);
	TAILQ_INSERT_TAIL(&d->leaving, c, link);
	d->directories->stray_count++;
	d->directories->env->stats.strays_total++;
	claim_send_delete(c);
	return true;
}

void claim_found(struct claim *c, struct slice name)
{
	set_name(c, name);
	c->named = true;
	claim_send_delete(c);
}

void claim_suspended(struct claim *c)
{
	c->listed = c->adopting = c->rivals = c->tried = false;
	c->own_watch = CLAIM_UNSET;
	c->leave_op = 0;
	claim_forget_pred(c);
	c->holder_client = 0;
}

void claim_forget_pred(struct claim *c)
{
	bytes_clear(&c->pred);
	c->pred_op = 0;
	c->pred_watch = c->contested = c->in_use = false;
	second_forget(c);
	c->other_kind = NULL;
}

/* No other claim of the directory has to be found: the held claim's own znode shows all that a list would. */
static bool is_held_alone(const struct directory *d)
{
	const struct claim *c = d->claim;

	return c && c->state == CLAIM_HELD && !c->salvaged && !d->next && TAILQ_EMPTY(&d->leaving) && !d->part;
}

/*
 * As long as nobody here is next, the broker need not know who waits elsewhere. A watch on a znode is longer than one
 * on its directory: if the budget has no room for it, the directory is listed.
 */
bool claim_recover(struct directory *d, bool alone)
{
	if (!is_held_alone(d) || !alone || !charge_fits_own(d->claim)) {
		directory_list(d, false);
		return !d->wanted;
	}
	claim_watch_own(d->claim);
	return d->claim->own_watch != CLAIM_UNSET;
}

uint64_t claim_read(struct claim *c, enum operation_kind kind, struct slice name)
{
	struct operation_request r = { .op = { .kind = kind, .claim = c->number } };

	return directory_send_child(c->directory, EFFECT_ZK_GET, &r, name);
}

void claim_watch_pred(struct claim *c)
{
	if (!c->pred.len || claim_before(c))
		return;
	if (second_wants_own(c))
		claim_watch_own(c); /* first: then it is known at a NONODE of the predecessor */
	if (second_wants_ahead(c) && turn_may(c->directory, TURN_JOIN)) {
		c->second.watched = true;
		claim_read(c, OPERATION_WATCH_AHEAD, bytes_view(&c->second.ahead));
	}
	if (c->pred_watch || !turn_may(c->directory, TURN_JOIN))
		return;
	c->pred_watch = true;
	c->pred_op = claim_read(c, OPERATION_WATCH_PRED, bytes_view(&c->pred));
}

void claim_watch_own(struct claim *c)
{
	if (!turn_may(c->directory, TURN_JOIN))
		return;
	c->own_watch = CLAIM_ASKED;
	send(c, EFFECT_ZK_GET, OPERATION_WATCH_OWN);
}

uint64_t claim_write(struct claim *c, enum operation_kind kind)
{
	return send(c, EFFECT_ZK_SET, kind);
}

void claim_adopt(struct claim *c, struct slice name)
{
	set_name(c, name);
	c->adopting = true;
	send(c, EFFECT_ZK_GET, OPERATION_ADOPT);
	directory_list(c->directory, false);
}

/* ---- when ZooKeeper answers an operation, or a watch fires ---- */

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

/* The znode exists, and its numbers are known. */
static void numbered(struct claim *c)
{
	c->state = CLAIM_WAITING;
	note(c, FLIGHT_claim_waiting);
	if (c->seq >= CONTENDER_WRAP_NEAR && c->directory->flavour != FLAVOUR_SLOTS) { /* slots are only counted */
		struct directory *d = c->directory;

		claim_leave(c);
		directory_exhaust(d);
	} else if (!past_allows(c->directory->directories->ensemble, c->czxid)) {
		go_back(c);
	}
}

static void joined(struct claim *c, const struct event *event)
{
	struct slice path = event->zk_answered.path;
	size_t dir = c->directory->path.len + 1;

	assert(path.len > dir);
	path = (struct slice){ path.data + dir, path.len - dir };
	set_name(c, path);
	set_seq(c, event);
	if (c->state == CLAIM_LEAVING) {
		claim_send_delete(c);
		return;
	}
	if (!c->czxid) { /* the znode itself shows it */
		c->named = false;
		c->state = CLAIM_UNSURE;
		claim_adopt(c, path);
	} else {
		numbered(c);
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
		send_join(c);
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
		note(c, FLIGHT_claim_unsure);
	}
}

static void pred_answered(struct claim *c, const struct event *event)
{
	enum zk_code code = event->zk_answered.code;

	/* A list may have shown another predecessor since, or none: the end of this one does not make the claim first. */
	if (c->state != CLAIM_WAITING || event->zk_answered.op != c->pred_op)
		return;
	if (code == ZK_NONODE) {
		pred_gone(c);
	} else if (code == ZK_OK) {
		if (!c->directory->tells_kind)
			c->other_kind = holder_other_kind(c->directory->kind, event->zk_answered.data);
		if (c->pred_watch)
			sighting_read(c, event->zk_answered.data);
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
		if (is_held_alone(c->directory))
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
	c->directory->directories->env->stats.adopted_total++;
	set_seq(c, event);
	numbered(c);
}

static void leave_answered(struct claim *c, const struct event *event)
{
	enum zk_code code = event->zk_answered.code;
	uint64_t deleted = c->leave_op;

	c->leave_op = 0;
	if (code == ZK_OK || code == ZK_NONODE) {
		follow_all(c, deleted);
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
			pred_gone(c);
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

/* ---- a *next* that follows without a gap ---- */

void claim_follow(struct directory *d)
{
	struct claim *c = d->claim;

	assert(c->state == CLAIM_HELD && d->next->state == CLAIM_WAITING && claim_before(d->next) == c);
	d->claim = d->next;
	d->next = NULL;
	c->state = CLAIM_LEAVING;
	c->salvaged = false; /* the list that let it be followed showed it */
	c->spent = c->withheld = true;
	claim_ledger_withhold(c);
	d->claim->follows = true;
	d->claim->followed = c->seq;
	d->claim->says_held = c->says_held; /* the data of `c` are read as long as it exists */
	TAILQ_INSERT_TAIL(&d->leaving, c, link);
	claim_held(d->claim);
}

size_t claim_spent_count(const struct directory *d)
{
	const struct claim *c;
	size_t count = 0;

	TAILQ_FOREACH(c, &d->leaving, link)
		count += c->spent && (c->withheld || c->leave_op);
	return count;
}

bool claim_keeps_out(const struct directory *d, struct slice name)
{
	const struct claim *c = d->claim;
	struct contender seen;

	if (!c || !directory_is_ours(d, name))
		return false;
	/* A number is not used twice while a znode of ours exists. */
	return slice_eq(name, slice_of(c->name)) ||
	       (c->follows && contender_parse(name, d->flavour, &seen) && seen.seq == c->followed);
}
