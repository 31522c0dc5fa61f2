/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Several locks at once, all or none. */
#include "lockbroker.h"

#include <string.h>

#include "lock.h"
#include "protocol/limits.h"
#include "request.h"

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
	for (size_t i = 0; i < n; i++) {
		request_add(r, slice_of(names[i]));
		if (r->words[r->first + i].len > NAME_BYTES_MAX)
			return wire_fail(lb, LB_BADNAME, "The name of a lock has at most %d bytes.", NAME_BYTES_MAX);
	}
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
	request_reenters(&m);
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
