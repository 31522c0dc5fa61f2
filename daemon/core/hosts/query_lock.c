/* SPDX-License-Identifier: Apache-2.0 */
#include "core/hosts/query_lock.h"

#include "core/client/reply.h"
#include "core/hosts/participant.h"
#include "core/hosts/query.h"
#include "core/hosts/query_semaphore.h"
#include "core/lock/readers.h"
#include "core/znode/record.h"
#include "core/state.h"

static const int64_t NS_PER_MS = 1000000;

/* ---- who holds ---- */

static void write_holders(const struct query *q, const struct lock *lock)
{
	size_t elsewhere = 0, first = query_entitled(q);
	const struct grant *g;

	for (size_t i = 0; i < first; i++)
		elsewhere += !q->children[i].ours && !q->children[i].gone;
	resp_array(reply_out(q->client), (lock ? lock->grant_count : 0) + elsewhere);
	if (lock)
		TAILQ_FOREACH(g, &lock->grants, link) {
			struct participant p = participant_here(lock, g->client, g->mode, g->granted_ns);

			p.depth = g->depth;
			p.token = g->token;
			p.lease_ms = g->lease.place ? grant_lease_rest_ns(g) / NS_PER_MS : -1;
			p.data = bytes_view(&g->data);
			participant_write_holder(&p, q->client);
		}
	for (size_t i = 0; i < first; i++)
		if (!q->children[i].ours && !q->children[i].gone) {
			struct participant p = participant_elsewhere(q, &q->children[i]);

			participant_write_holder(&p, q->client);
		}
}

/* ---- who waits ---- */

static void write_requests(const struct query *q, const struct lock *lock, size_t *position)
{
	const struct request *r;

	if (lock)
		TAILQ_FOREACH(r, &lock->requests, link) {
			struct participant p = participant_here(lock, r->client, r->mode, r->asked_ns);

			participant_write_waiter(&p, ++*position, q->client);
		}
}

static void write_hosts_waiting(const struct query *q, size_t from, size_t end, size_t *position)
{
	for (size_t i = from; i < end; i++)
		if (!q->children[i].ours && !q->children[i].gone) {
			struct participant p = participant_elsewhere(q, &q->children[i]);

			participant_write_waiter(&p, ++*position, q->client);
		}
}

/* The first of those that wait that is ours; all of them if none is. */
static size_t own_place(const struct query *q, size_t first)
{
	size_t i = first;

	while (i < q->count && !q->children[i].ours)
		i++;
	return i;
}

static size_t count_elsewhere(const struct query *q, size_t from, size_t end)
{
	size_t count = 0;

	for (size_t i = from; i < end; i++)
		count += !q->children[i].ours && !q->children[i].gone;
	return count;
}

/* Whose znode is entitled serves its own first. */
static bool held_here(const struct lock *lock)
{
	return lock && lock->directory.claim && lock->directory.claim->state == CLAIM_HELD;
}

static void write_queue(const struct query *q, const struct lock *lock)
{
	size_t first = query_entitled(q), own = held_here(lock) ? first : own_place(q, first), position = 0;

	resp_array(reply_out(q->client), (lock ? lock->request_count : 0) + count_elsewhere(q, first, q->count));
	write_hosts_waiting(q, first, own, &position);
	write_requests(q, lock, &position);
	write_hosts_waiting(q, own, q->count, &position);
}

/* ---- why ---- */

/* What keeps this host from granting what it is entitled to, or from finding out. */
static const char *obstacle(const struct query *q, const struct lock *lock)
{
	const struct hosts *h = &q->client->locks->broker->hosts;

	if (h->env->stopping)
		return "this daemon is stopping and grants nothing";
	if (q->partial)
		return "there is no connection to ZooKeeper: what other hosts do is not known";
	if (q->refused)
		return "ZooKeeper refuses to show the lock's directory: what other hosts do is not known";
	if (!session_grants(h->ensemble))
		return "this host's session is not proven for long enough to grant";
	if (lock && lock->directory.exhausted)
		return "the lock's sequence numbers run out: its directory must empty first";
	if (lock && lock->directory.unverified)
		return "the lock is of another kind or flavour in ZooKeeper";
	if (lock && readers_hold_back(lock) && directory_is_contended(&lock->directory))
		return "who waits on another host comes before those who would join its readers";
	if (lock && lock->directory.pause_until_ns > h->env->now_ns)
		return "ZooKeeper is asked again in a moment: it refused something, or a new session begins";
	return NULL;
}

static void say_why(const struct query *q, const struct lock *lock, struct bytes *text)
{
	const char *keeps = obstacle(q, lock);
	const struct grant *g = lock ? TAILQ_FIRST(&lock->grants) : NULL;
	bool elsewhere = query_entitled(q) && !q->children[0].ours && !q->children[0].gone;

	if (g || elsewhere) {
		struct participant p = g ? participant_here(lock, g->client, g->mode, g->granted_ns)
					 : participant_elsewhere(q, &q->children[0]);

		bytes_text(text, "held ");
		participant_say(text, &p);
		bytes_text(text, keeps ? "; " : "");
	}
	if (keeps)
		bytes_text(text, keeps);
	else if (!g && !elsewhere && lock && lock->request_count)
		bytes_text(text, "nobody holds it: it is about to be granted");
	else if (!g && !elsewhere)
		bytes_text(text, "nobody holds it and nobody on this host waits for it");
}

/* Where this client's own request stands among those of this host, from 1; 0: it does not wait. */
static int64_t own_position(const struct query *q, const struct lock *lock)
{
	const struct request *r;
	int64_t position = 0;

	if (lock)
		TAILQ_FOREACH(r, &lock->requests, link) {
			position++;
			if (r->client == q->client)
				return position;
		}
	return 0;
}

static void write_why(const struct query *q, const struct lock *lock)
{
	size_t first = query_entitled(q), own = held_here(lock) ? first : own_place(q, first);
	struct bytes *out = reply_out(q->client), text = { 0 };

	say_why(q, lock, &text);
	resp_map(out, 7, q->client->version);
	reply_text(out, SLICE("why"), bytes_view(&text));
	reply_text(out, SLICE("state"), slice_of(lock_state_word(lock)));
	reply_int(out, SLICE("position"), own_position(q, lock));
	reply_int(out, SLICE("waiters"), lock ? (int64_t)lock->request_count : 0);
	reply_int(out, SLICE("hosts_before"), (int64_t)count_elsewhere(q, 0, own));
	reply_int(out, SLICE("hosts_waiting"), (int64_t)count_elsewhere(q, first, q->count));
	resp_bulk(out, SLICE("holders"));
	write_holders(q, lock);
	bytes_free(&text);
}

/* ---- who leads ---- */

static void write_leader(const struct query *q, const struct participant *p)
{
	struct bytes *out = reply_out(q->client);

	resp_map(out, 10, q->client->version);
	reply_text(out, SLICE("host"), p->host);
	reply_text(out, SLICE("data"), p->data);
	reply_int(out, SLICE("token"), p->token);
	reply_int(out, SLICE("client"), p->client);
	reply_text(out, SLICE("name"), p->name);
	reply_int(out, SLICE("pid"), p->pid);
	reply_int(out, SLICE("uid"), p->uid);
	reply_text(out, SLICE("command"), p->command);
	reply_int(out, SLICE("held_ms"), p->for_ms);
	reply_text(out, SLICE("znode"), p->znode);
}

/* False: nobody leads, as far as the first contender says. */
static bool leader_elsewhere(const struct query *q, struct participant *ret)
{
	const struct query_child *first = q->children;
	const struct hosts *h = &q->client->locks->broker->hosts;

	if (!q->count || first->ours || !slice_eq(record_get(bytes_view(&first->data), "leader"), SLICE("1")))
		return false;
	*ret = participant_elsewhere(q, first);
	/* Its words are as old as its leadership. */
	ret->for_ms = env_wall_ms(h->env, h->env->now_ns) - participant_number(bytes_view(&first->data), "since", 0);
	ret->for_ms = ret->for_ms < 0 ? 0 : ret->for_ms;
	return true;
}

static void reply_leader(const struct query *q, const struct lock *lock)
{
	const struct grant *g = lock ? TAILQ_FIRST(&lock->grants) : NULL;
	struct participant p;
	size_t begin;

	if (!g && (q->partial || q->refused)) {
		reply_error(q->client, ERROR_UNAVAILABLE,
			    q->refused ? "ZooKeeper refuses to show who leads" : "ZooKeeper cannot be asked who leads");
		return;
	}
	begin = reply_begin(q->client);
	if (g) {
		p = participant_here(lock, g->client, g->mode, g->granted_ns);
		p.token = g->token;
		p.data = bytes_view(&g->data);
		write_leader(q, &p);
	} else if (leader_elsewhere(q, &p)) {
		write_leader(q, &p);
	} else {
		resp_nil(reply_out(q->client), q->client->version);
	}
	reply_end(q->client, begin);
}

/* ---- hosts ---- */

static void write_host(const struct query *q, const struct query_child *child)
{
	const struct hosts *h = &q->client->locks->broker->hosts;
	struct bytes *out = reply_out(q->client), session = { 0 };
	struct slice data = bytes_view(&child->data);

	bytes_text(&session, "0x");
	bytes_hex(&session, (uint64_t)child->owner, 16);
	resp_map(out, 8, q->client->version);
	reply_text(out, SLICE("host"), bytes_view(&child->name));
	reply_int(out, SLICE("pid"), participant_number(data, "pid", 0));
	reply_text(out, SLICE("version"), record_get(data, "version"));
	reply_int(out, SLICE("started"), participant_number(data, "started", 0));
	reply_int(out, SLICE("tick_ms"), participant_number(data, "tick_ms", 0));
	reply_text(out, SLICE("boot_id"), record_get(data, "boot_id"));
	reply_text(out, SLICE("session"), bytes_view(&session));
	reply_int(out, SLICE("self"), child->owner == h->ensemble->session.id);
	bytes_free(&session);
}

static void write_hosts(const struct query *q)
{
	size_t there = 0;

	for (size_t i = 0; i < q->count; i++)
		there += !q->children[i].gone;
	resp_array(reply_out(q->client), there);
	for (size_t i = 0; i < q->count; i++)
		if (!q->children[i].gone)
			write_host(q, &q->children[i]);
}

static void reply_hosts(const struct query *q)
{
	size_t begin;

	if (q->partial || q->refused) {
		reply_error(q->client, ERROR_UNAVAILABLE, "ZooKeeper cannot be asked which hosts there are");
		return;
	}
	begin = reply_begin(q->client);
	write_hosts(q);
	reply_end(q->client, begin);
}

/* An empty answer would say that there is nobody. */
static bool says_nothing(const struct query *q, const struct lock *lock)
{
	if (!q->partial && !q->refused)
		return false;
	if (q->command == COMMAND_HOLDERS)
		return !lock || !lock->grant_count;
	return q->command == COMMAND_QUEUE && (!lock || !lock->request_count);
}

void query_reply(struct query *q)
{
	const struct lock *lock;
	size_t begin;

	if (q->command == COMMAND_LIMIT) {
		reply_error(q->client, ERROR_UNAVAILABLE, "not connected to ZooKeeper, which knows the limit");
		return;
	}
	if (q->command == COMMAND_HOSTS) {
		reply_hosts(q);
		return;
	}
	if (q->part != QUERY_LOCK) {
		query_permits_reply(q);
		return;
	}
	lock = lock_find(q->client->locks, bytes_view(&q->name));
	if (q->command == COMMAND_LEADER) {
		reply_leader(q, lock);
		return;
	}
	if (says_nothing(q, lock)) {
		reply_error(q->client, ERROR_UNAVAILABLE,
			    q->refused ? "ZooKeeper refuses to show the lock's directory"
				       : "ZooKeeper cannot be asked what other hosts do");
		return;
	}
	begin = reply_begin(q->client);
	if (q->command == COMMAND_HOLDERS)
		write_holders(q, lock);
	else if (q->command == COMMAND_QUEUE)
		write_queue(q, lock);
	else
		write_why(q, lock);
	reply_end(q->client, begin);
}
