/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Contenders that are not brokers: on the same directories they follow the recipe of the directory's flavour (Curator's
 * read/write lock, Curator's mutex, kazoo's locks), each with a session of its own, and see what that recipe sees. And
 * an operator that deletes what it likes.
 */
#include "world.h"

#include "core/znode/contender.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum foreign_state { FOREIGN_IDLE, FOREIGN_MAKING, FOREIGN_JOINING, FOREIGN_LISTING, FOREIGN_WAITING, FOREIGN_HOLDING,
		     FOREIGN_LEAVING };

static void foreign_send(struct foreign *f, enum effect_type type, const char *name, bool watch)
{
	struct world *w = f->w;
	char path[256];
	struct effect e = { .type = type, .op = ++f->op, .watch = watch, .create = ZK_EPHEMERAL_SEQUENTIAL };
	int len = snprintf(path, sizeof(path), "%s%s%s", w->lock_path[f->lock], name[0] ? "/" : "", name);

	if (f->state == FOREIGN_MAKING)
		e.create = ZK_CONTAINER;
	zhandle_send(f->zk, &e, (struct slice){ path, (size_t)len }, (struct slice){ 0 });
}

static void foreign_list(struct foreign *f)
{
	f->state = FOREIGN_LISTING;
	foreign_send(f, EFFECT_ZK_LIST, "", false);
}

static void foreign_join(struct foreign *f)
{
	char name[80];

	f->state = FOREIGN_JOINING;
	if (f->w->lock_flavour[f->lock] == FLAVOUR_KAZOO)
		snprintf(name, sizeof(name), "%.8s%.4s%.4s%.4s%.12s%s", f->uuid + 3, f->uuid + 12, f->uuid + 17, f->uuid + 22,
			 f->uuid + 27, f->reader ? "__rlock__" : "__lock__");
	else if (f->w->lock_flavour[f->lock] == FLAVOUR_MUTEX)
		snprintf(name, sizeof(name), "%s-lock-", f->uuid);
	else
		snprintf(name, sizeof(name), "%s-%s", f->uuid, f->reader ? "__READ__" : "__WRIT__");
	foreign_send(f, EFFECT_ZK_CREATE, name, false);
}

static void foreign_release(void *foreign, uint64_t life)
{
	struct foreign *f = foreign;

	if (life != f->life || f->state != FOREIGN_HOLDING || !f->connected)
		return;
	f->state = FOREIGN_LEAVING;
	foreign_send(f, EFFECT_ZK_DELETE, f->name, false);
}

static void foreign_holds(struct foreign *f)
{
	struct world *w = f->w;
	char path[160];
	int64_t hold = rng_percent(&w->rng, 20) ? rng_between(&w->rng, 0, w->timeout) : rng_between(&w->rng, 0, 300 * MS);

	f->state = FOREIGN_HOLDING;
	snprintf(path, sizeof(path), "%s/%s", w->lock_path[f->lock], f->name);
	check_foreign_grant(w, f->lock, path);
	w->stats->foreign_grants++;
	TRACE(w, f->lock, "foreign %d holds %s", f->index, f->name);
	sched_at(&w->sched, w->sched.now + (w->quiet ? MS : hold), foreign_release, f, ++f->life);
}

static int64_t sequence_of(struct slice name)
{
	char digits[12] = "";

	if (name.len < 10)
		return -1;
	memcpy(digits, name.data + name.len - 10, 10);
	return strtoll(digits, NULL, 10);
}

static bool carries(struct slice name, const char *tag)
{
	return memmem(name.data, name.len, tag, strlen(tag)) != NULL;
}

/* Whether the recipe takes that child for one to wait for. */
static bool foreign_minds(const struct foreign *f, struct slice child)
{
	switch (f->w->lock_flavour[f->lock]) {
	case FLAVOUR_RW:
		return !f->reader || carries(child, "__WRIT__");
	case FLAVOUR_MUTEX:
	case FLAVOUR_SLOTS:
		return true;
	case FLAVOUR_KAZOO:
		return carries(child, "__lock__") || (!f->reader && carries(child, "__rlock__"));
	}
	return true;
}

static void foreign_listed(struct foreign *f, const struct event *e)
{
	struct slice me = slice_of(f->name), before = { 0 };
	int64_t mine = sequence_of(me), best = -1;
	bool found = false;
	size_t i;

	for (i = 0; i < e->zk_answered.count; i++) {
		struct slice child = e->zk_answered.children[i];
		int64_t seq = sequence_of(child);

		found = found || slice_eq(child, me);
		if (!foreign_minds(f, child))
			continue;
		if (seq < mine && seq > best) {
			best = seq;
			before = child;
		}
	}
	if (e->zk_answered.code != ZK_OK || !found) {
		f->state = FOREIGN_IDLE; /* an operator was here */
	} else if (best < 0) {
		foreign_holds(f);
	} else {
		char name[128];

		snprintf(name, sizeof(name), "%.*s", (int)before.len, before.data);
		f->state = FOREIGN_WAITING;
		foreign_send(f, EFFECT_ZK_GET, name, true);
	}
}

/* What was refused is asked for again, as long as it takes. */
static void foreign_look(void *foreign, uint64_t life)
{
	struct foreign *f = foreign;

	if (life == f->life && f->connected && (f->state == FOREIGN_LISTING || f->state == FOREIGN_WAITING))
		foreign_list(f);
}

static void foreign_answered(struct foreign *f, const struct event *e)
{
	struct slice path = e->zk_answered.path;
	enum zk_code code = e->zk_answered.code;

	if (e->zk_answered.op != f->op || code == ZK_UNKNOWN)
		return;
	if (zk_refuses(code) && (f->state == FOREIGN_LISTING || f->state == FOREIGN_WAITING)) {
		sched_at(&f->w->sched, f->w->sched.now + 200 * MS, foreign_look, f, ++f->life);
		return;
	}
	switch ((enum foreign_state)f->state) {
	case FOREIGN_MAKING:
		foreign_join(f);
		break;
	case FOREIGN_JOINING:
		if (code == ZK_NONODE) {
			f->state = FOREIGN_MAKING;
			foreign_send(f, EFFECT_ZK_CREATE, "", false);
		} else if (code == ZK_OK) {
			size_t dir = f->w->lock_path_len[f->lock] + 1;

			snprintf(f->name, sizeof(f->name), "%.*s", (int)(path.len - dir), path.data + dir);
			foreign_list(f);
		} else {
			f->state = FOREIGN_IDLE;
		}
		break;
	case FOREIGN_LISTING:
		foreign_listed(f, e);
		break;
	case FOREIGN_WAITING:
		if (code == ZK_NONODE)
			foreign_list(f);
		break;
	case FOREIGN_LEAVING:
		if (zk_refuses(code)) {
			f->state = FOREIGN_HOLDING;
			sched_at(&f->w->sched, f->w->sched.now + 200 * MS, foreign_release, f, ++f->life);
		} else {
			f->state = FOREIGN_IDLE;
		}
		break;
	case FOREIGN_HOLDING:
	case FOREIGN_IDLE:
		break;
	}
}

static void foreign_notified(void *foreign, const struct event *e)
{
	struct foreign *f = foreign;

	TRACE(f->w, f->lock, "foreign %d in state %d <- event %d", f->index, f->state, (int)e->type);
	switch (e->type) {
	case EVENT_ZK_CONNECTED:
		f->connected = true;
		if (f->state == FOREIGN_WAITING || f->state == FOREIGN_LISTING)
			foreign_list(f);
		else if (f->state == FOREIGN_HOLDING)
			foreign_release(f, f->life);
		break;
	case EVENT_ZK_SUSPENDED:
		f->connected = false;
		/* What may come of a create or delete under way ends with the session: it never looks back. */
		if (f->state == FOREIGN_MAKING || f->state == FOREIGN_JOINING || f->state == FOREIGN_LEAVING) {
			f->state = FOREIGN_IDLE;
			zhandle_open(f->zk);
		}
		break;
	case EVENT_ZK_EXPIRED:
		f->connected = false;
		f->state = FOREIGN_IDLE;
		zhandle_open(f->zk);
		break;
	case EVENT_ZK_ANSWERED:
		if (f->connected)
			foreign_answered(f, e);
		break;
	case EVENT_ZK_WATCH:
		if (f->state == FOREIGN_WAITING)
			foreign_list(f);
		break;
	case EVENT_TIME:
	case EVENT_CLIENT_CONNECTED:
	case EVENT_CLIENT_ASKED:
	case EVENT_CLIENT_HALF_CLOSED:
	case EVENT_CLIENT_WRITTEN:
	case EVENT_CLIENT_PROCESS:
	case EVENT_LIFELINE:
	case EVENT_CLIENT_GROUPS:
	case EVENT_CLIENT_PAGE:
	case EVENT_CLIENT_LEAVES:
	case EVENT_CLIENT_GONE:
	case EVENT_ZK_TROUBLE:
	case EVENT_ZK_LACKS:
	case EVENT_ZK_PACKET:
	case EVENT_TOKENS:
	case EVENT_FORMER_FREE:
	case EVENT_FORMER_OVER:
	case EVENT_RESTART_OVER:
	case EVENT_CONF:
	case EVENT_STOP:
		break;
	}
}

static void foreign_think(void *foreign, uint64_t argument)
{
	struct foreign *f = foreign;
	struct world *w = f->w;
	uint64_t a = rng_next(&w->rng), b = rng_next(&w->rng);

	(void)argument;
	if (w->quiet)
		return;
	sched_at(&w->sched, w->sched.now + rng_between(&w->rng, 1, w->mix->foreign_every_ms * 2) * MS, foreign_think, f, 0);
	if (f->state != FOREIGN_IDLE || !f->connected)
		return;
	f->lock = (int)rng_below(&w->rng, (uint32_t)w->lock_count);
	f->reader = rng_percent(&w->rng, 35) && w->lock_flavour[f->lock] != FLAVOUR_MUTEX;
	snprintf(f->uuid, sizeof(f->uuid), "_c_%08x-%04x-4%03x-a%03x-%012" PRIx64, (unsigned)(a >> 32),
		 (unsigned)(a >> 16) & 0xffff, (unsigned)a & 0xfff, (unsigned)(b >> 52), b & 0xffffffffffff);
	foreign_join(f);
}

static const char orphan_nonce[] = "ff-ffffffff", orphan_nonce_of_kazoo[] = "00ffffffffff";

bool stray_is(const struct znode *n)
{
	return strstr(n->path, orphan_nonce) || strstr(n->path, orphan_nonce_of_kazoo);
}

/* As a create would that everybody has forgotten: nothing but a list can find it. */
static void make_orphan(void *world, uint64_t argument)
{
	struct world *w = world;
	struct host *h = &w->hosts[rng_below(&w->rng, (uint32_t)w->host_count)];
	int lock = (int)rng_below(&w->rng, (uint32_t)w->lock_count);
	struct zsession *s = h->broker ? h->zk->session : NULL;
	struct txn create = { .origin = -1, .request = EFFECT_ZK_CREATE, .session = s };
	struct bytes path = { 0 };

	(void)argument;
	if (w->quiet)
		return;
	sched_at(&w->sched, w->sched.now + rng_between(&w->rng, 1, w->mix->orphan_every_ms * 2) * MS, make_orphan, w, 0);
	if (!s || !s->alive || w->zk.leader < 0)
		return;
	bytes_slice(&path, (struct slice){ w->lock_path[lock], w->lock_path_len[lock] });
	bytes_char(&path, '/');
	contender_name(&path, s->id, 0xffffffffff0000 | (w->stray_count++ & 0xffff),
		       w->lock_flavour[lock], MODE_EXCLUSIVE);
	fakezk_write(&w->zk, create, bytes_view(&path), (struct slice){ 0 }, ZK_EPHEMERAL_SEQUENTIAL, ZK_BY_OPERATOR);
	bytes_free(&path);
}

/* Who overwrites what an earlier life of a host left, again and again, is taken for a second daemon of that name. */
static bool is_left_over(struct world *w, const char *path, uint32_t host)
{
	const struct znode *n = fakezk_find(&w->zk, slice_of(path), FAKEZK_TRUTH);

	return n && n->session != w->hosts[host].zk->session;
}

static void operator_acts(void *world, uint64_t argument)
{
	struct world *w = world;
	int lock = (int)rng_below(&w->rng, (uint32_t)w->lock_count), count = 0;
	struct slice dir = { w->lock_path[lock], w->lock_path_len[lock] };
	struct znode *n = fakezk_find(&w->zk, dir, FAKEZK_TRUTH), *child, *chosen = n;
	enum effect_type type = rng_percent(&w->rng, 70) ? EFFECT_ZK_DELETE : EFFECT_ZK_SET;

	(void)argument;
	if (w->quiet)
		return;
	sched_at(&w->sched, w->sched.now + rng_between(&w->rng, 1, w->mix->operator_every_ms * 2) * MS, operator_acts, w,
		 0);
	if (rng_percent(&w->rng, 5)) {
		static const char *const places[] = { "/locks/.hosts/h", "/locks/.mail/h", "/locks/.mail/h" };
		uint32_t place = rng_below(&w->rng, 3), host = rng_below(&w->rng, (uint32_t)w->host_count);
		char path[64];

		if (place > 0)
			w->mail_meddled_at = w->sched.now;
		snprintf(path, sizeof(path), "%s%u%s", places[place], host, place == 2 ? "/what" : "");
		if (place > 0 || type == EFFECT_ZK_DELETE || !is_left_over(w, path, host))
			fakezk_operate(&w->zk, place == 2 ? EFFECT_ZK_CREATE : type, slice_of(path), SLICE("x"));
		return;
	}
	if (n)
		TAILQ_FOREACH(child, &n->children, sibling)
			if (child->view[FAKEZK_TRUTH].exists && rng_below(&w->rng, (uint32_t)++count) == 0)
				chosen = child;
	if (!chosen || w->meddled_count == MEDDLED_MAX)
		return;
	if ((w->tokens_of[lock].last & 1023) < w->operator_from && !entitled_followed(w, n))
		return;
	w->stats->operations++;
	if (type == EFFECT_ZK_SET && chosen != n)
		w->overwritten[w->overwritten_count++ % OVERWRITTEN_MAX] = chosen->czxid;
	fakezk_operate(&w->zk, type, (struct slice){ chosen->path, chosen->len },
		       chosen == n ? SLICE("") : SLICE("meddled"));
}

void foreign_start(struct world *w)
{
	int i;

	w->operator_from = w->mix->operator_from * rng_between(&w->rng, 1, 2);
	if (w->mix->operator_every_ms)
		sched_at(&w->sched, w->sched.now + SECOND, operator_acts, w, 0);
	if (w->mix->orphan_every_ms)
		sched_at(&w->sched, w->sched.now + SECOND, make_orphan, w, 0);
	if (!w->mix->foreign_every_ms)
		return;
	w->foreign_count = (int)rng_between(&w->rng, 1, FOREIGN_MAX);
	for (i = 0; i < w->foreign_count; i++) {
		struct foreign *f = &w->foreign[i];

		f->w = w;
		f->index = i;
		f->zk = zhandle_new(&w->zk, w->timeout, foreign_notified, f, NULL);
		zhandle_open(f->zk);
		sched_at(&w->sched, w->sched.now + SECOND, foreign_think, f, 0);
	}
}

bool foreign_idle(const struct world *w)
{
	int i;

	for (i = 0; i < w->foreign_count; i++)
		if (w->foreign[i].state != FOREIGN_IDLE)
			return false;
	return true;
}

void foreign_free(struct world *w)
{
	int i;

	for (i = 0; i < w->foreign_count; i++)
		zhandle_free(w->foreign[i].zk);
}
