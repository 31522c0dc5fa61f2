/* SPDX-License-Identifier: Apache-2.0 */
#include "core/hosts/answer.h"

#include <assert.h>

#include "base/mem.h"
#include "core/client/reply.h"
#include "core/hosts/hosts.h"
#include "core/znode/record.h"

enum { HOLDERS_TOLD = 4 }; /* in a sentence about permits */

/* ---- why ---- */

static bool is_paused(const struct lock *lock)
{
	int64_t now_ns = lock->locks->env->now_ns;

	return lock->directory.pause_until_ns > now_ns || (lock->slots && lock->slots->pause_until_ns > now_ns);
}

/* What keeps this host from granting a lock that it is entitled to, or from seeing that it is. */
static const char *obstacle(const struct answer *a, const struct lock *lock)
{
	const struct query *q = a->query;
	const struct hosts *h = q->hosts;
	bool permits = a->view.permits;
	const char *refusal = health_refusal(h->ensemble, bytes_view(&q->path)), *why;

	if (h->env->stopping)
		return "this daemon is stopping and grants nothing";
	if (h->env->draining)
		return env_halt_sentence(h->env);
	if (q->partial)
		return "there is no connection to ZooKeeper: the state of other hosts is not known";
	if (q->refused)
		return permits ? "ZooKeeper refuses to show the semaphore's directories: the state of other hosts is not known"
			       : "ZooKeeper refuses to show the lock's directory: the state of other hosts is not known";
	if (refusal)
		return refusal;
	if (!session_grants(h->ensemble))
		return "this host's session is not proven for long enough to grant";
	if (lock && lock->directory.exhausted)
		return permits ? "the sequence numbers of its queue run out: its directory must empty first"
			       : "the lock's sequence numbers run out: its directory must empty first";
	if (lock && !permits && lock->directory.unverified)
		return "the lock is of another kind or flavour in ZooKeeper";
	if (lock && lock->rule->obstacle && (why = lock->rule->obstacle(lock)))
		return why;
	if (lock && is_paused(lock))
		return "ZooKeeper will be asked again in a moment: it refused something, or a new session has begun";
	return NULL;
}

static void say_lock(const struct answer *a, const struct lock *lock, struct bytes *text)
{
	const char *keeps = obstacle(a, lock);

	bool known = a->row_count || a->delegated;

	if (a->row_count)
		bytes_format(text, "held %s", bytes_view(&a->said));
	else if (a->delegated)
		bytes_format(text, "nobody holds it: it is delegated to a client %s, which gets it without asking until "
				   "it is taken back for others", bytes_view(&a->said));
	if (keeps)
		bytes_format(text, "%s%s", known ? "; " : "", keeps);
	else if (!known && lock && lock->request_count)
		bytes_text(text, "nobody holds it: it is about to be granted");
	else if (!known)
		bytes_text(text, "nobody holds it and nobody on this host waits for it");
}

static void say_holders(const struct answer *a, struct bytes *text)
{
	if (!a->row_count) {
		bytes_text(text, "nobody has any");
		return;
	}
	bytes_format(text, "%d held%s", a->permits, bytes_view(&a->said));
	if (a->row_count > HOLDERS_TOLD)
		bytes_format(text, "; and %d holders more", a->row_count - HOLDERS_TOLD);
}

static void say_permits(const struct answer *a, const struct lock *lock, size_t hosts_before, struct bytes *text)
{
	int64_t limit = a->query->permits ? a->query->permits : lock_limit(lock);
	const char *keeps = obstacle(a, lock);

	if (limit)
		bytes_format(text, "of %d permits ", limit);
	say_holders(a, text);
	if (a->waits)
		bytes_format(text, "; this client waits for %d", a->count);
	if (a->waits && a->position == 1 && !hosts_before)
		bytes_text(text, ", and is the next");
	else if (a->waits)
		bytes_format(text, " behind %d of this host and %d other hosts", a->position - 1, hosts_before);
	if (keeps)
		bytes_format(text, "; %s", keeps);
}

/* Of a lock the first holder, of a semaphore the first few with their permits. */
static void say_row(struct answer *a, const struct participant *p)
{
	if (a->row_count >= (a->view.permits ? HOLDERS_TOLD : 1))
		return;
	if (a->view.permits)
		bytes_format(&a->said, "%s%d ", a->row_count ? "; " : ": ", p->depth);
	participant_say(&a->said, p);
}

/* ---- rows ---- */

static void write_host(const struct query *q, const struct query_child *child, struct bytes *out)
{
	struct slice data = bytes_view(&child->data);
	struct bytes session = { 0 };

	/* Whoever knows a session can end it. */
	if (client_is_operator(q->client))
		bytes_format(&session, "0x%x", child->owner);
	resp_map(out, 8, q->client->version);
	reply_pairs(out, "host", bytes_view(&child->name), "pid", participant_number(data, "pid", 0), "version",
		    record_get(data, "version"), "started", participant_number(data, "started", 0));
	reply_pairs(out, "tick_ms", participant_number(data, "tick_ms", 0), "boot_id", record_get(data, "boot_id"));
	reply_pairs(out, "session", bytes_view(&session), "self", child->owner == q->hosts->ensemble->session.id);
	bytes_free(&session);
}

static bool show_host(struct answer *a, int64_t *steps)
{
	const struct query *q = a->query;
	const struct query_child *child;

	if (a->at == q->count)
		return false;
	child = &q->children[a->at++];
	*steps += VIEW_READ_STEPS;
	if (!child->gone) {
		write_host(q, child, &a->rows);
		a->row_count++;
	}
	return true;
}

static void show(struct answer *a, const struct participant *p)
{
	int version = a->query->client->version;

	if (a->delegated && !a->row_count) { /* the delegation was free when it was noted, but there are holders now */
		a->delegated = 0;
		bytes_clear(&a->said);
	}
	if (a->query->command == COMMAND_WHY)
		say_row(a, p);
	if (a->query->command == COMMAND_QUEUE)
		participant_write_waiter(p, a->row_count + 1, &a->rows, version);
	else
		participant_write_holder(p, &a->rows, version);
	a->row_count++;
	a->here += p->here;
	a->permits += p->depth;
}

/* A client that only has the lock delegated: its time is not shown, because it does not hold the lock. */
static void show_kept(struct answer *a, struct participant *p)
{
	if (a->row_count || a->delegated)
		return;
	a->delegated = p->client;
	p->for_ms = -1;
	participant_say(&a->said, p);
}

/* The next row. False: there is none. */
static bool show_next(struct answer *a, int64_t *steps)
{
	struct participant p;
	enum view_step is;

	if (a->query->command == COMMAND_HOSTS)
		return show_host(a, steps);
	is = view_step(&a->view, &p, steps);
	if (is == VIEW_ROW)
		show(a, &p);
	if (is == VIEW_KEPT)
		show_kept(a, &p);
	return is != VIEW_LAST;
}

/* ---- the place of the client's own request ---- */

/* The client may wait for something else, or for nothing. */
static void begin_placing(struct answer *a)
{
	const struct lock *lock = a->query->command == COMMAND_WHY ? view_lock(a->query) : NULL;

	a->placing = true;
	if (lock && request_find(lock, a->query->client))
		walk_begin_requests(&a->walk, lock);
}

/* False: it is known. */
static bool place(struct answer *a)
{
	const struct request *r = walk_request(&a->walk);

	if (!r)
		return false;
	a->position++;
	if (r->client != a->query->client)
		return true;
	a->waits = true;
	a->count = r->count;
	return false;
}

/* ---- answers ---- */

static void write_why(const struct answer *a, struct bytes *out, int version)
{
	const struct lock *lock = view_lock(a->query);
	size_t hosts_before, hosts_waiting;
	struct bytes text = { 0 };

	view_hosts(a->query, &hosts_before, &hosts_waiting);
	if (a->view.permits)
		say_permits(a, lock, hosts_before, &text);
	else
		say_lock(a, lock, &text);
	resp_map(out, 8, version);
	reply_pairs(out, "why", bytes_view(&text), "state", lock_state_word(lock), "position", a->waits ? a->position : 0);
	reply_pairs(out, "waiters", lock ? lock->request_count : 0, "hosts_before", hosts_before, "hosts_waiting",
		    hosts_waiting, "delegated", a->delegated);
	resp_bulk(out, SLICE("holders"));
	bytes_free(&text);
}

/* Why an empty answer would be wrong: it says that there is nobody. NULL: it is true, or the answer is not empty. */
static const char *unknown(const struct answer *a)
{
	const struct query *q = a->query;

	if (!q->partial && !q->refused)
		return NULL;
	if (q->command == COMMAND_HOSTS)
		return "there is no connection to ZooKeeper, which knows the hosts";
	if (q->command == COMMAND_WHY || (a->view.permits && q->command == COMMAND_HOLDERS ? a->row_count : a->here))
		return NULL;
	if (a->view.permits)
		return "ZooKeeper does not tell what other hosts do";
	return q->refused ? "ZooKeeper refuses to show the lock's directory" : "ZooKeeper cannot be asked what other hosts do";
}

static bool too_long(const struct answer *a)
{
	return a->rows.len > a->query->hosts->env->conf->limits.output_bytes;
}

static void reply(struct answer *a)
{
	struct client *c = a->query->client;
	const char *sentence = unknown(a);

	if (sentence) {
		reply_error(c, ERROR_UNAVAILABLE, "%s", sentence);
		return;
	}
	if (too_long(a)) {
		reply_too_long(c);
		return;
	}
	if (a->query->command == COMMAND_WHY)
		write_why(a, reply_out(c), c->version);
	reply_rows(c, &a->rows, a->row_count);
}

static void finish(struct answer *a)
{
	struct query *q = a->query;

	reply(a);
	answer_end(a);
	query_free(q);
}

/* False: it is to be answered. */
static bool step(struct answer *a, int64_t *steps)
{
	if (too_long(a))
		return false;
	if (!a->placing && show_next(a, steps))
		return true;
	++*steps;
	if (!a->placing)
		begin_placing(a);
	return place(a);
}

static void aim(struct answer *a)
{
	a->rules = a->query->hosts->env->rules;
	reply_begin_rows(&a->rows);
	if (a->query->command == COMMAND_QUEUE)
		view_begin_waiters(&a->view, a->query);
	else
		view_begin_holders(&a->view, a->query);
}

/* What it might look at before is not shown any longer. */
static void begin_anew(struct answer *a)
{
	walk_end(a->query->hosts->locks, &a->walk);
	view_end(&a->view);
	bytes_clear(&a->said);
	a->at = a->row_count = a->here = 0;
	a->permits = a->position = a->count = a->delegated = 0;
	a->placing = a->waits = false;
	aim(a);
}

int64_t answer_continue(struct answer *a, int64_t steps)
{
	bool one = a->query->hosts->env->conf->all_in_pieces;
	int64_t done = 0;

	if (a->rules != a->query->hosts->env->rules)
		begin_anew(a);
	while (done < steps) {
		if (!step(a, &done)) {
			finish(a);
			break;
		}
		if (one)
			return steps;
	}
	return done;
}

/* ---- begun and ended ---- */

bool answer_is_of(const struct query *q)
{
	return q->command == COMMAND_HOLDERS || q->command == COMMAND_QUEUE || q->command == COMMAND_WHY ||
	       q->command == COMMAND_HOSTS;
}

static struct answer *begin(struct query *q)
{
	struct answer *a = mem_new(sizeof(*a));

	assert(!q->answer && !q->revocation);
	a->work.kind = WORK_ANSWER;
	a->query = q;
	aim(a);
	q->answer = a;
	q->state = QUERY_ANSWERING;
	return a;
}

void answer_leave(struct query *q)
{
	work_add(&q->hosts->env->works, &q->client->user->worker, &begin(q)->work);
}

void answer_begin(struct query *q)
{
	struct work_user *worker = &q->client->user->worker;
	struct env *env = q->hosts->env;
	struct client *c = q->client;
	struct answer *a = begin(q);

	/* What comes before it for the same user goes first. */
	if (!env->conf->all_in_pieces && TAILQ_EMPTY(&worker->items))
		answer_continue(a, WORK_TURN_STEPS);
	if (c->query)
		work_add(&env->works, worker, &a->work);
}

void answer_end(struct answer *a)
{
	struct hosts *h;

	if (!a)
		return;
	h = a->query->hosts;
	work_drop(&h->env->works, &a->work);
	walk_end(h->locks, &a->walk);
	view_end(&a->view);
	bytes_free(&a->rows);
	bytes_free(&a->said);
	a->query->answer = NULL;
	mem_free(a);
}
