/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Locks: acquiring and releasing them, and for how long they are proven. */
#include "lockbroker.h"

#include "delegated.h"
#include "lock.h"
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
	enum lb_result r = request_fill(lb, &words, "RENEW", name, NULL);

	if (r != LB_OK)
		return r;
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
 * The daemon counts the lease from the grant. The library only knows that the grant came after the request was sent; if
 * that is too long ago, because the request had to wait, the lease is restarted.
 */
enum lb_result lock_granted(struct lb *lb, const char *name, int64_t token, int64_t lease_ms, int64_t sent_ns)
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
			delegated_prepare(lb, name, &slot);
	}
	r = request_fill(lb, &words, "LOCK", name, options);
	sent_ns = words.lease_ms ? request_clock_ns() : 0;
	request_reenters(&words);
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
	struct lb_options options = LB_OPTIONS;

	options.timeout_ms = timeout_ms;
	return lb_lock_with(lb, name, &options, ret_token);
}

enum lb_result lb_lock_shared(struct lb *lb, const char *name, int64_t timeout_ms, int64_t *ret_token)
{
	struct lb_options options = LB_OPTIONS;

	options.timeout_ms = timeout_ms;
	options.shared = 1;
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
