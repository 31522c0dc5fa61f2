/* SPDX-License-Identifier: Apache-2.0 */
/*
 * LOCKS ... ALL: what was held from the question to the answer, by whom, is in the answer. A host's own grants are, and of
 * another host's locks the znode, which a follower may show late (clutter.c).
 */
#include "core/state.h"
#include "world.h"

#include <stdio.h>

/* What is between two texts, or from one to the end; empty if the first one is not there. */
static struct slice behind(struct slice text, const char *begin, const char *end)
{
	const char *at = memmem(text.data, text.len, begin, strlen(begin)), *stop;
	struct slice rest;

	if (!at)
		return (struct slice){ 0 };
	at += strlen(begin);
	rest = (struct slice){ at, (size_t)(text.data + text.len - at) };
	stop = memmem(rest.data, rest.len, end, strlen(end));
	return stop ? (struct slice){ at, (size_t)(stop - at) } : rest;
}

/* The answer's row of that lock. */
static struct slice row_of(struct slice reply, const char *name)
{
	char head[160];

	snprintf(head, sizeof(head), "name\r\n$%zu\r\n%s\r\n$4\r\nkind\r\n", strlen(name), name);
	return behind(reply, head, "\r\n$4\r\nkind\r\n");
}

static bool has_holder(struct slice row, const char *host, uint64_t client)
{
	char holder[160];

	snprintf(holder, sizeof(holder), "host\r\n$%zu\r\n%s\r\n$6\r\nclient\r\n:%llu\r\n", strlen(host), host,
		 (unsigned long long)client);
	return row.len && memmem(row.data, row.len, holder, strlen(holder));
}

/* Its grant is that old, by its own clock, whose second may be a little shorter. */
static bool is_older(const struct host *h, const struct grant *g, int64_t ns)
{
	return !g->lost && !g->delegated && host_now(h) - g->granted_ns > ns + ns / 10;
}

static const struct grant *old_grant(const struct host *h, const struct grant *g, int64_t ns)
{
	while (g && !is_older(h, g, ns))
		g = TAILQ_NEXT(g, link);
	return g;
}

static bool stands(const struct world *w, int lock, const struct grant *g, int64_t since)
{
	struct slice path = { w->lock_path[lock], w->lock_path_len[lock] };
	struct znode *dir = fakezk_find((struct fakezk *)&w->zk, path, FAKEZK_TRUTH), *n;

	if (dir)
		TAILQ_FOREACH(n, &dir->children, sibling)
			if (n->view[FAKEZK_TRUTH].exists && n->czxid == g->token >> 10 && n->created_at < since)
				return true;
	return false;
}

static void check_host(struct caller *c, const struct ask *a, struct slice reply, const struct host *h, int lock)
{
	struct world *w = c->host->w;
	bool own = h == c->host;
	int64_t lag = own ? 0 : w->timeout / 2 + w->slow_ns, asked = a->asked_at - lag;
	const struct lock *known = h->broker ? lock_find(&h->broker->locks, slice_of(w->lock_name[lock])) : NULL;
	struct slice row = row_of(reply, w->lock_name[lock]);
	const struct grant *g;

	if (!known || known->slots || (row.len && memmem(row.data, row.len, "more\r\n:1\r\n", 9)))
		return;
	for (g = TAILQ_FIRST(&known->grants); (g = old_grant(h, g, w->sched.now - asked)); g = TAILQ_NEXT(g, link)) {
		if (!h->conf.standalone && !stands(w, lock, g, asked))
			continue;
		if (!own && elections_overwritten(w, g->token))
			continue;
		if (!has_holder(row, h->conf.host, own ? g->client->id : 0))
			world_fail(w, lock,
				   "host %d client %u: LOCKS ALL does not show %s, held by host %d all the time: %.*s",
				   c->host->index, c->conn, w->lock_name[lock], h->index, (int)reply.len, reply.data);
		w->stats->scans++;
	}
}

/* What other hosts have written cannot be read while ZooKeeper refuses that; and a page of 100 names may end before one. */
void scan_check(struct caller *c, const struct ask *a, struct slice reply)
{
	struct world *w = c->host->w;
	bool whole = memmem(reply.data, reply.len, "next\r\n_\r\n", 9) ||
		     memmem(reply.data, reply.len, "next\r\n$-1\r\n", 11);

	if (answer_begins(reply, "-UNAVAILABLE"))
		return;
	if (!answer_begins(reply, "*4\r\n$4\r\nnext") && !answer_begins(reply, "%2\r\n$4\r\nnext"))
		answer_bad(c, a, reply, "unexpected");
	if (!whole)
		return;
	for (int h = 0; h < w->host_count; h++)
		for (int lock = 0; lock < w->lock_count; lock++)
			if (&w->hosts[h] == c->host ||
			    (!c->host->conf.standalone && w->zk.refuses_reads_until < a->asked_at &&
			     w->zk.throttles_until < a->asked_at))
				check_host(c, a, reply, &w->hosts[h], lock);
}
