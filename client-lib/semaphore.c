/* Permits of counting semaphores. */
#include "lockbroker.h"

#include "protocol/limits.h"
#include "request.h"

enum lb_result lb_acquire(struct lb *lb, const char *name, int64_t limit, int64_t count, int64_t timeout_ms,
			  int64_t *ret_held)
{
	struct request r = { .words = { SLICE("ACQUIRE"), slice_of(name) }, .count = 2 };
	enum lb_result result;

	if (r.words[1].len > NAME_BYTES_MAX)
		return wire_fail(lb, LB_BADNAME, "The name of a semaphore has at most %d bytes.", NAME_BYTES_MAX);
	timeout_ms = timeout_ms > LIMIT_MS_MAX ? LIMIT_MS_MAX : timeout_ms;
	request_add_number(&r, "LIMIT", limit);
	request_add_number(&r, "COUNT", count);
	if (timeout_ms >= 0)
		request_add_number(&r, "WAIT", timeout_ms);
	result = request_ask(lb, r.count, r.words, timeout_ms);
	if (result == LB_LOST)
		holdings_remove(&lb->holdings, r.words[1], -1);
	if (result != LB_OK)
		return result;
	if (lb->replies.values[0].type == RESP_NIL)
		return wire_fail(lb, LB_TAKEN, "The semaphore %s has not that many permits left.", name);
	if (lb->replies.values[0].type != RESP_INTEGER)
		return request_unexpected(lb, "ACQUIRE");
	holdings_add(&lb->holdings, r.words[1], 0, HELD_FOREVER);
	if (ret_held)
		*ret_held = lb->replies.values[0].integer;
	return LB_OK;
}

enum lb_result lb_release(struct lb *lb, const char *name, int64_t count)
{
	struct request r = { .words = { SLICE("RELEASE"), slice_of(name) }, .count = 2 };
	int64_t rest = 0;
	enum lb_result result;

	request_add_number(&r, "COUNT", count);
	result = request_ask_integer(lb, r.count, r.words, &rest);
	if ((result == LB_OK && rest == 0) || result == LB_LOST)
		holdings_remove(&lb->holdings, r.words[1], -1);
	return result;
}
