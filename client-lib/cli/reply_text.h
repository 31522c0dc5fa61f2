/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The texts in replies, valid as long as the reply. A value that is missing, or is not a text, gives an empty text. */
#pragma once

#include "client-lib/lockbroker.h"
#include "protocol/slice.h"

static inline struct slice reply_text(const struct lb_reply *value)
{
	struct slice s;

	s.data = lb_reply_text(value, &s.len);
	return s;
}

/* The text under that key of a map. */
static inline struct slice reply_field(const struct lb_reply *map, const char *key)
{
	return reply_text(lb_reply_field(map, key));
}
