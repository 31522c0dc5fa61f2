/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Elections: leading, resigning, and observing who leads. */
#include "lockbroker.h"

#include "protocol/limits.h"
#include "request.h"

static void campaign_fill(struct request *r, const char *name, const char *data, int64_t timeout_ms)
{
	*r = (struct request){ .words = { SLICE("CAMPAIGN"), slice_of(name), SLICE("DATA"), slice_of(data) }, .count = 4 };
	r->timeout_ms = timeout_ms > LIMIT_MS_MAX ? LIMIT_MS_MAX : timeout_ms;
	if (r->timeout_ms >= 0)
		request_add_number(r, "WAIT", r->timeout_ms);
}

enum lb_result lb_campaign(struct lb *lb, const char *name, const char *data, int64_t timeout_ms, int64_t *ret_token)
{
	struct request words;
	enum lb_result r;

	campaign_fill(&words, name, data, timeout_ms);
	r = request_ask(lb, words.count, words.words, words.timeout_ms);
	if (r != LB_OK)
		return r;
	if (lb->replies.values[0].type == RESP_NIL)
		return wire_fail(lb, LB_TAKEN, "Somebody else leads the election %s.", name);
	if (lb->replies.values[0].type != RESP_INTEGER)
		return request_unexpected(lb, "CAMPAIGN");
	holdings_add(&lb->holdings, words.words[1], lb->replies.values[0].integer, HELD_FOREVER);
	if (ret_token)
		*ret_token = lb->replies.values[0].integer;
	return LB_OK;
}

enum lb_result lb_campaign_enqueue(struct lb *lb, const char *name, const char *data, int64_t timeout_ms)
{
	struct request words;
	enum lb_result r;

	campaign_fill(&words, name, data, timeout_ms);
	request_add(&words, SLICE("ENQUEUE"));
	r = request_ask(lb, words.count, words.words, 0);
	if (r != LB_OK)
		return r;
	if (lb->replies.values[0].type != RESP_STATUS)
		return request_unexpected(lb, "CAMPAIGN");
	holdings_wait(&lb->holdings, words.words[1], HELD_FOREVER);
	return LB_OK;
}

enum lb_result lb_resign(struct lb *lb, const char *name)
{
	const struct slice words[] = { SLICE("RESIGN"), slice_of(name) };
	int64_t led = 0;
	enum lb_result r = request_ask_integer(lb, 2, words, &led);

	if (r == LB_OK && !led)
		holdings_unwait(&lb->holdings, words[1]);
	else if (r == LB_OK || r == LB_LOST || r == LB_NOTHELD)
		holdings_remove(&lb->holdings, words[1], -1);
	return r;
}

enum lb_result lb_leader(struct lb *lb, const char *name, const struct lb_reply **ret)
{
	const struct slice words[] = { SLICE("LEADER"), slice_of(name) };
	enum lb_result r = request_ask(lb, 2, words, 0);

	if (r != LB_OK)
		return r;
	if (lb->replies.values[0].type == RESP_NIL)
		return wire_fail(lb, LB_NONE, "Nobody leads the election %s.", name);
	*ret = (const struct lb_reply *)lb->replies.values;
	return LB_OK;
}

enum lb_result lb_observe(struct lb *lb, const char *name)
{
	const struct slice words[] = { SLICE("OBSERVE"), slice_of(name) };

	return request_ask(lb, 2, words, 0);
}

enum lb_result lb_unobserve(struct lb *lb, const char *name)
{
	const struct slice words[] = { SLICE("UNOBSERVE"), slice_of(name) };
	int64_t done = 0;
	enum lb_result r = request_ask_integer(lb, 2, words, &done);

	return r == LB_OK && !done ? wire_fail(lb, LB_NONE, "The election %s was not observed.", name) : r;
}
