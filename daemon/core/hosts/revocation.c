/* SPDX-License-Identifier: Apache-2.0 */
#include "core/hosts/revocation.h"

#include "base/mem.h"
#include "core/client/reply.h"
#include "core/hosts/hosts.h"
#include "core/znode/record.h"

static bool is_forced(const struct revocation *d)
{
	return d->query->command == COMMAND_FORCEUNLOCK;
}

/* ---- life ---- */

static void target_deinit(struct target *t)
{
	struct letter *l = t->letter;

	if (l) {
		letter_abandon(l);
		if (is_forced(t->revocation) && t->state == TARGET_ASKED)
			letter_withdraw(l);
	}
	bytes_free(&t->id);
}

void revocation_free(struct revocation *d)
{
	for (size_t i = 0; i < d->count; i++)
		target_deinit(&d->targets[i]);
	mem_free(d->targets);
	bytes_free(&d->reason);
	heap_unset(&d->query->hosts->env->timers, &d->timer);
	work_drop(&d->query->hosts->env->works, &d->work);
	revoke_end(&d->here);
	d->query->revocation = NULL;
	mem_free(d);
}

/* It is answered. */
static void end(struct revocation *d)
{
	struct query *q = d->query;

	revocation_free(d);
	query_free(q);
}

static void fail(struct revocation *d, enum error_code code, const char *sentence)
{
	reply_error(d->query->client, code, "%s", sentence);
	end(d);
}

/* Answers once no target is open. */
static void settle(struct revocation *d)
{
	if (d->open)
		return;
	if (d->failed) {
		fail(d, ERROR_UNAVAILABLE, d->failed);
	} else if (d->strangers && !d->holders) {
		fail(d, ERROR_ERR, "it is held by software other than lockbroker, which cannot be asked to release it");
	} else {
		reply_integer(d->query->client, d->holders);
		end(d);
	}
}

/* ---- the holders on this host, who need no letter ---- */

static void here_is_over(struct revocation *d)
{
	struct revoker by = revoke_by(d->query->client);

	d->open--;
	d->holders += d->here.count;
	if (is_forced(d) && d->here.count)
		revoke_log(d->query->hosts, bytes_view(&d->query->name), d->here.count, &by, (struct slice){ 0 });
}

static void leave_for_later(struct revocation *d)
{
	work_add(&d->query->hosts->env->works, &d->query->client->user->worker, &d->work);
}

/* True: that was all. */
static bool begin_here(struct revocation *d)
{
	struct locks *locks = d->query->hosts->locks;

	return revoke_begin(&d->here, locks, lock_find(locks, bytes_view(&d->query->name)), bytes_view(&d->reason));
}

/* What comes before it for the same user goes first. */
static void serve_here(struct revocation *d)
{
	if (TAILQ_EMPTY(&d->query->client->user->worker.items) && begin_here(d))
		here_is_over(d);
	else
		leave_for_later(d);
}

int64_t revocation_continue(struct revocation *d, int64_t steps)
{
	bool one = d->query->hosts->env->conf->all_in_pieces, over;
	int64_t done = 0;

	if (d->here.locks)
		over = revoke_some(&d->here, bytes_view(&d->reason), one ? 1 : steps, &done);
	else
		over = begin_here(d);
	if (over) {
		work_drop(&d->query->hosts->env->works, &d->work);
		here_is_over(d);
		settle(d);
	}
	return done ? done : WORK_TURN_STEPS;
}

bool revocation_is_here(const struct revocation *d)
{
	return d->work.worker && !d->count;
}

/* ---- begun ---- */

struct revocation *revocation_restore(struct hosts *h, struct client *c, enum command command, struct slice name,
				      struct slice reason)
{
	struct revocation *d = mem_new(sizeof(*d));

	d->timer.kind = TIMER_REVOCATION;
	d->work.kind = WORK_REVOKE;
	d->here.forced = command == COMMAND_FORCEUNLOCK;
	bytes_slice(&d->reason, reason);
	d->query = query_new(h, c, command, name);
	d->query->revocation = d;
	return d;
}

void revocation_new(struct hosts *h, struct client *c, enum command command, struct slice name, struct slice reason)
{
	struct revocation *d = revocation_restore(h, c, command, name, reason);

	if (query_begin(d->query))
		revocation_found(d);
}

void revocation_resume(struct hosts *h, struct client *c, enum command command, struct slice name, struct slice reason,
		       int64_t taken)
{
	struct revocation *d = revocation_restore(h, c, command, name, reason);

	d->query->state = QUERY_REVOKING;
	d->here.count = taken;
	d->open = 1;
	leave_for_later(d);
}

/* ---- asking ---- */

/* Of a semaphore: the target that exists already, if its host has that permit, too. */
static struct target *target_of(struct revocation *d, const struct query_child *child)
{
	for (size_t i = 0; d->query->part == QUERY_SLOTS && child->owner && i < d->count; i++)
		if (d->targets[i].child->owner == child->owner)
			return &d->targets[i];
	d->targets[d->count] = (struct target){ .revocation = d, .child = child };
	return &d->targets[d->count++];
}

static void add_target(struct revocation *d, struct query_child *child)
{
	struct target *t = target_of(d, child);
	struct slice host = record_get(bytes_view(&child->data), "host");

	child->target = t;
	if (!letter_host_valid(host))
		return;
	if (!t->host.len)
		t->host = host;
	t->child = child;
}

/* The next znode of the same host: its grants may rest on this one, which is deleted, too, if the host is silent. */
static void add_follower(struct revocation *d, struct query_child *child)
{
	struct target *only = d->targets;

	if (d->count == 1 && only->host.len && child->owner && child->owner == only->child->owner)
		child->target = only;
}

static enum letter_kind letter_kind(const struct revocation *d)
{
	return is_forced(d) ? LETTER_FORCE : LETTER_REVOKE;
}

static void write_letter(const struct target *t)
{
	const struct revocation *d = t->revocation;
	struct bytes *data = operation_data(d->query->hosts->ensemble);
	struct revoker by = revoke_by(d->query->client);

	record_begin(data);
	bytes_format(data, "kind=%s\nfrom=%s\n", letter_kind_word(letter_kind(d)), by.host);
	bytes_format(data, "to=%x\nname=%s\n", t->child->owner, bytes_view(&d->query->name));
	bytes_format(data, "znode=%s\n", bytes_view(&t->child->name));
	if (!is_forced(d))
		bytes_format(data, "reason=%s\n", bytes_view(&d->reason));
	bytes_format(data, "uid=%d\npid=%d\ncommand=%s\nclient=%s\n", by.uid, by.pid, by.command, by.client);
}

static void delete_znode(struct target *t, const struct query_child *child)
{
	const struct query *q = t->revocation->query;
	struct operation_request r = { .op = { .kind = OPERATION_REVOCATION_DELETE, .query = q->number } };
	struct bytes path = { 0 }, shown = { 0 };

	t->deleting++;
	bytes_format(&path, "%s/%s", bytes_view(&q->path), bytes_view(&child->name));
	r.op.part = (uint64_t)(t - t->revocation->targets);
	r.path = bytes_view(&path);
	bytes_format(&shown, "%s/%s", bytes_view(&q->path), contender_shown(bytes_view(&child->name)));
	effects_say(q->hosts->env->out, EFFECT_LEVEL_WARNING, force_deletes,
		    EFFECT_FIELDS("path=%v host=%v", bytes_view(&shown), t->host), "deleting %q, %s", bytes_view(&shown),
		    t->host.len ? "whose host does not answer" : "which is of no host that could be asked");
	operation_send(q->hosts->ensemble, EFFECT_ZK_DELETE, &r);
	bytes_free(&shown);
	bytes_free(&path);
}

static void delete_znodes(struct target *t)
{
	const struct query *q = t->revocation->query;

	t->state = TARGET_DELETING;
	for (size_t i = 0; i < q->count; i++)
		if (q->children[i].target == t)
			delete_znode(t, &q->children[i]);
}

static void ask(struct target *t)
{
	write_letter(t);
	t->letter = outbox_post(t->revocation->query->hosts, t->host, t->revocation->query->client->account);
	t->letter->target = t;
	bytes_slice(&t->id, letter_id(t->letter));
}

static void log_force(const struct revocation *d)
{
	const struct client *c = d->query->client;
	struct effects *out = d->query->hosts->env->out;

	bytes_format(&out->arena, "uid %d, pid %d (%q) takes lock %n by force from:", c->uid, c->pid,
		     bytes_view(&c->comm), bytes_view(&d->query->name));
	for (size_t i = 0; i < d->count; i++)
		if (d->targets[i].host.len)
			bytes_format(&out->arena, " %q", d->targets[i].host);
		else
			bytes_text(&out->arena, " (unknown)");
	effects_log(out, EFFECT_LEVEL_WARNING, LOG_EVENT_force_asked,
		    EFFECT_FIELDS("name=%v hosts=%d by_uid=%d by_pid=%d by_command=%v", bytes_view(&d->query->name),
				  d->count, c->uid, c->pid, bytes_view(&c->comm)));
}

static void ask_all(struct revocation *d)
{
	const struct env *env = d->query->hosts->env;

	if (is_forced(d) && d->count)
		log_force(d);
	if (d->count)
		heap_set(&d->query->hosts->env->timers, &d->timer, env->now_ns + LETTER_PATIENCE_NS);
	for (size_t i = 0; i < d->count; i++) {
		struct target *t = &d->targets[i];

		if (t->host.len) {
			ask(t);
		} else if (is_forced(d)) {
			delete_znodes(t);
		} else {
			d->strangers++;
			t->state = TARGET_DONE;
			d->open--;
		}
	}
	settle(d);
}

static const char *no_room(const struct revocation *d)
{
	struct env *env = d->query->hosts->env;
	const struct client *c = d->query->client;

	if (!is_forced(d) && !account_may(c->account, POOL_LETTERS, d->count, c->privileged))
		return pools_refusal(env, c->account, POOL_LETTERS, c->privileged);
	_Static_assert(LETTER_REVOKES_MAX == 176 && LETTER_FORCES_MAX == 240, "the sentence names it");
	return "no room for another letter: 176 (REVOKE) or 240 (FORCEUNLOCK) are under way, or "
	       "limits.session_path_bytes is reached; try again in a few seconds";
}

void revocation_found(struct revocation *d)
{
	const struct query *q = d->query;
	size_t entitled = query_entitled(q);

	if (q->partial) {
		fail(d, ERROR_UNAVAILABLE, "ZooKeeper cannot be asked who holds it");
		return;
	}
	if (q->refused) { /* a holder that cannot be seen may be one that could be asked */
		fail(d, ERROR_UNAVAILABLE, "ZooKeeper refuses to show who holds it");
		return;
	}
	d->targets = mem_new((entitled + 1) * sizeof(*d->targets));
	for (size_t i = 0; i < entitled; i++)
		if (query_is_elsewhere(&q->children[i]) && (q->part == QUERY_LOCK || query_is_held(q, &q->children[i], i)))
			add_target(d, &q->children[i]);
	for (size_t i = entitled; i < q->count; i++)
		add_follower(d, &q->children[i]);
	if (!outbox_room(q->hosts, letter_kind(d), q->client, d->count)) {
		q->hosts->env->stats.limits_total++;
		fail(d, ERROR_LIMIT, no_room(d));
		return;
	}
	d->query->state = QUERY_REVOKING;
	d->open = d->count + 1;
	serve_here(d);
	ask_all(d);
}

/* ---- answers ---- */

static void done(struct target *t, int64_t holders)
{
	t->state = TARGET_DONE;
	t->revocation->holders += holders;
	t->revocation->open--;
	settle(t->revocation);
}

static void failed(struct target *t, const char *sentence)
{
	t->revocation->failed = sentence;
	done(t, 0);
}

static bool is_open(const struct target *t)
{
	return t->state != TARGET_DONE && t->state != TARGET_DELETING;
}

static void revoke_letter(struct target *t, enum letter_fate fate)
{
	if (fate == LETTER_STANDS) {
		letter_abandon(t->letter);
		done(t, 1);
	} else if (fate == LETTER_NO_BOX) {
		failed(t, "the holder's host has no mailbox, so it cannot be asked");
	} else {
		failed(t, "the holder's host could not be asked");
	}
}

static void force_letter(struct target *t, enum letter_fate fate)
{
	struct env *env = t->revocation->query->hosts->env;

	switch (fate) {
	case LETTER_STANDS:
	case LETTER_NO_BOX: /* the same as a host that does not answer */
		break;
	case LETTER_FAILED:
		failed(t, "the holder's host could not be asked");
		break;
	case LETTER_WITHDRAWN:
		delete_znodes(t);
		break;
	case LETTER_TAKEN:
		t->state = TARGET_TAKEN;
		heap_set_by(&env->timers, &t->revocation->timer, env->now_ns + LETTER_PATIENCE_NS);
		break;
	}
}

void revocation_letter(const struct letter_news *news)
{
	struct target *t = news->target;

	if (!is_open(t))
		return;
	if (is_forced(t->revocation))
		force_letter(t, news->fate);
	else
		revoke_letter(t, news->fate);
}

/* The target, of all revocations, that the letter of that id was sent to. */
static struct target *find_asked(const struct hosts *h, struct slice id)
{
	const struct query *q;

	TAILQ_FOREACH(q, &h->queries, link)
		for (size_t i = 0; q->revocation && i < q->revocation->count; i++)
			if (slice_eq(bytes_view(&q->revocation->targets[i].id), id) && is_open(&q->revocation->targets[i]))
				return &q->revocation->targets[i];
	return NULL;
}

void revocation_answered(struct hosts *h, struct slice id, int64_t holders)
{
	struct target *t = find_asked(h, id);

	if (!t || !is_forced(t->revocation))
		return;
	if (holders == REVOKE_NOT_MINE)
		delete_znodes(t);
	else
		done(t, holders > 0 ? holders : 0);
}

void revocation_due(struct revocation *d)
{
	for (size_t i = 0; i < d->count; i++) {
		struct target *t = &d->targets[i];

		if (t->state == TARGET_TAKEN || (t->state == TARGET_ASKED && !t->letter))
			delete_znodes(t);
		else if (t->state == TARGET_ASKED)
			letter_withdraw(t->letter);
	}
}

void revocation_operated(struct hosts *h, const struct operation *op, const struct event *event)
{
	enum zk_code code = event->zk_answered.code;
	const struct query *q = query_find(h, op->query);
	struct target *t = q ? &q->revocation->targets[op->part] : NULL;

	if (!t || code == ZK_UNKNOWN) /* it ends with the connection */
		return;
	t->deleted |= code == ZK_OK;
	if (code != ZK_OK && code != ZK_NONODE) /* else the holder released it itself */
		t->revocation->failed = "ZooKeeper refuses to delete the holder's znode";
	if (--t->deleting == 0)
		done(t, t->deleted);
}

void revocation_suspended(struct hosts *h)
{
	struct query *q, *after;

	/* A revocation whose query is not over is answered by the end of the query. */
	TAILQ_FOREACH_SAFE(q, &h->queries, link, after)
		if (q->state == QUERY_REVOKING && !revocation_is_here(q->revocation))
			fail(q->revocation, ERROR_UNAVAILABLE,
			     "the connection to ZooKeeper was lost: the request may have been carried out or not");
}
