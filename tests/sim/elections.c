/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Some of the locks are elections. To the model a leadership is an exclusive grant without levels or lease; this file
 * has the requests and answers that differ, what observers learn, and what must hold in the truth.
 */
#include "world.h"

#include "core/znode/record.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { LOOK_EVERY_NS = 3000000000 };

static const int64_t WITHIN = 6 * SECOND;

/* Chosen without the run's random numbers: the rest of it is what it would be. */
void elections_init(struct world *w)
{
	int i;

	for (i = 0; i < w->lock_count; i++)
		w->election[i] = !w->mix->steps && !w->mix->restore_every_ms &&
				 (w->seed * 0x9e3779b97f4a7c15u >> (40 + i * 4)) % 8 == 0;
}

/* Small limits are for locks: what is observed would use them up for good. */
static bool may_observe(const struct caller *c, int lock)
{
	return c->conn % 2 == 1 && c->host->conf.limits.locks > LOCKS_MAX && !c->watching[lock].asked;
}

struct ask elections_turn(struct caller *c, struct ask a)
{
	struct watching *o = &c->watching[a.lock];

	if (!c->host->w->election[a.lock] || a.several || a.permits)
		return a;
	a.shared = false;
	switch ((int)a.command) {
	case COMMAND_LOCK:
	case COMMAND_ENQUEUE:
		a.lease_ms = 0;
		if (!may_observe(c, a.lock))
			break;
		a.command = COMMAND_OBSERVE;
		o->asked = true;
		break;
	case COMMAND_DOWNGRADE:
		a.command = COMMAND_UNLOCK;
		break;
	case COMMAND_RENEW:
		a.command = COMMAND_VALID;
		a.token = a.lease_ms = 0;
		break;
	case COMMAND_HOLDERS:
	case COMMAND_WHY:
		a.command = COMMAND_LEADER;
		break;
	case COMMAND_INFO:
		if (!o->asked || c->host->w->quiet)
			break;
		a.command = COMMAND_UNOBSERVE;
		o->asked = false;
		break;
	}
	if (a.command == COMMAND_UNLOCK)
		a.token = 0;
	return a;
}

size_t elections_words(const struct caller *c, const struct ask *a, struct slice *words, char *buffer)
{
	char *number = buffer + sprintf(buffer, "h%dc%u", c->host->index, c->conn) + 1;
	size_t n = 0;

	if (a->command == COMMAND_UNLOCK) {
		words[n++] = SLICE("RESIGN");
		words[n++] = slice_of(c->host->w->lock_name[a->lock]);
		return n;
	}
	words[n++] = SLICE("CAMPAIGN");
	words[n++] = slice_of(c->host->w->lock_name[a->lock]);
	words[n++] = SLICE("DATA");
	words[n++] = slice_of(buffer);
	if (a->wait_ms >= 0) {
		sprintf(number, "%" PRId64, a->wait_ms);
		words[n++] = SLICE("WAIT");
		words[n++] = slice_of(number);
	}
	if (a->command == COMMAND_ENQUEUE)
		words[n++] = SLICE("ENQUEUE");
	return n;
}

/* ---- the truth ---- */

static const struct znode *first_of(struct world *w, int lock, int64_t czxid)
{
	struct slice path = { w->lock_path[lock], w->lock_path_len[lock] };
	const struct znode *dir = fakezk_find(&w->zk, path, FAKEZK_TRUTH), *n;

	if (dir)
		TAILQ_FOREACH(n, &dir->children, sibling)
			if (n->view[FAKEZK_TRUTH].exists && (!czxid || n->czxid == czxid))
				return n;
	return NULL;
}

static struct slice data_of(const struct znode *n)
{
	const struct zdata *d = n->view[FAKEZK_TRUTH].data;

	return d ? (struct slice){ d->bytes, d->len } : (struct slice){ 0 };
}

static int64_t leads(const struct znode *n)
{
	struct slice token = record_get(data_of(n), "token");

	return slice_eq(record_get(data_of(n), "leader"), SLICE("1")) && token.len ? strtoll(token.data, NULL, 10) : 0;
}

static bool carries(struct slice data, const struct caller *c)
{
	char own[32];

	snprintf(own, sizeof(own), "h%dc%u", c->host->index, c->conn);
	return slice_eq(data, slice_of(own));
}

/* Who is told that it leads is what everybody can read by now. */
void elections_check_told(struct caller *c, int lock, int64_t token)
{
	struct world *w = c->host->w;
	const struct znode *n;

	if (!w->election[lock] || c->host->conf.standalone || check_is_meddled(w, token))
		return;
	n = first_of(w, lock, token >> 10);
	if (n && slice_eq(data_of(n), SLICE("meddled")))
		return;
	if (!n || leads(n) != token || !carries(record_get(data_of(n), "data"), c))
		world_fail(w, lock, "host %d client %u: told that it leads %s with %" PRId64 ", and its znode says %.*s",
			   c->host->index, c->conn, w->lock_name[lock], token, n ? (int)data_of(n).len : 0,
			   n ? data_of(n).data : "");
}

/* ---- answers ---- */

void elections_resigned(struct caller *c, const struct ask *a, int64_t answer)
{
	struct world *w = c->host->w;
	struct holding *g = &c->holding[a->lock];
	struct wait *wait = &c->wait[a->lock];

	if (answer == 1 ? !g->held || g->lost : answer != 0 || !wait->on)
		world_fail(w, a->lock, "host %d client %u: RESIGN %s: %" PRId64, c->host->index, c->conn, w->lock_name[a->lock],
			   answer);
	if (answer == 1)
		*g = (struct holding){ 0 };
	else
		wait->on = false;
}

static bool begins(struct slice reply, const char *text)
{
	return reply.len >= strlen(text) && memcmp(reply.data, text, strlen(text)) == 0;
}

/* LEADER, OBSERVE, UNOBSERVE. */
void elections_answered(struct caller *c, const struct ask *a, struct slice reply)
{
	struct watching *o = &c->watching[a->lock];
	bool nobody = begins(reply, "$-1") || begins(reply, "_");

	if (a->command == COMMAND_LEADER && !nobody && !begins(reply, "*20") && !begins(reply, "%10") &&
	    !begins(reply, "-UNAVAILABLE") && !begins(reply, "-MISMATCH"))
		world_fail(c->host->w, a->lock, "host %d client %u: LEADER: %.*s", c->host->index, c->conn, (int)reply.len,
			   reply.data);
	if (a->command == COMMAND_LEADER && nobody && c->holding[a->lock].held && !c->holding[a->lock].lost &&
	    !holding_unsure(&c->holding[a->lock]))
		world_fail(c->host->w, a->lock, "host %d client %u: it leads, and LEADER knows nobody", c->host->index, c->conn);
	if (a->command == COMMAND_OBSERVE && begins(reply, "+OK") && !o->on)
		*o = (struct watching){ .on = true, .asked = true, .since = c->host->w->sched.now };
	if (a->command == COMMAND_UNOBSERVE)
		*o = (struct watching){ 0 };
}

bool elections_overwritten(const struct world *w, int64_t token)
{
	for (size_t i = 0; i < OVERWRITTEN_MAX; i++)
		if (w->overwritten[i] == token >> 10)
			return true;
	return false;
}

void elections_told(struct caller *c, int lock, int64_t token, struct slice host, struct slice data)
{
	struct watching *o = &c->watching[lock];
	struct world *w = c->host->w;
	char name[16];
	size_t len;

	if (lock < 0 || !o->on)
		world_fail(w, lock, "host %d client %u: told of a leader it does not observe", c->host->index, c->conn);
	if (o->told && token == o->token)
		world_fail(w, lock, "host %d client %u: told twice that %" PRId64 " leads %s", c->host->index, c->conn, token,
			   w->lock_name[lock]);
	/* An operator who overwrites a leader's data makes it nobody, until it says so again. */
	if (token && (token < o->highest || (token == o->highest && !elections_overwritten(w, token) && !w->replaced_count)))
		world_fail(w, lock, "host %d client %u: told that %" PRId64 " leads %s, after %" PRId64, c->host->index, c->conn,
			   token, w->lock_name[lock], o->highest);
	len = (size_t)snprintf(name, sizeof(name), "%.*sc", (int)host.len, host.data);
	if (token ? data.len <= len || memcmp(data.data, name, len) != 0 : host.len || data.len)
		world_fail(w, lock, "host %d client %u: %" PRId64 " of host %.*s leads %s with other data: %.*s", c->host->index,
			   c->conn, token, (int)host.len, host.data, w->lock_name[lock], (int)data.len, data.data);
	o->told = true;
	o->token = token;
	o->highest = token ? token : o->highest;
	w->stats->leaders_told++;
}

/* ---- when all is quiet observers know the present leader ---- */

/* -1: it is not known, somebody has not read yet that it leads. */
static int64_t local_leader(const struct host *h, int lock)
{
	int64_t leader = 0;
	int i;

	for (i = 0; i < h->client_count; i++) {
		const struct holding *g = &h->clients[i].holding[lock];

		if (h->ghosts[i].on)
			return -1;
		if (h->clients[i].wait[lock].on && h->clients[i].wait[lock].blind)
			return -1;
		if (g->held && !g->lost && holding_unsure(g))
			return -1;
		if (g->held && !g->lost)
			leader = g->token;
	}
	return leader;
}

static void look_at(struct host *h, int lock, int64_t leader)
{
	struct world *w = h->w;
	int i;

	if (!h->broker || leader < 0)
		return;
	for (i = 0; i < h->client_count; i++) {
		const struct caller *c = &h->clients[i];
		const struct watching *o = &c->watching[lock];

		if (c->state == CLIENT_ON && c->protocol == 3 && o->on && o->since < w->sched.now - WITHIN - w->slow_ns &&
		    (!o->told || o->token != leader))
			world_fail(w, lock, "host %d client %u: %s is led by %" PRId64 ", and it was told %" PRId64, h->index,
				   c->conn, w->lock_name[lock], leader, o->told ? o->token : -1);
	}
}

/* Nothing has changed since the last look, and the one before. */
static bool stands(struct world *w, int lock, int64_t leader)
{
	int64_t before = w->leader[lock], since = w->sched.now - WITHIN - w->slow_ns;

	w->leader[lock] = leader;
	if (before != leader || w->leader_since[lock] == 0)
		w->leader_since[lock] = w->sched.now;
	return w->leader_since[lock] < since && w->deleted_at[lock] < since && w->last_fault < since;
}

/* It tells observers in pieces, and the next piece comes right after this. */
static bool is_telling(const struct host *h)
{
	return h->broker && broker_has_work(h->broker);
}

static void look(void *world, uint64_t argument)
{
	struct world *w = world;
	int h, lock;

	(void)argument;
	for (lock = 0; lock < w->lock_count; lock++) {
		const struct znode *n = w->election[lock] && !w->mix->standalone ? first_of(w, lock, 0) : NULL;
		bool same = w->election[lock] && !w->mix->standalone && stands(w, lock, n ? leads(n) : 0);

		for (h = 0; h < w->host_count && same; h++)
			look_at(&w->hosts[h], lock, w->leader[lock]);
		for (h = 0; h < w->host_count && w->mix->standalone && w->election[lock]; h++)
			if (w->hosts[h].moved_at[lock] < w->sched.now && !is_telling(&w->hosts[h]))
				look_at(&w->hosts[h], lock, local_leader(&w->hosts[h], lock));
	}
	sched_at(&w->sched, w->sched.now + LOOK_EVERY_NS, look, w, 0);
}

void elections_start(struct world *w)
{
	look(w, 0);
}
