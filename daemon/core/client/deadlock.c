/* SPDX-License-Identifier: Apache-2.0 */
#include "core/client/deadlock.h"

#include "core/kind/semaphore.h"
#include "core/lock/locks.h"

/* A request that is followed, and how it was reached: the step before waits for `met`, whose owner has this request. */
struct step {
	struct request *request; /* in the first: the request that is checked */
	const struct client *met;
	size_t before;
	bool behind; /* `met` waits for the lock of the step before; else it holds that lock */
};

struct search {
	const struct client *client; /* the one that asks */
	struct request asked;
	uint64_t number; /* `search` of the requests that were followed in this walk */
	size_t count, edges, searched; /* searched: edges of all walks */
	bool cut;
	bool permits;  /* a wait for permits was met */
	bool gathers;  /* follows all that the first wait may depend on, and looks for no cycle */
	uint64_t knot; /* not 0: only the requests with that `search` are followed, those for permits too */
	struct step last; /* of a cycle that was found: it leads back to the client */
	struct step steps[DEADLOCK_REQUESTS_MAX];
};

/* Who has left waits for nobody, and what it holds or waits for is given up without anybody's help. */
static bool blocks(const struct request *r)
{
	return !r->queued && !r->expired && !r->client->closed;
}

static bool looked(struct search *s)
{
	s->searched++;
	s->cut = s->cut || ++s->edges > (s->gathers ? DEADLOCK_EDGES_GATHERED_MAX : DEADLOCK_EDGES_MAX);
	return !s->cut;
}

/* The request before it in line for its lock: the one that is checked would be the last. */
static struct request *one_before(const struct search *s, const struct request *r)
{
	return r == &s->asked ? TAILQ_LAST(&r->lock->requests, request_list) : TAILQ_PREV(r, request_list, link);
}

/* All grants of a lock conflict with it, or none does: they are all shared, or there is one. */
static const struct grant *first_against(const struct lock *lock, const struct request *r)
{
	const struct grant *g = TAILQ_FIRST(&lock->grants);

	return g && mode_conflicts(g->mode, r->mode) ? g : NULL;
}

/* ---- walking from wait to wait ---- */

static void follow(struct search *s, const struct client *c, const struct step *how)
{
	struct request *r = c->request;

	if (!looked(s) || !r || !blocks(r) || (s->knot ? r->search != s->knot : r->search == s->number))
		return;
	if (s->count == DEADLOCK_REQUESTS_MAX) {
		s->cut = true;
		return;
	}
	r->search = s->number;
	s->steps[s->count] = *how;
	s->steps[s->count++].request = r;
}

/* Follows an owner that is waited for. True: the client itself is that owner. */
static bool meet(struct search *s, const struct step *how)
{
	const struct client *met = how->met, *c;

	if (met->closed)
		return false;
	if (!s->gathers && group_same(met, s->client)) {
		s->last = *how;
		return true;
	}
	if (!met->group) {
		follow(s, met, how);
		return false;
	}
	if (met->group->search == s->number) /* all of them are followed */
		return false;
	met->group->search = s->number;
	TAILQ_FOREACH(c, &met->group->clients, group_link)
		follow(s, c, how);
	return false;
}

/* A request before it gets permits first, and its owner need not release them. */
static bool expand_permits(struct search *s, size_t at)
{
	const struct request *waits = s->steps[at].request, *r;
	const struct grant *g;

	for (r = one_before(s, waits); r && looked(s); r = TAILQ_PREV(r, request_list, link)) {
		struct step how = { .met = r->client, .before = at, .behind = true };

		if (s->knot && (r->search == s->knot || r->search == s->number))
			follow(s, r->client, &how);
		else if (meet(s, &how)) /* it will get permits, and its owner has another wait */
			return true;
	}
	TAILQ_FOREACH(g, &waits->lock->grants, link) {
		if (!looked(s))
			return false;
		if ((at || g->client != s->client) && meet(s, &(struct step){ .met = g->client, .before = at }))
			return true;
	}
	return false;
}

/* Meets all owners that this step waits for. */
static bool expand(struct search *s, size_t at)
{
	const struct request *waits = s->steps[at].request, *r;
	const struct lock *lock = waits->lock;
	const struct grant *g;

	if (lock->slots) {
		s->permits = true;
		return (s->gathers || s->knot) && expand_permits(s, at);
	}
	for (r = one_before(s, waits); r && looked(s); r = TAILQ_PREV(r, request_list, link)) {
		/* A reader that is followed waits for everything that a reader behind it waits for. */
		if (!mode_conflicts(r->mode, waits->mode) && r->search == s->number)
			return false;
		if (!mode_conflicts(r->mode, waits->mode))
			continue;
		if (meet(s, &(struct step){ .met = r->client, .before = at, .behind = true }))
			return true;
		/* This request waits for all the rest itself, and is followed. */
		if (r->mode == MODE_EXCLUSIVE && blocks(r))
			return false;
	}
	for (g = first_against(lock, waits); g && looked(s); g = TAILQ_NEXT(g, link))
		if (meet(s, &(struct step){ .met = g->client, .before = at }))
			return true;
	return false;
}

/* Walks from the request that is checked. True: back to its owner. */
static bool walk(struct search *s)
{
	s->number = s->asked.search = ++s->client->locks->last_search;
	s->edges = 0;
	s->count = 1;
	s->steps[0] = (struct step){ .request = &s->asked };
	for (size_t at = 0; at < s->count && !s->cut; at++)
		if (expand(s, at))
			return true;
	return false;
}

/* ---- the knot: of the waits that were gathered, those that block each other for good ---- */

static bool client_tied(struct search *s, const struct client *c)
{
	const struct request *r = c == s->client ? &s->asked : c->request;

	looked(s);
	return r && r->search == s->number;
}

static bool owner_tied(struct search *s, const struct client *c)
{
	const struct client *one;

	if (c->closed)
		return false;
	if (!c->group)
		return client_tied(s, c);
	TAILQ_FOREACH(one, &c->group->clients, group_link)
		if (client_tied(s, one))
			return true;
	return false;
}

/* 0: not known. A request with another limit than the semaphore's is refused in any case. */
static int64_t limit_of(const struct search *s, const struct lock *lock)
{
	int64_t limit = lock->semaphore->limit;

	return !limit && s->asked.lock == lock ? s->asked.limit : limit;
}

static bool permits_tied(struct search *s, const struct request *waits)
{
	int64_t left = waits->limit;
	const struct request *r;
	const struct grant *g;

	if (left != limit_of(s, waits->lock))
		return false;
	for (r = one_before(s, waits); r && looked(s); r = TAILQ_PREV(r, request_list, link)) {
		if (client_tied(s, r->client))
			return true;
		if (owner_tied(s, r->client)) /* by another wait: it will get its permits and keep them */
			left -= r->count;
	}
	TAILQ_FOREACH(g, &waits->lock->grants, link) {
		if (!looked(s))
			return true;
		if (owner_tied(s, g->client))
			left -= g->depth;
	}
	return left < waits->count;
}

static bool lock_tied(struct search *s, const struct request *waits)
{
	const struct request *r;
	const struct grant *g;

	for (r = one_before(s, waits); r && looked(s); r = TAILQ_PREV(r, request_list, link))
		if (mode_conflicts(r->mode, waits->mode) && owner_tied(s, r->client))
			return true;
	for (g = first_against(waits->lock, waits); g && looked(s); g = TAILQ_NEXT(g, link))
		if (owner_tied(s, g->client))
			return true;
	return false;
}

/* True when a wait left the set. */
static bool untie(struct search *s)
{
	bool any = false;

	for (size_t i = 0; i < s->count && !s->cut; i++) {
		struct request *r = s->steps[i].request;

		if (r->search != s->number || (r->lock->slots ? permits_tied(s, r) : lock_tied(s, r)))
			continue;
		any = true;
		r->search = 0;
	}
	return any;
}

/* True: the request that is checked is part of a knot, and s->knot is that. */
static bool tie(struct search *s)
{
	s->gathers = true;
	walk(s);
	while (s->asked.search == s->number && untie(s))
		;
	s->gathers = false;
	s->knot = s->number;
	return s->asked.search == s->knot && !s->cut;
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

static void write_client(const struct search *s, struct bytes *out, const struct client *c, const struct lock *lock)
{
	if (c == s->client) {
		bytes_text(out, "this client");
		return;
	}
	if (!client_may_look(s->client, bytes_view(&lock->name), c->uid)) {
		bytes_text(out, "a client of another user");
		return;
	}
	write_name(out, bytes_view(c->name.len ? &c->name : &c->comm));
	bytes_format(out, " (pid %d)", c->pid);
}

/* Writes one edge; `next`, usually `how->met` itself, is the client whose wait comes next. */
static void write_hop(const struct search *s, struct bytes *out, const struct step *how, const struct client *next)
{
	const struct lock *lock = s->steps[how->before].request->lock;

	bytes_text(out, " waits for ");
	write_name(out, bytes_view(&lock->name));
	bytes_text(out, how->behind ? " behind " : " held by ");
	write_client(s, out, how->met, lock);
	if (next != how->met) {
		bytes_text(out, ", which is one owner with ");
		write_client(s, out, next, lock);
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

/* Looks for a cycle of LOCKs, then for one in a set of waits that permits are part of. */
static bool find(struct search *s)
{
	if (walk(s))
		return true;
	if (!s->permits || s->cut)
		return false;
	return tie(s) && walk(s);
}

static bool search(struct client *c, struct lock *lock, const struct request_terms *terms, struct bytes *sentence)
{
	struct locks *locks = c->locks;
	struct search s;
	bool found;

	s.client = c;
	s.asked = (struct request){ .client = c, .lock = lock, .mode = terms->mode, .limit = terms->limit,
				    .count = terms->count };
	s.cut = s.permits = s.gathers = false;
	s.knot = 0;
	s.searched = 0;
	found = find(&s);
	locks->searched += s.searched;
	if (found) {
		locks->env->stats.deadlocks_total++;
		tell(&s, sentence);
	} else if (s.cut) {
		locks->env->stats.deadlock_cuts_total++;
	}
	return found;
}

bool deadlock_closes(struct client *c, struct lock *lock, const struct request_terms *terms, struct bytes *sentence)
{
	if (!c->locks->env->conf->deadlock_detection || nobody_before(lock))
		return false;
	if (!c->group && c->grant_count == c->lost_count && !c->request_count)
		return false;
	return search(c, lock, terms, sentence);
}
