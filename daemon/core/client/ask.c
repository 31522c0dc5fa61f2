/* SPDX-License-Identifier: Apache-2.0 */
#include "core/client/ask.h"

#include "base/cold.h"
#include "core/client/deadlock.h"
#include "core/client/reply.h"
#include "core/lock/locks.h"

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

bool ask_lock(struct client *client, struct slice name, const struct request_terms *terms, struct refusal *ret)
{
	struct locks *locks = client->locks;
	struct lock *lock;
	const char *why;

	if (locks->env->stopping)
		return refuse(ret, ERROR_DRAINING, "the daemon is stopping");
	if (!client_may_ask(client, &why))
		return refuse_limit(locks, ret, why);
	lock = locks->rules[terms->kind]->make(locks, name);
	if (!lock)
		return refuse_limit(locks, ret, "this daemon already knows as many locks as it may (limits.locks)");
	if (lock->request_count >= locks->env->conf->limits.requests_per_lock)
		return refuse_limit(
			locks, ret,
			"as many clients as one lock may have already wait for it (limits.requests_per_lock)");
	if (!ask_fits(lock, terms->kind, ret))
		return false;
	/* An ENQUEUE blocks nobody, and a try does not wait. */
	if (!terms->queued && terms->wait_ns != 0 && deadlock_closes(client, lock, terms, &ret->sentence)) {
		ret->code = ERROR_DEADLOCK;
		return false;
	}
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

struct refusal refusal_held(struct slice name)
{
	return refusal_of(ERROR_HELD, "this connection holds it already; say REENTER to enter it again, or use one "
				      "connection for each thread: %s", name);
}

void refusal_name(struct refusal *no, struct slice name)
{
	if (no->code != ERROR_DEADLOCK && no->code != ERROR_DRAINING)
		bytes_format(&no->sentence, ": %s", name);
}

void refusal_reply(struct client *c, struct refusal *no)
{
	reply_error(c, no->code, "%s", bytes_view(&no->sentence));
	bytes_free(&no->sentence);
}
