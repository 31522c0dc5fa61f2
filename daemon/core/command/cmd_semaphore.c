/* SPDX-License-Identifier: Apache-2.0 */
#include "core/command/cmd_semaphore.h"

#include "core/command/cmd_lock.h"
#include "core/client/deadlock.h"
#include "core/lock/grant_log.h"
#include "core/client/args.h"
#include "core/kind/semaphore.h"
#include "core/state.h"
#include "protocol/number.h"

static void refuse(struct client *c, const char *why)
{
	c->locks->env->stats.limits_total++;
	client_reply_error(c, ERROR_LIMIT, why);
}

static void ask_for(struct client *c, struct slice name, const struct request_terms *terms)
{
	struct refusal no = { .code = ERROR_DEADLOCK };
	struct broker *b = c->locks->broker;
	struct semaphore *s;
	const char *why;

	if (b->env.stopping) {
		client_reply_error(c, ERROR_DRAINING, "the daemon is stopping");
		return;
	}
	if (!client_may_ask(c, &why)) {
		refuse(c, why);
		return;
	}
	s = semaphore_make(&b->locks, name);
	if (!s)
		refuse(c, "this daemon knows as many locks as it may (limits.locks)");
	else if (s->mutex->request_count >= b->env.conf->limits.requests_per_lock)
		refuse(c, "as many clients wait for this lock as may (limits.requests_per_lock)");
	else if (terms->wait_ns != 0 && deadlock_closes(c, s->mutex, terms, &no.sentence))
		refusal_reply(c, &no);
	else
		request_new(s->mutex, c, terms);
}

struct grant *permits_find(struct client *c, struct slice name)
{
	struct semaphore *s = semaphore_find(c->locks, name);

	return s ? grant_find(s->slots, c) : NULL;
}

/* The reply tells it, and so it is done with. */
static void reply_lost(struct client *c, struct grant *g, const char *else_told)
{
	enum loss loss = g->loss;

	client_lost_told(c, g);
	client_reply_error(c, ERROR_LOST, loss == LOSS_LEASE ? "the lease of the permits ran out" : else_told);
}

static bool is_lock_here(const struct client *c, struct slice name)
{
	const struct lock *lock = lock_find(c->locks, name);

	return lock && !lock->idle;
}

/* Than was agreed on, for certain: it is refused for that. */
static bool is_other_limit(const struct client *c, struct slice name, int64_t limit)
{
	const struct semaphore *s = semaphore_find(c->locks, name);

	return s->limit && s->limit != limit && (s->state == SEMAPHORE_KNOWN || c->locks->env->conf->standalone);
}

enum { OPTIONS_ACQUIRE = OPTION_LIMIT | OPTION_COUNT | OPTION_WAIT | OPTION_LEASE };

/* "this client has 2 permits, and <asks for|gives> 3..." */
static void refuse_permits(struct client *c, enum error_code code, int64_t has, int64_t count, const char *rest)
{
	struct refusal no = refusal_of(code, "this client has ", SLICE(""), "");

	bytes_int(&no.sentence, has);
	bytes_text(&no.sentence, code == ERROR_NOTHELD ? " permits, and gives " : " permits, asks for ");
	bytes_int(&no.sentence, count);
	bytes_text(&no.sentence, rest);
	refusal_reply(c, &no);
}

void permits_acquire(const struct request_words *w)
{
	struct client *c = w->client;
	struct request_terms terms = { .mode = MODE_EXCLUSIVE };
	struct options o;
	struct grant *g;

	if (!command_valid_name(c, w->argv[1]) ||
	    !options_parse(w, COMMAND_ACQUIRE, 2, OPTIONS_ACQUIRE, &o))
		return;
	if (!(o.given & OPTION_LIMIT) || o.count > o.limit) {
		client_reply_error(c, ERROR_ERR, "ACQUIRE takes LIMIT n, on which all agree, and COUNT of no more than that");
		return;
	}
	if (is_lock_here(c, w->argv[1])) {
		client_reply_error(c, ERROR_MISMATCH, "that name is a lock's, not a semaphore's");
		return;
	}
	terms.limit = o.limit;
	terms.count = o.count;
	terms.wait_ns = c->half_closed ? 0 : o.wait_ns;
	terms.lease_ns = o.lease_ns;
	g = permits_find(c, w->argv[1]);
	if (g && g->lost) {
		reply_lost(c, g, "earlier permits of this semaphore were lost; ask again");
	} else if (g && g->depth + o.count > o.limit && !is_other_limit(c, w->argv[1], o.limit)) {
		refuse_permits(c, ERROR_DEADLOCK, g->depth, o.count, " more, and would wait for itself");
	} else {
		ask_for(c, w->argv[1], &terms);
	}
}

void permits_release(const struct request_words *w)
{
	struct client *c = w->client;
	struct options o;
	struct grant *g;
	int64_t rest;

	if (!command_valid_name(c, w->argv[1]) || !options_parse(w, COMMAND_RELEASE, 2, OPTION_COUNT, &o))
		return;
	g = permits_find(c, w->argv[1]);
	if (g && g->lost) {
		reply_lost(c, g, "the permits were lost before they were released");
		return;
	}
	if (!g || g->depth < o.count) {
		refuse_permits(c, ERROR_NOTHELD, g ? g->depth : 0, o.count, " back");
		return;
	}
	rest = g->depth - o.count;
	if (rest) {
		g->depth = rest;
		if (c->locks->env->conf->log_grants)
			grant_log_released(g, o.count);
		lock_touch(g->lock);
	} else {
		grant_end(g);
	}
	/* Who waited for them is told first. */
	broker_settle(c->locks->broker);
	client_reply_integer(c, rest);
}

/* ---- the limit ---- */

enum { LIMIT_TRIES = 8 };

static void reply_limit(struct client *c, int64_t limit)
{
	if (limit > 0)
		client_reply_integer(c, limit);
	else
		client_reply_nil(c);
}

static void limit_here(struct client *c, struct slice name, int64_t wanted)
{
	struct semaphore *s = semaphore_find(c->locks, name);

	if (s && wanted && s->limit) {
		s->limit = wanted;
		lock_touch(s->mutex);
		lock_touch(s->slots);
	}
	reply_limit(c, s ? s->limit : 0);
}

void permits_limit(const struct request_words *w)
{
	struct client *c = w->client;
	int64_t wanted = 0;

	if (!command_valid_name(c, w->argv[1]) || (w->argc == 3 && !options_parse_count(c, "LIMIT", w->argv[2], &wanted)))
		return;
	if (wanted && !client_is_operator(c))
		client_reply_error(c, ERROR_DENIED, "limits are changed by root and the daemon's own user only");
	else if (c->locks->env->conf->standalone && is_lock_here(c, w->argv[1]))
		client_reply_error(c, ERROR_MISMATCH, "that name is a lock's, not a semaphore's");
	else if (c->locks->env->conf->standalone)
		limit_here(c, w->argv[1], wanted);
	else
		query_limit(c, w->argv[1], wanted);
}

/* Of what was read, and nothing else: somebody may have made a lock of that name meanwhile, or set it himself. */
static void set_limit(struct query *q, int32_t version)
{
	struct operation_request r = {
		.op = { .kind = OPERATION_LIMIT_SET, .query = q->number },
		.exact = true,
		.version = version,
	};
	struct bytes data = { 0 };

	semaphore_data(&data, q->limit);
	r.path = bytes_view(&q->path);
	r.data = bytes_view(&data);
	q->client->locks->broker->hosts.query_open++;
	operation_send(q->client->locks->ensemble, EFFECT_ZK_SET, &r);
	bytes_free(&data);
}

void permits_limit_answered(struct query *q, const struct operation *op, const struct event *event)
{
	struct client *c = q->client;
	enum zk_code code = event->zk_answered.code;
	int64_t limit = q->limit;

	if (code == ZK_OK && op->kind == OPERATION_LIMIT_GET) {
		if (!semaphore_data_fits(event->zk_answered.data, &limit)) {
			client_reply_error(c, ERROR_MISMATCH, "that name is a lock's, not a semaphore's");
			query_free(q);
			return;
		}
		if (q->limit && limit != q->limit) {
			set_limit(q, event->zk_answered.stat.version);
			return;
		}
	}
	if (code == ZK_BADVERSION && ++q->tries < LIMIT_TRIES) {
		q->state = QUERY_ASKED; /* what is there now is read again */
		return;
	}
	if (code == ZK_OK)
		reply_limit(c, limit);
	else if (code == ZK_NONODE)
		client_reply_nil(c);
	else
		client_reply_error(c, ERROR_UNAVAILABLE, "ZooKeeper did not say");
	query_free(q);
}
