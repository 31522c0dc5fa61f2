/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Access to a reply: the accessors of lockbroker.h over the tree that protocol/resp.h made. */
#include "lockbroker.h"
#include "reply.h"

struct slice reply_text(const struct resp_value *v)
{
	return lb_reply_type((const struct lb_reply *)v) == LB_REPLY_TEXT ? v->text : SLICE("");
}

static size_t reply_children(const struct lb_reply *reply)
{
	if (!reply || reply->value.integer < 0)
		return 0;
	if (reply->value.type == RESP_MAP)
		return (size_t)reply->value.integer * 2;
	if (reply->value.type == RESP_ARRAY)
		return (size_t)reply->value.integer;
	return 0;
}

static const struct lb_reply *reply_child(const struct lb_reply *reply, size_t i)
{
	const struct lb_reply *child;

	if (i >= reply_children(reply))
		return NULL;
	for (child = reply + 1; i > 0; i--)
		child += child->value.span;
	return child;
}

enum lb_reply_type lb_reply_type(const struct lb_reply *reply)
{
	if (!reply)
		return LB_REPLY_NIL;
	switch (reply->value.type) {
	case RESP_STATUS:
	case RESP_ERROR:
	case RESP_BULK:
	case RESP_DOUBLE:
		return LB_REPLY_TEXT;
	case RESP_INTEGER:
	case RESP_BOOL:
		return LB_REPLY_INTEGER;
	case RESP_ARRAY:
	case RESP_PUSH:
		return LB_REPLY_ARRAY;
	case RESP_MAP:
		return LB_REPLY_MAP;
	case RESP_NIL:
		break;
	}
	return LB_REPLY_NIL;
}

const char *lb_reply_text(const struct lb_reply *reply, size_t *ret_len)
{
	struct slice text = reply ? reply_text(&reply->value) : SLICE("");

	if (ret_len)
		*ret_len = text.len;
	return text.data;
}

int64_t lb_reply_integer(const struct lb_reply *reply)
{
	return lb_reply_type(reply) == LB_REPLY_INTEGER ? reply->value.integer : 0;
}

size_t lb_reply_count(const struct lb_reply *reply)
{
	return lb_reply_type(reply) == LB_REPLY_MAP ? reply_children(reply) / 2 : reply_children(reply);
}

const struct lb_reply *lb_reply_item(const struct lb_reply *reply, size_t i)
{
	return reply_child(reply, lb_reply_type(reply) == LB_REPLY_MAP ? i * 2 + 1 : i);
}

const struct lb_reply *lb_reply_key(const struct lb_reply *map, size_t i)
{
	return lb_reply_type(map) == LB_REPLY_MAP ? reply_child(map, i * 2) : NULL;
}

const struct lb_reply *lb_reply_field(const struct lb_reply *map, const char *key)
{
	size_t i;

	for (i = 0; lb_reply_type(map) == LB_REPLY_MAP && i < lb_reply_count(map); i++) {
		if (slice_eq(reply_text(&lb_reply_key(map, i)->value), slice_of(key)))
			return lb_reply_item(map, i);
	}
	return NULL;
}

const struct lb_reply *lb_reply_next(const struct lb_reply *item)
{
	return item + item->value.span;
}
