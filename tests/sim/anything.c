/* SPDX-License-Identifier: Apache-2.0 */
/* The clients of the mixes "anything" (anything.h), and what they do. */
#include "anything.h"

#include <stdlib.h>

#include "core/client/notify.h"

enum { WORDS_MAX = 12, NAMES_SHARE = 4 /* of the worlds, one in so many: new names are limited */ };
enum { LEAP_SHARE = 16 /* of the acts, one in so many is followed by a long pause, if there are any */ };
enum { WAITS_SHARE = 4 /* in one of so many seeds long waits are logged */ };
enum { LASTING_SHARE = 8 /* in one of so many seeds the first host may make no lasting directory */ };

const char *const any_names[ANY_NAMES] = { "a", "b", "m/x", "k/y", "s", "\xc3\xb6/." };

struct any_host *any_of(const struct host *h)
{
	return &h->w->any->hosts[h->index];
}

uint32_t any_conn_of(const struct host *h, int64_t pid)
{
	return (uint32_t)(pid - 1000 - 100 * h->index);
}

int any_name_of(struct slice name)
{
	for (int i = 0; i < ANY_NAMES; i++)
		if (slice_eq(name, slice_of(any_names[i])))
			return i;
	return -1;
}

/* ---- what happens to them ---- */

static void gone_due(void *peer, uint64_t life)
{
	struct any_peer *p = peer;
	struct host *h = p->host;

	if (p->life != life || !p->on || !h->broker)
		return;
	if (h->stopped_until > h->w->sched.now) {
		sched_at(&h->w->sched, h->stopped_until, gone_due, p, life);
		return;
	}
	p->on = p->asking = p->closing = p->half = false;
	p->life++;
	/* Deadlines come before the event: what is for it is on its way to nobody. */
	p->going = true;
	host_handle(h, &(struct event){ .type = EVENT_CLIENT_GONE, .conn = p->conn });
	p->going = false;
	if (h->w->seed % 2 && (h->w->leaving || rng_percent(&h->w->rng, 50)))
		any_process_end(h, p->conn);
}

void any_cut_one(struct host *h, uint32_t conn)
{
	struct any_peer *p = &any_of(h)->peers[conn];

	p->replied = p->replied || p->asking; /* what it asked for may have been done, and is seen at the next look */
	p->on = p->asking = p->closing = p->half = false;
	p->life++;
}

void any_cut(struct host *h)
{
	struct any_host *a = any_of(h);

	for (int i = 0; i < a->peer_count; i++)
		any_cut_one(h, (uint32_t)i);
	any_forget_log(h);
	a->named_ns = 0;
	values_forget(h);
}

void any_revived(struct host *h)
{
	any_forget_log(h);
	any_of(h)->begun = any_count_grants(h) - (int64_t)h->broker->env.stats.grants_total;
}

static void written_due(void *peer, uint64_t life)
{
	struct any_peer *p = peer;
	struct host *h = p->host;

	if (p->life != life || !p->on || !h->broker)
		return;
	p->revoke_bytes = 0;
	host_handle(h, &(struct event){ .type = EVENT_CLIENT_WRITTEN, .conn = p->conn });
	if (p->on && notify_unresponsive(h->broker->locks.conns[p->conn]))
		world_fail(h->w, -1, "host %d client %u: it reads, and is not asked to let go", h->index, p->conn);
}

/* Some read late. A daemon that stops tells all at once, and HELLO what was kept. */
static void revoked(struct any_peer *p, const struct effect *e, struct slice text)
{
	struct host *h = p->host;
	struct world *w = h->w;

	if (!h->broker->env.stopping && p->command != COMMAND_HELLO && p->revoke_bytes > h->conf.limits.output_bytes / 4)
		world_fail(w, -1, "host %d client %u: asked to let go, and %zu bytes of that are unread", h->index, p->conn,
			   p->revoke_bytes);
	p->revoke_bytes += text.len;
	if (e->report)
		sched_at(&w->sched, w->sched.now + rng_between(&w->rng, 0, 5 * SECOND), written_due, p, p->life);
}

void any_effect(struct host *h, const struct effect *e, struct slice text)
{
	struct any_host *a = any_of(h);
	struct any_peer *p = &a->peers[e->conn];

	if (e->conn < (uint32_t)a->peer_count && p->going && e->type != EFFECT_CLOSE)
		return;
	if (e->conn >= (uint32_t)a->peer_count || !p->on)
		world_fail(h->w, -1, "host %d: an effect names connection %u, which is not there", h->index, e->conn);
	if (e->type == EFFECT_CLOSE) {
		p->closing = true;
		sched_at(&h->w->sched, h->w->sched.now + rng_between(&h->w->rng, 0, MS), gone_due, p, p->life);
	} else if (e->type == EFFECT_REPLY) {
		any_check_reply(p, text);
	} else {
		any_check_push(p, text);
		if (memmem(text.data, text.len, "$6\r\nrevoke\r\n", 12))
			revoked(p, e, text);
	}
}

void any_deleted(struct world *w, const struct znode *n)
{
	w->any->gone[w->any->gone_count++ % ANY_GONE] = n->czxid;
}

/* ---- what they do ---- */

static void ask(struct any_peer *p)
{
	struct host *h = p->host;
	struct slice words[WORDS_MAX];
	struct event e = { .type = EVENT_CLIENT_ASKED, .conn = p->conn, .asked.argv = words };

	e.asked.argc = pages_words(p, words, any_words(p, words, WORDS_MAX), WORDS_MAX);
	p->asking = true;
	p->command = any_of(h)->asked = command_find(words[0]);
	p->asked_at = h->w->sched.now;
	h->w->stats->requests++;
	values_asking(p, words, e.asked.argc);
	any_check_asking(p, words, e.asked.argc);
	host_handle(h, &e);
	if (p->half && p->asking && p->on)
		host_handle(h, &(struct event){ .type = EVENT_CLIENT_HALF_CLOSED, .conn = p->conn });
}

static void connect_peer(struct any_peer *p)
{
	struct event e = { .type = EVENT_CLIENT_CONNECTED, .conn = p->conn };

	*p = (struct any_peer){ .host = p->host, .conn = p->conn, .on = true, .version = 2, .life = p->life,
				.page_turn = p->page_turn };
	e.connected.pid = 1000 + p->conn;
	e.connected.uid = p->conn % 3;
	e.connected.privileged = p->conn % 3 < 2;
	e.connected.started = any_process_begin(p->host, p->conn);
	e.connected.comm = SLICE("any");
	any_rules_connect(p, &e);
	host_handle(p->host, &e);
}

/* What comes now comes in the same turn as what should have happened before. */
static bool is_late(const struct host *h)
{
	return h->timer_at <= host_now(h);
}

static void act(struct any_peer *p)
{
	struct world *w = p->host->w;

	if (!p->on) {
		if (!w->leaving && !p->host->ghosts[p->conn].on)
			connect_peer(p);
		else if (w->leaving)
			any_process_end(p->host, p->conn);
	} else if (w->leaving || rng_percent(&w->rng, is_late(p->host) ? 20 : 2)) {
		gone_due(p, p->life);
	} else if (rng_below(&w->rng, 200) == 0) {
		p->half = true;
		if (p->asking)
			host_handle(p->host, &(struct event){ .type = EVENT_CLIENT_HALF_CLOSED, .conn = p->conn });
	} else if (!p->asking && !p->closing && !pages_turn(p)) {
		ask(p);
	}
}

static int64_t until_next(struct world *w)
{
	if (w->leaps && rng_below(&w->rng, LEAP_SHARE) == 0) {
		int64_t leap = rng_between(&w->rng, 0, 2 * w->timeout);

		w->leap_until = w->sched.now + leap;
		return leap;
	}
	return rng_between(&w->rng, 0, (w->quiet ? 200 : 30) * MS / w->host_count);
}

static void act_due(void *world, uint64_t argument)
{
	struct world *w = world;
	struct host *h = &w->hosts[rng_below(&w->rng, (uint32_t)w->host_count)];
	struct any_host *a = any_of(h);

	if (h->broker && h->stopped_until <= w->sched.now)
		act(&a->peers[rng_below(&w->rng, (uint32_t)a->peer_count)]);
	sched_at(&w->sched, w->sched.now + until_next(w), act_due, w, argument);
}

/* ---- a run ---- */

static struct broker_limits limits_choose(struct rng *r)
{
	static const uint32_t by_unit[] = { 2 };
	bool few = rng_percent(r, 30);

	return (struct broker_limits){
		.clients = 100,
		.locks = few ? 4 : 100,
		.requests_per_lock = few ? 3 : 100,
		.requests_per_client = few ? 3 : 100,
		.requests = few ? 8 : 100,
		.grants_per_client = few ? 4 : 100,
		.grants = few ? 10 : 100,
		.observers = few ? 4 : 100,
		.memory_bytes = few ? 4000 : 1 << 20,
		.user_share = few ? 60 : 90,
		.by_unit = by_unit,
		.by_unit_count = few,
		.events_per_client = rng_percent(r, 30) ? 1 + rng_below(r, 4) : 100,
		.output_bytes = rng_percent(r, 30) ? 400 : 1 << 20,
		.session_path_bytes = few ? 1200 : 100000,
		.lasting_directories = 100,
	};
}

static void host_init(struct host *h)
{
	static const int64_t lingers[] = { 0, 100 * MS, 10 * SECOND };
	struct any_host *a = any_of(h);
	struct rng *r = &h->w->rng;

	h->client_count = 0;
	h->conf.linger_ns = lingers[rng_below(r, 3)];
	h->conf.handoff_ns = h->conf.try_ns = 100 * MS;
	h->conf.log_level = h->w->seed % 2 == 0 ? EFFECT_LEVEL_DEBUG : EFFECT_LEVEL_INFO;
	if (h->w->seed % WAITS_SHARE == 0)
		h->conf.long_wait_ns = (1 + (int64_t)(h->w->seed / WAITS_SHARE % 4)) * 100 * MS;
	/* Then a proven session is mostly too old to grant. */
	if (h->w->seed % 8 == 5)
		h->conf.grant_min_ns = h->conf.session_timeout_ns / 3 - MS;
	h->conf.limits = limits_choose(r);
	h->conf.delegation = pages_on(h->w);
	if (h->w->seed % NAMES_SHARE == 1) {
		h->conf.limits.new_names = 2;
		h->conf.limits.new_names_per_s = 1;
	}
	if (h->w->seed % LASTING_SHARE == 1 && h->index == 0)
		h->conf.limits.lasting_directories = 0;
	a->peer_count = (int)rng_between(r, 2, ANY_PEERS);
	for (int i = 0; i < a->peer_count; i++)
		a->peers[i] = (struct any_peer){ .host = h, .conn = (uint32_t)i };
	any_rules_init(h);
}

void any_init(struct world *w)
{
	w->any = calloc(1, sizeof(*w->any));
	if (!w->any)
		abort();
	/* So long that a lock is released and granted elsewhere before a server knows, and that a write is still answered. */
	if (w->seed % 4 == 3)
		w->zk.lag_max = w->timeout / 24;
	w->any->forces = rng_percent(&w->rng, 30);
	w->fault_every_ms = rng_percent(&w->rng, 70) ? rng_between(&w->rng, 100, 10000) : 0;
	w->lock_count = 0;
	w->check_every = 1;
	for (int i = 0; i < w->host_count; i++)
		host_init(&w->hosts[i]);
}

void any_start(struct world *w)
{
	act_due(w, 0);
	if (w->any->forces && !w->mix->standalone && rng_percent(&w->rng, 60))
		any_meddle(w);
}

void any_hang_up(struct world *w)
{
	w->leaving = true;
	for (int i = 0; i < w->host_count; i++) {
		struct host *h = &w->hosts[i];

		for (int k = 0; k < any_of(h)->peer_count && h->broker && !h->dying && h->stopped_until <= w->sched.now; k++) {
			gone_due(&any_of(h)->peers[k], any_of(h)->peers[k].life);
			if (h->broker && !h->dying && !h->ghosts[k].on && broker_has_client(h->broker, (uint32_t)k))
				world_fail(w, -1, "host %d client %d has hung up, and is still there", i, k);
		}
	}
}

void any_free(struct world *w)
{
	for (int i = 0; w->any && i < w->host_count; i++)
		any_rules_free(&w->hosts[i]);
	free(w->any);
}
