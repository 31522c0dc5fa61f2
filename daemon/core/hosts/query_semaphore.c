/* SPDX-License-Identifier: Apache-2.0 */
#include "core/hosts/query_semaphore.h"

#include "base/mem.h"
#include "core/client/reply.h"
#include "core/hosts/participant.h"
#include "core/hosts/query.h"
#include "core/znode/record.h"
#include "core/kind/semaphore.h"
#include "core/state.h"

enum { HOLDERS_TOLD = 4 }; /* in the sentence */

static const int64_t NS_PER_MS = 1000000;

/* Permits of one client, or those of one host of which nothing more is known. */
struct permit_group {
	struct participant participant;
	int64_t session, client, since;
};

struct answer {
	const struct query *q;
	const struct semaphore *s;   /* NULL: this host does not use it */
	struct permit_group *groups; /* of other hosts */
	size_t group_count;
	int64_t held; /* permits, all together */
};

static bool elsewhere(const struct query_child *child)
{
	return !child->ours && !child->gone;
}

static struct permit_group group_of(const struct query *q, const struct query_child *child)
{
	struct slice data = bytes_view(&child->data);

	return (struct permit_group){
		.participant = participant_elsewhere(q, child),
		.session = child->owner,
		.client = participant_number(data, "client", 0),
		.since = participant_number(data, "since", 0),
	};
}

/* Each permit of other software is told of by itself. */
static bool belong_together(const struct permit_group *a, const struct permit_group *b)
{
	return a->participant.host.len && a->session == b->session && a->client == b->client && a->since == b->since;
}

static void add_lease(struct answer *a, const struct query_child *child)
{
	struct permit_group one = group_of(a->q, child);
	size_t i = 0;

	one.participant.mode = MODE_SHARED; /* as those of this host */

	while (i < a->group_count && !belong_together(&a->groups[i], &one))
		i++;
	if (i == a->group_count)
		a->groups[a->group_count++] = one;
	a->groups[i].participant.depth++;
	a->held++;
}

static struct answer gather(const struct query *q)
{
	bool over = q->part == QUERY_MUTEX;
	const struct query_child *leases = over ? q->holders : q->children;
	size_t count = over ? q->holder_count : q->part == QUERY_SLOTS ? q->answered : 0;
	struct answer a = { .q = q, .s = query_semaphore(q) };

	a.groups = mem_new((count + 1) * sizeof(*a.groups));
	for (size_t i = 0; i < count; i++)
		if (elsewhere(&leases[i]) && query_is_held(q, &leases[i], i))
			add_lease(&a, &leases[i]);
	if (a.s)
		a.held += semaphore_granted(a.s);
	return a;
}

static int64_t limit_of(const struct answer *a)
{
	return a->q->permits || !a->s ? a->q->permits : a->s->limit;
}

static struct participant holder_here(const struct grant *g)
{
	struct participant p = participant_here(g->lock, g->client, g->mode, g->granted_ns);

	p.depth = g->depth;
	p.token = g->token;
	p.lease_ms = g->lease.place ? grant_lease_rest_ns(g) / NS_PER_MS : -1;
	p.data = bytes_view(&g->data);
	return p;
}

static void write_holders(const struct answer *a)
{
	const struct grant *g;

	resp_array(reply_out(a->q->client), (a->s ? a->s->slots->grant_count : 0) + a->group_count);
	if (a->s)
		TAILQ_FOREACH(g, &a->s->slots->grants, link) {
			struct participant p = holder_here(g);

			participant_write_holder(&p, a->q->client);
		}
	for (size_t i = 0; i < a->group_count; i++)
		participant_write_holder(&a->groups[i].participant, a->q->client);
}

/* ---- who waits: in the mutex ---- */

/* Who holds it and waits for no room has nobody who waits, or is served in this moment. */
static size_t first_waiting(const struct query *q)
{
	return q->part == QUERY_MUTEX && q->count && q->permits && !q->crowded ? 1 : 0;
}

static size_t own_place(const struct answer *a)
{
	const struct query *q = a->q;
	size_t i = first_waiting(q);

	if (q->part != QUERY_MUTEX ||
	    (a->s && a->s->mutex->directory.claim && a->s->mutex->directory.claim->state == CLAIM_HELD))
		return i;
	while (i < q->count && !q->children[i].ours)
		i++;
	return i;
}

static size_t hosts_between(const struct query *q, size_t from, size_t end)
{
	size_t count = 0;

	for (size_t i = from; q->part == QUERY_MUTEX && i < end; i++)
		count += elsewhere(&q->children[i]);
	return count;
}

static void write_hosts(const struct query *q, size_t from, size_t end, size_t *position)
{
	for (size_t i = from; q->part == QUERY_MUTEX && i < end; i++)
		if (elsewhere(&q->children[i])) {
			struct participant p = participant_elsewhere(q, &q->children[i]);

			participant_write_waiter(&p, ++*position, q->client);
		}
}

static void write_queue(const struct answer *a)
{
	const struct query *q = a->q;
	size_t first = first_waiting(q), own = own_place(a), position = 0;
	const struct request *r;

	resp_array(reply_out(q->client), (a->s ? a->s->mutex->request_count : 0) + hosts_between(q, first, q->count));
	write_hosts(q, first, own, &position);
	if (a->s)
		TAILQ_FOREACH(r, &a->s->mutex->requests, link) {
			struct participant p = participant_here(a->s->mutex, r->client, r->mode, r->asked_ns);

			p.count = r->count;
			participant_write_waiter(&p, ++position, q->client);
		}
	write_hosts(q, own, q->count, &position);
}

/* ---- why ---- */

static void say_one(struct bytes *text, const struct participant *p, size_t told)
{
	bytes_text(text, told ? "; " : ": ");
	bytes_int(text, p->depth);
	bytes_char(text, ' ');
	participant_say(text, p);
}

static void say_held(const struct answer *a, struct bytes *text)
{
	const struct grant *g;
	size_t told = 0, all = a->group_count + (a->s ? a->s->slots->grant_count : 0);

	if (!a->held) {
		bytes_text(text, "nobody has any");
		return;
	}
	bytes_int(text, a->held);
	bytes_text(text, " held");
	if (a->s)
		TAILQ_FOREACH(g, &a->s->slots->grants, link) {
			struct participant p = holder_here(g);

			if (told == HOLDERS_TOLD)
				break;
			say_one(text, &p, told++);
		}
	for (size_t i = 0; i < a->group_count && told < HOLDERS_TOLD; i++)
		say_one(text, &a->groups[i].participant, told++);
	if (all > told) {
		bytes_text(text, "; and ");
		bytes_int(text, (int64_t)(all - told));
		bytes_text(text, " holders more");
	}
}

static const char *obstacle(const struct answer *a)
{
	const struct hosts *h = &a->q->client->locks->broker->hosts;

	if (h->env->stopping)
		return "this daemon is stopping and grants nothing";
	if (a->q->partial)
		return "there is no connection to ZooKeeper: what other hosts do is not known";
	if (a->q->refused)
		return "ZooKeeper refuses to show the semaphore's directories: what other hosts do is not known";
	if (!session_grants(h->ensemble))
		return "this host's session is not proven for long enough to grant";
	if (a->s && a->s->mutex->directory.exhausted)
		return "the sequence numbers of its queue run out: its directory must empty first";
	if (a->s && (a->s->mutex->directory.pause_until_ns > h->env->now_ns ||
		     a->s->slots->directory.pause_until_ns > h->env->now_ns))
		return "ZooKeeper is asked again in a moment: it refused something, or a new session begins";
	return NULL;
}

/* This client's own; NULL. *place: from 1, among those of this host. */
static const struct request *own_request(const struct answer *a, int64_t *place)
{
	const struct request *r;

	*place = 0;
	if (a->s)
		TAILQ_FOREACH(r, &a->s->mutex->requests, link) {
			++*place;
			if (r->client == a->q->client)
				return r;
		}
	*place = 0;
	return NULL;
}

static void say_wait(const struct answer *a, struct bytes *text, int64_t hosts_before)
{
	int64_t place;
	const struct request *r = own_request(a, &place);

	if (!r)
		return;
	bytes_text(text, "; this client waits for ");
	bytes_int(text, r->count);
	if (place == 1 && !hosts_before) {
		bytes_text(text, ", and is the next");
		return;
	}
	bytes_text(text, " behind ");
	bytes_int(text, place - 1);
	bytes_text(text, " of this host and ");
	bytes_int(text, hosts_before);
	bytes_text(text, " other hosts");
}

static void say_why(const struct answer *a, struct bytes *text, int64_t hosts_before)
{
	const char *keeps = obstacle(a);
	int64_t limit = limit_of(a);

	if (limit) {
		bytes_text(text, "of ");
		bytes_int(text, limit);
		bytes_text(text, " permits ");
	}
	say_held(a, text);
	say_wait(a, text, hosts_before);
	if (keeps) {
		bytes_text(text, "; ");
		bytes_text(text, keeps);
	}
}

static void write_why(const struct answer *a)
{
	const struct query *q = a->q;
	size_t first = first_waiting(q), before = hosts_between(q, first, own_place(a));
	const struct lock *mutex = a->s ? a->s->mutex : NULL;
	struct bytes *out = reply_out(q->client), text = { 0 };
	int64_t place;

	own_request(a, &place);
	say_why(a, &text, (int64_t)before);
	resp_map(out, 7, q->client->version);
	reply_text(out, SLICE("why"), bytes_view(&text));
	reply_text(out, SLICE("state"), slice_of(lock_state_word(mutex)));
	reply_int(out, SLICE("position"), place);
	reply_int(out, SLICE("waiters"), mutex ? (int64_t)mutex->request_count : 0);
	reply_int(out, SLICE("hosts_before"), (int64_t)before);
	reply_int(out, SLICE("hosts_waiting"), (int64_t)hosts_between(q, first, q->count));
	resp_bulk(out, SLICE("holders"));
	write_holders(a);
	bytes_free(&text);
}

/* An empty answer would say that there is nobody. */
static bool says_nothing(const struct answer *a)
{
	if (!a->q->partial && !a->q->refused)
		return false;
	if (a->q->command == COMMAND_HOLDERS)
		return !a->held;
	return a->q->command == COMMAND_QUEUE && (!a->s || !a->s->mutex->request_count);
}

void query_permits_reply(struct query *q)
{
	struct answer a = gather(q);
	size_t begin;

	if (says_nothing(&a)) {
		reply_error(q->client, ERROR_UNAVAILABLE, "ZooKeeper does not say what other hosts do");
	} else {
		begin = reply_begin(q->client);
		if (q->command == COMMAND_HOLDERS)
			write_holders(&a);
		else if (q->command == COMMAND_QUEUE)
			write_queue(&a);
		else
			write_why(&a);
		reply_end(q->client, begin);
	}
	mem_free(a.groups);
}
