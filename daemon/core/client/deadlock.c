/* SPDX-License-Identifier: Apache-2.0 */
#include "core/client/deadlock.h"

#include "core/lock/locks.h"

enum stage {
	CYCLE,  /* a walk for a cycle of LOCKs */
	GATHER, /* a walk for all that the first wait may depend on, and for no cycle */
	UNTIE,  /* waits that can end leave that set, pass by pass */
	KNOT,   /* a walk for a cycle in what is left */
};

struct search {
	struct client *client;         /* the one that asks */
	struct request *asked;
	const struct request *planned; /* what is asked, if that does not wait yet: last in line; NULL: it waits */
	enum stage stage;
	uint64_t number; /* mark of the requests and groups that were met in this walk */
	uint64_t knot;   /* not 0: only the requests with that mark are followed, those for permits too */
	size_t at, count;
	size_t edges; /* looked at in this walk */
	bool cut;
	bool permits;         /* a wait for permits was met */
	int64_t left;         /* permits that owners outside the set have */
	struct followed last; /* of a cycle that was found: it leads back to the client */
	struct followed *steps;
};

/* Who has left waits for nobody, and what it holds or waits for is given up without anybody's help. */
static bool blocks(const struct request *r)
{
	return !r->queued && !r->expired && !r->aside && !r->client->closed;
}

/* Counts one more. False: that would be too much, and the search finds nothing. */
static bool looks(struct search *s)
{
	size_t most = s->stage == GATHER || s->stage == UNTIE ? DEADLOCK_EDGES_GATHERED_MAX : DEADLOCK_EDGES_MAX;
	struct locks *locks = s->client->locks;

	s->cut = s->cut || s->edges == most || locks->searched == DEADLOCK_EDGES_IN_ALL;
	if (s->cut)
		return false;
	s->edges++;
	locks->searched++;
	return true;
}

static const struct request *before(const struct request *r)
{
	return TAILQ_PREV(r, request_list, link);
}

/* The request before it in line for its lock: one that does not wait yet would be the last. */
static const struct request *one_before(const struct search *s, const struct request *r)
{
	return r == s->planned ? TAILQ_LAST(&r->lock->requests, request_list) : before(r);
}

/* All grants of a lock conflict with it, or none does: they are all shared, or there is one. */
static const struct grant *first_against(const struct request *r)
{
	const struct grant *g = TAILQ_FIRST(&r->lock->grants);

	return g && (r->lock->slots || mode_conflicts(g->mode, r->mode)) ? g : NULL;
}

static bool is_met(const struct search *s, const struct request *r)
{
	return r->search == s->number;
}

static struct request *waiting(const struct search *s)
{
	return s->steps[s->at].request;
}

/* ---- walking from wait to wait ---- */

static void add_step(struct search *s, struct request *r, const struct followed *how)
{
	struct group *group = r->client->group;

	if (group && group->tied_in != s->number) {
		group->tied_in = s->number;
		group->tied = 0;
	}
	if (group)
		group->tied++;
	r->search = s->number;
	s->steps[s->count] = *how;
	s->steps[s->count++].request = r;
}

static void follow(struct search *s, const struct client *c, const struct followed *how)
{
	struct request *r = c->request;

	if (!looks(s) || !r || !blocks(r) || (s->knot ? r->search != s->knot : is_met(s, r)))
		return;
	if (s->count == DEADLOCK_REQUESTS_MAX)
		s->cut = true;
	else
		add_step(s, r, how);
}

/* Follows an owner that is waited for. True: the client itself is that owner. */
static bool meet(struct search *s, const struct followed *how)
{
	const struct client *met = how->met, *c;

	if (met->closed)
		return false;
	if (s->stage != GATHER && group_same(met, s->client)) {
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
	for (c = TAILQ_FIRST(&met->group->clients); c && !s->cut; c = TAILQ_NEXT(c, group_link))
		follow(s, c, how);
	return false;
}

/* A request before it gets permits first, and its owner need not release them. */
static bool meet_before_permits(struct search *s, const struct request *r, const struct followed *how)
{
	if (!s->knot || (r->search != s->knot && !is_met(s, r)))
		return meet(s, how); /* it will get permits, and its owner has another wait */
	follow(s, r->client, how);
	return false;
}

/* This one before a wait for a lock waits for all the rest that the wait is for, and is followed itself. */
static bool waits_for_the_rest(const struct search *s, const struct request *r)
{
	/* A reader that is followed waits for everything that a reader behind it waits for. */
	return mode_conflicts(r->mode, waiting(s)->mode) ? r->mode == MODE_EXCLUSIVE && blocks(r) : is_met(s, r);
}

/* Follows those that this step waits for. True: the client itself is one of them. */
static bool walk_step(struct search *s)
{
	const struct request *waits = waiting(s), *r;
	const struct grant *g;
	struct followed how = { .before = s->at, .behind = true };

	for (r = one_before(s, waits); r && looks(s); r = before(r)) {
		how.met = r->client;
		if (waits->lock->slots ? meet_before_permits(s, r, &how) :
					 mode_conflicts(r->mode, waits->mode) && meet(s, &how))
			return true;
		if (!waits->lock->slots && waits_for_the_rest(s, r))
			return false;
	}
	how.behind = false;
	for (g = first_against(waits); g && looks(s); g = TAILQ_NEXT(g, link)) {
		how.met = g->client;
		/* Its own permits are none that it waits for. */
		if (!(waits->lock->slots && !s->at && g->client == s->client) && meet(s, &how))
			return true;
	}
	return false;
}

/* The step waits for nobody who is to be followed in this stage. */
static bool is_passed(struct search *s)
{
	if (!waiting(s)->lock->slots)
		return false;
	s->permits = true;
	return s->stage == CYCLE;
}

/* True: a cycle was found. */
static bool walk(struct search *s, enum stage stage)
{
	s->stage = stage;
	s->number = ++s->client->locks->last_search;
	s->edges = s->count = 0;
	add_step(s, s->asked, &(struct followed){ 0 });
	for (s->at = 0; s->at < s->count && !s->cut; s->at++)
		if (!is_passed(s) && walk_step(s))
			return true;
	return false;
}

/* ---- the knot: of the waits that were gathered, those that block each other for good ---- */

static bool client_tied(struct search *s, const struct client *c)
{
	const struct request *r = c == s->client ? s->asked : c->request;

	return r && is_met(s, r);
}

static bool owner_tied(struct search *s, const struct client *c)
{
	if (!looks(s) || c->closed)
		return false;
	if (c->group)
		return c->group->tied_in == s->number && c->group->tied;
	return client_tied(s, c);
}

/* 0: not known. A request with another limit than the semaphore's is refused in any case. */
static int64_t limit_of(const struct search *s, const struct lock *lock)
{
	int64_t limit = lock_limit(lock);

	return !limit && s->asked->lock == lock ? s->asked->limit : limit;
}

/* One before it in line is, or will be, the reason why it goes on waiting. */
static bool tied_before(struct search *s, const struct request *waits, const struct request *r)
{
	if (!waits->lock->slots)
		return mode_conflicts(r->mode, waits->mode) && owner_tied(s, r->client);
	if (client_tied(s, r->client))
		return true;
	if (owner_tied(s, r->client)) /* by another wait: it will get its permits and keep them */
		s->left -= r->count;
	return false;
}

static bool tied_to_holder(struct search *s, const struct request *waits, const struct grant *g)
{
	bool tied = owner_tied(s, g->client);

	if (!waits->lock->slots)
		return tied;
	if (tied)
		s->left -= g->depth;
	return false;
}

static bool may_be_tied(const struct search *s, const struct request *r)
{
	return blocks(r) && (!r->lock->slots || r->limit == limit_of(s, r->lock));
}

/* If the search is cut, the answer does not matter. */
static bool is_tied(struct search *s, const struct request *waits)
{
	const struct request *r;
	const struct grant *g;

	if (!may_be_tied(s, waits))
		return false;
	s->left = waits->limit;
	for (r = one_before(s, waits); r && looks(s); r = before(r))
		if (tied_before(s, waits, r))
			return true;
	for (g = first_against(waits); g && looks(s); g = TAILQ_NEXT(g, link))
		if (tied_to_holder(s, waits, g))
			return true;
	return waits->lock->slots && s->left < waits->count;
}

static void leave_set(struct request *r)
{
	r->search = 0;
	if (r->client->group)
		r->client->group->tied--;
}

/* True: the set is a knot, and the request that is checked is in it. */
static bool untie(struct search *s)
{
	bool left_one = true;

	s->stage = UNTIE;
	while (left_one) {
		left_one = false;
		for (s->at = 0; s->at < s->count; s->at++) {
			if (s->cut || !is_met(s, s->asked))
				return false;
			if (!is_met(s, waiting(s)) || is_tied(s, waiting(s)))
				continue;
			leave_set(waiting(s));
			left_one = true;
		}
	}
	return !s->cut;
}

/* ---- the sentence ---- */

/*
 * The cycle of waits, hop by hop, as the refused client sees it. Of a long cycle the sentence has the first three hops and
 * the last one, of a long name the beginning, and of other clients only what this client may know.
 *
 *   this client waits for a held by web-1 (pid 4711), which waits for b held by this client: release one of them first
 */
enum {
	HOPS_TOLD = 4,  /* of the cycle */
	NAME_TOLD = 32, /* bytes of each name */
};

/* A long name is cut between characters of UTF-8. */
static void write_name(struct bytes *out, struct slice name)
{
	size_t len = name.len;

	if (len > NAME_TOLD) {
		len = NAME_TOLD;
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
	if (!client_may_look(s->client, bytes_view(&lock->name), c->account)) {
		bytes_text(out, c->uid == s->client->uid ? "a client of another unit" : "a client of another user");
		return;
	}
	write_name(out, bytes_view(c->name.len ? &c->name : &c->comm));
	bytes_format(out, " (pid %d)", c->pid);
}

/* Writes one edge; `next`, usually `how->met` itself, is the client whose wait comes next. */
static void write_hop(const struct search *s, struct bytes *out, const struct followed *how, const struct client *next)
{
	const struct lock *lock = s->steps[how->before].request->lock;

	bytes_text(out, " waits for \"");
	write_name(out, bytes_view(&lock->name));
	bytes_text(out, how->behind ? "\" behind " : "\" held by ");
	write_client(s, out, how->met, lock);
	if (next != how->met) {
		bytes_text(out, ", which is one owner with ");
		write_client(s, out, next, lock);
	}
}

/* Appends it, for the cycle that the search has found. */
static void tell(const struct search *s, struct bytes *out)
{
	size_t path[HOPS_TOLD + 1], count = 0, at;

	/* The walk begins at the end of the path, so that the last steps kept are the first of the cycle. */
	for (at = s->last.before; at; at = s->steps[at].before)
		path[count++ % HOPS_TOLD] = at;
	bytes_text(out, "this client");
	for (size_t told = 0; told < count && told < HOPS_TOLD - 1; told++) {
		const struct followed *step = &s->steps[path[(count - 1 - told) % HOPS_TOLD]];

		write_hop(s, out, step, step->request->client);
		bytes_text(out, ", which");
	}
	if (count >= HOPS_TOLD)
		bytes_format(out, " waits for %d more in turn, the last of which", count - (HOPS_TOLD - 1));
	write_hop(s, out, &s->last, s->client);
	bytes_text(out, ": release one of them first");
}

/* ---- the search ---- */

/* True: a cycle was found. */
static bool search(struct search *s)
{
	if (walk(s, CYCLE))
		return true;
	if (s->cut || !s->permits)
		return false;
	walk(s, GATHER);
	if (s->cut || !untie(s))
		return false;
	s->knot = s->number;
	return walk(s, KNOT);
}

static bool closes(struct search *s, struct bytes *sentence)
{
	struct stats *stats = &s->client->locks->env->stats;

	if (search(s)) {
		stats->deadlocks_total++;
		tell(s, sentence);
		return true;
	}
	if (s->cut)
		stats->deadlock_cuts_total++;
	return false;
}

static bool nobody_before(const struct lock *lock)
{
	return TAILQ_EMPTY(&lock->requests) && TAILQ_EMPTY(&lock->grants);
}

/* Nobody waits for it, and nobody can without another wait that begins. */
static bool has_nothing(const struct client *c)
{
	return !c->group && c->grant_count == c->lost_count && !c->request_count;
}

bool deadlock_look(struct client *c, struct lock *lock, const struct request_terms *terms, struct bytes *sentence)
{
	struct request planned = { .client = c, .lock = lock, .mode = terms->mode, .limit = terms->limit,
				   .count = terms->count };
	struct search s = { .client = c, .asked = &planned, .planned = &planned, .steps = c->locks->followed };

	if (!c->locks->env->conf->deadlock_detection || nobody_before(lock) || has_nothing(c))
		return false;
	return closes(&s, sentence);
}

void deadlock_look_at(struct client *c)
{
	struct search s = { .client = c, .asked = c->request, .steps = c->locks->followed };
	struct bytes sentence = { 0 };

	if (!c->request || !blocks(c->request) || !c->locks->env->conf->deadlock_detection)
		return;
	if (closes(&s, &sentence)) {
		bytes_char(&sentence, '\0');
		request_fail(c->request, ERROR_DEADLOCK, sentence.data);
	}
	bytes_free(&sentence);
}
