/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A contender for permits that is not a broker: it follows Curator's InterProcessSemaphoreV2, with a session of its
 * own. It acquires the mutex, creates its lease, waits until no more leases than the limit are listed, and releases
 * the mutex. It looks again now and then where Curator sets watches.
 */
#include "world.h"

#include <inttypes.h>
#include <stdio.h>

static const char *const directories[] = { "/locks/sem", "/locks/sem/locks", "/locks/sem/leases" };

enum { LOCKS = 1, LEASES = 2 };

static const int64_t LOOK_AGAIN_NS = 30 * MS;

static void act(void *guest, uint64_t life);

static void later(struct guest *g, int64_t ns)
{
	sched_at(&g->w->sched, g->w->sched.now + ns, act, g, g->life);
}

static void send(struct guest *g, enum effect_type type, const char *path, enum zk_create create)
{
	struct effect e = { .type = type, .op = ++g->op, .create = create };

	zhandle_send(g->zk, &e, slice_of(path), (struct slice){ 0 });
}

static void make(struct guest *g, int directory)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/_c_%08" PRIx64 "-0000-4000-8000-%012" PRIx64 "-%s-", directories[directory], g->op,
		 g->made++, directory == LOCKS ? "lock" : "lease");
	send(g, EFFECT_ZK_CREATE, path, ZK_EPHEMERAL_SEQUENTIAL);
}

/* What it is about to do, in order; each is asked again until its answer leads to the next. */
static void act(void *guest, uint64_t life)
{
	struct guest *g = guest;

	if (life != g->life || !g->connected)
		return;
	switch (g->state) {
	case GUEST_IDLE:
		if (g->w->quiet)
			return;
		g->state = GUEST_JOINING;
		make(g, LOCKS);
		break;
	case GUEST_MAKING:
		for (size_t i = 0; i < 3; i++)
			send(g, EFFECT_ZK_CREATE, directories[i], ZK_CONTAINER);
		break;
	case GUEST_JOINING:
		make(g, LOCKS);
		break;
	case GUEST_QUEUED:
		send(g, EFFECT_ZK_LIST, directories[LOCKS], 0);
		break;
	case GUEST_LEASING:
		make(g, LEASES);
		break;
	case GUEST_WAITING:
		send(g, EFFECT_ZK_LIST, directories[LEASES], 0);
		break;
	case GUEST_PASSING:
		send(g, EFFECT_ZK_DELETE, g->mutex, 0);
		break;
	case GUEST_HOLDING:
		send(g, EFFECT_ZK_DELETE, g->lease, 0);
		break;
	}
}

static void start_anew(struct guest *g)
{
	g->life++;
	g->state = GUEST_IDLE;
	g->connected = false;
	zhandle_open(g->zk);
}

static void keep(char *name, size_t size, struct slice path)
{
	snprintf(name, size, "%.*s", (int)path.len, path.data);
}

/* 1: it stands, and nobody is before it; -1: it is gone. */
static int place(const struct guest *g, const struct event *e)
{
	struct slice me = slice_of(strrchr(g->mutex, '/') + 1);
	int found = -1;

	for (size_t i = 0; i < e->zk_answered.count; i++)
		if (slice_eq(e->zk_answered.children[i], me))
			found = 1;
	for (size_t i = 0; found > 0 && i < e->zk_answered.count; i++) {
		struct slice other = e->zk_answered.children[i];

		if (memcmp(other.data + other.len - 10, me.data + me.len - 10, 10) < 0)
			return 0;
	}
	return found;
}

static void counted(struct guest *g, const struct event *e)
{
	struct slice me = slice_of(strrchr(g->lease, '/') + 1);
	bool found = false;

	for (size_t i = 0; i < e->zk_answered.count; i++)
		found = found || slice_eq(e->zk_answered.children[i], me);
	if (!found) {
		start_anew(g);
	} else if ((int64_t)e->zk_answered.count > g->w->permits_limit) {
		later(g, LOOK_AGAIN_NS);
	} else {
		g->state = GUEST_PASSING;
		g->w->stats->foreign_grants++;
		permits_check_guest(g->w);
		act(g, g->life);
	}
}

static void answered(struct guest *g, const struct event *e)
{
	enum zk_code code = e->zk_answered.code;
	int at;

	if (e->zk_answered.op != g->op)
		return;
	if (code != ZK_OK && code != ZK_NONODE && code != ZK_NODEEXISTS) {
		start_anew(g);
		return;
	}
	switch (g->state) {
	case GUEST_IDLE:
		break;
	case GUEST_MAKING:
		g->state = GUEST_JOINING;
		act(g, g->life);
		break;
	case GUEST_JOINING:
		g->state = code == ZK_NONODE ? GUEST_MAKING : GUEST_QUEUED;
		if (code == ZK_OK)
			keep(g->mutex, sizeof(g->mutex), e->zk_answered.path);
		act(g, g->life);
		break;
	case GUEST_QUEUED:
		at = code == ZK_OK ? place(g, e) : -1;
		if (at < 0) {
			start_anew(g);
		} else if (at == 0) {
			later(g, LOOK_AGAIN_NS);
		} else {
			g->state = GUEST_LEASING;
			act(g, g->life);
		}
		break;
	case GUEST_LEASING:
		if (code != ZK_OK) {
			start_anew(g);
			break;
		}
		keep(g->lease, sizeof(g->lease), e->zk_answered.path);
		g->state = GUEST_WAITING;
		act(g, g->life);
		break;
	case GUEST_WAITING:
		counted(g, e);
		break;
	case GUEST_PASSING:
		g->state = GUEST_HOLDING;
		later(g, rng_between(&g->w->rng, 0, 200 * MS));
		break;
	case GUEST_HOLDING:
		g->state = GUEST_IDLE;
		later(g, rng_between(&g->w->rng, 0, 600 * MS));
		break;
	}
}

static void notified(void *guest, const struct event *e)
{
	struct guest *g = guest;

	if (e->type == EVENT_ZK_CONNECTED) {
		g->connected = true;
		later(g, rng_between(&g->w->rng, 0, 600 * MS));
	} else if (e->type == EVENT_ZK_SUSPENDED || e->type == EVENT_ZK_EXPIRED) {
		start_anew(g);
	} else if (e->type == EVENT_ZK_ANSWERED && g->connected) {
		answered(g, e);
	}
}

bool permits_guest_holds(const struct guest *g)
{
	struct znode *n = g->state == GUEST_PASSING || g->state == GUEST_HOLDING ?
		fakezk_find(&g->w->zk, slice_of(g->lease), FAKEZK_TRUTH) : NULL;

	return n && n->view[FAKEZK_TRUTH].exists;
}

void permits_guest_start(struct world *w)
{
	w->guest.w = w;
	w->guest.zk = zhandle_new(&w->zk, w->timeout, notified, &w->guest, NULL);
	zhandle_open(w->guest.zk);
}
