/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Permits of counting semaphores. */
#include "lockbroker.h"

#include "lock.h"

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
	struct lb_options options = LB_OPTIONS;

	options.timeout_ms = timeout_ms;
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
