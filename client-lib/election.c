/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Elections: leading, resigning, and observing who leads. */
#include "lockbroker.h"

#include "request.h"

static void campaign_fill(struct request *r, const char *name, const char *data, int64_t timeout_ms)
{
	request_name(r, "CAMPAIGN", name);
	request_add(r, SLICE("DATA"));
	request_add(r, slice_of(data));
	request_add_wait(r, timeout_ms);
}

enum lb_result lb_campaign(struct lb *lb, const char *name, const char *data, int64_t timeout_ms, int64_t *ret_token)
{
	struct request words;
	enum lb_result r;

	campaign_fill(&words, name, data, timeout_ms);
	r = request_make(lb, &words, words.timeout_ms);
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
	r = request_make(lb, &words, 0);
	if (r != LB_OK)
		return r;
	if (lb->replies.values[0].type != RESP_STATUS)
		return request_unexpected(lb, "CAMPAIGN");
	holdings_wait(&lb->holdings, words.words[1], HELD_FOREVER);
	return LB_OK;
}

enum lb_result lb_resign(struct lb *lb, const char *name)
{
	int64_t led = 0;
	struct request words;
	enum lb_result r;

	request_name(&words, "RESIGN", name);
	r = request_make_integer(lb, &words, &led);
	if (r == LB_OK && !led)
		holdings_unwait(&lb->holdings, words.words[1]);
	else if (r == LB_OK || r == LB_LOST || r == LB_NOTHELD)
		holdings_remove(&lb->holdings, words.words[1], -1);
	return r;
}

enum lb_result lb_leader(struct lb *lb, const char *name, const struct lb_reply **ret)
{
	struct request words;
	enum lb_result r;

	request_about(&words, "LEADER", name);
	r = request_make(lb, &words, 0);
	if (r != LB_OK)
		return r;
	if (lb->replies.values[0].type == RESP_NIL)
		return wire_fail(lb, LB_NONE, "Nobody leads the election %s.", name);
	*ret = (const struct lb_reply *)lb->replies.values;
	return LB_OK;
}

enum lb_result lb_observe(struct lb *lb, const char *name)
{
	struct request words;
	enum lb_result r;

	request_about(&words, "OBSERVE", name);
	r = request_make(lb, &words, 0);
	if (r == LB_OK)
		holdings_observe(&lb->holdings, words.words[1], true);
	return r;
}

enum lb_result lb_unobserve(struct lb *lb, const char *name)
{
	int64_t done = 0;
	struct request words;
	enum lb_result r;

	request_about(&words, "UNOBSERVE", name);
	r = request_make_integer(lb, &words, &done);
	if (r == LB_OK)
		holdings_observe(&lb->holdings, words.words[1], false);
	return r == LB_OK && !done ? wire_fail(lb, LB_NONE, "The election %s was not observed.", name) : r;
}
