/* SPDX-License-Identifier: Apache-2.0 */
#include "core/client/deadlock.h"

#include "core/kind/semaphore.h"
#include "core/lock/locks.h"

/* Who has left waits for nobody, and what it holds or waits for is given up without anybody's help. */
static bool blocks(const struct request *r)
{
	return !r->queued && !r->expired && !r->aside && !r->client->closed;
}

static void looked(struct search *s)
{
	bool gathers = s->stage == SEARCH_GATHER || s->stage == SEARCH_UNTIE;

	s->searched++;
	s->cut = s->cut || ++s->edges > (gathers ? DEADLOCK_EDGES_GATHERED_MAX : DEADLOCK_EDGES_MAX);
}

/* Counts one more. False: that is too much. */
static bool looks(struct search *s)
{
	looked(s);
	return !s->cut;
}

/* The request before it in line for its lock: one that does not wait yet would be the last. */
static struct request *one_before(const struct search *s, const struct request *r)
{
	return r == &s->planned ? TAILQ_LAST(&r->lock->requests, request_list) : TAILQ_PREV(r, request_list, link);
}

/* All grants of a lock conflict with it, or none does: they are all shared, or there is one. */
static const struct grant *first_against(const struct lock *lock, const struct request *r)
{
	const struct grant *g = TAILQ_FIRST(&lock->grants);

	return g && (lock->slots || mode_conflicts(g->mode, r->mode)) ? g : NULL;
}

static bool is_met(const struct search *s, const struct request *r)
{
	return r->search[s->later] == s->number;
}

/* ---- whom a step waits for ---- */

static struct request *waiting(const struct search *s)
{
	return s->steps[s->at].request;
}

static void open_step(struct search *s)
{
	s->opened = s->in_line = true;
	s->line = one_before(s, waiting(s));
	s->holder = NULL;
}

static void next_step(struct search *s)
{
	s->at++;
	s->opened = false;
	s->line = NULL;
	s->holder = NULL;
}

static const struct request *next_in_line(struct search *s)
{
	const struct request *r = s->line;

	if (r)
		s->line = TAILQ_PREV(r, request_list, link);
	return r;
}

/* The holders come after the line: who was granted the lock meanwhile is among them. */
static const struct grant *next_holder(struct search *s)
{
	const struct grant *g;

	if (s->in_line) {
		s->in_line = false;
		s->holder = first_against(waiting(s)->lock, waiting(s));
	}
	g = s->holder;
	if (g)
		s->holder = TAILQ_NEXT(g, link);
	return g;
}

/* ---- walking from wait to wait ---- */

static void add_step(struct search *s, struct request *r, const struct search_step *how)
{
	struct group *group = r->client->group;

	if (group && group->tied_in[s->later] != s->number) {
		group->tied_in[s->later] = s->number;
		group->tied[s->later] = 0;
	}
	if (group)
		group->tied[s->later]++;
	r->search[s->later] = s->number;
	if (s->later)
		r->step = (uint32_t)s->count;
	s->steps[s->count] = *how;
	s->steps[s->count++].request = r;
}

static void follow(struct search *s, const struct client *c, const struct search_step *how)
{
	struct request *r = c->request;

	looked(s);
	if (s->cut || !r || !blocks(r) || (s->knot ? r->search[s->later] != s->knot : is_met(s, r)))
		return;
	if (s->count == SEARCH_REQUESTS_MAX)
		s->cut = true;
	else
		add_step(s, r, how);
}

/* Follows an owner that is waited for. True: the client itself is that owner. */
static bool meet(struct search *s, const struct search_step *how)
{
	const struct client *met = how->met;

	if (met->closed)
		return false;
	if (s->stage != SEARCH_GATHER && group_same(met, s->client)) {
		s->last = *how;
		return true;
	}
	if (!met->group) {
		follow(s, met, how);
		return false;
	}
	if (met->group->search[s->later] == s->number) /* all of them are followed */
		return false;
	met->group->search[s->later] = s->number;
	s->how = *how;
	s->member = TAILQ_FIRST(&met->group->clients);
	return false;
}

/* This step waits for all the rest as that one does, which is followed. */
static void rely(struct search *s, const struct request *r)
{
	if (s->later && is_met(s, r) && r->step < s->count)
		s->steps[r->step].relied = true;
	next_step(s);
}

/* A request before it gets permits first, and its owner need not release them. */
static bool meet_before_permits(struct search *s, const struct request *r)
{
	struct search_step how = { .met = r->client, .before = s->at, .behind = true };

	if (!s->knot || (r->search[s->later] != s->knot && !is_met(s, r)))
		return meet(s, &how); /* it will get permits, and its owner has another wait */
	follow(s, r->client, &how);
	return false;
}

static bool meet_before(struct search *s, const struct request *r)
{
	struct search_step how = { .met = r->client, .before = s->at, .behind = true };
	const struct request *waits = waiting(s);

	if (waits->lock->slots)
		return meet_before_permits(s, r);
	if (!mode_conflicts(r->mode, waits->mode)) {
		/* A reader that is followed waits for everything that a reader behind it waits for. */
		if (is_met(s, r))
			rely(s, r);
		return false;
	}
	if (meet(s, &how))
		return true;
	if (r->mode != MODE_EXCLUSIVE || !blocks(r))
		return false;
	/* This request waits for all the rest itself, and is followed: of a group it may not be yet. */
	if (!is_met(s, r))
		follow(s, r->client, &how);
	rely(s, r);
	return false;
}

static bool meet_holder(struct search *s, const struct grant *g)
{
	/* Its own permits are none that it waits for. */
	if (waiting(s)->lock->slots && !s->at && g->client == s->client)
		return false;
	return meet(s, &(struct search_step){ .met = g->client, .before = s->at });
}

static void meet_member(struct search *s)
{
	const struct client *c = s->member;

	s->member = TAILQ_NEXT(c, group_link);
	follow(s, c, &s->how);
}

/* The step waits for nobody who is to be followed in this stage. */
static bool is_passed(struct search *s)
{
	const struct request *waits = waiting(s);

	if (!waits || !waits->lock->slots)
		return !waits;
	s->permits = true;
	return s->stage == SEARCH_CYCLE;
}

/* Meets the next one that this step waits for, or goes on to the next step. */
static void walk_on(struct search *s)
{
	const struct request *r;
	const struct grant *g;

	if (!s->opened)
		open_step(s);
	r = next_in_line(s);
	g = r ? NULL : next_holder(s);
	if (!r && !g)
		next_step(s);
	else if (looks(s))
		s->found = r ? meet_before(s, r) : meet_holder(s, g);
}

static void begin_walk(struct search *s, enum search_stage stage)
{
	s->stage = stage;
	s->number = ++s->client->locks->last_search;
	s->edges = s->count = s->at = 0;
	s->opened = false;
	s->member = NULL;
	add_step(s, s->asked, &(struct search_step){ 0 });
}

/* Goes on with it. True: it is over. */
static bool walk(struct search *s)
{
	while (!s->found && !s->cut && (s->member || s->at < s->count)) {
		if (s->searched >= s->until)
			return false;
		if (s->member)
			meet_member(s);
		else if (is_passed(s))
			next_step(s);
		else
			walk_on(s);
	}
	return true;
}

/* ---- the knot: of the waits that were gathered, those that block each other for good ---- */

static bool client_tied(struct search *s, const struct client *c)
{
	const struct request *r = c == s->client ? s->asked : c->request;

	return r && is_met(s, r);
}

static bool owner_tied(struct search *s, const struct client *c)
{
	looked(s);
	if (c->closed)
		return false;
	if (c->group)
		return c->group->tied_in[s->later] == s->number && c->group->tied[s->later];
	return client_tied(s, c);
}

/* 0: not known. A request with another limit than the semaphore's is refused in any case. */
static int64_t limit_of(const struct search *s, const struct lock *lock)
{
	int64_t limit = lock->semaphore->limit;

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

static void begin_pass(struct search *s)
{
	s->stage = SEARCH_UNTIE;
	s->at = 0;
	s->opened = s->left_one = s->loosened = false;
}

static void leave_set(struct search *s)
{
	search_untie(s, waiting(s));
	s->left_one = true;
	next_step(s);
}

/* Looks at the next one that this wait may be tied to, or goes on to the next wait. */
static void untie_on(struct search *s)
{
	const struct request *waits = waiting(s), *r;
	const struct grant *g;

	if (!s->opened) {
		open_step(s);
		s->left = waits->limit;
	}
	r = next_in_line(s);
	g = r ? NULL : next_holder(s);
	if (r || g) {
		if (looks(s) && (r ? tied_before(s, waits, r) : tied_to_holder(s, waits, g)))
			next_step(s);
	} else if (waits->lock->slots && s->left < waits->count) {
		next_step(s);
	} else {
		leave_set(s);
	}
}

static bool may_be_tied(const struct search *s, const struct request *r)
{
	return blocks(r) && (!r->lock->slots || r->limit == limit_of(s, r->lock));
}

/* Goes on with it. True: it is over, and the set is a knot, unless the request that is checked has left it. */
static bool untie(struct search *s)
{
	while (!s->cut && is_met(s, s->asked)) {
		if (s->at == s->count) {
			if (!s->left_one)
				return true;
			begin_pass(s);
		}
		if (s->searched >= s->until)
			return false;
		if (!waiting(s) || !is_met(s, waiting(s)))
			next_step(s);
		else if (!s->opened && !may_be_tied(s, waiting(s)))
			leave_set(s);
		else
			untie_on(s);
	}
	return true;
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
static void write_hop(const struct search *s, struct bytes *out, const struct search_step *how, const struct client *next)
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
		const struct search_step *step = &s->steps[path[(count - 1 - told) % HOPS_TOLD]];

		write_hop(s, out, step, step->request->client);
		bytes_text(out, ", which");
	}
	if (count >= HOPS_TOLD)
		bytes_format(out, " waits for %d more in turn, the last of which", count - (HOPS_TOLD - 1));
	write_hop(s, out, &s->last, s->client);
	bytes_text(out, ": release one of them first");
}

/* ---- the search ---- */

static void begin(struct search *s, struct client *c, struct request *asked)
{
	s->client = c;
	s->asked = asked;
	s->cut = s->found = s->permits = s->missed = s->loosened = s->group_loosened = false;
	s->knot = 0;
	s->searched = 0;
	begin_walk(s, SEARCH_CYCLE);
}

/* Goes on with it. True: it is over. */
static bool go_on(struct search *s)
{
	if (s->stage == SEARCH_CYCLE) {
		if (!walk(s))
			return false;
		if (s->found || s->cut || !s->permits)
			return true;
		begin_walk(s, SEARCH_GATHER);
	}
	if (s->stage == SEARCH_GATHER) {
		if (!walk(s))
			return false;
		begin_pass(s);
	}
	if (s->stage == SEARCH_UNTIE) {
		if (!untie(s))
			return false;
		if (s->cut || !is_met(s, s->asked))
			return true;
		s->knot = s->number;
		begin_walk(s, SEARCH_KNOT);
	}
	return walk(s);
}

/* A piece. */
static bool search(struct search *s)
{
	struct locks *locks = s->client->locks;
	size_t before = s->searched;
	bool over;

	s->until = s->whole ? SIZE_MAX : before + (locks->env->conf->all_in_pieces ? 1 : DEADLOCK_EDGES_A_PIECE);
	over = go_on(s);
	locks->searched += s->searched - before;
	return over;
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

static enum deadlock look(struct client *c, struct lock *lock, const struct request_terms *terms, struct bytes *sentence)
{
	struct locks *locks = c->locks;
	struct search *s = &locks->first_piece;

	s->planned = (struct request){ .client = c, .lock = lock, .mode = terms->mode, .limit = terms->limit,
				       .count = terms->count };
	begin(s, c, &s->planned);
	if (!search(s))
		return DEADLOCK_UNKNOWN;
	if (s->found) {
		locks->env->stats.deadlocks_total++;
		tell(s, sentence);
		return DEADLOCK_CLOSES;
	}
	if (s->cut)
		locks->env->stats.deadlock_cuts_total++;
	return DEADLOCK_NONE;
}

enum deadlock deadlock_look(struct client *c, struct lock *lock, const struct request_terms *terms, struct bytes *sentence)
{
	if (!c->locks->env->conf->deadlock_detection || nobody_before(lock) || has_nothing(c))
		return DEADLOCK_NONE;
	return look(c, lock, terms, sentence);
}

/* ---- in pieces ---- */

void deadlock_search(struct client *c)
{
	work_add(&c->locks->env->works, &c->user->worker, &c->searching);
}

static void end(struct search *s)
{
	walk_end(s->client->locks, &s->walk);
	s->client = NULL;
}

void deadlock_forget(struct client *c)
{
	if (c->locks->search.client == c)
		end(&c->locks->search);
	if (c->search_waits)
		TAILQ_REMOVE(&c->locks->searches, c, search_link);
	c->search_waits = false;
	work_drop(&c->locks->env->works, &c->searching);
}

static bool is_searched(const struct client *c)
{
	return c->request && blocks(c->request) && c->locks->env->conf->deadlock_detection;
}

static void wait_in_line(struct client *c)
{
	if (!c->search_waits)
		TAILQ_INSERT_TAIL(&c->locks->searches, c, search_link);
	c->search_waits = true;
}

static void begin_later(struct search *s, struct client *c)
{
	s->later = true;
	s->whole = c->request->searches++ == DEADLOCK_SEARCHES_IN_PIECES;
	begin(s, c, c->request);
	s->walk.begun = true;
	TAILQ_INSERT_TAIL(&c->locks->walks, &s->walk, link);
}

/* One of those in line is searched for, so that there is a first one. */
static void begin_first(struct locks *locks)
{
	struct client *first;

	while (!is_searched((first = TAILQ_FIRST(&locks->searches))))
		deadlock_forget(first);
	begin_later(&locks->search, first);
}

/* All that was found is so now: nobody on the way has, or waits for, less than when it was met. */
static bool holds_still(const struct search *s)
{
	size_t at = s->last.before;

	if (s->knot || s->group_loosened)
		return !s->loosened;
	for (;; at = s->steps[at].before) {
		if (!s->steps[at].request || s->steps[at].loosened)
			return false;
		if (!at)
			return true;
	}
}

static void refuse(struct search *s)
{
	struct bytes sentence = { 0 };

	s->client->locks->env->stats.deadlocks_total++;
	tell(s, &sentence);
	bytes_char(&sentence, '\0');
	request_fail(s->asked, ERROR_DEADLOCK, sentence.data);
	bytes_free(&sentence);
}

/* What it has not found may be there: a wait has ended that others counted on, or that was taken to block some in a knot. */
static bool may_have_missed(const struct search *s)
{
	return s->missed || (s->knot && s->loosened);
}

/* It is over. One that has to be done once more, or for another wait, is behind all others of its user. */
static void conclude(struct search *s)
{
	struct client *c = s->client;
	bool again = s->asked ? !s->cut && (s->found ? !holds_still(s) : may_have_missed(s)) : is_searched(c);

	if (s->asked && s->found && !again)
		refuse(s);
	else if (s->asked && s->cut)
		c->locks->env->stats.deadlock_cuts_total++;
	deadlock_forget(c);
	if (again)
		deadlock_search(c);
}

int64_t deadlock_continue(struct client *c)
{
	struct search *s = &c->locks->search;

	if (!is_searched(c)) {
		deadlock_forget(c);
		return 1;
	}
	wait_in_line(c);
	if (!s->client)
		begin_first(c->locks);
	if (s->whole && s->client != c) /* its own user's turn is charged for it */
		return WORK_TURN_STEPS;
	if (!s->asked || search(s))
		conclude(s);
	return s->whole ? WORK_TURN_STEPS + (int64_t)c->locks->searched / DEADLOCK_EDGES_A_STEP : WORK_TURN_STEPS;
}
