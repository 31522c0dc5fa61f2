/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Weather in which an answer takes long: many locks, for which every host waits behind many contenders of other
 * software, and a link that needs a good part of T to list all that once. The brokers have to come to rest under it:
 * after a cut they are proven again and stay so, they do not give up a connection that works, and a lock that becomes
 * free is granted as soon as the bandwidth allows. While nothing happens, they ask for little.
 */
#include "world.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* LOOKS_PERCENT: of what it takes to list all once. SHARE_PERCENT: of the seeds of ordinary weather. */
enum {
	NAMES_MIN = 40,
	CONTENDERS_MIN = 60,
	CONTENDERS_MAX = 300,
	DROPS_MAX = 2,
	LOOKS_SECONDS = 65,
	LOOKS_PERCENT = 75,
	SHARE_PERCENT = 2,
	CUTS_MAX = 7,
};

static const char MODEL[] = "_c_00000000-0000-4000-a000-000000000000-__WRIT__0000000000";
static const int64_t CONTENDERS_TIMEOUT_NS = 10000000 * SECOND;

static void name_of(int i, char *name)
{
	sprintf(name, "x%d", i);
}

static void path_of(int i, const char *child, char *path, size_t size)
{
	snprintf(path, size, "/locks/x%d%s%s", i, child[0] ? "/" : "", child);
}

/* ---- the others ---- */

static void contend(struct world *w, int i)
{
	char path[128], child[64];
	int k;

	path_of(i, "", path, sizeof(path));
	fakezk_operate(&w->zk, EFFECT_ZK_CREATE, slice_of(path), (struct slice){ 0 });
	for (k = 0; k < w->ballast.contenders; k++) {
		struct txn create = { .origin = -1,
				      .request = EFFECT_ZK_CREATE,
				      .session = w->ballast.others,
				      .more = k + 1 < w->ballast.contenders };

		snprintf(child, sizeof(child), "_c_%08x-0000-4000-a000-%012d-__WRIT__", i, k);
		path_of(i, child, path, sizeof(path));
		fakezk_write(&w->zk, create, slice_of(path), (struct slice){ 0 }, ZK_EPHEMERAL_SEQUENTIAL,
			     ZK_BY_OPERATOR);
	}
}

/* All of them let go of it; false: nobody else has it. */
static bool free_one(struct world *w, int i)
{
	struct znode *dir, *n, *next;
	bool any = false;
	char path[128];

	path_of(i, "", path, sizeof(path));
	dir = fakezk_find(&w->zk, slice_of(path), FAKEZK_TRUTH);
	for (n = dir ? TAILQ_FIRST(&dir->children) : NULL; n; n = next) {
		next = TAILQ_NEXT(n, sibling);
		if (n->view[FAKEZK_TRUTH].exists && n->session == w->ballast.others) {
			fakezk_operate(&w->zk, EFFECT_ZK_DELETE, (struct slice){ n->path, n->len },
				       (struct slice){ 0 });
			any = true;
		}
	}
	TRACE(w, -1, "%s is free", path);
	return any;
}

/* Servers that are far apart besides would leave no time for a proof. */
static void near(const struct world *w, int64_t *ns)
{
	if (*ns > w->timeout / 60)
		*ns = w->timeout / 60;
}

void ballast_init(struct world *w)
{
	struct ballast *b = &w->ballast;
	struct rng r = { .state = w->seed * 0x9e3779b97f4a7c15u + 7 }; /* all else is what it is without */
	int64_t bytes;
	int i;

	b->freed = -1;
	if (w->mix->standalone ||
	    !(w->mix->loaded || (w->mix->share && !w->mix->steps && rng_percent(&r, SHARE_PERCENT))))
		return;
	b->names = (int)rng_between(&r, NAMES_MIN, BALLAST_MAX);
	b->contenders = (int)rng_between(&r, CONTENDERS_MIN, CONTENDERS_MAX);
	b->transfer_ns = w->timeout / 100 * rng_between(&r, 10, 90);
	bytes = (int64_t)b->names * b->contenders * (int64_t)(sizeof(MODEL) + 3);
	w->zk.link_bytes_s = bytes * SECOND / b->transfer_ns;
	near(w, &w->zk.delay_max);
	near(w, &w->zk.lag_max);
	near(w, &w->zk.quorum_max);
	w->slow_ns = 2 * b->transfer_ns + w->timeout / 2;
	fakezk_operate(&w->zk, EFFECT_ZK_CREATE, SLICE("/locks"), (struct slice){ 0 });
	b->others = fakezk_session(&w->zk, CONTENDERS_TIMEOUT_NS);
	for (i = 0; i < b->names; i++)
		contend(w, i);
}

/* ---- the porters ---- */

static bool stopped(const struct host *h)
{
	return !h->broker || h->stopping || h->stopped_until > h->w->sched.now;
}

static void ask(struct host *h, int i, const char *first, const char *second)
{
	struct slice words[2] = { slice_of(first), slice_of(second) };
	struct event e = { .type = EVENT_CLIENT_ASKED, .conn = BALLAST_CONN };

	e.asked.argc = 2;
	e.asked.argv = words;
	h->porter.asking = true;
	h->porter.asked = i;
	host_handle(h, &e);
}

static void begin(struct host *h)
{
	struct event e = { .type = EVENT_CLIENT_CONNECTED, .conn = BALLAST_CONN };

	e.connected.pid = 1000 + BALLAST_CONN;
	e.connected.uid = BALLAST_CONN;
	e.connected.comm = SLICE("porter");
	h->porter.on = true;
	host_handle(h, &e);
	ask(h, -1, "HELLO", "3");
}

static void porter_thinks(void *host, uint64_t argument)
{
	struct host *h = host;
	struct world *w = h->w;
	char name[16];
	int i;

	(void)argument;
	sched_at(&w->sched, w->sched.now + SECOND / 4, porter_thinks, h, 0);
	if (stopped(h) || w->leaving)
		return;
	if (!h->porter.on)
		begin(h);
	for (i = 0; i < w->ballast.names && h->porter.on && !h->porter.asking; i++) {
		name_of(i, name);
		if (h->porter.wait[i] == BALLAST_HOLDING)
			ask(h, i, "UNLOCK", name);
		else if (h->porter.wait[i] == BALLAST_OFF && !w->ballast.still)
			ask(h, i, "ENQUEUE", name);
	}
}

/* A third party has ended its session: what it holds, or is granted yet, is proven until that is noticed. */
static bool is_evicted(const struct host *h)
{
	const struct zsession *s = h->zk->session;

	return s && s->evicted;
}

static bool holds(const struct host *h, int i)
{
	return h->broker && h->porter.wait[i] == BALLAST_HOLDING && host_proven_ns(h) > 0 && !is_evicted(h);
}

static void granted(struct host *h, int i)
{
	struct world *w = h->w;
	int o;

	if (i == w->ballast.freed)
		w->ballast.freed = -1;
	for (o = 0; o < w->host_count; o++)
		if (o != h->index && !is_evicted(h) && holds(&w->hosts[o], i))
			world_fail(w, -1, "x%d is granted to host %d while host %d holds it", i, h->index, o);
	h->porter.wait[i] = BALLAST_HOLDING;
}

void ballast_replied(struct host *h, struct slice reply)
{
	struct porter *p = &h->porter;

	p->asking = false;
	if (p->asked < 0)
		return;
	if (p->wait[p->asked] == BALLAST_HOLDING)
		p->wait[p->asked] = BALLAST_OFF;
	else if (answer_begins(reply, "+QUEUED"))
		p->wait[p->asked] = BALLAST_WAITING;
}

void ballast_pushed(struct host *h, struct slice push)
{
	const char *at = memmem(push.data, push.len, "\r\nx", 3);
	int i = at ? atoi(at + 3) : -1;

	if (i < 0 || i >= h->w->ballast.names)
		return;
	if (memmem(push.data, push.len, "granted\r\n", 9))
		granted(h, i);
	else
		h->porter.wait[i] = BALLAST_OFF;
}

void ballast_cut(struct host *h)
{
	h->porter = (struct porter){ .drops = h->porter.drops };
}

static void hang_up(struct host *h)
{
	if (!h->porter.on || !h->broker)
		return;
	ballast_cut(h);
	host_handle(h, &(struct event){ .type = EVENT_CLIENT_GONE, .conn = BALLAST_CONN });
}

/* Now and then one becomes free. */
static void others_let_go(void *world, uint64_t argument)
{
	struct world *w = world;

	(void)argument;
	if (w->quiet)
		return;
	if (w->zk.leader >= 0)
		free_one(w, (int)rng_below(&w->rng, (uint32_t)w->ballast.names));
	sched_at(&w->sched, w->sched.now + rng_between(&w->rng, SECOND, 5 * SECOND), others_let_go, w, 0);
}

void ballast_start(struct world *w)
{
	int i;

	if (!w->ballast.names)
		return;
	for (i = 0; i < w->host_count; i++)
		sched_at(&w->sched, w->sched.now + rng_between(&w->rng, 0, SECOND), porter_thinks, &w->hosts[i], 0);
	sched_at(&w->sched, w->sched.now + SECOND, others_let_go, w, 0);
}

/* ---- convergence ---- */

static bool is_safe(const struct host *h)
{
	struct session_view view;

	broker_session(h->broker, &view);
	return view.state == SESSION_SAFE;
}

void ballast_checked(struct host *h)
{
	const struct ballast *b = &h->w->ballast;

	if (!b->steady)
		return;
	if (!is_safe(h))
		world_fail(h->w, -1, "host %d: its link is slow and without fault, and its session is not proven",
			   h->index);
	if (h->porter.drops > DROPS_MAX)
		world_fail(h->w, -1,
			   "host %d: has given up %" PRId64 " connections, and nothing but a slow link ails it",
			   h->index, h->porter.drops);
}

static void begin_count(struct world *w)
{
	for (int i = 0; i < w->host_count; i++)
		w->hosts[i].porter.drops = 0;
}

static void run_until(struct world *w, int64_t until)
{
	while (sched_step(&w->sched, until))
		;
	w->sched.now = until;
}

static void wait_granted(struct world *w, int64_t until)
{
	while (w->ballast.freed >= 0) {
		if (!sched_step(&w->sched, until))
			world_fail(w, -1,
				   "x%d became free %" PRId64 " ms ago, and is not granted; to list all takes %" PRId64
				   " ms",
				   w->ballast.freed, (w->sched.now - w->ballast.freed_at) / MS,
				   w->ballast.transfer_ns / MS);
	}
}

/* One that the others have, if there is any left. */
static void free_any(struct world *w)
{
	struct ballast *b = &w->ballast;
	int first = (int)rng_below(&w->rng, (uint32_t)b->names), i;

	for (i = 0; i < b->names && b->freed < 0; i++)
		if (free_one(w, (first + i) % b->names))
			b->freed = (first + i) % b->names;
	b->freed_at = w->sched.now;
}

static void cut_all(struct world *w)
{
	TRACE(w, -1, "all connections are cut; to list all takes %lld ms", (long long)(w->ballast.transfer_ns / MS));
	for (int i = 0; i < w->host_count; i++)
		zhandle_drop(w->hosts[i].zk, rng_percent(&w->rng, 50));
}

/* No connection lasts for long enough to list all, and what has become free is found all the same. */
static void cut_often(struct world *w)
{
	struct ballast *b = &w->ballast;
	int cuts;

	b->steady = false;
	free_any(w);
	for (cuts = 0; b->freed >= 0; cuts++) {
		if (cuts == CUTS_MAX)
			world_fail(w, -1, "x%d became free %d connections ago, and is not granted", b->freed, cuts);
		cut_all(w);
		run_until(w, w->sched.now + b->transfer_ns / 3 + w->timeout / 4 + SECOND);
	}
	run_until(w, w->sched.now + w->slow_ns);
}

/* All connections are cut at once; one lock becomes free while the brokers find out what became of all. */
static void cut(struct world *w)
{
	struct ballast *b = &w->ballast;
	int64_t began = w->sched.now;

	begin_count(w);
	cut_all(w);
	run_until(w, began + w->timeout / 3);
	b->steady = true;
	run_until(w, began + w->timeout / 3 + rng_between(&w->rng, 0, b->transfer_ns));
	free_any(w);
	wait_granted(w, w->sched.now + b->transfer_ns + w->timeout / 3);
	run_until(w, began + 2 * b->transfer_ns + w->timeout / 2);
}

static int64_t bytes_heard(const struct host *h)
{
	return h->zk->conn ? h->zk->conn->down.bytes : 0;
}

/* Nothing happens: who waits looks now and then whether that is so, but does not list all for it. */
static void look_on(struct world *w)
{
	int64_t heard[HOSTS_MAX],
		most = w->zk.link_bytes_s * (w->ballast.transfer_ns / MS) / 1000 * LOOKS_PERCENT / 100;
	int i;

	w->ballast.still = true;
	run_until(w, w->sched.now + 3 * SECOND);
	begin_count(w);
	for (i = 0; i < w->host_count; i++)
		heard[i] = bytes_heard(&w->hosts[i]);
	run_until(w, w->sched.now + LOOKS_SECONDS * SECOND);
	for (i = 0; i < w->host_count; i++) {
		if (w->hosts[i].porter.drops)
			world_fail(w, -1, "host %d: has given up a connection although nothing has happened", i);
		if (bytes_heard(&w->hosts[i]) - heard[i] > most)
			world_fail(w, -1,
				   "host %d: has asked for %" PRId64 " bytes while nothing happened, %" PRId64
				   " are allowed",
				   i, bytes_heard(&w->hosts[i]) - heard[i], most);
	}
}

void ballast_converge(struct world *w)
{
	int i;

	if (!w->ballast.names)
		return;
	run_until(w, w->sched.now + w->slow_ns + w->timeout);
	cut_often(w);
	cut(w);
	look_on(w);
	for (i = 0; i < w->host_count; i++)
		hang_up(&w->hosts[i]);
	w->leaving = true;
	run_until(w, w->sched.now + w->slow_ns);
	w->leaving = w->ballast.steady = false;
	for (i = 0; i < w->host_count; i++)
		if (w->hosts[i].porter.drops)
			world_fail(w, -1, "host %d: has given up a connection because it let go of much at once", i);
}
