/* SPDX-License-Identifier: Apache-2.0 */
#include "core/client/ask.h"

#include "base/cold.h"
#include "core/client/deadlock.h"
#include "core/client/reply.h"
#include "core/lock/bearer.h"
#include "core/lock/locks.h"
#include "core/lock/take_back.h"

static COLD bool refuse(struct refusal *ret, enum error_code code, const char *sentence)
{
	ret->code = code;
	bytes_text(&ret->sentence, sentence);
	return false;
}

static COLD bool refuse_limit(struct locks *locks, struct refusal *ret, const char *sentence)
{
	locks->env->stats.limits_total++;
	return refuse(ret, ERROR_LIMIT, sentence);
}

static COLD bool refuse_kind(const struct lock *lock, enum kind kind, struct refusal *ret)
{
	*ret = refusal_of(ERROR_MISMATCH, "this name is in use as %s, not as %s", kind_noun(lock->rule->kind), kind_noun(kind));
	return false;
}

bool ask_fits(const struct lock *lock, enum kind kind, struct refusal *ret)
{
	return !lock_refuses(lock, kind) || refuse_kind(lock, kind, ret);
}

static enum rule_verb verb_of(const struct locks *locks, const struct request_terms *terms)
{
	enum rule_verb verb = locks->rules[terms->kind]->verb;

	return verb == RULE_lock && terms->mode == MODE_SHARED ? RULE_shared : verb;
}

/* By default everybody may ask. */
static COLD bool permits(struct client *client, struct slice name, enum rule_verb verb, struct refusal *ret)
{
	const struct rule *rule;

	if (!client_ruled(client, verb) || client_may(client, verb, name, &rule))
		return true;
	*ret = refusal_of(ERROR_DENIED, DENIED_BY, rule_verb_does(verb), name, rule->text, rule->where);
	return false;
}

bool ask_permits(struct client *client, struct slice name, const struct request_terms *terms, struct refusal *ret)
{
	return !client->locks->env->conf->access.count || permits(client, name, verb_of(client->locks, terms), ret);
}

/* A free delegation counts as a grant, but no client may be refused a lock because of locks that nobody holds. */
static void make_room(struct client *c)
{
	size_t looks = DELEGATED_LOOKS;
	enum client_lack lack;

	while ((lack = client_lacks(c)) != CLIENT_LACKS_NOTHING)
		if (!delegated_make_room(c, lack == CLIENT_LACKS_ITS_GRANTS, &looks))
			return;
}

bool ask_lock(struct client *client, struct slice name, const struct request_terms *terms, struct refusal *ret)
{
	struct locks *locks = client->locks;
	struct lock *lock = lock_find(locks, name);
	bool aside = lock && lock_sets_aside(lock, terms->kind);
	const char *why;

	if (env_halts(locks->env))
		return refuse(ret, ERROR_DRAINING, env_halt_sentence(locks->env));
	if (!client->mlock && !client->bearer && !ask_permits(client, name, terms, ret))
		return false;
	make_room(client);
	if (!client_may_ask(client, terms->queued, &why))
		return refuse_limit(locks, ret, why);
	if (!aside)
		lock = locks->rules[terms->kind]->make(locks, name, client);
	if (!lock)
		return refuse_limit(locks, ret,
				    pools_refusal(locks->env, client->account, POOL_LOCKS, client->privileged));
	delegated_give_way(lock, client, terms->mode);
	if (lock->request_count + lock->aside_count >= locks->env->conf->limits.requests_per_lock)
		return refuse_limit(
			locks, ret,
			"as many clients as one lock may have already wait for it (limits.requests_per_lock)");
	if (!ask_fits(lock, terms->kind, ret))
		return false;
	/* An ENQUEUE blocks nobody, and a try does not wait. */
	if (!aside && !terms->queued && terms->wait_ns != 0 && deadlock_look(client, lock, terms, &ret->sentence)) {
		ret->code = ERROR_DEADLOCK;
		return false;
	}
	if (!aside)
		lock_become(lock, terms->kind);
	request_new(lock, client, terms);
	return true;
}

struct refusal refusal_of_values(enum error_code code, const char *format, const struct bytes_value *values, size_t count)
{
	struct refusal no = { .code = code };

	bytes_format_values(&no.sentence, format, values, count);
	return no;
}

struct refusal refusal_lost(struct grant *g, const char *else_told)
{
	const struct lock *lock = g->lock; /* it lasts until all is settled */

	if (g->loss == LOSS_LEASE)
		else_told = lock->rule->lease_over;
	else if (!else_told)
		else_told = lock->rule->lost;
	grant_end(g);
	return refusal_of(ERROR_LOST, "%s: %s", else_told, bytes_view(&lock->name));
}

/*
 * Clients of Redis share a connection among threads: one that does not say REENTER may be another than the holder. An
 * upgrade would wait for the client's own grant; and two upgrades would wait for each other.
 */
bool ask_may(struct lock *lock, struct client *c, struct grant *g, const struct request_terms *terms, bool reenter,
	     struct refusal *ret)
{
	struct slice name = bytes_view(&lock->name);
	const struct kind_rule *rule = lock->locks->rules[terms->kind];
	bool adds = rule->may_add != NULL;
	const struct request *waits;
	const char *why;

	if (!ask_fits(lock, terms->kind, ret))
		refusal_name(ret, name);
	else if (g && g->lost)
		*ret = refusal_lost(g, NULL);
	else if (g && !adds && !reenter)
		*ret = refusal_of(ERROR_HELD, "%s: %s", rule->held, name);
	else if (g && !adds && !mode_covers(g->mode, terms->mode))
		*ret = refusal_of(ERROR_DEADLOCK, "this client holds %s shared and would wait for itself: release it first",
				  name);
	else if (g && adds && !rule->may_add(g, terms))
		*ret = refusal_of(
			ERROR_DEADLOCK,
			"this client has %d permits and asks for %d more: it would wait for itself; release some first",
			g->depth, terms->count);
	else if (g && !adds && terms->queued && !client_may_be_told(c, &why))
		*ret = refusal_of(ERROR_LIMIT, "%s: %s", why, name);
	else if (!g && (waits = request_find(lock, c)))
		*ret = refusal_of(ERROR_ERR, "%s: %s", lock->locks->rules[request_kind(waits)]->waits, name);
	else
		return true;
	return false;
}

void refusal_name(struct refusal *no, struct slice name)
{
	if (no->code != ERROR_DEADLOCK && no->code != ERROR_DRAINING && no->code != ERROR_DENIED)
		bytes_format(&no->sentence, ": %s", name);
}

void refusal_reply(struct client *c, struct refusal *no)
{
	reply_error(c, no->code, "%s", bytes_view(&no->sentence));
	bytes_free(&no->sentence);
}

/* ---- requests that are set aside ---- */

static void decide(struct request *r)
{
	struct lock *lock = r->lock;
	struct refusal no;

	if (!ask_fits(lock, request_kind(r), &no)) {
		bytes_char(&no.sentence, '\0');
		request_fail(r, no.code, no.sentence.data);
		bytes_free(&no.sentence);
		return;
	}
	TAILQ_REMOVE(&lock->aside, r, link);
	lock->aside_count--;
	r->aside = 0;
	TAILQ_INSERT_TAIL(&lock->requests, r, link);
	lock->request_count++;
	if (r->expired)
		request_mark_expired(r);
	if (lock->rule->begun)
		lock->rule->begun(lock, r);
	directory_touch(&lock->directory);
	if (r->client->asking)
		deadlock_look_at(r->client); /* only from now on it waits for others */
}

/* A lock with two directories is another struct than one with one directory. */
static void turn(struct lock *lock)
{
	struct request_list aside = TAILQ_HEAD_INITIALIZER(aside);
	struct request *r = TAILQ_FIRST(&lock->aside);
	enum kind kind = request_kind(r);
	struct locks *locks = lock->locks;
	struct bytes name = { 0 };

	bytes_slice(&name, bytes_view(&lock->name));
	TAILQ_CONCAT(&aside, &lock->aside, link);
	lock->aside_count = 0;
	lock_rest(lock);
	locks->restoring = true; /* the requests were admitted, whatever the limits are now */
	lock = locks->rules[kind]->make(locks, bytes_view(&name), r->client);
	locks->restoring = false;
	bytes_free(&name);
	lock_become(lock, kind);
	lock->mixed = true;
	TAILQ_CONCAT(&lock->aside, &aside, link);
	TAILQ_FOREACH(r, &lock->aside, link) {
		r->lock = lock;
		lock->aside_count++;
		if (r->client->bearer && r->client->bearer->place.lock)
			r->client->bearer->place.lock = lock;
	}
}

void ask_settle_aside(struct lock *lock)
{
	int left = lock->locks->env->conf->all_in_pieces ? 1 : ASIDE_AT_ONCE;
	struct request *r;

	while ((r = TAILQ_FIRST(&lock->aside)) && (request_kind(r) == lock->rule->kind || lock_is_confirmed(lock))) {
		if (!left-- || lock->locks->searched >= DEADLOCK_EDGES_AT_ONCE)
			directory_touch_later(&lock->directory);
		if (lock->directory.later)
			return;
		decide(r);
	}
	if (!r)
		lock_rest(lock);
	else if (!lock->directory.touched && !(lock->slots && lock->slots->touched) && !lock_in_use(lock))
		turn(lock);
}
