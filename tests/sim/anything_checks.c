/* SPDX-License-Identifier: Apache-2.0 */
/* What must hold, whatever was asked: see anything.h. */
#include "anything.h"
#include "core/kind/observe.h"
#include "core/kind/semaphore.h"
#include "protocol/answers.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { ITEMS_MAX = 5 };

static const int64_t WITHIN = 20 * SECOND;

static bool is_calm(const struct world *w, int64_t since)
{
	return w->last_fault < since;
}

static bool is_semaphore(const struct lock *lock)
{
	return semaphore_of(lock) != NULL;
}

/* Whose valid grants those are: what FORCEUNLOCK deleted may be in use until its daemon has been told. */
bool any_is_void(const struct world *w, const struct grant *g)
{
	for (size_t i = 0; w->any->forces && i < ANY_GONE; i++)
		if (w->any->gone[i] == g->token >> 10)
			return true;
	return false;
}

bool any_is_proven(const struct host *h)
{
	return h->broker && (h->conf.standalone || host_now(h) < broker_safe_until(h->broker));
}

/* Until the end of that look. */
static const struct lock *lock_at(const struct host *h, int name)
{
	return h->w->any->locks[h->index][name];
}

static void resolution(struct world *w)
{
	for (int i = 0; i < w->host_count; i++)
		for (int name = 0; name < ANY_NAMES; name++)
			w->any->locks[i][name] = w->hosts[i].broker ? lock_find(&w->hosts[i].broker->locks,
									       slice_of(any_names[name]))
								    : NULL;
}

/* ---- requests and replies ---- */

static unsigned int bit(const struct lock *lock, enum kind kind)
{
	int name = any_name_of(bytes_view(&lock->name));

	return name < 0 || kind == KIND_SEMAPHORE ? 0 : 1U << name;
}

static unsigned int holds(const struct any_peer *p, bool queued)
{
	const struct client *c = p->host->broker->locks.conns[p->conn];
	unsigned int bits = 0;
	const struct request *r;
	const struct grant *g;

	TAILQ_FOREACH(g, &c->grants, client_link)
		if (!g->lost)
			bits |= bit(g->lock, g->lock->rule->kind);
	TAILQ_FOREACH(r, &c->requests, client_link)
		if (queued)
			bits |= bit(r->lock, request_kind(r));
	return bits;
}

void any_check_asking(struct any_peer *p, const struct slice *words, size_t count)
{
	p->held = holds(p, true);
	p->name = count > 1 ? any_name_of(words[1]) : -1;
	/* Where that is kept, the end of an observation that was not read is forgotten, and another one begins. */
	if (p->command == COMMAND_OBSERVE && p->version == 2 && p->name >= 0)
		p->told[p->name] = (struct any_told){ 0 };
	any_rules_asking(p, words, count);
}

static int error_of(struct slice reply)
{
	for (int code = 0; code < ERROR_COUNT; code++) {
		const char *word = error_word((enum error_code)code);
		size_t len = strlen(word);

		if (reply.len > len + 1 && memcmp(reply.data + 1, word, len) == 0 && reply.data[len + 1] == ' ')
			return code;
	}
	return -1;
}

/* By the table that the document shows. */
static void check_source(const struct any_peer *p, int source, int code)
{
	if (source < SOURCE_COUNT && code >= 0 && !answers_error(source, (enum error_code)code))
		world_fail(p->host->w, -1, "host %d client %u: -%s from source %d, which the table does not know",
			   p->host->index, p->conn, error_word((enum error_code)code), source);
}

static void forget_told(struct any_peer *p)
{
	memset(p->told, 0, sizeof(p->told));
}

static void told(struct any_peer *p, struct slice text);

/* What observers watch counts until the watch tells that the directory may be another one. */
static bool is_observed(const struct lock *lock)
{
	return lock->observer_count && (lock->directory.state == DIRECTORY_FITS || lock->locks->env->conf->standalone);
}

/* What a host thinks of a name by itself refuses nobody who is right: it was held as that kind before it was asked for. */
static void check_refused(const struct any_peer *p, struct slice reply)
{
	static const char words[] = "-MISMATCH this name is in use as";
	struct world *w = p->host->w;
	const struct lock *lock;
	enum kind kind = KIND_LOCK;

	if (reply.len < sizeof(words) || memcmp(reply.data, words, sizeof(words) - 1) != 0 || p->name < 0)
		return;
	if (p->command == COMMAND_ACQUIRE)
		kind = KIND_SEMAPHORE;
	else if (p->command == COMMAND_CAMPAIGN)
		kind = KIND_ELECTION;
	else if (p->command != COMMAND_LOCK)
		return;
	lock = lock_find(&p->host->broker->locks, slice_of(any_names[p->name])); /* since the latest look it may have gone */
	if (w->any->forces || !any_is_proven(p->host) || (lock && (!TAILQ_EMPTY(&lock->lost) || is_observed(lock))))
		return;
	if (w->any->names[p->name].held_at[kind] && w->any->names[p->name].held_at[kind] < p->asked_at)
		world_fail(w, -1, "host %d client %u: %s is held as %s, and refused: %.*s", p->host->index, p->conn,
			   any_names[p->name], kind_noun(kind), (int)reply.len, reply.data);
}

void any_check_reply(struct any_peer *p, struct slice reply)
{
	struct world *w = p->host->w;

	if (!p->asking)
		world_fail(w, -1, "host %d client %u: a reply without a request: %.*s", p->host->index, p->conn,
			   (int)reply.len, reply.data);
	if (!reply.len || !strchr(":+-$*%_", reply.data[0]) || (reply.data[0] == '-' && error_of(reply) < 0))
		world_fail(w, -1, "host %d client %u: no reply: %.*s", p->host->index, p->conn, (int)reply.len,
			   reply.data);
	if (reply.data[0] == '-' && p->command != COMMAND_COUNT)
		check_source(p, (int)p->command, error_of(reply));
	check_refused(p, reply);
	any_rules_reply(p, reply);
	letters_replied(p, reply);
	places_replied(p, reply);
	p->asking = false;
	p->replied = true;
	snprintf(p->reply, sizeof(p->reply), "%.*s", (int)reply.len, reply.data);
	w->stats->deadlocks += strncmp(p->reply, "-DEADLOCK this client waits for", 31) == 0;
	if (p->command == COMMAND_HELLO && reply.data[0] != '-')
		p->version = reply.data[0] == '%' ? 3 : 2;
	if (p->command == COMMAND_RESET)
		p->version = 2;
	if (p->command == COMMAND_RESET || p->command == COMMAND_UNOBSERVE)
		forget_told(p);
	if (p->command == COMMAND_EVENTS)
		told(p, reply);
}

/* One that was not granted leaves nothing behind, but what a client that is being closed has still to release. */
static void check_replied(struct any_peer *p)
{
	bool granted = p->reply[0] == '*' && p->reply[1] != '-';

	p->replied = false;
	if (p->on && !p->closing && p->host->broker->locks.conns[p->conn] && p->command == COMMAND_MLOCK && !granted &&
	    holds(p, false) & ~p->held)
		world_fail(p->host->w, -1, "host %d client %u: an MLOCK left something behind: %s", p->host->index,
			   p->conn, p->reply);
}

static bool may_take_long(enum command command)
{
	return command == COMMAND_LOCK || command == COMMAND_MLOCK || command == COMMAND_CAMPAIGN ||
	       command == COMMAND_ACQUIRE || command == COMMAND_EVENTS || command == COMMAND_COUNT /* ARRIVE */;
}

static void check_answered(const struct any_peer *p)
{
	struct world *w = p->host->w;
	int64_t since = w->sched.now - WITHIN - 2 * w->timeout;

	if (p->on && p->asking && !p->closing && !may_take_long(p->command) && p->asked_at < since && is_calm(w, since))
		world_fail(w, -1, "host %d client %u: %s has had no answer for long", p->host->index, p->conn,
			   p->command < COMMAND_COUNT ? command_table[p->command].word : "what it asked");
}

/* ---- what is pushed, or told by EVENTS ---- */

static size_t split(struct slice text, struct slice *items)
{
	size_t count = 0;
	bool first = true;

	while (text.len && count < ITEMS_MAX) {
		const char *end = memmem(text.data, text.len, "\r\n", 2);
		struct slice line = { text.data, end ? (size_t)(end - text.data) : text.len };
		bool length = line.len && line.data[0] == '$';

		text = (struct slice){ line.data + line.len + 2, end ? text.len - line.len - 2 : 0 };
		if (!first && !length)
			items[count++] = line;
		first = false;
	}
	return count;
}

static void check_event(const struct any_peer *p, struct slice event, struct slice word)
{
	for (int code = 0; code < ERROR_COUNT; code++)
		if (slice_eq(word, slice_of(error_word((enum error_code)code))))
			check_source(p, slice_eq(event, SLICE("failed")) ? SOURCE_FAILED : SOURCE_UNOBSERVED, code);
}

static void told(struct any_peer *p, struct slice text)
{
	struct slice items[ITEMS_MAX];
	size_t count = split(text, items);
	int name = count > 1 ? any_name_of(items[1]) : -1;
	struct any_told *t;
	int64_t token;

	if (name < 0)
		return;
	t = &p->told[name];
	if (slice_eq(items[0], SLICE("unobserved")))
		*t = (struct any_told){ 0 };
	if (slice_eq(items[0], SLICE("unobserved")) || slice_eq(items[0], SLICE("failed")))
		check_event(p, items[0], count > 2 ? items[2] : SLICE(""));
	if (!slice_eq(items[0], SLICE("leader")) || count < 3)
		return;
	token = strtoll(items[2].data + 1, NULL, 10);
	if (p->version == 3 && ((t->told && token == t->token) || (token && token <= t->highest)))
		world_fail(p->host->w, -1,
			   "host %d client %u: told that %" PRId64 " leads %s, after %" PRId64 " and %" PRId64,
			   p->host->index, p->conn, token, any_names[name], t->token, t->highest);
	if (count > 4)
		any_rules_told(p, name, items[4]);
	t->told = true;
	t->token = token;
	t->highest = token ? token : t->highest;
}

void any_check_push(struct any_peer *p, struct slice push)
{
	if (push.len && push.data[0] == '-' && error_of(push) >= 0)
		return; /* refused before it asked */
	if (!push.len || push.data[0] != '>' || p->version != 3)
		world_fail(p->host->w, -1, "host %d client %u: not a push it may get: %.*s", p->host->index, p->conn,
			   (int)push.len, push.data);
	told(p, push);
}

/* ---- grants ---- */

static void check_token(struct host *h, int name, const struct grant *g, int64_t *seen)
{
	struct any_name *n = &h->w->any->names[name];

	if (g->token == *seen)
		return;
	*seen = g->token;
	h->w->stats->grants++;
	if (any_is_void(h->w, g))
		return;
	if (g->token <= (g->mode == MODE_EXCLUSIVE ? n->highest : n->highest_writer))
		world_fail(h->w, -1,
			   "host %d client %u: %s granted with token %" PRId64 ", after %" PRId64
			   " and, to write, %" PRId64,
			   h->index, g->client->conn, any_names[name], g->token, n->highest, n->highest_writer);
	if (g->token > n->highest)
		n->highest = g->token;
	if (g->mode == MODE_EXCLUSIVE)
		n->highest_writer = g->token;
}

static void check_tokens(struct host *h)
{
	static const int64_t none;

	for (int name = 0; name < ANY_NAMES; name++) {
		const struct lock *lock = lock_at(h, name);
		const struct grant *g;

		for (int i = 0; i < any_of(h)->peer_count; i++) {
			const struct client *c = h->broker->locks.conns_cap ? h->broker->locks.conns[i] : NULL;
			int64_t *seen = &any_of(h)->seen[i][name];

			*seen = lock && c && (g = grant_find(lock, c)) && !g->lost ? *seen : none;
		}
		if (!lock || !(g = TAILQ_FIRST(&lock->grants)) || !g->client->bearer)
			any_of(h)->borne[name] = none;
		if (lock)
			TAILQ_FOREACH(g, &lock->grants, link)
				check_token(h, name, g,
					    g->client->bearer ? &any_of(h)->borne[name]
							      : &any_of(h)->seen[g->client->conn][name]);
	}
}

/* What is granted is of the kind that the directory's data tell. */
static void check_kind(struct world *w, const struct lock *lock)
{
	const struct grant *g = TAILQ_FIRST(&lock->grants);
	struct slice path = bytes_view(&lock->directory.path), data;
	const struct znode *n = g && !any_is_void(w, g) ? fakezk_find(&w->zk, path, FAKEZK_TRUTH) : NULL;

	if (!n || !n->view[FAKEZK_TRUTH].exists || !n->view[FAKEZK_TRUTH].data)
		return;
	data = (struct slice){ n->view[FAKEZK_TRUTH].data->bytes, n->view[FAKEZK_TRUTH].data->len };
	if (!flavour_fits(lock->directory.kind, lock->directory.flavour, data))
		world_fail(w, -1, "%s is held as another kind than its directory is of", n->path);
}

/* It is never held as two kinds at once. */
static void note_kinds(struct world *w, struct any_name *n, const bool held[KINDS_MAX], int name)
{
	int kinds = 0;

	for (int kind = 0; kind < KINDS_MAX; kind++) {
		kinds += held[kind];
		if (!held[kind])
			n->held_at[kind] = 0;
		else if (!n->held_at[kind])
			n->held_at[kind] = w->sched.now;
	}
	if (kinds > 1)
		world_fail(w, -1, "%s is held as two kinds", any_names[name]);
}

static void check_alone(struct world *w, int name)
{
	const struct grant *g, *writer = NULL, *any = NULL;
	bool held[KINDS_MAX] = { false };

	for (int i = 0; i < w->host_count; i++) {
		const struct lock *lock = any_is_proven(&w->hosts[i]) ? lock_at(&w->hosts[i], name) : NULL;

		if (!lock)
			continue;
		if (!w->mix->standalone)
			check_kind(w, lock);
		TAILQ_FOREACH(g, &lock->grants, link) {
			if (any_is_void(w, g))
				continue;
			held[lock->rule->kind] = true;
			if (writer || (any && g->mode == MODE_EXCLUSIVE))
				world_fail(w, -1, "%s is held with %" PRId64 " and with %" PRId64, any_names[name],
					   writer ? writer->token : any->token, g->token);
			any = g;
			writer = g->mode == MODE_EXCLUSIVE ? g : writer;
		}
	}
	note_kinds(w, &w->any->names[name], held, name);
}

/* ---- waits ---- */

/* Who waits while nobody holds it is granted soon. */
static void check_progress(struct world *w, struct any_name *n, int name)
{
	int64_t now = w->sched.now, since = now - WITHIN - w->timeout;
	bool waits = false, held = false;

	for (int i = 0; i < w->host_count; i++) {
		const struct lock *lock = lock_at(&w->hosts[i], name);

		waits = waits || (lock && lock->request_count + lock->aside_count && !w->hosts[i].broker->env.stopping);
		held = held || (lock && lock->grant_count) || w->hosts[i].stopped_until > now;
	}
	if (!waits || held || !is_calm(w, since))
		n->busy_at = now;
	if (n->busy_at < since)
		world_fail(w, -1, "somebody waits for %s and nobody holds it", any_names[name]);
}

static bool waits_for(const struct client *c, const struct client *other)
{
	const struct request *r = c->request, *before;
	const struct grant *g;

	if (!r || r->queued || r->expired || r->aside || is_semaphore(r->lock))
		return false;
	/* Whoever is to be closed goes soon. */
	if (c->closing || other->closing)
		return false;
	TAILQ_FOREACH(g, &r->lock->grants, link)
		if (group_same(g->client, other) && mode_conflicts(g->mode, r->mode))
			return true;
	for (before = TAILQ_PREV(r, request_list, link); before; before = TAILQ_PREV(before, request_list, link))
		if (group_same(before->client, other) && mode_conflicts(before->mode, r->mode))
			return true;
	return false;
}

static void check_circles(struct host *h)
{
	bool edge[ANY_PEERS][ANY_PEERS] = { 0 };
	int n = any_of(h)->peer_count, i, j, k;

	for (i = 0; i < n; i++)
		for (j = 0; j < n && h->broker->locks.conns_cap; j++)
			edge[i][j] = h->broker->locks.conns[i] && h->broker->locks.conns[j] &&
				     waits_for(h->broker->locks.conns[i], h->broker->locks.conns[j]);
	for (k = 0; k < n; k++)
		for (i = 0; i < n; i++)
			for (j = 0; j < n; j++)
				edge[i][j] = edge[i][j] || (edge[i][k] && edge[k][j]);
	for (i = 0; i < n; i++)
		if (edge[i][i])
			world_fail(h->w, -1, "host %d client %d waits for itself", h->index, i);
}

/* ---- elections ---- */

/* Who is proclaimed may be read before it is told: for a moment they may differ. */
static void check_observers(struct world *w, struct any_name *n, int name)
{
	int64_t now = w->sched.now, leader = 0;
	const struct lock *lock;

	for (int i = 0; i < w->host_count; i++) {
		lock = lock_at(&w->hosts[i], name);
		if (lock && lock->directory.kind == KIND_ELECTION && lock->grant_count)
			leader = TAILQ_FIRST(&lock->grants)->token;
	}
	for (int i = 0; i < w->host_count; i++) {
		struct host *h = &w->hosts[i];

		lock = lock_at(h, name);
		if (leader != n->leader || !lock || !lock->observer_count || h->stopped_until > now ||
		    !is_calm(w, now - WITHIN) || (observation_of(lock)->known && observation_of(lock)->token == leader))
			any_of(h)->right_at[name] = now;
		if (any_of(h)->right_at[name] < now - WITHIN)
			world_fail(w, -1, "%s is led by %" PRId64 ", and host %d knows %" PRId64, any_names[name],
				   leader, i, observation_of(lock)->known ? observation_of(lock)->token : -1);
	}
	n->leader = leader;
}

/* ---- the log ---- */

void any_logged(struct host *h, const struct effect *e, struct slice text)
{
	any_rules_logged(h, text);
	any_rules_logged(h, effects_slice(&h->effects, e->data));
}

void any_forget_log(struct host *h)
{
	any_of(h)->begun = any_of(h)->over = 0;
	waits_forget(h);
}

void any_held(struct host *h, const struct effect *e)
{
	struct hold_record hold = hold_record_read(effects_slice(&h->effects, e->data));

	any_of(h)->over += hold.over;
	waits_logged(h, (enum log_event)e->log.event, &hold);
	if (hold.granted_ns > hold.now_ns || hold.asked_ns > hold.now_ns)
		world_fail(h->w, -1, "host %d: a hold or a wait of the future is logged", h->index);
}

int64_t any_count_grants(const struct host *h)
{
	const struct lock *lock;
	const struct grant *g;
	int64_t count = 0;

	TAILQ_FOREACH(lock, &h->broker->locks.used, link)
		TAILQ_FOREACH(g, &lock->grants, link)
			count++;
	return count;
}

/* Each grant that has ended is in the log, but for delegated ones that were free: those of a process before are not said. */
static void check_log(struct host *h)
{
	const struct any_host *a = any_of(h);
	int64_t ended = a->begun + (int64_t)h->broker->env.stats.grants_total - any_count_grants(h);

	if (h->conf.log_level == EFFECT_LEVEL_DEBUG && (a->over > ended || (!h->conf.delegation && a->over < ended)))
		world_fail(h->w, -1, "host %d: %" PRId64 " grants have ended, %" PRId64 " by its log",
			   h->index, ended, a->over);
}

/* ---- new names ---- */

/* Twice what may be made at once: some were paid for and come later. */
static void check_named(struct host *h, const struct effect *e, struct slice path)
{
	struct any_host *a = any_of(h);
	const struct broker_limits *l = &h->conf.limits;
	const char *slash = memrchr(path.data, '/', path.len);
	struct slice parent = { path.data, (size_t)(slash - path.data) };
	int64_t now = h->w->sched.now;

	if (!l->new_names_per_s || e->create == ZK_EPHEMERAL || e->create == ZK_EPHEMERAL_SEQUENTIAL || slash[1] == '.' ||
	    (!slice_eq(parent, SLICE("/locks")) && !slice_eq(parent, SLICE("/app/locks"))))
		return;
	a->named_ns -= now - a->named_at;
	a->named_ns = (a->named_ns > 0 ? a->named_ns : 0) + SECOND / (int64_t)l->new_names_per_s;
	a->named_at = now;
	if (a->named_ns > (2 * (int64_t)l->new_names + 1) * (SECOND / (int64_t)l->new_names_per_s))
		world_fail(h->w, -1, "host %d: makes %.*s, and %zu at once and %zu each second may be made", h->index,
			   (int)path.len, path.data, l->new_names, l->new_names_per_s);
}

/* Only names that begin with k are of flavour kazoo. */
static void check_lasting(struct host *h, const struct effect *e, struct slice path)
{
	const char *slash = memrchr(path.data, '/', path.len);

	if (e->create == ZK_PERSISTENT && slash[1] == 'k' && !h->conf.limits.lasting_directories)
		world_fail(h->w, -1, "host %d: makes lasting directory %.*s past the limit", h->index, (int)path.len,
			   path.data);
}

void any_created(struct host *h, const struct effect *e, struct slice path, struct slice data)
{
	check_named(h, e, path);
	check_lasting(h, e, path);
	letters_created(h, path, data);
}

/* ---- all of it ---- */

void any_check(struct host *h)
{
	struct world *w = h->w;
	struct any_host *a = any_of(h);

	resolution(w);
	values_check(h);
	places_check(h);
	latches_check(h);
	for (int i = 0; i < a->peer_count; i++) {
		if (a->peers[i].replied)
			check_replied(&a->peers[i]);
		check_answered(&a->peers[i]);
	}
	check_tokens(h);
	check_log(h);
	waits_check(h);
	/* Who is set aside is queued, and searched for, in later events, which come right after this one. */
	if (h->conf.deadlock_detection && !broker_has_work(h->broker))
		check_circles(h);
	for (int name = 0; name < ANY_NAMES; name++) {
		check_alone(w, name);
		check_progress(w, &w->any->names[name], name);
		check_observers(w, &w->any->names[name], name);
	}
}

/* The next process after a kill or a hand-over does not know that such a znode stands there: it goes with the session. */
static bool may_be_left(const struct znode *n)
{
	return strstr(n->path, "/.hosts/") || strstr(n->path, "/.try_");
}

void any_check_end(struct world *w)
{
	const struct znode *n;

	for (size_t i = 0; i < sizeof(w->zk.buckets) / sizeof(w->zk.buckets[0]); i++)
		for (n = w->zk.buckets[i]; n; n = n->hash_next)
			if (n->view[FAKEZK_TRUTH].exists && n->session && !may_be_left(n))
				world_fail(w, -1, "%s is left", n->path);
}
