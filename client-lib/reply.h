/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What the library itself knows about a reply: it is the first of its values, and the others follow it. */
#pragma once

#include "protocol/resp.h"

struct lb_reply {
	struct resp_value value;
};

/* The bytes of a value that has text; otherwise empty. */
struct slice reply_text(const struct resp_value *v);
