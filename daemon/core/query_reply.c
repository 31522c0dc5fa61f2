#include "core/query_reply.h"

#include "core/detail.h"
#include "core/info.h"
#include "core/query.h"
#include "core/record.h"
#include "core/semaphore.h"
#include "core/state.h"
#include "protocol/number.h"

static const int64_t NS_PER_MS = 1000000;

/* One that holds or waits, here or elsewhere, as it is shown. */
struct person {
	struct slice host, name, command, znode;
	enum mode mode;
	int64_t client, pid, uid, depth, token;
	int64_t for_ms; /* it holds or waits; -1: not known */
	int64_t age_ms; /* of what is said here */
	int64_t lease_ms; /* that it still has; -1: none, or not known */
	struct slice data;
};

static struct slice znode_of(const struct lock *lock)
{
	return lock->claim && lock->claim->named ? slice_of(lock->claim->name) : (struct slice){ 0 };
}

static struct person person_here(const struct lock *lock, const struct client *c, enum mode mode, int64_t since_ns)
{
	const struct broker *b = lock->broker;

	return (struct person){
		.host = slice_of(b->conf->host),
		.name = bytes_view(&c->name),
		.command = bytes_view(&c->comm),
		.znode = znode_of(lock),
		.mode = mode,
		.client = (int64_t)c->id,
		.pid = c->pid,
		.uid = c->uid,
		.for_ms = (b->now_ns - since_ns) / NS_PER_MS,
		.lease_ms = -1,
	};
}

static int64_t record_number(struct slice data, const char *key, int64_t otherwise)
{
	int64_t value;

	return number_parse(record_get(data, key), &value) ? value : otherwise;
}

/* What a znode's data tell of its holder; the clocks of two hosts may differ. */
static struct person person_elsewhere(const struct query *q, const struct query_child *child)
{
	const struct broker *b = q->client->broker;
	struct slice data = bytes_view(&child->data);
	int64_t now_ms = detail_wall_ms(b, b->now_ns);
	int64_t written = record_number(data, "written", -1), since = record_number(data, "since", -1);
	struct person p = {
		.host = record_get(data, "host"),
		.name = record_get(data, "name"),
		.command = record_get(data, "command"),
		.znode = bytes_view(&child->name),
		.mode = child->mode,
		.pid = record_number(data, "pid", 0),
		.uid = record_number(data, "uid", 0),
		.token = record_number(data, "token", 0),
		.for_ms = -1,
		.lease_ms = -1,
		.data = record_get(data, "data"),
	};

	if (since >= 0 && written >= since) {
		p.for_ms = written - since;
		p.age_ms = now_ms > written ? now_ms - written : 0;
	}
	return p;
}

/* ---- who holds ---- */

static void write_holder(const struct query *q, const struct person *p)
{
	struct bytes *out = client_out(q->client);

	resp_map(out, 14, q->client->version);
	info_text(out, SLICE("host"), p->host);
	info_int(out, SLICE("client"), p->client);
	info_text(out, SLICE("name"), p->name);
	info_int(out, SLICE("pid"), p->pid);
	info_int(out, SLICE("uid"), p->uid);
	info_text(out, SLICE("command"), p->command);
	info_text(out, SLICE("mode"), slice_of(mode_word(p->mode)));
	info_int(out, SLICE("depth"), p->depth);
	info_int(out, SLICE("token"), p->token);
	info_int(out, SLICE("held_ms"), p->for_ms);
	info_int(out, SLICE("age_ms"), p->age_ms);
	info_text(out, SLICE("znode"), p->znode);
	resp_bulk(out, SLICE("lease_ms"));
	if (p->lease_ms < 0)
		resp_nil(out, q->client->version);
	else
		resp_integer(out, p->lease_ms);
	info_text(out, SLICE("data"), p->data);
}

static const struct lock *lock_of(const struct query *q)
{
	struct broker *b = q->client->broker;
	const struct semaphore *s;

	if (!q->leases && !q->mutex)
		return lock_find(b, bytes_view(&q->name), false);
	s = semaphore_find(b, bytes_view(&q->name), false);
	if (!s)
		return NULL;
	return q->leases ? s->leases : s->mutex;
}

static void write_holders(const struct query *q, const struct lock *lock)
{
	size_t elsewhere = 0, first = query_entitled(q);
	const struct grant *g;

	for (size_t i = 0; i < first; i++)
		elsewhere += !q->children[i].ours && !q->children[i].gone;
	resp_array(client_out(q->client), (lock ? lock->grant_count : 0) + elsewhere);
	if (lock)
		TAILQ_FOREACH(g, &lock->grants, link) {
			struct person p = person_here(lock, g->client, g->mode, g->granted_ns);

			p.depth = g->depth;
			p.token = g->token;
			p.lease_ms = g->lease.place ? grant_lease_rest_ns(g) / NS_PER_MS : -1;
			p.data = bytes_view(&g->data);
			write_holder(q, &p);
		}
	for (size_t i = 0; i < first; i++)
		if (!q->children[i].ours && !q->children[i].gone) {
			struct person p = person_elsewhere(q, &q->children[i]);

			write_holder(q, &p);
		}
}

/* ---- who waits ---- */

static void write_waiter(const struct query *q, const struct person *p, size_t position)
{
	struct bytes *out = client_out(q->client);

	resp_map(out, 10, q->client->version);
	info_text(out, SLICE("host"), p->host);
	info_int(out, SLICE("client"), p->client);
	info_text(out, SLICE("name"), p->name);
	info_int(out, SLICE("pid"), p->pid);
	info_int(out, SLICE("uid"), p->uid);
	info_text(out, SLICE("command"), p->command);
	info_text(out, SLICE("mode"), slice_of(mode_word(p->mode)));
	info_int(out, SLICE("waited_ms"), p->for_ms);
	info_int(out, SLICE("position"), (int64_t)position);
	info_text(out, SLICE("znode"), p->znode);
}

static void write_requests(const struct query *q, const struct lock *lock, size_t *position)
{
	const struct request *r;

	if (lock)
		TAILQ_FOREACH(r, &lock->requests, link) {
			struct person p = person_here(lock, r->client, r->mode, r->asked_ns);

			write_waiter(q, &p, ++*position);
		}
}

static void write_hosts_waiting(const struct query *q, size_t from, size_t end, size_t *position)
{
	for (size_t i = from; i < end; i++)
		if (!q->children[i].ours && !q->children[i].gone) {
			struct person p = person_elsewhere(q, &q->children[i]);

			write_waiter(q, &p, ++*position);
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
	return lock && lock->claim && lock->claim->state == CLAIM_HELD;
}

static void write_queue(const struct query *q, const struct lock *lock)
{
	size_t first = query_entitled(q), own = held_here(lock) ? first : own_place(q, first), position = 0;

	resp_array(client_out(q->client), (lock ? lock->request_count : 0) + count_elsewhere(q, first, q->count));
	write_hosts_waiting(q, first, own, &position);
	write_requests(q, lock, &position);
	write_hosts_waiting(q, own, q->count, &position);
}

/* ---- why ---- */

static void say_holder(struct bytes *text, const struct person *p, bool here)
{
	if (here) {
		bytes_text(text, "held on this host");
	} else if (p->host.len) {
		bytes_text(text, "held by host ");
		bytes_slice(text, p->host);
	} else {
		bytes_text(text, "held by other software, as znode ");
		bytes_slice(text, p->znode);
	}
	if (p->pid) {
		bytes_text(text, ", pid ");
		bytes_int(text, p->pid);
		bytes_text(text, " (");
		bytes_slice(text, p->command);
		bytes_text(text, ")");
	}
	if (p->for_ms >= 0) {
		bytes_text(text, ", for ");
		bytes_int(text, p->for_ms);
		bytes_text(text, " ms");
	}
	if (p->age_ms) {
		bytes_text(text, ", as of ");
		bytes_int(text, p->age_ms);
		bytes_text(text, " ms ago");
	}
}

/* What keeps this host from granting what it is entitled to, or from finding out. */
static const char *obstacle(const struct query *q, const struct lock *lock)
{
	const struct broker *b = q->client->broker;

	if (b->stopping)
		return "this daemon is stopping and grants nothing";
	if (q->partial)
		return "there is no connection to ZooKeeper: what other hosts do is not known";
	if (q->refused)
		return "ZooKeeper refuses to show the lock's directory: what other hosts do is not known";
	if (!session_grants(b))
		return "this host's session is not proven for long enough to grant";
	if (lock && lock->directory.worn)
		return "the lock's sequence numbers run out: its directory must empty first";
	if (lock && lock->directory.suspect)
		return "the lock is of another kind or flavour in ZooKeeper";
	if (lock && lock->pause_until_ns > b->now_ns)
		return "ZooKeeper is asked again in a moment: it refused something, or a new session begins";
	return NULL;
}

static void say_why(const struct query *q, const struct lock *lock, struct bytes *text)
{
	const char *keeps = obstacle(q, lock);
	const struct grant *g = lock ? TAILQ_FIRST(&lock->grants) : NULL;
	size_t first = query_entitled(q);

	if (g) {
		struct person p = person_here(lock, g->client, g->mode, g->granted_ns);

		say_holder(text, &p, true);
	} else if (first && !q->children[0].ours && !q->children[0].gone) {
		struct person p = person_elsewhere(q, &q->children[0]);

		say_holder(text, &p, false);
	} else if (keeps) {
		bytes_text(text, keeps);
	} else if (lock && lock->request_count) {
		bytes_text(text, "nobody holds it: it is about to be granted");
	} else {
		bytes_text(text, "nobody holds it and nobody on this host waits for it");
	}
	if (keeps && (g || first)) {
		bytes_text(text, "; ");
		bytes_text(text, keeps);
	}
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
	struct bytes *out = client_out(q->client), text = { 0 };

	say_why(q, lock, &text);
	resp_map(out, 7, q->client->version);
	info_text(out, SLICE("why"), bytes_view(&text));
	info_text(out, SLICE("state"), slice_of(info_lock_state(lock)));
	info_int(out, SLICE("position"), own_position(q, lock));
	info_int(out, SLICE("waiters"), lock ? (int64_t)lock->request_count : 0);
	info_int(out, SLICE("hosts_before"), (int64_t)count_elsewhere(q, 0, own));
	info_int(out, SLICE("hosts_waiting"), (int64_t)count_elsewhere(q, first, q->count));
	resp_bulk(out, SLICE("holders"));
	write_holders(q, lock);
	bytes_free(&text);
}

/* ---- who leads ---- */

static void write_leader(const struct query *q, const struct person *p)
{
	struct bytes *out = client_out(q->client);

	resp_map(out, 10, q->client->version);
	info_text(out, SLICE("host"), p->host);
	info_text(out, SLICE("data"), p->data);
	info_int(out, SLICE("token"), p->token);
	info_int(out, SLICE("client"), p->client);
	info_text(out, SLICE("name"), p->name);
	info_int(out, SLICE("pid"), p->pid);
	info_int(out, SLICE("uid"), p->uid);
	info_text(out, SLICE("command"), p->command);
	info_int(out, SLICE("held_ms"), p->for_ms);
	info_text(out, SLICE("znode"), p->znode);
}

/* False: nobody leads, as far as the first contender says. */
static bool leader_elsewhere(const struct query *q, struct person *ret)
{
	const struct query_child *first = q->children;
	const struct broker *b = q->client->broker;

	if (!q->count || first->ours || !slice_eq(record_get(bytes_view(&first->data), "leader"), SLICE("1")))
		return false;
	*ret = person_elsewhere(q, first);
	/* Its words are as old as its leadership. */
	ret->for_ms = detail_wall_ms(b, b->now_ns) - record_number(bytes_view(&first->data), "since", 0);
	ret->for_ms = ret->for_ms < 0 ? 0 : ret->for_ms;
	return true;
}

static void reply_leader(const struct query *q, const struct lock *lock)
{
	const struct grant *g = lock ? TAILQ_FIRST(&lock->grants) : NULL;
	struct person p;
	size_t begin;

	if (!g && (q->partial || q->refused)) {
		client_reply_error(q->client, ERROR_UNAVAILABLE, q->refused ? "ZooKeeper refuses to show who leads"
									    : "ZooKeeper cannot be asked who leads");
		return;
	}
	begin = client_reply_begin(q->client);
	if (g) {
		p = person_here(lock, g->client, g->mode, g->granted_ns);
		p.token = g->token;
		p.data = bytes_view(&g->data);
		write_leader(q, &p);
	} else if (leader_elsewhere(q, &p)) {
		write_leader(q, &p);
	} else {
		resp_nil(client_out(q->client), q->client->version);
	}
	client_reply_end(q->client, begin);
}

/* ---- hosts ---- */

static void write_host(const struct query *q, const struct query_child *child)
{
	const struct broker *b = q->client->broker;
	struct bytes *out = client_out(q->client), session = { 0 };
	struct slice data = bytes_view(&child->data);

	bytes_text(&session, "0x");
	bytes_hex(&session, (uint64_t)child->owner, 16);
	resp_map(out, 8, q->client->version);
	info_text(out, SLICE("host"), bytes_view(&child->name));
	info_int(out, SLICE("pid"), record_number(data, "pid", 0));
	info_text(out, SLICE("version"), record_get(data, "version"));
	info_int(out, SLICE("started"), record_number(data, "started", 0));
	info_int(out, SLICE("tick_ms"), record_number(data, "tick_ms", 0));
	info_text(out, SLICE("boot_id"), record_get(data, "boot_id"));
	info_text(out, SLICE("session"), bytes_view(&session));
	info_int(out, SLICE("self"), child->owner == b->session.id);
	bytes_free(&session);
}

static void write_hosts(const struct query *q)
{
	size_t there = 0;

	for (size_t i = 0; i < q->count; i++)
		there += !q->children[i].gone;
	resp_array(client_out(q->client), there);
	for (size_t i = 0; i < q->count; i++)
		if (!q->children[i].gone)
			write_host(q, &q->children[i]);
}

static void reply_hosts(const struct query *q)
{
	size_t begin;

	if (q->partial || q->refused) {
		client_reply_error(q->client, ERROR_UNAVAILABLE, "ZooKeeper cannot be asked which hosts there are");
		return;
	}
	begin = client_reply_begin(q->client);
	write_hosts(q);
	client_reply_end(q->client, begin);
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
		client_reply_error(q->client, ERROR_UNAVAILABLE, "not connected to ZooKeeper, which knows the limit");
		return;
	}
	if (q->command == COMMAND_HOSTS) {
		reply_hosts(q);
		return;
	}
	lock = lock_of(q);
	if (q->command == COMMAND_LEADER) {
		reply_leader(q, lock);
		return;
	}
	if (says_nothing(q, lock)) {
		client_reply_error(q->client, ERROR_UNAVAILABLE, q->refused ? "ZooKeeper refuses to show the lock's directory"
									    : "ZooKeeper cannot be asked what other hosts do");
		return;
	}
	begin = client_reply_begin(q->client);
	if (q->command == COMMAND_HOLDERS)
		write_holders(q, lock);
	else if (q->command == COMMAND_QUEUE)
		write_queue(q, lock);
	else
		write_why(q, lock);
	client_reply_end(q->client, begin);
}
