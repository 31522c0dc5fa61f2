/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "lock.h"

#include <string.h>

#include "delegated.h"
#include "protocol/limits.h"
#include "request.h"

/* If more than this part of a lease may have passed when the grant is known, the lease is restarted. */
enum { LEASE_SLACK_PART = 16 };

enum lb_result lock_give_back(struct lb *lb, const char *name)
{
	const struct slice words[] = { SLICE("UNLOCK"), slice_of(name) };
	int64_t depth;
	enum lb_result r = request_ask_integer(lb, 2, words, &depth);

	if (r == LB_OK)
		holdings_left(&lb->holdings, words[1], depth);
	if (r == LB_LOST)
		holdings_told(&lb->holdings, words[1]);
	return r == LB_CONNECTION ? r : LB_OK;
}

/* LB_NONE: the unlock has to be waited for. */
static enum lb_result unlock_unanswered(struct lb *lb, const char *name)
{
	const struct slice words[] = { SLICE("UNLOCK"), slice_of(name), SLICE("LAZY") };
	enum lb_result r;

	if (lb->waits_for_unlock || lb->unlocks >= WIRE_UNLOCKS_MAX || wire_begin(lb) != LB_OK ||
	    holdings_valid_ms(&lb->holdings, name, request_clock_ns()) == 0)
		return LB_NONE;
	resp_request(&lb->out, 3, words);
	r = wire_send(lb);
	if (r == LB_CONNECTION)
		return LB_NONE;
	if (r != LB_OK)
		return r;
	holdings_leave(&lb->holdings, words[1]);
	lb->unlocks++;
	bytes_append(&lb->unanswered, words[1].data, words[1].len + 1);
	return LB_OK;
}

static enum lb_result renew(struct lb *lb, const char *name, int64_t ms, int64_t token)
{
	int64_t sent_ns = request_clock_ns(), done;
	struct request words;
	enum lb_result r;

	request_name(&words, "RENEW", name);
	request_add_number(&words, NULL, ms);
	if (token >= 0)
		request_add_number(&words, "TOKEN", token);
	r = request_make_integer(lb, &words, &done);
	if (r == LB_OK)
		holdings_renew(&lb->holdings, words.words[1], request_lease_end(sent_ns, ms));
	if (r == LB_LOST || r == LB_NOTHELD)
		holdings_remove(&lb->holdings, words.words[1], token);
	return r;
}

/*
 * The daemon has answered with the token of a lock with that lease, requested at `sent_ns`. LB_LOST: the lease had run
 * out before the answer came, and the lock is not held.
 *
 * The daemon counts the lease from the grant. The library only knows that the grant came after the request was sent; if
 * that is too long ago, because the request had to wait, the lease is restarted.
 */
static enum lb_result lock_granted(struct lb *lb, const char *name, int64_t token, int64_t lease_ms, int64_t sent_ns)
{
	bool fresh = holdings_add(&lb->holdings, slice_of(name), token, request_lease_end(sent_ns, lease_ms));

	if (!fresh || !lease_ms || request_clock_ns() < sent_ns + lease_ms * (1000000 / LEASE_SLACK_PART))
		return LB_OK;
	return renew(lb, name, lease_ms, token);
}

/* What may be delegated. */
static bool is_plain(const struct lb_options *o)
{
	return !o || (o->size == sizeof(*o) && !o->lease_ms && !o->data);
}

enum lb_result lb_lock_with(struct lb *lb, const char *name, const struct lb_options *options, int64_t *ret_token)
{
	struct request words;
	enum lb_result r;
	int64_t sent_ns, token;
	unsigned slot = 0;
	bool plain = is_plain(options), shared = plain && options && options->shared;

	if (plain) {
		r = delegated_take(lb, name, shared, ret_token);
		if (r == LB_OK)
			return r;
		/* A connection that has ended is the request's to find. */
		if (r == LB_NONE)
			slot = delegated_prepare(lb, name);
	}
	r = request_fill(lb, &words, "LOCK", name, options);
	sent_ns = words.lease_ms ? request_clock_ns() : 0;
	/* A handle is used by one thread, which may acquire again what it holds. */
	request_add(&words, SLICE("REENTER"));
	if (slot)
		request_add_number(&words, "SLOT", slot);
	if (r == LB_OK)
		r = request_make(lb, &words, words.timeout_ms);
	if (r != LB_OK)
		return r;
	if (lb->replies.values[0].type == RESP_NIL)
		return wire_fail(lb, LB_TAKEN, "The lock %s is held by somebody else.", name);
	if (lb->replies.values[0].type != RESP_INTEGER)
		return request_unexpected(lb, "LOCK");
	token = lb->replies.values[0].integer;
	if (lb->late_error.len > 0)
		return lock_give_back(lb, name) == LB_CONNECTION ? LB_CONNECTION : request_late_failure(lb);
	r = lock_granted(lb, name, token, words.lease_ms, sent_ns);
	if (slot)
		delegated_read(lb, slot, shared, token);
	if (r == LB_OK && ret_token)
		*ret_token = token;
	return r;
}

enum lb_result lb_lock_timeout(struct lb *lb, const char *name, int64_t timeout_ms, int64_t *ret_token)
{
	const struct lb_options options = { .size = sizeof(options), .timeout_ms = timeout_ms };

	return lb_lock_with(lb, name, &options, ret_token);
}

enum lb_result lb_lock_shared(struct lb *lb, const char *name, int64_t timeout_ms, int64_t *ret_token)
{
	const struct lb_options options = { .size = sizeof(options), .timeout_ms = timeout_ms, .shared = 1 };

	return lb_lock_with(lb, name, &options, ret_token);
}

enum lb_result lb_lock(struct lb *lb, const char *name, int64_t *ret_token)
{
	return lb_lock_timeout(lb, name, -1, ret_token);
}

enum lb_result lb_try(struct lb *lb, const char *name, int64_t *ret_token)
{
	return lb_lock_timeout(lb, name, 0, ret_token);
}

enum lb_result lb_unlock(struct lb *lb, const char *name)
{
	int64_t depth = 0;
	struct request words;
	bool wait;
	enum lb_result r = delegated_leave(lb, name, &wait);

	if (r == LB_NONE && !wait)
		r = unlock_unanswered(lb, name);
	if (r == LB_NONE) {
		request_name(&words, "UNLOCK", name);
		r = request_make_integer(lb, &words, &depth);
		if (r == LB_OK || r == LB_LOST || r == LB_NOTHELD)
			holdings_left(&lb->holdings, words.words[1], depth);
	}
	return r == LB_OK ? request_late_failure(lb) : r;
}

enum lb_result lb_renew(struct lb *lb, const char *name, int64_t lease_ms)
{
	return renew(lb, name, lease_ms > LIMIT_MS_MAX ? LIMIT_MS_MAX : lease_ms, -1);
}

enum lb_result lb_downgrade(struct lb *lb, const char *name)
{
	int64_t token = 0;
	struct request words;
	enum lb_result r;

	request_name(&words, "DOWNGRADE", name);
	r = request_make_integer(lb, &words, &token);
	if (r == LB_LOST || r == LB_NOTHELD)
		holdings_remove(&lb->holdings, words.words[1], -1);
	return r;
}

enum lb_result lb_valid(struct lb *lb, const char *name, int64_t *ret_ms)
{
	const struct slice words[] = { SLICE("VALID"), slice_of(name) };
	int64_t now_ns = request_clock_ns(), ms;
	enum lb_result r;

	/* Its word and the session page say it all, unless that has moved: the next process may not know this connection. */
	if (delegated_holds(lb, name) && !holdings_moved(&lb->holdings) && delegated_is_heard(lb, now_ns) &&
	    (ms = holdings_valid_ms(&lb->holdings, name, now_ns)) > 0) {
		*ret_ms = ms;
		return LB_OK;
	}
	r = request_read_events(lb);
	if (r == LB_OK && holdings_unproven(&lb->holdings, name, now_ns))
		return request_ask_integer(lb, 2, words, ret_ms);
	/* Until the answer comes, the page that has moved is right. */
	if (r == LB_OK)
		r = wire_ask_page(lb);
	if (r == LB_OK)
		*ret_ms = holdings_valid_ms(&lb->holdings, name, now_ns);
	return r;
}

enum lb_result lb_acquire_with(struct lb *lb, const char *name, int64_t limit, int64_t count,
			       const struct lb_options *options, int64_t *ret_held)
{
	struct request r;
	int64_t sent_ns, held;
	enum lb_result result = request_fill(lb, &r, "ACQUIRE", name, options);

	if (result != LB_OK)
		return result;
	if (options && (options->shared || options->data))
		return wire_fail(lb, LB_REFUSED, "Permits cannot have a mode or data.");
	request_add_number(&r, "LIMIT", limit);
	request_add_number(&r, "COUNT", count);
	sent_ns = request_clock_ns();
	result = request_make(lb, &r, r.timeout_ms);
	if (result == LB_LOST)
		holdings_remove(&lb->holdings, r.words[1], -1);
	if (result != LB_OK)
		return result;
	if (lb->replies.values[0].type == RESP_NIL)
		return wire_fail(lb, LB_TAKEN, "The semaphore %s does not have that many free permits.", name);
	if (lb->replies.values[0].type != RESP_INTEGER)
		return request_unexpected(lb, "ACQUIRE");
	held = lb->replies.values[0].integer;
	result = lock_granted(lb, name, 0, r.lease_ms, sent_ns);
	if (result == LB_OK && ret_held)
		*ret_held = held;
	return result;
}

enum lb_result lb_acquire(struct lb *lb, const char *name, int64_t limit, int64_t count, int64_t timeout_ms,
			  int64_t *ret_held)
{
	const struct lb_options options = { .size = sizeof(options), .timeout_ms = timeout_ms };

	return lb_acquire_with(lb, name, limit, count, &options, ret_held);
}

enum lb_result lb_release(struct lb *lb, const char *name, int64_t count)
{
	int64_t rest = 0;
	struct request r;
	enum lb_result result;

	request_name(&r, "RELEASE", name);
	request_add_number(&r, "COUNT", count);
	result = request_make_integer(lb, &r, &rest);
	if ((result == LB_OK && rest == 0) || result == LB_LOST)
		holdings_remove(&lb->holdings, r.words[1], -1);
	return result;
}

/* COMMAND n name ... */
static enum lb_result multi_fill(struct lb *lb, struct request *r, const char *command, size_t n,
				 const char *const *names)
{
	request_begin(r, command);
	if (n < 1 || n > LIMIT_NAMES_MAX)
		return wire_fail(lb, LB_REFUSED, "1 to %d locks can be taken at once, not %zu.", LIMIT_NAMES_MAX, n);
	request_add_number(r, NULL, (int64_t)n);
	r->first = r->count;
	r->names = n;
	for (size_t i = 0; i < n; i++)
		request_add(r, slice_of(names[i]));
	return LB_OK;
}

/* Reads the numbers of an answer, one for each name; false if it has another form. */
static bool multi_numbers(const struct lb *lb, size_t n, int64_t *ret)
{
	const struct resp_value *values = lb->replies.values;

	if (values[0].type != RESP_ARRAY || values[0].integer != (int64_t)n || values[0].span != n + 1)
		return false;
	for (size_t i = 0; i < n; i++) {
		if (values[i + 1].type != RESP_INTEGER)
			return false;
		ret[i] = values[i + 1].integer;
	}
	return true;
}

/* The call fails with `r` and its sentence: all locks are released again, except the one that is already lost. */
static enum lb_result multi_undo(struct lb *lb, enum lb_result r, size_t n, const char *const *names, size_t lost)
{
	char sentence[sizeof(lb->error)];

	memcpy(sentence, lb->error, sizeof(sentence));
	for (size_t i = 0; i < n; i++)
		if (i != lost && lock_give_back(lb, names[i]) == LB_CONNECTION)
			return LB_CONNECTION;
	return wire_fail(lb, r, "%s", sentence);
}

enum lb_result lb_lock_all(struct lb *lb, size_t n, const char *const *names, const struct lb_options *options,
			   int64_t *ret_tokens)
{
	int64_t tokens[LIMIT_NAMES_MAX], sent_ns;
	struct request m;
	enum lb_result r = multi_fill(lb, &m, "MLOCK", n, names);

	if (r == LB_OK)
		r = request_options(lb, &m, options);
	if (r != LB_OK)
		return r;
	if (options && options->data)
		return wire_fail(lb, LB_REFUSED, "Locks that are taken together cannot have data.");
	request_add(&m, SLICE("REENTER"));
	sent_ns = m.lease_ms ? request_clock_ns() : 0;
	r = request_make(lb, &m, m.timeout_ms);
	if (r != LB_OK)
		return r;
	if (lb->replies.values[0].type == RESP_NIL)
		return wire_fail(lb, LB_TAKEN, "Somebody else holds one of the %zu locks.", n);
	if (!multi_numbers(lb, n, tokens))
		return request_unexpected(lb, "MLOCK");
	r = request_late_failure(lb);
	if (r != LB_OK)
		return multi_undo(lb, r, n, names, n);
	for (size_t i = 0; i < n; i++) {
		r = lock_granted(lb, names[i], tokens[i], m.lease_ms, sent_ns);
		if (r != LB_OK)
			return r == LB_CONNECTION ? r : multi_undo(lb, r, n, names, i);
	}
	if (ret_tokens)
		memcpy(ret_tokens, tokens, n * sizeof(tokens[0]));
	return LB_OK;
}

enum lb_result lb_unlock_all(struct lb *lb, size_t n, const char *const *names)
{
	int64_t depths[LIMIT_NAMES_MAX];
	struct request m;
	enum lb_result r = multi_fill(lb, &m, "MUNLOCK", n, names);

	if (r == LB_OK)
		r = request_make(lb, &m, 0);
	if (r != LB_OK)
		return r;
	if (!multi_numbers(lb, n, depths))
		return request_unexpected(lb, "MUNLOCK");
	for (size_t i = 0; i < n; i++)
		holdings_left(&lb->holdings, m.words[m.first + i], depths[i]);
	return LB_OK;
}
