/* SPDX-License-Identifier: Apache-2.0 */
#include "core/lock/client.h"

#include "base/cold.h"
#include "base/container.h"
#include "base/mem.h"
#include "core/lock/client_ledger.h"
#include "core/lock/locks.h"
#include "protocol/name.h"

/* Of the event that may come of it. */
enum { EVENT_BYTES_MAX = POOL_EVENT_BYTES + NAME_BYTES_MAX };

struct client *client_new(struct locks *locks, uint32_t uid, struct slice unit)
{
	struct client *c = mem_new(sizeof(*c));

	c->locks = locks;
	c->uid = uid;
	c->events_timer.kind = TIMER_EVENTS;
	c->releasing.kind = WORK_RELEASE;
	bytes_slice(&c->unit, unit);
	bytes_fit(&c->unit);
	TAILQ_INIT(&c->requests);
	TAILQ_INIT(&c->grants);
	TAILQ_INIT(&c->notifications);
	TAILQ_INIT(&c->observers);
	TAILQ_INSERT_TAIL(&locks->clients, c, link);
	locks->client_count++;
	return c;
}

void client_enter(struct client *c, uint64_t id)
{
	c->id = id;
	map_add(&c->locks->ids, &c->id_node, id);
	c->account = account_enter(&c->locks->env->accounts, c->uid, c->unit.data, c->unit.len);
	c->user = user_enter(c->locks, c->account);
}

void client_enter_new(struct client *c)
{
	client_enter(c, ++c->locks->last_client);
	ledger_number(c->locks->env->ledger, CEILING_CLIENT, c->id);
}

void client_free(struct client *c)
{
	struct locks *locks = c->locks;

	delegated_end(c);
	client_ledger_remove(c);
	if (!TAILQ_EMPTY(&locks->walks))
		walk_leave_client(locks, c);
	TAILQ_REMOVE(&locks->clients, c, link);
	map_remove(&locks->ids, &c->id_node);
	locks->client_count--;
	group_leave(c);
	mem_free(c->groups);
	bytes_free(&c->unit);
	user_leave(locks, c->user);
	account_leave(c->account);
	bytes_free(&c->comm);
	bytes_free(&c->child_comm);
	bytes_free(&c->name);
	bytes_free(&c->lib_name);
	bytes_free(&c->lib_version);
	mem_free(c->blocking);
	mem_free(c);
}

struct request *client_blocking(struct client *c)
{
	if (!c->blocking)
		c->blocking = mem_new(sizeof(*c->blocking));
	return c->blocking;
}

void client_watch_child(const struct client *c)
{
	struct effect *e = effects_add(c->locks->env->out, EFFECT_PROCESS);

	e->conn = c->conn;
	e->pid = c->child;
}

void client_set_child(struct client *c, uint32_t pid)
{
	c->child = pid;
	c->child_known = false;
	client_watch_child(c);
	client_ledger_changed(c);
}

static struct access_peer as_peer(const struct client *c)
{
	return (struct access_peer){
		.uid = c->uid,
		.unit = bytes_view(&c->unit),
		.groups = c->groups,
		.group_count = c->group_count,
		.groups_known = c->groups_known,
		.operator = c->privileged,
	};
}

static COLD void client_rule(struct client *c)
{
	const struct access_peer peer = as_peer(c);

	c->ruled_by = c->locks->env->rules;
	c->ruled = access_verbs(&c->locks->env->conf->access, &peer);
}

void client_set_groups(struct client *c, const struct event_groups *groups)
{
	c->groups = mem_resize(c->groups, groups->count * sizeof(*groups->list) + 1);
	if (groups->count)
		memcpy(c->groups, groups->list, groups->count * sizeof(*groups->list));
	c->group_count = groups->count;
	c->groups_known = groups->all;
	c->ruled_by = 0;
}

uint32_t client_shown(const struct client *c, struct slice *ret_comm)
{
	bool here = !c->child_known || !c->peer_ended;

	if (here || !c->child_ended) {
		*ret_comm = bytes_view(here ? &c->comm : &c->child_comm);
		return here ? c->pid : c->child;
	}
	*ret_comm = SLICE("inherited");
	return 0;
}

void client_close(struct client *c)
{
	if (c->closing)
		return;
	c->closing = true;
	client_ledger_review(c);
	TAILQ_INSERT_TAIL(&c->locks->closing, c, closing_link);
}

int64_t locks_longest_wait_ns(struct locks *locks)
{
	static const int64_t look_ns = 1000000000;
	int64_t now_ns = locks->env->now_ns;
	const struct request *r;
	const struct client *c;

	if (!locks->looked_ns || now_ns - locks->looked_ns >= look_ns) {
		locks->looked_ns = now_ns;
		locks->oldest_ns = INT64_MAX;
		TAILQ_FOREACH(c, &locks->clients, link) {
			r = TAILQ_FIRST(&c->requests); /* the oldest of its own */
			if (r && r->asked_ns < locks->oldest_ns)
				locks->oldest_ns = r->asked_ns;
		}
	}
	return locks->oldest_ns == INT64_MAX ? 0 : now_ns - locks->oldest_ns;
}

struct client *client_by_id(const struct locks *locks, uint64_t id)
{
	struct client *c;

	MAP_FOREACH(c, &locks->ids, id, id_node)
		if (c->id == id)
			return c;
	return NULL;
}

bool client_is_operator(const struct client *c)
{
	return c->privileged;
}

bool client_ruled(struct client *c, enum rule_verb verb)
{
	if (c->ruled_by != c->locks->env->rules)
		client_rule(c);
	return c->ruled >> verb & 1;
}

bool client_may(const struct client *c, enum rule_verb verb, struct slice name, const struct rule **ret_rule)
{
	const struct access_peer peer = as_peer(c);

	return access_may(&c->locks->env->conf->access, &peer, verb, name, ret_rule);
}

bool client_is_own(const struct client *c, const struct client *other)
{
	return c->account == other->account;
}

bool client_may_look(const struct client *c, struct slice name, const struct account *account)
{
	return account == c->account || client_may(c, RULE_look, name, NULL);
}

static COLD bool refuse(const struct client *c, enum pool_number pool, const char **why)
{
	*why = pools_refusal(c->locks->env, c->account, pool, c->privileged);
	return false;
}

static inline bool may_use(const struct client *c, enum pool_number pool, size_t amount, const char **why)
{
	return account_may(c->account, pool, amount, c->privileged) || refuse(c, pool, why);
}

bool client_may_be_told(const struct client *c, const char **why)
{
	return may_use(c, POOL_MEMORY, EVENT_BYTES_MAX, why);
}

enum client_lack client_lacks(const struct client *c)
{
	if (c->counted + c->request_count >= c->locks->env->conf->limits.grants_per_client)
		return CLIENT_LACKS_ITS_GRANTS;
	return account_may(c->account, POOL_GRANTS, 1, c->privileged) ? CLIENT_LACKS_NOTHING : CLIENT_LACKS_GRANTS;
}

bool client_may_ask(const struct client *c, bool queued, const char **why)
{
	const struct broker_limits *limits = &c->locks->env->conf->limits;

	if (c->request_count >= limits->requests_per_client)
		*why = "this client already waits for as many locks as one client may (limits.requests_per_client)";
	else if (c->counted + c->request_count >= limits->grants_per_client)
		*why = "this client already holds or waits for as many locks as one client may (limits.grants_per_client)";
	else
		return may_use(c, POOL_GRANTS, 1, why) && may_use(c, POOL_REQUESTS, 1, why) &&
		       (!queued || client_may_be_told(c, why));
	return false;
}

bool client_may_observe(const struct client *c, const char **why)
{
	*why = "this client already observes as many elections as one client may (limits.requests_per_client)";
	return c->observer_count < c->locks->env->conf->limits.requests_per_client &&
	       may_use(c, POOL_OBSERVERS, 1, why) && client_may_be_told(c, why);
}
