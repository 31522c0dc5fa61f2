/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A host's process is killed, and another one goes on from its ledger: at any moment, between two effects of an event, or
 * within the core, between two stores into the ledger. Of the connections some are kept, as by the keeper; the others are
 * cut, and what they held stays held until their process has surely ended, or until it cannot rely on that any longer.
 */
#include "world.h"

#include <inttypes.h>
#include <stdlib.h>

#include "anything.h"
#include "core/port/ledger.h"
#include "core/record.h"
#include "core/salvage.h"
#include "core/snapshot.h"
#include "core/state.h"

/* Of the seeds behind the first ones one in so many kills, whatever its mix: others than those that take snapshots. */
enum { FROM = 50, SHARE = 4, REST = 2, EVERY_MS = 3000, STORES_LOG = 6 };

enum { CHUNKS = 48, CHUNKS_FEW = 4 };

enum { GIVE_BACK_STEPS = 32, KEPT_BYTES = CHUNKS * LEDGER_CHUNK_BYTES };

static const int64_t TAKEN_AWAY_NS = 20 * SECOND;

static int64_t between(struct host *h, int64_t from, int64_t to)
{
	return rng_between(&h->w->kills.rng, from, to);
}

static bool percent(struct host *h, uint32_t percent)
{
	return rng_percent(&h->w->kills.rng, percent);
}

/* ---- the ledger ---- */

static void stored(void *host)
{
	struct host *h = host;

	if (h->kill.stores && --h->kill.stores == 0) {
		memcpy(h->memory_then, h->memory, h->memory_bytes);
		h->kill.stored = true;
	}
}

static void make_memory(struct host *h)
{
	h->memory_bytes = (h->w->kills.narrow ? CHUNKS_FEW : CHUNKS) * (size_t)LEDGER_CHUNK_BYTES;
	h->memory = aligned_alloc(64, h->memory_bytes);
	h->memory_then = aligned_alloc(64, h->memory_bytes);
	if (!h->memory || !h->memory_then)
		abort();
}

/* What the ledger before had there stays, but for the head and the words of the chunks: nothing else has to be 0. */
static void clear_memory(struct host *h)
{
	char *memory = h->memory;

	memset(memory, 0, LEDGER_CHUNK_BYTES);
	for (size_t at = LEDGER_CHUNK_BYTES; at < h->memory_bytes; at += LEDGER_CHUNK_BYTES)
		memset(memory + at, 0, sizeof(uint64_t));
}

void kills_record(struct host *h)
{
	ledger_free(h->ledger);
	h->ledger = NULL;
	if (!h->w->kills.every_ms)
		return;
	if (!h->memory)
		make_memory(h);
	clear_memory(h);
	h->ledger = ledger_new(h->memory, h->memory_bytes);
	ledger_stored = stored;
	h->ledger->arg = h;
	broker_record(h->broker, h->ledger);
}

void kills_free(struct host *h)
{
	ledger_free(h->ledger);
	free(h->memory);
	free(h->memory_then);
	h->ledger = NULL;
	h->memory = h->memory_then = NULL;
}

/* ---- who is kept ---- */

/* A mark of the connection says: something was under way. */
static bool is_marked(const struct host *h, uint32_t conn)
{
	const struct caller *c = &h->clients[conn];
	const struct any_peer *p;

	if (h->w->any) {
		p = &any_of(h)->peers[conn];
		return !p->on || p->asking || p->half || p->closing || p->going || p->revoke_bytes;
	}
	return c->state != CLIENT_ON || c->asking || c->queued || c->half_closed || c->going;
}

/* A connection that has not held anything for long is not kept yet. */
static void choose(struct host *h, const struct ledger_view *v)
{
	salvage_may_continue(v, h->kept, host_conns(h));
	for (uint32_t i = 0; i < host_conns(h); i++)
		h->kept[i] = !h->ghosts[i].on && !is_marked(h, i) && h->kept[i] && percent(h, 80);
}

static void cut(struct host *h, uint32_t conn)
{
	if (h->w->any)
		any_cut_one(h, conn);
	else
		caller_cut(&h->clients[conn]);
}

/* What a process believes to have told was told, also by the one before it. */
void kills_check_told(struct host *h)
{
	for (int i = 0; i < h->client_count; i++) {
		struct caller *c = &h->clients[i];
		const struct client *client;

		if (c->state != CLIENT_ON)
			continue;
		client = h->broker->locks.conns[c->conn];
		if (!client->is_holder)
			c->jeopardy = false;
		else if (c->protocol == 3 && client->told_jeopardy && !c->jeopardy)
			world_fail(h->w, -1, "host %d client %u: nobody has told it that the session is in jeopardy", h->index,
				   c->conn);
		else if (c->protocol == 3 && !client->told_jeopardy && !client->session_notification && c->jeopardy)
			world_fail(h->w, -1, "host %d client %u: nobody has told it that the session is safe again", h->index,
				   c->conn);
	}
}

/* ---- the next life ---- */

/* It may have been taken by force, and nobody has heard of that. */
static void check_permits(struct host *h, struct caller *c, const struct client *client)
{
	const struct lock *l = lock_find(&h->broker->locks, SLICE("sem"));
	const struct grant *g = l ? grant_find(l, client) : NULL;

	if (c->permits.lost && !c->permits.pushed && !c->permits.by_lease && g && !g->lost)
		c->permits.lost = false;
	if (!permits_valid(c))
		return;
	if (h->w->permit_forces && g && g->lost)
		c->permits.lost = true;
	else if (!h->permits_vague && (!g || g->lost || g->depth != c->permits.count))
		world_fail(h->w, -1, "host %d client %u: had %" PRId64 " permits when its broker was killed, and has %" PRId64,
			   h->index, c->conn, c->permits.count, g && !g->lost ? g->depth : 0);
}

static void check_kept(struct host *h, struct caller *c)
{
	const struct client *client = h->broker->locks.conns[c->conn];
	struct world *w = h->w;

	h->holds[c->conn] = client->is_holder && !h->conf.standalone;
	check_permits(h, c, client);
	c->permits.cut_short = c->permits.lost;
	for (int lock = 0; lock < w->lock_count; lock++)
		c->holding[lock].cut_short = c->holding[lock].lost;
	for (int lock = 0; lock < w->lock_count; lock++) {
		struct holding *held = &c->holding[lock];
		const struct lock *l = lock_find(&h->broker->locks, slice_of(w->lock_name[lock]));
		const struct grant *g = l ? grant_find(l, client) : NULL;

		held->cut_short |= w->forces[lock] && g && g->lost; /* and not by its lease, which may be over by now */
		/* The process had no time to learn that its session was over. */
		if (held->held && held->lost && !held->pushed && !held->by_lease && g && !g->lost)
			held->lost = held->cut_short = false;
		if (!check_grant_valid(c, lock) || held->lease_until <= w->sched.now || check_is_meddled(w, held->token))
			continue;
		if (w->forces[lock] && g && g->lost) {
			held->lost = true;
			continue;
		}
		if (!g || g->lost || g->token != held->token || g->depth != held->depth ||
		    (g->mode == MODE_SHARED) != held->shared)
			world_fail(w, lock, "host %d client %u: held %s with token %" PRId64 " when its broker was killed, and does "
				   "not any longer", h->index, c->conn, w->lock_name[lock], held->token);
	}
}

static void check_all_kept(struct host *h)
{
	memset(h->holds, 0, sizeof(h->holds));
	for (int lock = 0; lock < h->w->lock_count; lock++)
		if (h->w->forces[lock])
			ghosts_forget(h, lock);
	for (uint32_t i = 0; i < host_conns(h); i++) {
		if (h->ghosts[i].on)
			h->holds[i] = h->broker->locks.conns[i]->is_holder && !h->conf.standalone;
		else if (h->kept[i] && !h->w->any)
			check_kept(h, &h->clients[i]);
	}
}

static struct broker *salvaged(struct host *h, int64_t session)
{
	struct bytes text = { 0 }, why = { 0 };
	struct ledger_view *v = ledger_view_new(h->memory, h->memory_bytes, &why);
	struct salvage s = {
		.conf = &h->told[h->turn],
		.ledger = v,
		.session = session,
		.timeout_ns = h->w->timeout,
		.safe_until_ns = h->frozen_until ? h->frozen_until : INT64_MIN,
		.back = h->kept,
		.back_count = host_conns(h),
		.seed = rng_next(&h->w->kills.rng),
		.now_ns = host_now(h),
	};
	struct broker *b = salvage(&s, &text, &why) ? broker_restore(s.conf, bytes_view(&text), s.now_ns, &why) : NULL;

	if (!b)
		world_fail(h->w, -1, "host %d: its ledger is refused: %.*s", h->index, (int)why.len, why.data);
	ledger_view_free(v);
	bytes_free(&text);
	bytes_free(&why);
	return b;
}

/* The session that can be continued; one that cannot is left as by any process that ends. */
static int64_t session_of(struct host *h)
{
	struct bytes why = { 0 };
	struct ledger_view *v = ledger_view_new(h->memory, h->memory_bytes, &why);
	int64_t session = salvage_session(v, h->session);

	if (!session)
		saved_leave_session(h);
	ledger_view_free(v);
	bytes_free(&why);
	return session;
}

static void revive(void *host, uint64_t life)
{
	struct host *h = host;
	int64_t session;

	if (life != h->life || !h->crashed)
		return;
	if (h->stopped_until > h->w->sched.now + 1) {
		sched_at(&h->w->sched, h->stopped_until - 1, revive, h, life);
		return;
	}
	session = session_of(h);
	delegations_page(h, true);
	saved_formers(h);
	h->told[h->turn].limits = h->conf.limits; /* they may have changed while nobody ran */
	h->told[h->turn].formers = h->conf.formers;
	h->told[h->turn].former_count = h->conf.former_count;
	TRACE(h->w, -1, "host %d: another process goes on, session %" PRIx64, h->index, (uint64_t)session);
	h->broker = salvaged(h, session);
	h->crashed = false;
	ghosts_find(h);
	delegations_resume(h);
	check_all_kept(h);
	if (h->w->any)
		any_revived(h);
	kills_record(h);
	host_goes_on(h);
	if (session)
		zhandle_resume(h->zk, session);
	h->w->stats->kills++;
	any_rules_restored(h);
	host_handle(h, &(struct event){ .type = EVENT_TIME });
	for (uint32_t i = 0; !h->w->any && i < host_conns(h); i++)
		if (!h->kept[i])
			caller_begin(&h->clients[i]);
}

/* ---- while nobody is there ---- */

static void take_away(void *world, uint64_t lock)
{
	struct world *w = world;
	struct slice path = { w->lock_path[lock], w->lock_path_len[lock] };
	struct znode *dir = fakezk_find(&w->zk, path, FAKEZK_TRUTH), *n;

	if (w->zk.leader < 0) {
		sched_at(&w->sched, w->sched.now + SECOND, take_away, w, lock);
		return;
	}
	if (dir)
		TAILQ_FOREACH(n, &dir->children, sibling)
			if (n->view[FAKEZK_TRUTH].exists && !n->session)
				fakezk_operate(&w->zk, EFFECT_ZK_DELETE, (struct slice){ n->path, n->len }, (struct slice){ 0 });
}

/* Somebody puts another znode of the same name into the place of one that a grant rests on. */
static void replace_znode(struct host *h, int lock, int64_t czxid)
{
	struct world *w = h->w;
	struct slice path = { w->lock_path[lock], w->lock_path_len[lock] };
	struct znode *dir = fakezk_find(&w->zk, path, FAKEZK_TRUTH), *n;
	struct bytes name = { 0 };

	if (!dir || w->zk.leader < 0)
		return;
	TAILQ_FOREACH(n, &dir->children, sibling)
		if (n->view[FAKEZK_TRUTH].exists && n->czxid == czxid)
			break;
	if (!n)
		return;
	bytes_append(&name, n->path, n->len);
	TRACE(w, lock, "%s is another one's from now on", n->path);
	w->replaced[w->replaced_count++ % REPLACED_MAX] = czxid;
	fakezk_operate(&w->zk, EFFECT_ZK_DELETE, bytes_view(&name), (struct slice){ 0 });
	fakezk_operate(&w->zk, EFFECT_ZK_CREATE, bytes_view(&name), (struct slice){ 0 });
	bytes_free(&name);
	sched_at(&w->sched, w->sched.now + TAKEN_AWAY_NS, take_away, w, (uint64_t)lock);
	/* Until then it may stand before everybody. */
	if (w->last_fault < w->sched.now + TAKEN_AWAY_NS + 2 * SECOND)
		w->last_fault = w->sched.now + TAKEN_AWAY_NS + 2 * SECOND;
}

static void meddle(struct host *h)
{
	struct world *w = h->w;

	if (w->any || h->conf.standalone || !percent(h, 8))
		return;
	for (int i = 0; i < h->client_count; i++)
		for (int lock = 0; lock < w->lock_count; lock++)
			if (check_grant_valid(&h->clients[i], lock)) {
				replace_znode(h, lock, h->clients[i].holding[lock].token >> 10);
				return;
			}
}

/* Nothing is granted on a znode of the killed process before it was looked at. */
void kills_check_grant(struct world *w, const struct host *h, int lock, int64_t token)
{
	for (size_t i = 0; i < w->replaced_count && i < REPLACED_MAX; i++)
		if (w->replaced[i] == token >> 10)
			world_fail(w, lock, "host %d: granted %s on a znode that was replaced while its broker was dead", h->index,
				   w->lock_name[lock]);
}

/* ---- the end of a life ---- */

static void crash(struct host *h)
{
	struct bytes why = { 0 };
	struct world *w = h->w;
	struct ledger_view *v;
	int64_t down;

	h->dying = false;
	if (h->kill.stored)
		memcpy(h->memory, h->memory_then, h->memory_bytes);
	h->kill = (struct kill){ 0 };
	v = ledger_view_new(h->memory, h->memory_bytes, &why);
	if (!v && !w->kills.narrow)
		world_fail(w, -1, "host %d: its ledger cannot be read: %.*s", h->index, (int)why.len, why.data);
	bytes_free(&why);
	if (!v) {
		host_die(h, false);
		return;
	}
	choose(h, v);
	ledger_view_free(v);
	h->frozen_until = h->conf.standalone ? INT64_MAX : h->saved_until;
	for (uint32_t i = 0; i < host_conns(h); i++) {
		if (h->kept[i])
			continue;
		ghost_leave(h, i);
		cut(h, i);
	}
	TRACE(w, -1, "host %d: the process is killed", h->index);
	for (int lock = 0; lock < w->lock_count; lock++)
		check_forget_last(h, lock);
	broker_free(h->broker);
	ledger_free(h->ledger);
	h->ledger = NULL;
	h->broker = NULL;
	h->crashed = true;
	h->life++;
	meddle(h);
	zhandle_close(h->zk, false);
	down = percent(h, 80) ? between(h, MS, 300 * MS) : between(h, MS, 3 * w->timeout / 2);
	if (h->stopped_until < w->sched.now + down)
		h->stopped_until = w->sched.now + down;
	if (w->last_fault < h->stopped_until + 2 * w->timeout)
		w->last_fault = h->stopped_until + 2 * w->timeout;
	sched_at(&w->sched, h->stopped_until - 1, revive, h, h->life);
}

static void crash_due(void *host, uint64_t life)
{
	struct host *h = host;

	if (life == h->life && h->broker && h->dying)
		crash(h);
}

/*
 * Now and then the ledger gives back what no record is in. What is there then is anybody's, but for the words of the chunks;
 * and it is there again at once.
 */
static void give_back(struct host *h)
{
	size_t bytes;
	void *memory;

	if (!h->ledger || h->w->sched.steps % GIVE_BACK_STEPS)
		return;
	ledger_shrink_begin(h->ledger);
	while (ledger_shrink(h->ledger, KEPT_BYTES, &memory, &bytes)) {
		for (size_t at = 0; at < bytes; at += LEDGER_CHUNK_BYTES)
			memset((char *)memory + at + sizeof(uint64_t), 0xa5, LEDGER_CHUNK_BYTES - sizeof(uint64_t));
		if (bytes)
			ledger_add(h->ledger, memory, bytes);
	}
}

/* In percent: the ends of sessions and connections, and answers before the first proof in this life, change a lot. */
static uint32_t likely(const struct host *h, const struct event *e)
{
	const struct session *s = &h->broker->ensemble.session;

	if (e->type == EVENT_ZK_EXPIRED)
		return 40;
	if (e->type == EVENT_ZK_SUSPENDED)
		return 20;
	return e->type == EVENT_ZK_ANSWERED && e->zk_answered.code <= ZK_BADVERSION && s->state == SESSION_NONE && s->id ? 8 : 0;
}

/* What stood in the file before the event. */
void kills_before(struct host *h, const struct event *e)
{
	give_back(h);
	if (h->ledger && h->w->kills.every_ms && !h->w->quiet && !h->stopping && !h->kill.armed && !h->kill.off &&
	    percent(h, likely(h, e)))
		h->kill = (struct kill){ .armed = true, .within = true };
	h->kill.session = h->session;
	h->kill.safe_until = h->safe_until;
	h->kill.saved_until = h->saved_until;
	if (h->kill.armed && h->kill.skip-- == 0 && h->kill.within)
		h->kill.stores = 1 + (int)rng_below(&h->w->kills.rng, 1U << rng_below(&h->w->kills.rng, STORES_LOG));
}

/* What the core proves is in the file before the first effect. */
size_t kills_carried(struct host *h)
{
	int64_t safe = broker_safe_until(h->broker);
	size_t count = h->effects.count;

	if (!h->kill.armed || h->kill.skip >= 0 || h->stopping)
		return count;
	h->dying = true;
	if (h->kill.stored) {
		h->session = h->kill.session;
		h->safe_until = h->kill.safe_until;
		h->saved_until = h->kill.saved_until;
		count = 0;
	} else {
		if (safe != INT64_MIN && safe > h->saved_until)
			h->safe_until = h->saved_until = safe;
		count = rng_below(&h->w->kills.rng, (uint32_t)count + 1);
	}
	TRACE(h->w, -1, "host %d is killed %s: %zu of %zu effects are carried out", h->index,
	      h->kill.stored ? "in the core" : "between two effects", count, h->effects.count);
	sched_at(&h->w->sched, h->w->sched.now, crash_due, h, h->life);
	return count;
}

static void due(void *world, uint64_t argument)
{
	struct world *w = world;
	struct host *h = &w->hosts[rng_below(&w->kills.rng, (uint32_t)w->host_count)];

	(void)argument;
	if (h->broker && !h->stopping && !h->dying && !h->kill.armed && h->ledger) {
		if (percent(h, 20))
			crash(h);
		else
			h->kill = (struct kill){ .armed = true, .skip = (int)between(h, 0, 6), .within = percent(h, 50) };
	}
	kills_start(w);
}

void kills_start(struct world *w)
{
	int64_t mean = w->kills.every_ms * MS, from = w->leap_until > w->sched.now ? w->leap_until : w->sched.now;

	if (mean && !w->quiet)
		sched_at(&w->sched, from + rng_between(&w->kills.rng, 1, 2 * mean), due, w, 0);
}

void kills_init(struct world *w)
{
	w->kills.rng.state = w->seed * 0xaf251af3b0f025b5u + 13; /* all else is what it is without */
	w->kills.every_ms = w->mix->kill_every_ms;
	/* The traces of the first seeds are recorded without (golden.py). */
	if (!w->kills.every_ms && w->seed > FROM && w->seed % SHARE == REST && !w->ballast.names)
		w->kills.every_ms = EVERY_MS;
	w->kills.narrow = rng_percent(&w->kills.rng, 5);
}
