/* SPDX-License-Identifier: Apache-2.0 */
#include "core/hosts/revocation.h"

#include "base/mem.h"
#include "core/client/reply.h"
#include "core/hosts/hosts.h"
#include "core/hosts/query.h"
#include "core/hosts/revoke.h"
#include "core/znode/record.h"

/* A daemon has this long to read the letter, and as long again to answer it. */
static const int64_t PATIENCE_NS = 2000000000;

static void settle(struct revocation *d);

/* ---- life ---- */

static void target_deinit(const struct revocation *d, struct target *t)
{
	outbox_orphan(d->hosts, t->letter);
	if (d->command == COMMAND_FORCEUNLOCK && t->state == TARGET_ASKED)
		outbox_withdraw(d->hosts, t->letter);
	bytes_free(&t->id);
	bytes_free(&t->host);
	for (size_t i = 0; i < t->path_count; i++)
		bytes_free(&t->paths[i]);
	mem_free(t->paths);
}

void revocation_free(struct revocation *d)
{
	for (size_t i = 0; i < d->count; i++)
		target_deinit(d, &d->targets[i]);
	mem_free(d->targets);
	bytes_free(&d->name);
	bytes_free(&d->reason);
	heap_unset(&d->hosts->env->timers, &d->timer);
	TAILQ_REMOVE(&d->hosts->revocations, d, link);
	d->client->revocation = NULL;
	mem_free(d);
}

static void fail(struct revocation *d, enum error_code code, const char *sentence)
{
	reply_error(d->client, code, "%s", sentence);
	revocation_free(d);
}

static void finish(struct revocation *d)
{
	if (d->failed) {
		fail(d, ERROR_UNAVAILABLE, d->failed);
	} else if (d->strangers && !d->holders) {
		fail(d, ERROR_ERR, "it is held by software other than lockbroker, which cannot be asked to release it");
	} else {
		reply_integer(d->client, d->holders);
		revocation_free(d);
	}
}

static struct revocation *find(const struct hosts *h, uint64_t number)
{
	struct revocation *d;

	TAILQ_FOREACH(d, &h->revocations, link)
		if (d->number == number)
			return d;
	return NULL;
}

/* Holders on this host need no letter. */
static void serve_here(struct revocation *d)
{
	struct lock *lock = lock_find(d->hosts->locks, bytes_view(&d->name));
	struct revoker by = revoke_by(d->client);

	if (d->command == COMMAND_REVOKE) {
		d->holders = revoke_ask(lock, bytes_view(&d->reason));
		return;
	}
	d->holders = revoke_force(lock);
	if (d->holders)
		revoke_log(d->hosts, bytes_view(&d->name), d->holders, &by, (struct slice){ 0 });
}

void revocation_new(struct hosts *h, struct client *c, enum command command, struct slice name, struct slice reason)
{
	struct revocation *d = mem_new(sizeof(*d));
	struct query *q;

	d->hosts = h;
	d->client = c;
	d->command = command;
	d->number = ++h->last_revocation;
	d->timer.kind = TIMER_REVOCATION;
	bytes_slice(&d->name, name);
	bytes_slice(&d->reason, reason);
	TAILQ_INSERT_TAIL(&h->revocations, d, link);
	c->revocation = d;
	q = query_new(h, c, command, name);
	if (query_begin(q)) {
		revocation_found(q);
		query_free(q);
	}
}

/* ---- asking ---- */

static void add_path(struct target *t, const struct query *q, const struct query_child *child)
{
	struct bytes *path;

	t->paths = mem_resize(t->paths, (t->path_count + 1) * sizeof(*t->paths));
	path = &t->paths[t->path_count++];
	*path = (struct bytes){ 0 };
	bytes_format(path, "%s/%s", bytes_view(&q->path), bytes_view(&child->name));
}

/* Of a semaphore: the target that exists already, if its host has that permit, too. */
static struct target *target_of(const struct revocation *d, const struct query *q, const struct query_child *child)
{
	for (size_t i = 0; q->part == QUERY_SLOTS && child->owner && i < d->count; i++)
		if (d->targets[i].session == child->owner)
			return &d->targets[i];
	return NULL;
}

static void add_target(struct revocation *d, const struct query *q, size_t child)
{
	struct target *t = target_of(d, q, &q->children[child]);
	struct slice host = record_get(bytes_view(&q->children[child].data), "host");

	if (!t) {
		t = &d->targets[d->count++];
		t->child = child;
		t->session = q->children[child].owner;
	}
	add_path(t, q, &q->children[child]);
	if (!letter_host_valid(host))
		return;
	if (!t->host.len)
		bytes_slice(&t->host, host);
	t->child = child;
}

/* The next znode of the same host: its grants may rest on this one, which is deleted, too, if the host is silent. */
static void add_follower(struct revocation *d, const struct query *q, const struct query_child *child)
{
	if (d->count == 1 && d->targets[0].host.len && child->owner && child->owner == d->targets[0].session)
		add_path(&d->targets[0], q, child);
}

static void write_letter(const struct revocation *d, const struct query_child *child, struct bytes *data)
{
	struct revoker by = revoke_by(d->client);
	bool force = d->command == COMMAND_FORCEUNLOCK;

	record_begin(data);
	bytes_format(data, "kind=%s\nfrom=%s\n", letter_kind_word(force ? LETTER_FORCE : LETTER_REVOKE), by.host);
	bytes_format(data, "to=%x\nname=%s\n", child->owner, bytes_view(&d->name));
	bytes_format(data, "znode=%s\n", bytes_view(&child->name));
	if (!force)
		bytes_format(data, "reason=%s\n", bytes_view(&d->reason));
	bytes_format(data, "uid=%d\npid=%d\ncommand=%s\nclient=%s\n", by.uid, by.pid, by.command, by.client);
}

static void delete_path(struct revocation *d, struct target *t, size_t i)
{
	struct operation_request r = {
		.op = { .kind = OPERATION_REVOCATION_DELETE, .query = d->number, .part = (uint64_t)(t - d->targets) },
		.path = bytes_view(&t->paths[i]),
	};

	effects_say(d->hosts->env->out, EFFECT_LEVEL_WARNING, "deleting %q, %s", r.path,
		    t->host.len ? "whose host does not answer" : "which is of no host that could be asked");
	operation_send(d->hosts->ensemble, EFFECT_ZK_DELETE, &r);
}

static void delete_znodes(struct revocation *d, struct target *t)
{
	t->state = TARGET_DELETING;
	t->deleting = t->path_count;
	for (size_t i = 0; i < t->path_count; i++)
		delete_path(d, t, i);
}

static void ask(struct revocation *d, struct target *t, const struct query_child *child)
{
	struct bytes data = { 0 };
	const struct letter *l;

	write_letter(d, child, &data);
	l = outbox_post(d->hosts, bytes_view(&t->host), bytes_view(&data), d->number);
	t->letter = l->number;
	bytes_slice(&t->id, letter_id(l));
	bytes_free(&data);
}

static void log_force(const struct revocation *d)
{
	struct effects *out = d->hosts->env->out;
	size_t begin = effects_begin(out);

	bytes_format(&out->arena, "uid %d, pid %d (%q) takes lock %q by force from:", d->client->uid, d->client->pid,
		     bytes_view(&d->client->comm), bytes_view(&d->name));
	for (size_t i = 0; i < d->count; i++)
		if (d->targets[i].host.len)
			bytes_format(&out->arena, " %q", bytes_view(&d->targets[i].host));
		else
			bytes_text(&out->arena, " (unknown)");
	effects_log(out, EFFECT_LEVEL_WARNING, begin);
}

static void ask_all(struct revocation *d, const struct query *q)
{
	bool force = d->command == COMMAND_FORCEUNLOCK;

	if (force && d->count)
		log_force(d);
	d->open = d->count;
	heap_set(&d->hosts->env->timers, &d->timer, d->hosts->env->now_ns + PATIENCE_NS);
	for (size_t i = 0; i < d->count; i++) {
		struct target *t = &d->targets[i];

		if (t->host.len) {
			ask(d, t, &q->children[t->child]);
		} else if (force) {
			delete_znodes(d, t);
		} else {
			d->strangers++;
			t->state = TARGET_DONE;
			d->open--;
		}
	}
	settle(d);
}

void revocation_found(const struct query *q)
{
	struct revocation *d = q->client->revocation;
	enum letter_kind kind = d->command == COMMAND_FORCEUNLOCK ? LETTER_FORCE : LETTER_REVOKE;
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
			add_target(d, q, i);
	for (size_t i = entitled; i < q->count; i++)
		add_follower(d, q, &q->children[i]);
	if (!outbox_room(d->hosts, kind, d->count)) {
		d->hosts->env->stats.limits_total++;
		_Static_assert(LETTER_REVOKES_MAX == 128 && LETTER_FORCES_MAX == 192, "as it is said");
		fail(d, ERROR_LIMIT, "no room for another letter: 128 (REVOKE) or 192 (FORCEUNLOCK) are under way, or "
				     "limits.session_path_bytes is reached; try again in a few seconds");
		return;
	}
	serve_here(d);
	ask_all(d, q);
}

/* ---- answers ---- */

static void settle(struct revocation *d)
{
	if (!d->open)
		finish(d);
}

static void done(struct revocation *d, struct target *t, int64_t holders)
{
	t->state = TARGET_DONE;
	d->holders += holders;
	d->open--;
	settle(d);
}

static void failed(struct revocation *d, struct target *t, const char *sentence)
{
	d->failed = sentence;
	done(d, t, 0);
}

static struct target *find_target(const struct revocation *d, uint64_t letter)
{
	for (size_t i = 0; d && i < d->count; i++)
		if (d->targets[i].letter == letter)
			return &d->targets[i];
	return NULL;
}

static bool is_open(const struct target *t)
{
	return t->state != TARGET_DONE && t->state != TARGET_DELETING;
}

static void revoke_letter(struct revocation *d, struct target *t, enum letter_fate fate)
{
	if (fate == LETTER_STANDS) {
		outbox_orphan(d->hosts, t->letter);
		done(d, t, 1);
	} else if (fate == LETTER_NO_BOX) {
		failed(d, t, "the holder's host has no mailbox, so it cannot be asked");
	} else {
		failed(d, t, "the holder's host could not be asked");
	}
}

static void force_letter(struct revocation *d, struct target *t, enum letter_fate fate)
{
	switch (fate) {
	case LETTER_STANDS:
		break;
	case LETTER_NO_BOX: /* the same as a host that does not answer */
		t->letter = 0;
		break;
	case LETTER_FAILED:
		failed(d, t, "the holder's host could not be asked");
		break;
	case LETTER_WITHDRAWN:
		delete_znodes(d, t);
		break;
	case LETTER_TAKEN:
		t->state = TARGET_TAKEN;
		heap_set_by(&d->hosts->env->timers, &d->timer, d->hosts->env->now_ns + PATIENCE_NS);
		break;
	}
}

void revocation_letter(struct hosts *h, const struct letter_news *news)
{
	struct revocation *d = find(h, news->revocation);
	struct target *t = find_target(d, news->letter);

	if (!t || !is_open(t))
		return;
	if (d->command == COMMAND_REVOKE)
		revoke_letter(d, t, news->fate);
	else
		force_letter(d, t, news->fate);
}

/* The target, of all revocations, that the letter of that id was sent to. */
static struct target *find_asked(const struct hosts *h, struct slice id, struct revocation **ret)
{
	TAILQ_FOREACH(*ret, &h->revocations, link)
		for (size_t i = 0; i < (*ret)->count; i++)
			if (slice_eq(bytes_view(&(*ret)->targets[i].id), id) && is_open(&(*ret)->targets[i]))
				return &(*ret)->targets[i];
	return NULL;
}

void revocation_answered(struct hosts *h, struct slice id, int64_t holders)
{
	struct revocation *d;
	struct target *t = find_asked(h, id, &d);

	if (!t || d->command != COMMAND_FORCEUNLOCK)
		return;
	if (holders == REVOKE_NOT_MINE)
		delete_znodes(d, t);
	else
		done(d, t, holders > 0 ? holders : 0);
}

void revocation_due(struct revocation *d)
{
	for (size_t i = 0; i < d->count; i++) {
		struct target *t = &d->targets[i];

		if (t->state == TARGET_TAKEN || (t->state == TARGET_ASKED && !t->letter)) {
			delete_znodes(d, t);
		} else if (t->state == TARGET_ASKED) {
			t->state = TARGET_WITHDRAWN;
			outbox_withdraw(d->hosts, t->letter);
		}
	}
}

void revocation_operated(struct hosts *h, const struct operation *op, const struct event *event)
{
	enum zk_code code = event->zk_answered.code;
	struct revocation *d = find(h, op->query);
	struct target *t = d ? &d->targets[op->part] : NULL;

	if (!d || code == ZK_UNKNOWN) /* it ends with the connection */
		return;
	t->deleted |= code == ZK_OK;
	if (code != ZK_OK && code != ZK_NONODE) /* else the holder released it itself */
		d->failed = "ZooKeeper refuses to delete the holder's znode";
	if (--t->deleting == 0)
		done(d, t, t->deleted);
}

void revocation_suspended(struct hosts *h)
{
	struct revocation *d, *after;

	/* A revocation whose query is not over is answered by the end of the query. */
	TAILQ_FOREACH_SAFE(d, &h->revocations, link, after)
		if (!d->client->query)
			fail(d, ERROR_UNAVAILABLE,
			     "the connection to ZooKeeper was lost: the request may have been carried out or not");
}
