/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The texts in replies; they live as long as the reply. What is no text, or is not there, is empty. */
#pragma once

#include "client-lib/lockbroker.h"
#include "protocol/slice.h"

static inline struct slice reply_text(const struct lb_reply *value)
{
	struct slice s;

	s.data = lb_reply_text(value, &s.len);
	return s;
}

/* Of a map, under that key. */
static inline struct slice reply_field(const struct lb_reply *map, const char *key)
{
	return reply_text(lb_reply_field(map, key));
}
