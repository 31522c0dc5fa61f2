/* SPDX-License-Identifier: Apache-2.0 */
#include "core/hosts/query_reply.h"

#include "core/client/reply.h"
#include "core/hosts/hosts.h"
#include "core/hosts/query.h"
#include "core/hosts/view.h"
#include "core/kind/semaphore.h"
#include "core/lock/readers.h"
#include "core/znode/record.h"

enum {
	HOLDERS_TOLD = 4, /* in a sentence about permits */
	LIMIT_TRIES_MAX = 8,
};

/* ---- why ---- */

static bool is_paused(const struct lock *lock)
{
	int64_t now_ns = lock->locks->env->now_ns;

	return lock->directory.pause_until_ns > now_ns || (lock->slots && lock->slots->pause_until_ns > now_ns);
}

/* What keeps this host from granting a lock that it is entitled to, or from seeing that it is. */
static const char *obstacle(const struct view *v)
{
	const struct hosts *h = v->query->hosts;
	const struct lock *lock = v->lock;

	if (h->env->stopping)
		return "this daemon is stopping and grants nothing";
	if (h->env->draining)
		return env_halt_sentence(h->env);
	if (v->query->partial)
		return "there is no connection to ZooKeeper: what other hosts do is not known";
	if (v->query->refused)
		return v->permits ? "ZooKeeper refuses to show the semaphore's directories: what other hosts do is not known"
				  : "ZooKeeper refuses to show the lock's directory: what other hosts do is not known";
	if (!session_grants(h->ensemble))
		return "this host's session is not proven for long enough to grant";
	if (lock && lock->directory.exhausted)
		return v->permits ? "the sequence numbers of its queue run out: its directory must empty first"
				  : "the lock's sequence numbers run out: its directory must empty first";
	if (lock && !v->permits && lock->directory.unverified)
		return "the lock is of another kind or flavour in ZooKeeper";
	if (lock && !v->permits && readers_hold_back(lock) && lock->directory.watch == WATCH_CONTENDED)
		return "a waiter on another host comes before further readers of this host";
	if (lock && is_paused(lock))
		return "ZooKeeper will be asked again in a moment: it refused something, or a new session has begun";
	return NULL;
}

static void say_lock(const struct view *v, struct bytes *text)
{
	const char *keeps = obstacle(v);

	if (v->holder_count) {
		bytes_text(text, "held ");
		participant_say(text, &v->holders[0]);
	}
	if (keeps)
		bytes_format(text, "%s%s", v->holder_count ? "; " : "", keeps);
	else if (!v->holder_count && v->lock && v->lock->request_count)
		bytes_text(text, "nobody holds it: it is about to be granted");
	else if (!v->holder_count)
		bytes_text(text, "nobody holds it and nobody on this host waits for it");
}

static void say_holders(const struct view *v, struct bytes *text)
{
	size_t told = v->holder_count < HOLDERS_TOLD ? v->holder_count : HOLDERS_TOLD;

	if (!v->holder_count) {
		bytes_text(text, "nobody has any");
		return;
	}
	bytes_format(text, "%d held", v->permits_held);
	for (size_t i = 0; i < told; i++) {
		bytes_format(text, "%s%d ", i ? "; " : ": ", v->holders[i].depth);
		participant_say(text, &v->holders[i]);
	}
	if (v->holder_count > told)
		bytes_format(text, "; and %d holders more", v->holder_count - told);
}

static void say_permits(const struct view *v, struct bytes *text)
{
	const struct semaphore *s = semaphore_find(v->query->hosts->locks, bytes_view(&v->query->name));
	int64_t limit = v->query->permits || !s ? v->query->permits : s->limit;
	const char *keeps = obstacle(v);

	if (limit)
		bytes_format(text, "of %d permits ", limit);
	say_holders(v, text);
	if (v->own)
		bytes_format(text, "; this client waits for %d", v->own->count);
	if (v->position == 1 && !v->hosts_before)
		bytes_text(text, ", and is the next");
	else if (v->own)
		bytes_format(text, " behind %d of this host and %d other hosts", v->position - 1, v->hosts_before);
	if (keeps)
		bytes_format(text, "; %s", keeps);
}

/* ---- holders, queue, why ---- */

static void write_holders(const struct view *v, struct bytes *out, int version)
{
	resp_array(out, v->holder_count);
	for (size_t i = 0; i < v->holder_count; i++)
		participant_write_holder(&v->holders[i], out, version);
}

static void write_queue(const struct view *v, struct bytes *out, int version)
{
	resp_array(out, v->waiter_count);
	for (size_t i = 0; i < v->waiter_count; i++)
		participant_write_waiter(&v->waiters[i], i + 1, out, version);
}

static void write_why(const struct view *v, struct bytes *out, int version)
{
	struct bytes text = { 0 };

	if (v->permits)
		say_permits(v, &text);
	else
		say_lock(v, &text);
	resp_map(out, 7, version);
	reply_pairs(out, "why", bytes_view(&text), "state", lock_state_word(v->lock), "position", v->position);
	reply_pairs(out, "waiters", v->lock ? v->lock->request_count : 0, "hosts_before", v->hosts_before, "hosts_waiting",
		    v->hosts_waiting);
	resp_bulk(out, SLICE("holders"));
	write_holders(v, out, version);
	bytes_free(&text);
}

/* Why an empty answer would be wrong: it says that there is nobody. NULL: it is true, or the answer is not empty. */
static const char *unknown(const struct view *v)
{
	const struct query *q = v->query;
	bool known = v->permits ? v->holder_count > 0 : v->lock && v->lock->grant_count;

	if (q->command == COMMAND_QUEUE)
		known = v->lock && v->lock->request_count;
	if (known || q->command == COMMAND_WHY || (!q->partial && !q->refused))
		return NULL;
	if (v->permits)
		return "ZooKeeper does not tell what other hosts do";
	return q->refused ? "ZooKeeper refuses to show the lock's directory" : "ZooKeeper cannot be asked what other hosts do";
}

static void write_view(const struct view *v, struct client *c)
{
	if (v->query->command == COMMAND_HOLDERS)
		write_holders(v, reply_out(c), c->version);
	else if (v->query->command == COMMAND_QUEUE)
		write_queue(v, reply_out(c), c->version);
	else
		write_why(v, reply_out(c), c->version);
	reply_end(c);
}

static void reply_view(const struct query *q)
{
	struct view v = view_gather(q);
	const char *sentence = unknown(&v);

	if (sentence)
		reply_error(q->client, ERROR_UNAVAILABLE, "%s", sentence);
	else
		write_view(&v, q->client);
	view_free(&v);
}

/* ---- who leads ---- */

/* False: nobody leads, as far as the first contender says. */
static bool leader_elsewhere(const struct query *q, struct participant *ret)
{
	struct slice data = q->count ? bytes_view(&q->children->data) : (struct slice){ 0 };
	const struct hosts *h = q->hosts;

	if (!q->count || q->children->ours || !slice_eq(record_get(data, "leader"), SLICE("1")))
		return false;
	*ret = participant_elsewhere(h, q->children);
	/* Its data are as old as its leadership. */
	ret->for_ms = env_wall_ms(h->env, h->env->now_ns) - participant_number(data, "since", 0);
	ret->for_ms = ret->for_ms < 0 ? 0 : ret->for_ms;
	return true;
}

static void answer_leader(const struct query *q)
{
	const struct lock *lock = lock_find(q->hosts->locks, bytes_view(&q->name));
	/* Since it was asked the name may have become a lock's or a semaphore's. */
	const struct grant *g = lock && lock->directory.kind == KIND_ELECTION ? TAILQ_FIRST(&lock->grants) : NULL;
	struct participant p = { 0 };

	if (!g && (q->partial || q->refused)) {
		reply_error(q->client, ERROR_UNAVAILABLE, q->refused ? "ZooKeeper refuses to show who leads"
									    : "ZooKeeper cannot be asked who leads");
		return;
	}
	if (g)
		p = participant_holder(q->hosts, g);
	if (!g && !leader_elsewhere(q, &p)) {
		reply_nil(q->client);
		return;
	}
	participant_veil(&p, q->client, bytes_view(&q->name));
	participant_write_leader(&p, reply_out(q->client), q->client->version);
	reply_end(q->client);
}

/* ---- hosts ---- */

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

static void reply_hosts(const struct query *q)
{
	size_t there = 0;

	if (q->partial || q->refused) {
		reply_error(q->client, ERROR_UNAVAILABLE, "there is no connection to ZooKeeper, which knows the hosts");
		return;
	}
	for (size_t i = 0; i < q->count; i++)
		there += !q->children[i].gone;
	resp_array(reply_out(q->client), there);
	for (size_t i = 0; i < q->count; i++)
		if (!q->children[i].gone)
			write_host(q, &q->children[i], reply_out(q->client));
	reply_end(q->client);
}

/* ---- the limit of a semaphore ---- */

void query_limit_reply(struct client *c, int64_t limit)
{
	if (limit > 0)
		reply_integer(c, limit);
	else
		reply_nil(c);
}

static void set_limit(struct query *q, int32_t version)
{
	struct operation_request r = {
		.op = { .kind = OPERATION_LIMIT_SET, .query = q->number },
		.path = bytes_view(&q->path),
		.exact = true,
		.version = version,
	};

	semaphore_data(operation_data(q->hosts->ensemble), q->limit);
	query_send(q, EFFECT_ZK_SET, &r);
}

void query_limit_answered(struct hosts *h, const struct operation *op, const struct event *event)
{
	bool got = op->kind == OPERATION_LIMIT_GET && event->zk_answered.code == ZK_OK;
	struct query *q = query_of(h, op);
	int64_t limit = q ? q->limit : 0;
	bool fits = !got || semaphore_data_fits(event->zk_answered.data, &limit);

	if (!q)
		return;
	if (got && fits && q->limit && limit != q->limit) {
		set_limit(q, event->zk_answered.stat.version);
		return;
	}
	if (event->zk_answered.code == ZK_BADVERSION && ++q->tries < LIMIT_TRIES_MAX) {
		q->state = QUERY_ASKED;
		return;
	}
	if (!fits)
		reply_error(q->client, ERROR_MISMATCH, "this name is in use as a lock, not as a semaphore");
	else if (event->zk_answered.code == ZK_OK || event->zk_answered.code == ZK_NONODE)
		query_limit_reply(q->client, event->zk_answered.code == ZK_OK ? limit : 0);
	else
		reply_error(q->client, ERROR_UNAVAILABLE, "ZooKeeper refused to tell the limit");
	query_free(q);
}

/* ---- asked and answered ---- */

void query_reply(struct query *q)
{
	if (q->command == COMMAND_LIMIT)
		reply_error(q->client, ERROR_UNAVAILABLE, "not connected to ZooKeeper, which knows the limit");
	else if (q->command == COMMAND_HOSTS)
		reply_hosts(q);
	else if (q->command == COMMAND_LEADER)
		answer_leader(q);
	else
		reply_view(q);
	query_free(q);
}

void query_ask(struct hosts *h, struct client *c, enum command command, struct slice name)
{
	struct query *q = query_new(h, c, command, name);

	if (query_begin(q))
		query_reply(q);
}

void query_known(struct hosts *h, struct client *c, struct slice name)
{
	struct query *q = query_new(h, c, COMMAND_HOLDERS, name);

	query_take_seen(q);
	query_reply(q);
}

void query_limit(struct hosts *h, struct client *c, struct slice name, int64_t limit)
{
	query_new(h, c, COMMAND_LIMIT, name)->limit = limit;
}
