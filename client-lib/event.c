/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Requests that do not block, and the events that the daemon sends. */
#include "lockbroker.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "event.h"
#include "reply.h"
#include "request.h"

enum lb_result lb_enqueue(struct lb *lb, const char *name, const struct lb_options *options)
{
	struct request words;
	enum lb_result r = request_fill(lb, &words, "ENQUEUE", name, options);
	int64_t sent_ns = request_clock_ns();

	request_add(&words, SLICE("REENTER"));
	if (r == LB_OK)
		r = request_make(lb, &words, 0);
	if (r != LB_OK)
		return r;
	if (lb->replies.values[0].type != RESP_STATUS)
		return request_unexpected(lb, "ENQUEUE");
	holdings_wait(&lb->holdings, words.words[1], request_lease_end(sent_ns, words.lease_ms));
	return LB_OK;
}

enum lb_result lb_cancel(struct lb *lb, const char *name)
{
	int64_t done = 0;
	struct request words;
	enum lb_result r;

	request_about(&words, "CANCEL", name);
	r = request_make_integer(lb, &words, &done);
	if (r == LB_OK && !done)
		return wire_fail(lb, LB_NONE, "Nothing waits for the lock %s.", name);
	if (r == LB_OK)
		holdings_unwait(&lb->holdings, words.words[1]);
	return r;
}

/* ---- events ---- */

/* Items of a push are never nested deeper than the push: the i-th stands at i + 1. */
static int64_t event_integer(const struct resp_replies *e, size_t i)
{
	return e->count > i + 1 && e->values[i + 1].type == RESP_INTEGER ? e->values[i + 1].integer : 0;
}

static void event_text(const struct resp_replies *e, size_t i, char *ret, size_t size)
{
	struct slice text = e->count > i + 1 ? reply_text(&e->values[i + 1]) : SLICE("");

	snprintf(ret, size, "%.*s", (int)text.len, text.data);
	wire_whole_characters(ret);
}

static const struct {
	const char *word;
	enum lb_event_type type;
} event_kinds[] = {
	{ "lost", LB_EVENT_LOST },       { "jeopardy", LB_EVENT_JEOPARDY }, { "safe", LB_EVENT_SAFE },
	{ "revoke", LB_EVENT_REVOKE },   { "granted", LB_EVENT_GRANTED },   { "timeout", LB_EVENT_TIMEOUT },
	{ "failed", LB_EVENT_FAILED },     { "leader", LB_EVENT_LEADER },     { "unobserved", LB_EVENT_UNOBSERVED },
};

static enum lb_event_type event_type(const struct resp_replies *e)
{
	struct slice kind = e->count > 1 ? reply_text(&e->values[1]) : SLICE("");

	for (size_t i = 0; i < sizeof(event_kinds) / sizeof(event_kinds[0]); i++)
		if (slice_is(kind, event_kinds[i].word))
			return event_kinds[i].type;
	return LB_EVENT_OTHER;
}

static void event_fill(struct lb *lb, const struct resp_replies *e, struct lb_event *ret)
{
	lb->name[0] = lb->reason[0] = lb->data[0] = '\0';
	*ret = (struct lb_event){ .type = event_type(e), .name = lb->name, .reason = lb->reason, .data = lb->data };
	switch (ret->type) {
	case LB_EVENT_LOST:
	case LB_EVENT_REVOKE:
	case LB_EVENT_GRANTED:
	case LB_EVENT_LEADER:
		ret->token = event_integer(e, 2);
		break;
	case LB_EVENT_TIMEOUT:
		ret->result = LB_TAKEN;
		break;
	case LB_EVENT_FAILED:
	case LB_EVENT_UNOBSERVED:
		ret->result = LB_REFUSED;
		if (e->count > 3)
			request_result_of(reply_text(&e->values[3]), &ret->result);
		break;
	case LB_EVENT_JEOPARDY:
		ret->ms = event_integer(e, 1);
		return;
	case LB_EVENT_SAFE:
	case LB_EVENT_OTHER:
		return;
	}
	event_text(e, 1, lb->name, sizeof(lb->name));
	event_text(e, 3, lb->reason, sizeof(lb->reason));
	if (ret->type == LB_EVENT_LEADER)
		event_text(e, 4, lb->data, sizeof(lb->data));
}

/* Only whole and well-formed events are kept. */
size_t event_read(struct lb *lb, size_t at, struct lb_event *ret)
{
	struct resp_replies e;
	enum resp_result whole;
	size_t used;

	if (at >= lb->events.len)
		return 0;
	resp_replies_init(&e, WIRE_VALUES_MAX, WIRE_REPLY_BYTES_MAX);
	whole = resp_read_reply(&e, (struct slice){ lb->events.data + at, lb->events.len - at }, &used);
	assert(whole == RESP_DONE);
	event_fill(lb, &e, ret);
	resp_replies_deinit(&e);
	return used;
}

void event_remove(struct lb *lb, size_t at, size_t bytes)
{
	char *first = lb->events.data + at;

	lb->events.len -= bytes;
	memmove(first, first + bytes, lb->events.len - at);
}

static int64_t within_patience(const struct lb *lb, int64_t timeout_ms)
{
	return timeout_ms < 0 || timeout_ms > lb->patience_ms ? lb->patience_ms : timeout_ms;
}

/* Events that were kept are delivered even after the end of the connection: it must not hide a loss. */
enum lb_result lb_event(struct lb *lb, int64_t timeout_ms, struct lb_event *ret)
{
	int64_t deadline = wire_deadline(timeout_ms);
	enum lb_result r = LB_OK;

	if (lb->events.len == 0) {
		if (lb->fd < 0 && timeout_ms != 0)
			r = request_reconnect(lb, wire_deadline(within_patience(lb, timeout_ms)));
		if (r == LB_OK)
			r = wire_read_push(lb, deadline);
		/* The end of the connection is told by what it took away. */
		if (r == LB_CONNECTION && lb->events.len > 0)
			r = LB_OK;
	}
	if (r == LB_NONE)
		return wire_fail(lb, LB_NONE, "No event arrived within %lld ms.", (long long)timeout_ms);
	if (r == LB_OK)
		event_remove(lb, 0, event_read(lb, 0, ret));
	return r;
}
