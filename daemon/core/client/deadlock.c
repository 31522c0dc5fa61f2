/* SPDX-License-Identifier: Apache-2.0 */
#include "core/client/deadlock.h"

#include "core/client/deadlock_permits.h"
#include "core/kind/semaphore.h"
#include "core/lock/locks.h"

/* A request that is followed, and how it was reached: the step before waits for `met`, whose owner has this request. */
struct step {
	const struct request *request; /* NULL in the first: the request that is checked */
	const struct lock *lock;
	const struct client *met;
	size_t before;
	bool behind; /* `met` waits for the lock of the step before; else it holds that lock */
};

struct search {
	const struct client *client; /* the one that asks */
	uint64_t number;
	size_t count, edges;
	bool cut;
	bool permits;  /* a wait for permits was met and not followed */
	uint64_t knot; /* not 0: only the waits of that set are followed, those for permits too */
	struct step last; /* of a cycle that was found: it leads back to the client */
	struct step steps[DEADLOCK_REQUESTS_MAX];
};

/* ---- finding ---- */

static bool blocks(const struct request *r)
{
	return !r->queued && !r->expired;
}

static bool looked(struct search *s)
{
	s->cut = s->cut || ++s->edges > DEADLOCK_EDGES_MAX;
	return !s->cut;
}

static void follow(struct search *s, const struct client *c, const struct step *how)
{
	struct request *r = c->request;

	if (!looked(s) || !r || !blocks(r) || r->search == s->number || (s->knot && r->deadlock != s->knot))
		return;
	if (s->count == DEADLOCK_REQUESTS_MAX) {
		s->cut = true;
		return;
	}
	r->search = s->number;
	s->steps[s->count] = *how;
	s->steps[s->count].request = r;
	s->steps[s->count++].lock = r->lock;
}

/* Follows an owner that is waited for. True: the client itself is that owner. */
static bool meet(struct search *s, const struct step *how)
{
	const struct client *met = how->met, *c;

	if (group_same(met, s->client)) {
		s->last = *how;
		return true;
	}
	if (!met->group) {
		follow(s, met, how);
		return false;
	}
	TAILQ_FOREACH(c, &met->group->clients, group_link)
		follow(s, c, how);
	return false;
}

/* A request before it gets permits first, and its owner need not release them. */
static bool expand_permits(struct search *s, size_t at, const struct request *r)
{
	const struct grant *g;

	for (; r && looked(s); r = TAILQ_PREV(r, request_list, link)) {
		struct step how = { .met = r->client, .before = at, .behind = true };

		if (r->deadlock == s->knot)
			follow(s, r->client, &how);
		else if (meet(s, &how)) /* it will get permits, and its owner has another wait */
			return true;
	}
	TAILQ_FOREACH(g, &s->steps[at].lock->grants, link)
		if ((at || g->client != s->client) && looked(s) && meet(s, &(struct step){ .met = g->client, .before = at }))
			return true;
	return false;
}

/* Meets all owners that a request of that mode waits for when it stands behind `r` (NULL: behind no request). */
static bool expand(struct search *s, size_t at, enum mode mode, const struct request *r)
{
	const struct lock *lock = s->steps[at].lock;
	const struct grant *g;

	if (lock->slots) {
		s->permits = true;
		return s->knot && expand_permits(s, at, r);
	}
	for (; r && looked(s); r = TAILQ_PREV(r, request_list, link)) {
		/* A reader that is followed waits for everything that a reader behind it waits for. */
		if (!mode_conflicts(r->mode, mode) && r->search == s->number)
			return false;
		if (!mode_conflicts(r->mode, mode))
			continue;
		if (meet(s, &(struct step){ .met = r->client, .before = at, .behind = true }))
			return true;
		/* This request waits for all the rest itself, and is followed. */
		if (r->mode == MODE_EXCLUSIVE && blocks(r))
			return false;
	}
	TAILQ_FOREACH(g, &lock->grants, link)
		if (mode_conflicts(g->mode, mode) && looked(s) &&
		    meet(s, &(struct step){ .met = g->client, .before = at }))
			return true;
	return false;
}

static bool find(struct search *s, const struct lock *lock, enum mode mode)
{
	s->steps[s->count++] = (struct step){ .lock = lock };
	if (expand(s, 0, mode, TAILQ_LAST(&lock->requests, request_list)))
		return true;
	for (size_t at = 1; at < s->count && !s->cut; at++) {
		const struct request *r = s->steps[at].request;

		if (expand(s, at, r->mode, TAILQ_PREV(r, request_list, link)))
			return true;
	}
	return false;
}

/* ---- telling ---- */

/* A long name is cut between characters of UTF-8. */
static void write_name(struct bytes *out, struct slice name)
{
	size_t len = name.len;

	if (len > DEADLOCK_NAME_TOLD) {
		len = DEADLOCK_NAME_TOLD;
		while (len && ((unsigned char)name.data[len] & 0xc0) == 0x80)
			len--;
	}
	bytes_slice(out, (struct slice){ name.data, len });
	if (len < name.len)
		bytes_text(out, "...");
}

static void write_client(const struct search *s, struct bytes *out, const struct client *c)
{
	if (c == s->client) {
		bytes_text(out, "this client");
		return;
	}
	write_name(out, bytes_view(c->name.len ? &c->name : &c->comm));
	bytes_format(out, " (pid %d)", c->pid);
}

/* Writes one edge; `next`, usually `how->met` itself, is the client whose wait comes next. */
static void write_hop(const struct search *s, struct bytes *out, const struct step *how, const struct client *next)
{
	bytes_text(out, " waits for ");
	write_name(out, bytes_view(&s->steps[how->before].lock->name));
	bytes_text(out, how->behind ? " behind " : " held by ");
	write_client(s, out, how->met);
	if (next != how->met) {
		bytes_text(out, ", which is one owner with ");
		write_client(s, out, next);
	}
}

static void tell(struct search *s, struct bytes *out)
{
	size_t path[DEADLOCK_HOPS_TOLD + 1], count = 0, at;

	/* The walk begins at the end of the path, so that the last steps kept are the first of the cycle. */
	for (at = s->last.before; at; at = s->steps[at].before)
		path[count++ % DEADLOCK_HOPS_TOLD] = at;
	bytes_text(out, "this client");
	for (size_t told = 0; told < count && told < DEADLOCK_HOPS_TOLD - 1; told++) {
		const struct step *step = &s->steps[path[(count - 1 - told) % DEADLOCK_HOPS_TOLD]];

		write_hop(s, out, step, step->request->client);
		bytes_text(out, ", which");
	}
	if (count >= DEADLOCK_HOPS_TOLD)
		bytes_format(out, " waits for %d more in turn, the last of which", count - (DEADLOCK_HOPS_TOLD - 1));
	write_hop(s, out, &s->last, s->client);
	bytes_text(out, ": release one of them first");
}

static bool nobody_before(const struct lock *lock)
{
	return TAILQ_EMPTY(&lock->requests) && TAILQ_EMPTY(&lock->grants);
}

static void begin(struct search *s, uint64_t knot)
{
	s->number = ++s->client->locks->last_search;
	s->knot = knot;
	s->count = s->edges = 0;
}

/* Looks for a cycle of LOCKs, then for one in a set of waits that permits are part of. */
static bool find_any(struct search *s, const struct lock *lock, const struct request_terms *terms)
{
	uint64_t knot;

	begin(s, 0);
	if (find(s, lock, terms->mode))
		return true;
	if (!s->permits || s->cut)
		return false;
	knot = ++s->client->locks->last_search;
	if (!deadlock_permits_tie(s->client, lock, terms, knot, &s->cut))
		return false;
	begin(s, knot);
	return find(s, lock, terms->mode);
}

static bool search(struct client *c, const struct lock *lock, const struct request_terms *terms, struct bytes *sentence)
{
	struct locks *locks = c->locks;
	struct search s;
	bool found;

	s.client = c;
	s.cut = s.permits = false;
	found = find_any(&s, lock, terms);
	if (found) {
		locks->env->stats.deadlocks_total++;
		tell(&s, sentence);
	} else if (s.cut) {
		locks->env->stats.deadlock_cuts_total++;
	}
	return found;
}

bool deadlock_closes(struct client *c, const struct lock *lock, const struct request_terms *terms, struct bytes *sentence)
{
	if (!c->locks->env->conf->deadlock_detection || nobody_before(lock))
		return false;
	if (!c->group && c->grant_count == c->lost_count && !c->request_count)
		return false;
	return search(c, lock, terms, sentence);
}
